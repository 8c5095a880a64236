"""The stages where the conformance suite does not reach: their parameters, their tallies, long
words, their claims.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest

from variants import fine_grained, heap, incremental, multiprocess, naive, pair_queue, seg_status
from variants.contract import Merge, Meter, TieBreak, Unavailable, WordCounts

Train = Callable[..., "list[Merge]"]


def tallies_of(
    train: Train, word_counts: WordCounts, num_merges: int, **params: Any
) -> dict[str, int]:
    meter = Meter()
    train(word_counts, num_merges, meter, **params)
    return meter.tallies


def english(seed: int) -> WordCounts:
    """Words that share endings and repeat pairs inside, with weights as uneven as a language's."""
    chance = random.Random(seed)
    parts = ["st", "ing", "an", "ana", "er", "e", "tion", "aa", "b", "na"]
    words = {"".join(chance.choices(parts, k=chance.randint(1, 6))): 0 for _ in range(300)}
    return WordCounts.from_items(
        (word.encode(), 1000 // place) for place, word in enumerate(words, 1)
    )


def dna(length: int) -> WordCounts:
    return WordCounts.from_items([(bytes(random.Random(7).choices(b"ACGT", k=length)), 1)])


# ---- parameters


def test_compressing_visits_stale_positions_once_and_not_again() -> None:
    never = tallies_of(seg_status.train, english(1), 200)
    always = tallies_of(seg_status.train, english(1), 200, compress_threshold=1)
    assert always["positions_visited"] != never["positions_visited"]
    assert always["pair_updates"] == never["pair_updates"]


def test_falling_back_to_the_whole_word_updates_more_pairs() -> None:
    windowed = tallies_of(fine_grained.train, english(2), 150)
    coarse = tallies_of(fine_grained.train, english(2), 150, coarse_on_repeat=True)
    assert coarse["pair_updates"] > windowed["pair_updates"]
    assert coarse["words_rewritten"] == windowed["words_rewritten"]


def test_the_parallel_maximum_is_the_maximum() -> None:
    for words in ({}, {b"ab": 1}, {b"aaa": 2, b"xy": 3}):
        word_counts = WordCounts.from_items(words.items())
        assert multiprocess.train(word_counts, 9, parallel_max=3) == naive.train(word_counts, 9)
    expected = incremental.train(english(3), 40, tie_break=TieBreak.HUGGINGFACE)
    assert (
        multiprocess.train(english(3), 40, tie_break=TieBreak.HUGGINGFACE, parallel_max=2)
        == expected
    )


@pytest.mark.parametrize(
    ("train", "wrong", "message"),
    [
        (seg_status.train, {"compress_threshold": 1.5}, "share from 0 to 1"),
        (multiprocess.train, {"parallel_max": 0}, "1 or more"),
        (fine_grained.train, {"index": "word"}, "'words' or 'occurrences'"),
        (heap.train, {"heap": "C"}, "'c', 'python' or 'max'"),
        (heap.train, {"push": "none"}, "'all' or 'grown'"),
    ],
)
def test_impossible_parameters_are_refused(
    train: Train, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        train(english(1), 3, **wrong)


def test_the_max_functions_need_a_python_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(heapq, "heappush_max", raising=False)
    with pytest.raises(Unavailable, match=r"Python 3\.14"):
        heap.train(english(1), 3, heap="max")


def test_every_heap_gives_the_same_merges_and_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(heapq, "heappush_max"):  # before 3.14: functions of the same names and meaning
        for name in ("heapify", "push", "pop"):
            attribute = f"{name if name == 'heapify' else 'heap' + name}_max"
            monkeypatch.setattr(
                heapq, attribute, getattr(pair_queue, f"python_{name}"), raising=False
            )
    for push in ("all", "grown"):
        runs = []
        for kind in ("c", "python", "max"):
            meter = Meter()
            runs.append((heap.train(english(4), 200, meter, heap=kind, push=push), meter.tallies))
        assert runs[0] == runs[1] == runs[2]


# ---- tallies


def test_the_tallies_of_a_run_small_enough_to_follow() -> None:
    word_counts = WordCounts.from_items([(b"abab", 2), (b"cab", 1)])
    # Seven positions and five pairs at first (ab, ba, ca distinct); (a, b), five times, is merged
    # in both words, which are then two tokens each and hold one pair each.
    expected: dict[Train, dict[str, int]] = {
        naive.train: {"positions_visited": 7 + 4, "pair_updates": 5 + 2, "pairs_scanned": 3, "words_rewritten": 2},
        incremental.train: {
            "positions_visited": 7 + (4 + 2) + (3 + 2), "pair_updates": 5 + (3 + 1) + (2 + 1), "pairs_scanned": 3,
            "words_rewritten": 2,
        },
        heap.train: {
            "positions_visited": 7 + (4 + 4) + (3 + 3), "pair_updates": 5 + (3 + 1) + (2 + 1), "words_rewritten": 2,
            "heap_pushes": 3 + 2, "heap_pops": 1, "stale_pops": 0,
        },
    }  # fmt: skip
    for train, tallies in expected.items():
        assert tallies_of(train, word_counts, 1) == tallies
    # Positions: the text with its three barriers, then the three places of (a, b).
    positional = tallies_of(seg_status.train, word_counts, 1)
    assert positional["positions_visited"] == 10 + 3
    assert positional["pair_updates"] == 5 + 2 * (2 + 0) + 2


def test_each_stage_does_less_of_what_it_set_out_to_save() -> None:
    modules = (naive, incremental, fine_grained, heap)
    scans = {
        module.__name__.removeprefix("variants."): tallies_of(module.train, english(7), 200)
        for module in modules
    }
    assert scans["incremental"]["positions_visited"] < scans["naive"]["positions_visited"] / 5
    assert scans["incremental"]["pairs_scanned"] == scans["naive"]["pairs_scanned"]
    assert scans["fine_grained"]["pair_updates"] < scans["incremental"]["pair_updates"]
    assert scans["fine_grained"]["words_rewritten"] == scans["incremental"]["words_rewritten"]
    assert "pairs_scanned" not in scans["heap"]
    grown = tallies_of(heap.train, english(7), 200, push="grown")
    assert grown["heap_pushes"] < scans["heap"]["heap_pushes"]
    assert grown["positions_visited"] == scans["heap"]["positions_visited"]
    assert scans["heap"]["pair_updates"] == scans["fine_grained"]["pair_updates"]


# ---- long words


def test_a_merge_of_seg_status_visits_its_own_places_only() -> None:
    tallies = tallies_of(seg_status.train, dna(50_000), 200)
    # The text once, and the places of 200 pairs; 200 passes over the word would be 200 texts.
    assert tallies["positions_visited"] < 6 * 50_000


def test_tokens_as_long_as_any_word() -> None:
    sizes = []
    for length in (254, 255, 256, 257, 65535, 65536):
        word_counts = WordCounts.from_items([(b"a" * length, 2), (b"ba" * 3, 1)])
        merges = seg_status.train(word_counts, 40)
        assert merges == heap.train(word_counts, 40)
        assert max(len(left + right) for left, right in merges) == length
        sizes.append(seg_status.SegmentedText(word_counts).seg_status.itemsize)
    assert sizes[:5] == [1, 1, 2, 2, 2]  # lengths take no more room than the longest word needs
    assert sizes[5] >= 4
