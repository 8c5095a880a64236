"""Trainers and counters that misbehave as guests of a process: each in one way, most after honest work.

Their merges may well be right. What is tested with them is that whoever measures survives them, and says what happened.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from variants.contract import NULL_METER, Corpus, Merge, Meter, Unavailable, WordCounts
from variants.counting.pretokenize import serial
from variants.heap import train as honest

A_LONG_TIME = 600.0


def doing(something: Callable[[], Any]) -> Callable[[WordCounts, int], list[Merge]]:
    """Does something, and then learns the right merges."""

    def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        something()
        return honest(word_counts, num_merges)

    return train


# Ends.

segfaults = doing(lambda: ctypes.string_at(0))
ends_at_once = doing(lambda: os._exit(7))
ends_well_without_an_answer = doing(lambda: os._exit(0))
kills_itself = doing(lambda: os.kill(os.getpid(), signal.SIGRTMIN + 6))  # a signal that has no name of its own
aborts = doing(os.abort)
cannot_write_files = doing(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))


def calls_sys_exit(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    sys.exit("no more today")


def raises(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise LookupError("nothing here")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a message")


def raises_the_unspeakable(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise Unspeakable


def raises_a_path(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise FileNotFoundError(2, "No such file or directory", str(Path(__file__).with_name("missing.bin")))


def raises_what_is_not_text(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise ValueError("half a character: \udcff")


class Unbearable(BaseException):
    """What happens when it is to be shown is no Exception either."""

    def __str__(self) -> str:
        raise SystemExit(3)


def raises_the_unbearable(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise Unbearable


def raises_a_keyboard_interrupt(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise KeyboardInterrupt


def is_unavailable(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise Unavailable("needs a library that is not there; install it")


def recurses(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return recurses(word_counts, num_merges)


# Goes on and on.

hangs = doing(lambda: time.sleep(A_LONG_TIME))
hangs_without_letting_go = doing(
    lambda: ctypes.PyDLL(None).sleep(int(A_LONG_TIME))
)  # holds the interpreter's lock, as compiled code may


def hangs_after_some_merges(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    merges = honest(word_counts, min(num_merges, 5))
    meter.follow(merges)
    time.sleep(A_LONG_TIME)
    return merges


def merges_slowly(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    """Right, and at least 0.02 s a merge."""
    merges: list[Merge] = []
    meter.follow(merges)
    for merge in honest(word_counts, num_merges):
        time.sleep(0.02)
        merges.append(merge)
        meter.lap("update")
    return merges


def waits_to_be_ended(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Goes on only while a run has few measurements on disk, so that the run cannot finish before it is ended."""
    records = Path(os.environ["UNRULY_RECORDS"])
    if records.exists() and records.read_text().count('"kind":"measurement"') >= int(os.environ["UNRULY_ENOUGH"]):
        time.sleep(A_LONG_TIME)
    return honest(word_counts, num_merges)


def searches_for_merges(word_counts: WordCounts, num_merges: int, *, meter: Meter = NULL_METER) -> list[Merge]:
    """Right, and looks for the merges of an earlier trainer in files, and in what other processes have open."""
    from harness.worker.merges_bytes import merges_to_bytes, packed

    merges = honest(word_counts, num_merges)
    wanted = (merges_to_bytes(merges[:3]), packed(merges)[:40])
    roots = [Path(os.environ["UNRULY_SEARCH"]), *Path("/tmp").glob("bpe-harness-*")]
    places = [path for root in roots for path in root.rglob("*")] + list(Path("/proc").glob("[0-9]*/fd/*"))
    searched = found = 0
    for place in places:
        with contextlib.suppress(OSError):
            if place.is_file() and place.stat().st_size < 10_000_000:
                searched += 1
                content = place.read_bytes()
                found += any(needle in content for needle in wanted)
    meter.tally("searched", searched)
    meter.tally("found", found)
    return merges


