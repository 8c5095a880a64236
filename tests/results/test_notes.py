"""Ratios are of the same work, within blocks; what a table's times do not say is below it, in three
lines.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from measured import changed, measured
from shown import cells, explanations, to_markdown

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
    return [
        measured(variant, {"count": 0.0, "update": wall}, block=block, **others)
        for block, wall in enumerate(seconds)
    ]


def noisy(blocks: int, factor: float = 1.0) -> list[float]:
    """Times of which the machine's mood makes most, and each run's own a little."""
    draw, own = random.Random(blocks), random.Random(factor)
    moods = [1 + draw.random() for _ in range(blocks)]
    return [factor * mood * (1 + 0.004 * (own.random() - 0.5)) for mood in moods]


def test_a_ratio_is_taken_within_blocks_and_has_one_interval() -> None:
    """The machine's moods, of up to twice the time, are in every total and in no ratio."""
    records = timed("one", noisy(10)) + timed("other", noisy(10, 1.07))
    assert [row["ratio"] for row in cells(records)] == ["× 1.00", "× 1.07 (1.07 to 1.07)"]
    assert cells(records, relative_to="one")[1]["total / one"] == "1.07 (1.07 to 1.07)"
    assert explanations(records) == []
    few = timed("one", noisy(3)) + timed("other", noisy(3, 1.07))
    assert cells(few)[1]["ratio"] == "× 1.07"


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


UNKNOWN: dict[str, Any] = {"cpu_wait_seconds": None, "cpu_wait_unknown": "other threads worked"}
EARLIER: dict[str, Any] = {"cpu_wait_seconds": None}


def test_ratio_is_of_what_the_columns_show_and_a_wait_is_named() -> None:
    """A trainer that sleeps a second, and waits another for a CPU."""
    sleepy = timed("sleepy", [2.064] * 6, cpu_seconds=0.01, cpu_wait_seconds=1.0)
    records = [*timed("heap", [0.064] * 6), *sleepy]
    row = cells(records)[1]
    assert (row["total"], row["ratio"], row["update"]) == (
        "1.06 s",
        "× 16.6 (16.6 to 16.6)",
        "1.06 s",
    )
    assert explanations(records) == ["Waited 99 % of its time: sleepy."]
    assert cells(records, columns=["variant", "wall"])[1] == {"variant": "sleepy", "wall": "2.06 s"}


def test_phases_add_up_to_the_median_net_total() -> None:
    """Each run waits in another phase, and as long as it works."""
    records = []
    for block, phase in enumerate(("count", "max", "update")):
        seconds = {"count": 1.0, "max": 1.0, "update": 2.0}
        seconds[phase] += 4.0
        records.append(measured("one", seconds, block=block, cpu_wait_seconds=4.0, cpu_seconds=4.0))
    (row,) = cells(records, columns=["total", "count", "max", "update", "wall"])
    assert list(row.values()) == ["4.00 s", "1.00 s", "1.00 s", "2.00 s", "8.00 s"]


@pytest.mark.parametrize(("cpu", "named"), [(0.96, False), (0.94, True)])
def test_waiting_is_named_from_a_twentieth_on(cpu: float, named: bool) -> None:
    notes = explanations(timed("one", [1.0], cpu_seconds=cpu))
    assert notes == (["Waited 6 % of its time: one."] if named else [])


def test_row_whose_waiting_for_a_processor_is_unknown_says_so() -> None:
    """Of several threads that is expected."""
    records = [*timed("one", [1.0] * 6), *timed("other", [2.0] * 6, **UNKNOWN)]
    assert explanations(records) == ["Wall time, for other threads worked: other."]
    assert cells(records)[1]["ratio"] == "× 2.00 (2.00 to 2.00)"
    assert explanations(timed("one", [1.0], threads=2, **UNKNOWN)) == []


def test_records_of_an_earlier_version_say_what_their_ratios_leave_out() -> None:
    records = [*timed("one", [1.0] * 6, **EARLIER)]
    records += timed("other", [4.0] * 6, cpu_seconds=3.0, **EARLIER)
    assert cells(records)[1]["ratio"] == "× 3.00 (3.00 to 3.00)"
    note = "Ratios are of CPU time, 75 % to 100 % of these totals."
    assert explanations(records) == [note]
    assert explanations([record for record in records if record["block"] == 0]) == []


