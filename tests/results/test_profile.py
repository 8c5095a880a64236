"""The performance profile: who solves how many cells within so many times of the best."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from measured import measured, stopped, stored, wrong

from harness import plot, table
from harness.common.errors import OK, UNMEASURED
from harness.records.file import Record
from harness.results.canvas import look_of
from harness.results.profile import profile_sheet, required_profile
from harness.results.rows import rows

OTHER = {"kind": "different_by_design", "reason": "it merges syllables"}
CELLS = [
    *(measured("flat", 1.0, data="tale"), measured("heap", 2.0, data="tale")),
    stopped("naive", 60.0, data="tale"),
    *(measured("flat", 2.0, data="novel"), measured("heap", 1.0, data="novel")),
    measured("naive", 8.0, data="novel"),
    *(measured("flat", 1.0, data="poem"), wrong("heap", data="poem")),
    # only one trainer ran
    measured("flat", 5.0, data="diary"),
]
SHARES = {
    "flat": ["67 %", "100 %", "100 %", "100 %", "100 %", "100 %"],
    "heap": ["33 %", "67 %", "67 %", "67 %", "67 %", "67 %"],
    "naive": ["0 %", "0 %", "0 %", "33 %", "33 %", "33 %"],
}


def shares(records: list[Record]) -> dict[str, list[str]]:
    names, *columns = profile_sheet(required_profile(rows(records))).columns
    lines = zip(*(column.cells for column in columns), strict=True)
    return dict(zip(names.cells, map(list, lines), strict=True))


def test_share_of_cells_within_so_many_times_of_the_best_is_that_computed_by_hand() -> None:
    """Stopped, wrong and unreached cells are never solved."""
    assert shares(CELLS) == SHARES
    sheet = profile_sheet(required_profile(rows(CELLS)))
    headings = ["fastest", "within 2 ×", "within 5 ×", "within 10 ×", "within 100 ×", "solved"]
    assert [column.heading for column in sheet.columns] == ["trainer", *headings]
    assert (
        sheet.caption[0]
        == "3 cells: a text, vocabulary, pattern and number of threads each; 1 more in which only one trainer ran"
    )


def test_failed_trainer_is_shown_as_never() -> None:
    broken = measured("naive", {}, data="tale", status="error", reason="lost")
    assert shares([*CELLS[:2], broken])["naive"] == ["0 %"] * 6
    unproved = measured("naive", 0.1, data="tale", identity=None, merges_sha256="cd" * 32)
    assert shares([*CELLS[:2], unproved])["naive"] == ["0 %"] * 6


def test_trainer_of_other_merges_is_left_out_and_named() -> None:
    records = [*CELLS, measured("other", 0.1, data="tale", identity=OTHER)]
    assert shares([*records, stopped("other", 60.0, data="novel")]) == SHARES
    notes = profile_sheet(required_profile(rows(records))).notes
    assert "Left out, for it makes other merges on purpose: other." in notes


def test_sizes_vocabularies_patterns_and_threads_are_cells_and_ties_if_a_trainer_has_several() -> (
    None
):
    changes: list[dict[str, Any]] = [
        {"size": 5},
        {"vocab_size": 400},
        {"pattern": "gpt4"},
        {"threads": 2},
    ]
    records = [measured(name, 1.0, **change) for change in changes for name in ("flat", "heap")]
    assert required_profile(rows(records)).cells == 4

    one_each = [measured("flat", 1.0), measured("heap", 1.0, tie_break="raw_bytes")]
    assert required_profile(rows(one_each)).cells == 1
    unfinished = stopped("heap", 60.0, data="novel", tie_break="own")
    texts = [*one_each, measured("flat", 1.0, data="novel"), unfinished]
    assert required_profile(rows(texts)).cells == 2
    both = [measured(name, 1.0, tie_break="raw_bytes") for name in ("flat", "heap")]
    assert required_profile(rows([*both, measured("flat", 1.0), measured("heap", 1.0)])).cells == 2


def test_chart_has_a_step_line_and_a_label_for_each_trainer() -> None:
    figure = plot.draw(CELLS, "profile")
    (axes,) = figure.axes
    lines = {str(line.get_gid()).rpartition(": ")[0]: line for line in axes.lines if line.get_gid()}
    assert {name: to_hex(line.get_color()) for name, line in lines.items()} == {
        f"hover: {name}": look_of(name).colour for name in SHARES
    }
    heap = lines["hover: heap"]
    assert list(heap.get_xdata())[:2] == [1.0, 2.0]  # type: ignore[arg-type]
    assert list(heap.get_ydata())[:2] == pytest.approx([100 / 3, 200 / 3])  # type: ignore[arg-type]
    assert axes.get_xscale() == "log"
    labels = [text.get_text() for text in axes.texts if isinstance(text, Annotation)]
    assert labels == ["flat", "heap", "naive"]
    words = [text.get_text() for text in figure.texts]
    assert words[0].replace("\n", " ") == "flat is fastest in 2 of 3 cells"
    assert "3 cells: " in words[1]
    assert "1 more in which only one trainer ran" in words[1].replace("\n", " ")


def test_labels_of_lines_that_end_at_one_height_do_not_overlap() -> None:
    records = [measured(f"trainer{number}", 1.0 + number) for number in range(16)]
    figure = plot.draw(records, "profile")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 16
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
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [tuple(line.values()) for line in lines if line["trainer"] == "heap"] == [
        ("heap", "1.0", "0.5"),
        ("heap", "2.0", "1.0"),
    ]


@pytest.mark.parametrize("module", [table, plot])
def test_profile_of_one_trainer_is_refused(
    module: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(stored(tmp_path / "records.jsonl", [CELLS[0]]))
    option = ["--profile"] if module is table else ["--kind", "profile"]
    assert module.main([path, *option]) == UNMEASURED  # type: ignore[attr-defined]
    assert "profile: no cell was measured with two trainers" in capsys.readouterr().err
