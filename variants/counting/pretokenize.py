"""From bytes to words, by definition: decode strictly, split at special tokens, take the pattern's matches.

The one-process counter, `serial`, streams: it holds the largest document and the table of words, never the file.
Special tokens are found in the bytes, which is the same as finding them in the text because UTF-8 is
self-synchronising.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

import regex

from variants.contract import NULL_METER, Corpus, InvalidText, Meter, WordCounts

CHUNK_BYTES = 1 << 20


def serial(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    """Count the words of a corpus in this process.

    Raises InvalidText with the offset of the first bad byte, OSError if the file cannot be read.
    """
    table = WordTable(corpus)
    with open(corpus.path, "rb") as file:  # noqa: PTH123 - a job names its files by strings
        table.count(read_chunks(file, None, corpus.replaces_errors, meter), 0, meter)
        size = file.tell()
    meter.lap("count")
    word_counts = table.word_counts()
    meter.tally("documents", table.documents)
    meter.tally("bytes_scanned", size)
    meter.lap("count")
    return word_counts


class WordTable:
    """Words counted so far, and the way a corpus is to be read."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.pattern = None if corpus.pattern is None else regex.compile(corpus.pattern)
        self.words: Counter[str] = Counter()
        self.raw_words: Counter[bytes] = Counter()
        self.documents = 0

    def count(self, chunks: Iterable[bytes], start: int, meter: Meter) -> None:
        """Count every document in `chunks`, which begin at byte `start` of the file."""
        for document, offset in split_documents(chunks, self.corpus.special_tokens):
            if self.pattern is None:
                self.raw_words[document] += 1
            else:
                try:
                    text = document.decode()
                except UnicodeDecodeError as error:
                    raise InvalidText(self.corpus.path, start + offset + error.start) from None
                # Counter counts the strings in C; they are encoded once a word, not once an occurrence.
                self.words.update(map(regex.Match.group, self.pattern.finditer(text)))
            self.documents += bool(document.strip())
            meter.lap("count")
            meter.progress(offset + len(document))

    def word_counts(self) -> WordCounts:
        self.words.pop("", None)  # a pattern of one's own may match nothing at all
        if self.pattern is None:
            return WordCounts.from_columns(self.raw_words.keys(), self.raw_words.values())
        return WordCounts.from_columns((word.encode() for word in self.words), self.words.values())


def read_chunks(file: BinaryIO, length: int | None, replace: bool, meter: Meter) -> Iterator[bytes]:
    """The next `length` bytes of `file` (None: all), as they are or with invalid sequences already replaced."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace") if replace else None
    remaining = length
    while chunk := file.read(CHUNK_BYTES if remaining is None else min(CHUNK_BYTES, remaining)):
        if remaining is not None:
            remaining -= len(chunk)
        if decoder is not None:
            chunk = decoder.decode(chunk).encode()
        meter.lap("read")
        if chunk:
            yield chunk
    if decoder is not None and (rest := decoder.decode(b"", final=True).encode()):
        yield rest


def split_documents(chunks: Iterable[bytes], special_tokens: Iterable[str]) -> Iterator[tuple[bytes, int]]:
    """The stretches between special tokens, each with its offset; empty ones are left out.

    The longest special token that matches at a place wins, so a match is certain only once as many bytes as the longest
    has are there: what could still become a longer match waits for the next chunk.

    >>> list(split_documents([b"a<|e", b"|>b"], ["<|e|>"]))
    [(b'a', 0), (b'b', 6)]
    """
    tokens = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, tokens))) if tokens else None
    buffered = bytearray()
    offset = searched = 0  # where the buffer begins in the file; up to where in it no special token can begin
    for chunk in chain(chunks, [b""]):  # the empty one says that no more will come
        buffered += chunk
        if special is None:
            continue
        certain = len(buffered) - len(tokens[0]) if chunk else len(buffered)
        start = 0
        while (found := special.search(buffered, max(searched, start))) and found.start() <= certain:
            if found.start() > start:
                yield bytes(buffered[start : found.start()]), offset + start
            start = found.end()
        searched = max(0, certain + 1 - start)
        del found  # it keeps the buffer from being resized
        del buffered[:start]
        offset += start
    if buffered:
        yield bytes(buffered), offset
