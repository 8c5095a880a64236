"""Replaying merges: every count and every choice is what recounting all words gives, whatever list is replayed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from random_extensions import spoilt

from harness.common import errors
from harness.proof.checks import TrainerCall
from harness.proof.trainer_checks import random_words, two_letter_word
from harness.proof.true_counts import DUPLICATE, MAXIMUM, TIE, TOO_RARE, UNKNOWN, WRONG, Best, TrueCounts, replay
from harness.replay import differences, main
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
        pair, counts = (ids.get(left, -1), ids.get(right, -1)), count_pairs(texts, weights, NULL_METER)
        steps.append((counts.get(pair, 0), best_of(counts, list(ids))))
        new = ids.setdefault(left + right, len(ids))
        texts = [merge_pair(text, pair, new) for text in texts]
    tokens = sum(len(text) * weight for text, weight in zip(texts, weights, strict=True))
    return steps, best_of(count_pairs(texts, weights, NULL_METER), list(ids)), tokens


def best_of(counts: Mapping[Pair, int], tokens: Sequence[bytes]) -> Best:
    most = max(counts.values(), default=0)
    tied = [pair for pair in counts if counts[pair] == most]

    def choice(tie_break: TieBreak) -> Merge:
        left, right = max(tied, key=lambda pair: [tie_break.key(token, tokens[token]) for token in pair])
        return tokens[left], tokens[right]

    return Best(most, len(tied), {tie_break: choice(tie_break) for tie_break in TieBreak} if tied else {})


def trained(words: Words, tie_break: TieBreak = TieBreak.GREATEST_BYTES) -> list[Merge]:
    return TrainerCall(words, 1000, tie_break).defined()


@given(some.integers(0, 2**32), some.sampled_from(TieBreak))
def test_every_count_and_choice_is_that_of_counting_again(seed: int, tie_break: TieBreak) -> None:
    """Whatever is wrong with the list."""
    dice, words = random.Random(seed), random_words(seed)
    merges = trained(words, tie_break)
    for _ in range(dice.randrange(5)):
        merges = spoilt(merges, dice)
    word_counts = WordCounts.from_items(words.items())
    replayed = replay(word_counts, merges)
    steps, rest, tokens = recounted(words, merges)
    assert [(step.count, step.best) for step in replayed.steps] == steps
    assert (replayed.rest, replayed.tokens) == (rest, tokens)
    assert TrueCounts(word_counts, inherited=merges).text.tokens == tokens
    assert replayed.bytes == sum(len(word) * weight for word, weight in words.items())


def test_long_words_with_runs_are_counted_too() -> None:
    words = {two_letter_word(300): 3, b"a" * 41: 2, b"ab" * 30: 1}
    merges = trained(words)
    replayed = replay(WordCounts.from_items(words.items()), merges)
    assert [(step.count, step.best) for step in replayed.steps] == recounted(words, merges)[0]


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
    assert replayed.steps[1].right_under == (TieBreak.SMALLEST_BYTES, TieBreak.HUGGINGFACE, TieBreak.RAW_BYTES)
    assert replayed.tie_breaks == ()


def test_edges_of_the_replay() -> None:
    merges = [(b"bc", b"d"), (b"bcd", b"a"), AB]
    replayed = replay(WordCounts.from_items([(b"abc", 5)]), merges)
    assert [step.judgement for step in replayed.steps] == [UNKNOWN, WRONG, TIE], "a joined token is known from then on"
    largest = replay(WordCounts.from_items([(b"ab", 2**63 - 1), (b"c", 2**63 - 1)]), [AB])
    assert (largest.tokens, largest.bytes) == (2 * (2**63 - 1), 3 * (2**63 - 1))
    empty = replay(WordCounts.from_items([]), [AB])
    assert [(step.judgement, step.count, step.best) for step in empty.steps] == [(WRONG, 0, Best(0, 0, {}))]


# Two lists


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([EF, CD, AB], [EF, AB, CD], "A merge 2: b'c' + b'd', 5 times, as often as 1 other"),
        ([EF], [EF, CD], "A has ended; b'c' + b'd' is left with 5 times"),
    ],
)
def test_first_difference_is_explained(a: list[Merge], b: list[Merge], text: str) -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 7), (b"gh", 2)])
    lines = list(differences(replay(words, a), replay(words, b)))
    assert lines[0] == "first difference: merge 2, 1 equal before it"
    assert lines[1].strip().startswith(text)


# The command; tests/fixtures/command_rows/proof.toml has what it prints


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["no_such_data"], "'no_such_data' is not of the form NAME=VALUE"),
        (["tie_break=own"], "tie_break=own is a trainer's own; pass the tie-break of these merges"),
        (["vocab_size=3"], "vocab_size=3 is too small"),
        (["--against", "no_such.txt"], "no_such.txt"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: list[str], answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "merges.txt").write_text("a b\n")
    (tmp_path / "book.txt").write_text("ab")
    assert main([str(tmp_path / "merges.txt"), "--data", str(tmp_path / "book.txt"), *arguments]) == errors.USAGE
    captured = capsys.readouterr()
    assert (captured.out, answer in captured.err, captured.err.count("\n")) == ("", True, 1)
