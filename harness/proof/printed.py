"""What `python -m harness.conformance` prints: a line for each group of checks, the failures in full, one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.common import errors
from harness.common.console import tell
from harness.proof.checks import Outcome
from harness.proof.suite import Suite

FAILURES_IN_FULL = 3
FAILURES_NAMED = 20


def report(suite: Suite, name: str) -> int:
    """Print each group of checks when it is done, a test of one that failed, and a verdict; returns the exit code."""
    outcomes: list[Outcome] = []
    for group, made in groupby(suite.outcomes(), key=lambda each: each.group):
        reasons = {outcome.message for outcome in outcomes}
        of_group = list(made)
        _say(f"{group:<16} {summary(of_group)}")
        for line in [*_failures(of_group), *_skips(of_group, reasons)]:
            _say(line)
        outcomes += of_group
    statuses = {outcome.status for outcome in outcomes}
    exit_code = errors.MISMATCH if "failed" in statuses else errors.OK if "passed" in statuses else errors.UNMEASURED
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        check, test = suite.test_of(failed[0])
        _say(f"\nto keep {check} as a test, as small as it was found to be:\n")
        _say(test)
    verdicts = {errors.MISMATCH: "does not conform", errors.OK: "conforms", errors.UNMEASURED: "cannot run here"}
    _say(f"{name} {verdicts[exit_code]}: {summary(outcomes)}")
    return exit_code


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many came to what.

    >>> summary([Outcome("a", "g", "passed"), Outcome("b", "g", "skipped")])
    '1 passed, 1 skipped'
    """
    statuses = [outcome.status for outcome in outcomes]
    present = [status for status in ("passed", "failed", "skipped") if status in statuses]
    return ", ".join(f"{statuses.count(status)} {status}" for status in present)


def _failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed[:FAILURES_IN_FULL]:
        yield f"  FAILED {outcome.check}: " + outcome.message.replace("\n", "\n    ")
    named = [outcome.check for outcome in failed[FAILURES_IN_FULL:FAILURES_NAMED]]
    if named:
        others = f" and {len(failed) - FAILURES_NAMED} more" if len(failed) > FAILURES_NAMED else ""
        yield f"  FAILED too: {', '.join(named)}{others}"


def _skips(outcomes: Sequence[Outcome], told: set[str]) -> Iterator[str]:
    """Each reason for skipping that has not been told yet, with the first check it holds for."""
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped"]
    for reason in dict.fromkeys(outcome.message for outcome in skipped):
        if reason not in told:
            names = [outcome.check for outcome in skipped if outcome.message == reason]
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"  skipped {names[0]}{others}: {reason}"


def _say(line: str) -> None:
    tell(line)
