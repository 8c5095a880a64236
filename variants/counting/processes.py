"""Counting in several processes: byte ranges cut at special tokens, each process reads its own.

Part 3 of the series sends the text through a queue from one reader; here only ranges go out and
only tables come back, so nothing but the file system is shared. A range may be cut only where a
special token certainly matches. Everything else is unsafe: the pattern's `\\s+(?!\\S)` looks past a
newline, and inside overlapping special tokens (`ab` with `bc`) a cut changes which of them match. A
file without a safe place to cut is counted in one process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from array import array
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from variants.contract import NULL_METER, Corpus, Meter, WordCounts
from variants.counting.pretokenize import WordTable, cut, serial
from variants.counting.spilling import Overflow

RANGES_PER_PROCESS = 4
BYTES_OF_A_TABLE = 64
"""What a table may take, at most, for each byte of its range."""
Table = tuple[bytes, "array[int]", "array[int]", int]


def processes(
    corpus: Corpus,
    meter: Meter = NULL_METER,
    *,
    threads: int = 1,
    smallest_range: int = 1 << 20,
    memory: int | None = None,
) -> WordCounts:
    """Count in `threads` processes; a process is started only for each `smallest_range` bytes there
    are.

    With `memory` ranges are so short that the tables of those in work take about half of it, and
    what is summed is spilled when it takes the other half. The time of all processes together shows
    as count; read is the search for the cuts. Raises what `serial` raises, RuntimeError for a
    script that its processes would run from the start, and ChildProcessError if a process dies,
    with the range it left uncounted: never fewer words.
    """
    for name, value in (("threads", threads), ("smallest_range", smallest_range)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it is a number of 1 or more")
    size = os.path.getsize(corpus.path)  # noqa: PTH202 - a job names its files by strings
    width = min(threads, size // smallest_range)
    number = min(width * RANGES_PER_PROCESS, size // smallest_range)
    if memory is not None:
        number = max(number, BYTES_OF_A_TABLE * width * size // memory)
    ranges = cut(corpus, size, number) if width > 1 else []
    meter.lap("read")
    if len(ranges) < 2:
        return serial(corpus, meter, memory=memory)
    refuse_unguarded_script()
    context = multiprocessing.get_context("spawn")
    # A cell for each range, written by its process alone, and one more to stop them all. There is
    # no lock that a process could take with it when it is killed.
    scanned = context.RawArray("q", len(ranges) + 1)
    summed: dict[bytes, int] = {}
    overflow = Overflow(summed, None if memory is None else memory // 2)
    most_in_work = len(ranges) if memory is None else 2 * width
    submitted: deque[Future[Table]] = deque()
    coming = enumerate(ranges)
    documents = counted = 0
    with ProcessPoolExecutor(
        min(width, len(ranges)), context, initializer=share, initargs=(scanned,)
    ) as executor:
        try:
            # In the order of the file: words keep the order of first occurrence, and of several bad
            # bytes the first is the one reported.
            for _, stop in ranges:
                for number, bounds in islice(coming, most_in_work - len(submitted)):
                    submitted.append(executor.submit(count_range, corpus, number, *bounds))
                documents += add_table(summed, result_of(submitted.popleft(), scanned, meter))
                counted = stop
                if overflow.is_full():
                    overflow.empty()
        except BrokenProcessPool:
            raise ChildProcessError(
                f"{corpus.path}: a counting process died, bytes {counted} to {size} were not counted; "
                "it was killed or ran out of memory: try fewer threads"
            ) from None
        except BaseException:
            scanned[-1] = 1
            executor.shutdown(cancel_futures=True)
            raise
    word_counts = overflow.word_counts(meter)
    meter.tally("documents", documents)
    meter.tally("bytes_scanned", size)
    meter.lap("count")
    return word_counts


def refuse_unguarded_script() -> None:
    """Each process imports the script that is running, and without a guard does all that it does,
    this included.

    Raises RuntimeError with what to do, where otherwise every process would leave a traceback and
    no words.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    try:
        with open(script or os.devnull, "rb") as file:  # noqa: PTH123
            content = file.read()
    except OSError:  # inside an archive: nobody knows
        return
    if content and b"__name__" not in content:
        raise RuntimeError(
            f"counting in processes starts {script} again in each of them; put what it does under "
            'if __name__ == "__main__":'
        )


_scanned: Any = None


def share(scanned: Any) -> None:
    """Receive, in a counting process, the cells where each range says how far it is."""
    global _scanned  # the executor's way of handing something to its processes
    _scanned = scanned


class Stopped(Exception):
    """Another range has failed, so this one is not needed any more."""


class SharedMeter(Meter):
    """Writes the bytes that one range has done into its cell."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def progress(self, done: int) -> bool:
        if _scanned[-1]:
            raise Stopped
        _scanned[self.number] = done
        return super().progress(done)


def count_range(corpus: Corpus, number: int, start: int, stop: int) -> Table:
    """Count range `number`, bytes `start` to `stop` of the file, in a counting process."""
    table, meter = WordTable(corpus), SharedMeter(number)
    table.count_range(start, stop - start, meter)
    counts = table.word_counts()
    return (
        bytes(counts.data),
        array("q", counts.offsets),
        array("Q", counts.counts),
        table.documents,
    )


def result_of(future: Future[Table], scanned: Any, meter: Meter) -> Table:
    """The future's result; the progress of all is reported while it waits."""
    while True:
        meter.progress(sum(scanned[:-1]))
        if wait([future], timeout=0.1).done:
            return future.result()


def add_table(summed: dict[bytes, int], table: Table) -> int:
    """Add a range's words to the sum; returns its number of documents."""
    content, offsets, counts, documents = table
    for word, count in WordCounts(
        memoryview(content), memoryview(offsets), memoryview(counts)
    ).items():
        summed[word] = summed.get(word, 0) + count
    return documents
