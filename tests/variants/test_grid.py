"""The points of the C++ grid learn the definition's merges, do the work of the Python stages, and
behave.

The conformance suite runs over the presets as over every variant. Here is what it does not know:
every point that was compiled under every parameter, the tallies against the stages in Python, and
how words are passed. Refusals are rows of refusals.toml.
"""

import ctypes
import functools
import importlib.util
import itertools
import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from random_extensions import random_table
from sanitizers import case_text, lines_of, sanitized
from workbench import first_fast

from harness.proof.cases import random_words as table_of
from variants import cpp, fine_grained, heap, incremental, naive
from variants.contract import Merge, Merges, Meter, TieBreak, Unavailable, WordCounts

grid = pytest.importorskip("variants.native._grid", reason="the compiled part is not built")

Point = tuple[str, ...]
RULES = list(TieBreak)
POINTS: list[Point] = [
    point
    for module in cpp.MODULES.values()
    if importlib.util.find_spec(module)
    for point in grid.points(importlib.import_module(module).members)
]
THREADED = [point for point in POINTS if point[3] in cpp.OPENMP]
every_point = pytest.mark.parametrize("point", POINTS, ids="-".join)


def trainer(point: Point) -> Any:
    choices: dict[str, Any] = dict(zip(cpp.CHOICES, point, strict=True))
    return functools.partial(cpp.train, **choices)


@functools.cache
def random_words(seed: int) -> WordCounts:
    return WordCounts.from_items(random_table(random.Random(seed)).items())


@functools.cache
def many_words() -> WordCounts:
    """Enough pairs that tables grow, chains cross and every thread has a share."""
    table = table_of(random.Random(5), b"abcdefghijklmnopqrstuvwxyz", 1500, 9)
    return WordCounts.from_items(table.items())


@every_point
def test_point_learns_what_the_definition_learns(point: Point) -> None:
    settings = itertools.product((False, True), cpp.PUSHES, cpp.PASSED_AS)
    for seed, (reuse_returned, push, words) in enumerate(settings):
        how: dict[str, Any] = {"reuse_returned": reuse_returned, "push": push, "words": words}
        rules: dict[str, Any] = {"tie_break": RULES[seed % 4], "min_count": 1 + seed % 3}
        learned = trainer(point)(random_words(seed), 60, **rules, **how)
        assert learned == naive.train(random_words(seed), 60, **rules)


@pytest.mark.parametrize("point", first_fast((point,) for point in THREADED), ids="-".join)
def test_every_width_and_schedule_learns_the_same_and_counts_the_same_work(point: Point) -> None:
    expected, tallies = incremental.train(many_words(), 30), []
    for threads, schedule in itertools.product((1, 2, 3, 8), cpp.SCHEDULES):
        meter = Meter()
        how: dict[str, Any] = {"threads": threads, "schedule": schedule, "chunk": threads * 7}
        assert trainer(point)(many_words(), 30, meter, **how) == expected
        tallies.append(meter.tallies)
    assert tallies == tallies[:1] * len(tallies)


@functools.cache
def work_in_python(stage: str, push: str) -> tuple[list[Merge], dict[str, int]]:
    """What a stage in Python learns, and the work that it counts."""
    stages: dict[str, Any] = {
        "coarse": incremental.train,
        "fine_grained": fine_grained.train,
        "heap": functools.partial(heap.train, push=push),
    }
    meter = Meter()
    return stages[stage](many_words(), 100, meter), meter.tallies


@every_point
@pytest.mark.parametrize("push", cpp.PUSHES)
def test_work_is_that_of_the_stage_in_python(point: Point, push: str) -> None:
    *_, maximum, update = point
    meter = Meter()
    merges, tallies = work_in_python("heap" if maximum == "heap" else update, push)

    assert trainer(point)(many_words(), 100, meter, push=push) == merges
    if (maximum, update) == ("heap", "coarse"):  # no stage in Python does both
        return
    copied = tallies["pairs_scanned"] if maximum == "copied_scan" else 0
    assert meter.tallies.pop("pairs_copied", 0) == copied
    assert meter.tallies == tallies


def test_module_compiled_with_other_types_is_refused() -> None:
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
        rule = dice.randrange(4)
        scan = dice.randint(1, 4), dice.randrange(4), dice.randint(1, 9)
        texts.append(case_text((num_merges, min_count, rule, *scan), words))
        expected.append(naive.train(words, num_merges, tie_break=RULES[rule], min_count=min_count))
    cases = tmp_path / "cases"
    cases.write_text("".join(texts))
    learned = [array("I", map(int, line.split())) for line in lines_of(program, cases)]
    assert list(map(Merges, learned)) == expected
