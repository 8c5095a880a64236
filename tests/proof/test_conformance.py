"""Every variant and every word counter of the registry passes the conformance suite.

What cannot run on this machine is skipped with its reason. The environment variable BPE_HARNESS_REQUIRE lists names and
tags, separated by commas, that may not be skipped: whoever sets up a machine knows what is to run there. The presets of
the C++ grid pass the whole suite too, in one test each, because there are so many; most of them are slow tests.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import pytest
from checked import TAKING_SECONDS, passing, quick_ones, slow_ones, together

from harness.common import registry
from harness.common.errors import Refusal
from harness.conformance import check_word_counter, trainer_checks
from harness.proof.checks import Check, CheckFailed, CheckSkipped, outcome_of
from harness.proof.counter import counter_checks
from harness.proof.extension import extends, extension_checks
from harness.proof.trainer import properties
from variants import fine_grained, heap, multiprocess, seg_status
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts
from variants.counting.processes import processes

ASKED = [name for name in os.environ.get("BPE_HARNESS_REQUIRE", "").split(",") if name]
REQUIRED = {name for name in ASKED if name in registry.counters()} | {
    card.name for card in registry.variants().values() if {card.name, *card.tags} & set(ASKED)
}
TRAINER_CHECKS = trainer_checks()
COUNTER_CHECKS = quick_ones(counter_checks()) + slow_ones(counter_checks([3]))
# What trains from a file has no words to be checked with; tests/variants/test_peers.py has its checks.
ON_WORDS = [card.name for card in registry.variants().values() if "from_file" not in card.tags]
PRESETS = [card.name for card in registry.variants().values() if "cpp" in card.tags]
VARIANTS = [name for name in ON_WORDS if name not in PRESETS]
QUICK = {"flat", "native"}
QUICK_CHECKS = quick_ones(TRAINER_CHECKS)
LATE_CHECKS = slow_ones(TRAINER_CHECKS)
CUTS = ("F04", "F06", "F07", "F14", "self_overlap_repeated", "first_of_two_invalid", "special_across_4096")
FAST_PRESETS = {  # every hash map, hash, index, maximum, update and way of passing words once
    "cpp_updater",
    "cpp_omp_v1_hash",
    "cpp_omp_v3",
    "cpp_omp_v4",
    "cpp_omp_v8",
    "cpp_omp_v2_hash2",
    "cpp_fine_grained_omp_v7_emhash8_set9",
    "cpp_step2",
    "cpp_step2_v3",
    "cpp_fine_grained_heap_emhash8_set9_opt",
    "cpp_fine_grained_heap_boost_set9_opt",
}


def bound(card: Any) -> Callable[..., Any]:
    """The card's function with the card's parameters. Raises Unavailable where a compiled module is missing."""
    try:
        return functools.partial(registry.resolve(card.target), **card.params)
    except Refusal as refusal:
        if isinstance(refusal.__cause__, ImportError):
            raise Unavailable(str(refusal)) from refusal
        raise


@functools.cache
def why_not_here(name: str) -> str | None:
    """Why a variant or counter cannot run on this machine, found by the smallest run there is; None if it can."""
    try:
        if name in registry.variants():
            bound(registry.variants()[name])(WordCounts.from_items([(b"ab", 1)]), 1)
        else:
            bound(registry.counters()[name])(Corpus(__file__))
    except Unavailable as reason:
        return str(reason)
    return None


def present(name: str) -> bool:
    """Whether a name gets its checks. One that fails to run at all gets them too, so that it fails them."""
    try:
        return why_not_here(name) is None
    except Exception:
        return True


def cases(names: list[str], checks: list[Check]) -> list[Any]:
    """The checks of a group are one test: thousands of tests that take a moment each take a minute to be told of."""
    groups = {group: [check for check in checks if check.group == group] for group in [check.group for check in checks]}
    return [
        pytest.param(
            name, group, id=f"{name}-{title}".replace(" ", "-"), marks=[*marks(name, title), *together(group[0])]
        )
        for name in names
        if present(name)
        for title, group in groups.items()
    ]


def marks(name: str, group: str) -> list[Any]:
    """What begins late and large files take slow trainers and counters long, each some seconds."""
    return [pytest.mark.slow] if group in TAKING_SECONDS and name not in QUICK else []


def skip(name: str, reason: str) -> None:
    if name in REQUIRED:
        pytest.fail(f"{name} must run here (BPE_HARNESS_REQUIRE) and does not: {reason}")
    pytest.skip(reason)


def make(checks: list[Check], name: str, card: Any) -> None:
    """Make every check, also after one has failed; the test is skipped only if none applies."""
    failed, skipped = [], []
    for check in checks:
        try:
            check(bound(card))
        except CheckFailed as failure:
            failed.append(f"{check.name}: {failure}")
        except CheckSkipped as reason:
            skipped.append(str(reason))
        except Unavailable as reason:
            skip(name, str(reason))
    assert not failed, "\n".join(failed)
    if len(skipped) == len(checks):
        pytest.skip(skipped[0])


@pytest.mark.parametrize("name", [*ON_WORDS, *registry.counters()])
def test_it_runs_on_this_machine(name: str) -> None:
    if reason := why_not_here(name):
        skip(name, reason)


@pytest.mark.parametrize("name", ASKED)
def test_what_must_run_here_is_in_the_registry(name: str) -> None:
    assert name in registry.counters() or registry.select([name])


@pytest.mark.parametrize(("name", "checks"), cases(VARIANTS, TRAINER_CHECKS))
def test_a_variant_conforms(name: str, checks: list[Check]) -> None:
    make(checks, name, registry.variants()[name])


@pytest.mark.parametrize("name", [name for name in ON_WORDS if "extends" in registry.variants()[name].tags])
def test_a_variant_that_can_extend_conforms_in_that_too(name: str) -> None:
    if reason := why_not_here(name):
        skip(name, reason)
    train = bound(registry.variants()[name])
    outcomes = [outcome_of(check, train) for check in extension_checks(list(TieBreak))]
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []
    assert {outcome.check for outcome in outcomes if outcome.status == "skipped"} <= {"check_extends_at_any_width"}


@pytest.mark.parametrize("name", [name for name in ON_WORDS if "external" not in registry.variants()[name].tags])
def test_a_variant_can_extend_if_its_card_says_so(name: str) -> None:
    if reason := why_not_here(name):
        skip(name, reason)
    assert extends(bound(registry.variants()[name])) == ("extends" in registry.variants()[name].tags)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST_PRESETS else [pytest.mark.slow]) for name in PRESETS]
)
def test_a_preset_of_the_grid_conforms(name: str) -> None:
    if reason := why_not_here(name):
        skip(name, reason)
    assert passing(QUICK_CHECKS, bound(registry.variants()[name])) in ([], ["check_equals_cs336"])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_of_the_grid_conforms_late(name: str) -> None:
    if reason := why_not_here(name):
        skip(name, reason)
    assert passing(LATE_CHECKS, bound(registry.variants()[name])) == []


def test_the_fast_presets_are_presets() -> None:
    assert set(PRESETS) >= FAST_PRESETS


@pytest.mark.parametrize(("name", "checks"), cases(list(registry.counters()), COUNTER_CHECKS))
def test_a_word_counter_conforms(name: str, checks: list[Check]) -> None:
    make(checks, name, registry.counters()[name])


@pytest.mark.parametrize(
    "checks",
    [
        [check for check in QUICK_CHECKS if check.group != "searched words"],
        pytest.param([check for check in TRAINER_CHECKS if check.group == "searched words"], marks=pytest.mark.slow),
        pytest.param(LATE_CHECKS, marks=pytest.mark.slow),
    ],
    ids=["", "searched", "late"],
)
@pytest.mark.parametrize(
    ("train", "parameters"),
    [
        (fine_grained.train, {"index": "occurrences"}),
        (fine_grained.train, {"coarse_on_repeat": True}),
        (fine_grained.train, {"index": "occurrences", "coarse_on_repeat": True}),
        (heap.train, {"heap": "python", "push": "grown"}),
        (seg_status.train, {"compress_threshold": 0.3}),
        (seg_status.train, {"compress_threshold": 1.0}),
    ],
    ids=lambda value: value.__module__ if callable(value) else "-".join(map(str, value.values())),
)
def test_parameters_change_the_way_and_not_the_merges(
    train: Callable[..., Any], parameters: dict[str, Any], checks: list[Check]
) -> None:
    passing(checks, functools.partial(train, **parameters))


def under_other_tie_breaks(names: list[str]) -> list[Any]:
    """All of them but the first, under which the whole suite is run; of all but `flat`, all but one are slow tests."""
    return [
        pytest.param(name, tie_break, id=f"{name}-{tie_break.value}", marks=[pytest.mark.slow] if slow else [])
        for name in names
        if present(name)
        for tie_break in list(TieBreak)[1:]
        for slow in [name not in QUICK and tie_break is not TieBreak.RAW_BYTES]
    ]


@pytest.mark.parametrize(("name", "tie_break"), under_other_tie_breaks([*VARIANTS, *sorted(FAST_PRESETS)]))
def test_a_variant_has_its_properties_under_every_tie_break(name: str, tie_break: TieBreak) -> None:
    passing(properties(tie_break), bound(registry.variants()[name]))


@pytest.mark.parametrize(("case", "slices"), [("eleven_pairs", 4), ("first_pair_greatest", 3)])
def test_the_parallel_maximum_keeps_every_pair(case: str, slices: int) -> None:
    check = next(check for check in TRAINER_CHECKS if check.name == f"check_worked_example[{case}]")
    check(functools.partial(multiprocess.train, parallel_max=slices))


@pytest.mark.parametrize("case", CUTS)
def test_the_smallest_ranges_change_no_count(case: str) -> None:
    (check,) = [check for check in counter_checks([3]) if check.name == f"check_worked_file[{case}]"]
    check(functools.partial(processes, smallest_range=1))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"smallest_range": 1}], ids=str)
def test_processes_conform_at_any_width(parameters: dict[str, Any]) -> None:
    check_word_counter(processes, parameters=parameters)
