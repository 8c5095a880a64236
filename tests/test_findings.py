"""A table of several blocks says what its times allow, and what they do not, in words below it."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from shown import explanations, to_csv, to_markdown

from harness.common.comparison import FEWEST_BLOCKS
from harness.records.load import read_records
from harness.results.latest import latest
from harness.results.rows import rows

Record = dict[str, Any]
BASE = next(
    record for record in read_records([Path(__file__).parent / "records" / "forms.jsonl"]) if record["status"] == "ok"
)


def timed(variant: str, seconds: Sequence[float], **others: Any) -> list[Record]:
    """A record a block: all of its time is spent in one phase, and its CPU time is its wall time."""
    return [
        {
            **BASE,
            "variant": variant,
            "block": block,
            "seconds": {"count": 0.0, "update": wall, "total": wall},
            "cpu_seconds": wall,
            **others,
        }
        for block, wall in enumerate(seconds)
    ]


def noisy(blocks: int, factor: float = 1.0) -> list[float]:
    """Times of which the machine's mood makes most, and each run's own a little."""
    draw = random.Random(blocks)
    moods = [1 + draw.random() for _ in range(blocks)]
    own = random.Random(factor)
    return [factor * mood * (1 + 0.004 * (own.random() - 0.5)) for mood in moods]


def shown(records: Sequence[Record], **form: Any) -> list[dict[str, str]]:
    """The cells of the Markdown table."""
    lines = [line for line in to_markdown(records, **form).splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("\\>", ">") for cell in line[1:-1].split(" | ")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def notes(records: Sequence[Record], **form: Any) -> str:
    return "\n".join(line for line in to_markdown(records, **form).splitlines() if line.startswith("- "))


def test_a_ratio_is_taken_within_blocks_and_has_an_interval() -> None:
    """The machine's moods, of up to twice the time, are in every total and in no ratio."""
    records = timed("one", noisy(10)) + timed("other", noisy(10, 1.07))
    one, other = shown(records, relative_to="one")
    assert (one["total / one"], one["interval"]) == ("1.00", "-")
    assert other["total / one"] == "1.07"
    assert other["interval"] == "1.07 to 1.07"
    said = "the median over blocks of the ratio of CPU seconds, with its 95 % confidence interval"
    assert said in notes(records, relative_to="one")
    assert "No difference" not in notes(records)


def test_no_difference_is_said_as_such() -> None:
    records = timed("one", noisy(10)) + timed("same", noisy(10, 1.0001))
    _, same = shown(records, relative_to="one")
    assert same["interval"] == "1.00 to 1.00, no difference"
    assert "No difference: one x10 and same x10 (1.00 to 1.00)" in notes(records)


def test_a_ratio_of_few_blocks_has_no_interval_and_the_note_says_how_many_it_takes() -> None:
    records = timed("one", noisy(3)) + timed("other", noisy(3, 1.07))
    _, other = shown(records, relative_to="one")
    assert other["total / one"] == "1.07"
    assert "interval" not in other
    said = notes(records, relative_to="one")
    assert f"repeat={FEWEST_BLOCKS} or more gives an interval" in said
    assert "Times overlap, so their order means nothing yet: one x3 and other x3 (3 blocks)." in said


@pytest.mark.parametrize(("second", "warned"), [(1.05, True), (1.3, False)])
def test_single_runs_close_to_each_other_are_not_ranked(second: float, warned: bool) -> None:
    records = timed("one", [1.0]) + timed("other", [second])
    assert ("One run cannot rank rows within 10 % of each other: one and other." in notes(records)) is warned


def test_only_rows_that_did_the_same_are_ranked() -> None:
    elsewhere = {**BASE["data"], "sha256": "00" * 32, "name": "elsewhere"}
    assert "rank" not in notes(timed("one", [1.0]) + timed("other", [1.01], data=elsewhere))


