"""The whole suite of checks: made of one target in one child process that the parent watches, and reported.

The child imports the target, makes the checks and sends each outcome as a line of JSON. If the target crashes, hangs or
takes too much memory, the check that was being made has failed. A target can do anything to its judge in the same
process, so the parent itself judges fresh inputs at the end: merges by the replay, words by the definition.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import inspect
import itertools
import json
import os
import secrets
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.common import errors, registry
from harness.common.console import tell
from harness.common.errors import Refusal
from harness.common.files import temporary_folder
from harness.common.progress import bar
from harness.measure.guarded import GuardedProcess
from harness.measure.process import Limits, import_from, killed_for_memory, measure, worker_environment
from harness.measure.sandbox import WARM, Sandbox
from harness.measure.witness import without_answer
from harness.proof import IDENTICAL
from harness.proof.checks import (
    FAILED,
    PASSED,
    SKIPPED,
    WIDTHS,
    Check,
    Outcome,
    Subject,
    extends,
    is_word_counter,
    outcome_of,
    words_text,
)
from harness.proof.counter_checks import counter_checks, random_text
from harness.proof.counterexamples import pasted
from harness.proof.extension import extension_checks
from harness.proof.prove import MergeList, prove
from harness.proof.trainer_checks import differential_checks, properties, random_words, worked_examples
from harness.proof.true_counts import ALL_TIE_BREAKS
from harness.worker import word_store
from harness.worker.calling import reads_corpus
from harness.worker.merges_bytes import unpacked
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts

# Nothing in the current folder can shadow what it imports.
CHILD = "import sys; sys.path[:] = filter(None, sys.path); from harness.proof.suite import main; main()"
SECONDS_FOR_AN_IMPORT = 120.0
SECONDS_FOR_A_CHECK = 600.0
SECONDS_TO_END = 2.0
MEMORY_BYTES = 4 << 30
LONGEST_LINE = 8 << 20
FRESH_INPUTS = 20
FRESH_LIMITS = Limits(wall_seconds=60.0, memory_bytes=MEMORY_BYTES)
NOT_AN_OUTCOME = "it sent something that is not an outcome"
STATUSES = (PASSED, FAILED, SKIPPED)
VERDICTS = {errors.MISMATCH: "does not conform", errors.OK: "conforms", errors.UNMEASURED: "cannot run here"}


# Which checks there are


def trainer_checks(tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS, *, extending: bool = False) -> list[Check]:
    """All checks of a trainer, the most telling first; properties are checked under the first of the tie-breaks.

    Those of `extending` are for a trainer that can go on from inherited merges.
    """
    return [
        *worked_examples(tie_breaks),
        *properties(tie_breaks[0]),
        *differential_checks(tie_breaks),
        *(extension_checks(tie_breaks) if extending else []),
    ]


@dataclass(frozen=True)
class CheckList:
    """Checks, and the expression by which a test gets them from harness.conformance."""

    checks: list[Check]
    expression: str


def checks_for(
    subject: Subject,
    tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS,
    widths: Sequence[int] = WIDTHS,
    *,
    counter: bool | None = None,
) -> CheckList:
    """All checks of a trainer under these tie-breaks, or of a word counter at these widths.

    >>> checks_for(lambda words, num_merges, inherited=(): [], [TieBreak.RAW_BYTES]).expression
    'trainer_checks([TieBreak.RAW_BYTES], extending=True)'
    """
    if is_word_counter(subject) if counter is None else counter:
        return CheckList(counter_checks(widths), f"counter_checks({'' if tuple(widths) == WIDTHS else list(widths)})")
    names = ", ".join(f"TieBreak.{tie_break.name}" for tie_break in tie_breaks)
    arguments = [f"[{names}]"] * (tuple(tie_breaks) != ALL_TIE_BREAKS) + ["extending=True"] * extends(subject)
    return CheckList(trainer_checks(tie_breaks, extending=extends(subject)), f"trainer_checks({', '.join(arguments)})")


@dataclass(frozen=True)
class Request:
    """A target with its parameters, whether it is a counter, the tie-breaks and the checks to make."""

    target: str
    parameters: Mapping[str, Any]
    counter: bool = False
    tie_breaks: tuple[TieBreak, ...] = ALL_TIE_BREAKS
    only: str = "*"


# In the child


def main() -> None:
    """Make the checks that the parent requested, and send it the outcomes."""
    line, job = socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2])
    os.dup2(2, 1)  # targets print
    os.chdir(job.pop("folder"))
    sys.path[:0] = [place for place in job.pop("import_from") if place not in sys.path]
    job["tie_breaks"] = tuple(map(TieBreak, job["tie_breaks"]))

    def send(**message: Any) -> None:
        line.sendall(json.dumps(message).encode() + b"\n")

    try:
        make_checks(Request(**job), send)
    except Refusal as refusal:
        send(refused=str(refusal), code=refusal.exit_code)
    send(done=True)
    os._exit(0)  # without waiting for threads and exit handlers of the target


def make_checks(request: Request, send: Callable[..., None]) -> None:
    subject = bound(request)
    counter = request.counter or is_word_counter(subject)
    listed = checks_for(subject, request.tie_breaks, counter=counter)
    checks = [check for check in listed.checks if fnmatch.fnmatchcase(check.name, request.only)]
    if not checks:
        raise Refusal(f"--only {request.only}: no check has such a name; leave --only out to see all groups")
    names = [(check.name, check.group) for check in checks]
    send(checks=names, counter=counter, expression=listed.expression)
    failed: list[Outcome] = []
    for check in checks:
        send(check=check.name)
        outcome = outcome_of(check, subject)
        send(outcome=[outcome.check, outcome.group, outcome.status, outcome.message])
        failed += [outcome] if outcome.status == FAILED else []
    if failed:
        shown = next((outcome for outcome in failed if outcome.counterexample is not None), failed[0])
        send(check=shown.check)
        send(test=[shown.check, pasted(shown, subject, listed.expression)])


def bound(request: Request) -> Subject:
    """The target with its parameters. Raises Refusal if it is missing, or does not take them, or words."""
    target = request.target
    try:
        function = registry.resolve(target)
    except Unavailable as reason:
        raise Refusal(f"{target} cannot run here: {reason}", errors.UNMEASURED) from reason
    except SystemExit as end:
        raise registry.not_importable(target, f"SystemExit: {end}") from end
    if reads_corpus(function):
        raise Refusal(
            f"{target} trains from a file, so it cannot be given the words of a check; its merges are proved by "
            "running it: python -m harness variant=NAME"
        )
    try:
        signature = inspect.signature(function)
        signature.bind_partial(**request.parameters)
    except TypeError as error:
        raise Refusal(f"{target}: {error}; its parameters are {', '.join(signature.parameters)}") from error
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

    def __init__(self, request: Request, process: GuardedProcess, line: socket.socket) -> None:
        self.request, self.process, self.line = request, process, line
        self.out_of_memory_before = killed_for_memory()
        self.test: tuple[str, str] | None = None
        """A check that failed, and a test that shows it."""
        self.limit = SECONDS_FOR_AN_IMPORT
        self.messages = self.receive()
        try:
            start = next(self.messages)
        except ChildFailed as failure:
            raise registry.not_importable(request.target, str(failure)) from failure
        if "refused" in start:
            raise Refusal(str(start["refused"]), start["code"])
        self.checks: list[tuple[str, str]] = start["checks"]
        self.counter, self.expression = bool(start["counter"]), str(start["expression"])
        self.limit = SECONDS_FOR_A_CHECK

    def outcomes(self) -> Iterator[Outcome]:
        """Yield each outcome, and if all have passed, that of fresh inputs judged by the parent.

        If the child breaks down, the check that was being made has failed.
        """
        statuses, done, current = set(), 0, self.checks[0]
        with bar(self.request.target, len(self.checks), "checks") as advance:
            try:
                for message in self.messages:
                    if "check" in message:
                        current = next((check for check in self.checks if check[0] == message["check"]), current)
                    elif "test" in message:
                        self.test = message["test"][0], message["test"][1]
                    else:
                        outcome, done = outcome_in(message), done + 1
                        statuses.add(outcome.status)
                        advance(done)
                        yield outcome
            except ChildFailed as failure:
                left = len(self.checks) - done - 1
                if left >= 0:
                    statuses.add(FAILED)
                    yield Outcome(*current, FAILED, f"{failure}{f'; {left} checks more were not made' * (left > 0)}")
        if FAILED not in statuses and PASSED in statuses:
            yield check_fresh_inputs(self.request, self.counter)

    def test_of(self, failed: Outcome) -> tuple[str, str]:
        """A check that failed and a test of it: with the smallest input that the child found, else the check itself."""

        def subject() -> None: ...

        subject.__module__, _, subject.__qualname__ = self.request.target.partition(":")
        substitute = functools.partial(subject, **self.request.parameters)
        return self.test or (failed.check, pasted(failed, substitute, self.expression))

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield what the child sends, until it is done. Raises ChildFailed if it ends before, or exceeds a limit."""
        received, since = b"", time.monotonic()
        while True:
            *lines, received = received.split(b"\n")
            for line in lines:
                since, message = time.monotonic(), message_in(line)
                if "done" in message:
                    return
                yield message
            ready, _, _ = select.select([self.line, self.process.heard], [], [], 0.1)
            block = self.line.recv(1 << 20) if self.line in ready else b""
            received += block
            if ready and not block:  # it has closed its line, or the guard reports its end
                raise ChildFailed(self.exit_reason())
            if len(received) > LONGEST_LINE:
                raise ChildFailed(NOT_AN_OUTCOME)
            if self.process.look(MEMORY_BYTES):
                raise ChildFailed(f"its processes held over {MEMORY_BYTES >> 30} GiB of memory")
            if time.monotonic() - since > self.limit:
                raise ChildFailed(f"it took over {self.limit:g} s")

    def exit_reason(self) -> str:
        give_up = time.monotonic() + SECONDS_TO_END
        while self.process.exit_code is None and (left := give_up - time.monotonic()) > 0:
            self.process.wait(left)
        if self.process.exit_code is None:
            return "it closed the line to its judge"
        ran_out = killed_for_memory() > self.out_of_memory_before
        return str(without_answer(self.process.exit_code, ran_out)["reason"])


