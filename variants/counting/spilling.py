"""Tables of words bigger than memory: sorted runs of them in files, merged exactly in the end.

A counter that is given `memory` counts until its table has that size, spills it as a run, and goes
on with an empty one. Merging reads all runs at once from front to back and writes the columns of
the sum, so neither is ever in memory. Both are compiled, and without that part no table can spill.
The files have no names: they are gone with the process, however it ends. They lie beside the kept
counts, in the folder that BPE_HARNESS_CACHE moves, where the result will need the room anyway.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

from variants.contract import NULL_METER, Meter, WordCounts
from variants.counting.character_classes import harness_cache
from variants.native import built

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SHARE_OF_A_TABLE = 0.4
"""How much of the memory a table may have before it is spilled: sorting and growing need the
rest.
"""

BYTES_OF_A_COUNT = 32


class Spill:
    """Runs of words, and their sum."""

    def __init__(self) -> None:
        self.runs: list[WordCounts] = []

    def add(self, word_counts: WordCounts) -> None:
        """Spill these counts; the memory that they take is not needed any more."""
        with unnamed_files(1) as (file,):
            write_run(word_counts, file)
            self.runs.append(run_in(mapped_descriptor(file.fileno())))

    def merged(self, meter: Meter = NULL_METER) -> WordCounts:
        """The sum of all runs, its words in the order of their bytes."""
        meter.tally("runs_spilled", len(self.runs))
        with unnamed_files(3) as files:
            merge(self.runs, *files)
            self.runs.clear()
            data, offsets, counts = (mapped_descriptor(file.fileno()) for file in files)
        return WordCounts(data, offsets.cast("q"), counts.cast("Q"))


@contextlib.contextmanager
def unnamed_files(number: int) -> Iterator[list[BinaryIO]]:
    """So many files without names. Raises OSError with what to do if the disk is full."""
    folder = spill_folder()
    try:
        with contextlib.ExitStack() as opened:
            yield [opened.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(number)]
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(
            f"{folder} has no room for the words that counting.memory keeps out of memory "
            f"({os.strerror(error.errno)}); make some, move it with BPE_HARNESS_CACHE, or raise counting.memory"
        ) from error


class Overflow:
    """A dictionary of words that is emptied into a run whenever it has grown to its share of
    `memory` (None: never).
    """

    def __init__(
        self,
        words: dict[Any, int],
        memory: int | None,
        columns: Callable[[], WordCounts] | None = None,
    ) -> None:
        """`columns` makes word counts of what is in `words` at the moment, where these are not
        bytes.
        """
        if memory is not None and memory < 1:
            raise ValueError(f"memory is {memory}; it is a number of bytes of 1 or more")
        self.words = words
        self.columns = columns or (lambda: WordCounts.from_columns(words.keys(), words.values()))
        self.largest = None if memory is None else int(memory * SHARE_OF_A_TABLE)
        self.spill = Spill()
        self.known = self.bytes_of_words = 0

    def is_full(self) -> bool:
        """Whether it is time to spill; only words added since the last call are looked at."""
        if self.largest is None:
            return False
        new = islice(reversed(self.words), len(self.words) - self.known)
        self.bytes_of_words += sum(map(sys.getsizeof, new))
        self.known = len(self.words)
        return (
            self.bytes_of_words + BYTES_OF_A_COUNT * self.known + sys.getsizeof(self.words)
            > self.largest
        )

    def empty(self) -> None:
        self.spill.add(self.columns())
        self.words.clear()
        self.known = self.bytes_of_words = 0

    def word_counts(self, meter: Meter) -> WordCounts:
        """All words: as they are in the dictionary if it never was full, else the sum of the
        runs.
        """
        if not self.spill.runs:
            return self.columns()
        self.empty()
        return self.spill.merged(meter)


def spill_folder() -> str:
    """The folder for runs, made if need be; and as many open files as the system lets a process
    have.
    """
    folder = os.path.join(harness_cache(), "spilled")  # noqa: PTH118
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return folder


def mapped_descriptor(descriptor: int) -> memoryview:
    size = os.fstat(descriptor).st_size
    return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else b"")


def run_in(content: memoryview) -> WordCounts:
    """The words in the bytes of a run, which may have others behind them."""
    (words,) = struct.unpack_from("<Q", content)
    bounds = [8, 8 + 8 * (words + 1), 8 + 8 * (2 * words + 1)]
    offsets, counts = (content[start:stop] for start, stop in zip(bounds, bounds[1:]))
    return WordCounts(content[bounds[2] :], offsets.cast("q"), counts.cast("Q"))


def write_run(word_counts: WordCounts, file: BinaryIO) -> None:
    """Write the words in the order of their bytes: their number, offsets, counts, bytes."""
    built("_word_runs").write_run(
        word_counts.data, word_counts.offsets, word_counts.counts, file.fileno()
    )


def merge(runs: Sequence[WordCounts], data: BinaryIO, offsets: BinaryIO, counts: BinaryIO) -> None:
    """Write the sum of runs, which are mapped, into three files."""
    columns = [(run.data, run.offsets, run.counts) for run in runs]
    built("_word_runs").merge(columns, data.fileno(), offsets.fileno(), counts.fileno())
