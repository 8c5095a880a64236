"""The contract between the algorithms and whoever runs them: plain data, two callables, one meter.

A word counter turns a corpus into word counts, a trainer turns word counts into merges. Both are plain functions; no
base class, no state between calls. This file imports nothing of ours and keeps to Python 3.9's standard library, so
that a measuring process starts at once and PyPy runs the same files.
"""

from __future__ import annotations

import enum
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Protocol

Merge = tuple[bytes, bytes]
"""One learned merge: the left and the right token's bytes."""

Veto = Callable[[bytes, bytes], bool]
"""Whether the pair with these two halves may never be merged; it is told their bytes and nothing else."""

Pair = tuple[int, int]
"""Two adjacent token ids: bytes are 0-255, the n-th merge (from 0) makes token 256 + n."""


class Merges(Sequence[Merge]):
    """Merges as pairs of token ids, spelled when they are looked at.

    A list of bytes can be far larger than what was learned: in one long word a token may grow to the end of the word,
    and the list spells every stage of it. `ids` holds the ids of all pairs in order, as uint32. A trainer may append.

    >>> merges = Merges(array("I", [97, 98, 256, 99]))
    >>> merges[1], len(merges), merges == [(b"a", b"b"), (b"ab", b"c")]
    ((b'ab', b'c'), 2, True)
    """

    __slots__ = ("_backwards", "_onwards", "_tokens", "ids")

    LONG = 256
    """Tokens of more bytes are not held one by one."""

    def __init__(self, ids: array[int] | None = None) -> None:
        self.ids = array("I") if ids is None else ids
        # By id, the bytes of a short token, or the place of a long one in one of two buffers; the second holds bytes
        # from the last to the first. Buffers only grow. So a token that grows at one end is spelled once.
        self._tokens: list[Any] = [bytes((byte,)) for byte in range(256)]
        self._onwards, self._backwards = bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self.ids) // 2

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        self._spell(place)
        return self._token(self.ids[2 * place]), self._token(self.ids[2 * place + 1])

    def __iter__(self) -> Iterator[Merge]:
        number = len(self)
        self._spell(number)
        halves = map(
            self._token if self._onwards or self._backwards else self._tokens.__getitem__, self.ids[: 2 * number]
        )
        return zip(halves, halves)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Merges) and self.ids == other.ids:
            return True
        if not isinstance(other, (Merges, list)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Merges, (self.ids,)

    def __repr__(self) -> str:
        return f"<Merges: {len(self)}>"

    def _token(self, token_id: int) -> bytes:
        return self._bytes(self._tokens[token_id])

    def _bytes(self, token: bytes | slice) -> bytes:
        if isinstance(token, bytes):
            return token
        return bytes((self._onwards if token.step > 0 else self._backwards)[token])

    def _spell(self, number: int) -> None:
        """Spell the tokens of the first `number` merges."""
        tokens, long = self._tokens, self.LONG
        halves = iter(self.ids[2 * (len(tokens) - 256) : 2 * number])
        for left_id, right_id in zip(halves, halves):
            left, right = tokens[left_id], tokens[right_id]
            if type(left) is bytes is type(right) and len(left) + len(right) <= long:
                tokens.append(left + right)
            else:
                tokens.append(self._joined(left, right))

    def _joined(self, left: Any, right: Any) -> slice:
        """The place of a long token. Only what is new is spelled if a half is at the end of its buffer."""
        onwards, backwards = self._onwards, self._backwards
        if type(left) is slice and left.step > 0 and left.stop == len(onwards):
            onwards += self._bytes(right)
            return slice(left.start, len(onwards), 1)
        if type(right) is slice and right.step < 0 and right.start == len(backwards) - 1:
            backwards += self._bytes(left)[::-1]
            return slice(len(backwards) - 1, right.stop, -1)
        left, right = self._bytes(left), self._bytes(right)
        if len(left) >= len(right):
            start = len(onwards)
            onwards += left + right
            return slice(start, len(onwards), 1)
        stop = len(backwards) - 1
        backwards += (left + right)[::-1]
        return slice(len(backwards) - 1, stop if stop >= 0 else None, -1)


GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT2_LINES_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|[^\S\n]*\n|[^\S\n]+(?!\S)|[^\S\n]+"
"""The same on every line by itself."""

LARGEST_COUNT = 2**63 - 1

COUNTING_PHASES = ("read", "count")
TRAINING_PHASES = ("convert", "init", "copy", "max", "update")
PHASES = (*COUNTING_PHASES, *TRAINING_PHASES)
"""What a Meter's seconds are given to, in the order in which a run goes through them.

They mean the same for all: init is everything before the first maximum; copy is only of the stages that copy all pairs
before they look for the maximum. What is left of a run is "other", and is no trainer's to name.
"""


class Unavailable(Exception):
    """A variant cannot run on this machine; the message says why and what would change that."""


class InvalidText(ValueError):
    """The corpus is not valid UTF-8; `offset` is the position in the file of the first bad byte."""

    def __init__(self, path: str, offset: int) -> None:
        super().__init__(path, offset)
        self.path = path
        self.offset = offset

    def __str__(self) -> str:
        # A byte order mark of UTF-16 begins with a byte that UTF-8 never has.
        cure = "mend the file" if self.offset else "if it is UTF-16, iconv -f UTF-16 -t UTF-8 converts it; else mend it"
        return f"{self.path}: invalid UTF-8 at byte {self.offset}; {cure}, or set errors=replace"


class LeftOut(ValueError):
    """The pattern matches only parts of the corpus; `offset` is where the first text that it leaves out begins.

    With errors=replace the offset is that in the replaced text.
    """

    def __init__(self, path: str, offset: int, text: str) -> None:
        super().__init__(path, offset, text)
        self.path = path
        self.offset = offset
        self.text = text

    def __str__(self) -> str:
        return (
            f"{self.path}: the pattern leaves out text, first {self.text!r} at byte {self.offset}; mend the pattern, "
            "or say pattern.partial=true if that is meant"
        )


@dataclass(frozen=True)
class Corpus:
    """A file and how to read it.

    `pattern` is a regular expression of the `regex` module whose matches are the pre-tokens; None takes the raw bytes
    between two special tokens as one word, without decoding. `errors` is `strict` or `replace`: what becomes of bytes
    that cannot be decoded. `partial` allows a pattern that leaves text out, which is an error otherwise.
    """

    path: str
    special_tokens: tuple[str, ...] = ("<|endoftext|>",)
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"
    partial: bool = False

    @property
    def replaces_errors(self) -> bool:
        """Whether invalid bytes become U+FFFD before anything else; what is not decoded cannot be invalid."""
        return self.errors == "replace" and self.pattern is not None


class WordCounts(Mapping[bytes, int]):
    """Distinct words with their counts, in columns: the layout of Arrow's large_binary.

    `data` holds the words' bytes end to end (uint8), `offsets` one more int64 than there are words, so that word i is
    `data[offsets[i]:offsets[i + 1]]`, and `counts` one uint64 a word. All three are memoryviews, over memory or over a
    mapped file, and compiled trainers take them without a copy. To Python it reads as a mapping from bytes to int.

    >>> counts = WordCounts.from_items([(b"low", 5), (b"er", 2), (b"low", 1)])
    >>> dict(counts)
    {b'low': 6, b'er': 2}
    >>> bytes(counts.data), list(counts.offsets), list(counts.counts)
    (b'lower', [0, 3, 5], [6, 2])
    """

    __slots__ = ("_index", "counts", "data", "offsets")

    def __init__(self, data: memoryview, offsets: memoryview, counts: memoryview) -> None:
        if (data.format, offsets.format, counts.format) != ("B", "q", "Q"):
            raise ValueError(
                f"word counts need columns of formats B, q, Q, not {data.format}, {offsets.format}, {counts.format}"
            )
        if len(offsets) != len(counts) + 1:
            raise ValueError(f"{len(counts)} counts need {len(counts) + 1} offsets, not {len(offsets)}")
        self.data = data
        self.offsets = offsets
        self.counts = counts
        self._index: dict[bytes, int] | None = None

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, int]]) -> WordCounts:
        """Build the columns; a count of 0 is dropped, repeated words are summed, first occurrence gives the order.

        Raises ValueError for a negative count, an empty word, or a table whose pair counts could pass 2**63 - 1.
        """
        summed: dict[bytes, int] = {}
        for word, count in items:
            if count < 0:
                raise ValueError(f"word {word!r} has the negative count {count}; counts are 1 or more")
            if not word:
                raise ValueError("a word of no bytes cannot be counted; leave it out")
            if count:
                summed[word] = summed.get(word, 0) + count
        # The largest any pair's count can become, and with it every sum a trainer makes.
        adjacent = sum(count * (len(word) - 1) for word, count in summed.items())
        if adjacent > LARGEST_COUNT or any(count > LARGEST_COUNT for count in summed.values()):
            raise ValueError(
                f"the words hold {adjacent} adjacent positions by weight, more than 2**63 - 1; divide the counts"
            )
        return cls.from_columns(summed.keys(), summed.values())

    @classmethod
    def from_columns(cls, words: Iterable[bytes], counts: Iterable[int]) -> WordCounts:
        """Build from distinct words and their counts in the same order, unchecked: for counters, which know."""
        listed = list(words)
        offsets = array("q", [0])
        position = 0
        for word in listed:
            position += len(word)
            offsets.append(position)
        columns = memoryview(b"".join(listed)), memoryview(offsets), memoryview(array("Q", counts))
        return cls(columns[0], columns[1].toreadonly(), columns[2].toreadonly())

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[bytes]:
        data, start = self.data, 0
        for stop in self.offsets[1:]:
            yield bytes(data[start:stop])
            start = stop

    def __getitem__(self, word: bytes) -> int:
        if self._index is None:
            self._index = {word: index for index, word in enumerate(self)}
        return int(self.counts[self._index[word]])

    def values(self) -> Any:
        """The counts in the words' order, without making the words."""
        return self.counts.tolist()

    def items(self) -> Any:
        """(word, count) in order, without a look-up per word."""
        return zip(self, self.counts.tolist())

    def __repr__(self) -> str:
        return f"<WordCounts: {len(self)} words, {len(self.data)} bytes>"


