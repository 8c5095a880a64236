"""Ratios are of the same work, within blocks; what a table's times do not say is below it, in three
lines.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from measured import changed, measured
from shown import expected, explanations, table_text

from harness.records.file import Record
from harness.results.ratios import incomparable
from harness.results.rows import rows

DESIGN = {
    "kind": "different_by_design",
    "tie_break": None,
    "reason": "it merges syllables; merge 1 is rare",
}


def timed(variant: str, seconds: Sequence[float], **others: Any) -> list[Record]:
    """A record for each block, whose CPU time is its wall time."""
    records = []
    for block, wall in enumerate(seconds):
        records.append(measured(variant, {"count": 0.0, "update": wall}, block=block, **others))
    return records


def noisy(blocks: int, factor: float = 1.0) -> list[float]:
    """Times of which the machine's mood makes most, and each run's own a little."""
    draw, own = random.Random(blocks), random.Random(factor)
    moods = [1 + draw.random() for _ in range(blocks)]
    return [factor * mood * (1 + 0.004 * (own.random() - 0.5)) for mood in moods]


def counted(variant: str, count: int) -> Record:
    instructions = {"count": count, "tool": "callgrind", "path": "x86_64"}
    only = {"seconds": {}, "instructions": instructions, "measure": "instructions"}
    return changed(measured(variant, 1.0), **only)


UNKNOWN: dict[str, Any] = {"cpu_wait_seconds": None, "cpu_wait_unknown": "other threads worked"}
EARLIER: dict[str, Any] = {"cpu_wait_seconds": None}
BUSY = {"disturbance": {"psi_cpu_seconds": 0.9}, "witness": {"wall_seconds": 1.0}}
FED = {
    "program": "peer 1.0",
    "way_in": "files",
    "pre_tokens": "itself",
    "special_tokens": "none",
    "ties": "first",
}
WALL_TIMED = [
    *timed("one", [1.0] * 6, threads=2, **UNKNOWN),
    *timed("one", [9.0] * 8, threads=2, **UNKNOWN, **BUSY)[6:],
    *timed("other", [*[2.0] * 6, 9.0, 9.0], threads=2, **UNKNOWN),
]
BASE, PEER = measured("base", 1.0), measured("peer", 3.0)
PHASES = ["total", "count", "max", "update", "wall"]
CASES: dict[str, tuple[list[Record], dict[str, Any]]] = {
    # the machine's moods, of up to twice the time, are in every total and in no ratio
    "ratio_within_blocks": (
        timed("one", noisy(10)) + timed("other", noisy(10, 1.07)),
        {"relative_to": "one"},
    ),
    "ratio_of_few_blocks": (timed("one", noisy(3)) + timed("other", noisy(3, 1.07)), {}),
    # it sleeps a second, and waits another for a CPU
    "waited": (
        timed("heap", [0.064] * 6)
        + timed("sleepy", [2.064] * 6, cpu_seconds=0.01, cpu_wait_seconds=1.0),
        {"columns": ["variant", "total", "ratio", "update", "wall"]},
    ),
    # each run waits in another phase, and as long as it works
    "phases_of_net_time": (
        [
            measured(
                "one",
                {**dict.fromkeys(PHASES[1:3], 1.0), "update": 2.0, phase: seconds},
                block=block,
                cpu_wait_seconds=4.0,
                cpu_seconds=4.0,
            )
            for block, (phase, seconds) in enumerate(
                {"count": 5.0, "max": 5.0, "update": 6.0}.items()
            )
        ],
        {"columns": PHASES},
    ),
    "wait_unknown": (timed("one", [1.0] * 6) + timed("other", [2.0] * 6, **UNKNOWN), {}),
    "earlier_version": (
        timed("one", [1.0] * 6, **EARLIER) + timed("other", [4.0] * 6, cpu_seconds=3.0, **EARLIER),
        {},
    ),
    "busy_machine": (WALL_TIMED, {}),
    "three_lines": (
        [measured(name, {}, status="error", reason=name) for name in "abcdef"],
        {},
    ),
    "one_reason": ([measured(name, {}, status="error", reason="lost") for name in "abcdef"], {}),
    "instructions": ([counted("one", 15_021_976), counted("other", 531_787_678)], {}),
    "other_work": ([BASE, PEER, measured("other", 1.0, identity=DESIGN)], {"notes": True}),
    "other_tables_without_the_baseline": (
        [BASE, changed(PEER, special_tokens=["<s>"])],
        {"relative_to": "base"},
    ),
    "given": (
        [
            measured("ours", 1.0),
            changed(PEER, feeding=FED, threads=2),
            measured("peer", {}, vocab_size=300, status="timeout", reason="late"),
        ],
        {"notes": True},
    ),
    "reports_no_phases": ([changed(PEER, feeding=FED)], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_table_with_its_ratios_and_notes_is_the_one_in_its_file(name: str) -> None:
    records, options = CASES[name]
    assert table_text(records, **options) == expected(name)


@pytest.mark.parametrize(
    ("first", "second", "others", "close"),
    [
        (noisy(10), noisy(10, 1.0001), {}, True),
        (noisy(3), noisy(3, 1.07), {}, True),
        ([1.0], [1.05], {}, True),
        ([1.0], [1.3], {}, False),
        ([1.0], [1.01], {"data": "elsewhere"}, False),
        ([1.0], [1.01], {"identity": DESIGN}, False),
    ],
)
def test_rows_of_one_task_that_cannot_be_ranked_are_named(
    first: list[float], second: list[float], others: dict[str, Any], close: bool
) -> None:
    notes = explanations(timed("one", first) + timed("other", second, **others))
    assert notes == (["Too close to rank: one and other."] if close else [])


LOADING = "Loading the module took longer than the total, which excludes it: one 2.10 s."
WORKED = {**BUSY, **EARLIER}


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"cpu_seconds": 1.92}, None),
        ({"cpu_seconds": 1.88}, "Waited 6 % of its time: one."),
        ({"witness": {"wall_seconds": 2.0, "import_cpu_seconds": 2.1}}, LOADING),
        ({"witness": {"wall_seconds": 2.0, "import_cpu_seconds": 1.9}}, None),
        ({"threads": 2, **UNKNOWN}, None),  # of several threads that is expected
        ({**WORKED, "cpu_seconds": 1.8}, None),
        (
            {**WORKED, "cpu_seconds": 1.0},
            "Machine busy, so wall times may be too long: one in 1 of 1 runs.",
        ),
        (EARLIER, None),
    ],
    ids=str,
)
def test_what_changes_a_conclusion_is_named_from_its_limit_on(
    changes: dict[str, Any], note: str | None
) -> None:
    assert explanations([measured("one", 2.0, **changes)]) == ([note] if note else [])


def test_warm_up_and_blocks_that_were_cut_short_are_in_no_figure() -> None:
    warm, cut = timed("one", [9.0], warm_up=True), timed("one", [9.0], block_whole=False)
    (row,) = rows([*warm, *timed("one", [1.0, 1.0]), *cut])
    assert (row.total, row.runs) == (1.0, 2)
    assert (rows(warm), rows(cut)[0].total) == ([], 9.0)
    # what warms up must be right as well
    wrong = timed("one", [9.0], warm_up=True, status="mismatch", reason="differs")
    assert rows(wrong + timed("one", [1.0]))[0].status == "mismatch"


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"tie_break": "raw_bytes"}, None),
        ({"threads": 2}, None),
        ({"merges": 40}, "40 merges, not 744"),
    ],
)
def test_only_the_same_work_is_compared(others: dict[str, Any], why: str | None) -> None:
    ours, theirs, ended = rows(
        [measured("a", 1.0, **others), measured("b", 1.0), measured("c", 1.0, merges=41)]
    )
    assert incomparable(ours, theirs) == why
    assert why is None or incomparable(ours, ended) is None  # both came to the end of all pairs
