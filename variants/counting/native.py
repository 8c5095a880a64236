"""Counting by a compiled scanner: the definition's words at the speed of the memory rather than of an interpreter.

The published family of patterns (see patterns.py), SuperBPE's, `line`, `document` and `bytes` have a
compiled form; any other is counted by `serial`, with the tally `fell_back_to_regex` to tell so. Classes of
characters come from the installed `regex`. Words are in the order of their first occurrence at every width, as `serial`
has them.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Protocol

from variants.contract import (
    NULL_METER,
    Corpus,
    InvalidText,
    Meter,
    Unavailable,
    WordCounts,
)
from variants.counting import processes
from variants.counting.character_classes import character_classes
from variants.counting.patterns import compiled, splits_documents
from variants.counting.pretokenize import CHUNK_BYTES, serial
from variants.counting.spilling import SHARE_OF_A_TABLE, Spill

try:
    _scanner = importlib.import_module("variants.native._scanner")
    NOT_BUILT = ""
except ImportError as error:
    _scanner = None  # type: ignore[assignment]
    NOT_BUILT = str(error)

BUFFER_BYTES = 1 << 18
SMALLEST_RANGE = 1 << 21
"""What a thread must have to count: a second one enters the common words anew, as long as 1 MB of text takes."""

PART_BYTES, PARTS = 1 << 25, 16
"""The memory of tables that are handed over, or this share of the text if that is more: then less is met anew."""


class Taker(Protocol):
    """Who takes words in parts: `part` is the number of the thread, and each of these calls once at a time."""

    def begin(self, parts: int) -> None:
        """Forget what was taken; from here on so many threads count."""

    def take(self, part: int, data: memoryview, offsets: memoryview, counts: memoryview) -> None:
        """Take the columns of some word counts."""


def native(
    corpus: Corpus,
    meter: Meter = NULL_METER,
    *,
    threads: int = 1,
    smallest_range: int = SMALLEST_RANGE,
    instructions: str = "fastest",
    buffer: int = BUFFER_BYTES,
    memory: int | None = None,
) -> WordCounts:
    """Count in `threads` threads of compiled code; one is started only for each `smallest_range` bytes there are.

    `instructions` is `fastest`, `portable`, `avx2`, `avx512` (with VBMI2 and VAES) or `neon`;
    `buffer` is the bytes read at once; `memory` is what tables may take before they spill: see spilling.py.
    Raises what `serial` raises, Unavailable if the scanner was not built or lacks the instructions, OSError if the
    file changes meanwhile, and RuntimeError("stopped") when the meter says so.
    """
    numbers = (("threads", threads), ("smallest_range", smallest_range), ("buffer", buffer), ("memory", memory))
    for name, value in numbers:
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it is a number of 1 or more")
    check_built()
    if instructions not in ("fastest", *_scanner.supported_paths()):
        runs = ", ".join(_scanner.supported_paths())
        raise Unavailable(f"this machine has no instructions {instructions!r}; it has fastest, {runs}")
    pattern = compiled(corpus.pattern)
    if pattern is None:
        meter.tally("fell_back_to_regex", 1)
        return serial(corpus, meter, memory=memory)
    path = fastest_path() if instructions == "fastest" else instructions
    return Scan(corpus, meter, pattern, path, buffer, memory).count_file(threads, smallest_range)


def in_parts(corpus: Corpus, taker: Taker, meter: Meter = NULL_METER, *, threads: int = 1) -> None:
    """Count like `native`, and hand the words over as soon as a table of them is full: never all are in memory.

    A word can be in several parts. `taker` begins anew where the text has to be read anew. Raises what `native` raises,
    and what `taker` does.
    """
    check_built()
    pattern = compiled(corpus.pattern)
    if pattern is None:
        word_counts = native(corpus, meter)
        taker.begin(1)
        taker.take(0, word_counts.data, word_counts.offsets, word_counts.counts)
        return
    Scan(corpus, meter, pattern, fastest_path(), BUFFER_BYTES, None, taker).count_file(threads, SMALLEST_RANGE)


def check_built() -> None:
    if NOT_BUILT:
        raise Unavailable(f"counting=native is not built ({NOT_BUILT}); run `pip install -e .` with a C++ compiler")


def fastest_path() -> str:
    """The name of the fastest instructions that the scanner and this machine have."""
    return str(_scanner.supported_paths()[-1])


def before_the_clock() -> None:
    """Make the tables of Unicode's classes, once on a machine, or read them: that is not work on a corpus."""
    character_classes()


