"""Trainers and counters that misbehave as guests of a process, each in one way, most of them after
honest work.

Whoever measures survives them all, and no false figure is believed: tests/measure/tricks.toml says
how the measurement of each ends. The others are for tests of their own.
"""

import contextlib
import ctypes
import json
import marshal
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.worker import exchange
from harness.worker.exchange import packed, unpacked
from variants.contract import NULL_METER, Corpus, Merge, Meter, Unavailable, WordCounts
from variants.counting.pretokenize import serial
from variants.heap import train as honest

A_LONG_TIME = 600.0
ANSWER = (
    '{"status": "ok", "reason": null, "interpreter": "CPython 3.99", "seconds": {}, "tallies": {}, '
    '"takes_threads": null, "total": 0.001, "merges_done": 8}'
)
"""As good as a real one, but for its time."""
JOB = Path(os.environ.get("BPE_HARNESS_JOB", "."))
Trainer = Callable[..., Any]


def first(*steps: Callable[[], Any]) -> Trainer:
    """A trainer that does something, and then learns the right merges."""

    def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        for step in steps:
            step()
        return honest(word_counts, num_merges)

    return train


def returning(answer: Callable[[list[Merge], Meter], Any]) -> Trainer:
    """A trainer that returns something made of the right merges, and may report to its meter."""

    def train(
        word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
    ) -> Any:
        return answer(honest(word_counts, num_merges, **options), meter)

    return train


def work(seconds: float) -> None:
    """Use that much of the CPU's time, by the clock of the thread: other threads of the
    process work as well.
    """
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))


# What it does to the words that it was given, which other trainers and the judge need


def folder_of_its_words() -> Path:
    """Where the words of this process are mapped from."""
    mapped = Path("/proc/self/maps").read_text().split()
    return next(Path(path).parent for path in mapped if path.endswith("/offsets"))


removes_its_words = first(lambda: shutil.rmtree(folder_of_its_words()))


def replaces_its_words(_: WordCounts, num_merges: int) -> list[Merge]:
    """Leave other words with a seal that fits them, and the right merges of those."""
    folder, others = folder_of_its_words(), WordCounts.from_items([(b"zyxwvutsrqponm", 9)])
    shutil.rmtree(folder)
    exchange.write_words(folder, others)
    return honest(others, num_merges)


# How it ends, what it returns, how it behaves

segfaults = first(lambda: ctypes.string_at(0))
ends_at_once = first(lambda: os._exit(7))
calls_sys_exit = first(lambda: sys.exit("no more today"))
raises_a_path = first(lambda: Path(__file__).with_name("missing.bin").open())
takes_two = first()
leaves_a_thread = first(lambda: threading.Thread(target=time.sleep, args=(A_LONG_TIME,)).start())
closes_standard_output = first(lambda: sys.stdout.close())
returns_none = returning(lambda merges, _: None)
returns_one_too_few = returning(lambda merges, _: merges[:-1])


def raises(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise LookupError("nothing here")


def is_unavailable(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise Unavailable("needs a library that is not there; install it")


@first
def prints() -> None:
    print('{"status": "ok"}\n' * 1000, flush=True)  # noqa: T201
    os.write(1, b"\xff\xfe garbage " * 1000)
    sys.stderr.write("and on standard error\n")


def takes_threads(word_counts: WordCounts, num_merges: int, *, threads: int) -> list[Merge]:
    assert threads == 2
    return honest(word_counts, num_merges)


# Its clock and its account


def set_clock(rate: float, both: bool = True) -> None:
    """Make the clock run at another rate from now on, for the meter and, with `both`, for the
    worker.
    """
    from harness.worker import call

    clock, now = time.perf_counter, time.perf_counter()
    time.perf_counter = lambda: now + (clock() - now) * rate
    if both:
        call.clock = time.perf_counter


def say(words: bytes, then: float = 0.0) -> None:
    """Write to whatever is open, the line to the harness among it, and wait."""
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, words)
    time.sleep(then)


speeds_the_clock_up = first(lambda: set_clock(1000, both=False))
closes_every_descriptor = first(lambda: os.closerange(3, 256))
shows_less_time = first(lambda: set_clock(0.01), lambda: time.sleep(0.4))
turns_both_clocks_back = first(lambda: set_clock(0.1), lambda: time.sleep(0.2))
halts_its_guard = first(lambda: os.kill(os.getppid(), signal.SIGSTOP), lambda: time.sleep(0.06))
announces_its_end = first(lambda: say(b"end\n", 0.1), lambda: say(b"begin\n", 0.1))
"""Reports that it started later and ended sooner than it did."""


def ends_its_guard(word_counts: WordCounts, num_merges: int) -> None:
    """Leaves the right merges and an answer of its own before."""
    (JOB / "merges").write_bytes(packed(honest(word_counts, num_merges)))
    (JOB / "answer.json").write_text(ANSWER)
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)