def reads_slowly(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Right, and a second for each 4,000 bytes."""
    time.sleep(Path(corpus.path).stat().st_size / 4000)
    return honest(serial(corpus), num_merges)


def reads_slowly_without_letting_go(corpus: Corpus, num_merges: int) -> list[Merge]:
    """The same, but holds the interpreter's lock, so that it cannot say what it is when it is stopped."""
    ctypes.PyDLL(None).usleep(Path(corpus.path).stat().st_size * 250)
    return honest(serial(corpus), num_merges)


def hangs_and_will_not_be_ended(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Deaf to every signal that one can be deaf to."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.PyDLL(None).sleep(int(A_LONG_TIME))
    return []


def hangs_with_every_descriptor_closed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os.closerange(3, 256)
    Path(os.environ["UNRULY_CHILD"]).write_text(str(os.getpid()))
    time.sleep(A_LONG_TIME)
    return []


def lets_go_of_the_interpreter_seldom(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Whoever wants its answer meanwhile waits for a multiplication at every step."""
    while True:
        pow(3, 1_500_000)


def holds_the_lock_beside_a_stranger(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Nothing in its process can run, and its child has left the session and forgotten where it comes from."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep({A_LONG_TIME})"], env={}, start_new_session=True
    )
    Path(os.environ["UNRULY_CHILD"]).write_text(f"{child.pid} {os.getpid()} ")
    ctypes.PyDLL(None).sleep(int(A_LONG_TIME))
    return []


def empties_the_cache(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """As a person may who wants room on the disk while a run goes on."""
    shutil.rmtree(os.environ["UNRULY_CACHE"])
    return honest(word_counts, num_merges)


def talks_without_end(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """To whoever listens, as fast as it can."""
    while True:
        for descriptor in range(3, 32):
            with contextlib.suppress(OSError):
                os.write(descriptor, b"12\nbegin\nend\n\xff" * 100)


def prints_without_end(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    block = b"there is more where this came from\n" * 10_000
    while True:
        os.write(1, block)


def multiplies(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Processes that start processes, each in a session of its own, as long as there are fewer than some."""
    number = multiprocessing.Value("i", 1)
    place = os.environ["UNRULY_CHILD"]
    while True:
        with number.get_lock():
            few = number.value < 60
            number.value += few
        if few and os.fork() == 0:
            os.setsid()
            with open(place, "a") as file:  # noqa: PTH123
                file.write(f"{os.getpid()}\n")
        time.sleep(0.001)


def allocates_without_end(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    kept = []
    while True:
        kept.append(b"x" * (16 << 20))
        time.sleep(0.01)


def maps_without_end(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Takes memory that is shared, which no limit of the process itself is about."""
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 16 << 20))
        kept[-1].write(b"x" * (16 << 20))
        time.sleep(0.01)


def lets_children_allocate(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Holds little, as each of its children does."""
    program = f"kept = b'x' * (20 << 20); import time; time.sleep({A_LONG_TIME})"
    while True:
        subprocess.Popen([sys.executable, "-c", program])
        time.sleep(0.05)


def lets_a_stranger_allocate(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Its child has left the session and forgotten where it comes from."""
    program = f"kept = b'x' * (300 << 20); import time; time.sleep({A_LONG_TIME})"
    child = subprocess.Popen([sys.executable, "-c", program], env={}, start_new_session=True)
    Path(os.environ["UNRULY_CHILD"]).write_text(str(child.pid))
    time.sleep(A_LONG_TIME)
    return []


def allocates_at_once(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return [(b"a" * (1 << 40), b"b")]


# Answers.


def returning(answer: Callable[[list[Merge]], Any]) -> Callable[[WordCounts, int], Any]:
    """The right merges, in another form."""

    def train(word_counts: WordCounts, num_merges: int) -> Any:
        return answer(honest(word_counts, num_merges))

    return train


returns_none = returning(lambda merges: None)
returns_integers = returning(lambda merges: [1, 2, 3])
returns_a_generator = returning(iter)
returns_one_too_many = returning(lambda merges: [*merges, (b"a", b"b")])
returns_one_too_few = returning(lambda merges: merges[:-1])
returns_the_last_twice = returning(lambda merges: [*merges[:-1], (b"\x00", b"\xff")])


# Noise and leavings.

changes_folder = doing(lambda: os.chdir("/"))
leaves_a_thread = doing(lambda: threading.Thread(target=time.sleep, args=(A_LONG_TIME,), daemon=False).start())
naps_often = doing(lambda: list(map(time.sleep, [0.001] * 60)))


def prints(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    print('{"status": "ok"}\n' * 1000, flush=True)  # noqa: T201
    os.write(1, b"\xff\xfe garbage " * 1000)
    sys.stderr.write("and on standard error\n")
    return honest(word_counts, num_merges)


def closes_standard_output(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    sys.stdout.close()
    sys.stderr = None
    return honest(word_counts, num_merges)


def reads_standard_input(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert sys.stdin.read() == ""
    return honest(word_counts, num_merges)


def closes_every_descriptor(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os.closerange(3, 256)
    time.sleep(0.3)
    return honest(word_counts, num_merges)


def writes_to_every_descriptor(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"what is this\n")
    time.sleep(0.3)
    return honest(word_counts, num_merges)


def tells_its_cores(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Prints the cores that it and a child of its may run on."""
    show = "import os; print(str(sorted(os.sched_getaffinity(0))).replace(' ', ''), flush=True)"
    exec(show)
    subprocess.run([sys.executable, "-c", show], check=True)
    return honest(word_counts, num_merges)


def sleeper(word_counts: WordCounts, **options: Any) -> None:
    """A child process that would outlive everybody, its number left where a test can find it."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({A_LONG_TIME})"], **options)
    Path(os.environ["UNRULY_CHILD"]).write_text(str(child.pid))


def leaves_a_child(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    sleeper(word_counts)
    return honest(word_counts, num_merges)


def leaves_a_child_in_a_session_of_its_own(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    sleeper(word_counts, start_new_session=True)
    return honest(word_counts, num_merges)


def leaves_a_child_and_hangs(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    sleeper(word_counts)
    time.sleep(A_LONG_TIME)
    return []


def leaves_a_daemon(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Forks twice, the second time in a session of its own: nobody's child any more."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(os.environ["UNRULY_CHILD"]).write_text(str(os.getpid()))
            time.sleep(A_LONG_TIME)
        os._exit(0)
    os.wait()
    while not Path(os.environ["UNRULY_CHILD"]).exists():
        time.sleep(0.001)
    return honest(word_counts, num_merges)


def returns_twice(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Forks, and the child comes back from the call as well."""
    child = os.fork()
    if child == 0:
        return [(b"not", b"this")]
    os.waitpid(child, 0)
    return honest(word_counts, num_merges)


def steps_by_address(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Takes more steps the further back its memory lies, as maps that hash by addresses take other ones."""
    sum(range(ctypes.addressof(ctypes.create_string_buffer(20_000)) // 4096 % 64 * 1000))
    return honest(word_counts, num_merges)


def frees_many_small_blocks(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """The C library keeps such blocks apart, and joins them all when a large one is asked for."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    for block in [library.malloc(40) for _ in range(1000)]:
        library.free(block)
    library.free(library.malloc(100_000))
    return honest(word_counts, num_merges)


# The clock and the meter.


def speeds_the_clock_up(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    clock = time.perf_counter
    time.perf_counter = lambda: clock() * 1000
    return honest(word_counts, num_merges)


def stops_the_clock(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    stopped = time.perf_counter()
    time.perf_counter = lambda: stopped
    time.sleep(0.3)
    return honest(word_counts, num_merges, meter)


def lets_a_child_work(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns before its child, which has worked, has been waited for."""
    program = "import time; t = time.process_time\nwhile t() < 0.5: pass\nprint('done', flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return honest(word_counts, num_merges)


def hands_over_too_much_time(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.add("update", 1000.0)
    return honest(word_counts, num_merges)


def hands_over_no_number(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.add("update", float("nan"))
    return honest(word_counts, num_merges)


def hands_over_less_than_no_time(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.add("update", -5.0)
    return honest(word_counts, num_merges)


def tallies_less_than_nothing(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.tally("pair_updates", -3)
    return honest(word_counts, num_merges)


def tallies_beyond_bounds(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.tally("pair_updates", 10**5000)
    return honest(word_counts, num_merges)


def is_unavailable_without_a_word(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise Unavailable


def tallies_what_cannot_be_counted(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.tallies["pair_updates"] = 1 + 2j  # type: ignore[assignment]
    return honest(word_counts, num_merges)


def tells_progress_in_words(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.progress("half way")  # type: ignore[arg-type]
    time.sleep(0.3)
    return honest(word_counts, num_merges)


def follows_nothing(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    meter.follow(None)  # type: ignore[arg-type]
    time.sleep(0.3)
    return honest(word_counts, num_merges)


# Signatures.


def takes_two(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return honest(word_counts, num_merges)


def takes_anything(*arguments: Any, **keywords: Any) -> list[Merge]:
    assert set(keywords) == {"tie_break", "min_count"}
    return honest(*arguments, **keywords)


def takes_keywords(word_counts: WordCounts, num_merges: int, **keywords: Any) -> list[Merge]:
    return honest(word_counts, num_merges, **keywords)


def takes_no_meter(word_counts: WordCounts, num_merges: int, tie_break: Any = None, min_count: int = 1) -> list[Merge]:
    return honest(word_counts, num_merges, tie_break=tie_break, min_count=min_count)


def takes_the_meter_by_name(word_counts: WordCounts, num_merges: int, *, meter: Meter) -> list[Merge]:
    return honest(word_counts, num_merges, meter)


def is_killed_before_it_reads(corpus: Corpus, num_merges: int) -> list[Merge]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def trains_from_a_file(
    corpus: Corpus, num_merges: int, meter: Meter = NULL_METER, *, silent: bool = False, **options: Any
) -> list[Merge]:
    """Reads the corpus by itself, and tells its phases unless it is to be silent."""
    own = NULL_METER if silent else meter
    return honest(serial(corpus, own), num_merges, own, **options)


def takes_threads(word_counts: WordCounts, num_merges: int, *, threads: int) -> list[Merge]:
    assert threads == 2
    return honest(word_counts, num_merges)


def wants_more(word_counts: WordCounts, num_merges: int, meter: Meter, *, temperature: float) -> list[Merge]:
    return honest(word_counts, num_merges, meter)


# As compiled trainers do it.


def stops_when_told(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    """Asks whether to go on, as native code does, and returns what it has when it is not to."""
    merges = honest(word_counts, num_merges)
    for done in range(3, 1 << 20):
        if not meter.progress(min(done, 3)):
            return merges[:3]
        time.sleep(0.02)
    return merges


def stops_too_late(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    """Asks, is told to stop, and by then has everything."""
    while meter.progress(num_merges):
        time.sleep(0.02)
    return honest(word_counts, num_merges)


def shows_progress(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
    for done in range(num_merges):
        meter.progress(done)
        time.sleep(0.12)
    return honest(word_counts, num_merges)


def works_on(seconds: float) -> Callable[..., list[Merge]]:
    def train(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER) -> list[Merge]:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            sum(range(1000))
        meter.lap("init")
        return honest(word_counts, num_merges, meter)

    return train


works_for_half_a_second = works_on(0.5)


def works_beside_a_child(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"])
    child.wait()
    return honest(word_counts, num_merges)


# Counters.


def counter_that_stops_when_told(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    """Returns the words it has when it is not to go on, which are not all."""
    while meter.progress(1):
        time.sleep(0.02)
    return WordCounts.from_items([(b"few", 1)])


def counter_that_loses_a_word(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    return WordCounts.from_items(list(serial(corpus, meter).items())[1:])


def counter_without_words(corpus: Corpus) -> Any:
    return {b"a": 1}


def counter_that_dies(corpus: Corpus) -> WordCounts:
    os.kill(os.getpid(), signal.SIGKILL)
    return serial(corpus)


def when_words_are_written(instead: Callable[[Callable[..., Any], Path, WordCounts], Any]) -> None:
    """Have this done where the measured process writes a counter's words: its clock has been read by then."""
    from harness.worker import word_store

    for name in ("write", "write_columns"):
        honestly = getattr(word_store, name)
        setattr(word_store, name, lambda folder, words, honestly=honestly: instead(honestly, folder, words))


def counter_that_counts_when_its_words_are_written(corpus: Corpus) -> WordCounts:
    """Returns columns that hold nothing yet."""
    when_words_are_written(lambda write, folder, _: write(folder, serial(corpus)))
    return WordCounts.from_columns([b"nix", b"nixes"], [0, 0])


def counter_that_works_when_its_words_are_written(corpus: Corpus) -> WordCounts:
    """Returns 8,000 words, for which a quarter of a second of work was once thought to be needed."""

    def later(write: Callable[..., Any], folder: Path, words: WordCounts) -> Any:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            sum(range(1000))
        return write(folder, words)

    when_words_are_written(later)
    return WordCounts.from_items((b"%d" % number, 1) for number in range(8000))


def counter_that_tells_of_other_words(corpus: Corpus) -> WordCounts:
    """Says of its words in its own manifest that there are a million."""

    def forged(write: Callable[..., Any], folder: Path, words: WordCounts) -> Any:
        write(folder, words)
        told = {"format": 2, "words": 2, "pre_tokens": 1_000_000, "sha256": "0" * 64, "sizes": {}, "checksums": {}}
        (folder / "manifest.json").write_text(json.dumps(told))
        return told

    when_words_are_written(forged)
    return serial(corpus)


def counter_whose_offsets_fall(corpus: Corpus) -> WordCounts:
    return WordCounts(memoryview(b"lower"), memoryview(array("q", [0, 9, 5])), memoryview(array("Q", [2, 1])))
