"""A trained tokenizer at work, plainly: encode by merge rank, decode.

What it does is the definition read backwards: split at special tokens, the longest first, split by the pattern, and
inside each pre-token make the earliest learned merge before all others. Any bytes come back as they went in. Text goes
through in windows, so that memory stays bounded; what was merged is kept, since pre-tokens come again.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import regex

from harness.common.errors import Refusal
from harness.tokenizers.array_file import array_of, type_for
from harness.tokenizers.cuts import last_cut_of
from harness.tokenizers.merging import join
from variants.contract import GPT2_PATTERN, Merge, Pair

if TYPE_CHECKING:
    import numpy as np

    from harness.tokenizers.array_file import Show

WORDS_KEPT = 1 << 17
LONGEST_KEPT = 64
WINDOW = 1 << 20
"""So many characters go through at a time; a document in which no cut is safe goes through whole."""


class Tokenizer:
    """Merges and what they make: `vocab` from id to bytes, `special_tokens` from text to id, `pattern`.

    >>> from variants.contract import vocab_of
    >>> merges = [(b"l", b"o"), (b"lo", b"w")]
    >>> tokenizer = Tokenizer(vocab_of(merges, ["<|e|>"]), merges, {"<|e|>": 256})
    >>> tokenizer.encode("low<|e|>lot")
    [258, 256, 257, 116]
    >>> tokenizer.decode([258, 256])
    b'low<|e|>'
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Mapping[str, int],
        pattern: str | None = GPT2_PATTERN,
        ignore_merges: bool = False,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.special_tokens = dict(special_tokens)
        self.pattern = pattern
        self.ignore_merges = ignore_merges
        self._compiled = None if pattern is None else _compiled(pattern)
        # Then findall gives the matches, and in their order.
        self._in_order = self._compiled is not None and not (
            self._compiled.groups or self._compiled.flags & regex.REVERSE
        )
        self._last_cut = last_cut_of(pattern)
        # A special token may have the bytes of a merge; the merge's id is then the one meant.
        special_ids = set(self.special_tokens.values())
        ids = {token: number for number, token in self.vocab.items() if number not in special_ids}
        self._byte_ids = [ids[bytes((byte,))] for byte in range(256)]
        self._ranks: dict[Pair, int] = {}
        self._made: list[int] = []
        for rank, (left, right) in enumerate(self.merges):
            self._ranks.setdefault((ids[left], ids[right]), rank)
            self._made.append(ids[left + right])
        self._whole = ids if ignore_merges else {}
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._longest_special = max(map(len, longest_first), default=0)
        self._kept = _Kept(self)

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a text, or of any bytes. Raises Refusal for a text that has no UTF-8."""
        return list(chain.from_iterable(self._batches([_text(text)])))

    def encode_iterable(self, texts: Iterable[str | bytes]) -> Iterator[int]:
        """The ids of a text that comes in parts, one by one: those of the parts joined, wherever they were divided.

        Memory stays bounded by the longest document, and with every pattern here but `document` and `bytes` by a
        window of a million characters. Raises Refusal, when it gets there, for a part that has no UTF-8.
        """
        return chain.from_iterable(self._batches(_joined(texts)))

    def encode_file(
        self, path: Path | str, output: Path | str | None = None, *, on_progress: Show | None = None
    ) -> np.ndarray[Any, Any]:
        """The ids of a file's bytes as a NumPy array: uint16 where all ids fit, else uint32.

        With `output` they are written there (.npy, whole or not at all) as they come, and the array is mapped from
        that file; memory is then bounded as in `encode_iterable`. `on_progress` is told the bytes read so far.
        Raises Refusal if a file cannot be read or written.
        """
        return array_of(
            lambda blocks: self._batches(_joined(blocks)), Path(path), output, type_for(max(self.vocab)), on_progress
        )

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids. Raises Refusal for an id that is not in the vocabulary."""
        try:
            return b"".join([self.vocab[number] for number in ids])
        except KeyError as error:
            raise Refusal(f"there is no token {error}; the ids of this tokenizer are 0 to {max(self.vocab)}") from error

    def decode_text(self, ids: Iterable[int], errors: Literal["strict", "replace"] = "strict") -> str:
        """The text of some ids. Raises Refusal if their bytes are not UTF-8, unless errors is `replace`."""
        try:
            return self.decode(ids).decode(errors=errors)
        except UnicodeDecodeError as error:
            raise Refusal(
                f"the bytes of these ids are not UTF-8 at byte {error.start}; set errors='replace', or take the bytes"
            ) from error

    def _batches(self, texts: Iterable[str]) -> Iterator[list[int]]:
        """The ids of the texts joined. What later text could change waits for it."""
        waiting, enough = "", WINDOW
        for text in texts:
            waiting += text
            if len(waiting) < enough:
                continue
            # A special token that begins here could still become a longer one.
            sure = len(waiting) - max(self._longest_special - 1, 0)
            start = 0
            for stretch, special in self._stretches(waiting, sure):
                yield from self._windows(stretch)
                yield [self.special_tokens[special]]
                start += len(stretch) + len(special)
            cut = start if self._last_cut is None else self._last_cut(waiting, start, sure)
            yield from self._windows(waiting[start:cut])
            waiting = waiting[cut:]
            # Where nothing could be cut, looking again and again would cost the square of the length.
            enough = max(WINDOW, 2 * len(waiting))
        start = 0
        for stretch, special in self._stretches(waiting, len(waiting)):
            yield from self._windows(stretch)
            yield [self.special_tokens[special]]
            start += len(stretch) + len(special)
        yield from self._windows(waiting[start:])

    def _stretches(self, text: str, sure: int) -> Iterator[tuple[str, str]]:
        """Each special token that begins before `sure`, and what stands before it."""
        end = 0
        for special in self._special.finditer(text) if self._special else ():
            if special.start() >= sure:
                return
            yield text[end : special.start()], special[0]
            end = special.end()

    def _windows(self, stretch: str) -> Iterator[list[int]]:
        start = 0
        while start < len(stretch):
            stop = len(stretch)
            if self._last_cut is not None and stop - start > 2 * WINDOW:
                cut = self._last_cut(stretch, start, start + WINDOW)
                stop = cut if cut > start else stop
            window = stretch[start:stop]
            yield list(chain.from_iterable(map(self._kept.__getitem__, self._pieces(window))))
            start = stop

    def _pieces(self, stretch: str) -> Sequence[str]:
        """The pre-tokens, and between them what the pattern passes over, so that nothing is lost."""
        if self._compiled is None:
            return [stretch]
        if self._in_order:
            found: list[str] = self._compiled.findall(stretch)
            if sum(map(len, found)) == len(stretch):
                return found
        # Sorted, because a pattern may say (?r) and be matched from the end.
        spans = sorted(match.span() for match in self._compiled.finditer(stretch))
        pieces, end = [], 0
        for start, stop in [*spans, (len(stretch), len(stretch))]:
            pieces += [stretch[end:start], stretch[start:stop]]
            end = stop
        return pieces

    def merged(self, piece: bytes) -> list[int]:
        """The tokens of one pre-token."""
        if piece in self._whole:
            return [self._whole[piece]]
        return join([self._byte_ids[byte] for byte in piece], self._ranks, self._made)


