"""The CI job that gates a repository of yours, and what it installs: what this installation was made from."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from harness.common.errors import CHECKOUT, Refusal

PACKAGE = "bpe-harness"
REMOTE = re.compile(r"(?:(?:https|ssh|git)://(?:[^@/]*@)?(?P<host1>[^/]+)/|[^@/:]+@(?P<host2>[^/:]+):)(?P<path>.+)")
JOB = Path(__file__).with_name("workflow.yaml")


def workflow(targets: Sequence[str], requirement: str | None = None) -> str:
    """Return a GitHub Actions workflow that gates one trainer, which is written package.module:function.

    `requirement` is what pip installs; without it, what this installation was made from. Raises Refusal if other
    machines cannot reach that.
    """
    if len(targets) != 1 or ":" not in targets[0]:
        raise Refusal("--workflow is for one trainer of yours; pass package.module:function")
    return JOB.read_text().replace("TARGET", targets[0]).replace("REQUIREMENT", requirement or installed_from())


def installed_from(folder: Path = CHECKOUT) -> str:
    """The requirement that installs the same as here: a release, or a commit of a repository."""
    if (folder / ".git").exists():
        url, commit = public(git_output(folder, "remote", "get-url", "origin")), git_output(folder, "rev-parse", "HEAD")
    else:  # as pip describes it (PEP 610)
        origin = json.loads(metadata.distribution(PACKAGE).read_text("direct_url.json") or "null")
        if origin is None:
            return f"{PACKAGE}=={metadata.version(PACKAGE)}"
        url, commit = public(str(origin["url"])), str(origin.get("vcs_info", {}).get("commit_id", ""))
    if url and commit:
        return f"{PACKAGE} @ git+{url}@{commit}"
    raise Refusal(
        f"this {PACKAGE} was installed from a place that other machines cannot reach; pass what CI should install: "
        f"--workflow '{PACKAGE} @ git+https://HOST/OWNER/{PACKAGE}'"
    )


def git_output(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def public(remote: str) -> str | None:
    """A remote's public address, without user or password; None if it is on this machine.

    >>> public("git@a.example:b/c.git"), public("https://me:secret@a.example/b/c"), public("/srv/c.git")
    ('https://a.example/b/c.git', 'https://a.example/b/c', None)
    """
    match = REMOTE.fullmatch(remote)
    return f"https://{match['host1'] or match['host2']}/{match['path']}" if match else None