@contextlib.contextmanager
def child_of(request: Request) -> Iterator[Child]:
    """Start the child process. Raises Refusal if the target cannot be checked."""
    line, theirs = socket.socketpair()
    with line, tempfile.TemporaryFile(buffering=0) as stderr, Sandbox() as sandbox:
        sandbox.give_tables()
        job = {**asdict(request), "tie_breaks": [tie_break.value for tie_break in request.tie_breaks]}
        job.update(import_from=import_from(), folder=str(sandbox.working))
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            command = [sys.executable, "-c", CHILD, str(theirs.fileno()), json.dumps(job)]
            environment = worker_environment(sandbox, None)
            started = GuardedProcess.start(command, environment, sandbox.path, stderr, (theirs.fileno(),))
        with started as process:
            if process.leader is None:
                raise Refusal(f"the child process cannot be started: {process.failure}", errors.UNMEASURED)
            try:
                yield Child(request, process, line)
            finally:
                process.kill()


def message_in(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise ChildFailed(NOT_AN_OUTCOME) from error


def outcome_in(message: Mapping[str, Any]) -> Outcome:
    """The outcome that the child sent. Raises ChildFailed if it is not one."""
    try:
        check, group, status, text = map(str, message["outcome"])
        return Outcome(check, group, STATUSES[STATUSES.index(status)], text)
    except (KeyError, TypeError, ValueError) as error:
        raise ChildFailed(NOT_AN_OUTCOME) from error


# Fresh inputs


def check_fresh_inputs(request: Request, counter: bool) -> Outcome:
    """Measure a target on fresh inputs, each in its own process, and judge here what it returned."""
    judge = wrong_words if counter else wrong_merges
    for _ in range(FRESH_INPUTS):
        with temporary_folder() as folder:
            status, message = judge(request, secrets.randbits(64), folder)
        if status != PASSED:
            return Outcome("check_fresh_inputs", "judged outside", status, message)
    return Outcome("check_fresh_inputs", "judged outside", PASSED)


def wrong_merges(request: Request, seed: int, folder: Path) -> tuple[str, str]:
    """The status of training on fresh words, and what is wrong with the merges."""
    words, tie_break = random_words(seed), request.tie_breaks[0]
    word_counts, most = WordCounts.from_items(words.items()), sum(map(len, words))
    word_store.write(folder / "words", word_counts)
    job = {"words": str(folder / "words"), "num_merges": most, "tie_break": tie_break.value, "min_count": 1}
    status, message = measured(request, {**job, "kind": "train", "extending": None}, folder)
    if status == PASSED:
        merges = unpacked((folder / "job" / "merges").read_bytes())
        (identity,) = prove(word_counts, [MergeList(request.target, merges, most, tie_break)])
        if identity.kind != IDENTICAL:
            return FAILED, f"{identity.reason}\ncalled for {most} merges\n{words_text(words)}"
    return status, message


def wrong_words(request: Request, seed: int, folder: Path) -> tuple[str, str]:
    """The status of counting a fresh text, and what is wrong with the words."""
    text, special_tokens = random_text(seed)
    path = folder / "text"
    path.write_bytes(text.encode())
    corpus = Corpus(str(path), special_tokens)
    status, message = measured(request, {"kind": "count", "corpus": asdict(corpus)}, folder)
    if status == PASSED:
        words = dict(word_store.read(folder / "job" / "words")[0])
        want = dict(registry.definition_counter()(corpus))
        if words != want:
            return FAILED, f"counted {words_text(words)}\nnot {words_text(want)}\nin the text {text!r}"
    return status, message


def measured(request: Request, job: Mapping[str, Any], folder: Path) -> tuple[str, str]:
    """Measure one job: its status as that of a check, and the reason if it has no answer."""
    common = {"target": request.target, "params": dict(request.parameters), "threads": 1, "affinity": None}
    job = {"corpus": None, "page_cache": WARM, "interpreter": None, **common, **job}
    answer = measure(job, folder / "job", FRESH_LIMITS)
    if answer["status"] in ("ok", "rejected"):  # only its times are rejected
        return PASSED, ""
    return SKIPPED if answer["status"] == "skipped" else FAILED, str(answer["reason"])


# The report


def report(child: Child, name: str) -> int:
    """Print a failure with a test of it, the counts of each group of checks, and a verdict; returns the exit code."""
    outcomes = list(child.outcomes())
    statuses = {outcome.status for outcome in outcomes}
    exit_code = errors.MISMATCH if FAILED in statuses else errors.OK if PASSED in statuses else errors.UNMEASURED
    failed = {outcome.check: outcome for outcome in outcomes if outcome.status == FAILED}
    if failed:
        check, test = child.test_of(next(iter(failed.values())))
        lines = f"FAILED {check}: {failed[check].message}".splitlines()[:3]
        tell("\n    ".join(line[:300] for line in lines))
        tell(f"\n{test.rstrip()}\n")
    for group, members in itertools.groupby(outcomes, key=lambda outcome: outcome.group):
        of_group = list(members)
        names = first_names(outcome.check for outcome in of_group if outcome.status == FAILED)
        tell(f"{group:<16} {summary(of_group)}{names and f': {names}'}")
    if not failed:
        skipped = [outcome for outcome in outcomes if outcome.status == SKIPPED]
        for reason in dict.fromkeys(outcome.message for outcome in skipped):
            names = first_names((outcome.check for outcome in skipped if outcome.message == reason), most=1)
            tell(f"  skipped {names}: {reason}")
    tell(f"{name} {VERDICTS[exit_code]}: {summary(outcomes)}")
    return exit_code


def summary(outcomes: Sequence[Outcome]) -> str:
    """The number of outcomes with each status.

    >>> summary([Outcome("a", "g", "passed"), Outcome("b", "g", "skipped")])
    '1 passed, 1 skipped'
    """
    statuses = [outcome.status for outcome in outcomes]
    return ", ".join(f"{statuses.count(status)} {status}" for status in STATUSES if status in statuses)


def first_names(checks: Iterable[str], most: int = 3) -> str:
    """The first names, for --only, and the number of the others."""
    names = list(checks)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
