"""The interpreters that run trainers: which one a name stands for, and why one cannot be used."""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 9)
"""What the worker and the Python stages are written for."""

SECONDS_TO_ANSWER = 60

ASK = (
    "import platform, sys; "
    "print('%s %s %d %d' % ((platform.python_implementation(), platform.python_version()) + sys.version_info[:2]))"
)


@dataclass(frozen=True)
class Interpreter:
    """What a record calls an interpreter, and why it runs nothing: `status` and `reason`, empty where it does."""

    label: str
    status: str = ""
    reason: str = ""


THIS = Interpreter(f"{platform.python_implementation()} {platform.python_version()}")


@functools.cache
def interpreter(asked: str | None) -> Interpreter:
    """The interpreter of a name or path, asked once who it is; None stands for this one."""
    if asked is None:
        return THIS
    label = "/".join(Path(asked).parts[-3:]).lstrip("/")
    if shutil.which(asked) is None:
        how = "give another path" if "/" in asked else f"apt-get install {asked}, or set interpreter=PATH"
        return Interpreter(label, "skipped", f"there is no interpreter {label!r} here; {how}")
    try:
        told = subprocess.run([asked, "-c", ASK], capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
        name, version, *numbers = told.stdout.split()
        age = tuple(map(int, numbers))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Interpreter(label, "error", f"{label!r} is no Python; interpreter= names one, such as pypy3")
    if age < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return Interpreter(label, "error", f"{label!r} is {name} {version}; trainers run under {oldest} or later")
    # Builds of one version are told apart by where they lie.
    return Interpreter(f"{name} {version} ({label})" if "/" in asked else f"{name} {version}")