# Work that is not done in its call, or not by it


def when(module: Any, name: str, step: Callable[[], Any]) -> None:
    """Do something whenever a function of a module is called."""
    function = getattr(module, name)

    def replacement(*arguments: Any) -> Any:
        step()
        return function(*arguments)

    setattr(module, name, replacement)


def works_when_its_merges_are_packed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns at once what is not yet learned, and works while it is packed."""
    merges: list[Merge] = [(b"", b"")] * num_merges

    def learn() -> None:
        work(0.2)
        merges[:] = honest(word_counts, num_merges)

    when(marshal, "dumps", learn)
    return merges


def learns_while_its_answer_is_written(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns what is not learned, and leaves what is when the clock has been read."""

    def learn() -> None:
        (JOB / "merges").write_bytes(packed(honest(word_counts, num_merges)))

    when(json, "dumps", learn)
    return [(b"", b"")] * num_merges


works_behind_its_call = first(lambda: when(json, "dumps", lambda: work(0.3)))
BUSY = "import time\nwhile time.process_time() < 0.25: pass\nprint(flush=True)"
ORPHANING = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], env={}, start_new_session=True)
"""


def orphan(program: str, *arguments: str) -> str:
    """Start a program without parent, session and environment, for which nobody waits; return its
    first line.
    """
    command = [sys.executable, "-c", ORPHANING, program, *arguments]
    with subprocess.Popen(command, env={}, stdout=subprocess.PIPE, text=True) as between:
        assert between.stdout is not None
        return between.stdout.readline()


lets_an_orphan_work = first(lambda: orphan(BUSY))


@first
def hides_its_memory() -> None:
    """Has the kernel forget the most that it held."""
    held = b"x" * (110 << 20)
    time.sleep(0.4)
    del held
    Path("/proc/self/clear_refs").write_text("5")


def keeps_its_merges_on_disk(word_counts: WordCounts, num_merges: int) -> Any:
    """Answers from a file that an earlier process has left, if it finds one, where programs leave
    files.
    """
    data = (os.environ["XDG_CACHE_HOME"], os.environ["XDG_DATA_HOME"])
    folders = (".", Path.home(), tempfile.gettempdir(), *data)
    places = [Path(folder, "kept-merges") for folder in folders]
    for place in places:
        if place.exists():
            return unpacked(place.read_bytes())

    work(0.3)
    merges = honest(word_counts, num_merges)
    for place in places:
        place.write_bytes(packed(merges))
    return merges


def searches_for_merges(
    word_counts: WordCounts, num_merges: int, *, meter: Meter = NULL_METER
) -> list[Merge]:
    """Right, and looks for the merges of an earlier trainer in files, and in what other processes
    have open.
    """
    merges = honest(word_counts, num_merges)
    wanted = packed(merges)[:40]
    searched = map(Path, os.environ["UNRULY_SEARCH"].split(os.pathsep))

    places = [*Path("/proc").glob("[0-9]*/fd/*")]
    for root in (*searched, *Path("/tmp").glob("bpe-harness-*")):
        places += root.rglob("*")
    for place in places:
        with contextlib.suppress(OSError):
            if place.is_file() and place.stat().st_size < 10_000_000:
                content = place.read_bytes()
                meter.tally("searched", 1)
                meter.tally("found", int(wanted in content))
    return merges


# Goes on and on


def hangs_here() -> None:
    time.sleep(A_LONG_TIME)


def hold_the_lock() -> None:
    """Let nothing else run in the process, as compiled code may."""
    ctypes.PyDLL(None).sleep(int(A_LONG_TIME))


def leave_number(process: int | None = None) -> None:
    """Leave the number of a process, by default this one, for the test."""
    with Path(os.environ["UNRULY_CHILD"]).open("a") as file:
        file.write(f"{process or os.getpid()}\n")


def python(program: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], **options)


def start(**options: Any) -> None:
    """Start a child process that would outlive everybody."""
    leave_number(python(f"import time; time.sleep({A_LONG_TIME})", **options).pid)


hangs = first(hangs_here)
hears_nothing_beside_a_stranger = first(
    lambda: start(env={}, start_new_session=True),
    lambda: os.closerange(3, 256),
    leave_number,
    hold_the_lock,
)
hangs_and_will_not_be_ended = first(
    lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    hold_the_lock,
)


@first
def hangs_the_first_time() -> None:
    """Starts a child and hangs, unless an earlier process has."""
    if not Path(os.environ["UNRULY_CHILD"]).exists():
        start()
        hangs_here()


leaves_a_child_in_a_session_of_its_own = first(lambda: start(start_new_session=True))
leaves_a_child_and_hangs = first(start, hangs_here)


def without_end(step: Callable[[], Any], pause: float = 0.0) -> Trainer:
    """A trainer that repeats a step for ever, and keeps what each returns."""

    def repeat() -> None:
        kept = []
        while True:
            kept.append(step())
            time.sleep(pause)

    return first(repeat)


HOLDS = f"kept = b'x' * (20 << 20); import time; time.sleep({A_LONG_TIME})"
MORE = b"there is more where this came from\n" * 10_000
talks_without_end = without_end(lambda: say(b"12\nbegin\nend\n\xff" * 100))
prints_without_end = without_end(lambda: os.write(1, MORE))
allocates_without_end = without_end(lambda: b"x" * (16 << 20), 0.01)
lets_children_allocate = without_end(lambda: python(HOLDS), 0.05)
allocates_at_once = returning(lambda merges, _: [(b"a" * (1 << 40), b"b")])


@first
def multiplies() -> None:
    """Processes that start processes, each in a session of its own, as long as there are fewer than
    some.
    """
    number = multiprocessing.Value("i", 1)
    while True:
        with number.get_lock():
            few = number.value < 60
            number.value += few
        if few and os.fork() == 0:
            os.setsid()
            leave_number()
        time.sleep(0.001)


# Slow, stopped, or special in another way

SPINS = "while True: pass"
sleeps = first(lambda: time.sleep(0.5))
starts_a_child = first(lambda: subprocess.run(["true"], check=True))


works_on_the_first_processor = first(
    lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}), lambda: work(0.2)
)


@first
def works_in_a_thread() -> None:
    worker = threading.Thread(target=work, args=(0.1,))
    worker.start()
    worker.join()


def works_and_reports(word_counts: WordCounts, num_merges: int, meter: Meter) -> list[Merge]:
    work(0.25)
    meter.lap("init")
    return honest(word_counts, num_merges, meter)


@returning
def hangs_after_some_merges(right: list[Merge], meter: Meter) -> None:
    meter.follow(right[:5])
    time.sleep(A_LONG_TIME)


@returning
def stops_on_request(right: list[Merge], meter: Meter) -> list[Merge]:
    """Asks whether to go on, as native code does, and returns what it has made when it is not
    to.
    """
    while meter.progress(3):
        time.sleep(0.02)
    return right[:3]


@returning
def shows_progress(right: list[Merge], meter: Meter) -> list[Merge]:
    for done in range(len(right)):
        meter.progress(done)
        time.sleep(0.12)
    return right


@first
def steps_by_address() -> None:
    """Takes more steps the further back its memory lies, as maps that hash by addresses take other
    ones.
    """
    sum(range(ctypes.addressof(ctypes.create_string_buffer(20_000)) // 4096 % 64 * 1000))


def reads_slowly_without_letting_go(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Right after a second for each 4,000 bytes, in which it holds the interpreter's lock, so it
    cannot report anything if it is stopped.
    """
    ctypes.PyDLL(None).usleep(Path(corpus.path).stat().st_size * 250)
    return honest(serial(corpus), num_merges)


