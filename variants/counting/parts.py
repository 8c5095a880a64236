"""Counting one part of a text alone: where a text may be cut, the words of a stream, and sorted runs of words.

A text is cut where neither a pre-token nor a special token can span the cut, so the words of all parts together are
those of the text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import BinaryIO

from variants.contract import NULL_METER, Corpus, WordCounts
from variants.counting import processes
from variants.counting.native import Scan, piped
from variants.counting.patterns import compiled, splits_documents
from variants.counting.pretokenize import serial
from variants.counting.spilling import merge as merge_runs
from variants.counting.spilling import run_in, spill_folder, unnamed_files, write_run

__all__ = ["count_stream", "ends_a_part", "merge_runs", "run_in", "safe_place", "sorted_run", "spill_folder"]

REPLACEMENT = "\ufffd"


def ends_a_part(token: str, special_tokens: Sequence[str]) -> bool:
    """Whether a part may end behind this special token and the next begin there, whatever is in either.

    >>> ends_a_part("<e>", ["<e>", "<f>"]), ends_a_part("<e>", ["<e>", "<e>x"]), ends_a_part("aa", ["aa"])
    (True, False, False)
    """
    tokens = [each.encode() for each in special_tokens]
    longer = any(each.startswith(token.encode()) and each != token.encode() for each in tokens)
    return token.encode() in processes.safe_to_cut(tokens) and not longer


def safe_place(corpus: Corpus, file: BinaryIO, size: int, target: int) -> int:
    """The first place at `target` or later where a text of `size` bytes may be cut; its end if there is none.

    It depends on the text and on `target` alone, so neighbouring parts agree on the cut between them.
    """
    if target <= 0 or target >= size:
        return max(0, min(target, size))
    if scanned(corpus):

        def read(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        scan = Scan(corpus, NULL_METER, compiled(corpus.pattern) or b"")
        place = scan.safe_place(read, target, size)
    else:
        tokens = processes.safe_to_cut([token.encode() for token in corpus.special_tokens])
        if not tokens:
            return size
        place = processes.find(tokens, file, target)
    return size if place is None else place


def scanned(corpus: Corpus) -> bool:
    """Whether the compiled scanner can find cuts: it must know the pattern, and split documents by it.

    It does not see a special token that contains U+FFFD where bad bytes are replaced by that character. It cuts only
    between valid characters, so the bytes on either side are replaced as they would be together.
    """
    unseen = corpus.replaces_errors and any(REPLACEMENT in token for token in corpus.special_tokens)
    return compiled(corpus.pattern) is not None and splits_documents(corpus.pattern) and not unseen


def count_stream(corpus: Corpus, write: Callable[[BinaryIO], None], memory: int | None = None) -> WordCounts:
    """The words of what `write` writes into the file that it gets. Raises what a counter and `write` raise.

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