class Scan:
    """One corpus being counted, and how."""

    def __init__(
        self,
        corpus: Corpus,
        meter: Meter,
        pattern: bytes,
        instructions: str,
        buffer: int,
        memory: int | None,
        taker: Taker | None = None,
    ) -> None:
        self.corpus = corpus
        self.meter = meter
        self.pattern = pattern
        self.specials = [token.encode() for token in corpus.special_tokens]
        if not all(self.specials):
            raise ValueError("a special token of no bytes matches everywhere; leave it out")
        self.tables = character_classes()
        self.instructions = instructions
        self.buffer = buffer
        self.memory = memory
        self.taker = taker

    def count_file(self, threads: int, smallest_range: int) -> WordCounts:
        with open(self.corpus.path, "rb", buffering=0) as file:  # noqa: PTH123 - a job names its files by strings
            bounds = self.bounds(file, threads, smallest_range)
            return self.count_replaced(file, bounds) if self.corpus.replaces_errors else self.count(file, bounds)

    def count(self, file: BinaryIO, bounds: Sequence[int], source: BinaryIO | None = None) -> WordCounts:
        """Count the ranges between `bounds`, or, if there are none, what can be read until the file ends.

        `source` is the corpus where `file` is what a decoder makes of it. None are left where there is a taker.
        """
        descriptor = (source or file).fileno()
        before = os.fstat(descriptor)
        spill = Spill() if self.memory else None
        ranges = max(1, len(bounds) - 1)
        emptying: tuple[Any, ...] = ()
        if self.taker is not None:
            self.taker.begin(ranges)
            emptying = self.taker.take, max(PART_BYTES, before.st_size // PARTS) // ranges, True
        elif spill is not None:
            emptying = spill.take, int((self.memory or 0) * SHARE_OF_A_TABLE) // ranges
        self.meter.lap("read")
        start = time.perf_counter()
        columns, documents, done, (reading, handing_over), invalid, cut_off = _scanner.scan(
            file.fileno(),
            bounds or (0, _scanner.UNTIL_END),
            self.pattern,
            self.specials,
            self.tables,
            self.instructions,
            self.buffer,
            self.meter.progress,
            *emptying,
        )
        seconds = time.perf_counter() - start
        self.meter.add("read", seconds * reading)
        self.meter.add("count" if self.taker is None else "convert", seconds * handing_over)
        self.meter.add("count", seconds * (1 - reading - handing_over))
        after = os.fstat(descriptor)
        if cut_off or (stat.S_ISREG(before.st_mode) and changed(before, after)):
            raise OSError(f"{self.corpus.path} was changed while it was being counted; count it again")
        if columns is None:
            raise InvalidText(self.corpus.path, invalid)
        self.meter.tally("documents", documents)
        self.meter.tally("bytes_scanned", after.st_size if source and source.seekable() else done)
        word_counts = spill.merged(self.meter) if spill is not None and spill.runs else WordCounts(*columns)
        self.meter.lap("count")
        return word_counts

    def bounds(self, file: BinaryIO, threads: int, smallest_range: int) -> list[int]:
        """Where ranges of about equal length begin and end, at places where a cut changes no word; [] for one range."""
        facts = os.fstat(file.fileno())
        width = min(threads, facts.st_size // smallest_range)
        if width < 2 or not stat.S_ISREG(facts.st_mode):
            return []
        if not splits_documents(self.corpus.pattern):
            ranges = processes.cut(self.corpus, facts.st_size, width)
            return [0, *(stop for _, stop in ranges)] if len(ranges) > 1 else []
        targets = [facts.st_size * part // width for part in range(width)] + [facts.st_size]
        cuts = (self.cut(file, target, limit) for target, limit in zip(targets[1:], targets[2:]))
        inner = [place for place in cuts if place is not None]
        return [0, *inner, facts.st_size] if inner else []

    def cut(self, file: BinaryIO, target: int, limit: int) -> int | None:
        """The first safe place for a cut between `target` and `limit`."""
        return self.safe_place(lambda start, length: os.pread(file.fileno(), length, start), target, limit)

    def safe_place(self, read: Callable[[int, int], bytes], target: int, limit: int) -> int | None:
        """The first safe place for a cut between `target` and `limit`; `read(start, length)` reads of the text.

        It depends on the text and on `target` alone, so equal questions get equal answers.
        """
        around = max(map(len, self.specials), default=0) + 8  # what must be seen on either side of a cut
        position = target
        while position < limit:
            begin = max(0, position - around)
            window = read(begin, position - begin + self.buffer + around)
            place = _scanner.first_cut(window, position - begin, self.pattern, self.specials, self.tables)
            if place < len(window):
                return begin + place if begin + place < limit else None
            position += self.buffer
        return None

    def count_replaced(self, file: BinaryIO, bounds: Sequence[int]) -> WordCounts:
        """Count as if every bad sequence were U+FFFD: a valid file as it is, any other through Python's decoder."""
        if file.seekable():
            try:
                return self.count(file, bounds)
            except InvalidText:
                file.seek(0)
        reading, writing = os.pipe()
        failures: list[OSError] = []
        decoding = threading.Thread(target=decode_into, args=(file, writing, failures))
        decoding.start()
        try:
            with open(reading, "rb", buffering=0) as replaced:  # noqa: PTH123 - a descriptor, not a path
                word_counts = self.count(replaced, [], source=file)
        finally:
            decoding.join()
        if failures:
            raise failures[0]
        return word_counts


def decode_into(file: BinaryIO, descriptor: int, failures: list[OSError]) -> None:
    """Write the file with its bad sequences replaced, until its end or until nobody reads any more."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        with open(descriptor, "wb", buffering=0) as pipe, io.BufferedWriter(pipe, CHUNK_BYTES) as writer:
            while chunk := file.read(CHUNK_BYTES):
                writer.write(decoder.decode(chunk).encode())
            writer.write(decoder.decode(b"", final=True).encode())
    except BrokenPipeError:
        return  # the reader was stopped, and says so itself
    except OSError as error:
        failures.append(error)


def changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
