"""The points of the C++ grid learn the definition's merges, do the work of the Python stages, and
behave.

The conformance suite runs over the presets as over every variant. Here is what it does not know:
every point that was compiled under every parameter, the tallies against the stages in Python, what
is absent, and how words are passed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from random_extensions import random_table
from sanitizers import case_text, printed_merges, sanitized
from workbench import first_fast

from variants import cpp, fine_grained, heap, incremental, naive
from variants.contract import (
    LARGEST_COUNT,
    NULL_METER,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
    WordCounts,
)

grid = pytest.importorskip("variants.native._grid", reason="the compiled part is not built")

POLICIES = ("hash_map", "hash", "index", "maximum", "update")
MODULES = ("_grid_std", "_grid_dense", "_grid_openmp", "_grid_boost", "_grid_absl")


def compiled(module: str) -> list[tuple[str, ...]]:
    try:
        return list(grid.points(importlib.import_module(f"variants.native.{module}").members))
    except ImportError:
        return []


POINTS = [point for module in MODULES for point in compiled(module)]
THREADED = [point for point in POINTS if point[3].startswith("openmp")]
every_point = pytest.mark.parametrize("point", POINTS, ids="-".join)


def learn(
    point: tuple[str, ...],
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    **rest: Any,
) -> Sequence[Merge]:
    chosen: dict[str, Any] = dict(zip(POLICIES, point, strict=True))
    return cpp.train(word_counts, num_merges, meter, **chosen, **rest)


@functools.cache
def random_words(seed: int) -> WordCounts:
    return WordCounts.from_items(random_table(random.Random(seed)).items())


@functools.cache
def many_words() -> WordCounts:
    """Enough pairs that tables grow, chains cross and every thread has a share."""
    dice, letters = random.Random(5), b"abcdefghijklmnopqrstuvwxyz"
    return WordCounts.from_items(
        (bytes(dice.choices(letters, k=dice.randint(1, 9))), 1 + at % 7) for at in range(1500)
    )


@every_point
def test_a_point_learns_what_the_definition_learns(point: tuple[str, ...]) -> None:
    settings = itertools.product((False, True), cpp.PUSHES, cpp.PASSED_AS)
    for seed, (reuse_returned, push, words) in enumerate(settings):
        tie_break, min_count = list(TieBreak)[seed % 4], 1 + seed % 3
        how: dict[str, Any] = {"reuse_returned": reuse_returned, "push": push, "words": words}
        learned = learn(
            point, random_words(seed), 60, tie_break=tie_break, min_count=min_count, **how
        )
        assert learned == naive.train(
            random_words(seed), 60, tie_break=tie_break, min_count=min_count
        )


@pytest.mark.parametrize("point", first_fast((point,) for point in THREADED), ids="-".join)
def test_every_width_and_schedule_learns_the_same_and_counts_the_same_work(
    point: tuple[str, ...],
) -> None:
    answers = []
    for threads, schedule in itertools.product((1, 2, 3, 8), cpp.SCHEDULES):
        meter = Meter()
        learned = learn(
            point, many_words(), 30, meter, threads=threads, schedule=schedule, chunk=threads * 7
        )
        answers.append((learned, meter.tallies))
    assert answers[0][0] == incremental.train(many_words(), 30)
    assert all(answer == answers[0] for answer in answers)


@functools.cache
def work_in_python(stage: str, push: str) -> tuple[list[Merge], dict[str, int]]:
    """What a stage in Python learns, and the work that it counts."""
    meter = Meter()
    if stage == "heap":
        return heap.train(many_words(), 100, meter, push=push), meter.tallies
    train = {"coarse": incremental.train, "fine_grained": fine_grained.train}[stage]
    return train(many_words(), 100, meter), meter.tallies


@every_point
@pytest.mark.parametrize("push", cpp.PUSHES)
def test_work_is_that_of_the_stage_in_python(point: tuple[str, ...], push: str) -> None:
    stage, mine = "heap" if point[3] == "heap" else point[4], Meter()
    merges, tallies = work_in_python(stage, push if stage == "heap" else "")
    assert learn(point, many_words(), 100, mine, push=push) == merges
    if point[3:] != ("heap", "coarse"):  # no stage in Python has a heap and updates whole words
        assert mine.tallies.pop("pairs_copied", 0) == (
            tallies["pairs_scanned"] if "copied" in point[3] else 0
        )
        assert mine.tallies == tallies


@pytest.mark.parametrize("words", cpp.PASSED_AS)
def test_words_are_passed_in_each_way(words: str) -> None:
    meter = Meter()
    cpp.train(many_words(), 50, meter, words=words)
    assert set(meter.seconds) == {"convert", "init", "max", "update"}
    assert meter.seconds["convert"] > 0
    assert cpp.train(WordCounts.from_items([(b"ab", LARGEST_COUNT)]), 5, words=words) == [
        (b"a", b"b")
    ]
    with pytest.raises(
        ValueError, match=r"2\*\*63 - 1 adjacent positions by weight; divide the counts"
    ):
        cpp.train(WordCounts.from_columns([b"abc", b"ab"], [2**62, 1]), 9, words=words)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hash_map": "robin"}, "hash_map is 'robin'; it is one of std, dense, boost, absl"),
        (
            {"maximum": "openmp"},
            "maximum is 'openmp'; it is one of iterator_scan, .*, openmp_region",
        ),
        ({"push": "none"}, "push is 'none'; it is one of all, grown"),
        ({"words": "strings"}, "words is 'strings'; it is one of columns, objects, indexed"),
        ({"threads": 0}, "threads is 0; it is 1 or more"),
        ({"chunk": 2**31}, "chunk is 2147483648; it is 1 or more, and below"),
    ],
)
def test_unknown_values_are_refused_with_the_known_ones(
    wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        cpp.train(many_words(), 1, **wrong)


def test_a_point_that_was_not_compiled_is_answered_with_the_nearest_and_where_to_add_it() -> None:
    with pytest.raises(ValueError, match="not compiled") as raised:
        cpp.train(many_words(), 1, index="dense_set")
    assert str(raised.value) == (
        "std/boost/dense_set/iterator_scan/coarse is not compiled; "
        "the nearest is std/boost/node_set/iterator_scan/coarse. "
        "A line in variants/native/grid_std.cpp and a build add it"
    )


def test_a_build_for_another_interpreter_is_not_reported_as_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "variants.native._grid", None)
    monkeypatch.setattr(sys.implementation, "cache_tag", "pypy39")
    with pytest.raises(
        Unavailable,
        match=r"is built for cpython-.* and this is pypy39; only Python stages run under",
    ):
        cpp.train(many_words(), 1)


def test_a_module_compiled_with_other_types_is_refused() -> None:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    name = b"variants.native.grid.members 0"  # which the capsule does not copy
    capsule = new(("PyCapsule_New", ctypes.pythonapi))(id(name), name, None)
    with pytest.raises(Unavailable, match="older than its sources"):
        grid.points(capsule)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("-fopenmp",)], ids=["one_thread", "openmp"])
def test_sanitizers_find_nothing(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = sanitized("grid_driver.cpp", "address,undefined", tmp_path, *flags)
    texts, expected = [], []
    for seed in range(30_000, 30_150):
        dice, words = random.Random(seed), random_words(seed)
        num_merges, min_count = dice.choice((5, 50, 1000)), dice.choice((1, 1, 4))
        tie_break = dice.randrange(len(TieBreak))
        numbers = (
            num_merges,
            min_count,
            tie_break,
            dice.randint(1, 4),
            dice.randrange(4),
            dice.randint(1, 9),
        )
        texts.append(case_text(numbers, words))
        expected.append(
            naive.train(words, num_merges, tie_break=list(TieBreak)[tie_break], min_count=min_count)
        )
    assert printed_merges(program, texts) == expected
