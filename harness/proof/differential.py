"""Trainers against the definition: random words, words searched for by Hypothesis, long words, one outside result.

The definition is a program too (the registry knows which), slow and short. It is run on the same words, and the merges
are compared one by one. Alphabets of few symbols, with NUL and 0xFF among them, make runs, repeats and ties, which is
where trainers go wrong: every defect known to us shows within some hundred such tables.
"""

from __future__ import annotations

import functools
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.proof import counterexamples
from harness.proof.cases import MERGE_CASES, MergeCase
from harness.proof.checks import (
    Check,
    CheckFailed,
    CheckSkipped,
    Words,
    expect_merges,
    learn,
    to_exhaustion,
)
from harness.proof.counterexamples import WrongWords, shown_by
from harness.tokenizers.learned import read_spelling
from variants.contract import Corpus, Merge, TieBreak, WordCounts

Train = Callable[..., Any]

ALPHABET = (ord("a"), ord("b"), 0x00, 0x01, 0xFF)
LONGEST_WORD = 16
SEEDS = 200
SEEDS_OF_OTHER_TIE_BREAKS = 20
SEEDS_OF_MIN_COUNT = 10
HYPOTHESIS_EXAMPLES = 100
CS336_FOLDER = "BPE_HARNESS_CS336"


def examples_under_another_tie_break(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """The words of those worked examples whose own tie-break is not among `tie_breaks`, under the first of these."""
    return [
        Check(
            f"check_words_of_example[{case.name}]",
            "worked examples",
            functools.partial(check_words_of_example, tie_breaks[0], case),
        )
        for case in MERGE_CASES
        if case.tie_break not in tie_breaks
    ]


def differential_checks(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """Comparisons with the definition, most of them under the first of `tie_breaks`."""
    first, *others = tie_breaks
    seeded = [
        Check(f"check_equals_definition[{seed}]", "random words", functools.partial(check_seed, first, seed))
        for seed in range(SEEDS)
    ]
    seeded += [
        Check(f"check_equals_definition[{tie.value}-{seed}]", "tie-breaks", functools.partial(check_seed, tie, seed))
        for tie in others
        for seed in range(SEEDS_OF_OTHER_TIE_BREAKS)
    ]
    seeded += [
        Check(f"check_min_count[{seed}]", "min_count", functools.partial(check_min_count, first, seed))
        for seed in range(SEEDS_OF_MIN_COUNT)
    ]
    long_words = [
        Check(f"check_long_word[{name}]", "long words", functools.partial(check_long_word, first, word))
        for name, word in LONG_WORDS.items()
    ]
    late = [
        Check("check_1500_merges_with_many_ties", "what begins late", functools.partial(check_many_merges, first)),
        Check("check_70000_words", "what begins late", functools.partial(check_many_words, first)),
        Check("check_every_byte_first_and_last", "what begins late", functools.partial(check_every_byte, first)),
        Check("check_a_thousand_calls", "what begins late", functools.partial(check_many_calls, first)),
    ]
    searched = Check("check_searched_words", "searched words", functools.partial(check_searched_words, first))
    anchor = Check("check_equals_cs336", "outside result", functools.partial(check_equals_cs336, first))
    return [*seeded, *long_words, *late, searched, anchor]


def random_words(seed: int) -> dict[bytes, int]:
    """A small table of words over one to four symbols; one weight in ten is beyond 32 bits.

    >>> random_words(3) == random_words(3)
    True
    """
    chance = random.Random(seed)
    alphabet = chance.sample(ALPHABET, chance.randint(1, 4))
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(1, 8)):
        word = bytes(chance.choices(alphabet, k=chance.randint(1, LONGEST_WORD)))
        words[word] = chance.randint(1, 6) + (2**32 if chance.random() < 0.1 else 0)
    return words


def two_letter_word(length: int) -> bytes:
    return bytes(random.Random(length).choices(b"ab", k=length))


LONG_WORDS = {
    "run_of_600": b"a" * 600,
    "ab_300_times": b"ab" * 300,
    "two_letters_3000_bytes": two_letter_word(3000),
}


@functools.lru_cache(maxsize=4096)
def defined_merges(
    items: tuple[tuple[bytes, int], ...], num_merges: int, tie_break: TieBreak, min_count: int
) -> tuple[Merge, ...]:
    """What the definition learns; kept, because the same words are asked for once for every trainer checked."""
    word_counts = WordCounts.from_items(items)
    return tuple(registry.definition()(word_counts, num_merges, tie_break=tie_break, min_count=min_count))


def expect_definition(
    train: Train, words: Words, num_merges: int, tie_break: TieBreak, min_count: int = 1, advice: str = ""
) -> None:
    """Hold a trainer's merges against the definition's."""
    want = defined_merges(tuple(words.items()), num_merges, tie_break, min_count)
    why = f"wanted is what the definition gives with tie_break={tie_break.value}, min_count={min_count}"
    with shown_by(WrongWords(words, num_merges, tie_break, min_count)):
        got = learn(train, words, num_merges, tie_break=tie_break, min_count=min_count)
        expect_merges(got, want, words, f"{why}{advice}")


def check_words_of_example(tie_break: TieBreak, case: MergeCase, train: Train) -> None:
    num_merges = case.num_merges if case.complete else to_exhaustion(case.words)
    expect_definition(train, case.words, num_merges, tie_break, case.min_count, f"\n{case.why}")


def check_seed(tie_break: TieBreak, seed: int, train: Train) -> None:
    words = random_words(seed)
    expect_definition(train, words, to_exhaustion(words), tie_break)


def check_min_count(tie_break: TieBreak, seed: int, train: Train) -> None:
    words = {word: count % 2**32 for word, count in random_words(seed).items()}
    for min_count in (2, 3, 5, 9):
        expect_definition(train, words, to_exhaustion(words), tie_break, min_count)


def check_long_word(tie_break: TieBreak, word: bytes, train: Train) -> None:
    expect_definition(train, {word: 1}, 200, tie_break)


MANY_MERGES = 1500
MANY_WORDS = 70_000
MANY_CALLS = 1200
SECONDS_FOR_CALLS = 10.0


@functools.lru_cache(maxsize=1)
def words_with_many_ties() -> dict[bytes, int]:
    """Short words over few bytes with small weights: past the first hundreds, every merge is one of many as frequent.

    >>> len(words_with_many_ties())
    700
    """
    chance = random.Random(1500)
    alphabet = chance.sample(range(256), 24)
    words: dict[bytes, int] = {}
    while len(words) < 700:
        words[bytes(chance.choices(alphabet, k=chance.randint(2, 7)))] = chance.randint(1, 3)
    return words


@functools.lru_cache(maxsize=1)
def very_many_words() -> dict[bytes, int]:
    """More words than 16 bits can number, of three bytes each; the last ones weigh the most."""
    chance = random.Random(70_000)
    letters = bytes(range(65, 107))
    numbers = chance.sample(range(len(letters) ** 3), MANY_WORDS)
    spelled = [bytes((letters[n % 42], letters[n // 42 % 42], letters[n // 42**2])) for n in numbers]
    return {word: 1 + 50 * (place >= 1 << 16) for place, word in enumerate(spelled)}


def every_byte() -> dict[bytes, int]:
    """A word for each byte, which is first in one and last in another; no two weigh the same."""
    return {bytes((first, first ^ 0x5A)): 1 + first * 7 % 256 for first in range(256)}


def check_many_merges(tie_break: TieBreak, train: Train) -> None:
    expect_definition(train, words_with_many_ties(), MANY_MERGES, tie_break)


def check_many_words(tie_break: TieBreak, train: Train) -> None:
    expect_definition(train, very_many_words(), 4, tie_break)


def check_every_byte(tie_break: TieBreak, train: Train) -> None:
    expect_definition(train, every_byte(), 256, tie_break)


def check_many_calls(tie_break: TieBreak, train: Train) -> None:
    """Call after call: what is kept between calls, or counted over all of them, may show after a long time only.

    A trainer that is slow to start is called as often as the time allows.
    """
    words = {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6}
    give_up = time.monotonic() + SECONDS_FOR_CALLS
    for _ in range(MANY_CALLS):
        expect_definition(train, words, 4, tie_break)
        if time.monotonic() > give_up:
            return


def check_searched_words(tie_break: TieBreak, train: Train) -> None:
    """Lets Hypothesis look for words on which a trainer parts from the definition, and shrink what it finds.

    It looks at the same words for every trainer, so they are made once; it starts anew where a trainer fails them.
    """
    advice = "\nthese are the smallest words found"
    for words in searched_words():
        try:
            expect_definition(train, words, to_exhaustion(words), tie_break)
        except CheckFailed:
            _search(tie_break, train, advice)
            raise


@functools.cache
def searched_words() -> list[dict[bytes, int]]:
    """The words that Hypothesis looks at as long as nothing fails. Raises CheckSkipped where it is not installed."""
    looked_at: list[dict[bytes, int]] = []
    _with_hypothesis(looked_at.append)
    return looked_at


def _search(tie_break: TieBreak, train: Train, advice: str) -> None:
    """Raises CheckFailed with the smallest words found, if a trainer fails again."""
    wrong: set[tuple[tuple[bytes, int], ...]] = set()
    give_up = math.inf

    def agrees_with_the_definition(words: dict[bytes, int]) -> None:
        nonlocal give_up
        known = tuple(sorted(words.items()))
        if time.monotonic() > give_up and known not in wrong:
            return  # no smaller ones are looked for any more
        try:
            expect_definition(train, words, to_exhaustion(words), tie_break, advice=advice)
        except CheckFailed:
            if not wrong:
                give_up = time.monotonic() + counterexamples.SHRINKING_SECONDS
            wrong.add(known)
            raise

    _with_hypothesis(agrees_with_the_definition)


def _with_hypothesis(look_at: Callable[[dict[bytes, int]], None]) -> None:
    try:
        import hypothesis
        from hypothesis import strategies
    except ImportError:
        raise CheckSkipped("hypothesis is not installed; pip install hypothesis to have failures made small") from None

    @hypothesis.settings(
        max_examples=HYPOTHESIS_EXAMPLES,
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(
        strategies.dictionaries(
            strategies.lists(strategies.sampled_from(ALPHABET), min_size=1, max_size=LONGEST_WORD).map(bytes),
            strategies.integers(1, 6) | strategies.integers(2**32, 2**32 + 6),
            max_size=6,
        )
    )
    def search(words: dict[bytes, int]) -> None:
        look_at(words)

    try:
        search()
    except hypothesis.errors.Flaky as error:
        raise CheckFailed(f"the same words gave other merges when they were tried again: {error}") from error


def check_equals_cs336(tie_break: TieBreak, train: Train) -> None:
    """Compares with the merges that CS336's assignment 1 ships, the one result here that no program of ours made."""
    if tie_break is not TieBreak.GREATEST_BYTES:
        raise CheckSkipped("the merges of CS336 hold for tie_break=greatest_bytes")
    folder = Path(os.environ.get(CS336_FOLDER, ""))
    text, reference = folder / "corpus.en", folder / "train-bpe-reference-merges.txt"
    if not (text.is_file() and reference.is_file()):
        raise CheckSkipped(
            f"needs {text.name} and {reference.name} of CS336's assignment 1; name their folder by the environment "
            f"variable {CS336_FOLDER}"
        )
    lines = reference.read_text(encoding="utf-8").splitlines()
    want = [(read_spelling(left), read_spelling(right)) for left, right in map(str.split, lines)]
    words = dict(registry.definition_counter()(Corpus(str(text))))
    expect_merges(learn(train, words, len(want)), want, words, f"wanted is {reference}")
