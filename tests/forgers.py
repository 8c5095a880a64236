"""Trainers that meddle with how they are measured: the clock, the kernel's account, the answer, when the work is done.

Most learn the right merges. What is tested with them is that no false figure is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from unruly import returning

from harness.calling import packed
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


class FewSeconds(NamedTuple):
    """An account of some CPU time and nothing else."""

    ru_utime: float
    ru_stime: float = 0.0
    ru_nivcsw: int = 0
    ru_nvcsw: int = 0
    ru_minflt: int = 0
    ru_majflt: int = 0


def shows_less_cpu_time(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    work(0.5)
    resource.getrusage = lambda who: FewSeconds(CPU_SECONDS_TO_START if who == resource.RUSAGE_SELF else 0.0)  # type: ignore[assignment,return-value]
    return honest(word_counts, num_merges)


CPU_SECONDS_TO_START = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def shows_more_cpu_time(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    resource.getrusage = lambda who: FewSeconds(100.0)  # type: ignore[assignment,return-value]
    return honest(word_counts, num_merges)


def works_when_its_merges_are_packed(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Returns at once what is not yet learned: the list is filled while it is packed."""
    merges: list[Merge] = [(b"", b"")] * num_merges
    pack = struct.pack

    def learn_first(*arguments: Any) -> bytes:
        struct.pack = pack
        work(1.2)
        merges[:] = honest(word_counts, num_merges)
        return pack(*arguments)

    struct.pack = learn_first
    return merges


def forges_its_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Writes the answer itself, as good as the real one but for the time, and ends."""
    time.sleep(1.0)
    folder = job_folder()
    merges = packed(honest(word_counts, num_merges))
    (folder / "merges").write_bytes(merges)
    figures: dict[str, Any] = {
        "status": "ok",
        "reason": None,
        "seconds": {},
        "tallies": {},
        "counted": {},
        "curve": [],
        "last_phase": "",
        "takes_threads": None,
        "interpreter": "CPython 3.99",
        "merges_done": num_merges,
        **dict.fromkeys(["total", "cpu_seconds"], 0.001),
        **dict.fromkeys(["laps", "peak_rss_bytes", "peak_private_bytes"], 1),
    }
    (folder / "answer.json").write_text(json.dumps(figures))
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
leaves_numbers_that_are_none = leaving(b'{"status": "error", "reason": "x", "total": NaN}')
leaves_nested_brackets = leaving(b"[" * 100_000)
leaves_merges_that_are_none = leaving(b'{"status": "error", "reason": "x", "merges_done": 3}')


def leaves_a_folder_for_an_answer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    (job_folder() / "answer.json").mkdir()
    os._exit(0)


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