def test_a_busy_machine_is_named_and_its_wall_times_are_in_no_ratio() -> None:
    busy = {"disturbance": {"psi_cpu_seconds": 0.9}, "witness": {"wall_seconds": 1.0}}
    records = []
    for variant, factor in (("one", 1.0), ("other", 2.0)):
        records += [
            *timed(variant, [factor] * 6, threads=2, **UNKNOWN),
            *timed(variant, [9.0] * 8, threads=2, **UNKNOWN, **busy)[6:],
        ]
    assert cells(records)[1]["ratio"] == "× 2.00 (2.00 to 2.00)"
    busy_runs = "one in 2 of 8 runs; other in 2 of 8 runs"
    assert f"Machine busy, so wall times may be too long: {busy_runs}." in explanations(records)
    worked = [
        explanations(timed("one", [1.0], **{**busy, **EARLIER, "cpu_seconds": cpu}))
        for cpu in (0.9, 0.5)
    ]
    assert [bool(found) for found in worked] == [False, True]


@pytest.mark.parametrize(("loading", "named"), [(2.1, True), (1.9, False), (None, False)])
def test_a_trainer_that_loads_longer_than_it_trains_is_named(
    loading: float | None, named: bool
) -> None:
    record = measured("one", 2.0, witness={"wall_seconds": 2.0, "import_cpu_seconds": loading})
    note = "Loading the module took longer than the total, which excludes it: one 2.10 s."
    assert explanations([record]) == ([note] if named else [])


def test_three_lines_at_most() -> None:
    records = [measured(name, {}, status="error", reason=name) for name in "abcdef"]
    assert explanations(records) == ["a: error: a.", "b: error: b.", "4 more notes: see --notes."]
    same = [measured(name, {}, status="error", reason="one reason") for name in "abcdef"]
    assert explanations(same) == ["a; b; c; d; and 2 more: error: one reason."]


def test_warm_up_and_blocks_that_were_cut_short_are_in_no_figure() -> None:
    warm, cut = timed("one", [9.0], warm_up=True), timed("one", [9.0], block_whole=False)
    (row,) = rows([*warm, *timed("one", [1.0, 1.0]), *cut])
    assert (row.total, row.runs) == (1.0, 2)
    assert (rows(warm), rows(cut)[0].total) == ([], 9.0)
    # what warms up must be right as well
    wrong = timed("one", [9.0], warm_up=True, status="mismatch", reason="differs")
    assert rows(wrong + timed("one", [1.0]))[0].status == "mismatch"


def test_instructions_without_times_have_ratios_of_their_own() -> None:
    def counted(variant: str, count: int) -> Record:
        instructions = {"count": count, "tool": "callgrind", "path": "x86_64"}
        return changed(
            timed(variant, [1.0])[0], seconds={}, instructions=instructions, measure="instructions"
        )

    records = [counted("one", 15_021_976), counted("other", 531_787_678)]
    one, other = cells(records)
    assert list(one) == ["variant", "instructions", "ratio", "proof"]
    assert (one["instructions"], other["instructions"], other["ratio"]) == (
        "15.02 M",
        "531.8 M",
        "× 35.4",
    )


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


def test_a_ratio_of_other_work_is_refused_with_its_reason() -> None:
    records = [
        measured("base", 1.0),
        measured("peer", 3.0),
        measured("other", 1.0, identity=DESIGN),
    ]
    assert [row["ratio"] for row in cells(records)] == ["× 1.00", "× 3.00", "not comparable"]
    text = to_markdown(records, notes=True)
    assert "- Not comparable with base (different by design): other." in text
    assert "it merges syllables; merge 1 is rare" in text
    apart = to_markdown(
        [records[0], measured("peer", 3.0, special_tokens=["<s>"])], relative_to="base"
    )
    own, other = apart.split("special tokens &lt;s", 1)
    assert "| total / base |" in own
    assert "total / base" not in other


def test_the_notes_say_what_each_was_given() -> None:
    fed = {
        "program": "peer 1.0",
        "way_in": "files",
        "pre_tokens": "itself",
        "special_tokens": "none",
        "ties": "first",
    }
    stopped = measured("peer", {}, vocab_size=300, status="timeout", reason="late")
    records = [measured("ours", 1.0), measured("peer", 1.0, feeding=fed, threads=2), stopped]
    text = to_markdown(records, notes=True)
    assert text.count("| peer | peer 1.0 | files | itself | none | first |") == 1
    assert "program" not in to_markdown(records)
    assert "max" not in cells([records[1]])[0]  # it reports no phases