def test_spread_and_cpu_time_stand_beside_the_total_and_every_run_when_asked() -> None:
    records = timed("one", [1.0, 1.5, 1.2])
    (row,) = shown(records, every_run=True)
    assert (row["total"], row["spread"], row["CPU"], row["runs"]) == ("1.200", "42 %", "1.200", "1.000/1.500/1.200")
    assert "Totals spread by over 20 % of their median: one x3 42 %." in notes(records)
    (single,) = shown(timed("one", [1.0]))
    assert {"spread", "CPU", "runs"} & single.keys() == set()


@pytest.mark.parametrize(("early", "named"), [(2.1, True), (1.9, False), (None, False)])
def test_a_trainer_that_works_more_before_its_call_than_in_it_is_named(early: float | None, named: bool) -> None:
    said = notes(timed("one", [2.0], witness={"wall_seconds": 2.0, "import_cpu_seconds": early}))
    told = "Loading its module took more CPU time than the total, which does not include it: one 2.1 s."
    assert (told in said) is named


def test_wall_times_under_pressure_are_left_out_and_named() -> None:
    busy = {"disturbance": {"psi_cpu_seconds": 0.9, "steal_seconds": 0.1}, "witness": {"wall_seconds": 1.0}}
    records = [
        record
        for variant, factor in (("one", 1.0), ("other", 2.0))
        for calm, disturbed in [
            (timed(variant, [factor] * 6, threads=2), timed(variant, [9.0] * 8, threads=2, **busy)[6:])
        ]
        for record in calm + disturbed
    ]
    _, other = shown(records, relative_to="one")
    assert (other["total / one"], other["interval"]) == ("2.00", "2.00 to 2.00")
    said = notes(records, relative_to="one")
    assert "ratio of wall seconds" in said
    assert "too busy for wall times: other x8: 2 of 8." in said
    assert "Something waited for a processor for over 20 % of the time" in said
    assert "one x8 in 2 of 8 runs; other x8 in 2 of 8 runs" in said
    assert "Other virtual machines took over 5 % of the time: one x8 in 2 of 8 runs" in said


def test_warm_up_is_in_no_figure_but_wrong_merges_in_it_count() -> None:
    warm = timed("one", [9.0], warm_up=True)
    assert shown(warm + timed("one", [1.0, 1.0]))[0]["total"] == "1.000"
    assert rows(warm) == []
    wrong = timed("one", [9.0], warm_up=True, status="mismatch", proof={"state": "mismatch", "by": ["heap"]})
    assert rows(wrong + timed("one", [1.0]))[0].status == "mismatch"


def test_blocks_that_were_cut_short_are_left_out_where_there_are_whole_ones() -> None:
    cut = timed("one", [9.0], block_whole=False)
    (row,) = rows(timed("one", [1.0, 1.0]) + cut)
    assert (row.total, row.runs) == (1.0, 2)
    assert "Some records were left out (of a block that was cut short): one x2." in notes(
        timed("one", [1.0, 1.0]) + cut
    )
    (alone,) = rows(cut)
    assert alone.total == 9.0


def extrapolated(**others: Any) -> Record:
    expected = {"total_seconds": 40_700.0, "low_seconds": 33_100.0, "high_seconds": 48_900.0, "exponent": 1.981}
    return {
        **timed("slow", [1.0])[0],
        "status": "extrapolated",
        "reason": "over limits.wall=20 s",
        "merges": None,
        "merges_done": 311,
        "seconds": {"update": 20.0, "total": None},
        "extrapolated": {**expected, "merges_done": 311, "from": "slices"},
        **others,
    }


def test_an_extrapolated_row_shows_what_it_would_take_at_least_and_never_a_time() -> None:
    records = [*timed("one", [10.0]), extrapolated()]
    _, slow = shown(records, relative_to="one")
    assert (slow["total"], slow["total / one"], slow["update"], slow["proof"]) == (
        ">9.1 h",
        ">3,310",
        "-",
        "extrapolated",
    )
    assert (
        "slow: extrapolated: over limits.wall=20 s, after 311 of 743 merges; all would take 11.3 h"
        " (9.2 h to 13.6 h; over sizes, exponent 1.98); its merges so far are right."
    ) in explanations(records)
    vague = {**extrapolated()["extrapolated"], "high_seconds": 4e11}
    assert (
        "slow: extrapolated: over limits.wall=20 s, after 311 of 743 merges; all would take over 9.2 h; "
        "how much longer is unknown; its merges so far are right."
    ) in explanations([extrapolated(extrapolated=vague)])
    unproved = explanations([extrapolated(proof={"state": "unconfirmed", "by": []}, extrapolated=None)])
    assert "slow: extrapolated: over limits.wall=20 s, after 311 of 743 merges." in unproved


