"""Pictures say what the records say: their text and the lengths of their bars are read back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from harness.errors import MISMATCH, OK, UNMEASURED, USAGE, Refusal
from harness.plot import COLOURS, draw, main, save
from harness.record import read_records
from harness.rows import PHASES, rows

RECORDS = Path(__file__).parent / "records"
FORMS, REPEATS, COUNTING, SWEEP = (
    read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")
)
ALIKE = SWEEP[1:5]
"""Records whose totals lie within a factor of four."""

Record = dict[str, Any]


def svg_texts(records: list[Record], folder: Path, **options: Any) -> list[str]:
    path = folder / "picture.svg"
    save(draw(records, **options), path)
    return [text for element in ElementTree.parse(path).iter() if (text := (element.text or "").strip())]


def bars(figure: Figure) -> list[Rectangle]:
    """The bars' parts, row by row, in the order in which they were stacked."""
    return [patch for patch in figure.axes[-1].patches if isinstance(patch, Rectangle)]


def test_the_picture_names_every_row_and_writes_its_total(tmp_path: Path) -> None:
    texts = svg_texts(ALIKE, tmp_path)
    assert [text for text in texts if text.endswith(" s")] == ["11.054 s", "10.591 s", "10.384 s", "2.775 s"]
    assert [text for text in texts if text in {row["variant"] for row in ALIKE}] == [row["variant"] for row in ALIKE]
    assert {"7.900", "1.620", "7.700", "1.650", "7.800", "1.020", "1.200"} <= set(texts)
    assert "seconds" in texts


def test_the_title_says_what_was_measured_on_what_and_when(tmp_path: Path) -> None:
    texts = svg_texts(ALIKE, tmp_path)
    assert "BPE training: seconds by phase" in texts
    assert "stdlib: 3,999,812 bytes, 171 documents, 1,150,342 pre-tokens, 41,234 words" in texts
    assert "counting serial, 1 thread, CPython 3.11.7, AMD EPYC 7B13 (2 cores), 2026-11-21" in texts
    assert "My own" in svg_texts(ALIKE, tmp_path, title="My own")


def test_bars_are_as_long_as_the_phases_were() -> None:
    drawn = iter(bars(draw(ALIKE)))
    for row in rows(ALIKE):
        start = 0.0
        for phase in (phase for phase in PHASES if phase in row.seconds):
            bar = next(drawn)
            assert [bar.get_x(), bar.get_width()] == pytest.approx([start, row.seconds[phase]])
            assert to_hex(bar.get_facecolor()) == COLOURS[phase].lower()
            start += row.seconds[phase]
    assert next(drawn, None) is None


def test_a_wide_spread_puts_totals_on_a_log_axis_beside_shares(tmp_path: Path) -> None:
    figure = draw(SWEEP)
    totals, shares = figure.axes
    assert totals.get_xscale() == "log"
    points = np.asarray(totals.collections[0].get_offsets())
    measured = [row for row in rows(SWEEP) if row.total is not None]
    assert points[:, 0].tolist() == pytest.approx([row.total for row in measured])
    assert sum(bar.get_width() for bar in bars(figure)) == pytest.approx(len(measured))
    assert shares.get_xlim() == (0, 1)
    texts = svg_texts(SWEEP, tmp_path)
    assert {"34.334 s", "0.965 s", "1.464 s?", "0%", "100%", "total, seconds (log scale)"} <= set(texts)
    assert "? no variant of another family has confirmed the merges of: peer_rustbpe." in texts


@pytest.mark.parametrize(("records", "log", "panels"), [(ALIKE, False, 1), (ALIKE, True, 2), (SWEEP, False, 2)])
def test_the_log_axis_is_for_wide_spreads_or_on_demand(records: list[Record], log: bool, panels: int) -> None:
    assert len(draw(records, log=log).axes) == panels


def test_what_has_no_time_stands_by_name_with_its_status_instead_of_a_bar(tmp_path: Path) -> None:
    texts = svg_texts(FORMS, tmp_path)
    assert {
        "≠ @merge 12: got 'a'+'b', want 'a'+'c'",
        r"≠ @merge 700: got no merge, want ' \xff|'+'*'",
        "timeout: over limits.wall=20 s, after 311 of 743 merges",
        "out of memory: over limits.memory=2 GB",
        "killed: signal 9, after 120 of 743 merges",
        "rejected: the worker's clock says 1.2 s, the parent's 3.4 s",
        "skipped: needs Python 3.14",
    } <= set(texts)
    assert {record["variant"] for record in FORMS} <= set(texts)
    assert [text for text in texts if re.fullmatch(r"[\d.]+ s\??", text)] == ["34.335 s", "2.454 s", "1.720 s?"]


