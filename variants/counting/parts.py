"""Counting what is no whole file: parts of a text, streams, runs to be merged, and documents that
come one by one.

A text is cut where neither a pre-token nor a special token can span the cut, so the words of all
parts together are those of the text. Documents are never joined, so no word and no special token
spans two of them: if the pattern is compiled in, they go through a pipe to the scanner, divided by
a character that none of them has; the rare one that has it, and every document with another
pattern, is matched in Python. Tables spill when they are full: see spilling.py.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import BinaryIO

from variants.contract import NULL_METER, Corpus, Meter, WordCounts
from variants.counting.native import Scan, piped
from variants.counting.patterns import compiled, splits_documents
from variants.counting.pretokenize import (
    WordTable,
    find_special,
    safe_to_cut,
    serial,
    split_documents,
)
from variants.counting.spilling import Spill, run_in, spill_folder, unnamed_files, write_run
from variants.counting.spilling import merge as merge_runs

__all__ = [
    "count_documents", "count_stream", "ends_a_part", "merge_runs", "run_in", "safe_place", "sorted_run",
    "spill_folder",
]  # fmt: skip

DIVIDERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Unicode keeps these free for the private use of a program."""
PIECE_BYTES, PIECE_DOCUMENTS = 1 << 20, 1 << 16


def ends_a_part(token: str, special_tokens: Sequence[str]) -> bool:
    """Whether a part may end behind this special token and the next begin there, whatever is in
    either.

    >>> ends_a_part("<e>", ["<e>", "<f>"]), ends_a_part("<e>", ["<e>", "<e>x"]), ends_a_part("aa", ["aa"])
    (True, False, False)
    """
    tokens = [each.encode() for each in special_tokens]
    longer = any(each.startswith(token.encode()) and each != token.encode() for each in tokens)
    return token.encode() in safe_to_cut(tokens) and not longer


def safe_place(corpus: Corpus, file: BinaryIO, size: int, target: int) -> int:
    """The first place at `target` or later where a text of `size` bytes may be cut; its end if
    there is none.

    It depends on the text and on `target` alone, so neighbouring parts agree on the cut between
    them.
    """
    if target <= 0 or target >= size:
        return max(0, min(target, size))
    if scanned(corpus):
        scan = Scan(corpus, NULL_METER, compiled(corpus.pattern) or b"")
        place = scan.safe_place(file, target, size)
    else:
        tokens = safe_to_cut([token.encode() for token in corpus.special_tokens])
        if not tokens:
            return size
        place = find_special(tokens, file, target)
    return size if place is None else place


def scanned(corpus: Corpus) -> bool:
    """Whether the compiled scanner can find cuts: it must know the pattern, and split documents by
    it.

    It does not see a special token that contains U+FFFD where bad bytes are replaced by that
    character. It cuts only between valid characters, so the bytes on either side are replaced as
    they would be together.
    """
    unseen = corpus.replaces_errors and any("\ufffd" in token for token in corpus.special_tokens)
    return compiled(corpus.pattern) is not None and splits_documents(corpus.pattern) and not unseen


def count_stream(
    corpus: Corpus, write: Callable[[BinaryIO], None], memory: int | None = None
) -> WordCounts:
    """The words of what `write` writes into the file that it gets. Raises what a counter and
    `write` raise.

    The scanner reads a pipe; a pattern that it does not know is counted from a temporary file.
    """
    pattern = compiled(corpus.pattern)
    if pattern is None:
        with tempfile.NamedTemporaryFile(dir=spill_folder()) as text:
            write(text)  # type: ignore[arg-type]
            text.flush()
            return serial(replace(corpus, path=text.name), memory=memory)
    scan = Scan(corpus, NULL_METER, pattern, memory=memory)
    with piped(write) as file:
        return scan.count_open(file, [])


def sorted_run(word_counts: WordCounts) -> bytes:
    """The words as one run, for `run_in`. Raises OSError with what to do if the disk is full."""
    with unnamed_files(1) as (file,):
        write_run(word_counts, file)
        file.seek(0)
        return file.read()


def count_documents(
    batches: Iterable[Sequence[bytes]],
    corpus: Corpus,
    memory: int,
    meter: Meter = NULL_METER,
    *,
    threads: int = 1,
) -> WordCounts:
    """Count the words of batches of documents, which are valid UTF-8 unless the corpus's pattern is
    None.

    `corpus` says how to read them; its path is unused. `memory` limits the tables; `meter.progress`
    gets the bytes. Raises Unavailable without the compiled scanner, LeftOut if the pattern leaves
    text out, and what `batches` raises.
    """
    table, done = WordTable(corpus, memory), 0

    def match(document: bytes) -> None:
        for stretch, offset in split_documents([document], corpus.special_tokens):
            table.words.update(table.pre_tokens(stretch, offset))
        table.spill_if_full()

    pattern = None if corpus.pattern is None else compiled(corpus.pattern)
    if pattern is None:
        for batch in batches:
            for document in batch:
                match(document)
                done += len(document)
            meter.progress(done)
        return table.overflow.word_counts(meter)
    divider = next(
        divider for divider in DIVIDERS if divider not in "".join(corpus.special_tokens)
    ).encode()
    scanners = [Scanner(corpus, pattern, divider, memory // threads) for _ in range(threads)]
    try:
        for number, some in enumerate(pieces(batches)):
            piece = divider.join([*some, b""])
            done += len(piece) - len(some) * len(divider)
            if piece.count(divider) > len(some):
                for document in some:
                    if divider in document:
                        match(document)
                piece = divider.join(
                    [*(document for document in some if divider not in document), b""]
                )
            scanners[number % threads].write(piece)
            meter.progress(done)
    finally:
        for scanner in scanners:
            scanner.close()
    tables = [
        *(scanner.counting.result() for scanner in scanners),
        table.overflow.word_counts(meter),
    ]
    tables = [each for each in tables if len(each)]
    if len(tables) < 2:
        return tables[0] if tables else WordCounts.from_items([])
    spill = Spill()
    for each in tables:
        spill.add(each)
    return spill.merged()


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


class Scanner:
    """The compiled scanner at the other end of a pipe, in a thread of its own."""

    def __init__(self, corpus: Corpus, pattern: bytes, divider: bytes, memory: int) -> None:
        scan = Scan(corpus, NULL_METER, pattern, memory=memory)
        scan.specials.append(divider)
        reading, writing = os.pipe()

        def count() -> WordCounts:
            with open(reading, "rb", buffering=0) as text:  # noqa: PTH123
                return scan.count(text, [])

        self.pipe = open(writing, "wb")  # noqa: PTH123, SIM115 - closed in `close`
        self.executor = ThreadPoolExecutor(1)
        self.counting = self.executor.submit(count)

    def write(self, piece: bytes) -> None:
        try:
            self.pipe.write(piece)
        except BrokenPipeError:
            self.counting.result()  # raises what the scanner raised
            raise

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.pipe.close()
        self.executor.shutdown()
