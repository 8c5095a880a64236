"""The CI job that gates a repository of yours, and what it installs: what this installation was made from."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.common.errors import Refusal

PACKAGE = "bpe-harness"
REMOTE = re.compile(r"(?:(?:https|ssh|git)://(?:[^@/]*@)?(?P<host1>[^/]+)/|[^@/:]+@(?P<host2>[^/:]+):)(?P<path>.+)")
JOB = Path(__file__).with_name("workflow.yaml")


def workflow(target: str, requirement: str | None = None) -> str:
    """Return a GitHub Actions workflow that gates `target`, a trainer as package.module:function.

    `requirement` is what pip installs; without it, what this installation was made from. Raises Refusal if other
    machines cannot reach that.
    """
    return JOB.read_text().replace("TARGET", target).replace("REQUIREMENT", requirement or installed_from())


def installed_from() -> str:
    """The requirement that installs the same as here: a release, or a commit of a repository."""
    # A checkout has metadata of its own, left by a build, beside those of what pip installed.
    origins = [each.read_text("direct_url.json") for each in metadata.distributions(name=PACKAGE)]
    origin = next((json.loads(text) for text in origins if text), None)
    folder = Path(__file__).resolve().parents[2]
    if origin is None and (folder / ".git").exists():
        origin = {"url": folder.as_uri()}
    return requirement_of(origin, metadata.version(PACKAGE))


def requirement_of(origin: dict[str, Any] | None, version: str) -> str:
    """The requirement for an installation that pip describes (PEP 610); None came from an index.

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
        f"this {PACKAGE} was installed from {url}, which other machines cannot reach; pass what CI should install: "
        f"--workflow '{PACKAGE} @ git+https://HOST/OWNER/{PACKAGE}'"
    )


def _checkout_of(folder: str) -> str | None:
    """The repository that a folder was cloned from, with its commit; None if it is on this machine too."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    url, commit = public(git("remote", "get-url", "origin")), git("rev-parse", "HEAD")
    return f"git+{url}@{commit}" if url and commit else None


def public(remote: str) -> str | None:
    """A remote's public address, without user or password; None if it is on this machine.

    >>> public("git@a.example:b/c.git"), public("https://me:secret@a.example/b/c"), public("/srv/c.git")
    ('https://a.example/b/c.git', 'https://a.example/b/c', None)
    """
    found = REMOTE.fullmatch(remote)
    return f"https://{found['host1'] or found['host2']}/{found['path']}" if found else None
