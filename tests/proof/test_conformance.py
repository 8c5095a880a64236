"""Every variant and every word counter of the registry passes the conformance suite.

What cannot run on this machine is skipped with its reason. Most of the presets of the C++ grid are
slow tests, because there are so many.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from checked import TAKING_SECONDS, passing, quick_ones, together
from present import present
from workbench import first_fast

from harness.common import registry
from harness.conformance import check_conformance, counter_checks, trainer_checks
from harness.proof.checks import Check
from harness.proof.trainer_checks import extension_checks, properties
from variants import fine_grained, seg_status
from variants.contract import TieBreak
from variants.counting.processes import processes

TRAINER_CHECKS = trainer_checks()
COUNTER_CHECKS = counter_checks()
# What trains from a file has no words to be checked with; tests/variants/test_peers.py has its
# checks.
TRAINERS = {
    name: card for name, card in registry.variants().items() if "from_file" not in card.tags
}
# Every hash map, hash, index, maximum, update and way of passing words once.
FAST_PRESETS = {
    "cpp_updater",
    "cpp_omp_v1_hash",
    "cpp_omp_v3",
    "cpp_omp_v4",
    "cpp_omp_v8",
    "cpp_omp_v2_hash2",
    "cpp_step2",
    "cpp_step2_v3",
    "cpp_fine_grained_omp_v7_emhash8_set9",
    "cpp_fine_grained_heap_emhash8_set9_opt",
    "cpp_fine_grained_heap_boost_set9_opt",
}
PRESETS = {name for name, card in TRAINERS.items() if "cpp" in card.tags}
FAST = {"flat", "native"}


def cases(names: list[str], checks: list[Check]) -> list[Any]:
    """The checks of a group are one test: thousands of tests that take a moment each take a minute
    to be reported.
    """
    found = []
    for name in names:
        for title in dict.fromkeys(check.group for check in checks):
            group = [check for check in checks if check.group == title]
            takes_seconds = title in TAKING_SECONDS and name not in FAST
            is_slow = takes_seconds or name in PRESETS - FAST_PRESETS
            marks = [pytest.mark.slow] * is_slow + together(group[0])
            found.append(pytest.param(name, group, id=f"{name}-{title}", marks=marks))
    return found


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        *cases(list(TRAINERS), TRAINER_CHECKS),
        *cases(list(registry.counters()), COUNTER_CHECKS),
        *cases(
            [name for name, card in TRAINERS.items() if "extends" in card.tags],
            extension_checks(list(TieBreak)),
        ),
    ],
)
def test_variant_or_counter_conforms(name: str, checks: list[Check]) -> None:
    skipped = passing(checks, present(name))
    if len(skipped) == len(checks):
        pytest.skip(f"{', '.join(skipped)} cannot run here")


@pytest.mark.parametrize(
    "name", [name for name, card in TRAINERS.items() if "external" not in card.tags]
)
def test_variant_extends_if_its_card_says_so(name: str) -> None:
    assert ("inherited" in inspect.signature(present(name)).parameters) == (
        "extends" in TRAINERS[name].tags
    )


@pytest.mark.parametrize("quick", first_fast([True, False]))
@pytest.mark.parametrize(
    "train",
    [
        functools.partial(fine_grained.train, index="occurrences"),
        functools.partial(fine_grained.train, coarse_on_repeat=True),
        functools.partial(fine_grained.train, index="occurrences", coarse_on_repeat=True),
        functools.partial(seg_status.train, compress_threshold=0.3),
        functools.partial(seg_status.train, compress_threshold=1.0),
    ],
)
def test_parameters_leave_merges(train: Callable[..., Any], quick: bool) -> None:
    groups = ("worked examples", "random words")
    few = [check for check in quick_ones(TRAINER_CHECKS) if check.group in groups]
    passing(few if quick else TRAINER_CHECKS, train)


@pytest.mark.parametrize(
    ("name", "tie_break"),
    [
        pytest.param(
            name, tie_break, id=f"{name}-{tie_break.value}", marks=[pytest.mark.slow] * slow
        )
        for name in TRAINERS
        for tie_break in list(TieBreak)[1:]  # under the first the whole suite is run
        for slow in [name not in FAST and (name in PRESETS or tie_break is not TieBreak.RAW_BYTES)]
    ],
)
def test_variant_has_its_properties_under_every_tie_break(name: str, tie_break: TieBreak) -> None:
    passing(properties(tie_break), present(name))


@pytest.mark.slow
def test_smallest_parts_conform_at_any_width() -> None:
    check_conformance(functools.partial(processes, smallest_range=1))
