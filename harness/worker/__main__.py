"""The measured process: reads one job from standard input, calls one counter or trainer, writes one answer.

Run as `python -m harness.worker`. It imports the standard library and the job's target, nothing else, so that it is
small, starts at once and runs under any interpreter. A thread looks after the rest ten times a second: it reports
progress, keeps the curve, hears what the job is, obeys a request to stop, and ends the whole group of processes when
the parent is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
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

from harness.worker import word_store
from harness.worker.account import account, memory_status, since
from harness.worker.calling import (
    OWN,
    arguments_for,
    expect_merges,
    expect_word_counts,
    feeding_of,
    own_tie_break,
    prepare,
    reads_corpus,
    resolve,
    shortened,
)
from harness.worker.channel import BEGIN, BEGUN, END, IMPORTED, READY, Channel
from harness.worker.merges_bytes import merges_from_bytes, packed
from harness.worker.meters import PhasedMeter, StoppableMeter
from variants import vetoes
from variants.contract import Corpus, InvalidText, LeftOut, Merges, TieBreak, Unavailable

CURVE_POINTS = 256
SECONDS_TO_STOP = 1.0
CLOCK_ERROR = 1e-4
LARGEST_TALLY = 2**63
LONGEST_REASON = 2000
BACKSTOP_BYTES = 256 << 20
# Taken before anything of the job is imported, so that nothing it replaces can reach the total.
clock = time.perf_counter
HERE = __file__.rpartition(os.sep)[0]
IMPORTING = importlib.__file__.rpartition(os.sep)[0]


def main() -> None:
    """Start, import the target, be told the rest of the job, call the target, answer."""
    job = json.loads(read_line(0))
    control = take_standard_streams()
    channel = Channel(job["channel"])
    sys.path[:0] = job["import_from"]
    os.chdir(job["folder"])  # it may have been started elsewhere
    if job["memory_limit"] is not None:
        set_backstop(job["memory_limit"] + BACKSTOP_BYTES)
    if job.get("affinity") is not None:
        os.sched_setaffinity(0, job["affinity"])
    measured = Measured(job, channel)
    threading.Thread(target=measured.watch, args=(control,), daemon=True).start()
    if job.get("compiled") is not None:
        sys.pycache_prefix = job["compiled"]
    channel.witnessed(READY)
    measured.write(measured.run())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # a trainer may have closed it, or put anything in its place
            stream.flush()
    # Not a plain return: a thread that a trainer left behind must not keep the process alive.
    os._exit(0)


def take_standard_streams() -> int:
    """Move what the parent says out of the trainer's way: it and its children may read and print as they like.

    What is printed goes where standard error goes, there is nothing to read. Returns where the parent is heard now.
    """
    control = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return control


def set_backstop(limit: int) -> None:
    """A limit on what grows faster than the parent looks; not RLIMIT_AS, which refuses large mappings."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def read_line(descriptor: int) -> bytes:
    """One line, byte by byte: what follows it belongs to the watching thread."""
    line = b""
    while not line.endswith(b"\n"):
        block = os.read(descriptor, 1)
        if not block:
            raise EOFError("the job ended early")
        line += block
    return line


