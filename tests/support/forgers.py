"""Trainers that meddle with how they are measured: the clock, the kernel's account, the answer, when the work is done.

Most learn the right merges. What is tested with them is that no false figure is believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import marshal
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from unruly import returning

from harness.measure.guard import SET_DEATH_SIGNAL
from harness.worker.merges_bytes import merges_from_bytes, packed, unpacked
from variants.contract import Merge, WordCounts
from variants.heap import train as honest

# The clock and the account.


def work(seconds: float) -> None:
    """Use that much of the processor's time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


def measuring_clock(rate: float) -> None:
    """Make the clock run at another rate from now on, for the meter and for who measures alike."""
    import __main__

    clock, now = __main__.clock, __main__.clock()
    __main__.clock = time.perf_counter = lambda: now + (clock() - now) * rate


def shows_less_time_than_passed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    measuring_clock(0.01)
    time.sleep(0.5)
    return honest(word_counts, num_merges)


def shows_more_time_than_passed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    measuring_clock(100)
    time.sleep(0.1)
    return honest(word_counts, num_merges)


class OtherSeconds(NamedTuple):
    """An account with another CPU time than the kernel's, and the kernel's counts."""

    ru_utime: float
    ru_stime: float
    ru_nivcsw: int
    ru_nvcsw: int
    ru_minflt: int
    ru_majflt: int


def account_for(seconds: float) -> None:
    """Let the process seem to have used so many seconds of CPU time, and its children none."""
    kernels = resource.getrusage

    def claimed(who: int) -> OtherSeconds:
        usage = kernels(who)
        counts = usage.ru_nivcsw, usage.ru_nvcsw, usage.ru_minflt, usage.ru_majflt
        return OtherSeconds(seconds if who == resource.RUSAGE_SELF else 0.0, 0.0, *counts)

    resource.getrusage = claimed  # type: ignore[assignment]


