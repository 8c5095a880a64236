"""Generated tables of words with their counts, in blocks: trainers get words of which there never was a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.common.errors import Refusal
from harness.corpora.generators.numbers import Integers, Numbers, Unsigned
from harness.corpora.generators.pieces import Bytes
from harness.corpora.generators.words import distinct_words, word_hashes
from harness.corpora.generators.zipf import ZipfCounts

WORDS_AT_ONCE = 1 << 16
STRANGE_BYTES = b"\x00\xff\x00\xff\x01\xfe\x80\x7f !"


@dataclass(frozen=True)
class WordBlock:
    """Some words: their bytes end to end, their lengths, their counts."""

    data: Bytes
    lengths: Integers
    counts: Unsigned


def zipf_words(
    *, seed: int, words: int, exponent_numerator: int, exponent_denominator: int, shift: int
) -> Iterator[WordBlock]:
    """So many words that share parts, with counts by the law of Zipf and Mandelbrot: see words.py and zipf.py."""
    law = ZipfCounts(words, exponent_numerator, exponent_denominator, shift)
    made = 0
    for data, lengths in distinct_words(seed):
        lengths = lengths[: words - made]
        data = data[: int(lengths.sum())]
        yield WordBlock(data, lengths, law.counts(made + 1, made + 1 + len(lengths)))
        made += len(lengths)
        if made == words:
            return


def strange_words(*, seed: int, words: int, longest: int, most: int) -> Iterator[WordBlock]:
    """Random words of NUL, 0xFF and their neighbours, up to `longest` bytes, counted up to `most`."""
    if words > sum(len(set(STRANGE_BYTES)) ** length for length in range(1, longest + 1)) // 2:
        raise Refusal(f"there are too few words of up to {longest} strange bytes for words={words}; raise longest")
    numbers = Numbers(seed)
    symbols = np.frombuffer(STRANGE_BYTES, dtype=np.uint8)
    known = np.empty(0, dtype=np.uint64)
    made = 0
    while made < words:
        lengths = numbers.below(longest, WORDS_AT_ONCE) + 1
        data = symbols[numbers.below(len(symbols), int(lengths.sum()))]
        hashes = word_hashes(data, lengths)
        kept = np.zeros(len(lengths), dtype=bool)
        kept[np.unique(hashes, return_index=True)[1]] = True
        kept &= ~np.isin(hashes, known)
        kept &= np.cumsum(kept) <= words - made
        known = np.concatenate([known, hashes[kept]])
        counts = (numbers.below(most, WORDS_AT_ONCE) + 1).astype(np.uint64)
        yield WordBlock(data[np.repeat(kept, lengths)], lengths[kept], counts[kept])
        made += int(kept.sum())


def distinct_pairs(*, symbols: int) -> Iterator[WordBlock]:
    """One word in which each pair of so many bytes stands exactly once, de Bruijn's sequence: merges are used once.

    Martin's rule makes it: from each byte go on to the greatest that has not followed it yet.
    """
    if not 2 <= symbols <= 256:
        raise Refusal(f"symbols={symbols} is not from 2 to 256")
    following = [symbols - 1] * symbols
    word = [0]
    while following[word[-1]] >= 0:
        last = word[-1]
        word.append(following[last])
        following[last] -= 1
    yield WordBlock(np.array(word, dtype=np.uint8), np.array([len(word)]), np.ones(1, dtype=np.uint64))
