"""What `python -m harness.conformance` prints: a line for each group of checks, the failures in full, one verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from harness.common import errors
from harness.common.streams import tell
from harness.proof.checks import Check, Outcome, outcome_of
from harness.proof.counterexamples import pasted

FAILURES_IN_FULL = 3
FAILURES_NAMED = 20


def report(
    checks: Sequence[Check], subject: Callable[..., Any], name: str, checks_from: str = "trainer_checks()"
) -> int:
    """Make the checks, print each group when it is done, and return the exit code.

    Below all failures stands a test to be pasted, of the first that has an input to be shown by; `checks_from` is how a
    test gets at the checks.
    """
    outcomes: list[Outcome] = []
    reasons: set[str] = set()
    for group, made in groupby(_made(checks, subject), key=lambda outcome: outcome.group):
        of_group = list(made)
        _say(f"{group:<16} {summary(of_group)}")
        for line in [*_failures(of_group), *_skips(of_group, reasons)]:
            _say(line)
        outcomes += of_group
        reasons.update(outcome.message for outcome in of_group)
    statuses = {outcome.status for outcome in outcomes}
    exit_code = errors.MISMATCH if "failed" in statuses else errors.OK if "passed" in statuses else errors.UNMEASURED
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if outcomes and outcomes[-1].broke_down:
        _say(f"{len(checks) - len(outcomes)} checks more were not made: no process of it was left to be checked")
    if failed:
        most_telling = next((outcome for outcome in failed if outcome.shown_by is not None), failed[0])
        _say(f"\nto keep {most_telling.check} as a test, as small as it was found to be:\n")
        _say(pasted(most_telling, subject, checks_from))
    verdicts = {errors.MISMATCH: "does not conform", errors.OK: "conforms", errors.UNMEASURED: "cannot run here"}
    _say(f"{name} {verdicts[exit_code]}: {summary(outcomes)}")
    return exit_code


def _made(checks: Sequence[Check], subject: Callable[..., Any]) -> Iterator[Outcome]:
    """The outcomes one by one; on a terminal a line says meanwhile which check is being made."""
    watched = sys.stderr.isatty()
    for done, check in enumerate(checks):
        if watched:
            sys.stderr.write(f"\r\033[K{done} of {len(checks)}: {check.name}")
            sys.stderr.flush()
        outcome = outcome_of(check, subject)
        if watched:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        yield outcome
        if outcome.broke_down:
            return


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
