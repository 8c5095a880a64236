"""The measured process: imports a target, reads the job, calls one counter or trainer, writes one
answer.

Run as `python -m harness.worker`, on the standard library alone, so it starts small and under any
interpreter. The work is read after the import, so an import cannot know it. A thread looks up ten
times a second: it reports progress, obeys a request to stop, and ends the whole process group if
the parent is gone.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import platform
import resource
import select
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from harness.worker import (
    ANSWER,
    BEHIND_THE_STANDARD_LIBRARY,
    CHANNEL,
    JOB,
    JOB_FOLDER,
    STOP,
    WORK,
    exchange,
)
from harness.worker.calling import (
    OWN,
    Parameters,
    StoppableMeter,
    arguments_for,
    expect_merges,
    expect_phases,
    expect_vocabulary,
    expect_word_counts,
    of_module,
    own_frames,
    own_tie_break,
    parameters_of,
    place_of,
    reads_corpus,
    resolve,
    shortened,
    takes_path,
    vocabulary_and_merges,
    without_variadic,
)
from harness.worker.exchange import packed, unpacked
from variants import vetoes
from variants.contract import (
    GPT2_PATTERN,
    Corpus,
    InvalidText,
    LeftOut,
    Merges,
    TieBreak,
    Unavailable,
)

IMPORTED, BEGIN, END = b"imported", b"begin", b"end"
"""What the process announces to the harness, which answers with a byte."""
SECONDS_FOR_A_REPLY = 5.0
SECONDS_TO_STOP = 1.0
SECONDS_BETWEEN_LOOKS = 0.1
LONGEST_REASON = 2000
BACKSTOP_BYTES = 256 << 20
# Taken before the job's code is imported, so nothing it replaces can reach the total.
clock = time.perf_counter
DEFAULTS = {
    "tie_break": TieBreak.GREATEST_BYTES,
    "min_count": 1,
    "pattern": GPT2_PATTERN,
    "errors": "strict",
    "partial": False,
}
"""What a trainer does that does not take the option; each decides its merges."""
ALGORITHMS = vetoes.__file__.rpartition(os.sep)[0] + os.sep


def main() -> None:
    """Import the target, read the work, call the target, answer."""
    folder = Path(os.environ[JOB_FOLDER])
    job = json.loads((folder / JOB).read_text())
    channel = Channel(int(os.environ[CHANNEL]))
    sys.path[BEHIND_THE_STANDARD_LIBRARY] = job["import_from"]
    os.chdir(job["folder"])
    if job["memory_limit"] is not None:
        set_backstop(job["memory_limit"] + BACKSTOP_BYTES)
    measured = MeasuredCall(job, folder, channel)
    measured.write(measured.run())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # a trainer may have closed or replaced it
            stream.flush()
    os._exit(0)  # a thread that a trainer left must not keep the process alive


def set_backstop(limit: int) -> None:
    """Limit what grows faster than the harness looks; RLIMIT_AS would refuse large mappings of
    files.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


