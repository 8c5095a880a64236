"""The whole suite of checks, made of one target in one child process that the parent watches.

The child imports the target, makes the checks and tells each outcome in a line of JSON. If the target crashes, hangs or
takes too much memory, the check that was being made has failed. A target can do anything to its judge in the same
process, so the parent itself judges fresh inputs at the end: merges by the replay, words by the definition.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import inspect
import json
import os
import secrets
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.common import errors, registry
from harness.common.errors import Refusal
from harness.common.files import temporary_folder
from harness.measure.answers import without_answer
from harness.measure.guarded import GuardedProcess
from harness.measure.process import Limits, import_from, killed_for_memory, measure, worker_environment
from harness.measure.sandbox import WARM, Sandbox
from harness.proof import IDENTICAL
from harness.proof.checks import WIDTHS, Check, Outcome, outcome_of, shown
from harness.proof.counter import counter_checks, random_text
from harness.proof.counterexamples import pasted
from harness.proof.differential import differential_checks, examples_under_another_tie_break, random_words
from harness.proof.extension import extends, extension_checks
from harness.proof.prove import MergeList, prove
from harness.proof.trainer import properties, worked_examples
from harness.proof.true_counts import ALL_TIE_BREAKS
from harness.worker import word_store
from harness.worker.calling import reads_corpus
from harness.worker.merges_bytes import unpacked
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts

# Nothing that lies in the current folder can stand in for what it imports.
CHILD = "import sys; sys.path[:] = filter(None, sys.path); from harness.proof.suite import main; main()"
SECONDS_FOR_AN_IMPORT = 120.0
SECONDS_FOR_A_CHECK = 600.0
MEMORY_BYTES = 4 << 30
SECONDS_BETWEEN_LOOKS = 0.1
LONGEST_LINE = 8 << 20
FRESH_INPUTS = 20
FRESH_LIMITS = Limits(wall_seconds=60.0, memory_bytes=MEMORY_BYTES)
STATUSES = ("passed", "failed", "skipped")
NO_OUTCOME = "what it told is not an outcome"
SECONDS_TO_TELL_OF_ITS_END = 2.0
SKIPPED = "skipped: "


@dataclass(frozen=True)
class Request:
    """A target with its parameters, whether it is a counter, the tie-breaks and the checks to make."""

    target: str
    parameters: Mapping[str, Any]
    counter: bool = False
    tie_breaks: tuple[TieBreak, ...] = ALL_TIE_BREAKS
    only: str = "*"


class BrokeDown(Exception):
    """The child has ended or had to be ended; the message says how."""


# Which checks there are


def trainer_checks(tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS, *, extending: bool = False) -> list[Check]:
    """All checks of a trainer, the most telling first; properties are checked under the first of the tie-breaks.

    Those of `extending` are for a trainer that can go on from merges which are already made.
    """
    return [
        *worked_examples(tie_breaks),
        *examples_under_another_tie_break(tie_breaks),
        *properties(tie_breaks[0]),
        *differential_checks(tie_breaks),
        *(extension_checks(tie_breaks) if extending else []),
    ]


def trainer_checks_of(tie_breaks: Sequence[TieBreak], *, extending: bool = False) -> str:
    """How a test gets at the checks under these tie-breaks.

    >>> trainer_checks_of([TieBreak.RAW_BYTES], extending=True)
    'trainer_checks([TieBreak.RAW_BYTES], extending=True)'
    """
    named = ", ".join(f"TieBreak.{tie_break.name}" for tie_break in tie_breaks)
    request = [] if tuple(tie_breaks) == ALL_TIE_BREAKS else [f"[{named}]"]
    return f"trainer_checks({', '.join(request + ['extending=True'] * extending)})"


def counter_checks_of(widths: Sequence[int]) -> str:
    return "counter_checks()" if tuple(widths) == WIDTHS else f"counter_checks({list(widths)})"


# In the child


def main() -> None:
    """Make the checks that the parent asks for, and tell it what they came to."""
    line, request = socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2])
    os.dup2(2, 1)  # targets print
    os.chdir(request["folder"])
    sys.path[:0] = [place for place in request["import_from"] if place not in sys.path]
    tie_breaks = tuple(map(TieBreak, request["tie_breaks"]))
    known = Request(request["target"], request["parameters"], request["counter"], tie_breaks, request["only"])

    def say(**what: Any) -> None:
        line.sendall(json.dumps(what).encode() + b"\n")

    try:
        make_checks(known, say)
    except Refusal as refusal:
        say(refused=str(refusal), code=refusal.exit_code)
    say(done=True)
    os._exit(0)  # threads and handlers of the target have nothing to say any more


def make_checks(request: Request, say: Callable[..., None]) -> None:
    subject = bound(request)
    counter = request.counter or is_word_counter(subject)
    checks, checks_from = checks_of(subject, counter, request)
    say(checks=[(check.name, check.group) for check in checks], counter=counter, checks_from=checks_from)
    failed: list[Outcome] = []
    for check in checks:
        say(check=check.name)
        outcome = outcome_of(check, subject)
        say(outcome=[outcome.check, outcome.group, outcome.status, outcome.message])
        failed += [outcome] if outcome.status == "failed" else []
    if failed:
        telling = next((outcome for outcome in failed if outcome.shown_by is not None), failed[0])
        say(check=telling.check)
        say(test=[telling.check, pasted(telling, subject, checks_from)])


def checks_of(subject: Callable[..., Any], counter: bool, request: Request) -> tuple[list[Check], str]:
    """The checks to be made, and the expression by which a test gets at them."""
    if counter:
        checks, checks_from = counter_checks(), counter_checks_of(WIDTHS)
    else:
        extending = extends(subject)
        checks = trainer_checks(request.tie_breaks, extending=extending)
        checks_from = trainer_checks_of(request.tie_breaks, extending=extending)
    chosen = [check for check in checks if fnmatch.fnmatchcase(check.name, request.only)]
    if not chosen:
        raise Refusal(f"--only {request.only}: no check has such a name; leave --only out to see all groups")
    return chosen, checks_from


def bound(request: Request) -> Callable[..., Any]:
    """The target with its parameters. Raises Refusal if it is not there, or does not take them, or words."""
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
        taken = inspect.signature(function)
        taken.bind_partial(**request.parameters)
    except TypeError as error:
        raise Refusal(f"{target}: {error}; its parameters are {', '.join(taken.parameters)}") from error
    except ValueError:
        pass  # compiled code that does not show how it is called
    return functools.partial(function, **request.parameters)


def is_word_counter(subject: Callable[..., Any]) -> bool:
    """Whether a function's first parameter is called `corpus`; a trainer's is not."""
    try:
        return next(iter(inspect.signature(subject).parameters), "") == "corpus"
    except (TypeError, ValueError):
        return False


# In the parent


class Suite:
    """The checks of a target, made in a child process; a context.

    Entering it raises Refusal if the target cannot be checked. `outcomes` yields what each check came to.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.checks: list[list[str]] = []
        self.test: tuple[str, str] | None = None
        """A check that failed, and a test that shows it."""

    def __enter__(self) -> Suite:
        with contextlib.ExitStack() as opened:
            stderr = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            sandbox = opened.enter_context(Sandbox())
            sandbox.give_tables()
            self.line, theirs = socket.socketpair()
            opened.callback(self.line.close)
            values = [tie_break.value for tie_break in self.request.tie_breaks]
            job = {
                **asdict(self.request),
                "tie_breaks": values,
                "import_from": import_from(),
                "folder": sandbox.working,
            }
            with theirs:
                os.set_inheritable(theirs.fileno(), True)
                command = [sys.executable, "-c", CHILD, str(theirs.fileno()), json.dumps(job)]
                environment = worker_environment(sandbox, None)
                started = GuardedProcess.start(command, environment, sandbox.path, stderr, (theirs.fileno(),))
            self.guarded = opened.enter_context(started)
            if self.guarded.leader is None:
                raise Refusal(f"the child process cannot be started: {self.guarded.failure}", errors.UNMEASURED)
            opened.callback(self.guarded.kill)
            self.out_of_memory_before = killed_for_memory()
            self.lines = self.told()
            self.begin()
            self.opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.close()

    def begin(self) -> None:
        """Hear which checks will be made."""
        try:
            told = next(self.lines)
        except BrokeDown as broken:
            raise registry.not_importable(self.request.target, str(broken)) from broken
        if "refused" in told:
            raise Refusal(str(told["refused"]), told["code"])
        self.checks = told["checks"]
        self.counter, self.checks_from = bool(told["counter"]), str(told["checks_from"])

    def outcomes(self) -> Iterator[Outcome]:
        """Yield each outcome, at last what the parent judges itself if everything before has passed.

        If the child breaks down, the check that was being made has failed.
        """
        statuses = set()
        for outcome in self.made():
            statuses.add(outcome.status)
            yield outcome
        if "failed" not in statuses and "passed" in statuses:
            yield judged_here(self.request, self.counter)

    def made(self) -> Iterator[Outcome]:
        done, current = 0, self.checks[0][0]
        try:
            for told in self.lines:
                if "check" in told:
                    current = str(told["check"])
                    show(f"{done} of {len(self.checks)}: {current}")
                elif "test" in told:
                    self.test = told["test"][0], told["test"][1]
                else:
                    show("")
                    yield outcome_in(told)
                    done += 1
        except BrokeDown as broken:
            left = len(self.checks) - done - 1
            more = f"; {left} checks more were not made" if left > 0 else ""
            group = next((group for name, group in self.checks if name == current), "")
            if done < len(self.checks):
                yield Outcome(current, group, "failed", f"{broken}{more}")
        show("")

    def test_of(self, failed: Outcome) -> tuple[str, str]:
        """A check that failed and a test of it: with the smallest input that the child found, else the check itself."""

        def subject() -> None: ...

        subject.__module__, _, subject.__qualname__ = self.request.target.partition(":")
        stand_in = functools.partial(subject, **self.request.parameters)
        return self.test or (failed.check, pasted(failed, stand_in, self.checks_from))

    def told(self) -> Iterator[dict[str, Any]]:
        """Yield what the child tells, until it is done. Raises BrokeDown if it ends before, or exceeds a limit."""
        came, since = b"", time.monotonic()
        while True:
            *lines, came = came.split(b"\n")
            for line in lines:
                since, told = time.monotonic(), message_in(line)
                if "done" in told:
                    return
                yield told
            ready, _, _ = select.select([self.line, self.guarded.heard], [], [], SECONDS_BETWEEN_LOOKS)
            block = self.line.recv(1 << 20) if self.line in ready else b""
            came += block
            if ready and not block:  # it has cut its line, or the guard tells of its end
                raise BrokeDown(self.how_it_ended())
            self.look(time.monotonic() - since, len(came))

    def look(self, seconds: float, waiting: int) -> None:
        if waiting > LONGEST_LINE:
            raise BrokeDown(NO_OUTCOME)
        if self.guarded.look(MEMORY_BYTES):
            raise BrokeDown(f"its processes held over {MEMORY_BYTES >> 30} GiB of memory")
        limit = SECONDS_FOR_A_CHECK if self.checks else SECONDS_FOR_AN_IMPORT
        if seconds > limit:
            raise BrokeDown(f"it took over {limit:g} s")

    def how_it_ended(self) -> str:
        give_up = time.monotonic() + SECONDS_TO_TELL_OF_ITS_END
        while self.guarded.exit_code is None and (left := give_up - time.monotonic()) > 0:
            list(self.guarded.wait(left))
        if self.guarded.exit_code is None:
            return "it closed the line to its judge"
        ran_out = killed_for_memory() > self.out_of_memory_before
        return str(without_answer(self.guarded.exit_code, ran_out)["reason"])

    def printed(self) -> str:
        """The end of what the target has printed."""
        return self.guarded.tail().strip()


