"""How a tokenizer encodes and decodes: by compiled code where it has some, else by the plain one,
which gives the same.

The plain encoder says what a text's ids are by definition, in Python. A text is split at special
tokens, the longest first, then by the pattern, and each pre-token is merged by rank. Bytes that are
not UTF-8 are lone surrogates in it, as in Python's own arguments. A text that comes in parts is cut
where that changes no word, so memory stays bounded.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any

import regex

from harness.tokenizers.learned import BYTES, Learned, join, tokens_made
from harness.tokenizers.pre_tokenizer import compiled_pattern
from variants import encoding
from variants.contract import Pair, Unavailable

WORDS_CACHED = 1 << 14
# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


class PlainEncoder:
    """A tokenizer's encoder. Raises Refusal for a pattern that is not a regular expression, and for
    a token without an id. `why_plain` says why there is no compiled one.
    """

    def __init__(self, learned: Learned, special_tokens: bool = True, why_plain: str = "") -> None:
        self.pattern = compiled_pattern(learned.pattern)
        self.type_code, self.why_plain = learned.type_code(), why_plain

        ids = learned.token_ids()
        self.byte_ids = [ids[byte] for byte in BYTES]
        self.id_of_rank = [ids[token] for token in tokens_made(learned.merges)]
        self.whole = ids if learned.ignore_merges else {}
        self.ranks: dict[Pair, int] = {}
        for rank, (left, right) in enumerate(learned.merges):
            self.ranks.setdefault((ids[left], ids[right]), rank)
        self.cached_ids = functools.lru_cache(WORDS_CACHED)(self.merged)

        self.special_ids = learned.special_tokens if special_tokens else {}
        longest_first = sorted(self.special_ids, key=len, reverse=True)
        one_of_them = "|".join(map(re.escape, longest_first)) or "(?!)"
        self.special = re.compile(f"({one_of_them})")
        self.longest_special = max(map(len, longest_first), default=1)

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a whole text."""
        whole = as_bytes(text).decode(errors="surrogateescape")
        ids = list[int]()
        for stretch in self.special.split(whole):
            if stretch in self.special_ids:
                ids.append(self.special_ids[stretch])
            else:
                ids += self.plain(stretch)
        return ids

    def encode_batch(self, texts: Sequence[str | bytes], _: int) -> tuple[array[int], list[int]]:
        """The ids of texts in one array, and where each text ends."""
        ids, ends = array(self.type_code), []
        for text in texts:
            ids.extend(self.encode(text))
            ends.append(len(ids))
        return ids, ends

    def last_cut(self, text: bytes) -> int:
        """The end of the last special token that no text behind it could make longer; 0 for none."""
        whole, cut = text.decode(errors="surrogateescape"), 0
        for special in self.special.finditer(whole):
            if special.start() + self.longest_special <= len(whole):
                cut = special.end()
        return len(whole[:cut].encode(errors="surrogateescape"))

    def plain(self, stretch: str) -> list[int]:
        """The ids of text without special tokens."""
        ids: list[int] = []
        for piece in pre_tokens_of(self.pattern, stretch):
            ids += self.cached_ids(piece)
        return ids

    def merged(self, piece: str) -> list[int]:
        """The ids of one pre-token."""
        content = piece.encode(errors="surrogateescape")
        if content in self.whole:
            return [self.whole[content]]
        return join([self.byte_ids[byte] for byte in content], self.ranks.get, self.id_of_rank)


class PlainDecoder:
    """A vocabulary's decoder, by definition."""

    def __init__(self, vocab: Mapping[int, bytes]) -> None:
        self.vocab = vocab

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids. Raises KeyError, with its place and the id, for an unknown one, and
        TypeError for what is not a number.
        """
        tokens = []
        for place, number in enumerate(ids):
            token = self.vocab.get(index(number))
            if token is None:
                raise KeyError(place, number)
            tokens.append(token)
        return b"".join(tokens)


def pre_tokens_of(pattern: regex.Pattern[str] | None, stretch: str) -> list[str]:
    """The pre-tokens, and between them what the pattern passes over, so that nothing is lost."""
    if pattern is None:
        return [stretch]

    # Sorted, because a pattern may say (?r) and be matched from the end.
    spans = sorted(match.span() for match in pattern.finditer(stretch))
    found, end = [], 0
    for start, stop in [*spans, (len(stretch), len(stretch))]:
        found += [stretch[end:start], stretch[start:stop]]
        end = stop
    return list(filter(None, found))


def as_bytes(text: Any) -> bytes:
    """A text as UTF-8, bytes as they are. Raises UnicodeEncodeError for a text with lone
    surrogates, TypeError for anything else.
    """
    if isinstance(text, bytes):
        return text
    if isinstance(text, bytearray | memoryview):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"a text is str or bytes, not {type(text).__name__}")
    return text.encode(errors="surrogateescape")


def refuse_frame(items: Any, name: str) -> None:
    """Raise TypeError for a data frame: the names of its columns, or the columns, would be
    taken for texts.
    """
    if hasattr(items, "columns"):
        raise TypeError(
            f"{name} is a {type(items).__name__}, not texts; pass one of its columns, such as frame['text']"
        )


# Compiled, or plain


def compiled_encoder(learned: Learned, special_tokens: bool = True) -> Any:
    """The compiled encoder, with the methods of the plain one. Raises Unavailable, with the reason,
    if the tokenizer has none.
    """
    return encoding.encoder(
        learned.token_ids(),
        learned.merges,
        learned.special_tokens if special_tokens else {},
        learned.pattern,
        max(learned.vocab),
        ignore_merges=learned.ignore_merges,
    )


def encoder_of(learned: Learned, special_tokens: bool = True) -> PlainEncoder:
    """The encoder of a tokenizer, compiled or with the methods of the plain one, which says why."""
    try:
        encoder: PlainEncoder = compiled_encoder(learned, special_tokens)
        return encoder
    except Unavailable as error:
        return PlainEncoder(learned, special_tokens, str(error))


def decoder_of(learned: Learned) -> PlainDecoder:
    """The decoder of a tokenizer, compiled or with the methods of the plain one."""
    try:
        decoder: PlainDecoder = encoding.decoder(learned.vocab)
        return decoder
    except Unavailable:
        return PlainDecoder(learned.vocab)


# Texts in parts


def streamed(
    encoder: PlainEncoder, parts: Iterable[bytes], threads: int = 1
) -> Iterator[memoryview]:
    """The ids of one text that comes in parts, as they come."""
    for stretch in stretches(encoder, parts, threads * WINDOW):
        ids, _ = encoder.encode_batch([stretch], threads)
        yield memoryview(ids)


def stretches(encoder: PlainEncoder, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts joined, and cut where that changes no word. What later text could change waits
    for it.
    """
    waiting, enough = bytearray(), window
    for part in windows(parts, window):
        waiting += part
        if len(waiting) < enough:
            continue

        cut = encoder.last_cut(bytes(waiting))
        yield bytes(waiting[:cut])
        del waiting[:cut]
        # If nothing could be cut, looking after each part would cost the square of the length.
        enough = max(window, 2 * len(waiting))
    yield bytes(waiting)


def windows(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts, cut so that each fits into a window."""
    for part in parts:
        for start in range(0, len(part), window):
            yield part[start : start + window]
