"""From bytes to words, by definition: decode strictly, split at special tokens, take the pattern's
matches.

The one-process counter, `serial`, streams: it holds the largest document and the table of words,
never the file. Special tokens are found in the bytes, which is the same as finding them in the text
because UTF-8 is self-synchronising.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO

import regex

from variants.contract import NULL_METER, Corpus, InvalidText, LeftOut, Meter, WordCounts
from variants.counting.spilling import Overflow

CHUNK_BYTES = 1 << 20
MATCHES_AT_ONCE = 1 << 16
LOOKED_AT = 4096
"""Characters of the first document in which a pattern that leaves text out is noticed before the
rest is counted.
"""
SHOWN = 40


def serial(corpus: Corpus, meter: Meter = NULL_METER, *, memory: int | None = None) -> WordCounts:
    """Count the words of a corpus in this process, in a table that is spilled when it takes
    `memory`: see spilling.py.

    Raises InvalidText with the offset of the first bad byte, LeftOut with that of the first text
    that the pattern leaves out, OSError if the file cannot be read.
    """
    table = WordTable(corpus, memory)
    size = table.count_range(0, None, meter)
    meter.lap("count")
    word_counts = table.overflow.word_counts(meter)
    meter.tally("documents", table.documents)
    meter.tally("bytes_scanned", size)
    meter.lap("count")
    return word_counts


class WordTable:
    """Words counted so far, and the way a corpus is to be read."""

    def __init__(self, corpus: Corpus, memory: int | None = None) -> None:
        self.corpus = corpus
        self.pattern = None if corpus.pattern is None else regex.compile(corpus.pattern)
        self.words: Counter[Any] = Counter()
        self.documents = self.characters = self.matched = 0
        self.overflow = Overflow(self.words, memory, self.word_counts)

    def count_range(self, start: int, length: int | None, meter: Meter) -> int:
        """Count `length` bytes of the file from byte `start` on (None: all); returns where they
        end.
        """
        with open(self.corpus.path, "rb") as file:  # noqa: PTH123 - a job names its files by strings
            file.seek(start)
            self.count(read_chunks(file, length, self.corpus.replaces_errors, meter), start, meter)
            stop = file.tell()
        # One sum over the words instead of a look at every match: it is right only if nothing was
        # left out.
        self.add_matched()
        if self.matched != self.characters and not self.corpus.partial:
            with open(self.corpus.path, "rb") as file:  # noqa: PTH123
                file.seek(start)
                chunks = read_chunks(file, length, self.corpus.replaces_errors, meter)
                for document, offset in split_documents(chunks, self.corpus.special_tokens):
                    self.check_nothing_left_out(document.decode(), start + offset)
            raise OSError(
                f"{self.corpus.path} was changed while it was being counted; count it again"
            )
        return stop

    def count(self, chunks: Iterable[bytes], start: int, meter: Meter) -> None:
        """Count every document in `chunks`, which begin at byte `start` of the file."""
        for document, offset in split_documents(chunks, self.corpus.special_tokens):
            if self.pattern is None:
                self.words[document] += 1
                self.characters += len(document)
            else:
                text = decoded(document, self.corpus.path, start + offset)
                if not self.characters and not self.corpus.partial:
                    self.check_nothing_left_out(text, start + offset, LOOKED_AT)
                self.characters += len(text)
                # Counter counts the strings in C; they are encoded once a word, not once an
                # occurrence.
                matches = map(regex.Match.group, self.pattern.finditer(text))
                if self.overflow.largest is None:
                    self.words.update(matches)
                while some := list(islice(matches, MATCHES_AT_ONCE)):
                    self.words.update(some)
                    self.spill_if_full()
            self.spill_if_full()
            self.documents += bool(document.strip())
            meter.lap("count")
            meter.progress(offset + len(document))

    def spill_if_full(self) -> None:
        if self.overflow.is_full():
            self.add_matched()
            self.overflow.empty()

    def add_matched(self) -> None:
        """Add the lengths of all matches in the table: just before it is emptied, and at the
        end.
        """
        self.matched += sum(len(word) * count for word, count in self.words.items())

    def pre_tokens(self, document: bytes, offset: int) -> list[Any]:
        """All pre-tokens of a document that begins at byte `offset`, in order: texts, or bytes
        without a pattern.

        Raises what counting it would raise.
        """
        if self.pattern is None:
            return [document]
        text = decoded(document, self.corpus.path, offset)
        matches = [found.group() for found in self.pattern.finditer(text)]
        if sum(map(len, matches)) != len(text) and not self.corpus.partial:
            self.check_nothing_left_out(text, offset)
        return list(filter(None, matches))

    def check_nothing_left_out(self, text: str, offset: int, looked_at: int | None = None) -> None:
        """Raise LeftOut if the matches in a document that begins at byte `offset` leave text out.

        With `looked_at`, only what is left out that early; a match there is the same as with all
        the text looked at.
        """
        assert self.pattern is not None
        end = 0
        for start, stop in chain(matched_spans(self.pattern, text), [(len(text), len(text))]):
            if start > end:
                left_out = text[end : min(start, end + SHOWN)]
                raise LeftOut(self.corpus.path, offset + len(text[:end].encode()), left_out)
            end = stop
            if looked_at is not None and end >= looked_at:
                return

    def word_counts(self) -> WordCounts:
        self.words.pop("", None)  # a pattern of one's own may match nothing at all
        words = self.words if self.pattern is None else (word.encode() for word in self.words)
        return WordCounts.from_columns(words, self.words.values())


def pre_tokens(corpus: Corpus, meter: Meter = NULL_METER) -> Iterator[bytes]:
    """Every pre-token of a corpus in its place, for who wants to know the text. Raises what
    `serial` raises.
    """
    table = WordTable(corpus)
    with open(corpus.path, "rb") as file:  # noqa: PTH123 - a job names its files by strings
        chunks = read_chunks(file, None, corpus.replaces_errors, meter)
        for document, offset in split_documents(chunks, corpus.special_tokens):
            pre_tokens = table.pre_tokens(document, offset)
            yield from pre_tokens if corpus.pattern is None else map(str.encode, pre_tokens)


def decoded(document: bytes, path: str, offset: int) -> str:
    """The text of a document that begins at byte `offset`. Raises InvalidText with the place of its
    first bad byte.
    """
    try:
        return document.decode()
    except UnicodeDecodeError as error:
        raise InvalidText(path, offset + error.start) from None


def matched_spans(pattern: regex.Pattern[str], text: str) -> Iterable[tuple[int, int]]:
    """Where the pattern matches some text, from the beginning on; one that says (?r) is matched
    from the end.
    """
    spans = (found.span() for found in pattern.finditer(text) if found.end() > found.start())
    return sorted(spans) if pattern.flags & regex.REVERSE else spans


def read_chunks(file: BinaryIO, length: int | None, replace: bool, meter: Meter) -> Iterator[bytes]:
    """The next `length` bytes of `file` (None: all), as they are or with invalid sequences already
    replaced.
    """
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


def split_documents(
    chunks: Iterable[bytes], special_tokens: Iterable[str]
) -> Iterator[tuple[bytes, int]]:
    """The stretches between special tokens, each with its offset; empty ones are left out.

    The longest special token that matches at a place wins, so a match is certain only once as many
    bytes as the longest has are there: what could still become a longer match waits for the next
    chunk.

    >>> list(split_documents([b"a<|e", b"|>b"], ["<|e|>"]))
    [(b'a', 0), (b'b', 6)]
    """
    tokens = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, tokens))) if tokens else None
    buffered = bytearray()
    # where the buffer begins in the file; up to where in it no special token can begin
    offset = searched = 0
    for chunk in chain(chunks, [b""]):  # the empty one says that no more will come
        buffered += chunk
        if special is None:
            continue
        certain = len(buffered) - len(tokens[0]) if chunk else len(buffered)
        start = 0
        while (
            found := special.search(buffered, max(searched, start))
        ) and found.start() <= certain:
            if found.start() > start:
                yield bytes(buffered[start : found.start()]), offset + start
            start = found.end()
        searched = max(0, certain + 1 - start)
        del found  # it keeps the buffer from being resized
        del buffered[:start]
        offset += start
    if buffered:
        yield bytes(buffered), offset


def cut(corpus: Corpus, size: int, number: int) -> list[tuple[int, int]]:
    """Up to `number` ranges of about equal length that begin at special tokens and together cover
    the file.
    """
    tokens = safe_to_cut([token.encode() for token in corpus.special_tokens])
    if not tokens:
        return []
    bounds = [0]
    with open(corpus.path, "rb") as file:  # noqa: PTH123
        for part in range(1, number):
            position = size * part // number
            # a long document reaches past this place; nothing is read twice
            if position <= bounds[-1]:
                continue
            found = find_special(tokens, file, position)
            if found is None:
                break
            bounds.append(found)
    return list(zip(bounds, [*bounds[1:], size]))


def find_special(tokens: Sequence[bytes], file: BinaryIO, position: int) -> int | None:
    """Where the first of these special tokens at `position` or later begins."""
    special, overlap = re.compile(b"|".join(map(re.escape, tokens))), max(map(len, tokens)) - 1
    while True:
        file.seek(position)
        window = file.read(CHUNK_BYTES + overlap)
        if not window:
            return None
        if found := special.search(window):
            return position + found.start()
        position += CHUNK_BYTES


def safe_to_cut(tokens: Sequence[bytes]) -> list[bytes]:
    """Those special tokens whose every occurrence is a match: no other, nor the token itself, can
    overlap it shifted.

    >>> safe_to_cut([b"<e>", b"ab", b"bc", b"aa"])
    [b'<e>']
    """
    return [
        token for token in tokens if not any(overlaps_shifted(token, other) for other in tokens)
    ]


def overlaps_shifted(token: bytes, other: bytes) -> bool:
    """Whether `other` can stand at another start so that both cover a common byte and agree on all
    of them.
    """
    for shift in range(1 - len(other), len(token)):
        start, stop = max(shift, 0), min(len(token), shift + len(other))
        if shift and token[start:stop] == other[start - shift : stop - shift]:
            return True
    return False
