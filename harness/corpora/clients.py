"""Packages, downloaded by the client that belongs to each index: pip, APT, npm. Nothing is installed, built or run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import one_line

Source = Mapping[str, Any]


def from_package_index(source: Source, folder: Path) -> None:
    """A wheel or a source distribution of the Python index, by pip; `form` says which."""
    wanted = f"{source['package']}=={source['version']}"
    options = ["--no-deps", "--ignore-requires-python", "--disable-pip-version-check", "--dest", str(folder)]
    if source.get("form", "wheel") == "wheel":
        command = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", *options, wanted]
    else:  # pip by itself would run the package's own build for metadata that nobody needs here
        module = "harness.corpora.pip_without_building"
        command = [sys.executable, "-m", module, str(folder), "download", "--no-binary=:all:", *options, wanted]
    run(command, wanted, "look whether that version is still there (python -m pip index versions NAME)", folder)


def from_debian(source: Source, folder: Path) -> None:
    """Debian packages, by apt-get; the card's `needs` says what its package sources must offer."""
    version = source["version"]
    wanted = [f"{package}={version}" for package in source["packages"]]
    advice = f"a point release replaces versions (apt-cache policy {source['packages'][0]} shows yours)"
    if "needs" in source:
        advice = f"it needs {source['needs']}, and {advice}"
    require("apt-get", "dpkg-deb", where="Debian or Ubuntu")
    run(["apt-get", "-q", "download", *wanted], " ".join(wanted), advice, folder)


def from_npm(source: Source, folder: Path) -> None:
    """A package of the npm registry, by npm."""
    wanted = f"{source['package']}@{source['version']}"
    require("npm", where="a machine with Node.js")
    command = ["npm", "pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder), wanted]
    run(command, wanted, f"look whether that version is still there (npm view {source['package']} versions)", folder)


CLIENTS: dict[str, Callable[[Source, Path], None]] = {
    "package_index": from_package_index,
    "debian": from_debian,
    "npm": from_npm,
}


def require(*programs: str, where: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Refusal(f"{program} is not here; fetch this on {where}, or set data.path=FILE", UNMEASURED)


def run(command: Sequence[str], wanted: str, advice: str, folder: Path) -> None:
    """Run a client in `folder`. Raises Refusal with what it complained of."""
    # A client shows its own progress where there is a terminal.
    shown = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    if done.returncode:
        raise Refusal(f"{wanted} cannot be had ({complaint(done.stderr)}); {advice}", UNMEASURED)


def complaint(stderr: str) -> str:
    """The last error that a client named, without what it calls an error.

    >>> complaint("W: old lists\\nE: Unable to locate package doc-rfc\\n")
    'Unable to locate package doc-rfc'
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "E:", "npm error", "npm ERR!"))]
    last = (errors or lines or ["it does not say why"])[-1]
    for prefix in ("ERROR:", "E:", "npm error", "npm ERR!"):
        last = last.removeprefix(prefix)
    return one_line(last).rstrip(".")