def show(line: str) -> None:
    """On a terminal, say which check is being made."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()


def message_in(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise BrokeDown(NO_OUTCOME) from error


def outcome_in(told: Mapping[str, Any]) -> Outcome:
    """The outcome in a line of the child. Raises BrokeDown if there is none."""
    try:
        check, group, status, message = map(str, told["outcome"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokeDown(NO_OUTCOME) from error
    if status not in STATUSES:
        raise BrokeDown(NO_OUTCOME)
    return Outcome(check, group, status, message)


# What the parent judges itself


def judged_here(request: Request, counter: bool) -> Outcome:
    """Measure a target on fresh inputs, each in a process of its own, and judge here what it came to."""
    judge = wrong_words if counter else wrong_merges
    for _ in range(FRESH_INPUTS):
        with temporary_folder() as folder:
            wrong = judge(request, secrets.randbits(64), folder)
        if wrong is not None:
            status = "skipped" if wrong.startswith(SKIPPED) else "failed"
            return Outcome("check_fresh_inputs", "judged outside", status, wrong.removeprefix(SKIPPED))
    return Outcome("check_fresh_inputs", "judged outside", "passed")


def wrong_merges(request: Request, seed: int, folder: Path) -> str | None:
    """What is wrong with the merges of fresh words; None if nothing is."""
    words, tie_break = random_words(seed), request.tie_breaks[0]
    word_counts, most = WordCounts.from_items(words.items()), sum(map(len, words))
    word_store.write(folder / "words", word_counts)
    job = {"words": str(folder / "words"), "num_merges": most, "tie_break": tie_break.value, "min_count": 1}
    answer = answer_of(request, {**job, "kind": "train", "extending": None}, folder)
    if isinstance(answer, str):
        return answer
    merges = unpacked((folder / "job" / "merges").read_bytes())
    (found,) = prove(word_counts, [MergeList(request.target, merges, most, tie_break)])
    return None if found.kind == IDENTICAL else f"{found.reason}\nasked for {most} merges\n{shown(words)}"


def wrong_words(request: Request, seed: int, folder: Path) -> str | None:
    """What is wrong with the words of a fresh text; None if nothing is."""
    text, special_tokens = random_text(seed)
    path = folder / "text"
    path.write_bytes(text.encode())
    corpus = Corpus(str(path), special_tokens)
    answer = answer_of(request, {"kind": "count", "corpus": asdict(corpus)}, folder)
    if isinstance(answer, str):
        return answer
    got, want = dict(word_store.read(folder / "job" / "words")[0]), dict(registry.definition_counter()(corpus))
    return None if got == want else f"counted {shown(got)}\nnot {shown(want)}\nin the text {text!r}"


def answer_of(request: Request, job: Mapping[str, Any], folder: Path) -> str | None:
    """Measure one job; the reason if it was not measured to its end."""
    common = {"target": request.target, "params": dict(request.parameters), "threads": 1, "affinity": None}
    answer = measure(
        {"corpus": None, "page_cache": WARM, "interpreter": None, **common, **job}, folder / "job", FRESH_LIMITS
    )
    if answer["status"] in ("ok", "rejected"):  # whatever its clock says, its answer is there
        return None
    return f"{SKIPPED if answer['status'] == 'skipped' else ''}{answer['reason']}"
