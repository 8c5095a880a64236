"""Does a trainer or a word counter compute what is defined? Three ways to run one list of checks.

From Python, without pytest: `check_conformance(train)` raises at the first failure. In a test file:
`@parametrize_with_checks([train])` makes one test of every check. From a shell: `python -m
harness.conformance package.module:function`, which makes all checks in one child process that the
parent watches, and reports them.

The child imports the target, makes the checks and sends each outcome in JSON. If the target
crashes, hangs or takes too much memory, the check that was being made has failed. A target can do
anything to its judge in the same process, so the parent itself compares at the end what it returns
for fresh inputs with the definition.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import itertools
import json
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.common import registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.printing import print_stderr, print_stdout
from harness.common.progress import bar
from harness.common.values import check_target, not_importable, parse_value, unknown_text
from harness.measure.machine import import_from
from harness.measure.process import Sandbox, worker_environment
from harness.measure.watched_process import WatchedProcess
from harness.measure.witness import without_answer
from harness.proof.cases import random_call
from harness.proof.checks import (
    FAILED,
    PASSED,
    SKIPPED,
    Call,
    Check,
    CheckFailed,
    CheckResult,
    Subject,
    call_of,
    is_word_counter,
    outcome_of,
)
from harness.proof.counter_checks import counter_checks as counter_checks
from harness.proof.counter_checks import random_file
from harness.proof.trainer_checks import trainer_checks as trainer_checks
from harness.worker import BEHIND_THE_STANDARD_LIBRARY, CHANNEL, STANDARD_LIBRARY_FIRST
from harness.worker.calling import parameters_of, reads_corpus
from variants.contract import TieBreak, Unavailable

if TYPE_CHECKING:
    import pytest

CHILD = f"{STANDARD_LIBRARY_FIRST}from harness.conformance import child; child()"
SECONDS_FOR_AN_IMPORT = 120.0
SECONDS_FOR_A_CHECK = 600.0
SECONDS_FOR_AN_END = 2.0
MEMORY_BYTES = 4 << 30
FRESH, FRESH_INPUTS = ("check_fresh_inputs", "judged outside"), 20
VERDICTS = {
    MISMATCH: "does not conform",
    OK: "conforms",
    UNMEASURED: "cannot run here",
}


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


def checks_for(subject: Subject, tie_breaks: Sequence[TieBreak] = tuple(TieBreak)) -> list[Check]:
    """All checks of a word counter, or of a trainer under these tie-breaks."""
    if is_word_counter(subject):
        return counter_checks()
    return trainer_checks(tie_breaks, extending="inherited" in (parameters_of(subject) or ()))


class Request(NamedTuple):
    """A target with its parameters, the tie-breaks, and the names of the checks to make."""

    target: str
    parameters: Mapping[str, Any]
    tie_breaks: tuple[TieBreak, ...] = tuple(TieBreak)
    only: str = "*"


# In the child process


def child() -> None:
    """Make the checks that the parent requested, and answer its fresh inputs."""
    line = Connection(int(os.environ[CHANNEL]))
    os.dup2(2, 1)  # targets print
    *requested, folder, import_folders = line.recv()
    request = Request(*requested)
    os.chdir(folder)
    sys.path[BEHIND_THE_STANDARD_LIBRARY] = [
        path for path in import_folders if path not in sys.path
    ]

    def send(**message: Any) -> None:
        line.send_bytes(json.dumps(message).encode())

    try:
        subject = bound(request)
        make_checks(subject, request, send)
        while True:
            send(returned=repr(line.recv().result_of(subject)))
    except Refusal as refusal:
        send(refused=str(refusal), code=refusal.exit_code)


def make_checks(subject: Subject, request: Request, send: Callable[..., None]) -> None:
    """Send which checks there are, and the outcome of each."""
    only, checks = request.only, checks_for(subject, request.tie_breaks)
    checks = [check for check in checks if check.name == only or fnmatchcase(check.name, only)]
    if not checks:
        raise Refusal(
            f"--only {request.only}: no check has such a name; leave --only out to see all groups"
        )
    names = [(check.name, check.group) for check in checks]
    send(checks=names, counter=is_word_counter(subject))
    for check in checks:
        send(**asdict(outcome_of(check, subject)))


def bound(request: Request) -> Subject:
    """The target with its parameters. Raises Refusal if it is missing, or does not take them, or
    words.
    """
    target = request.target
    try:
        function = registry.resolve(target)
    except Unavailable as reason:
        raise Refusal(f"{target} cannot run here: {reason}", UNMEASURED) from reason

    if reads_corpus(parameters_of(function)):
        advice = f"its merges are proved by running it: python -m harness variants={target}"
        raise Refusal(
            f"{target} trains from a file, so it cannot be given the words of a check; {advice}"
        )

    try:
        signature = inspect.signature(function)
        signature.bind_partial(**request.parameters)
    except TypeError as error:
        raise Refusal(
            f"{target}: {error}; its parameters are {', '.join(signature.parameters)}"
        ) from error
    except ValueError:
        pass  # compiled code without a signature
    return functools.partial(function, **request.parameters)


# In the parent


class ChildFailed(Exception):
    """The child has ended or had to be ended; the message says how."""


class Child:
    """The process that makes the checks. Creating it waits until the target is imported.

    Raises Refusal if the target cannot be checked.
    """

    def __init__(self, request: Request, folder: str, process: WatchedProcess) -> None:
        self.request, self.process = request, process
        self.line = Connection(os.dup(process.line.fileno()))
        self.send((*request, folder, import_from()))  # the child has no class of a __main__
        try:
            start = self.receive(SECONDS_FOR_AN_IMPORT)
        except ChildFailed as failure:
            raise not_importable(request.target, str(failure)) from failure
        if "refused" in start:
            raise Refusal(str(start["refused"]), start["code"])
        self.checks: list[tuple[str, str]] = start["checks"]
        self.is_counter: bool = start["counter"]

    def outcomes(self) -> Iterator[CheckResult]:
        """Yield each outcome, and if none is a failure, that of fresh inputs judged here.

        If the child breaks down, the check that was being made has failed.
        """
        statuses = set()
        check, left = FRESH, list(self.checks)

        try:
            with bar(self.request.target, len(left), "checks") as advance:
                while left:
                    check = left.pop(0)
                    outcome = CheckResult(**self.receive())
                    statuses.add(outcome.status)
                    advance(len(self.checks) - len(left))
                    yield outcome
            if PASSED in statuses and FAILED not in statuses:
                check = FRESH
                yield self.judge_fresh_inputs()
        except ChildFailed as failure:
            more = f"; {len(left)} checks more were not made" if left else ""
            yield CheckResult(*check, FAILED, f"{failure}{more}")

    def judge_fresh_inputs(self) -> CheckResult:
        """Compare what the target returns for fresh inputs with the definition's result."""
        for _ in range(FRESH_INPUTS):
            seed = secrets.randbits(64)
            # which any trainer takes
            words = replace(random_call(seed, self.request.tie_breaks[0]), min_count=1)
            fresh: Call = random_file(seed) if self.is_counter else words
            self.send(fresh)
            returned, want = str(self.receive()["returned"]), repr(fresh.defined())
            if returned != want:
                message = f"returned {returned[:200]}, not {want[:200]}"
                return CheckResult(*FRESH, FAILED, message, fresh.size, str(fresh))
        return CheckResult(*FRESH, PASSED)

    def send(self, request: object) -> None:
        with contextlib.suppress(OSError):  # the child is gone, which `receive` reports
            self.line.send(request)

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """Return what the child sends next. Raises ChildFailed if it ends before, or exceeds a
        limit.
        """
        seconds = seconds or SECONDS_FOR_A_CHECK
        give_up = time.monotonic() + seconds
        while not (ready := wait([self.line, self.process.reports.fileno()], 0.1)):
            if self.process.look(MEMORY_BYTES):
                raise ChildFailed(f"its processes held over {MEMORY_BYTES >> 30} GiB of memory")
            if time.monotonic() > give_up:
                raise ChildFailed(f"it took over {seconds:g} s")

        if self.line in ready:
            with contextlib.suppress(EOFError, OSError, ValueError):
                return dict(json.loads(self.line.recv_bytes()))

        for _ in ("the end of the line", "the report of the guard"):
            if self.process.exit_code is None:
                self.process.listen(SECONDS_FOR_AN_END)
        if self.process.exit_code is None:
            raise ChildFailed("it cut the line to its judge")
        raise ChildFailed(str(without_answer(self.process.exit_code).reason))


