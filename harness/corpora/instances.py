"""Instances of a data set, drawn by a seed: texts that nobody can know before the seed.

The random numbers of an instance depend on the data set's name, the seed and the instance's index
alone, so whoever has the text draws the same instances again. The kinds take turns: a slice of the
text, a shuffle of its documents.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.random import RandomState
from numpy.typing import NDArray

from harness.common.cards import DataCard
from harness.common.errors import UNMEASURED, Refusal
from harness.common.values import at_least, parse_bytes
from harness.corpora import prepare
from harness.corpora.files import CorpusFile, Part, any_of, excerpt, made_of, mapped, nearby_end

FEWEST_PIECES = 100
"""Fewer documents are not shuffled, but their lines; fewer lines neither."""


class SourceText(NamedTuple):
    """A text to draw from; an instance of it has at most `size` bytes."""

    file: CorpusFile
    content: mmap.mmap | bytes
    size: int
    ends: list[bytes]
    """What ends a document or a line."""
    bounds: NDArray[np.int64]
    """Where its documents start and the last one ends, or its lines if documents are few."""


def draw_instances(
    card: DataCard, special_tokens: Sequence[str], errors: str, number: int, seed: int
) -> list[CorpusFile]:
    """The first `number` instances of a text. Raises Refusal for a table of words, for a text that
    is too short, and as `prepare` does.
    """
    at_least("instances", number)
    whole = prepare(structs.replace(card, bytes=None), special_tokens, errors)
    if whole.table:
        raise Refusal(f"data={whole.name} is a table of words; leave out instances=")
    text = text_to_draw_from(whole, special_tokens, card.bytes)
    return [instance(text, index, seed) for index in range(1, number + 1)]


def text_to_draw_from(
    whole: CorpusFile, special_tokens: Sequence[str], limit: int | str | None
) -> SourceText:
    """A file to draw from: half of it, so that instances differ, or `limit` bytes if that is less.
    Raises Refusal if it is too short.
    """
    size = whole.bytes // 2
    if limit is not None:
        size = min(size, parse_bytes(limit, "data.bytes"))
    if size == 0:
        raise Refusal(f"{whole.name} is too short to draw from; use a longer text", UNMEASURED)
    content = mapped(whole.path)

    ends = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    bounds = bounds_of(content, ends)
    if len(bounds) <= FEWEST_PIECES:
        ends.append(b"\n")
        bounds = bounds_of(content, ends)
    return SourceText(whole, content, size, ends, bounds)


def bounds_of(content: mmap.mmap | bytes, ends: Sequence[bytes]) -> NDArray[np.int64]:
    stops = (match.end() for match in any_of(ends).finditer(content))
    return np.unique(np.fromiter(chain([0, len(content)], stops), dtype=np.int64))


def instance(text: SourceText, index: int, seed: int) -> CorpusFile:
    """A slice of the text, or in turn a shuffle of its pieces if there are enough."""
    whole = text.file
    digest = hashlib.sha256(f"{whole.name}\n{seed}\n{index}".encode()).digest()
    random = RandomState(np.frombuffer(digest, dtype="<u4"))
    is_shuffle = index % 2 == 0 and len(text.bounds) > FEWEST_PIECES
    kind = "shuffle" if is_shuffle else "slice"
    end = f"-{kind}{index}-{seed}"

    return replace(
        shuffle_of(text, random, whole.name + end) if is_shuffle else slice_of(text, random),
        name=whole.name + end,
        whole_path=whole.whole_path and whole.whole_path + end,
        parameters={"instance": kind, "of": whole.name, "drawn_by": seed, "number": index},
    )


def slice_of(text: SourceText, random: RandomState) -> CorpusFile:
    """A part of the text that starts and ends with a document or a line, if one is near."""
    content, size = text.content, text.size
    start = random.randint(len(content) - size + 1)
    start = nearby_end(content, text.ends, max(0, start - size), start)
    stop = nearby_end(content, text.ends, start, start + size)
    return excerpt(text.file, content, start, stop)


def shuffle_of(text: SourceText, random: RandomState, name: str) -> CorpusFile:
    """Some of the text's documents, or lines, in random order."""
    how = [name, text.size, repr(text.ends)]
    return made_of(text.file, how, shuffled(text, random), parts=(Part(0, name),))


def shuffled(text: SourceText, random: RandomState) -> Iterator[bytes]:
    """At least one piece of the text, and no more than its size allows."""
    size = 0
    for index in random.permutation(len(text.bounds) - 1):
        start, stop = text.bounds[index : index + 2]
        size += stop - start
        if size > text.size and size > stop - start:
            return
        piece = text.content[start:stop]
        yield piece if piece.endswith(tuple(text.ends)) else piece + text.ends[0]
