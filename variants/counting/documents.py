"""Count documents that come one by one, from anywhere: never joined, so no word and no special token spans two of them.

If the pattern is compiled in, documents go through a pipe to the scanner, divided by a character that none of them has;
the rare one that has it, and every document with another pattern, is matched in Python. Tables spill when they are
full: see spilling.py.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import regex

from variants.contract import NULL_METER, Corpus, LeftOut, Meter, WordCounts
from variants.counting import native
from variants.counting.patterns import compiled
from variants.counting.pretokenize import split_documents
from variants.counting.spilling import Overflow, Spill

DIVIDERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Unicode keeps these free for the private use of a program."""
PIECE_BYTES, PIECE_DOCUMENTS = 1 << 20, 1 << 16
SHOWN = 40


def count_documents(
    batches: Iterable[Sequence[bytes]], corpus: Corpus, memory: int, meter: Meter = NULL_METER, *, threads: int = 1
) -> WordCounts:
    """Count the words of batches of documents, which are valid UTF-8 unless the corpus's pattern is None.

    `corpus` says how to read them; its path is unused. `memory` limits the tables; `meter.progress` gets the bytes.
    Raises Unavailable without the compiled scanner, LeftOut if the pattern leaves text out, and what `batches` raises.
    """
    matcher = Matcher(corpus, memory)
    pattern = None if corpus.pattern is None else compiled(corpus.pattern)
    if pattern is None:
        for batch in batches:
            for document in batch:
                matcher.add(document)
            meter.progress(matcher.bytes)
        return matcher.overflow.word_counts(meter)
    native.check_built()
    divider = next(divider for divider in DIVIDERS if divider not in "".join(corpus.special_tokens)).encode()
    scanners = [Scanner(corpus, pattern, divider, memory // threads) for _ in range(threads)]
    done = 0
    try:
        for number, some in enumerate(pieces(batches)):
            piece = divider.join([*some, b""])
            done += len(piece) - len(some) * len(divider)
            if piece.count(divider) > len(some):
                for document in some:
                    if divider in document:
                        matcher.add(document)
                piece = divider.join([*(document for document in some if divider not in document), b""])
            scanners[number % threads].write(piece)
            meter.progress(done)
    finally:
        for scanner in scanners:
            scanner.close()
    tables = [*(scanner.result() for scanner in scanners), matcher.overflow.word_counts(meter)]
    return sum_of([table for table in tables if len(table)])


def pieces(batches: Iterable[Sequence[bytes]]) -> Iterator[list[bytes]]:
    """As many documents at a time as have the size of a piece together."""
    some, size = list[bytes](), 0
    for batch in batches:
        some += batch
        size += sum(map(len, batch))
        if size >= PIECE_BYTES or len(some) >= PIECE_DOCUMENTS:
            yield some
            some, size = [], 0
    yield some


def sum_of(tables: Sequence[WordCounts]) -> WordCounts:
    if len(tables) == 1:
        return tables[0]
    spill = Spill()
    for table in tables:
        spill.add(table)
    return spill.merged() if tables else WordCounts.from_items([])


class Scanner:
    """The compiled scanner at the other end of a pipe, in a thread of its own."""

    def __init__(self, corpus: Corpus, pattern: bytes, divider: bytes, memory: int) -> None:
        path = native.fastest_path()
        self.scan = native.Scan(corpus, NULL_METER, pattern, path, native.BUFFER_BYTES, memory)
        self.scan.specials.append(divider)
        self.table = WordCounts.from_items([])
        self.failure: BaseException | None = None
        reading, writing = os.pipe()
        self.pipe: BinaryIO = open(writing, "wb", buffering=0)  # noqa: PTH123, SIM115 - closed in `close`
        self.thread = threading.Thread(target=self.count, args=(reading,))
        self.thread.start()

    def count(self, reading: int) -> None:
        try:
            with open(reading, "rb", buffering=0) as text:
                self.table = self.scan.count(text, [])
        except BaseException as error:
            self.failure = error

    def write(self, piece: bytes) -> None:
        view = memoryview(piece)
        try:
            while view:
                view = view[self.pipe.write(view) :]
        except BrokenPipeError:
            self.close()
            self.result()
            raise

    def close(self) -> None:
        self.pipe.close()
        self.thread.join()

    def result(self) -> WordCounts:
        """All words. Raises what the scanner raised."""
        if self.failure is not None:
            raise self.failure
        return self.table


class Matcher:
    """Words counted in Python, by any pattern or none."""

    def __init__(self, corpus: Corpus, memory: int) -> None:
        self.corpus = corpus
        self.pattern = None if corpus.pattern is None else regex.compile(corpus.pattern)
        self.words: Counter[Any] = Counter()
        self.bytes = 0
        self.overflow = Overflow(
            self.words, memory, lambda: WordCounts.from_columns(map(bytes, self.words), self.words.values())
        )

    def add(self, document: bytes) -> None:
        self.bytes += len(document)
        for stretch, offset in split_documents([document], self.corpus.special_tokens):
            self.words.update([stretch] if self.pattern is None else self.matches(stretch.decode(), offset))
        if self.overflow.is_full():
            self.overflow.empty()

    def matches(self, text: str, offset: int) -> list[bytes]:
        assert self.pattern is not None
        matches = [match.group() for match in self.pattern.finditer(text)]
        if sum(map(len, matches)) != len(text) and not self.corpus.partial:
            raise LeftOut(self.corpus.path, offset, text[:SHOWN])
        return [match.encode() for match in matches if match]