class _Kept(dict[str, Sequence[int]]):
    """The tokens of the pre-tokens met so far; emptied when it is full, for then most of it is rare words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, piece: str) -> Sequence[int]:
        content = piece.encode(errors="surrogateescape")
        ids = self.tokenizer.merged(content)
        # Long pieces hardly ever come again; keeping them would only cost memory.
        if len(content) <= LONGEST_KEPT:
            if len(self) >= WORDS_KEPT:
                self.clear()
            self[piece] = tuple(ids)
        return ids


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern)
    except (regex.error, ValueError, RecursionError) as error:
        raise Refusal(f"pattern {pattern!r} is not a regular expression: {error}") from error


def _text(text: str | bytes) -> str:
    """The text, in which bytes that are not UTF-8 are lone surrogates, as Python has them in arguments."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            return _utf8(text).decode(errors="surrogateescape")
        return text
    return bytes(text).decode(errors="surrogateescape")


def _utf8(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise Refusal(
            f"character {error.start} of the text is a lone surrogate, which no UTF-8 has; remove it"
        ) from error


def _joined(parts: Iterable[str | bytes]) -> Iterator[str]:
    """The parts as texts; a character whose bytes are divided between two parts is put together."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for part in parts:
        yield decoder.decode(_utf8(part) if isinstance(part, str) else bytes(part))
    yield decoder.decode(b"", final=True)