def _gpt2_characters() -> tuple[str, ...]:
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return tuple(chr(byte if byte in shown else next(others)) for byte in range(256))


GPT2_CHARACTERS = _gpt2_characters()
"""GPT-2's visible character for each byte: 188 stand for themselves, the other 68 are U+0100 and up, in byte order."""

# Hugging Face numbers bytes in the order of these characters.
_HUGGINGFACE_ID = {byte: place for place, byte in enumerate(sorted(range(256), key=GPT2_CHARACTERS.__getitem__))}

_INVERTED = bytes(255 - byte for byte in range(256))


def inverted(token: bytes) -> str:
    """A key that sorts the other way round than the bytes do, a prefix after the longer string.

    The terminator, above every inverted byte, is what puts the prefix last; a bare translation would not. It turns
    Python's min-heap into a max-heap over bytes without private functions (see heap.py).

    >>> sorted([b"a", b"ab", b"b"], key=inverted)
    [b'b', b'ab', b'a']
    """
    return token.translate(_INVERTED).decode("latin-1") + "\u0100"


class TieBreak(enum.Enum):
    """Which of several equally frequent pairs is merged first. The first is the definition, the others are peers'."""

    GREATEST_BYTES = "greatest_bytes"
    """The greatest (left bytes, right bytes): CS336's definition and ours."""
    SMALLEST_BYTES = "smallest_bytes"
    """The smallest (left bytes, right bytes): gigatoken's assembled bytes."""
    HUGGINGFACE = "huggingface"
    """The smallest (left id, right id), bytes numbered in the order of their GPT-2 characters."""
    RAW_BYTES = "raw_bytes"
    """The smallest (left id, right id), bytes are their own ids: rustbpe."""

    def key(self, token_id: int, token: bytes) -> Any:
        """A value for each token such that among equal counts the greatest (left key, right key) is merged.

        >>> [TieBreak("raw_bytes").key(97, b"a"), TieBreak("greatest_bytes").key(97, b"a")]
        [-97, b'a']
        """
        if self is TieBreak.GREATEST_BYTES:
            return token
        if self is TieBreak.SMALLEST_BYTES:
            return inverted(token)
        return -self._number(token_id)

    def reversed_key(self, token_id: int, token: bytes) -> Any:
        """The same order upside down, for a min-heap: the smallest (left key, right key) is merged."""
        if self is TieBreak.GREATEST_BYTES:
            return inverted(token)
        if self is TieBreak.SMALLEST_BYTES:
            return token
        return self._number(token_id)

    def _number(self, token_id: int) -> int:
        return _HUGGINGFACE_ID.get(token_id, token_id) if self is TieBreak.HUGGINGFACE else token_id


