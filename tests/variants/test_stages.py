"""The stages where the conformance suite does not reach: their parameters, their tallies, long
words. Refusals are rows of refusals.toml.
"""

import heapq
import random

import pytest
from growing_words import one_word
from rows import Row, each_row
from workbench import work_of

from harness.common import registry
from harness.proof.cases import random_words
from variants import heap, multiprocess, naive, pair_queue, seg_status
from variants.contract import Meter, WordCounts

WORDS = WordCounts.from_items(random_words(random.Random(7), b"aaeinrst", 400, 12).items())
"""Words that repeat pairs inside."""


def test_processes_find_the_maximum_of_any_number_of_pairs() -> None:
    """Each merge leaves one pair fewer, down to fewer than processes, the greatest in the last
    slice.
    """
    words = WordCounts.from_items((bytes((65 + at, 255 - at)), 1 + at) for at in range(11))
    assert multiprocess.train(words, 20, parallel_max=4) == naive.train(words, 20)


@pytest.mark.parametrize("push", ["all", "grown"])
def test_every_heap_gives_the_same_merges_and_tallies(
    push: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(heapq, "heappush_max"):  # before 3.14: functions of the same names and meaning
        monkeypatch.setattr(heapq, "heapify_max", pair_queue.python_heapify, raising=False)
        monkeypatch.setattr(heapq, "heappush_max", pair_queue.python_push, raising=False)
        monkeypatch.setattr(heapq, "heappop_max", pair_queue.python_pop, raising=False)

    runs = []
    for kind in ("c", "python", "max"):
        meter = Meter()
        runs.append((heap.train(WORDS, 200, meter, heap=kind, push=push), meter.tallies))
    assert runs[0] == runs[1] == runs[2]


@each_row(__file__, "work.toml")
def test_tallies_of_a_run_small_enough_to_follow(row: Row) -> None:
    words = WordCounts.from_items([(b"abab", 2), (b"cab", 1)])
    assert work_of(registry.resolve(row["train"]), words, 1) == row["work"]


@each_row(__file__, "savings.toml")
def test_stage_saves_what_it_set_out_to_save(row: Row) -> None:
    work = work_of(registry.resolve(row["train"]), WORDS, 200, **row.get("params", {}))
    other = work_of(registry.resolve(row["of"]), WORDS, 200, **row.get("of_params", {}))
    for tally in row["saves"]:
        assert work.get(tally, 0) * row.get("times", 1) < other[tally]
    for tally in row["same"]:
        assert work[tally] == other[tally]


def test_merge_of_seg_status_visits_its_own_places_only() -> None:
    length = 20_000
    work = work_of(seg_status.train, one_word(length), 200)
    # The text once, and the places of 200 pairs; 200 passes over the word would be 200 texts.
    assert work["positions_visited"] < 6 * length
