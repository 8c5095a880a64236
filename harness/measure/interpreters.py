"""The interpreters that run trainers: what a record calls them, and why one cannot be used."""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 9)
"""The oldest Python that the worker and the Python stages run under."""

SECONDS_TO_ANSWER = 60

ASK = (
    "import platform, sys; "
    "print('%s %s %d %d' % ((platform.python_implementation(), platform.python_version()) + sys.version_info[:2]))"
)


@dataclass(frozen=True)
class Interpreter:
    """An interpreter by its label in records; `status` and `reason` say why it runs nothing, empty if it does."""

    label: str
    status: str = ""
    reason: str = ""


THIS = Interpreter(f"{platform.python_implementation()} {platform.python_version()}")


@functools.cache
def interpreter(path: str | None) -> Interpreter:
    """Return the interpreter of a name or path, which is run once; None means this one."""
    if path is None:
        return THIS
    label = "/".join(Path(path).parts[-3:]).lstrip("/")
    if shutil.which(path) is None:
        how = "give another path" if "/" in path else f"apt-get install {path}, or set interpreter=PATH"
        return Interpreter(label, "skipped", f"interpreter {label!r} not found; {how}")
    try:
        ended = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
        name, version, *numbers = ended.stdout.split()
        age = tuple(map(int, numbers))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Interpreter(label, "error", f"{label!r} is not a Python; set interpreter=NAME, such as pypy3")
    if age < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return Interpreter(label, "error", f"{label!r} is {name} {version}; trainers run under {oldest} or later")
    # Builds of one version are distinguished by where they are.
    return Interpreter(f"{name} {version} ({label})" if "/" in path else f"{name} {version}")