class Measured:
    """One call of a counter or trainer, and what is known of it at any moment."""

    def __init__(self, job: dict[str, Any], channel: Channel) -> None:
        self.job = job
        self.channel = channel
        self.process, self.parent = os.getpid(), os.getppid()
        self.output = Path(job["output"])
        self.meter = PhasedMeter() if job.get("tallies_by_phase") else StoppableMeter()
        self.curve: list[dict[str, Any]] = []
        self.peak_private = 0
        self.from_file = False
        self.tie_break: str | None = None
        self.writing = threading.Lock()
        self.begun = False
        self.told = threading.Event()
        """Whether the rest of the job has come: what the words are, and what to make of them."""
        self.started = clock()
        self.before = account()

    def run(self) -> dict[str, Any]:
        """Call the target; every way it can end is an answer."""
        try:
            target = resolve(self.job["target"])
            prepare(target)
            self.channel.witnessed(IMPORTED)
            if self.job["kind"] == "import":
                return {"status": "skipped", "reason": "it was to be imported only"}
            self.told.wait()
            return self.count(target) if self.job["kind"] == "count" else self.train(target)
        except Unavailable as reason:
            return {"status": "skipped", "reason": str(reason)[:LONGEST_REASON] or "it does not say why"}
        except MemoryError:
            return {"status": "out_of_memory", "reason": "an allocation failed under the memory limit"}
        except (InvalidText, LeftOut) as error:
            return {**failed(error, ""), "reason": str(error), "offset": error.offset}
        except (OSError, ValueError) as error:
            return failed(error, "")
        except BaseException as error:  # whatever a trainer raises, SystemExit too, is a result
            return failed(error, f"{type(error).__name__}: ", place_of(error))

    def count(self, counter: Any) -> dict[str, Any]:
        offered = {"threads": self.job["threads"]}
        positional, keywords = arguments_for(counter, [self.corpus()], self.meter, offered, self.job["params"])
        self.begin()
        word_counts = counter(*positional, **keywords)
        self.mark()
        if self.meter.told:
            return {**self.figures("threads" in keywords), "status": "stopped"}  # it has not counted all there is
        expect_word_counts(word_counts)
        answer = self.figures("threads" in keywords, word_store.seal(word_counts))
        answer["words_done"] = len(word_counts)
        word_store.write_columns(self.output / "words", word_counts)
        return answer

    def train(self, trainer: Any) -> dict[str, Any]:
        offered = {"threads": self.job["threads"], "min_count": self.job["min_count"]}
        self.tie_break = own_tie_break(trainer) if self.job["tie_break"] == OWN else self.job["tie_break"]
        if self.job["tie_break"] != OWN:
            offered["tie_break"] = TieBreak(self.job["tie_break"])
        if (extending := self.job.get("extending")) is not None:
            offered["inherited"] = merges_from_bytes(Path(extending["merges"]).read_bytes())
            offered["inheriting"], offered["veto"] = extending["inheriting"], vetoes.named(extending["veto"])
        self.from_file = reads_corpus(trainer)
        if self.from_file and self.job["corpus"] is None:
            raise Unavailable("it reads text by itself, and here are only words with their counts")
        given = self.corpus() if self.from_file else word_store.read(Path(self.job["words"]))[0]
        asked = [given, self.job["num_merges"]]
        positional, keywords = arguments_for(trainer, asked, self.meter, offered, self.job["params"])
        for name, plain in (("tie_break", TieBreak.GREATEST_BYTES), ("min_count", 1)):
            if name not in keywords and offered.get(name, plain) != plain:
                raise ValueError(
                    f"{self.job['target']} takes no {name}, so it cannot run with another than the default"
                )
        if extending is not None and "inherited" not in keywords:
            raise Unavailable(f"{self.job['target']} takes no inherited, so it cannot go on from merges")
        self.begin()
        merges = trainer(*positional, **keywords)
        self.mark()
        content = packed_or_refused(merges)  # before the clock is read: nothing is left to be done behind it
        answer = self.figures("threads" in keywords, hashlib.sha256(content).hexdigest())
        expect_merges(merges)
        answer["packed_merges"] = content
        answer["merges_done"] = len(merges)
        answer["feeding"] = self.feeding()
        if self.meter.told and len(merges) < self.job["num_merges"]:
            answer["status"] = "stopped"
        return answer

    def feeding(self) -> dict[str, Any] | None:
        """How a trainer that reads the file says that it is fed."""
        if not self.from_file:
            return None
        return feeding_of(resolve(self.job["target"]), self.corpus(), self.job["params"])

    def corpus(self) -> Corpus:
        return Corpus(**{**self.job["corpus"], "special_tokens": tuple(self.job["corpus"]["special_tokens"])})

    def begin(self) -> None:
        """The clock starts here: importing and mapping are nobody's work."""
        self.before = account()
        self.channel.witnessed(BEGIN)
        self.started = clock()
        self.channel.say(BEGUN)
        self.meter._mark = time.perf_counter()
        self.begun = True
        self.mark()

    def mark(self) -> None:
        """Show a program that counts instructions where the call begins and ends.

        It watches for a function of the C library that nothing else calls.
        """
        if self.job.get("counts_instructions"):
            os.ctermid()

    def figures(self, takes_threads: bool | None = None, digest: str | None = None) -> dict[str, Any]:
        """What has been measured up to now. Raises ValueError for seconds or tallies that are no numbers.

        The parent hears the digest of the merges or words with the end of the call, so that they cannot become others
        later.
        """
        self.meter.settle()
        spent_in = dict(self.meter.seconds)  # before the clock is read: a call that is stopped goes on meanwhile
        self.end_a_copy()
        end = END if digest is None else b"%b %b" % (END, digest.encode())
        counted = since(self.before)
        total = clock() - self.started
        self.channel.witnessed(end)
        memory = memory_status()
        self.peak_private = max(self.peak_private, memory["RssAnon"])
        seconds = {phase: seconds_of(phase, float(spent)) for phase, spent in spent_in.items()}
        tallies = {name: tally_of(name, int(number)) for name, number in self.meter.tallies.items()}
        replaced = time.perf_counter is not clock
        return {
            "status": "rejected" if replaced else "ok",
            "reason": "time.perf_counter was replaced while it ran, so its phases mean nothing" if replaced else None,
            "seconds": seconds,
            "total": total,
            "tallies": tallies,
            "curve": [*self.curve, self.point()],
            "last_phase": self.meter.last_phase,
            "peak_rss_bytes": memory["VmHWM"],
            "peak_private_bytes": self.peak_private,
            "laps": self.meter.laps,
            "cpu_seconds": counted.pop("cpu_seconds"),
            "counted": counted,
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
            "takes_threads": takes_threads,
            "from_file": self.from_file,
            "tie_break": self.tie_break,
        }

    def end_a_copy(self) -> None:
        """A forked child that comes back from the call is not the process that is measured."""
        if os.getpid() != self.process:
            os._exit(1)

    def write(self, answer: dict[str, Any]) -> None:
        """Leave the answer, whole, the merges before it; only the first of two threads that want to gets to."""
        self.end_a_copy()
        self.writing.acquire()
        merges = answer.pop("packed_merges", None)
        if merges is not None:
            (self.output / "merges").write_bytes(merges)
        partial = self.output / "answer.partial"
        partial.write_text(json.dumps(answer))
        partial.rename(self.output / "answer.json")

    def point(self) -> dict[str, Any]:
        merges = len(self.meter.followed)
        if not self.from_file:  # whose progress is of the bytes that it reads before it merges
            merges = merges or self.meter.done
        return {"merges": merges, "seconds": dict(self.meter.seconds), "total": clock() - self.started}

    def watch(self, control: int) -> None:
        """Until the process ends: report, sample, and see whether the parent says stop or is gone."""
        stop_by = None
        listening = [control]
        heard = b""
        # While instructions are counted it only listens: whenever it looked, the trainer's own count would change.
        pause = None if self.job.get("counts_instructions") else 0.1
        while True:
            try:
                if select.select(listening, [], [], pause)[0]:
                    block = os.read(control, 65536)
                    if not block:
                        os.killpg(0, signal.SIGKILL)
                    *lines, heard = (heard + block).split(b"\n")
                    for line in lines:
                        if line == b"stop":
                            pause = 0.1
                            self.meter.stopping = True
                            stop_by = clock() + (SECONDS_TO_STOP if self.meter.asked else 0)
                        elif not self.told.is_set():
                            self.job.update(json.loads(line))
                            self.told.set()
            except OSError:  # a trainer has closed it
                listening, pause = [], 0.1
            if os.getppid() != self.parent:
                os.killpg(0, signal.SIGKILL)
            if stop_by is not None and clock() >= stop_by:
                self.write(self.stopped())
                os._exit(0)
            with contextlib.suppress(Exception):  # what it follows is a trainer's own
                self.sample()

    def stopped(self) -> dict[str, Any]:
        """The answer for a call that goes on, with the merges made so far; one that has not begun has no figures."""
        if not self.begun:
            return {"status": "stopped", "reason": None}
        answer = {**self.figures(), "status": "stopped"}
        if self.job["kind"] == "train":
            with contextlib.suppress(Exception):
                answer["feeding"] = self.feeding()
            merges = snapshot(self.meter.followed)
            with contextlib.suppress(ValueError):  # it follows something else than merges: then there are none
                expect_merges(merges)
                answer.update(packed_merges=packed(merges), merges_done=len(merges))
        return answer

    def sample(self) -> None:
        point = self.point()
        is_reading = self.from_file and not point["merges"]
        self.channel.say(b"%d bytes" % self.meter.done if is_reading else b"%d" % point["merges"])
        self.peak_private = max(self.peak_private, memory_status()["RssAnon"])
        if not self.curve or point["merges"] > self.curve[-1]["merges"]:
            self.curve.append(point)
        if len(self.curve) >= CURVE_POINTS:
            del self.curve[1::2]


