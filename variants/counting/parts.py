"""Counting one part of a text by itself: where a text may be cut into parts, the words of one, and sums of many.

A text is cut where no pre-token and no special token can span the cut, so that the words of all parts together are
those of the text. Nothing here knows where a text lies or who counts its parts.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO

from variants.contract import NULL_METER, Corpus, InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import native, processes
from variants.counting.native import Scan
from variants.counting.patterns import compiled, splits_documents
from variants.counting.pretokenize import CHUNK_BYTES, serial
from variants.counting.spilling import run_in, spill_folder

try:
    from variants.native import _scanner, _word_runs
except ImportError:
    _word_runs = None  # type: ignore[assignment]

__all__ = [
    "count_between",
    "count_written",
    "ends_a_part",
    "merge_runs",
    "run_in",
    "safe_place",
    "spill_folder",
    "write_runs",
]

REPLACEMENT = "\ufffd"
Read = Callable[[int, int], bytes]
"""Reads so many bytes of a text from a place on: `read(start, length)`."""


def ends_a_part(token: str, special_tokens: Sequence[str]) -> bool:
    """Whether a part may end behind this special token and the next begin there, whatever stands in either.

    >>> ends_a_part("<e>", ["<e>", "<f>"]), ends_a_part("<e>", ["<e>", "<e>x"]), ends_a_part("aa", ["aa"])
    (True, False, False)
    """
    listed = [each.encode() for each in special_tokens]
    longer = any(each.startswith(token.encode()) and each != token.encode() for each in listed)
    return token.encode() in processes.safe_to_cut(listed) and not longer


def safe_place(corpus: Corpus, read: Read, size: int, target: int) -> int:
    """The first place at `target` or later where a text of `size` bytes may be cut; its end if there is none.

    It depends on the text and on `target` alone: two who cut the same text for neighbouring parts cut it alike.
    """
    if target <= 0 or target >= size:
        return max(0, min(target, size))
    if scanned(corpus):
        place = scan_of(corpus).safe_place(read, target, size)
        return size if place is None else place
    tokens = processes.safe_to_cut([token.encode() for token in corpus.special_tokens])
    if not tokens:
        return size
    special = re.compile(b"|".join(map(re.escape, tokens)))
    overlap = max(map(len, tokens)) - 1
    for position in range(target, size, CHUNK_BYTES):
        if found := special.search(read(position, min(CHUNK_BYTES + overlap, size - position))):
            return position + found.start()
    return size


def scanned(corpus: Corpus) -> bool:
    """Whether the compiled scanner can say where to cut.

    It knows the pattern, and no special token has the sign that bad bytes are replaced by: that one it would not see.
    It cuts between valid characters only, so bytes on either side are replaced as they would be together.
    """
    unseen = corpus.replaces_errors and any(REPLACEMENT in token for token in corpus.special_tokens)
    return compiled(corpus.pattern) is not None and splits_documents(corpus.pattern) and not unseen


def scan_of(corpus: Corpus, memory: int | None = None) -> Scan:
    if native.NOT_BUILT:
        raise Unavailable(f"the scanner is not built ({native.NOT_BUILT}); run `pip install -e .` with a C++ compiler")
    pattern, path = compiled(corpus.pattern), _scanner.supported_paths()[-1]
    assert pattern is not None
    return Scan(corpus, NULL_METER, pattern, path, native.BUFFER_BYTES, memory)


def count_between(corpus: Corpus, start: int, stop: int, memory: int | None = None) -> WordCounts:
    """The words of bytes `start` to `stop` of a file in place; both are where a cut is safe.

    Raises what a counter raises; an offset is one in the whole file.
    """
    with open(corpus.path, "rb", buffering=0) as file:  # noqa: PTH123 - a corpus names its file by a string
        if compiled(corpus.pattern) is not None:
            try:
                return scan_of(corpus, memory).count(file, [start, stop])
            except InvalidText:
                if not corpus.replaces_errors:
                    raise

        def write(text: BinaryIO) -> None:
            file.seek(start)
            while block := file.read(min(CHUNK_BYTES, stop - file.tell())):
                text.write(block)

        return count_written(corpus, write, memory, start)


def count_written(
    corpus: Corpus, write: Callable[[BinaryIO], None], memory: int | None = None, start: int = 0
) -> WordCounts:
    """The words of what `write` writes into the file that it is handed; `corpus` names the text in errors.

    `start` is where it begins in the text that it is of. Raises what a counter raises, and what `write` does.
    """
    try:
        if compiled(corpus.pattern) is None:
            with tempfile.NamedTemporaryFile(dir=spill_folder()) as text:
                write(text)  # type: ignore[arg-type]
                text.flush()
                return serial(replaced(corpus, text.name), memory=memory)
        return through_a_pipe(corpus, write, memory)
    except (InvalidText, LeftOut) as error:
        error.path, error.offset = corpus.path, start + error.offset
        raise


def replaced(corpus: Corpus, path: str) -> Corpus:
    """The same reading of another file."""
    return Corpus(path, corpus.special_tokens, corpus.pattern, corpus.errors, corpus.partial)


def through_a_pipe(corpus: Corpus, write: Callable[[BinaryIO], None], memory: int | None) -> WordCounts:
    """Count while it is written, by a thread: nothing is kept but the table."""
    reading, writing = os.pipe()
    failures: list[BaseException] = []

    def feed() -> None:
        try:
            with open(writing, "wb", CHUNK_BYTES) as pipe:  # noqa: PTH123 - a descriptor, not a path
                write(pipe)
        except BrokenPipeError:
            return  # the scanner has ended early, and says why itself
        except BaseException as error:
            failures.append(error)

    feeding = threading.Thread(target=feed)
    feeding.start()
    scan = scan_of(corpus, memory)
    try:
        with open(reading, "rb", buffering=0) as text:  # noqa: PTH123
            word_counts = (scan.count_replaced if corpus.replaces_errors else scan.count)(text, [])
    except (InvalidText, OSError):
        feeding.join()
        if failures:  # what was counted ended too early because of it
            raise failures[0] from None
        raise
    feeding.join()
    if failures:
        raise failures[0]
    return word_counts


def write_runs(word_counts: WordCounts, partitions: int, file: BinaryIO) -> list[int]:
    """Write the words into `file`, which is empty: for each partition by their hash a run; where each ends.

    Words are in the order of their hashes, those with the same in that of their bytes: hashes are sorted without a look
    at the words.
    """
    return _word_runs.write_runs(word_counts.data, word_counts.offsets, word_counts.counts, partitions, file.fileno())


def merge_runs(runs: Sequence[WordCounts], data: BinaryIO, offsets: BinaryIO, counts: BinaryIO) -> None:
    """Write the sum of runs of one partition, which are mapped, into three files."""
    columns = [(run.data, run.offsets, run.counts) for run in runs]
    _word_runs.merge(columns, data.fileno(), offsets.fileno(), counts.fileno(), mapped=True, hashed=True)
