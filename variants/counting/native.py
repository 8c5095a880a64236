"""Counting by a compiled scanner: the definition's words at the speed of the memory rather than of
an interpreter.

The published family of patterns (see patterns.py), SuperBPE's, `line`, `document` and `bytes` have
a compiled form; any other is counted by `serial`, with the tally `fell_back_to_regex` to tell so.
Classes of characters come from the installed `regex`. Words are in the order of their first
occurrence at every width, as `serial` has them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

from variants.contract import NULL_METER, Corpus, InvalidText, Meter, Unavailable, WordCounts
from variants.counting.character_classes import character_classes
from variants.counting.patterns import compiled, splits_documents
from variants.counting.pretokenize import CHUNK_BYTES, cut, read_chunks, serial
from variants.counting.spilling import SHARE_OF_A_TABLE, Spill
from variants.native import built

BUFFER_BYTES = 1 << 18
SMALLEST_RANGE = 1 << 21
"""What a thread must have to count: a second one enters the common words anew, as long as 1 MB of
text takes.
"""

MOST_CELLS = 2**63
PART_BYTES, PARTS = 1 << 25, 16
"""The memory of tables that are handed over, or this share of the text if that is more: then less
is met anew.
"""


def native(
    corpus: Corpus,
    meter: Meter = NULL_METER,
    *,
    threads: int = 1,
    smallest_range: int = SMALLEST_RANGE,
    instructions: str = "fastest",
    buffer: int = BUFFER_BYTES,
    memory: int | None = None,
    most_cells: int = MOST_CELLS,
) -> WordCounts:
    """Count in `threads` threads of compiled code; one is started only for each `smallest_range`
    bytes there are.

    `instructions` is `fastest`, `portable`, `avx2`, `avx512` (with VBMI2 and VAES) or `neon`;
    `buffer` is the bytes read at once; `memory` is what tables may take before they spill: see
    spilling.py. Words that take more than `most_cells`, one for each byte and one for each word,
    are refused while they are counted, by ValueError. Raises what `serial` raises, Unavailable if
    the scanner was not built or lacks the instructions, OSError if the file changes meanwhile, and
    RuntimeError("stopped") when the meter says so.
    """
    numbers = (
        ("threads", threads),
        ("smallest_range", smallest_range),
        ("buffer", buffer),
        ("memory", memory),
    )
    for name, value in numbers:
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it is a number of 1 or more")

    paths = built("_scanner").supported_paths()
    if instructions not in ("fastest", *paths):
        raise Unavailable(
            f"this machine has no instructions {instructions!r}; it has fastest, {', '.join(paths)}"
        )

    pattern = compiled(corpus.pattern)
    if pattern is None:
        meter.tally("fell_back_to_regex", 1)
        return serial(corpus, meter, memory=memory)

    path = paths[-1] if instructions == "fastest" else instructions
    scan = Scan(corpus, meter, pattern, path, buffer, memory, most_cells=most_cells)
    return scan.count_file(threads, smallest_range)


def in_parts(corpus: Corpus, taker: Any, meter: Meter = NULL_METER, *, threads: int = 1) -> None:
    """Count like `native`, and hand the words over as soon as a table of them is full: never all
    are in memory.

    They go to `taker.take(part, data, offsets, counts)`; a word can be in several parts.
    `taker.begin(parts)` comes before, and again where the text has to be read anew; each part is
    one thread's. `taker.stop()` ends what threads are taking. Raises what `native` and `taker` raise.
    """
    pattern = compiled(corpus.pattern)
    if pattern is None:
        word_counts = native(corpus, meter)
        taker.begin(1)
        taker.take(0, word_counts.data, word_counts.offsets, word_counts.counts)
        return
    Scan(corpus, meter, pattern, taker=taker).count_file(threads, SMALLEST_RANGE)


def before_the_clock() -> None:
    """Load what is compiled, and make or read the tables of Unicode's classes: that is not work on
    a corpus.
    """
    built("_scanner")
    character_classes()


@dataclass
class Scan:
    """One corpus being counted, and how. Words go to `taker`, if there is one: see `in_parts`."""

    corpus: Corpus
    meter: Meter
    pattern: bytes
    instructions: str = ""
    buffer: int = 0
    memory: int | None = None
    taker: Any = None
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        self.scanner = built("_scanner")
        self.specials = [token.encode() for token in self.corpus.special_tokens]
        if not all(self.specials):
            raise ValueError("a special token of no bytes matches everywhere; leave it out")
        self.tables = character_classes()
        self.instructions = self.instructions or self.scanner.supported_paths()[-1]
        self.buffer = self.buffer or BUFFER_BYTES

    def count_file(self, threads: int, smallest_range: int) -> WordCounts:
        with open(self.corpus.path, "rb", buffering=0) as file:  # noqa: PTH123 - a job names its files by strings
            return self.count_open(file, self.bounds(file, threads, smallest_range))

    def count_open(self, file: BinaryIO, bounds: Sequence[int]) -> WordCounts:
        """Count the ranges between `bounds`, or, if there are none, what can be read until the file
        ends.

        With errors=replace it is as if every bad sequence were U+FFFD: a valid file as it is, any
        other through Python's decoder.
        """
        if not self.corpus.replaces_errors:
            return self.count(file, bounds)
        if file.seekable():
            try:
                return self.count(file, bounds)
            except InvalidText:
                file.seek(0)
        with piped(
            lambda pipe: pipe.writelines(read_chunks(file, None, True, NULL_METER))
        ) as replaced:
            return self.count(replaced, [], source=file)

    def count(
        self, file: BinaryIO, bounds: Sequence[int], source: BinaryIO | None = None
    ) -> WordCounts:
        """Count what is valid. `source` is the corpus where `file` is what a decoder makes of it.

        No words are left where there is a taker.
        """
        descriptor = (source or file).fileno()
        before = os.fstat(descriptor)
        spill = Spill() if self.memory else None
        ranges = max(1, len(bounds) - 1)

        emptying: tuple[Any, ...] = ()
        if self.taker is not None:
            self.taker.begin(ranges)
            part_bytes = max(PART_BYTES, before.st_size // PARTS) // ranges
            emptying = self.taker.take, part_bytes, True, self.taker.stop
        elif spill is not None:
            table_bytes = int((self.memory or 0) * SHARE_OF_A_TABLE) // ranges
            emptying = lambda _, *columns: spill.add(WordCounts(*columns)), table_bytes

        self.meter.lap("read")
        start = time.perf_counter()
        columns, documents, done, (reading, handing_over), invalid, cut_off = self.scanner.scan(
            file.fileno(),
            bounds or (0, self.scanner.UNTIL_END),
            self.pattern,
            self.specials,
            self.tables,
            self.instructions,
            self.buffer,
            self.meter.progress,
            *emptying,
            most_cells=self.most_cells,
        )

        seconds = time.perf_counter() - start
        self.meter.add("read", seconds * reading)
        self.meter.add("count" if self.taker is None else "convert", seconds * handing_over)
        self.meter.add("count", seconds * (1 - reading - handing_over))

        after = os.fstat(descriptor)
        is_changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
        if cut_off or (stat.S_ISREG(before.st_mode) and is_changed):
            raise OSError(
                f"{self.corpus.path} was changed while it was being counted; count it again"
            )
        if columns is None:
            raise InvalidText(self.corpus.path, invalid)

        self.meter.tally("documents", documents)
        self.meter.tally("bytes_scanned", after.st_size if source and source.seekable() else done)

        word_counts = (
            spill.merged(self.meter) if spill is not None and spill.runs else WordCounts(*columns)
        )
        self.meter.lap("count")
        return word_counts

    def bounds(self, file: BinaryIO, threads: int, smallest_range: int) -> list[int]:
        """Where ranges of about equal length begin and end, at places where a cut changes no word;
        [] for one range.
        """
        facts = os.fstat(file.fileno())
        width = min(threads, facts.st_size // smallest_range)
        if width < 2 or not stat.S_ISREG(facts.st_mode):
            return []
        if not splits_documents(self.corpus.pattern):
            ranges = cut(self.corpus, facts.st_size, width)
            return [0, *(stop for _, stop in ranges)] if len(ranges) > 1 else []
        targets = [facts.st_size * part // width for part in range(width)] + [facts.st_size]
        cuts = [
            self.safe_place(file, target, limit) for target, limit in zip(targets[1:], targets[2:])
        ]
        file.seek(0)
        inner = [place for place in cuts if place is not None]
        return [0, *inner, facts.st_size] if inner else []

    def safe_place(self, file: BinaryIO, target: int, limit: int) -> int | None:
        """The first safe place for a cut between `target` and `limit`.

        It depends on the text and on `target` alone, so equal questions get equal answers.
        """
        # what must be seen on either side of a cut
        around = max(map(len, self.specials), default=0) + 8
        position = target
        while position < limit:
            begin = max(0, position - around)
            file.seek(begin)
            window = file.read(position - begin + self.buffer + around)
            place = self.scanner.first_cut(
                window, position - begin, self.pattern, self.specials, self.tables
            )
            if place < len(window):
                return begin + place if begin + place < limit else None
            position += self.buffer
        return None


@contextlib.contextmanager
def piped(write: Callable[[BinaryIO], object]) -> Iterator[BinaryIO]:
    """The end for reading of a pipe that `write` gets the other end of, in a thread. Raises what
    `write` raises.
    """
    reading, writing = os.pipe()

    def feed() -> None:
        # A reader that ends early says itself why.
        with contextlib.suppress(BrokenPipeError), open(writing, "wb", CHUNK_BYTES) as pipe:  # noqa: PTH123
            write(pipe)

    with ThreadPoolExecutor(1) as executor:
        try:
            feeding = executor.submit(feed)
        except RuntimeError as error:
            os.close(reading)
            os.close(writing)
            raise OSError(
                "errors=replace decodes in a second thread, and this system starts none; raise its"
                " limit of processes (ulimit -u), or convert the text to UTF-8 first"
            ) from error
        try:
            with open(reading, "rb", buffering=0) as file:  # noqa: PTH123
                yield file
        finally:
            feeding.result()
