"""The job that gates somebody's own repository, with what CI has to install: what this installation was made from."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.common.errors import Refusal

PACKAGE = "bpe-harness"
CHECKOUT = "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683  # v4.2.2"
SETUP_PYTHON = "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065  # v5.6.0"
UPLOAD = "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02  # v4.6.2"
REMOTE = re.compile(r"(?:(?:https|ssh|git)://(?:[^@/]*@)?(?P<host1>[^/]+)/|[^@/:]+@(?P<host2>[^/:]+):)(?P<path>.+)")
JOB = """\
# .github/workflows/gate.yml
name: gate
on: pull_request
permissions:
  contents: read
jobs:
  gate:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: {checkout}
        with:
          fetch-depth: 0  # the base is in the history
          persist-credentials: false
      - uses: {setup_python}
        with:
          python-version: "3.12"
      - run: python -m pip install '{requirement}'
      - run: python -P -m harness.gate {target} --against "origin/$GITHUB_BASE_REF" --summary "$GITHUB_STEP_SUMMARY"
      - uses: {upload}
        if: always()
        with:
          name: gate
          path: results/local/gate
"""


def workflow(target: str, requirement: str | None = None) -> str:
    """A GitHub Actions workflow that gates `target`, a trainer as package.module:function.

    `requirement` is what pip installs; without it, what this installation was made from. Raises Refusal where that is
    nothing that another machine can reach.
    """
    return JOB.format(
        target=target,
        requirement=requirement or installed_from(),
        checkout=CHECKOUT,
        setup_python=SETUP_PYTHON,
        upload=UPLOAD,
    )


def installed_from() -> str:
    """What pip is told to install the same as is installed here: a release, or a commit of a repository."""
    # Beside a checkout's own metadata, which a build leaves in it, stand those of what pip has installed.
    told = [each.read_text("direct_url.json") for each in metadata.distributions(name=PACKAGE)]
    noted = next((json.loads(text) for text in told if text), None)
    folder = Path(__file__).resolve().parents[2]
    if noted is None and (folder / ".git").exists():
        noted = {"url": folder.as_uri()}
    return requirement_of(noted, metadata.version(PACKAGE))


def requirement_of(origin: dict[str, Any] | None, version: str) -> str:
    """From what pip notes of an installation (PEP 610): nothing of one that came from an index.

    >>> requirement_of(None, "1.2.0")
    'bpe-harness==1.2.0'
    >>> requirement_of({"url": "https://a.example/b", "vcs_info": {"vcs": "git", "commit_id": "1f3c"}}, "1.2.0")
    'bpe-harness @ git+https://a.example/b@1f3c'
    """
    if origin is None:
        return f"{PACKAGE}=={version}"
    url = str(origin["url"])
    if (commit := origin.get("vcs_info", {}).get("commit_id")) and not url.startswith("file:"):
        return f"{PACKAGE} @ git+{url}@{commit}"
    if url.startswith(("https:", "http:")):
        return f"{PACKAGE} @ {url}"
    if (checkout := _checkout_of(url.removeprefix("file://"))) is not None:
        return f"{PACKAGE} @ {checkout}"
    raise Refusal(
        f"this {PACKAGE} was installed from {url}, which no other machine reaches; say what CI should install, as in "
        f"--workflow '{PACKAGE} @ git+https://HOST/OWNER/{PACKAGE}'"
    )


def _checkout_of(folder: str) -> str | None:
    """The repository that a folder was cloned from, with its commit; None where that is on this machine as well."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    url, commit = public(git("remote", "get-url", "origin")), git("rev-parse", "HEAD")
    return f"git+{url}@{commit}" if url and commit else None


def public(remote: str) -> str | None:
    """A remote's address as anybody fetches it, without names or passwords; None for one on this machine.

    >>> public("git@a.example:b/c.git"), public("https://me:secret@a.example/b/c"), public("/srv/c.git")
    ('https://a.example/b/c.git', 'https://a.example/b/c', None)
    """
    found = REMOTE.fullmatch(remote)
    return f"https://{found['host1'] or found['host2']}/{found['path']}" if found else None