def test_nothing_but_failures_is_still_a_picture(tmp_path: Path) -> None:
    assert "skipped: needs Python 3.14" in svg_texts([FORMS[-1]], tmp_path)


def test_marks_of_repeats_and_reused_counts_are_explained(tmp_path: Path) -> None:
    texts = svg_texts(REPEATS, tmp_path)
    assert "2.704 s*" in texts
    assert "* reading and counting were measured in an earlier run; its word counts were reused." in texts
    assert any(text.startswith("xN: each figure is the median of N records") for text in texts)


def test_counting_alone_is_drawn_by_counter(tmp_path: Path) -> None:
    texts = svg_texts(COUNTING, tmp_path)
    assert {"Counting words: seconds by phase", "serial, threads 1", "2.000 s", "error: worker 2 died"} <= set(texts)


def test_equal_records_give_equal_bytes_without_a_date(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg", "one.png", "two.png"):
        save(draw(SWEEP), tmp_path / name)
    svg = (tmp_path / "one.svg").read_bytes()
    assert svg == (tmp_path / "two.svg").read_bytes()
    assert b"<dc:date>" not in svg
    assert b"Matplotlib v" not in svg
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.png", "two.svg"]


def test_names_in_any_script_and_with_dollars_are_text(tmp_path: Path) -> None:
    """Warnings are errors here: a glyph that matplotlib's font lacks must not raise one."""
    corpus = {**ALIKE[0]["data"], "name": "价格 $5_x$.txt"}
    texts = svg_texts([{**record, "data": corpus} for record in ALIKE], tmp_path)
    assert any(text.startswith("价格 $5_x$.txt: 3,999,812 bytes") for text in texts)
    save(draw([{**record, "data": corpus} for record in ALIKE]), tmp_path / "picture.png")


def test_a_picture_stands_on_a_light_card(tmp_path: Path) -> None:
    """So that its dark text is legible on GitHub's dark page as well."""
    assert to_hex(draw(ALIKE).get_facecolor()) == "#ffffff"
    save(draw(ALIKE), tmp_path / "picture.svg")
    elements = ElementTree.parse(tmp_path / "picture.svg").iter()
    card = next(element for element in elements if element.get("id") == "patch_1")
    assert "fill: #ffffff" in (card[0].get("style") or "")


@pytest.mark.parametrize(("name", "code"), [("forms", MISMATCH), ("sweep", OK)])
def test_the_command_says_where_it_wrote(
    name: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "new folder" / "phases.png"
    assert main([str(RECORDS / f"{name}.jsonl"), "--output", str(picture), "--log"]) == code
    assert capsys.readouterr().out == f"wrote {picture}\n"
    assert picture.stat().st_size > 10_000


def test_the_command_shows_the_latest_runs_unless_all_are_asked_for(tmp_path: Path) -> None:
    picture = tmp_path / "phases.svg"
    main([str(RECORDS / "repeats.jsonl"), "--output", str(picture)])
    assert "heap(push=all) x3" in picture.read_text(encoding="utf-8")
    main([str(RECORDS / "repeats.jsonl"), "--output", str(picture), "--all"])
    assert "heap(push=all) x4" in picture.read_text(encoding="utf-8")


def test_the_default_output_lies_beside_the_records(tmp_path: Path) -> None:
    results = tmp_path / "results" / "local"
    results.mkdir(parents=True)
    (results / "records.jsonl").write_bytes((RECORDS / "sweep.jsonl").read_bytes())
    root = Path(__file__).parent.parent
    line = [sys.executable, "-W", "error", "-m", "harness.plot"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ended = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (OK, "wrote results/local/phases.svg\n", "")
    assert (results / "phases.svg").exists()


def test_bad_requests_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = str(RECORDS / "sweep.jsonl")
    assert main([records, "--output", str(tmp_path / "phases.pdf")]) == USAGE
    assert capsys.readouterr().err.endswith("phases.pdf; name a file that ends in .svg or .png\n")
    (tmp_path / "file").touch()
    assert main([records, "--output", str(tmp_path / "file" / "phases.svg")]) == USAGE
    assert capsys.readouterr().err.endswith("choose another place with --output\n")
    (tmp_path / "records.jsonl").touch()
    assert main([str(tmp_path)]) == UNMEASURED
    assert "python -m harness makes some" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_picture_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "phases.svg" / "in the way").mkdir(parents=True)
    with pytest.raises(Refusal, match="cannot write"):
        save(draw(ALIKE), tmp_path / "phases.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["phases.svg"]
