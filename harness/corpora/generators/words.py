"""Words that share parts as words of a language do: morphemes of syllables, endings, capitals, numbers, two scripts.

Words are drawn at random and each is kept when it comes up for the first time, so that the frequent and short ones come
early and new ones get longer, as in a text. Every word is one pre-token of GPT-2's pattern.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.corpora.generators.numbers import Choice, Integers, Numbers, Unsigned, falling, mixed
from harness.corpora.generators.pieces import Bytes, Pieces


def parts(listed: str, none: bool = False) -> list[str]:
    return [*[""][: int(none)], *listed.split()]


ONSETS = parts(
    "t s d r n l m c p b h f g w v st k tr pr sh th ch br cr pl gr cl bl fl sp j sc qu str y z sw dr x",
    none=True,
)
VOWELS = parts("e a i o u y ea io ou ee ai oo au ie oa ei")
CODAS = parts("n r s t l d m nt st c p ng g rt ck nd b x ss rm sh th", none=True)
ENDINGS = parts("s ed ing er ly al y tion ers able ness ist ic ment ism ian est ful ive ity ous", none=True)
CYRILLIC_ONSETS = parts("т с н р в л к п м д б г з ст ж пр х ш ч ц тр гр")
CYRILLIC_VOWELS = parts("о а е и у я ы ю")
CYRILLIC_CODAS = parts("н т й м с л в р к ст", none=True)
# Out of 100 words; what is no number and not Cyrillic is written in Latin letters.
NUMBERS, CYRILLIC, CAPITALISED, AFTER_A_SPACE = 7, 6, 30, 60
MORPHEMES_IN_A_WORD = [52, 46, 2]
DIGITS_IN_A_NUMBER = [2, 8, 12, 20, 18, 14, 10, 8, 8]
LEXICON = 3000
CANDIDATES_AT_ONCE = 1 << 17


def distinct_words(seed: int) -> Iterator[tuple[Bytes, Integers]]:
    """Words without end, no word twice: in blocks, their bytes end to end and their lengths."""
    numbers = Numbers(seed)
    language = Language(numbers.stream())
    drawing = numbers.stream()
    known: list[Unsigned] = []
    while True:
        data, lengths = language.words(drawing, CANDIDATES_AT_ONCE)
        # Words with equal hashes are taken for the same word: once in some hundred thousand tables a new one is lost.
        hashes, first = np.unique(word_hashes(data, lengths), return_index=True)
        new = np.ones(len(hashes), dtype=bool)
        for run in known:
            place = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            new &= run[place] != hashes
        add_run(known, hashes[new])
        kept = np.zeros(len(lengths), dtype=bool)
        kept[first[new]] = True
        yield data[np.repeat(kept, lengths)], lengths[kept]


def add_run(runs: list[Unsigned], run: Unsigned) -> None:
    """Add a sorted run to those there are, each at least twice as long as the next, so that few are merged often.

    >>> runs: list[Unsigned] = []
    >>> for number in range(5):
    ...     add_run(runs, np.array([number], dtype=np.uint64))
    >>> [run.tolist() for run in runs]
    [[0, 1, 2, 3], [4]]
    """
    if len(run):
        runs.append(run)
    while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
        later, earlier = runs.pop(), runs.pop()
        runs.append(np.sort(np.concatenate([earlier, later]), kind="stable"))


class Language:
    """All that words are put together from, and how they are drawn."""

    def __init__(self, numbers: Numbers) -> None:
        latin = morphemes(numbers, ONSETS, VOWELS, CODAS)
        cyrillic = morphemes(numbers, CYRILLIC_ONSETS, CYRILLIC_VOWELS, CYRILLIC_CODAS)
        listed = ["", " ", *"0123456789", *ENDINGS, *latin, *(text.capitalize() for text in latin), *cyrillic]
        self.pieces = Pieces([text.encode() for text in listed])
        self.digits = 2
        self.endings = self.digits + 10
        self.latin = self.endings + len(ENDINGS)
        self.morpheme = Choice(falling(LEXICON, 10))
        self.ending = Choice([40 * (1 << 17), *falling(len(ENDINGS) - 1, 1)])
        self.morpheme_number = Choice(MORPHEMES_IN_A_WORD)
        self.digit_number = Choice(DIGITS_IN_A_NUMBER)

    def words(self, numbers: Numbers, number: int) -> tuple[Bytes, Integers]:
        """`number` random words: their bytes end to end, and their lengths."""
        places = self.draw(numbers, number)
        return self.pieces.joined(places.ravel()), self.pieces.lengths[places].sum(axis=1)

    def draw(self, numbers: Numbers, number: int) -> Integers:
        """For each of `number` words the places of its pieces, 0 where there is none: a space, up to nine more."""
        kind, case, space = (numbers.below(100, number) for _ in range(3))
        places = np.zeros((number, 1 + len(DIGITS_IN_A_NUMBER)), dtype=np.int64)
        places[:, 0] = space < AFTER_A_SPACE
        is_number = kind < NUMBERS
        is_cyrillic = ~is_number & (kind < NUMBERS + CYRILLIC)
        is_latin = ~is_number & ~is_cyrillic
        how_many = self.morpheme_number.draw(numbers, number) + 1
        for place in range(len(MORPHEMES_IN_A_WORD)):
            drawn = self.latin + self.morpheme.draw(numbers, number)
            drawn += LEXICON * 2 * is_cyrillic
            if place == 0:
                drawn += LEXICON * (is_latin & (case < CAPITALISED))
            places[:, 1 + place] = np.where(~is_number & (place < how_many), drawn, 0)
        ending = self.endings + self.ending.draw(numbers, number)
        places[:, 1 + len(MORPHEMES_IN_A_WORD)] = np.where(is_latin, ending, 0)
        how_many = self.digit_number.draw(numbers, number) + 1
        for place in range(len(DIGITS_IN_A_NUMBER)):
            digit = self.digits + numbers.below(10, number)
            places[:, 1 + place] = np.where(is_number, np.where(place < how_many, digit, 0), places[:, 1 + place])
        return places


def morphemes(numbers: Numbers, onsets: list[str], vowels: list[str], codas: list[str]) -> list[str]:
    """`LEXICON` different morphemes of one syllable, one in ten of two, the likely ones first."""
    onset, vowel = Choice(falling(len(onsets), 2)), Choice(falling(len(vowels), 1))
    coda = Choice([1 << 21, *falling(len(codas) - 1)])
    found: dict[str, None] = {}
    while len(found) < LEXICON:
        drawn = [
            "".join((onsets[o], vowels[v], codas[c]))
            for o, v, c in zip(
                *(choice.draw(numbers, 2 * LEXICON).tolist() for choice in (onset, vowel, coda)), strict=True
            )
        ]
        longer = (numbers.below(10, LEXICON) == 0).tolist()
        found.update(
            (first + second if both else first, None)
            for first, second, both in zip(drawn[::2], drawn[1::2], longer, strict=True)
        )
    return list(found)[:LEXICON]


def word_hashes(data: Bytes, lengths: Integers) -> Unsigned:
    """A 64-bit hash of each word: the sum of its bytes, each times a random odd number of its place."""
    if not len(lengths):
        return np.empty(0, dtype=np.uint64)
    starts = np.cumsum(lengths) - lengths
    within = np.arange(len(data)) - np.repeat(starts, lengths)
    factors = Numbers(0).take(int(lengths.max())) | np.uint64(1)
    return mixed(np.add.reduceat((data.astype(np.uint64) + np.uint64(1)) * factors[within], starts))
