"""The performance profile: who solves how many cells within so many times of the best."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from measured import measured, stopped, stored, wrong
from shown import expected, printed

from harness import plot, table
from harness.common.errors import OK, UNMEASURED
from harness.results.canvas import look_of
from harness.results.profile import profile_sheet, required_profile
from harness.results.rows import rows

DESIGN = {"kind": "different_by_design", "reason": "it merges syllables"}
CELLS = [
    *(measured("flat", 1.0, data="tale"), measured("heap", 2.0, data="tale")),
    stopped("naive", 60.0, data="tale"),
    *(measured("flat", 2.0, data="novel"), measured("heap", 1.0, data="novel")),
    measured("naive", 8.0, data="novel"),
    *(measured("flat", 1.0, data="poem"), wrong("heap", data="poem")),
    # only one trainer ran
    measured("flat", 5.0, data="diary"),
]
CASES = {
    "profile": CELLS,
    "profile_of_failures": [
        *CELLS[:2],
        measured("lost", {}, data="tale", status="error", reason="lost"),
        measured("unproved", 0.1, data="tale", identity=None, merges_sha256="cd" * 32),
    ],
    "profile_without_other_merges": [
        *CELLS[:2],
        measured("other", 0.1, data="tale", identity=DESIGN),
        stopped("other", 60.0, data="novel"),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_shares_of_cells_are_those_computed_by_hand(name: str) -> None:
    """Stopped, wrong, failed, unproved and unreached cells are never solved."""
    sheet = profile_sheet(required_profile(rows(CASES[name])))
    assert printed([sheet]) == expected(name)


CONDITIONS = [{"size": 5}, {"vocab_size": 400}, {"pattern": "gpt4"}, {"threads": 2}]
RAW, GREATEST = {"tie_break": "raw_bytes"}, {"tie_break": "greatest_bytes"}
NOVEL = {"data": "novel"}
# a stopped trainer of its own tie-break has not shown which that is
STOPPED = {
    **NOVEL,
    "tie_break": "own",
    "status": "timeout",
    "reason": "late",
    "merges_sha256": None,
}


@pytest.mark.parametrize(
    ("flat", "heap", "cells"),
    [
        (CONDITIONS, CONDITIONS, 4),
        ([RAW], [GREATEST], 1),  # each breaks ties in its own way
        ([GREATEST, NOVEL], [RAW, STOPPED], 2),
        ([RAW, GREATEST], [RAW, GREATEST], 2),
    ],
)
def test_what_makes_a_cell(
    flat: list[dict[str, Any]], heap: list[dict[str, Any]], cells: int
) -> None:
    records = [measured("flat", 1.0, **change) for change in flat]
    records += [measured("heap", 1.0, **change) for change in heap]
    assert required_profile(rows(records)).cells == cells


def test_chart_has_a_step_line_and_a_label_for_each_trainer() -> None:
    figure = plot.draw(CELLS, "profile")
    (axes,) = figure.axes
    lines = {str(line.get_gid()).split(": ")[1]: line for line in axes.lines if line.get_gid()}
    labels = [text.get_text() for text in axes.texts]
    assert labels == [*lines] == ["flat", "heap", "naive"]
    assert [line.get_color() for line in lines.values()] == [look_of(name).colour for name in lines]
    assert list(lines["heap"].get_xdata())[:2] == [1.0, 2.0]  # type: ignore[arg-type]
    assert list(lines["heap"].get_ydata())[:2] == pytest.approx([100 / 3, 200 / 3])  # type: ignore[arg-type]
    assert axes.get_xscale() == "log"

    title, caption, *_ = [text.get_text().replace("\n", " ") for text in figure.texts]
    assert title == "flat is fastest in 2 of 3 cells"
    assert caption.startswith("3 cells of text")


def test_labels_of_lines_that_end_at_one_height_do_not_overlap() -> None:
    records = [measured(f"trainer{number}", 1.0 + number) for number in range(16)]
    figure = plot.draw(records, "profile")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(records)
    for above, below in zip(boxes, boxes[1:], strict=False):
        assert above.y0 > below.y1 - 1
    assert boxes[-1].y0 > figure.bbox.y0


def test_the_table_is_printed_and_its_curve_is_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(stored(tmp_path / "records.jsonl", CELLS[:5]))
    assert table.main([path, "--profile", "--format", "latex"]) == OK
    assert r"heap & 50 \% & 100 \%" in capsys.readouterr().out
    assert table.main([path, "--profile", "--format", "csv"]) == OK
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    heap = [line for line in lines if line[0] == "heap"]
    assert heap == [["heap", "1.0", "0.5"], ["heap", "2.0", "1.0"]]


def test_profile_of_one_trainer_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(stored(tmp_path / "records.jsonl", [CELLS[0]]))
    assert table.main([path, "--profile"]) == UNMEASURED
    assert plot.main([path, "--kind", "profile"]) == UNMEASURED
    refusal = "profile: no cell was measured with two trainers"
    assert capsys.readouterr().err.count(refusal) == 2
