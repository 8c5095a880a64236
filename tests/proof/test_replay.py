"""Replaying merges: every count and every choice is what recounting all words gives, whatever list
is replayed.

tests/fixtures/command_rows/proof.toml has what the command prints.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as some
from random_extensions import spoilt

from harness.proof.checks import TrainerCall
from harness.proof.trainer_checks import random_words
from harness.proof.true_counts import (
    DUPLICATE,
    MAXIMUM,
    TIE,
    TOO_RARE,
    UNKNOWN,
    WRONG,
    Best,
    TrueCounts,
    replay,
)
from variants.contract import NULL_METER, Merge, Pair, TieBreak, WordCounts
from variants.words import count_pairs, merge_pair

Words = dict[bytes, int]
AB, CD, EF, GH = ((text[:1], text[1:]) for text in (b"ab", b"cd", b"ef", b"gh"))


def recounted(words: Words, merges: Sequence[Merge]) -> tuple[list[tuple[int, Best]], Best, int]:
    """The plain reference: before every merge all pairs of all words are counted again."""
    texts, weights = [list(word) for word in words], list(words.values())
    ids = {bytes((byte,)): byte for byte in range(256)}
    steps = []
    for left, right in merges:
        pair, counts = (
            (ids.get(left, -1), ids.get(right, -1)),
            count_pairs(texts, weights, NULL_METER),
        )
        steps.append((counts.get(pair, 0), best_of(counts, list(ids))))
        new = ids.setdefault(left + right, len(ids))
        texts = [merge_pair(text, pair, new) for text in texts]
    tokens = sum(len(text) * weight for text, weight in zip(texts, weights, strict=True))
    return steps, best_of(count_pairs(texts, weights, NULL_METER), list(ids)), tokens


def best_of(counts: Mapping[Pair, int], tokens: Sequence[bytes]) -> Best:
    most = max(counts.values(), default=0)
    tied = [pair for pair in counts if counts[pair] == most]

    def choice(tie_break: TieBreak) -> Merge:
        left, right = max(
            tied, key=lambda pair: [tie_break.key(token, tokens[token]) for token in pair]
        )
        return tokens[left], tokens[right]

    return Best(
        most, len(tied), {tie_break: choice(tie_break) for tie_break in TieBreak} if tied else {}
    )


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


def test_every_judgement() -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 7), (b"gh", 2), (b"ij", 1)])
    merges = [EF, AB, GH, EF, (b"xy", b"z"), (b"c", b"f"), CD, (b"i", b"j")]
    replayed = replay(words, merges, min_count=2)
    assert [(step.judgement, step.count, step.best.count) for step in replayed.steps] == [
        (MAXIMUM, 7, 7),
        (TIE, 5, 5),
        (WRONG, 2, 5),
        (DUPLICATE, 0, 5),
        (UNKNOWN, 0, 5),
        (WRONG, 0, 5),
        (MAXIMUM, 5, 5),
        (TOO_RARE, 1, 1),
    ]
    assert replayed.steps[1].right_under == (
        TieBreak.SMALLEST_BYTES,
        TieBreak.HUGGINGFACE,
        TieBreak.RAW_BYTES,
    )
    assert replayed.tie_breaks == ()


def test_edges_of_the_replay() -> None:
    merges = [(b"bc", b"d"), (b"bcd", b"a"), AB]
    replayed = replay(WordCounts.from_items([(b"abc", 5)]), merges)
    assert [step.judgement for step in replayed.steps] == [UNKNOWN, WRONG, TIE], (
        "a joined token is known from then on"
    )
    largest = replay(WordCounts.from_items([(b"ab", 2**63 - 1), (b"c", 2**63 - 1)]), [AB])
    assert (largest.tokens, largest.bytes) == (2 * (2**63 - 1), 3 * (2**63 - 1))
    empty = replay(WordCounts.from_items([]), [AB])
    assert [(step.judgement, step.count, step.best) for step in empty.steps] == [
        (WRONG, 0, Best(0, 0, {}))
    ]
