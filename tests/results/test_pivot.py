"""One figure by two fields: the sheets are those of the files in `expected`."""

from __future__ import annotations

import pytest
from measured import changed
from shown import FORMS, expected, printed

from harness.common.errors import Refusal
from harness.records.file import Record
from harness.results.pivot import pivot_sheet
from harness.results.rows import rows

HEAP, NAIVE = (
    next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive")
)
OWT = {**HEAP["data"], "name": "owt", "sha256": "cd" * 32}
ESTIMATE = {"total_seconds": 40_000, "low_seconds": 33_000, "high_seconds": 50_000}
STOPPED = changed(HEAP, status="extrapolated", reason="limit", seconds={}, extrapolated=ESTIMATE)
SETS: dict[str, list[Record]] = {
    "texts": [NAIVE, HEAP, changed(HEAP, data=OWT)],
    "threads": [changed(HEAP, threads=threads) for threads in (16, 2, 1)],
    "one_more_field": [
        changed(HEAP, threads=threads, vocab_size=size)
        for threads in (1, 2)
        for size in (1000, 500)
    ],
    "parameters": [changed(HEAP, params={"push": push}) for push in ("all", "grown")],
    "an_estimate": [NAIVE, STOPPED],
    "no_memory": [STOPPED],
    "every_outcome": list(FORMS),
}


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("texts", "variant data total"),
        ("threads", "variant threads merges/s"),
        ("one_more_field", "variant threads total"),
        ("parameters", "variant data total"),
        ("an_estimate", "variant data total"),
        ("no_memory", "variant data memory"),
        ("every_outcome", "variant data total"),
    ],
)
def test_rows_are_laid_out_by_two_fields(name: str, layout: str) -> None:
    down, across, value = layout.split()
    sheet = pivot_sheet(rows(SETS[name]), (down, across), value)
    assert printed([sheet]) == expected(f"pivot_{name}")


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            "variants data total",
            r"unknown field 'variants'; did you mean variant\? there are: variant, cell",
        ),
        (
            "variant corpus total",
            "unknown field 'corpus'; .*there are: variant, .*, data, .*, threads",
        ),
        (
            "variant data totl",
            r"unknown value 'totl'; did you mean total\? there are: total, .*heap_pops",
        ),
        ("data data total", "names data twice"),
    ],
)
def test_an_unknown_field_or_figure_is_answered_with_those_there_are(
    layout: str, text: str
) -> None:
    down, across, value = layout.split()
    with pytest.raises(Refusal, match=text):
        pivot_sheet(rows(FORMS), (down, across), value)
