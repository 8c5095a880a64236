"""Does a trainer or a word counter compute what is defined? Three ways to run one list of checks.

From Python, without pytest: `check_trainer(train)` raises at the first failure, or with `on_fail="collect"` returns all
outcomes; `check_word_counter(count)` likewise. In a test file: `@parametrize_with_checks([train])` makes one test of
every check. From a shell: `python -m harness.conformance package.module:function`, which makes all checks in a child
process (proof/suite.py) and then judges fresh inputs here.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import errors, registry
from harness.common.console import Parser, say
from harness.common.errors import Refusal
from harness.proof.checks import FAILED, SKIPPED, WIDTHS, Check, CheckFailed, Outcome, is_word_counter, outcome_of
from harness.proof.counter_checks import counter_checks as counter_checks
from harness.proof.counterexamples import pasted
from harness.proof.suite import CheckList, Request, checks_for, child_of, report
from harness.proof.suite import trainer_checks as trainer_checks
from harness.proof.true_counts import ALL_TIE_BREAKS
from variants.contract import TieBreak

if TYPE_CHECKING:
    import pytest


def check_trainer(
    train: Callable[..., Any],
    on_fail: str = "raise",
    *,
    parameters: Mapping[str, Any] | None = None,
    tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS,
) -> list[Outcome]:
    """Check a trainer; `parameters` are keywords to call it with.

    A trainer with its own tie-break is compared with the definition under that one: `tie_breaks=[TieBreak.RAW_BYTES]`.
    Raises CheckFailed at the first failure; with on_fail="collect" it returns every outcome instead.
    """
    subject = functools.partial(train, **(parameters or {}))
    return _outcomes(checks_for(subject, tie_breaks, counter=False), subject, on_fail)


def check_word_counter(
    count: Callable[..., Any],
    on_fail: str = "raise",
    *,
    parameters: Mapping[str, Any] | None = None,
    widths: Sequence[int] = WIDTHS,
) -> list[Outcome]:
    """Check a word counter, as check_trainer does; one that takes `threads` is called with each of `widths`."""
    subject = functools.partial(count, **(parameters or {}))
    return _outcomes(checks_for(subject, widths=widths, counter=True), subject, on_fail)


def _outcomes(listed: CheckList, subject: Callable[..., Any], on_fail: str) -> list[Outcome]:
    if on_fail not in ("raise", "collect"):
        raise ValueError(f"on_fail must be 'raise' or 'collect', got {on_fail!r}")
    outcomes = []
    for check in listed.checks:
        outcome = outcome_of(check, subject)
        if outcome.status == FAILED and on_fail == "raise":
            raise CheckFailed(f"{outcome.check}: {_with_test(outcome, subject, listed.expression)}")
        outcomes.append(outcome)
    return outcomes


def parametrize_with_checks(
    subjects: Sequence[Callable[..., Any]],
    *,
    expected_failures: Mapping[str, str] | None = None,
    tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS,
    widths: Sequence[int] = WIDTHS,
) -> pytest.MarkDecorator:
    """A pytest decorator that makes one test of every check of every trainer, or of every word counter.

    The test takes `trainer` (or `counter`) and `check`, and calls `check(trainer)`. Parameters are bound by
    functools.partial. `expected_failures` maps names of checks to the reason why they fail; one that passes
    nevertheless fails the test.
    """
    import pytest

    kinds = {is_word_counter(subject) for subject in subjects}
    if len(kinds) != 1:
        raise ValueError("pass at least one subject, and give trainers and word counters a test function each")
    lists = [checks_for(subject, tie_breaks, widths) for subject in subjects]
    expected = dict(expected_failures or {})
    names = list(dict.fromkeys(check.name for listed in lists for check in listed.checks))
    if unknown := expected.keys() - set(names):
        raise ValueError(registry.unknown("check", min(unknown), names))
    cases = [
        pytest.param(
            subject,
            functools.partial(_check_in_pytest, check, listed.expression),
            id=f"{name_of(subject)}-{check.name}",
            marks=[pytest.mark.xfail(strict=True, reason=expected[check.name])] if check.name in expected else [],
        )
        for subject, listed in zip(subjects, lists, strict=True)
        for check in listed.checks
    ]
    return pytest.mark.parametrize(("counter" if True in kinds else "trainer", "check"), cases)


def _check_in_pytest(check: Check, expression: str, subject: Callable[..., Any]) -> None:
    import pytest

    outcome = outcome_of(check, subject)
    if outcome.status == SKIPPED:
        pytest.skip(outcome.message)
    if outcome.status == FAILED:
        pytest.fail(_with_test(outcome, subject, expression), pytrace=False)


def _with_test(outcome: Outcome, subject: Callable[..., Any], expression: str) -> str:
    """What is wrong, and below it a test to paste."""
    return f"{outcome.message}\n\nto keep it as a test:\n\n{pasted(outcome, subject, expression)}"


def name_of(subject: Callable[..., Any]) -> str:
    """A function's module and name, then the values of the parameters bound to it.

    >>> name_of(functools.partial(name_of, subject="c"))
    'harness.conformance:name_of/c'
    """
    values: list[str] = []
    while isinstance(subject, functools.partial):
        values = [str(value) for value in subject.keywords.values()] + values
        subject = subject.func
    name = f"{getattr(subject, '__module__', '?')}:{getattr(subject, '__qualname__', type(subject).__name__)}"
    return "/".join([name, *values])


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one target in its own process, and print a line for each group of checks. Returns the exit code."""
    return errors.guarded(lambda: _command(_parser().parse_args(arguments)), errors.UNCHANGED)


