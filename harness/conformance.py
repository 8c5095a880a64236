"""Does a trainer or a word counter compute what is defined? Three doors to one list of checks, for ours and anyone's.

From Python, without pytest: `check_trainer(train)` raises at the first failure, or with `on_fail="collect"` returns all
outcomes; `check_word_counter(count)` likewise. In a test file: `@parametrize_with_checks([train])` makes one test of
every check. From a shell: `python -m harness.conformance package.module:function`, which makes all checks in a child
process (proof/suite.py) and at last judges fresh inputs here.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import errors, registry
from harness.common.console import Parser, say
from harness.common.errors import Refusal
from harness.proof.checks import WIDTHS, Check, CheckFailed, Outcome, outcome_of
from harness.proof.counter import counter_checks
from harness.proof.counterexamples import pasted
from harness.proof.extension import extends
from harness.proof.printed import report
from harness.proof.suite import (
    Request,
    Suite,
    counter_checks_of,
    is_word_counter,
    trainer_checks_of,
)
from harness.proof.suite import trainer_checks as trainer_checks
from harness.proof.true_counts import ALL_TIE_BREAKS
from variants.contract import TieBreak

if TYPE_CHECKING:
    import pytest

HYPOTHESIS_FOLDER = "HYPOTHESIS_STORAGE_DIRECTORY"


def check_trainer(
    train: Callable[..., Any],
    on_fail: str = "raise",
    *,
    parameters: Mapping[str, Any] | None = None,
    tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS,
) -> list[Outcome]:
    """Check a trainer; `parameters` are keywords it is to be called with.

    A trainer with a tie-break of its own is held to the definition under that one: `tie_breaks=[TieBreak.RAW_BYTES]`.
    Raises CheckFailed at the first failure; with on_fail="collect" it returns every outcome instead.
    """
    subject = functools.partial(train, **(parameters or {}))
    extending = extends(subject)
    checks = trainer_checks(tie_breaks, extending=extending)
    return _outcomes(checks, subject, on_fail, trainer_checks_of(tie_breaks, extending=extending))


def check_word_counter(
    count: Callable[..., Any],
    on_fail: str = "raise",
    *,
    parameters: Mapping[str, Any] | None = None,
    widths: Sequence[int] = WIDTHS,
) -> list[Outcome]:
    """Check a word counter as check_trainer does a trainer; one that takes `threads` is asked at each of `widths`."""
    subject = functools.partial(count, **(parameters or {}))
    return _outcomes(counter_checks(widths), subject, on_fail, counter_checks_of(widths))


def _outcomes(checks: Sequence[Check], subject: Callable[..., Any], on_fail: str, checks_from: str) -> list[Outcome]:
    if on_fail not in ("raise", "collect"):
        raise ValueError(f"on_fail is {on_fail!r}; it is 'raise' or 'collect'")
    outcomes = []
    for check in checks:
        outcome = outcome_of(check, subject)
        if outcome.status == "failed" and on_fail == "raise":
            raise CheckFailed(f"{outcome.check}: {_with_test(outcome, subject, checks_from)}")
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
    functools.partial. `expected_failures` maps names of checks to the reason why they are known to fail; one that
    passes all the same fails the test.
    """
    import pytest

    kinds = {is_word_counter(subject) for subject in subjects}
    if len(kinds) != 1:
        raise ValueError("name at least one subject, and give trainers and word counters a test function each")
    counters = kinds == {True}
    checks = [
        counter_checks(widths) if counters else trainer_checks(tie_breaks, extending=extends(subject))
        for subject in subjects
    ]
    expected = dict(expected_failures or {})
    names = list(dict.fromkeys(check.name for of_subject in checks for check in of_subject))
    if absent := expected.keys() - set(names):
        raise ValueError(registry.unknown("check", min(absent), names))
    cases = [
        pytest.param(
            subject,
            functools.partial(
                _check_in_pytest,
                check,
                counter_checks_of(widths) if counters else trainer_checks_of(tie_breaks, extending=extends(subject)),
            ),
            id=f"{name_of(subject)}-{check.name}",
            marks=[pytest.mark.xfail(strict=True, reason=expected[check.name])] if check.name in expected else [],
        )
        for subject, of_subject in zip(subjects, checks, strict=True)
        for check in of_subject
    ]
    return pytest.mark.parametrize(("counter" if counters else "trainer", "check"), cases)


def _check_in_pytest(check: Check, checks_from: str, subject: Callable[..., Any]) -> None:
    import pytest

    outcome = outcome_of(check, subject)
    if outcome.status == "skipped":
        pytest.skip(outcome.message)
    if outcome.status == "failed":
        pytest.fail(_with_test(outcome, subject, checks_from), pytrace=False)


def _with_test(outcome: Outcome, subject: Callable[..., Any], checks_from: str) -> str:
    """What is wrong, and below it a test to be pasted."""
    return f"{outcome.message}\n\nto keep it as a test:\n\n{pasted(outcome, subject, checks_from)}"


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
    """Check one target, in a process of its own, and print a line for each group of checks. Returns the exit code."""
    return errors.guarded(lambda: _command(_parser().parse_args(arguments)), errors.UNCHANGED)


def _command(asked: argparse.Namespace) -> int:
    target, parameters = _target(asked.target, parameters_of(asked.set), asked.counter)
    tie_breaks = ALL_TIE_BREAKS if asked.tie_break == "all" else (TieBreak(asked.tie_break),)
    request = Request(target, parameters, asked.counter, tie_breaks, asked.only)
    with _hypothesis_elsewhere(), Suite(request) as suite:
        exit_code = report(suite, asked.target)
        if printed := suite.printed():
            say(f"it printed, at last: {printed}")
        return exit_code


@contextlib.contextmanager
def _hypothesis_elsewhere() -> Iterator[None]:
    """Hypothesis would otherwise leave a folder of its own in the current one."""
    if HYPOTHESIS_FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ[HYPOTHESIS_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[HYPOTHESIS_FOLDER]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.conformance",
        description="Check that a trainer or a word counter computes what is defined.",
        epilog="Exit code 0: all passed; 21: a check failed; 22: the target cannot run here; 2: no such target.",
    )
    parser.add_argument(
        "target",
        help="package.module:function, importable from the current folder, or a name in conf/variant or conf/counting",
    )
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="parameters to call it with"
    )
    parser.add_argument(
        "--counter", action="store_true", help="it is a word counter (by default, if its first parameter is corpus)"
    )
    parser.add_argument(
        "--tie-break",
        default="all",
        choices=["all", *(tie_break.value for tie_break in TieBreak)],
        metavar="NAME",
        help=f"{', '.join(tie_break.value for tie_break in TieBreak)}, or all (default: all, the definition's first)",
    )
    parser.add_argument(
        "--only", default="*", metavar="NAME", help="make only the checks of this name, with * for any letters"
    )
    return parser


def _target(target: str, parameters: Mapping[str, Any], counter: bool) -> tuple[str, Mapping[str, Any]]:
    """The function that was asked for, by its full name, and the parameters to bind."""
    cards: dict[str, Any] = {**registry.variants(), **registry.counters()}
    if not counter:
        cards.update(registry.variants())
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
            raise Refusal(f"{assignment!r} is no parameter; write --set KEY=VALUE")
    try:
        return {str(key): value for key, value in OmegaConf.from_dotlist(list(assignments)).items()}
    except OmegaConfBaseException as error:
        raise Refusal(f"cannot read --set {' '.join(assignments)}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