class Channel:
    """The process's end of a pair of sockets; a trainer that closes or replaces it silences it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.file = os.fstat(descriptor)

    def say(self, word: bytes) -> bool:
        """Write a line to the harness; return False if that is impossible."""
        with contextlib.suppress(OSError):  # closed, or full because the harness is halted
            if os.path.samestat(os.fstat(self.descriptor), self.file):
                return os.write(self.descriptor, word + b"\n") > 0
        return False

    def announce(self, moment: bytes, seconds: float | None = SECONDS_FOR_A_REPLY) -> None:
        """Announce a moment to the harness, and wait until it has read its clock and its
        accounts.
        """
        if self.say(moment):
            with contextlib.suppress(OSError):
                select.select([self.descriptor], [], [], seconds)
                os.read(self.descriptor, 1)


class MeasuredCall:
    """One call of a counter or trainer, and its state at any moment."""

    def __init__(self, job: dict[str, Any], output: Path, channel: Channel) -> None:
        self.job = job
        self.output = output
        self.channel = channel
        self.parent = os.getppid()
        self.meter = StoppableMeter()
        self.parameters: Parameters = None
        self.from_file = False
        self.imported: dict[str, list[int]] = {}
        self.text: list[int] | None = None
        """The state of the file that it reads, before it does."""
        self.tie_break: str | None = None
        self.writing = threading.Lock()
        self.begun = False
        self.started = clock()

    def run(self) -> dict[str, Any]:
        """Import and call the target; every way in which that ends is an answer."""
        try:
            target = resolve(self.job["target"])
            if (prepare := of_module(target, "before_the_clock")) is not None:
                prepare()  # what its module needs once on a machine
            # Looking may run code of the target's own, which must not know the work.
            self.parameters = parameters_of(target)
            self.imported = imported_files()
            if self.job.get("counts_instructions"):
                forget_garbage()
            else:  # another thread's instructions would be counted too
                threading.Thread(target=self.watch, daemon=True).start()
            self.channel.announce(IMPORTED, None)
            self.job.update(json.loads((self.output / WORK).read_text()))
            return self.count(target) if self.job["kind"] == "count" else self.train(target)
        except Unavailable as reason:
            return {
                "status": "skipped",
                "reason": str(reason)[:LONGEST_REASON] or "it does not say why",
            }
        except MemoryError:
            return {
                "status": "out_of_memory",
                "reason": "an allocation failed under the memory limit",
            }
        except (InvalidText, LeftOut) as error:
            return {**failed(error, ""), "reason": str(error), "offset": error.offset}
        except (OSError, ValueError) as error:
            place = place_of(error)
            if not place or is_ours(error):
                return failed(error, "")
            return failed(error, f"{type(error).__name__}: ", place)
        except BaseException as error:  # whatever a trainer raises, SystemExit too, is a result
            return failed(error, f"{type(error).__name__}: ", place_of(error))

    def count(self, counter: Any) -> dict[str, Any]:
        offered = {"threads": self.job["threads"]}
        corpus = self.corpus()
        positional, keywords = arguments_for(
            self.parameters, [corpus], self.meter, offered, self.job["params"]
        )
        self.text = exchange.file_state(corpus.path)
        self.begin()
        word_counts = counter(*positional, **keywords)
        self.mark()
        if self.meter.refused:
            # it has not counted everything
            return {**self.figures("threads" in keywords), "status": "stopped"}
        expect_word_counts(word_counts)
        expect_phases(self.meter.seconds)
        answer = self.figures("threads" in keywords, exchange.seal(word_counts))
        answer["words_done"] = len(word_counts)
        exchange.write_columns(self.output / "words", word_counts)
        return answer

    def train(self, trainer: Any) -> dict[str, Any]:
        offered = self.offered()
        self.from_file = reads_corpus(self.parameters)
        if self.from_file and self.job["corpus"] is None:
            raise Unavailable("it reads text, and there are only words with their counts here")
        given = self.corpus() if self.from_file else exchange.read_words(Path(self.job["words"]))[0]
        leading = [given, self.job["num_merges"]]
        parameters = self.parameters
        special_tokens = None
        if isinstance(given, Corpus):
            self.text = exchange.file_state(given.path)
            if takes_path(parameters):
                special_tokens = list(given.special_tokens)
                vocab_size = 256 + len(special_tokens) + self.job["num_merges"]
                leading = [given.path, vocab_size, special_tokens.copy()]
                parameters = without_variadic(parameters)
                offered.update(pattern=given.pattern, errors=given.errors, partial=given.partial)

        positional, keywords = arguments_for(
            parameters, leading, self.meter, offered, self.job["params"]
        )
        self.expect_taken(offered, keywords)
        call = self.profiled(trainer) if self.job.get("profile") else trainer
        self.begin()
        returned = call(*positional, **keywords)
        self.mark()
        vocab, merges = (
            ({}, returned) if special_tokens is None else vocabulary_and_merges(returned)
        )
        try:
            # before the clock is read, so nothing is left to be done after it
            content = packed(merges)
        except ValueError:
            expect_merges(merges)  # which says what is wrong
            raise
        answer = self.figures("threads" in keywords, hashlib.sha256(content).hexdigest())
        expect_merges(merges)
        if special_tokens is not None:
            expect_vocabulary(vocab, merges, special_tokens)
        expect_phases(answer["seconds"])
        answer.update(packed_merges=content, merges_done=len(merges), feeding=self.feeding())
        if self.meter.refused and len(merges) < self.job["num_merges"]:
            answer["status"] = "stopped"
        return answer

    def profiled(self, trainer: Any) -> Any:
        """Return the trainer so that cProfile's statistics of its call go to the job's file."""
        import cProfile  # late: a timed process does not need it

        def call(*positional: Any, **keywords: Any) -> Any:
            profile = cProfile.Profile()
            try:
                return profile.runcall(trainer, *positional, **keywords)
            finally:
                profile.dump_stats(self.job["profile"])

        return call

    def offered(self) -> dict[str, Any]:
        """Return the keywords that a trainer gets if it takes them."""
        offered = {"threads": self.job["threads"], "min_count": self.job["min_count"]}
        self.tie_break = (
            own_tie_break(self.parameters)
            if self.job["tie_break"] == OWN
            else self.job["tie_break"]
        )

        if self.job["tie_break"] != OWN:
            offered["tie_break"] = TieBreak(self.job["tie_break"])

        if (extending := self.job.get("extending")) is not None:
            offered["inherited"] = unpacked(Path(extending["merges"]).read_bytes())
            offered["inheriting"], offered["veto"] = (
                extending["inheriting"],
                vetoes.named(extending["veto"]),
            )
        return offered

    def expect_taken(self, offered: dict[str, Any], keywords: dict[str, Any]) -> None:
        """Raise ValueError or Unavailable if the trainer does not take an option that decides its
        merges.
        """
        for name, default in DEFAULTS.items():
            if name not in keywords and offered.get(name, default) != default:
                raise ValueError(
                    f"{self.job['target']} takes no {name}, so it runs with the default only"
                )
        if "inherited" in offered and "inherited" not in keywords:
            raise Unavailable(
                f"{self.job['target']} takes no inherited, so it cannot go on from merges"
            )

    def feeding(self) -> dict[str, Any] | None:
        """Return how a trainer that reads the file is fed, in its own words."""
        describe = of_module(resolve(self.job["target"]), "feeding") if self.from_file else None
        return (
            None
            if describe is None
            else dict(describe(self.corpus(), **self.job["params"])._asdict())
        )

    def corpus(self) -> Corpus:
        return Corpus(
            **{**self.job["corpus"], "special_tokens": tuple(self.job["corpus"]["special_tokens"])}
        )

    def begin(self) -> None:
        """Start the clock; importing and mapping are not the trainer's work."""
        self.channel.announce(BEGIN)
        self.started = clock()
        self.meter._mark = time.perf_counter()
        self.begun = True
        self.mark()

    def mark(self) -> None:
        """Enter a function of the C library that nothing else calls: a program that counts
        instructions watches it.
        """
        if self.job.get("counts_instructions"):
            os.ctermid()

    def figures(
        self, takes_threads: bool | None = None, digest: str | None = None
    ) -> dict[str, Any]:
        """Return what has been measured up to now; two clocks may differ, so no phase is less than
        nothing.

        The harness gets the digest of the merges or words with the end of the call, so they cannot
        change later.
        """
        # before the clock is read: a call that is stopped goes on
        spent_in = dict(self.meter.seconds)
        end = END if digest is None else b"%b %b" % (END, digest.encode())

        total = clock() - self.started
        self.channel.announce(end)

        replaced = time.perf_counter is not clock
        return {
            "status": "rejected" if replaced else "ok",
            "reason": "time.perf_counter was replaced while it ran, so its phases mean nothing"
            if replaced
            else None,
            "seconds": {phase: max(float(spent), 0.0) for phase, spent in spent_in.items()},
            "total": total,
            "tallies": {name: int(number) for name, number in self.meter.tallies.items()},
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
            "takes_threads": takes_threads,
            "from_file": self.from_file,
            "tie_break": self.tie_break,
            "text": self.text,
            "imported": {**imported_files(), **self.imported},
        }

    def write(self, answer: dict[str, Any]) -> None:
        """Write the merges, then the answer; of two threads only the first does."""
        self.writing.acquire()
        merges = answer.pop("packed_merges", None)
        if merges is not None:
            (self.output / "merges").write_bytes(merges)
        partial = self.output / "answer.partial"
        partial.write_text(json.dumps(answer))
        partial.rename(self.output / ANSWER)

    def watch(self) -> None:
        """Report until the process ends, or the harness asks to stop, or the parent is gone."""
        stop_by = None
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            if stop_by is None and os.path.exists(self.output / STOP):  # noqa: PTH110 - this runs beside the call
                self.meter.stopping = True
                stop_by = clock() + (SECONDS_TO_STOP if self.meter.has_polled else 0)
            if os.getppid() != self.parent:
                os.killpg(0, signal.SIGKILL)
            if stop_by is not None and clock() >= stop_by:
                self.write(self.stopped())
                os._exit(0)
            with contextlib.suppress(Exception):  # what the meter follows is the trainer's own
                self.report()

    def stopped(self) -> dict[str, Any]:
        """Return the answer for a call that goes on, with the merges made so far; without figures
        before it begins.
        """
        if not self.begun:
            return {"status": "stopped", "reason": None}
        answer = {**self.figures(), "status": "stopped"}
        if self.job["kind"] == "train":
            with contextlib.suppress(Exception):
                answer["feeding"] = self.feeding()
            followed = self.meter.followed
            merges = Merges(followed.ids[:]) if type(followed) is Merges else list(followed)
            with contextlib.suppress(ValueError):  # the meter follows something else than merges
                expect_merges(merges)
                answer.update(packed_merges=packed(merges), merges_done=len(merges))
        return answer

    def report(self) -> None:
        """Report progress: the number of merges made, or of bytes while a trainer reads the
        file.
        """
        merges = len(self.meter.followed)
        if self.from_file and not merges:
            self.channel.say(b"%d bytes" % self.meter.done)
        else:
            self.channel.say(b"%d" % (merges or self.meter.done))


