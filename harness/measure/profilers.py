"""The profilers that a trainer can run under, and whether they are installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import one_of

ANNOTATE = "callgrind_annotate"
NONE, CPROFILE, PY_SPY, CALLGRIND = "none", "cprofile", "py-spy", "callgrind"


def check_profiler(name: str) -> None:
    """Raise Refusal for an unknown profiler, or one whose program is not installed."""
    one_of("profile", name, (NONE, CPROFILE, PY_SPY, CALLGRIND))
    if name == PY_SPY and program(PY_SPY) is None:
        advice = "install it with: python -m pip install py-spy"
        raise Refusal(f"profile=py-spy needs py-spy; {advice}", UNMEASURED)
    if name == CALLGRIND and program(ANNOTATE) is None:
        advice = "install it with: apt-get install valgrind"
        raise Refusal(f"profile=callgrind needs valgrind; {advice}", UNMEASURED)


def program(name: str) -> str | None:
    """Return the path of a program beside this Python or on the path; None if it is not there."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name)