def _command(options: argparse.Namespace) -> int:
    target, parameters = _target(options.target, parameters_of(options.set), options.counter)
    tie_breaks = ALL_TIE_BREAKS if options.tie_break == "all" else (TieBreak(options.tie_break),)
    request = Request(target, parameters, options.counter, tie_breaks, options.only)
    with child_of(request) as child:
        exit_code = report(child, options.target)
        if printed := child.process.tail().strip():
            say(f"it printed, at last: {printed}")
        return exit_code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.conformance",
        description="Check that a trainer or a word counter computes what is defined.",
        epilog="Exit code 0: all passed; 21: a check failed; 22: the target cannot run here; 2: no such target.",
    )
    tie_breaks = [tie_break.value for tie_break in TieBreak]
    add = parser.add_argument
    add(
        "target",
        help="package.module:function, importable from the current folder, or a name in conf/variant or conf/counting",
    )
    add("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="parameters to call it with")
    add("--counter", action="store_true", help="it is a word counter (by default, if its first parameter is corpus)")
    add(
        "--tie-break",
        default="all",
        choices=["all", *tie_breaks],
        metavar="NAME",
        help=f"{', '.join(tie_breaks)}, or all (default: all, the definition's first)",
    )
    add("--only", default="*", metavar="NAME", help="make only the checks of this name, with * for any letters")
    return parser


def _target(target: str, parameters: Mapping[str, Any], counter: bool) -> tuple[str, Mapping[str, Any]]:
    """The full name of the function, and the parameters to bind."""
    variants, counters = registry.variants(), registry.counters()
    cards: dict[str, Any] = {**variants, **counters} if counter else {**counters, **variants}
    if ":" not in target and target not in cards:
        answer = registry.unknown("target", target, cards)
        example = f", such as {target}:train" if "." in target else ""
        raise Refusal(f"{answer}; a function of your own is written package.module:function{example}")
    if target not in cards:
        return target, parameters
    return cards[target].target, {**cards[target].params, **parameters}


def parameters_of(assignments: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` as YAML does: numbers, booleans, null, strings.

    >>> parameters_of(["threads=2", "exact=false"])
    {'threads': 2, 'exact': False}
    """
    for assignment in assignments:
        if "=" not in assignment:
            raise Refusal(f"{assignment!r} is not a parameter; write --set KEY=VALUE")
    try:
        return {str(key): value for key, value in OmegaConf.from_dotlist(list(assignments)).items()}
    except OmegaConfBaseException as error:
        raise Refusal(f"cannot read --set {' '.join(assignments)}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
