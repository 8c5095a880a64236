"""What `python -m harness.conformance` prints: a failure and its test first, then counts for each group of checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.common import errors
from harness.common.console import tell
from harness.proof.checks import Outcome
from harness.proof.suite import Suite

FAILURES_NAMED = 3
LONGEST_LINE = 300
LINES_OF_A_FAILURE = 3
VERDICTS = {errors.MISMATCH: "does not conform", errors.OK: "conforms", errors.UNMEASURED: "cannot run here"}


def report(suite: Suite, name: str) -> int:
    """Print a failure with a test of it, the counts of each group of checks, and a verdict; returns the exit code."""
    outcomes = list(suite.outcomes())
    statuses = {outcome.status for outcome in outcomes}
    exit_code = errors.MISMATCH if "failed" in statuses else errors.OK if "passed" in statuses else errors.UNMEASURED
    failed = {outcome.check: outcome for outcome in outcomes if outcome.status == "failed"}
    if failed:
        check, test = suite.test_of(next(iter(failed.values())))
        lines = f"FAILED {check}: {failed[check].message}".splitlines()[:LINES_OF_A_FAILURE]
        tell("\n    ".join(line[:LONGEST_LINE] for line in lines))
        tell(f"\n{test.rstrip()}\n")
    for group, members in groupby(outcomes, key=lambda outcome: outcome.group):
        of_group = list(members)
        tell(f"{group:<16} {summary(of_group)}{named(of_group)}")
    for line in [] if failed else skips(outcomes):
        tell(line)
    tell(f"{name} {VERDICTS[exit_code]}: {summary(outcomes)}")
    return exit_code


def summary(outcomes: Sequence[Outcome]) -> str:
    """The number of outcomes with each status.

    >>> summary([Outcome("a", "g", "passed"), Outcome("b", "g", "skipped")])
    '1 passed, 1 skipped'
    """
    statuses = [outcome.status for outcome in outcomes]
    present = [status for status in ("passed", "failed", "skipped") if status in statuses]
    return ", ".join(f"{statuses.count(status)} {status}" for status in present)


def named(outcomes: Sequence[Outcome]) -> str:
    """The names of the first failures, for --only.

    >>> named([Outcome("check_a", "g", "failed"), Outcome("check_b", "g", "passed")])
    ': check_a'
    """
    names = [outcome.check for outcome in outcomes if outcome.status == "failed"]
    more = f" and {len(names) - FAILURES_NAMED} more" if len(names) > FAILURES_NAMED else ""
    return f": {', '.join(names[:FAILURES_NAMED])}{more}" if names else ""


def skips(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Each reason for skipping, with the first check that it holds for."""
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped"]
    for reason in dict.fromkeys(outcome.message for outcome in skipped):
        names = [outcome.check for outcome in skipped if outcome.message == reason]
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"  skipped {names[0]}{others}: {reason}"
