"""Instances of a data set, drawn by a seed: texts that nobody can know before the seed.

The random numbers of an instance depend on the data set's name, the seed and the instance's index
alone, so whoever has the text draws the same instances again. The kinds take turns: a slice of the
text, a shuffle of its documents.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.random import RandomState
from numpy.typing import NDArray

from harness.common import cache
from harness.common.cards import DataCard, Facts
from harness.common.errors import UNMEASURED, Refusal
from harness.common.values import at_least, parse_bytes
from harness.corpora import prepare
from harness.corpora.files import TEXT, CorpusFile, Part, excerpt, nearby_end

FEWEST_PIECES = 100
"""Fewer documents are not shuffled, but their lines; fewer lines neither."""


class Text(NamedTuple):
    """A text to draw from; an instance of it has at most `size` bytes."""

    file: CorpusFile
    content: mmap.mmap
    size: int
    ends: list[bytes]
    """What ends a document or a line."""
    starts: NDArray[np.int64]
    """Where its documents start, or its lines if these are few."""


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

    instances = []
    for index in range(1, number + 1):
        key = whole.name, seed, index
        digest = hashlib.sha256("\n".join(map(str, key)).encode()).digest()
        random = RandomState(np.frombuffer(digest, dtype="<u4"))
        is_shuffle = index % 2 == 0 and len(text.starts) >= FEWEST_PIECES
        kind = "shuffle" if is_shuffle else "slice"
        end = f"-{kind}{index}-{seed}"
        file = (
            shuffle_of(text, random, key, whole.name + end)
            if is_shuffle
            else slice_of(text, random)
        )
        instances.append(
            replace(
                file,
                name=whole.name + end,
                whole_path=whole.whole_path and whole.whole_path + end,
                parameters={
                    "instance": kind,
                    "of": whole.name,
                    "drawn_by": seed,
                    "number": index,
                },
                facts=Facts(),
            )
        )
    return instances


def text_to_draw_from(
    whole: CorpusFile, special_tokens: Sequence[str], limit: int | str | None
) -> Text:
    """A file to draw from: half of it, so that instances differ, or `limit` bytes if that is less.
    Raises Refusal if it is too short.
    """
    size = whole.bytes // 2
    if limit is not None:
        size = min(size, parse_bytes(limit, "data.bytes"))
    if size == 0:
        raise Refusal(f"{whole.name} is too short to draw from; use a longer text", UNMEASURED)
    with whole.path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    ends = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    starts = starts_of(content, ends)
    if len(starts) < FEWEST_PIECES:
        ends.append(b"\n")
        starts = starts_of(content, ends)
    return Text(whole, content, size, ends, starts)


def starts_of(content: mmap.mmap, ends: Sequence[bytes]) -> NDArray[np.int64]:
    pattern = b"|".join(map(re.escape, ends)) or b"(?!)"
    stops = (match.end() for match in re.finditer(pattern, content))
    starts = np.fromiter(chain([0], stops), dtype=np.int64)
    return starts[starts < len(content)]


def slice_of(text: Text, random: RandomState) -> CorpusFile:
    """A part of the text that starts and ends with a document or a line, if one is near."""
    content, size = text.content, text.size
    start = random.randint(len(content) - size + 1)
    start = nearby_end(content, text.ends, max(0, start - size), start)
    stop = nearby_end(content, text.ends, start, start + size)
    return excerpt(text.file, content, start, stop)


def shuffle_of(text: Text, random: RandomState, key: tuple[str, int, int], name: str) -> CorpusFile:
    """Some of the text's documents, or lines, in random order."""

    def make(folder: Path) -> None:
        with (folder / TEXT).open("wb") as file:
            file.writelines(shuffled(text, random))
        text.file.check_unchanged()

    ends = [end.hex() for end in text.ends]
    entry = cache.kept(
        "texts", cache.key_of(text.file.sha256, "shuffle", key, text.size, ends), make
    )
    path = entry.path / TEXT
    size, digest = path.stat().st_size, entry.digests[TEXT]
    return replace(text.file, path=path, bytes=size, sha256=digest, parts=(Part(0, name),))


def shuffled(text: Text, random: RandomState) -> Iterator[bytes]:
    """At least one piece of the text, and no more than its size allows."""
    order = random.permutation(len(text.starts))
    stops = np.append(text.starts[1:], len(text.content))
    sizes = np.cumsum((stops - text.starts)[order])
    number = max(1, int(np.searchsorted(sizes, text.size, side="right")))
    for index in order[:number]:
        piece = text.content[text.starts[index] : stops[index]]
        yield piece if piece.endswith(tuple(text.ends)) else piece + text.ends[0]
