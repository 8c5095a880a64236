"""Random words as of a language, with counts as of a text: the same on every machine.

Random numbers are splitmix64's (Steele, Lea and Flood), made a block at once in 64-bit integers;
weights are cumulated as integers. So all of it depends on the seed alone: not on the CPU, the
C library or the version of NumPy.

Words, each a pre-token of GPT-2's pattern, share morphemes of syllables, endings, capitals, digits
and two scripts. Each is used when it is drawn for the first time, so short ones come early and new
ones get longer, as in a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.common.errors import Refusal

Unsigned: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mixed(states: Unsigned) -> Unsigned:
    """The number of each state."""
    mixed = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Numbers:
    """The endless sequence of numbers of one seed.

    >>> Numbers(1234567).take(3).tolist()
    [6457827717110365317, 3203168211198807973, 9817491932198370423]
    """

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def stream(self) -> Numbers:
        """Another sequence, seeded by the next number of this one."""
        return Numbers(int(self.take(1)[0]))

    def take(self, number: int) -> Unsigned:
        """The next `number` 64-bit numbers."""
        steps = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(GAMMA)
        self.state, before = (self.state + number * GAMMA) & MASK, np.uint64(self.state)
        return mixed(steps + before)

    def below(self, bound: int, number: int) -> Integers:
        """`number` numbers from 0 to `bound` - 1, where `bound` is at most 2**32."""
        high = self.take(number) >> np.uint64(32)
        return ((high * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


class Choice:
    """A weighted choice: index i is drawn in proportion to weights[i].

    >>> Choice([3, 0, 1]).draw(Numbers(7), 8).tolist()
    [0, 0, 2, 0, 0, 0, 0, 0]
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self.cumulated = np.cumsum(np.array(weights, dtype=np.int64))

    def draw(self, numbers: Numbers, number: int) -> Integers:
        points = numbers.below(int(self.cumulated[-1]), number)
        return np.searchsorted(self.cumulated, points, side="right").astype(np.int64)


