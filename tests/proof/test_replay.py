"""Replaying merges: every count and every choice is what recounting all words gives, whatever list
is replayed; and merges of one round may be made in any order.

tests/fixtures/command_rows/proof.toml has what the command prints.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from random_extensions import spoilt
from rows import merges_of

from harness.proof.bounds import rounds
from harness.proof.calls import TrainerCall
from harness.proof.trainer_checks import random_words
from harness.proof.true_counts import Best, TrueCounts, replay
from variants.contract import NULL_METER, Merge, Pair, TieBreak, WordCounts
from variants.words import count_pairs, merge_pair


def recounted(
    words: Mapping[bytes, int], merges: Sequence[Merge]
) -> tuple[list[tuple[int, Best]], Best, int]:
    """The plain reference: before every merge all pairs of all words are counted again."""
    texts, weights = [list(word) for word in words], list(words.values())
    ids = {bytes((byte,)): byte for byte in range(256)}
    steps = []
    for left, right in merges:
        pair = ids.get(left, -1), ids.get(right, -1)
        counts = count_pairs(texts, weights, NULL_METER)
        steps.append((counts.get(pair, 0), best_of(counts, list(ids))))
        new = ids.setdefault(left + right, len(ids))
        texts = [merge_pair(text, pair, new) for text in texts]
    tokens = sum(len(text) * weight for text, weight in zip(texts, weights, strict=True))
    return steps, best_of(count_pairs(texts, weights, NULL_METER), list(ids)), tokens


def best_of(counts: Mapping[Pair, int], tokens: Sequence[bytes]) -> Best:
    most = max(counts.values(), default=0)
    tied = [pair for pair in counts if counts[pair] == most]
    choices: dict[TieBreak, Merge] = {}
    for tie_break in TieBreak if tied else ():
        left, right = max(
            tied, key=lambda pair: [tie_break.key(token, tokens[token]) for token in pair]
        )
        choices[tie_break] = tokens[left], tokens[right]
    return Best(most, len(tied), choices)


@given(some.integers(0, 2**32), some.sampled_from(TieBreak))
def test_every_count_and_choice_is_that_of_counting_again(seed: int, tie_break: TieBreak) -> None:
    """Whatever is wrong with the list."""
    dice, words = random.Random(seed), random_words(seed)
    merges = TrainerCall(words, 1000, tie_break).defined()
    for _ in range(dice.randrange(5)):
        merges = spoilt(merges, dice)
    word_counts = WordCounts.from_items(words.items())

    replayed = replay(word_counts, merges)

    steps, rest, tokens = recounted(words, merges)
    assert [(step.count, step.best) for step in replayed.steps] == steps
    assert (replayed.rest, replayed.tokens) == (rest, tokens)
    assert TrueCounts(word_counts, inherited=merges).text.tokens == tokens
    assert replayed.bytes == sum(len(word) * weight for word, weight in words.items())


def judgements(words: Mapping[bytes, int], *merges: str, **rules: Any) -> list[str]:
    """What is said of each merge, with its count and that of the best pair."""
    replayed = replay(WordCounts.from_items(words.items()), merges_of(merges), **rules)
    return [f"{step.judgement} {step.count} of {step.best.count}" for step in replayed.steps]


def test_every_judgement() -> None:
    words = {b"ab": 5, b"cd": 5, b"ef": 7, b"gh": 2, b"ij": 1}
    merges = "e f", "a b", "g h", "e f", "xy z", "c f", "c d", "i j"
    assert judgements(words, *merges, min_count=2) == [
        "maximum 7 of 7",
        "tie 5 of 5",
        "wrong 2 of 5",
        "duplicate 0 of 5",
        "unknown 0 of 5",
        "wrong 0 of 5",
        "maximum 5 of 5",
        "too_rare 1 of 1",
    ]
    # a joined token is known from then on
    expected = ["unknown 0 of 5", "wrong 0 of 5", "tie 5 of 5"]
    assert judgements({b"abc": 5}, "bc d", "bcd a", "a b") == expected
    assert judgements({}, "a b") == ["wrong 0 of 0"]

    replayed = replay(WordCounts.from_items(words.items()), merges_of(["e f", "a b", "g h"]))
    assert [tie_break.value for tie_break in replayed.steps[1].right_under] == [
        "smallest_bytes",
        "huggingface",
        "raw_bytes",
    ]
    assert replayed.tie_breaks == ()


def test_sums_of_the_largest_counts() -> None:
    words = WordCounts.from_items([(b"ab", 2**63 - 1), (b"c", 2**63 - 1)])
    replayed = replay(words, merges_of(["a b"]))
    assert (replayed.tokens, replayed.bytes) == (2 * (2**63 - 1), 3 * (2**63 - 1))


# Rounds


def waits(later: Merge, earlier: Merge) -> bool:
    return b"".join(earlier) in later or earlier[1] == later[0] or later[1] == earlier[0]


@given(some.integers(0, 2**32), some.sampled_from(TieBreak))
def test_the_merges_of_a_round_may_be_made_in_any_order(seed: int, tie_break: TieBreak) -> None:
    dice, words = random.Random(seed), random_words(seed)
    merges = TrainerCall(words, 60, tie_break).defined()

    found = rounds(merges)

    defined: list[int] = []
    for number, merge in enumerate(merges):
        earlier = [defined[other] for other in range(number) if waits(merge, merges[other])]
        defined.append(1 + max(earlier, default=0))
    assert found == defined

    order = sorted(range(len(merges)), key=lambda index: (found[index], dice.random()))
    word_counts = WordCounts.from_items(words.items())
    made = replay(word_counts, merges)
    shuffled = replay(word_counts, [merges[index] for index in order])
    counts = {step.merge: step.count for step in made.steps}
    assert {step.merge: step.count for step in shuffled.steps} == counts
    assert shuffled.tokens == made.tokens
