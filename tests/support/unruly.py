"""Trainers and counters that misbehave as guests of a process, each in one way, most of them after
honest work.

`TRICKS` holds how the measurement of each ends. Whoever measures survives them all, and no false
figure is believed. Those without an outcome are for tests of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import marshal
import multiprocessing
import os
import resource
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
from typing import Any, NamedTuple

from harness.worker import exchange
from harness.worker.exchange import packed, unpacked
from variants.contract import NULL_METER, Corpus, Merge, Meter, Unavailable, WordCounts
from variants.counting.pretokenize import serial
from variants.heap import train as honest

A_LONG_TIME = 600.0
PLACE = r" \(\w+\.py:\d+, in .+\)"
NO_ANSWER = "its answer is invalid: "
JOB = Path(os.environ.get("BPE_HARNESS_JOB", "."))
Trainer = Callable[..., Any]


class Outcome(NamedTuple):
    """How a measurement ends: its status, a pattern of its reason, figures that it exceeds, a text
    that it prints.
    """

    status: str
    reason: str = "None"
    least: dict[str, float] = {}  # noqa: RUF012 - of a tuple
    slow: bool = False
    printed: str = ""


def ok(slow: bool = False, printed: str = "", **least: float) -> Outcome:
    return Outcome("ok", "None", least, slow, printed)


error, rejected = functools.partial(Outcome, "error"), functools.partial(Outcome, "rejected")
OUTCOMES: dict[Trainer, Outcome] = {}


def trick(outcome: Outcome) -> Callable[[Trainer], Trainer]:
    """State the outcome of a trick."""

    def register(trainer: Trainer) -> Trainer:
        OUTCOMES[trainer] = outcome
        return trainer

    return register


def first(*steps: Callable[[], Any], ends: Outcome | None = None) -> Trainer:
    """A trainer that does something, and then learns the right merges."""

    def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        for step in steps:
            step()
        return honest(word_counts, num_merges)

    return trick(ends)(train) if ends else train


def returning(answer: Callable[[list[Merge]], Any], ends: Outcome | None = None) -> Trainer:
    """A trainer that returns something made of the right merges."""

    def train(word_counts: WordCounts, num_merges: int) -> Any:
        return answer(honest(word_counts, num_merges))

    return trick(ends)(train) if ends else train


def forging(*steps: Callable[[], Any], ends: Outcome) -> Trainer:
    """A trainer that leaves the right merges and an answer of its own, does something, and ends its
    process.
    """

    def train(word_counts: WordCounts, num_merges: int) -> None:
        (JOB / "merges").write_bytes(packed(honest(word_counts, num_merges)))
        (JOB / "answer.json").write_text(answer_text())
        for step in steps:
            step()
        os._exit(0)

    return trick(ends)(train)


def answer_text() -> str:
    """An answer as good as a real one, but for its time."""
    empty: dict[str, Any] = {"seconds": {}, "tallies": {}}
    others = {"status": "ok", "reason": None, "interpreter": "CPython 3.99", "takes_threads": None}
    return json.dumps({**empty, **others, "total": 0.001, "merges_done": 8})


def work(seconds: float) -> None:
    """Use that much of the CPU's time, by the clock of the thread: other threads of the
    process work as well.
    """
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))


def throw(error: BaseException) -> None:
    raise error


def makes_rubbish_slowly(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Take a hundredth of a second for each merge, and make none that is right."""
    time.sleep(num_merges / 100)
    return [(b"l", b"o")] * num_merges