def falling(number: int, shift: int = 2) -> list[int]:
    """Weights in proportion to 1 / (rank + shift): the law of Zipf and Mandelbrot with exponent
    1.
    """
    return [(1 << 20) // (rank + shift) for rank in range(1, number + 1)]


class Pieces:
    """Byte strings that are joined a whole block at a time.

    >>> Pieces([b"", b"a", b"bcd"]).joined(np.array([2, 0, 1])).tobytes()
    b'bcda'
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        self.lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def joined(self, indexes: Integers) -> Bytes:
        """The pieces with these indexes, joined."""
        lengths = self.lengths[indexes]
        stops = np.cumsum(lengths)
        total = int(stops[-1]) if len(stops) else 0
        joined: Bytes = self.data[
            np.arange(total) + np.repeat(self.starts[indexes] - (stops - lengths), lengths)
        ]
        return joined


# Split at each space; one that starts with a space has the empty text first.
ONSETS = " t s d r n l m c p b h f g w v st k tr pr sh th ch br cr pl gr cl bl fl sp j sc qu str y z sw dr x"
VOWELS = "e a i o u y ea io ou ee ai oo au ie oa ei"
CODAS = " n r s t l d m nt st c p ng g rt ck nd b x ss rm sh th"
ENDINGS = " s ed ing er ly al y tion ers able ness ist ic ment ism ian est ful ive ity ous"
CYRILLIC_ONSETS = "т с н р в л к п м д б г з ст ж пр х ш ч ц тр гр"
CYRILLIC_VOWELS = "о а е и у я ы ю"
CYRILLIC_CODAS = " н т й м с л в р к ст"
# Out of 100 words; those neither numbers nor Cyrillic are in Latin letters.
NUMBERS, CYRILLIC, CAPITALISED, AFTER_A_SPACE = 7, 6, 30, 60
NUMBER_OF_MORPHEMES = Choice([52, 46, 2])
NUMBER_OF_DIGITS = Choice([2, 8, 12, 20, 18, 14, 10, 8, 8])
LEXICON = 3000
MORPHEME, ENDING = (
    Choice(falling(LEXICON, 10)),
    Choice([40 * (1 << 17), *falling(ENDINGS.count(" "), 1)]),
)
DIGITS_AT, ENDINGS_AT, LATIN_AT = 2, 12, 13 + ENDINGS.count(" ")
"""Where they begin in the texts of a language; after its morphemes in Latin letters come these with
capitals.
"""
CANDIDATES_AT_ONCE = 1 << 17


def distinct(
    blocks: Iterator[tuple[Bytes, Integers]], words: int
) -> Iterator[tuple[Bytes, Integers, NDArray[np.bool_]]]:
    """The first `words` different words of blocks: their bytes joined, their lengths, and which of
    its block they are.

    Words with equal hashes are taken as equal: once in some hundred thousand tables a new one is
    lost.
    """
    seen, left = np.empty(0, dtype=np.uint64), words
    for data, lengths in blocks:
        hashes, first = np.unique(word_hashes(data, lengths), return_index=True)
        positions = np.searchsorted(seen, hashes)
        unseen = positions == np.searchsorted(seen, hashes, side="right")
        seen = np.insert(seen, positions[unseen], hashes[unseen])
        new = np.zeros(len(lengths), dtype=bool)
        new[first[unseen]] = True
        new &= np.cumsum(new) <= left
        left -= int(new.sum())
        yield data[np.repeat(new, lengths)], lengths[new], new
        if not left:
            return


def endless_words(seed: int) -> Iterator[tuple[Bytes, Integers]]:
    """Endless words of one language, in blocks: their bytes joined, and their lengths."""
    numbers = Numbers(seed)
    of_language, drawing = numbers.stream(), numbers.stream()
    latin = morphemes(of_language, ONSETS, VOWELS, CODAS)
    cyrillic = morphemes(of_language, CYRILLIC_ONSETS, CYRILLIC_VOWELS, CYRILLIC_CODAS)
    texts = [
        "",
        " ",
        *"0123456789",
        *ENDINGS.split(" "),
        *latin,
        *(text.capitalize() for text in latin),
        *cyrillic,
    ]

    pieces = Pieces([text.encode() for text in texts])
    while True:
        indexes = random_places(drawing, CANDIDATES_AT_ONCE)
        yield pieces.joined(indexes.T.ravel()), pieces.lengths[indexes].sum(axis=0)


def random_places(numbers: Numbers, number: int) -> Integers:
    """For each of `number` random words the places of its pieces in the texts, 0 for none: a space,
    then up to nine.
    """
    kind, case, space = numbers.below(100, 3 * number).reshape(3, number)
    is_number, is_latin = kind < NUMBERS, kind >= NUMBERS + CYRILLIC
    how_many = NUMBER_OF_MORPHEMES.draw(numbers, number)
    morphemes = LATIN_AT + MORPHEME.draw(numbers, 3 * number).reshape(3, number)
    morphemes += LEXICON * 2 * ~is_latin
    morphemes[0] += LEXICON * (is_latin & (case < CAPITALISED))
    ending = ENDINGS_AT + ENDING.draw(numbers, number)
    digit_number = NUMBER_OF_DIGITS.draw(numbers, number)
    digits = DIGITS_AT + numbers.below(10, 9 * number).reshape(9, number)

    indexes = np.zeros((10, number), dtype=np.int64)
    indexes[0] = space < AFTER_A_SPACE
    indexes[1:] = digits * (is_number & (np.arange(9)[:, None] <= digit_number))
    indexes[1:4] += morphemes * (~is_number & (np.arange(3)[:, None] <= how_many))
    indexes[4] += ending * is_latin
    return indexes


def morphemes(numbers: Numbers, *kinds: str) -> list[str]:
    """`LEXICON` different morphemes of one syllable, one in ten of two, the likely ones first."""
    onsets, vowels, codas = (kind.split(" ") for kind in kinds)
    onset, vowel = Choice(falling(len(onsets), 2)), Choice(falling(len(vowels), 1))
    coda = Choice([1 << 21, *falling(len(codas) - 1)])
    texts: dict[str, None] = {}
    while len(texts) < LEXICON:
        indexes = (choice.draw(numbers, 2 * LEXICON).tolist() for choice in (onset, vowel, coda))
        drawn = [onsets[o] + vowels[v] + codas[c] for o, v, c in zip(*indexes, strict=True)]
        longer = (numbers.below(10, LEXICON) == 0).tolist()
        for first, second, both in zip(drawn[::2], drawn[1::2], longer, strict=True):
            texts[first + second if both else first] = None
    return list(texts)[:LEXICON]


def word_hashes(data: Bytes, lengths: Integers) -> Unsigned:
    """A 64-bit hash of each word: the sum of its bytes, each times a random odd number of its
    place.
    """
    starts = np.cumsum(lengths) - lengths
    within = np.arange(len(data)) - np.repeat(starts, lengths)
    factors = Numbers(0).take(int(lengths.max())) | np.uint64(1)
    return mixed(np.add.reduceat((data.astype(np.uint64) + np.uint64(1)) * factors[within], starts))


def zipf_counts(words: int, numerator: int, denominator: int, shift: int) -> Unsigned:
    """The counts of V words by rank r: ((V + shift) / (r + shift)) ** exponent, rounded down.

    So the rarest word occurs once, as in a text by the law of Zipf and Mandelbrot, and a smaller
    table is of an earlier moment in it. The exponent is `numerator` / `denominator`, a power of
    two: its root is several square roots.

    >>> zipf_counts(100, 3, 2, 0)[[0, 24, 99]].tolist()
    [1000, 8, 1]
    """
    if not denominator < numerator <= 4 * denominator:
        raise Refusal(f"the exponent {numerator}/{denominator} is not above 1 and at most 4")
    rarest = (words + shift) ** numerator

    def count(rank: int) -> int:
        power: int = rarest // (rank + shift) ** numerator
        for _ in range(denominator.bit_length() - 1):
            power = isqrt(power)
        return power

    counts = np.empty(words, dtype=np.uint64)
    ranges = [(1, count(1), words, count(words))]
    while ranges:  # counts only fall, so few have to be computed
        low, most, high, least = ranges.pop()
        if most == least:
            counts[low - 1 : high] = most
            continue
        middle = (low + high) // 2
        ranges.append((low, most, middle, count(middle)))
        ranges.append((middle + 1, count(middle + 1), high, least))
    return counts
