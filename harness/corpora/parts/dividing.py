"""Parts of a text that are counted by themselves: ranges of files, and whole files of those that are compressed.

A range is told by two targets. Where it really begins and ends is the first safe place at or behind each of them, which
whoever counts it finds, and whoever counts its neighbour finds alike: in text a place where no pre-token can span, in a
file with rows the beginning of a line or of a group of rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from harness.common.errors import Refusal
from harness.corpora.formats import READERS, WHOLE, Between, kind_of
from harness.corpora.parts import shards
from harness.corpora.parts.places import Member
from variants.contract import Corpus

MOST_PARTS = 20_000
"""The shards of all parts are mapped at once when they are merged, and a system has a limit on mappings."""


@dataclass(frozen=True)
class HowRead:
    """What decides the words of a file, and into how many partitions they are written."""

    special_tokens: tuple[str, ...]
    pattern: str | None
    errors: str
    partial: bool
    separator: str
    column: str
    partitions: int

    def corpus(self, name: str) -> Corpus:
        return Corpus(name, self.special_tokens, self.pattern, self.errors, self.partial)


@dataclass(frozen=True)
class Part:
    """A file, or a range of it: from the first safe place at `first` or later to that at `last` or later."""

    member: Member
    first: int
    last: int
    how: HowRead
    memory: int | None = None
    """What the table of words may take before it is spilled; it decides nothing."""

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are the text."""
        return not kind_of(self.member.path()) and not is_compressed(self.member)

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.last == self.member.size

    @property
    def between(self) -> Between:
        """The bytes between which its lines, or groups of rows, begin."""
        return WHOLE if self.is_whole else (self.first, self.last)

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def key(self) -> str:
        """Names the words of this part by all that they depend on."""
        how = self.how
        reading = [how.special_tokens, how.pattern, how.errors, how.partial, regex.__version__]
        rows = [] if self.is_plain else [how.separator, how.column]
        where = [self.member.place, self.member.state, self.first, self.last]
        told = json.dumps([shards.FORMAT, how.partitions, where, reading, rows])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        if self.is_whole:
            return self.member.place
        return f"{self.member.place}, bytes {self.first} to {self.last}"


def is_compressed(member: Member) -> bool:
    """Whether the file can be read from its front alone."""
    return member.path().suffix.lower() in READERS


def divided(members: Sequence[Member], how: HowRead, part_bytes: int, memory: int | None) -> list[Part]:
    """The parts of these files, none much larger than `part_bytes` where a file may be divided; the largest first."""
    total = sum(member.size for member in members)
    if len(members) > MOST_PARTS:
        raise Refusal(f"data.path names {len(members)} files, more than {MOST_PARTS}; join them into fewer")
    part_bytes = max(part_bytes, -(-total // (MOST_PARTS - len(members) + 1)))
    parts = []
    for member in members:
        number = 1 if is_compressed(member) else max(1, -(-member.size // part_bytes))
        targets = [member.size * place // number for place in range(number + 1)]
        parts += [Part(member, first, last, how, memory) for first, last in zip(targets, targets[1:], strict=False)]
    return sorted(parts, key=lambda part: -part.size)