GREATEST_BYTES = TieBreak.GREATEST_BYTES


class Meter:
    """Where a counter or a trainer says what it is doing: time by phase (PHASES), counts of work, how far it is."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.tallies: dict[str, int] = {}
        self.followed: Sequence[Merge] = ()
        self.done = 0
        self.last_phase = ""
        self.laps = 0
        self._mark = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Give all time since the previous lap to `phase`. Laps partition the run."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._mark
        self._mark = now
        self.last_phase = phase
        self.laps += 1

    def add(self, phase: str, seconds: float) -> None:
        """Give `seconds` of the time since the previous lap to `phase`: native code times itself."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        self._mark += seconds
        self.last_phase = phase

    def tally(self, name: str, n: int) -> None:
        """Count work; called at most once a merge for each name. Deterministic, equal on every machine."""
        self.tallies[name] = self.tallies.get(name, 0) + n

    def follow(self, merges: Sequence[Merge]) -> None:
        """Called once with what the trainer appends to: its length is the progress, its content the prefix."""
        self.followed = merges

    def progress(self, done: int) -> bool:
        """Called by native trainers (merges) and by counters (bytes), ten times a second at most. False: stop.

        One that reads the file tells its bytes here, and shows its merges by `follow`.
        """
        self.done = done
        return True