def shows_less_cpu_time(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    account_for(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    work(0.5)
    return honest(word_counts, num_merges)


def shows_more_cpu_time(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    account_for(100.0)
    return honest(word_counts, num_merges)


def works_when_its_merges_are_packed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns at once what is not yet learned, and works while it is packed."""
    merges: list[Merge] = [(b"", b"")] * num_merges
    dumps = marshal.dumps

    def learn_first(*arguments: Any) -> bytes:
        marshal.dumps = dumps
        work(0.4)
        merges[:] = honest(word_counts, num_merges)
        return dumps(*arguments)

    marshal.dumps = learn_first
    return merges


def figures(**others: Any) -> dict[str, Any]:
    """An answer as good as a real one, but for the time."""
    return {
        "status": "ok",
        "reason": None,
        "seconds": {},
        "tallies": {},
        "counted": {},
        "curve": [],
        "last_phase": "",
        "takes_threads": None,
        "interpreter": "CPython 3.99",
        "total": 0.001,
        **dict.fromkeys(["laps", "peak_rss_bytes", "peak_private_bytes"], 1),
        **others,
    }


def forges_its_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Writes the answer itself, as good as the real one but for the time, and ends."""
    time.sleep(1.0)
    folder = job_folder()
    merges = packed(honest(word_counts, num_merges))
    (folder / "merges").write_bytes(merges)
    (folder / "answer.json").write_text(json.dumps(figures(merges_done=num_merges)))
    os._exit(0)


def says_that_it_has_ended(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Tells the parent that it began later and ended sooner than it did."""
    for moment in (b"end\n", b"begin\n"):
        for descriptor in range(3, 32):
            with contextlib.suppress(OSError):
                os.write(descriptor, moment)
        time.sleep(0.25)
    return honest(word_counts, num_merges)


def replaces_clocks_that_nobody_reads(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    work(0.4)
    time.time = time.monotonic = time.process_time = lambda: 0.0
    return honest(word_counts, num_merges)


# The guard.


def halts_its_guard(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os.kill(os.getppid(), signal.SIGSTOP)
    return honest(word_counts, num_merges)


def ends_its_guard(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Who tells what it took is gone, and the answer tells less."""
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, 0, 0, 0, 0)
    work(0.1)
    merges = honest(word_counts, num_merges)
    (job_folder() / "merges").write_bytes(packed(merges))
    answer = figures(merges_done=len(merges), total=0.1)
    (job_folder() / "answer.json").write_text(json.dumps(answer))
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)


# Work that is done later.


class Lazy(list[Merge]):
    """A list that does the work when it is read."""

    def __init__(self, word_counts: WordCounts, num_merges: int) -> None:
        super().__init__()
        self.work = word_counts, num_merges

    def __iter__(self) -> Any:
        time.sleep(0.3)
        return iter(honest(*self.work))


returns_promises = Lazy


class LazyPair(tuple[bytes, bytes]):
    """A pair that does the work when it is read."""

    def __iter__(self) -> Any:
        time.sleep(0.3)
        return super().__iter__()


class LazyBytes(bytes):
    """A token that is none yet."""

    def __len__(self) -> int:
        time.sleep(0.3)
        return super().__len__()


class Impostor:
    """Says that it is a list."""

    __class__ = list  # type: ignore[assignment]

    def __iter__(self) -> Any:
        return iter([(b"a", b"b")])

    def __len__(self) -> int:
        return 1


returns_lazy_pairs = returning(lambda merges: [LazyPair(merge) for merge in merges])
returns_lazy_bytes = returning(lambda merges: [(LazyBytes(left), right) for left, right in merges])
returns_an_impostor = returning(lambda merges: Impostor())
returns_it_in_words = returning(lambda merges: "[(b'a', b'b')]")


def learns_while_its_answer_is_written(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns nothing, and puts into the answer what it learned when the clock had been read."""
    dumps = json.dumps

    def learn_first(answer: dict[str, Any]) -> str:
        json.dumps = dumps
        merges = honest(word_counts, num_merges)
        (job_folder() / "merges").write_bytes(packed(merges))
        return dumps({**answer, "merges_done": len(merges)})

    json.dumps = learn_first  # type: ignore[assignment]
    return []


def places_to_keep_something() -> list[Path]:
    """Where a program keeps what it wants to find again."""
    named = [os.environ[name] for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME") if name in os.environ]
    return [Path(place) / "kept-merges" for place in (".", str(Path.home()), tempfile.gettempdir(), *named)]


def keeps_its_merges_on_disk(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    for place in places_to_keep_something():
        if place.exists():
            return merges_from_bytes(place.read_bytes())
    work(0.3)
    merges = honest(word_counts, num_merges)
    for place in places_to_keep_something():
        with contextlib.suppress(OSError):
            place.write_bytes(packed(merges))
    return merges


BUSY_CHILD = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)"
ORPHANED = f"""
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", {BUSY_CHILD!r}], env={{}}, start_new_session=True)
os._exit(0)
"""


def lets_an_orphan_work(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Its child has lost its parent, its session and its environment, and is not waited for."""
    with subprocess.Popen([sys.executable, "-c", ORPHANED], env={}, stdout=subprocess.PIPE) as between:
        assert between.stdout is not None
        between.stdout.readline()
    return honest(word_counts, num_merges)


def wait_to_be_looked_at() -> None:
    """Until the harness has once looked at everything as it is now; it leaves a byte for each look that it has taken.

    One that it has begun by now may not have seen all, and what follows a look is over when the next has been taken.
    """
    looks = Path(os.environ["FORGERS_LOOKS"])
    enough = looks.stat().st_size + 3
    while looks.stat().st_size < enough:
        time.sleep(0.002)


def works_where_nobody_waits(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """The kernel forgets the children of a process that does not want to hear of them."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    reading, writing = os.pipe()
    if os.fork() == 0:
        work(0.5)
        wait_to_be_looked_at()
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(0.05)
    return honest(word_counts, num_merges)


def hides_its_memory(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Has the kernel forget the most that it held, and tells less than there is."""
    held = b"x" * (100 << 20)
    wait_to_be_looked_at()
    del held
    Path("/proc/self/clear_refs").write_text("5")
    sys.modules["__main__"].memory_status = lambda: {"VmHWM": 1, "RssAnon": 1}  # type: ignore[attr-defined]
    return honest(word_counts, num_merges)


def turns_both_clocks_back(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """What it takes is too short for a parent that is slow to notice."""
    measuring_clock(0.1)
    time.sleep(0.02)
    return honest(word_counts, num_merges)


def finds_the_merges_of_others(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Learns nothing: looks for merges beside all that its process has mapped or opened, and where its answer goes."""
    places = [line.split(maxsplit=5)[-1].strip() for line in Path("/proc/self/maps").read_text().splitlines()]
    places += [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    words = [Path(place) for place in places if "counts" in Path(place).parts]
    folders = [parent for path in words for parent in path.parents[:2]] + [job_folder(), job_folder().parent]
    for path in {path for folder in folders for path in folder.rglob("*") if path.is_file()}:
        content = path.read_bytes()
        for read, packed_merges in itertools.product((merges_from_bytes, unpacked), content.partition(b"\n")[::2]):
            with contextlib.suppress(ValueError):
                found: list[Merge] = read(packed_merges)
                if word_counts and len(found) >= num_merges:
                    return found[:num_merges]
    return []


# What is left in the place of an answer.


def job_folder() -> Path:
    return Path(os.environ["BPE_HARNESS_JOB"])


def leaving(content: bytes) -> Callable[[WordCounts, int], list[Merge]]:
    """Writes something where the answer belongs, and ends."""

    def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        (job_folder() / "answer.json").write_bytes(content)
        os._exit(0)

    return train


leaves_garbage = leaving(b"\xff\x00 garbage")
leaves_half_an_answer = leaving(b'{"status": "ok", "seconds": {')
leaves_a_list = leaving(b"[]")
leaves_a_bare_ok = leaving(b'{"status": "ok", "reason": null}')
leaves_another_status = leaving(b'{"status": "splendid", "reason": null}')
leaves_nested_brackets = leaving(b"[" * 100_000)
leaves_numbers_that_are_none = leaving(json.dumps(figures(total=math.nan)).encode())
leaves_merges_that_are_none = leaving(json.dumps(figures(merges_done=3)).encode())


def leaves_a_folder_for_an_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    (job_folder() / "answer.json").mkdir()
    os._exit(0)


def leaves_a_pipe_for_an_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os.mkfifo(job_folder() / "answer.json")
    os._exit(0)


def leaves_endless_zeros_for_an_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    (job_folder() / "answer.json").symlink_to("/dev/zero")
    os._exit(0)


def in_place_of_merges(put: Callable[[Path], Any]) -> Callable[[WordCounts, int], list[Merge]]:
    """Writes an honest answer and puts something else where its merges belong."""

    def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        merges = honest(word_counts, num_merges)
        (job_folder() / "answer.json").write_text(json.dumps(figures(merges_done=len(merges))))
        put(job_folder() / "merges")
        os._exit(0)

    return train


leaves_a_pipe_for_merges = in_place_of_merges(os.mkfifo)
leaves_endless_zeros_for_merges = in_place_of_merges(lambda path: path.symlink_to("/dev/zero"))


@in_place_of_merges
def leaves_a_hole_for_merges(path: Path) -> None:
    path.touch()
    os.truncate(path, 4 << 40)


def leaves_a_number_without_end(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    merges = honest(word_counts, num_merges)
    (job_folder() / "merges").write_bytes(packed(merges))
    answer = figures(merges_done=len(merges), peak_rss_bytes=10**400)
    (job_folder() / "answer.json").write_text(json.dumps(answer))
    os._exit(0)


def nests_folders(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Deeper than a function can call itself, and than a path can be long."""
    here = os.open(job_folder(), os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    return honest(word_counts, num_merges)


def removes_its_folder(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    shutil.rmtree(job_folder())
    return honest(word_counts, num_merges)


def puts_a_link_in_the_place_of_its_folder(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    shutil.rmtree(job_folder())
    job_folder().symlink_to(job_folder().parent)
    os._exit(0)


def locks_its_folder(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    (job_folder() / "locked").mkdir()
    (job_folder() / "locked" / "file").write_text("kept")
    (job_folder() / "locked").chmod(0)
    os._exit(0)


def works_behind_its_call(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Goes on working while its answer is written."""
    dumps = json.dumps

    def work_first(answer: dict[str, Any]) -> str:
        json.dumps = dumps
        work(0.4)
        return dumps(answer)

    json.dumps = work_first  # type: ignore[assignment]
    return honest(word_counts, num_merges)
