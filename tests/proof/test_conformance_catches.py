"""The suite itself under test: every mistake that we know of is made here, and the check meant for
it sees it.

The wrong trainers and word counters are in sabotaged.py, ill_mannered.py and sabotaged_counters.py;
caught.toml lists the checks that must fail each.
"""

import math
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sabotaged
import tomllib
from checked import together

from harness.conformance import counter_checks, trainer_checks
from harness.proof import trainer_checks as checks_of_trainers
from harness.proof.checks import Check, CheckFailed, outcome_of
from harness.proof.trainer_checks import extension_checks
from variants.contract import TieBreak

CAUGHT = tomllib.loads(Path(__file__).with_name("caught.toml").read_text())
CHECKS = {
    "trainers": trainer_checks(),
    "counters": counter_checks(),
    "extenders": extension_checks(list(TieBreak)),
}


def cases() -> list[Any]:
    found = []
    for kind, checks in CHECKS.items():
        named = {check.name: check for check in checks}
        for target, names in CAUGHT[kind].items():
            for name in names:
                subject = pkgutil.resolve_name(target)
                marks = together(named[name])
                title = f"{target}-{name}"
                found.append(pytest.param(subject, named[name], id=title, marks=marks))
    return found


@pytest.mark.parametrize(("subject", "check"), cases())
def test_sabotage_is_caught_by_the_check_meant_for_it(
    monkeypatch: pytest.MonkeyPatch, subject: Callable[..., Any], check: Check
) -> None:
    monkeypatch.setattr(checks_of_trainers, "SECONDS_FOR_CALLS", math.inf)
    with pytest.raises(CheckFailed):
        check.body(subject)


def test_calls_that_are_cut_short_are_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = (each for each in CHECKS["trainers"] if each.name == "check_a_thousand_calls")
    monkeypatch.setattr(checks_of_trainers, "SECONDS_FOR_CALLS", -1)
    outcome = outcome_of(check, sabotaged.honest)
    assert (outcome.status, outcome.message[:24]) == ("skipped", "called 1 of 1,200 times ")


def test_every_kind_of_check_has_caught_something() -> None:
    """A check that nothing ever failed may be one that nothing can fail."""
    kinds = {check.name.partition("[")[0] for checks in CHECKS.values() for check in checks}
    assert kinds == {case.values[1].name.partition("[")[0] for case in cases()}


def test_failure_shows_the_first_difference_the_reason_and_the_words() -> None:
    """The words of an example are checked under the other tie-breaks too."""
    checks = {check.name: check for check in trainer_checks([TieBreak.RAW_BYTES])}
    outcome = outcome_of(checks["check_worked_example[C03]"], sabotaged.right_to_left)
    assert outcome.message.splitlines() == [
        "merge 2: b'a' + b'aa', 0 times; 2 pairs occur once; raw_bytes takes b'aa' + b'a'",
        "the definition gives these",
        "a run is replaced from the left",
        "word counts: {b'aaaaa': 1}",
        "called for 10 merges, tie_break=raw_bytes",
    ]