class NullMeter(Meter):
    """Measures nothing, for calling a trainer by hand."""

    def lap(self, phase: str) -> None:
        pass

    def add(self, phase: str, seconds: float) -> None:
        pass

    def tally(self, name: str, n: int) -> None:
        pass

    def follow(self, merges: Sequence[Merge]) -> None:
        pass


NULL_METER = NullMeter()


class WordCounter(Protocol):
    """Counts the words of a corpus. Further keywords are the counter's parameters; `threads` is its width."""

    def __call__(self, corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts: ...


class Trainer(Protocol):
    """Learns up to `num_merges` merges, in order, and fewer when no pair of at least `min_count` is left.

    It returns a list, or Merges. Further keywords are the trainer's parameters; one called `threads` gets the width of
    the run.
    """

    def __call__(
        self,
        word_counts: WordCounts,
        num_merges: int,
        meter: Meter = NULL_METER,
        *,
        tie_break: TieBreak = GREATEST_BYTES,
        min_count: int = 1,
    ) -> Sequence[Merge]: ...


class Extender(Protocol):
    """A trainer that can also go on from merges which are already made, and be kept from some pairs.

    `inherited` are those merges, in the order in which they were learned. They are made first and stand first among the
    merges returned, which are up to `num_merges` with them. `inheriting` is `kept`, so that all of them stay, or `met`,
    so that those never met are dropped; extending.py has the definition. `veto` refuses pairs that it did not inherit;
    vetoes.py has some. `min_count` and ties are as ever. Raises ValueError for a list that cannot be inherited.

    So SuperBPE is trained (arXiv 2503.13423), and a tokenizer is extended by what new text needs. A trainer without
    these keywords is not asked to extend.
    """

    def __call__(
        self,
        word_counts: WordCounts,
        num_merges: int,
        meter: Meter = NULL_METER,
        *,
        tie_break: TieBreak = GREATEST_BYTES,
        min_count: int = 1,
        inherited: Sequence[Merge] = (),
        inheriting: str = "kept",
        veto: Veto | None = None,
    ) -> Sequence[Merge]: ...


class FileTrainer(Protocol):
    """Learns merges from a corpus by itself: a trainer that reads, splits and counts in its own way.

    It is known by its first parameter, which is called `corpus`, and its second, `num_merges`; all else is as with a
    Trainer. What it cannot do, such as another tie-break than its own, it answers with Unavailable; one whose own is
    none of the contract's has None for the default of `tie_break`. Its module may say how it is fed: see feeding.py.
    """

    def __call__(
        self,
        corpus: Corpus,
        num_merges: int,
        meter: Meter = NULL_METER,
        *,
        tie_break: TieBreak = GREATEST_BYTES,
        min_count: int = 1,
    ) -> Sequence[Merge]: ...


def vocab_of(merges: Sequence[Merge], special_tokens: Sequence[str] = ()) -> dict[int, bytes]:
    """Number the tokens: bytes 0-255, then the special tokens in the order given, then the merges.

    >>> vocab_of([(b"a", b"b")], ["<|endoftext|>"])[257]
    b'ab'
    """
    tokens = [bytes((byte,)) for byte in range(256)]
    tokens += [token.encode() for token in special_tokens]
    tokens += [left + right for left, right in merges]
    return dict(enumerate(tokens))


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("word counts are kept as little-endian arrays; this machine is big-endian")
