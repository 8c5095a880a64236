"""A pivot shows every row's figure in its place, never two as one, and says why a cell has no figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.common.errors import Refusal
from harness.records.file import Record, read_records
from harness.results.rows import rows
from harness.results.views import pivot_sheet

FORMS = read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])
HEAP, NAIVE = (next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive"))
OWT = {**HEAP["data"], "name": "owt", "sha256": "cd" * 32}
ESTIMATE = {"total_seconds": 40_000, "low_seconds": 33_000, "high_seconds": 50_000}
STOPPED = {**HEAP, "status": "extrapolated", "reason": "limit", "seconds": {}, "extrapolated": ESTIMATE}


def changed(record: Record, **changes: object) -> Record:
    return {**record, **changes}


def lines(records: Sequence[Record], layout: str) -> list[str]:
    """The heading and the lines of a pivot: down, across, value and baseline in one string."""
    down, across, value, *relative_to = layout.split()
    columns = pivot_sheet(rows(records), (down, across), value, *relative_to).columns
    table = [[column.heading for column in columns], *zip(*(each.cells for each in columns), strict=True)]
    return [" | ".join(line) for line in table]


SLOW = changed(HEAP, data=OWT, seconds={**HEAP["seconds"], "update": HEAP["seconds"]["update"] * 3})


@pytest.mark.parametrize(
    ("records", "layout", "expected"),
    [
        (
            [NAIVE, HEAP, changed(HEAP, data=OWT)],
            "variant data total",
            ["variant | stdlib | owt", "naive | 34.3 s | ", "heap | 2.45 s | 2.45 s"],
        ),
        (
            [changed(HEAP, threads=threads) for threads in (16, 2, 1)],
            "variant threads merges/s",
            ["variant | threads 1 | threads 2 | threads 16", "heap | 483 | 483 | 483"],
        ),
        (
            [changed(HEAP, threads=threads, vocab_size=size) for threads in (1, 2) for size in (1000, 500)],
            "variant threads total",
            [
                "variant | vocab_size | threads 1 | threads 2",
                "heap | 500 | 2.45 s | 2.45 s",
                "heap | 1,000 | 2.45 s | 2.45 s",
            ],
        ),
        (
            [changed(HEAP, params={"push": push}) for push in ("all", "grown")],
            "variant data total",
            ["variant | stdlib", "heap(push=all) | 2.45 s", "heap(push=grown) | 2.45 s"],
        ),
        (
            [NAIVE, HEAP, SLOW],
            "variant data update heap",
            ["variant | stdlib | owt", "naive | 26.0 | ", "heap | 1.00 | 1.00"],
        ),
        ([NAIVE, STOPPED], "variant data total", ["variant | stdlib", "naive | 34.3 s", "heap | ~11.1 h"]),
        ([STOPPED], "variant data memory", ["variant | stdlib", "heap | extrapolated"]),
    ],
)
def test_rows_are_laid_out_by_two_fields(records: list[Record], layout: str, expected: list[str]) -> None:
    assert lines(records, layout) == expected


def test_a_cell_without_a_figure_says_why() -> None:
    reasons = {"wrong | ≠", "slow | timeout", "hungry | out of memory", "absent | skipped"}
    assert {*lines(FORMS, "variant data total")} >= {*reasons, "lonely | 1.72 s?"}
    assert {*lines(FORMS, "variant data total heap")} >= {*reasons, "naive | 14.0", "heap | 1.00"}
    notes = pivot_sheet(rows(FORMS), ("variant", "data"), "total").notes
    assert any(note.startswith("wrong: wrong merges") for note in notes)


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("variants data total", r"unknown field 'variants'; did you mean variant\? there are: variant, cell"),
        ("variant corpus total", "unknown field 'corpus'; .*there are: variant, .*, data, .*, threads"),
        ("variant data totl", r"unknown value 'totl'; did you mean total\? there are: total, .*heap_pops"),
        ("data data total", "names data twice"),
    ],
)
def test_an_unknown_field_or_figure_is_answered_with_those_there_are(layout: str, text: str) -> None:
    with pytest.raises(Refusal, match=text):
        lines(FORMS, layout)