@contextlib.contextmanager
def child_of(request: Request) -> Iterator[Child]:
    """Start the child process. Raises Refusal if the target cannot be checked."""
    with tempfile.TemporaryFile(buffering=0) as stderr, temporary_folder() as folder:
        sandbox = Sandbox(folder)
        sandbox.give_tables()
        with WatchedProcess(
            [sys.executable, "-u", "-c", CHILD], worker_environment(sandbox, None), stderr
        ) as process:
            if process.leader is None:
                raise Refusal(f"cannot start {sys.executable}", UNMEASURED)
            yield Child(request, str(sandbox.working), process)


# The report


def print_report(child: Child, name: str) -> int:
    """Print a failure with a test of it, the counts of each group of checks, and a verdict; returns
    the exit code.
    """
    outcomes = list(child.outcomes())
    statuses = {outcome.status for outcome in outcomes}
    exit_code = OK if PASSED in statuses else UNMEASURED
    if FAILED in statuses:
        exit_code = MISMATCH
        failed = [outcome for outcome in outcomes if outcome.status == FAILED]
        print_failure(min(failed, key=lambda outcome: outcome.size))

    for group, members in itertools.groupby(outcomes, key=lambda outcome: outcome.group):
        of_group = list(members)
        names = [outcome.check for outcome in of_group if outcome.status == FAILED]
        reasons = dict.fromkeys(
            outcome.message for outcome in of_group if outcome.status == SKIPPED
        )
        details = [", ".join(names[:3]) + " and more" * (len(names) > 3)] if names else reasons
        print_stdout(": ".join([f"{group:<16} {summary(of_group)}", *details]))

    print_stdout(f"{name} {VERDICTS[exit_code]}: {summary(outcomes)}")
    return exit_code


def print_failure(outcome: CheckResult) -> None:
    """Print what failed, and a test of it or its input; without these, how to repeat it."""
    lines = f"FAILED {outcome.check}: {outcome.message}".splitlines()[: 1 if outcome.test else 3]
    print_stdout("\n    ".join(line[:300] for line in lines))
    repeat = f"to repeat it: --only '{outcome.check}'"
    print_stdout(f"\n{outcome.test.rstrip() or repeat}\n")


def summary(outcomes: Sequence[CheckResult]) -> str:
    """The number of outcomes with each status.

    >>> summary([CheckResult("a", "g", "passed"), CheckResult("b", "g", "skipped")])
    '1 passed, 1 skipped'
    """
    numbers = Counter(outcome.status for outcome in outcomes)
    return ", ".join(
        f"{numbers[status]} {status}" for status in (PASSED, FAILED, SKIPPED) if numbers[status]
    )


# The command


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