def forget_garbage() -> None:
    """Have Python's collector start from nothing, whatever was imported or compiled before.

    Else a collection of everything falls into the call or not, which is a percent of its
    instructions.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


def imported_files() -> dict[str, list[int]]:
    """Return the files that modules were imported from, each with its state, but for those of the
    standard library, which nobody edits.
    """
    standard = os.__file__.rpartition(os.sep)[0] + os.sep
    states = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if type(path) is not str or path in states:
            continue
        if not path.startswith(standard) or "-packages" in path:
            state = exchange.file_state(path)
            if state is not None:
                states[path] = state
    return states


def is_ours(error: BaseException) -> bool:
    """Return whether the innermost code of the target is this project's, whose sentences suffice."""
    return own_frames(error)[-1].filename.startswith(ALGORITHMS)


def failed(error: BaseException, prefix: str, place: str = "") -> dict[str, Any]:
    """Return the answer for an exception; its traceback goes to standard error, whatever sys.stderr
    is now.
    """
    with contextlib.suppress(OSError):  # standard error may be closed
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        os.write(2, text.encode(errors="replace"))
    message = str(error)
    return {
        "status": "error",
        "reason": (shortened(prefix + message) if message else type(error).__name__) + place,
    }


if __name__ == "__main__":
    main()
