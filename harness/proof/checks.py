"""A check: one named thing that a trainer or a word counter must do, and the message of its
failure.

Most checks compare a call with the definition's (calls.py).
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.proof.calls import Call, CheckFailed, CheckSkipped, Subject, TrainerCall
from harness.worker.calling import parameters_of
from variants.contract import Meter, Unavailable

LONGEST_TEST = 20_000
CLOCK_ERROR = 1e-4  # seconds by which the clocks of a trainer and of a check may differ
WIDTHS = (1, 2, 3, 7, 16)
"""Numbers of threads that divide nothing evenly, and more of them than a tiny input has parts."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Check(NamedTuple):
    """One thing a trainer or a word counter must do. The body raises CheckFailed if it does not."""

    name: str
    group: str
    body: Callable[[Subject], None]


def family(
    name: str,
    group: str,
    body: Callable[[Any, Subject], None],
    members: Iterable[tuple[object, Any]],
) -> list[Check]:
    """A check for each member, named by its label; the body takes the member, then the function."""
    checks = []
    for label, member in members:
        checks.append(Check(f"{name}[{label}]", group, functools.partial(body, member)))
    return checks


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: `passed`, `failed` or `skipped`, and for the last two the reason; for
    a failure also the size of its input, and a whole test of it if that is short enough to paste.
    """

    check: str
    group: str
    status: str
    message: str = ""
    size: float = field(default=math.inf, compare=False)
    test: str = field(default="", compare=False)


def outcome_of(check: Check, subject: Subject) -> CheckResult:
    """Run one check. What cannot run here is skipped, never failed."""
    try:
        check.body(subject)
    except CheckFailed as failure:
        outcome = CheckResult(check.name, check.group, FAILED, str(failure))
        if (call := failure.counterexample) is None:
            return outcome
        return replace(outcome, size=call.size, test=whole_test(call, subject))
    except (CheckSkipped, Unavailable) as reason:
        return CheckResult(check.name, check.group, SKIPPED, str(reason))
    return CheckResult(check.name, check.group, PASSED)


def is_word_counter(subject: Subject) -> bool:
    """Whether a function's first parameter is called `corpus`; a trainer's is not."""
    return next(iter(parameters_of(subject) or ()), "") == "corpus"


def reported_phases(call: Call, subject: Subject, phases: Sequence[str]) -> Mapping[str, float]:
    """The seconds of the phases that a call reports. Raises CheckFailed for a phase that is none of
    these, or if they take longer than the call, and CheckSkipped without any.
    """
    meter = Meter()
    start = time.perf_counter()
    call.run(subject, meter)
    wall = time.perf_counter() - start

    if not meter.seconds:
        raise CheckSkipped("it reports no phases; all its time will show as other")
    for phase in meter.seconds:
        if phase not in phases:
            raise CheckFailed(f"reported the phase {phase!r}; phases are {', '.join(phases)}")
    reported = sum(meter.seconds.values())
    if reported > wall + CLOCK_ERROR:
        raise CheckFailed(f"reported phases of {reported} s in all, but the call took {wall} s")
    return meter.seconds


def whole_test(call: Call, subject: Subject) -> str:
    """A whole test of the input that a trainer failed; empty if none is short enough to paste."""
    if not isinstance(call, TrainerCall) or call.size > LONGEST_TEST:
        return ""
    test = call.as_test(*call_of(subject))
    return test if len(test) <= LONGEST_TEST else ""


def call_of(subject: Subject) -> tuple[list[str], str, list[str]]:
    """The line that imports a function, its name there, and the keywords bound to it."""
    keywords: dict[str, Any] = {}
    if isinstance(subject, functools.partial):
        keywords = subject.keywords
        subject = subject.func
    module = getattr(subject, "__module__", "")
    name = getattr(subject, "__qualname__", type(subject).__qualname__)
    if "<" in name:  # made by another function; the module may still have a name for it
        name = next(
            (key for key, value in vars(sys.modules[module]).items() if value is subject), name
        )
    bound = [f"{key}={value!r}" for key, value in keywords.items()]
    return [f"from {module} import {name.partition('.')[0]}"], name, bound