def snapshot(followed: Any) -> Any:
    """What a trainer has appended up to now, which it may append to meanwhile."""
    return Merges(followed.ids[:]) if type(followed) is Merges else list(followed)


def packed_or_refused(merges: Any) -> bytes:
    """The merges as bytes. Raises ValueError, which says what is wrong, for what cannot be packed."""
    try:
        return packed(merges)
    except ValueError:
        expect_merges(merges)
        raise


def seconds_of(phase: str, spent: float) -> float:
    """What a phase took; less than nothing only by as much as two clocks may differ."""
    if not -CLOCK_ERROR < spent < math.inf:
        raise ValueError(f"it gave its meter {spent} seconds of {phase}")
    return max(spent, 0.0)


def tally_of(name: str, number: int) -> int:
    if not 0 <= number < LARGEST_TALLY:
        shown = number if -LARGEST_TALLY < number < LARGEST_TALLY else "over 2**63"
        raise ValueError(f"it tallied {shown} for {name}; a tally is a whole number, 0 or more")
    return number


def place_of(error: BaseException) -> str:
    """Where in the target's own code it was raised, without folders; nothing where it was raised on the way there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(("<", HERE, IMPORTING))]
    return f" ({own[-1].filename.rpartition(os.sep)[2]}:{own[-1].lineno}, in {own[-1].name})" if own else ""


def failed(error: BaseException, prefix: str, place: str = "") -> dict[str, Any]:
    """The answer for an exception; its traceback goes to standard error, whatever a trainer did to sys.stderr."""
    with contextlib.suppress(BaseException):  # its own __str__ may raise anything, and standard error be closed
        told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        os.write(2, told.encode(errors="replace"))
    try:
        message = str(error)
    except BaseException:  # whatever its own __str__ raises
        message = "an exception that cannot be put into words"
    return {"status": "error", "reason": (shortened(prefix + message) if message else type(error).__name__) + place}


if __name__ == "__main__":
    main()