def is_killed_before_it_reads(corpus: Corpus, num_merges: int) -> list[Merge]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def trains_from_a_file(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    silent: bool = False,
    **options: Any,
) -> list[Merge]:
    """Reads the corpus itself, and reports its phases unless it is to be silent."""
    own = NULL_METER if silent else meter
    return honest(serial(corpus, own), num_merges, own, **options)


# Counters


def counter_that_stops_on_request(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    """Returns the words it has when it is not to go on, which are not all."""
    while meter.progress(1):
        time.sleep(0.02)
    return WordCounts.from_items([(b"few", 1)])


def counter_of_another_file(corpus: Corpus) -> WordCounts:
    """Count another text that has the path of the corpus for a moment."""
    path = Path(corpus.path)
    away = path.rename(f"{path}.away")
    path.write_text("another text")
    counted = serial(corpus)
    away.replace(path)
    return counted


def counter_that_counts_when_its_words_are_written(corpus: Corpus) -> WordCounts:
    """Returns columns that hold nothing yet; its clock has been read when they are written."""
    write = exchange.write_columns
    exchange.write_columns = lambda folder, word_counts: write(folder, serial(corpus))
    return WordCounts.from_columns([b"nix", b"nixes"], [0, 0])


def counter_that_forges_its_manifest(corpus: Corpus) -> WordCounts:
    """Claims in a manifest of its own that there are a million words."""
    words = JOB / "words"
    words.mkdir()
    (words / "manifest.json").write_text('{"words": 2, "pre_tokens": 1000000}')
    return serial(corpus)


def counter_whose_offsets_fall(corpus: Corpus) -> WordCounts:
    offsets, counts = array("q", [0, 9, 5]), array("Q", [2, 1])
    return WordCounts(memoryview(b"lower"), memoryview(offsets), memoryview(counts))
