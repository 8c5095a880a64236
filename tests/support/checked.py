"""Some of the checks of the conformance suite, for tests that need not all of them, and running
them.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from harness.proof.checks import Check, outcome_of

TAKING_SECONDS = ("large inputs", "large files")
"""The groups of checks that a slow trainer or counter spends seconds on."""
ONE_IN = 10
"""Of so many seeds of random words one is among the quick checks."""


def together(check: Check) -> list[pytest.MarkDecorator]:
    """The mark of a test that makes this check: the merges of large inputs are computed in one
    process of pytest.
    """
    return [pytest.mark.xdist_group(check.group)] if check.group == "large inputs" else []


def quick_ones(checks: list[Check], quick: bool = True) -> list[Check]:
    """Those that take a moment, of random words a sample; or the others."""
    return [check for check in checks if is_quick(check) == quick]


def is_quick(check: Check) -> bool:
    seed = re.search(r"(\d+)\]$", check.name) if check.group == "random words" else None
    return check.group not in TAKING_SECONDS and (seed is None or int(seed[1]) % ONE_IN == 0)


def passing(checks: list[Check], subject: Callable[..., Any]) -> list[str]:
    """Make every check, and fail with those that fail; returns the names of those that were
    skipped.
    """
    outcomes = [outcome_of(check, subject) for check in checks]
    assert not [outcome for outcome in outcomes if outcome.status == "failed"]
    return [outcome.check for outcome in outcomes if outcome.status == "skipped"]


def error_of(test: str, *arguments: Any) -> type[BaseException] | None:
    """What a pasted test raises; None if it passes."""
    module: dict[str, Any] = {}
    exec(test, module)
    (function,) = [value for name, value in module.items() if name.startswith("test_")]
    try:
        function(*arguments)
    except Exception as error:
        return type(error)
    return None
