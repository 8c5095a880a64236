"""The contract between the algorithms and whoever runs them: plain data, two callables, one meter.

A word counter turns a corpus into word counts, a trainer turns word counts into merges. Both are
plain functions; no base class, no state between calls. This file and the three that it shows keep
to Python 3.9's standard library, so that a measuring process starts at once and PyPy runs the same
files.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Protocol

from variants.merges import Merge, Merges
from variants.tie_breaks import GPT2_CHARACTERS, GREATEST_BYTES, TieBreak, inverted
from variants.word_counts import LARGEST_COUNT, WordCounts

__all__ = [
    "COUNTING_PHASES", "GPT2_CHARACTERS", "GPT2_LINES_PATTERN", "GPT2_PATTERN", "GREATEST_BYTES", "LARGEST_COUNT",
    "NULL_METER", "PHASES", "TRAINING_PHASES", "Corpus", "Extender", "FileTrainer", "InvalidText", "LeftOut", "Merge",
    "Merges", "Meter", "NullMeter", "Pair", "TieBreak", "Trainer", "Unavailable", "Veto", "WordCounter", "WordCounts",
    "inverted", "vocab_of",
]  # fmt: skip

Veto = Callable[[bytes, bytes], bool]
"""Whether the pair with these two halves may never be merged; it gets their bytes and nothing
else.
"""

Pair = tuple[int, int]
"""Two adjacent token ids: bytes are 0-255, the n-th merge (from 0) makes token 256 + n."""


GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT2_LINES_PATTERN = (
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|[^\S\n]*\n|[^\S\n]+(?!\S)|[^\S\n]+"
)
"""The same, line by line."""

COUNTING_PHASES = ("read", "count")
TRAINING_PHASES = ("convert", "init", "copy", "max", "update")
PHASES = (*COUNTING_PHASES, *TRAINING_PHASES)
"""What a Meter's seconds are given to, in the order in which a run goes through them.

They mean the same for all: init is everything before the first maximum; copy is only of the stages
that copy all pairs before they look for the maximum. The rest of a run is "other"; trainers do not
report it.
"""


class Unavailable(Exception):
    """A variant cannot run on this machine; the message says why and what would change that."""


@dataclass(eq=False)
class InvalidText(ValueError):
    """The corpus is not valid UTF-8; `offset` is the position in the file of the first bad byte."""

    path: str
    offset: int

    def __str__(self) -> str:
        # A byte order mark of UTF-16 begins with a byte that UTF-8 never has.
        cure = (
            "fix the file"
            if self.offset
            else "if it is UTF-16, iconv -f UTF-16 -t UTF-8 converts it; else fix it"
        )
        return f"{self.path}: invalid UTF-8 at byte {self.offset}; {cure}, or set errors=replace"


@dataclass(eq=False)
class LeftOut(ValueError):
    """The pattern matches only parts of the corpus; `offset` is where the first text that it leaves
    out begins.

    With errors=replace the offset is that in the replaced text.
    """

    path: str
    offset: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.path}: the pattern leaves out text, first {self.text!r} at byte {self.offset}; fix the pattern, "
            "or say pattern.partial=true if that is meant"
        )


@dataclass(frozen=True)
class Corpus:
    """A file and how to read it.

    `pattern` is a regular expression of the `regex` module whose matches are the pre-tokens; None
    takes the raw bytes between two special tokens as one word, without decoding. `errors` is
    `strict` or `replace`: what becomes of bytes that cannot be decoded. `partial` allows a pattern
    that leaves text out, which is an error otherwise.
    """

    path: str
    special_tokens: tuple[str, ...] = ("<|endoftext|>",)
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"
    partial: bool = False

    @property
    def replaces_errors(self) -> bool:
        """Whether invalid bytes become U+FFFD before anything else; what is not decoded cannot be
        invalid.
        """
        return self.errors == "replace" and self.pattern is not None


class Meter:
    """Where a counter or a trainer says what it is doing: time by phase (PHASES), counts of work,
    how far it is.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.tallies: dict[str, int] = {}
        self.followed: Sequence[Merge] = ()
        self.done = 0
        self._mark = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Give all time since the previous lap to `phase`. Laps partition the run."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._mark
        self._mark = now

    def add(self, phase: str, seconds: float) -> None:
        """Give `seconds` of the time since the previous lap to `phase`: native code times
        itself.
        """
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        self._mark += seconds

    def tally(self, name: str, n: int) -> None:
        """Count work; called at most once a merge for each name. Deterministic, equal on every
        machine.
        """
        self.tallies[name] = self.tallies.get(name, 0) + n

    def follow(self, merges: Sequence[Merge]) -> None:
        """Called once with what the trainer appends to: its length is the progress, its content the
        prefix.
        """
        self.followed = merges

    def progress(self, done: int) -> bool:
        """Called by native trainers (merges) and by counters (bytes), ten times a second at most.
        False: stop.

        One that reads the file tells its bytes here, and shows its merges by `follow`.
        """
        self.done = done
        return True


class NullMeter(Meter):
    """Measures nothing, for calling a trainer by hand."""

    def ignore(self, *_: Any, **__: Any) -> None:
        pass

    lap = add = tally = follow = ignore


NULL_METER = NullMeter()


class WordCounter(Protocol):
    """Counts the words of a corpus. Further keywords are the counter's parameters; `threads` is its
    width.
    """

    def __call__(self, corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts: ...


class Trainer(Protocol):
    """Learns up to `num_merges` merges, in order, and fewer when no pair of at least `min_count` is
    left.

    It returns a list, or Merges. Further keywords are the trainer's parameters; one called
    `threads` gets the width of the run.
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
    """A trainer that can also go on from merges which are already made, and be kept from some
    pairs: see extending.py.

    So SuperBPE is trained (arXiv 2503.13423), and a tokenizer is extended by what new text needs.
    `inherited` are those merges, in the order in which they were learned; they count among
    `num_merges`. `veto` refuses others; vetoes.py has some. Raises ValueError for a list that
    cannot be inherited.
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
    """Learns merges straight from a corpus: a trainer that reads, splits and counts in its own way.

    It is known by its first parameter, which is called `corpus`, and its second, `num_merges`; all
    else is as with a Trainer. What it cannot do, such as another tie-break than its own, it answers
    with Unavailable; one whose own is none of the contract's has None for the default of
    `tie_break`. Its module may say how it is fed: see feeding.py.
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
