"""A check: one named thing that a trainer or a word counter must do, and the message of its
failure.

Most checks compare a call with the definition's (calls.py).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.proof.calls import Call, CheckFailed, CheckSkipped, Subject, TrainerCall
from harness.worker.calling import parameters_of
from variants.contract import Meter, Unavailable

LONGEST_TEST = 20_000
CLOCK_ERROR = 1e-4  # seconds by which the clocks of a trainer and of a check may differ
WIDTHS = (1, 2, 3, 7, 16)
"""Numbers of threads that divide nothing evenly, and more of them than a tiny input has parts."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Check:
    """One thing a trainer or a word counter must do. Calling it with one raises CheckFailed if it
    does not.

    The body takes the `arguments`, then the function.
    """

    name: str
    group: str
    body: Callable[..., None]
    arguments: tuple[Any, ...] = field(default=(), compare=False)

    def __call__(self, subject: Subject) -> None:
        self.body(*self.arguments, subject)


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: `passed`, `failed` or `skipped`, and for the last two the reason."""

    check: str
    group: str
    status: str
    message: str = ""
    counterexample: Call | None = field(default=None, compare=False)


def outcome_of(check: Check, subject: Subject) -> CheckResult:
    """Run one check. What cannot run here is skipped, never failed."""
    try:
        check(subject)
    except CheckFailed as failure:
        return CheckResult(check.name, check.group, FAILED, str(failure), failure.counterexample)
    except (CheckSkipped, Unavailable) as reason:
        return CheckResult(check.name, check.group, SKIPPED, str(reason))
    return CheckResult(check.name, check.group, PASSED)


def is_word_counter(subject: Subject) -> bool:
    """Whether a function's first parameter is called `corpus`; a trainer's is not."""
    return next(iter(parameters_of(subject) or ()), "") == "corpus"


def expect_phases(meter: Meter, phases: Sequence[str], wall: float, who: str) -> None:
    """Raise CheckFailed if `meter` was given other phases, or more than the `wall` time there was.

    Raises CheckSkipped without any phases.
    """
    if not meter.seconds:
        raise CheckSkipped(f"{who} reports no phases; all its time will show as other")
    for phase in meter.seconds:
        if phase not in phases:
            raise CheckFailed(f"reported the phase {phase!r}; phases are {', '.join(phases)}")
    reported = sum(meter.seconds.values())
    if reported > wall + CLOCK_ERROR:
        raise CheckFailed(f"reported phases of {reported} s in all, but the call took {wall} s")


def fault_and_test(outcome: CheckResult, subject: Subject) -> tuple[str, str]:
    """What is wrong on the input that failed, and for a trainer a whole test of that input.

    The test is empty if none is short enough to paste; both are if there is no input.
    """
    if outcome.counterexample is None:
        return "", ""
    call, got = outcome.counterexample, None
    try:
        got = call.run(subject)
        fault = call.fault(got)
    except (CheckFailed, Unavailable) as failure:
        fault = str(failure).partition("\n")[0]

    test = call.as_test(*call_of(subject), got) if isinstance(call, TrainerCall) else ""
    return fault, test if len(test) <= LONGEST_TEST else ""


def call_of(subject: Subject) -> tuple[list[str], str, list[str]]:
    """The line that imports a function, its name there, and the keywords bound to it."""
    keywords: dict[str, Any] = {}
    while isinstance(subject, functools.partial):
        keywords = {**subject.keywords, **keywords}
        subject = subject.func
    module, name = (
        getattr(subject, "__module__", ""),
        getattr(subject, "__qualname__", type(subject).__qualname__),
    )
    if "<" in name:  # made by another function; the module may still have a name for it
        name = next(
            (key for key, value in vars(sys.modules[module]).items() if value is subject), name
        )
    bound = [f"{key}={value!r}" for key, value in keywords.items()]
    return [f"from {module} import {name.partition('.')[0]}"], name, bound
