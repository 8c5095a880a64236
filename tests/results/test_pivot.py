"""A pivot shows every row's figure in its place, never two as one, and every outcome that is no figure in its form."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.common.errors import MISMATCH, OK, USAGE, Refusal
from harness.common.sheet import sheet_to_markdown
from harness.records.file import Record
from harness.records.load import read_records
from harness.results.fields import fields_of, figures_of
from harness.results.pivot import pivot, pivot_sheet
from harness.results.rows import Row, rows
from harness.table import main

FORMS, SWEEP = (
    read_records([Path(__file__).parents[1] / "fixtures" / "records" / f"{name}.jsonl"]) for name in ("forms", "sweep")
)
HEAP, NAIVE = (next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive"))
OWT = {**HEAP["data"], "name": "owt", "sha256": "cd" * 32}


def changed(record: Record, **changes: Any) -> Record:
    return {**record, **changes}


def grid(records: Sequence[Record], *named: str, relative_to: str | None = None) -> list[list[str]]:
    """The heading and the lines of a pivot, as Markdown has them."""
    down, across, value = named
    sheet = pivot_sheet(pivot(rows(records), (down, across), value, relative_to))
    return [
        [column.heading for column in sheet.columns],
        *map(list, zip(*(c.cells for c in sheet.columns), strict=True)),
    ]


def test_variants_stand_down_and_corpora_across() -> None:
    records = [NAIVE, HEAP, changed(HEAP, data=OWT)]
    assert grid(records, "variant", "data", "total") == [
        ["variant", "stdlib", "owt"],
        ["naive", "34.3 s", ""],
        ["heap", "2.45 s", "2.45 s"],
    ]


def test_numbers_are_ordered_and_named() -> None:
    records = [changed(HEAP, threads=threads) for threads in (16, 2, 1)]
    assert grid(records, "variant", "threads", "merges/s") == [
        ["variant", "threads 1", "threads 2", "threads 16"],
        ["heap", "483", "483", "483"],
    ]


def test_two_rows_of_one_cell_are_told_apart_by_a_further_column() -> None:
    records = [changed(HEAP, threads=threads, vocab_size=size) for threads in (1, 2) for size in (500, 1000)]
    assert grid(records, "variant", "threads", "total")[:2] == [
        ["variant", "vocab_size", "threads 1", "threads 2"],
        ["heap", "500", "2.45 s", "2.45 s"],
    ]
    pushes = [changed(HEAP, params={"push": push}) for push in ("all", "grown")]
    assert [line[:2] for line in grid(pushes, "variant", "data", "total")] == [
        ["variant", "params.push"],
        ["heap", "all"],
        ["heap", "grown"],
    ]


def test_a_ratio_is_of_the_same_corpus() -> None:
    slow = {**HEAP["seconds"], "update": HEAP["seconds"]["update"] * 3}
    records = [NAIVE, HEAP, changed(HEAP, data=OWT, seconds=slow)]
    table = grid(records, "variant", "data", "update", relative_to="heap")
    assert table == [["variant", "stdlib", "owt"], ["naive", "26.0", ""], ["heap", "1.00", "1.00"]]


def test_a_baseline_is_that_of_the_table_of_times() -> None:
    ratios = {line[0]: line[1] for line in grid(FORMS, "variant", "data", "total", relative_to="heap")}
    assert (ratios["naive"], ratios["heap"], ratios["wrong"], ratios["slow"]) == ("14.0", "1.00", "≠", "timeout")


def test_every_outcome_that_is_no_figure_has_its_form_and_is_explained() -> None:
    laid = pivot(rows(FORMS), ("variant", "data"), "total")
    cells = {line[0]: line[1] for line in grid(FORMS, "variant", "data", "total")[1:]}
    assert cells["wrong"] == "≠"
    assert [cells[name] for name in ("slow", "hungry", "absent", "lonely")] == [
        "timeout",
        "out of memory",
        "skipped",
        "1.72 s?",
    ]
    assert "\n- wrong: wrong merges" in sheet_to_markdown(pivot_sheet(laid))
    over = {"total_seconds": 40_000, "low_seconds": 33_000, "high_seconds": 50_000, "from": "curve", "exponent": None}
    extrapolated = changed(HEAP, status="extrapolated", reason="over limits.wall", seconds={}, extrapolated=over)
    assert grid([NAIVE, extrapolated], "variant", "data", "total")[2] == ["heap", "~11.1 h"]
    assert grid([NAIVE, extrapolated], "variant", "data", "memory")[2] == ["heap", "extrapolated"]


@pytest.mark.parametrize(
    ("named", "value", "told"),
    [
        (("variants", "data"), "total", r"unknown field 'variants'; did you mean variant\? there are: variant, params"),
        (("variant", "corpus"), "total", "unknown field 'corpus'; there are: variant, .*, data, .*, threads|counting"),
        (
            ("variant", "data"),
            "totl",
            r"unknown value 'totl'; did you mean total\? there are: total, spread, .*heap_pops",
        ),
        (("data", "data"), "total", "names data twice"),
    ],
)
def test_what_there_is_not_is_answered_with_what_there_is(named: tuple[str, str], value: str, told: str) -> None:
    with pytest.raises(Refusal, match=told):
        pivot(rows(FORMS), named, value)


VARIED = st.fixed_dictionaries(
    {
        "variant": st.sampled_from(["a", "b", "c"]),
        "threads": st.sampled_from([1, 2, 16]),
        "vocab_size": st.sampled_from([500, 1000]),
        "tie_break": st.sampled_from(["greatest_bytes", "raw_bytes"]),
    }
)
FIELDS = [("variant", "threads"), ("threads", "variant"), ("vocab_size", "tie_break"), ("data", "status")]


@given(st.lists(VARIED, min_size=1, max_size=10), st.sampled_from(FIELDS), st.sampled_from(["total", "memory", "max"]))
@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_row_stands_once_and_where_its_fields_say(
    changes: list[Record], named: tuple[str, str], value: str
) -> None:
    shown = rows([changed(HEAP, **change) for change in changes])
    laid = pivot(shown, named, value)
    assert sorted(laid.places.values()) == list(range(len(shown)))
    fields, figure = fields_of(shown), figures_of(shown)[value]
    for (line, column), place in laid.places.items():
        assert line == tuple(fields[name](shown[place]) for name in laid.down)
        assert column == fields[named[1]](shown[place])
        assert laid.values[place] == figure.value(shown[place])
    cells = list(itertools.chain(*grid_cells(laid.rows, named, value)))
    assert len([cell for cell in cells if cell]) == len(shown)


def grid_cells(shown: Sequence[Row], named: tuple[str, str], value: str) -> list[Sequence[str]]:
    laid = pivot(shown, named, value)
    return [column.cells for column in pivot_sheet(laid).columns[len(laid.down) :]]


def test_the_command_writes_raw_figures_and_outcomes(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl")
    assert main([path, "--pivot", "variant", "data", "--format", "csv"]) == MISMATCH
    lines = {line["variant"]: line for line in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    total = sum(seconds for phase, seconds in HEAP["seconds"].items() if phase != "total" and seconds is not None)
    assert float(lines["heap"]["data=stdlib total"]) == pytest.approx(total)
    assert (lines["wrong"]["data=stdlib total"], lines["wrong"]["data=stdlib status"]) == ("", "mismatch")
    assert lines["slow"]["data=stdlib reason"] == "over limits.wall=20 s"


def test_the_command_on_a_terminal_says_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Path(__file__).parents[1] / "fixtures" / "records" / "sweep.jsonl")
    assert main([path, "--pivot", "variant", "data", "--value", "memory"]) == OK
    assert capsys.readouterr().out.startswith("memory by variant and data\n")
    assert main([path, "--pivot", "variant", "nothing"]) == USAGE
    assert re.fullmatch(r"unknown field 'nothing'.*\n", capsys.readouterr().err)


def test_records_that_differ_only_in_what_is_no_field_are_not_made_one() -> None:
    partial = [changed(HEAP, data={**HEAP["data"], "sha256": None}, params={"x": x}) for x in (1, [1], {"y": 1})]
    assert len(grid(partial, "variant", "data", "total")) == 4
    assert json.dumps(grid(partial, "variant", "data", "total")[1][1]) == '"1"'