def test_instructions_stand_without_times_and_have_ratios_of_their_own() -> None:
    def counted(variant: str, count: int) -> Record:
        instructions = {"count": count, "tool": "callgrind of valgrind-3.19.0", "path": "x86_64"}
        return {**timed(variant, [1.0])[0], "seconds": {}, "instructions": instructions, "measure": "instructions"}

    records = [counted("one", 15_021_976), counted("other", 531_787_678)]
    one, other = shown(records, relative_to="one")
    assert list(one) == ["variant", "instructions", "instructions / one", "proof"]
    assert (one["instructions"], other["instructions"], other["instructions / one"]) == ("15.02 M", "531.8 M", "35.4")
    assert "instructions: those of the trainer's call alone, by callgrind of valgrind-3.19.0 on x86_64." in notes(
        records
    )
    together: Any = latest(
        [*timed("one", [1.0], started="2026-01-01"), {**records[0], "run_id": "later", "started": "2026-01-02"}]
    )
    (row,) = shown(together)
    assert (row["total"], row["instructions"], row["variant"]) == ("1.000", "15.02 M", "one")


def test_csv_holds_both_clocks_and_the_interval() -> None:
    records = timed("one", noisy(10)) + timed("other", noisy(10, 1.07))
    lines: list[Mapping[str, str]] = list(csv.DictReader(io.StringIO(to_csv(records, relative_to="one"))))
    assert lines[0]["paired_ratio"] == ""
    assert float(lines[1]["paired_low"]) <= float(lines[1]["paired_ratio"]) <= float(lines[1]["paired_high"])
    assert float(lines[1]["paired_ratio"]) == pytest.approx(1.07, rel=0.01)
    assert lines[1]["paired_clock"] == "CPU"
    assert float(lines[1]["least_total_seconds"]) <= float(lines[1]["total_seconds"])
    assert float(lines[1]["cpu_seconds"]) == pytest.approx(float(lines[1]["total_seconds"]))


def test_a_table_of_instructions_says_nothing_of_times_that_were_not_taken() -> None:
    record = {**timed("one", [1.0])[0], "seconds": {"count": None, "total": None}, "cpu_seconds": None}
    counted = {**record, "instructions": {"count": 5, "tool": "callgrind", "path": "x86_64"}, "measure": "instructions"}
    assert explanations([counted]) == ["instructions: those of the trainer's call alone, by callgrind on x86_64."]


def test_of_many_rows_that_are_told_of_alike_only_some_are_named() -> None:
    busy = {"disturbance": {"psi_cpu_seconds": 0.9}, "witness": {"wall_seconds": 1.0}, "cpu_seconds": 0.5}
    names = [f"each{number}" for number in range(20)]
    pressed = [record for name in names for record in timed(name, [1.0], **busy)]
    told = next(note for note in explanations(pressed) if note.startswith("Something waited"))
    assert told.endswith("all runs of all 20 rows.")
    told = next(note for note in explanations([*pressed, *timed("calm", [1.0])]) if note.startswith("Something waited"))
    assert told.endswith("each7 in 1 of 1 runs; and 12 more.")


def test_a_thread_that_worked_all_the_time_was_not_what_waited() -> None:
    busy = {"disturbance": {"psi_cpu_seconds": 0.9}, "witness": {"wall_seconds": 1.0}}
    told = [explanations(timed("one", [1.0], **busy, cpu_seconds=cpu)) for cpu in (0.9, 0.5)]
    assert [any("waited for a processor" in note for note in notes) for notes in told] == [False, True]
