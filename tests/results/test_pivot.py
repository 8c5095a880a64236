"""A pivot shows every row's figure in its place, never two as one, and says why a cell has no figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.common.errors import Refusal
from harness.records.file import Record, read_records
from harness.results.rows import rows
from harness.results.views import pivot_sheet

FOLDER = Path(__file__).parents[1] / "fixtures" / "records"
FORMS = read_records([FOLDER / "forms.jsonl"])
HEAP, NAIVE = (next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive"))
OWT = {**HEAP["data"], "name": "owt", "sha256": "cd" * 32}
STOPPED = {
    **HEAP,
    "status": "extrapolated",
    "reason": "over limits.wall",
    "seconds": {},
    "extrapolated": {"total_seconds": 40_000, "low_seconds": 33_000, "high_seconds": 50_000},
}


def changed(record: Record, **changes: object) -> Record:
    return {**record, **changes}


def grid(
    records: Sequence[Record], down: str, across: str, value: str, relative_to: str | None = None
) -> list[list[str]]:
    """The heading and the lines of a pivot."""
    columns = pivot_sheet(rows(records), (down, across), value, relative_to).columns
    return [[column.heading for column in columns], *map(list, zip(*(each.cells for each in columns), strict=True))]


SLOW = changed(HEAP, data=OWT, seconds={**HEAP["seconds"], "update": HEAP["seconds"]["update"] * 3})


@pytest.mark.parametrize(
    ("records", "layout", "expected"),
    [
        (
            [NAIVE, HEAP, changed(HEAP, data=OWT)],
            ("variant", "data", "total"),
            [["variant", "stdlib", "owt"], ["naive", "34.3 s", ""], ["heap", "2.45 s", "2.45 s"]],
        ),
        (
            [changed(HEAP, threads=threads) for threads in (16, 2, 1)],
            ("variant", "threads", "merges/s"),
            [["variant", "threads 1", "threads 2", "threads 16"], ["heap", "483", "483", "483"]],
        ),
        (
            [changed(HEAP, threads=threads, vocab_size=size) for threads in (1, 2) for size in (1000, 500)],
            ("variant", "threads", "total"),
            [
                ["variant", "vocab_size", "threads 1", "threads 2"],
                ["heap", "500", "2.45 s", "2.45 s"],
                ["heap", "1,000", "2.45 s", "2.45 s"],
            ],
        ),
        (
            [changed(HEAP, params={"push": push}) for push in ("all", "grown")],
            ("variant", "data", "total"),
            [["variant", "stdlib"], ["heap(push=all)", "2.45 s"], ["heap(push=grown)", "2.45 s"]],
        ),
        (
            [NAIVE, HEAP, SLOW],
            ("variant", "data", "update", "heap"),
            [["variant", "stdlib", "owt"], ["naive", "26.0", ""], ["heap", "1.00", "1.00"]],
        ),
        (
            [NAIVE, STOPPED],
            ("variant", "data", "total"),
            [["variant", "stdlib"], ["naive", "34.3 s"], ["heap", "~11.1 h"]],
        ),
        ([STOPPED], ("variant", "data", "memory"), [["variant", "stdlib"], ["heap", "extrapolated"]]),
    ],
)
def test_rows_are_laid_out_by_two_fields(
    records: list[Record], layout: tuple[str, ...], expected: list[list[str]]
) -> None:
    assert grid(records, *layout) == expected


def test_a_cell_without_a_figure_says_why() -> None:
    cells = {line[0]: line[1] for line in grid(FORMS, "variant", "data", "total")}
    assert [cells[name] for name in ("wrong", "slow", "hungry", "absent", "lonely")] == [
        *("≠", "timeout", "out of memory", "skipped", "1.72 s?"),
    ]
    ratios = {line[0]: line[1] for line in grid(FORMS, "variant", "data", "total", "heap")}
    assert (ratios["naive"], ratios["heap"], ratios["wrong"], ratios["slow"]) == ("14.0", "1.00", "≠", "timeout")
    notes = pivot_sheet(rows(FORMS), ("variant", "data"), "total").notes
    assert any(note.startswith("wrong: wrong merges") for note in notes)


@pytest.mark.parametrize(
    ("named", "value", "text"),
    [
        (("variants", "data"), "total", r"unknown field 'variants'; did you mean variant\? there are: variant, cell"),
        (("variant", "corpus"), "total", "unknown field 'corpus'; .*there are: variant, .*, data, .*, threads"),
        (("variant", "data"), "totl", r"unknown value 'totl'; did you mean total\? there are: total, .*heap_pops"),
        (("data", "data"), "total", "names data twice"),
    ],
)
def test_an_unknown_field_or_figure_is_answered_with_those_there_are(
    named: tuple[str, str], value: str, text: str
) -> None:
    with pytest.raises(Refusal, match=text):
        pivot_sheet(rows(FORMS), named, value)
