"""Does a trainer or a word counter compute what is defined? Three ways to run one list of checks.

From Python, without pytest: `check_conformance(train)` raises at the first failure. In a test file:
`@parametrize_with_checks([train])` makes one test of every check. From a shell: `python -m
harness.conformance package.module:function`, which makes all checks in a child process
(proof/suite.py) and then judges fresh inputs here.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.common import registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import Refusal
from harness.common.printing import print_stderr
from harness.common.values import check_target, parse_value, unknown_text
from harness.proof.checks import (
    Check,
    CheckFailed,
    CheckResult,
    call_of,
    is_word_counter,
    outcome_of,
)
from harness.proof.counter_checks import counter_checks as counter_checks
from harness.proof.suite import Request, checks_for, child_of, print_report
from harness.proof.trainer_checks import trainer_checks as trainer_checks
from variants.contract import TieBreak

if TYPE_CHECKING:
    import pytest


def check_conformance(
    subject: Callable[..., Any], *, tie_breaks: Sequence[TieBreak] = tuple(TieBreak)
) -> list[CheckResult]:
    """Check a trainer or a word counter and return the outcomes. Raises CheckFailed at the first
    failure.

    A trainer with its own tie-break is compared with the definition under that one:
    `tie_breaks=[TieBreak.RAW_BYTES]`. functools.partial binds parameters.
    """
    return [_outcome(check, subject) for check in checks_for(subject, tie_breaks)]


def _outcome(check: Check, subject: Callable[..., Any]) -> CheckResult:
    """The outcome of a check; a failure is raised, with a test to paste."""
    __tracebackhide__ = True  # pytest shows the message, not this
    outcome = outcome_of(check, subject)
    if outcome.status == "failed":
        test = f"\n\nto keep it as a test:\n\n{outcome.test}" if outcome.test else ""
        raise CheckFailed(f"{check.name}: {outcome.message}{test}")
    return outcome


def parametrize_with_checks(
    subjects: Sequence[Callable[..., Any]], *, tie_breaks: Sequence[TieBreak] = tuple(TieBreak)
) -> pytest.MarkDecorator:
    """A pytest decorator that makes one test of every check of every trainer, or of every word
    counter.

    The test takes `trainer` (or `counter`) and `check`, and calls `check(trainer)`.
    """
    import pytest

    kinds = {is_word_counter(subject) for subject in subjects}
    if len(kinds) != 1:
        raise ValueError(
            "pass at least one subject, and give trainers and word counters a test function each"
        )
    cases = [
        pytest.param(
            subject,
            functools.partial(_check_in_pytest, check),
            id=f"{'/'.join([name, *bound])}-{check.name}",
        )
        for subject in subjects
        for _, name, bound in [call_of(subject)]
        for check in checks_for(subject, tie_breaks)
    ]
    return pytest.mark.parametrize(("counter" if True in kinds else "trainer", "check"), cases)


def _check_in_pytest(check: Check, subject: Callable[..., Any]) -> None:
    import pytest

    __tracebackhide__ = True
    outcome = _outcome(check, subject)
    if outcome.status == "skipped":
        pytest.skip(outcome.message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one target in its own process, and print a line for each group of checks. Returns the
    exit code.
    """
    tie_breaks = [tie_break.value for tie_break in TieBreak]
    parser = Parser(
        prog="python -m harness.conformance",
        description="Check that a trainer or a word counter computes what is defined.",
        epilog="Exit code 0: all passed; 21: a check failed; 22: the target cannot run here; 2: no such target.",
    )

    target = "package.module:function, importable from the current folder, or a name in conf/variant or conf/counting; "
    parser.add_argument("target", help=target + "a word counter's first parameter is called corpus")
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="parameters to call it with",
    )
    ties = f"{', '.join(tie_breaks)}, or all (default: all, the definition's first)"
    parser.add_argument(
        "--tie-break", default="all", choices=["all", *tie_breaks], metavar="NAME", help=ties
    )
    only = "run only checks that match this pattern (* is a wildcard)"
    parser.add_argument("--only", default="*", metavar="NAME", help=only)

    return exit_code_of(lambda: command(parser.parse_args(arguments)))


def command(options: argparse.Namespace) -> int:
    target, parameters = _target(options.target, parameters_from(options.set))
    tie_breaks = tuple(TieBreak) if options.tie_break == "all" else (TieBreak(options.tie_break),)
    with child_of(Request(target, parameters, tie_breaks, options.only)) as child:
        exit_code = print_report(child, options.target)
        if printed := child.process.tail().strip():
            print_stderr(f"it printed, at last: {printed}")
        return exit_code


def _target(target: str, parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The full name of the function, and the parameters to bind."""
    cards: dict[str, Any] = {**registry.counters(), **registry.variants()}
    if target in cards:
        return cards[target].target, {**cards[target].params, **parameters}
    if ":" in target:
        check_target(target)
        return target, parameters
    answer = unknown_text("target", target, cards)
    raise Refusal(f"{answer}; a function of your own is written package.module:function")


def parameters_from(assignments: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` as YAML does: numbers, booleans, null, strings.

    >>> parameters_from(["threads=2", "exact=false"])
    {'threads': 2, 'exact': False}
    """
    parameters = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise Refusal(f"{assignment!r} is not a parameter; write --set KEY=VALUE")
        parameters[key] = parse_value(value, f"--set {key}")
    return parameters


if __name__ == "__main__":
    sys.exit(main())
