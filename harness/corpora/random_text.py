"""Generated texts, tables of words with counts, and instances of a text: functions of a seed.

A card names a generator in `source.kind` and gives all its parameters. The random numbers are
those of numpy's RandomState, whose stream is frozen (NEP 19). All else is integers, or operations
that IEEE 754 rounds in one way. So the bytes are the same on every machine.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, pairwise, product
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from harness.common import cache
from harness.common.cards import (
    DataCard,
    Generated,
    OneWord,
    RandomText,
    RareWords,
    Runs,
    Ties,
    ZipfWords,
)
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.values import at_least, parse_bytes
from harness.corpora.files import (
    TEXT,
    CorpusFile,
    Part,
    any_of,
    excerpt,
    made_of,
    mapped,
    nearby_end,
)

VERSION = 2  # of what the generators make; another number makes cached sets again
SEPARATOR = "<|endoftext|>"
AT_ONCE = 1 << 16
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Integers: TypeAlias = NDArray[np.int64]


def draw(random: RandomState, weights: Sequence[int] | Integers, number: int) -> Integers:
    """Random indexes, each as often as its weight says. Raises Refusal if all weights are 0.

    >>> draw(RandomState(7), [3, 0, 1], 8).tolist()
    [2, 0, 0, 0, 2, 2, 2, 2]
    """
    sums = np.cumsum([0, *weights])
    if sums[-1] == 0:
        raise Refusal("all weights are 0; set one of them to 1 or more")
    return np.searchsorted(sums[1:], random.randint(sums[-1], size=number), side="right")


# Texts


def random_text(source: RandomText) -> Iterator[bytes]:
    """Words of random letters, a space before each."""
    alphabet, document = source.alphabet, source.document
    weights = source.letter_weights or [1] * len(alphabet)
    if len(weights) != len(alphabet):
        count = f"{len(alphabet)} letters cannot have {len(weights)} letter_weights"
        raise Refusal(f"an alphabet of {count}; set one for each")

    random, left, number = RandomState(source.seed), source.bytes, 0
    while left:
        lengths = draw(random, source.length_weights, AT_ONCE) + 1
        drawn = np.array([*alphabet])[draw(random, weights, lengths.sum())]
        letters = drawn.tobytes().decode("utf-32")
        bounds = pairwise([0, *np.cumsum(lengths).tolist()])
        words = [f" {letters[start:stop]}" for start, stop in bounds]
        for last in range(document - 1 - number % document, AT_ONCE, document):
            words[last] += SEPARATOR

        block = "".join(words).encode()
        if len(block) > left and block[left : left + 1] != b" ":
            left = max(0, block.rfind(b" ", 0, left))
        yield block[:left]
        left -= min(left, len(block))
        number += AT_ONCE


def ties(source: Ties) -> Iterator[bytes]:
    """Every word of three of so many letters, once, in random order: all pairs of letters occur
    equally often.
    """
    words = [" " + "".join(word) for word in product(LETTERS[: source.letters], repeat=3)]
    yield "".join(
        words[index] for index in RandomState(source.seed).permutation(len(words))
    ).encode()


def runs(source: Runs) -> Iterator[bytes]:
    """Runs of one letter, space or line end each, up to `longest` long: occurrences of pairs
    overlap.
    """
    random, left = RandomState(source.seed), source.bytes
    while left:
        symbols = np.frombuffer(b"abcde  \n", np.uint8)[random.randint(8, size=1024)]
        block = np.repeat(symbols, random.randint(source.longest, size=1024) + 1)[:left]
        yield block.tobytes()
        left -= len(block)


def one_word(source: OneWord) -> Iterator[bytes]:
    """One word of so many random letters: DNA, or anything else without a place to split."""
    symbols = np.frombuffer(source.alphabet.encode(), np.uint8)
    random = RandomState(source.seed)
    for written in range(0, source.bytes, AT_ONCE):
        size = min(AT_ONCE, source.bytes - written)
        yield symbols[random.randint(len(symbols), size=size)].tobytes()


# Tables of words

ONSETS = "t s d r n l m c p b h f g w v st k tr pr sh th ch br cr pl gr cl bl fl sp j sc qu str z sw dr x"
VOWELS = "e a i o u ea io ou ee ai oo au ie oa ei"
CODAS = "s n r d ng t l nt m st ck rs th c p ns nd ts b ss"
EMPTY = (40, 0, 0, 0, 0, 60)
"""Out of 100 words how many have no space before them, and no coda behind their syllables."""
SYLLABLES = [15, 50, 33, 2]
"""The weights of one to four syllables."""


Item = tuple[bytes, int]


def zipf_words(source: ZipfWords) -> Iterator[Item]:
    """So many words that share syllables, with counts by the law of Zipf and Mandelbrot.

    Words are used in the order in which they are drawn for the first time, so short ones come early
    and new ones get longer, as in a text.
    """
    random, words = RandomState(source.seed), source.words
    slots = pieces_of_words(random)
    shape = tuple(map(len, slots))
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < words:
        blocks = range(0, min(2 * (words - len(drawn)), words), AT_ONCE)
        drawn = np.concatenate([drawn, *(random_words(random, shape) for _ in blocks)])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]

    counts = zipf_counts(words, source.sixteenths)
    for start in range(0, words, AT_ONCE):
        some = slice(start, min(start + AT_ONCE, words))
        places = np.unravel_index(drawn[some], shape)
        pieces = (slot[place] for slot, place in zip(slots, places, strict=True))
        yield from zip(reduce(add, pieces), counts[some].tolist(), strict=True)


def pieces_of_words(random: RandomState) -> list[NDArray[np.object_]]:
    """The pieces that a word may have one after another: a space, up to four syllables, a coda.

    Syllables start with consonants and end with vowels, so no two choices make the same word.
    """
    pairs = ["".join(pair) for pair in product(ONSETS.split(), VOWELS.split())]
    syllables = random.permutation(pairs).tolist()
    first = [*syllables, *(text.capitalize() for text in syllables)]
    slots = [[" "], first, *[syllables] * 3, CODAS.split()]
    return [np.array([b"", *map(str.encode, slot)], dtype=object) for slot in slots]


def random_words(random: RandomState, shape: tuple[int, ...]) -> Integers:
    """Random words, each as one number, made of the places of its pieces."""
    places = np.array([draw(random, falling(*slot), AT_ONCE) for slot in zip(shape, EMPTY)])
    places[1:5] *= np.arange(4)[:, None] <= draw(random, SYLLABLES, AT_ONCE)
    numbers: Integers = np.ravel_multi_index(tuple(places), shape)
    return numbers


def falling(number: int, empty: int) -> Integers:
    """Weights in proportion to 1 / (rank + 10); that of the first out of 100 is `empty`."""
    weights = (1 << 20) // np.arange(10, number + 10)
    weights[0] = weights[1:].sum() * empty // (100 - empty)
    return weights


def zipf_counts(words: int, sixteenths: int) -> NDArray[np.uint64]:
    """The counts of V words by rank r: ((V + 2) / (r + 2)) ** (sixteenths / 16), rounded down.

    So the rarest word occurs once, as in a text by the law of Zipf and Mandelbrot, and a smaller
    table is of an earlier moment in it. Roots and products are rounded alike everywhere, unlike
    powers.

    >>> zipf_counts(100, 24)[[0, 24, 99]].tolist()
    [198, 7, 1]
    """
    root = (words + 2) / np.arange(3, words + 3)
    for _ in range(4):
        root = np.sqrt(root)
    counts = np.ones(words)
    for _ in range(sixteenths):
        counts *= root
    return counts.astype(np.uint64)


# Words that ordinary text rarely has: a trainer that mistakes any of them makes other merges

SYMBOLS = 42
"""Of the light words, which have three: 74,088 of them are distinct."""
LONG = 300  # bytes
LARGE_COUNTS = (2**31, 2**32, 2**33, 2**54)
ALIKE = 8  # words with the same count, so that the tie-break decides among all bytes
SCRIPTS = (
    "ß", "Ǆ", "Ωμ", "Жи", "של", "سل", "न", "ภ", "ქ", "한", "が", "カ", "中文", "漢", "𐍈", "😀", "e\u0301", "ﬁ",
    "\u0131", "\u00a0", "\u200b", "09", "٣", "\t\n ", "UP", "a\0",
)  # fmt: skip
LONG_TEXTS = ("xy", "中文", "07", "Жи ")


def rare_words(source: RareWords) -> Iterator[Item]:
    """Yield at most so many heavy words far apart among light ones; the first and the last are heavy.

    Each heavy word decides a merge, and the light ones together decide those that follow.
    """
    random, words = RandomState(source.seed), source.words
    heavy = heavy_words(random)[: source.heavy]
    numbers = random.permutation(SYMBOLS**3)[: words - len(heavy)]
    digits = np.transpose(np.unravel_index(numbers, [SYMBOLS] * 3))
    light = (digits + ord("0")).astype(np.uint8)

    table = [(word.tobytes(), 1) for word in light]
    for place, word in zip(np.linspace(0, words - 1, len(heavy)), heavy, strict=True):
        table.insert(int(place), word)
    yield from table


def heavy_words(random: RandomState) -> list[Item]:
    """Return the heavy words with their counts, in random order."""
    bytes_of_two = random.permutation(256).astype(np.uint8).reshape(-1, 2)
    heavy = [
        (word.tobytes(), 1_000_000 + 1_000 * (number // ALIKE))
        for number, word in enumerate(bytes_of_two)
    ]
    for number, text in enumerate(SCRIPTS):
        heavy.append((text.encode(), 100_000 + 1_000 * number))
    for number, text in enumerate(LONG_TEXTS):
        heavy.append(((text.encode() * LONG)[:LONG], 100 + number))
    for number, count in enumerate(LARGE_COUNTS):
        heavy.append((bytes([0xF5, number]), count + 1))
        heavy.append((bytes([0xF6, number]), count))  # it would be first if both were rounded

    return [heavy[index] for index in random.permutation(len(heavy))]


# Cards

GENERATORS: dict[type, Callable[[Any], Iterator[Any]]] = {
    RandomText: random_text,
    Ties: ties,
    Runs: runs,
    OneWord: one_word,
    ZipfWords: zipf_words,
    RareWords: rare_words,
}


def generated(source: Generated) -> Iterator[Any]:
    """The blocks of a text, or the words of a table with their counts."""
    yield from GENERATORS[type(source)](source)


def text_file(card: DataCard) -> Path:
    """The generated text of a card, made if missing."""
    source: Any = card.source

    def make(folder: Path) -> None:
        size = getattr(source, "bytes", 0)
        with (
            bar(f"making {card.name}", size, "bytes") as show,
            (folder / TEXT).open("wb") as file,
        ):
            for block in generated(source):
                file.write(block)
                show(file.tell())

    key = cache.key_of(VERSION, msgspec.to_builtins(source))
    return cache.kept("texts", key, make).path / TEXT


# Instances of a text, which nobody can know before the seed. Only the text's name, the seed and the
# instance's index decide its random numbers, so anyone who has the text can draw the same instances. The
# kinds take turns: a slice of the text, a shuffle of its documents.

FEWEST_PIECES = 100
"""Fewer documents are not shuffled, but their lines; fewer lines neither."""


class SourceText(NamedTuple):
    """A text to draw from; an instance of it has at most `size` bytes."""

    file: CorpusFile
    content: mmap.mmap | bytes
    size: int
    ends: list[bytes]
    """What ends a document or a line."""
    bounds: Integers
    """Where its documents start and the last one ends, or its lines if documents are few."""


def draw_instances(
    whole: CorpusFile,
    special_tokens: Sequence[str],
    limit: int | str | None,
    number: int,
    seed: int,
) -> list[CorpusFile]:
    """The first `number` instances of a text: half of it, so that instances differ, or `limit` bytes
    if that is less. Raises Refusal for a table of words, and for a text that is too short.
    """
    at_least("instances", number)
    if whole.table:
        raise Refusal(f"data={whole.name} is a table of words; leave out instances=")
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
    text = SourceText(whole, content, size, ends, bounds)
    return [instance(text, index, seed) for index in range(1, number + 1)]


def bounds_of(content: mmap.mmap | bytes, ends: Sequence[bytes]) -> Integers:
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
    name = whole.name + end

    if is_shuffle:
        how = [name, text.size, repr(text.ends)]
        drawn = made_of(whole, how, shuffled(text, random), parts=(Part(0, name),))
    else:
        drawn = slice_of(text, random)
    return replace(
        drawn,
        name=name,
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


def shuffled(text: SourceText, random: RandomState) -> Iterator[bytes]:
    """Documents of the text, or lines, in random order: at least one, and no more than its size
    allows.
    """
    size = 0
    for index in random.permutation(len(text.bounds) - 1):
        start, stop = text.bounds[index : index + 2]
        size += stop - start
        if size > text.size and size > stop - start:
            return
        piece = text.content[start:stop]
        yield piece if piece.endswith(tuple(text.ends)) else piece + text.ends[0]