def starts_slowly(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Take as long for few merges as for many, but for the last thousand."""
    time.sleep(0.06 if num_merges < 1000 else A_LONG_TIME)
    return honest(word_counts, num_merges)


# What it does to the words that it was given, which other trainers and the judge need


def folder_of_its_words() -> Path:
    """Where the words of this process are mapped from."""
    mapped = Path("/proc/self/maps").read_text().split()
    return next(Path(path).parent for path in mapped if path.endswith("/offsets"))


def removes_its_words(_: WordCounts, num_merges: int) -> list[Merge]:
    shutil.rmtree(folder_of_its_words())
    return [(b"l", b"o")] * num_merges


def replaces_its_words(_: WordCounts, num_merges: int) -> list[Merge]:
    """Leave other words with a seal that fits them, and the right merges of those."""
    folder, others = folder_of_its_words(), WordCounts.from_items([(b"zyxwvutsrqponm", 9)])
    shutil.rmtree(folder)
    exchange.write_words(folder, others)
    return honest(others, num_merges)


# How it ends, what it returns, how it behaves


WITHOUT_AN_ANSWER = "its process ended without an answer, exit status "
UNAVAILABLE = "needs a library that is not there; install it"
segfaults = first(
    lambda: ctypes.string_at(0), ends=Outcome("killed", "its process was ended by SIGSEGV")
)
ends_at_once = first(lambda: os._exit(7), ends=error(WITHOUT_AN_ANSWER + "7"))
calls_sys_exit = first(
    lambda: sys.exit("no more today"), ends=error("SystemExit: no more today" + PLACE)
)
is_unavailable = first(
    lambda: throw(Unavailable(UNAVAILABLE)), ends=Outcome("skipped", UNAVAILABLE)
)
raises_a_path = first(lambda: Path(__file__).with_name("missing.bin").open())
raises_a_value_error = first(
    lambda: throw(ValueError("no words")), ends=error("ValueError: no words" + PLACE)
)
returns_none = returning(lambda merges: None, error("it returned NoneType, not a list of merges"))
returns_one_too_few = returning(lambda merges: merges[:-1])
returns_the_last_twice = returning(lambda merges: [*merges[:-1], (b"\x00", b"\xff")])
removes_its_folder = first(lambda: shutil.rmtree(JOB), ends=error(WITHOUT_AN_ANSWER + "1"))
takes_two = first(ends=ok(slow=True))
leaves_a_thread = first(
    lambda: threading.Thread(target=time.sleep, args=(A_LONG_TIME,)).start(), ends=ok()
)
closes_standard_output = first(lambda: sys.stdout.close(), ends=ok(slow=True))


@trick(rejected(r"its phases claim 16.7 min of the .*"))
def hands_over_too_much(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    meter.add("update", 1000.0)
    return honest(word_counts, num_merges)


@trick(
    Outcome(
        "error", r"LookupError: nothing here \(unruly\.py:\d+, in raises\)", printed="in raises"
    )
)
def raises(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise LookupError("nothing here")


@trick(ok(printed="and on standard error\n"))
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


REPLACED = "time.perf_counter was replaced while it ran, so its phases mean nothing"
UNHEARD = "its parent has not heard when its call began and ended"
IN_VAIN = r"its clock shows [\d.]+ [mµ]?s, its parent saw [\d.]+ m?s pass"
speeds_the_clock_up = first(lambda: set_clock(1000, both=False), ends=rejected(REPLACED))
closes_every_descriptor = first(lambda: os.closerange(3, 256), ends=rejected(UNHEARD, slow=True))
shows_less_time = first(lambda: set_clock(0.01), lambda: time.sleep(0.4), ends=rejected(IN_VAIN))
shows_more_time = first(
    lambda: set_clock(100), lambda: time.sleep(0.1), ends=rejected(IN_VAIN, slow=True)
)
turns_both_clocks_back = first(lambda: set_clock(0.1), lambda: time.sleep(0.2), ends=ok(total=0.18))
shows_less_cpu_time = first(
    lambda: setattr(resource, "getrusage", lambda _: None),
    lambda: work(0.25),
    ends=ok(cpu_seconds=0.2),
)
halts_its_guard = first(
    lambda: os.kill(os.getppid(), signal.SIGSTOP), lambda: time.sleep(0.06), ends=ok(total=0.05)
)
forges_its_answer = forging(lambda: time.sleep(0.5), ends=rejected(UNHEARD))
ends_its_guard = forging(
    lambda: os.kill(os.getppid(), signal.SIGKILL),
    ends=rejected("its guard ended before it, so its time is not known"),
)


def say(words: bytes) -> None:
    """Write to whatever is open: the line to the harness is among it."""
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, words)


announces_its_end = first(
    *(
        lambda: say(b"end\n"),
        lambda: time.sleep(0.1),
        lambda: say(b"begin\n"),
        lambda: time.sleep(0.1),
    ),
    ends=ok(total=0.15),
)
"""Reports that it started later and ended sooner than it did."""


# Work that is not done in its call, or not by it


def when(module: Any, name: str, *steps: Callable[[], Any]) -> None:
    """Do something whenever a function of a module is called."""
    function = getattr(module, name)

    def replacement(*arguments: Any) -> Any:
        for step in steps:
            step()
        return function(*arguments)

    setattr(module, name, replacement)


@trick(ok(total=0.15))
def works_when_its_merges_are_packed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns at once what is not yet learned, and works while it is packed."""
    merges: list[Merge] = [(b"", b"")] * num_merges
    when(
        marshal,
        "dumps",
        lambda: work(0.2),
        lambda: merges.__setitem__(slice(None), honest(word_counts, num_merges)),
    )
    return merges


@trick(rejected("its merges are not those that it had when its call returned"))
def learns_while_its_answer_is_written(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns nothing, and puts into the answer what it learned when the clock had been read."""
    dumps = json.dumps

    def learn_first(answer: dict[str, Any]) -> str:
        (JOB / "merges").write_bytes(packed(honest(word_counts, num_merges)))
        return dumps({**answer, "merges_done": num_merges})

    json.dumps = learn_first  # type: ignore[assignment]
    return []


AFTER_ITS_CALL = r"[\d.]+ m?s of CPU time after its call; at most [\d.]+ m?s is allowed"
works_behind_its_call = first(
    lambda: when(json, "dumps", lambda: work(0.3)), ends=rejected(AFTER_ITS_CALL, slow=True)
)
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


lets_an_orphan_work = first(lambda: orphan(BUSY), ends=ok(cpu_seconds=0.2))


@trick(ok(peak_rss_bytes=100 << 20, slow=True))
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
    folders = [
        ".",
        str(Path.home()),
        tempfile.gettempdir(),
        os.environ["XDG_CACHE_HOME"],
        os.environ["XDG_DATA_HOME"],
    ]
    places = [Path(folder) / "kept-merges" for folder in folders]
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
    roots = [
        *map(Path, os.environ["UNRULY_SEARCH"].split(os.pathsep)),
        *Path("/tmp").glob("bpe-harness-*"),
    ]
    files = (
        Path(folder, name) for root in roots for folder, _, names in os.walk(root) for name in names
    )
    for place in [*files, *Path("/proc").glob("[0-9]*/fd/*")]:
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


def start(**options: Any) -> None:
    """Start a child process that would outlive everybody."""
    leave_number(
        subprocess.Popen(
            [sys.executable, "-c", f"import time; time.sleep({A_LONG_TIME})"], **options
        ).pid
    )


hangs = first(hangs_here)
hangs_with_every_descriptor_closed = first(lambda: os.closerange(3, 256), leave_number, hangs_here)
holds_the_lock_beside_a_stranger = first(
    lambda: start(env={}, start_new_session=True), leave_number, hold_the_lock
)
hangs_and_will_not_be_ended = first(
    lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    hold_the_lock,
)


@first
def talks_without_end() -> None:
    while True:
        say(b"12\nbegin\nend\n\xff" * 100)


@first
def prints_without_end() -> None:
    while True:
        os.write(1, b"there is more where this came from\n" * 10_000)


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


def grows(allocate: Callable[[], Any], pause: float = 0.01) -> Trainer:
    """A trainer that takes memory without end."""

    def do() -> None:
        kept = []
        while True:
            kept.append(allocate())
            time.sleep(pause)

    return first(do)


HOLDS = "kept = b'x' * ({} << 20); import time; time.sleep(600)"
allocates_without_end = grows(lambda: b"x" * (16 << 20))
lets_children_allocate = grows(
    lambda: subprocess.Popen([sys.executable, "-c", HOLDS.format(20)]), 0.05
)
allocates_at_once = returning(lambda merges: [(b"a" * (1 << 40), b"b")])
leaves_a_child_in_a_session_of_its_own = first(lambda: start(start_new_session=True))
leaves_a_child_and_hangs = first(start, hangs_here)


# Slow, stopped, or special in another way


SPINS = "while True: pass"
sleeps = first(lambda: time.sleep(0.5))


def use_the_first_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


works_on_the_first_processor = first(use_the_first_processor, lambda: work(0.2))


def works_in_a_thread(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    worker = threading.Thread(target=work, args=(0.1,))
    worker.start()
    worker.join()
    return honest(word_counts, num_merges)


starts_a_child = first(lambda: subprocess.run(["true"], check=True))


def waits_beside_its_own_work(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    use_the_first_processor()
    with subprocess.Popen([sys.executable, "-c", SPINS]) as process:
        work(0.1)
        process.kill()
    return honest(word_counts, num_merges)


def works_and_reports(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    work(0.25)
    meter.lap("init")
    return honest(word_counts, num_merges, meter)


def tallies_half_a_character(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    meter.tally("\ud800", 3)
    return honest(word_counts, num_merges, meter)


@trick(
    error("it reports the phase 'merge'; phases are read, count, convert, init, copy, max, update")
)
def invents_a_phase(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    meter.lap("merge")
    return honest(word_counts, num_merges)


def hangs_after_some_merges(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    merges = honest(word_counts, min(num_merges, 5))
    meter.follow(merges)
    time.sleep(A_LONG_TIME)
    return merges


def merges_slowly(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    """Right, and at least 0.02 s a merge."""
    merges: list[Merge] = []
    meter.follow(merges)
    for merge in honest(word_counts, num_merges):
        time.sleep(0.02)
        merges.append(merge)
        meter.lap("update")
    return merges


def waits_to_be_ended(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Goes on only while a run has few measurements on disk, so that the run cannot finish before
    it is ended.
    """
    records = Path(os.environ["UNRULY_RECORDS"])
    if records.exists() and records.read_text().count('"kind":"measurement"') >= int(
        os.environ["UNRULY_ENOUGH"]
    ):
        time.sleep(A_LONG_TIME)
    return honest(word_counts, num_merges)


def stops_on_request(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    """Asks whether to go on, as native code does, and returns what it has made when it is not
    to.
    """
    made = min(num_merges, 3)
    while meter.progress(made):
        time.sleep(0.02)
    return honest(word_counts, made)


def shows_progress(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER
) -> list[Merge]:
    for done in range(num_merges):
        meter.progress(done)
        time.sleep(0.12)
    return honest(word_counts, num_merges)


@first
def steps_by_address() -> None:
    """Takes more steps the further back its memory lies, as maps that hash by addresses take other
    ones.
    """
    sum(range(ctypes.addressof(ctypes.create_string_buffer(20_000)) // 4096 % 64 * 1000))


def reads_slowly(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Right, and a second for each 4,000 bytes."""
    time.sleep(Path(corpus.path).stat().st_size / 4000)
    return honest(serial(corpus), num_merges)


def reads_slowly_without_letting_go(corpus: Corpus, num_merges: int) -> list[Merge]:
    """The same, but holds the interpreter's lock, so that it cannot report anything when it is
    stopped.
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


def counter_that_loses_a_word(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    return WordCounts.from_items(list(serial(corpus, meter).items())[1:])


@trick(error("it returned dict, not WordCounts"))
def counter_without_words(corpus: Corpus) -> Any:
    return {b"a": 1}


def counter_that_dies(corpus: Corpus) -> WordCounts:
    os.kill(os.getpid(), signal.SIGKILL)
    return serial(corpus)


def when_words_are_written(instead: Callable[[Callable[..., Any], Path, WordCounts], Any]) -> None:
    """Do this where the measured process writes a counter's words: its clock has been read by
    then.
    """
    write = exchange.write_columns
    setattr(exchange, "write_columns", lambda folder, words: instead(write, folder, words))  # noqa: B010


@trick(rejected("its words are not those that it had when its call returned"))
def counter_that_counts_when_its_words_are_written(corpus: Corpus) -> WordCounts:
    """Returns columns that hold nothing yet."""
    when_words_are_written(lambda write, folder, _: write(folder, serial(corpus)))
    return WordCounts.from_columns([b"nix", b"nixes"], [0, 0])


def counter_that_forges_its_manifest(corpus: Corpus) -> WordCounts:
    """Claims in a manifest of its own that there are a million words."""
    manifest = {
        "format": exchange.FORMAT,
        "words": 2,
        "pre_tokens": 1_000_000,
        "sha256": "0" * 64,
        "sizes": {},
    }
    when_words_are_written(
        lambda write, folder, words: (
            write(folder, words),
            (folder / "manifest.json").write_text(json.dumps(manifest)),
        )
    )
    return serial(corpus)


@trick(error(NO_ANSWER + "its offsets fall"))
def counter_whose_offsets_fall(corpus: Corpus) -> WordCounts:
    return WordCounts(
        memoryview(b"lower"), memoryview(array("q", [0, 9, 5])), memoryview(array("Q", [2, 1]))
    )


TRICKS = {
    name: OUTCOMES[value]
    for name, value in list(globals().items())
    if callable(value) and value in OUTCOMES
}
"""The outcome of each trick, by its name."""
