"""What pictures say in words, what they look like in the light and in the dark, and the command that draws them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drawn import Drawing
from matplotlib.colors import to_hex
from measured import measured
from workbench import first_fast

from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE, Refusal
from harness.plot import draw, main
from harness.records.load import read_records
from harness.results.charts.chart import Request
from harness.results.charts.files import save
from harness.results.colours import DARK, PHASES, dark_of

RECORDS = Path(__file__).parent / "records"
FORMS, REPEATS, COUNTING, SWEEP = (
    read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")
)
ALIKE = SWEEP[1:5]
"""Records whose totals lie within a factor of four."""

Record = dict[str, Any]


def svg_texts(records: list[Record], folder: Path, **options: Any) -> list[str]:
    path = folder / "picture.svg"
    save(draw(records, request=Request(**options)), path)
    return Drawing(path).texts


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


def test_a_phase_has_its_colour() -> None:
    for patch in draw(ALIKE).axes[-1].patches:
        phase = (patch.get_gid() or "").rpartition("-")[2]
        assert to_hex(patch.get_facecolor()) == PHASES[phase].light


def test_a_wide_spread_puts_totals_on_a_log_axis_beside_shares(tmp_path: Path) -> None:
    figure = draw(SWEEP)
    totals, shares = figure.axes
    assert totals.get_xscale() == "log"
    assert shares.get_xlim() == (0, 1)
    texts = svg_texts(SWEEP, tmp_path)
    assert {"34.334 s", "0.965 s", "1.464 s?", "0%", "100%", "total, seconds (log scale)"} <= set(texts)
    assert "? not proved: peer_rustbpe." in texts


@pytest.mark.parametrize(("records", "log", "panels"), [(ALIKE, False, 1), (ALIKE, True, 2), (SWEEP, False, 2)])
def test_the_log_axis_is_for_wide_spreads_or_on_demand(records: list[Record], log: bool, panels: int) -> None:
    assert len(draw(records, request=Request(log=log)).axes) == panels


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


def test_marks_of_repeats_are_explained(tmp_path: Path) -> None:
    texts = svg_texts(REPEATS, tmp_path)
    assert "2.704 s" in texts
    assert any(text.startswith("xN: each figure is the median of N records") for text in texts)


def test_how_most_rows_were_counted_is_said_once(tmp_path: Path) -> None:
    records = [{**SWEEP[0], "variant": name, "counting": "serial"} for name in ("a", "b")]
    texts = svg_texts([*records, {**SWEEP[0], "variant": "c", "counting": "processes"}], tmp_path)
    assert {"a", "b", "c, counting processes", "counting serial unless a row says otherwise"} <= set(texts)


def test_counting_alone_is_drawn_by_counter(tmp_path: Path) -> None:
    texts = svg_texts(COUNTING, tmp_path)
    assert {"Counting words: seconds by phase", "serial, threads 1", "2.000 s", "error: worker 2 died"} <= set(texts)


def test_equal_records_give_equal_bytes_without_a_date(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg", "one.png", "two.png"):
        save(draw(SWEEP[:3]), tmp_path / name)
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


def test_a_picture_follows_what_its_reader_prefers(tmp_path: Path) -> None:
    """Light for a program that knows no style sheets, dark by a style sheet that maps every colour that is drawn."""
    save(draw(ALIKE), tmp_path / "picture.svg")
    picture = (tmp_path / "picture.svg").read_text()
    sheet = re.search(r"@media \(prefers-color-scheme: dark\) \{\n(.*?)\n\}", picture, re.DOTALL)
    assert sheet
    assert '[style*="fill: #ffffff"]{fill:#0d1117 !important}' in sheet[1]
    drawn = set(re.findall(r'style="[^"]*(?:fill|stroke): (#[0-9a-f]{6})', picture))
    mapped = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", sheet[1]))
    assert drawn - mapped <= {"#111418", "#fefefe"}  # text in a bar, whose colour is nearly the same in both
    assert set(dark_of()) & drawn <= mapped


def test_a_theme_can_be_settled(tmp_path: Path) -> None:
    assert main([str(RECORDS / "sweep.jsonl"), "--theme", "dark", "--output", str(tmp_path / "dark.svg")]) == OK
    assert main([str(RECORDS / "sweep.jsonl"), "--theme", "light", "--output", str(tmp_path / "light.svg")]) == OK
    assert 'fill: #0d1117"' in (tmp_path / "dark.svg").read_text()
    assert "@media" not in (tmp_path / "light.svg").read_text() + (tmp_path / "dark.svg").read_text()
    assert to_hex(draw(ALIKE, request=Request(DARK)).get_facecolor()) == "#0d1117"


def test_small_numbers_in_words_are_not_cut_with_the_coordinates(tmp_path: Path) -> None:
    texts = svg_texts([measured("flat", 0.00001234), measured("heap", 0.00012)], tmp_path)
    assert {"0.000012 s", "0.000120 s"} <= set(texts)


def test_only_rows_that_meet_every_condition_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = [str(RECORDS / "sweep.jsonl"), "--output", str(tmp_path / "picture.svg")]
    assert main([*line, "--where", "variant=heap*,naive", "--where", "data=stdlib"]) == OK
    texts = Drawing(tmp_path / "picture.svg").texts
    assert "naive" in texts
    assert "incremental" not in texts
    assert main([*line, "--where", "variant=nobody"]) == UNMEASURED
    assert "no row has variant=nobody; there are: naive, " in capsys.readouterr().err
    for bad in ("heap", "colour=red"):
        assert main([*line, "--where", bad]) == USAGE
        assert (
            f"--where {bad} is no condition; write NAME=VALUE with one of cell, variant, family, data, "
            in capsys.readouterr().err
        )


def test_all_kinds_that_records_support_are_drawn_and_the_others_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(RECORDS / "sweep.jsonl"), "--kind", "all", "--output", str(tmp_path / "all")]) == OK
    said = capsys.readouterr()
    drawn = sorted(path.stem for path in (tmp_path / "all").iterdir())
    assert {"phases", "ladder", "memory"} <= set(drawn)
    assert sorted(re.findall(r"wrote .*/(\w+)\.svg", said.out)) == drawn
    assert "no size: the size of the corpus: no variant was measured at two" in said.err


def test_a_kind_that_cannot_be_drawn_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "size.svg"
    assert main([str(RECORDS / "sweep.jsonl"), "--kind", "size", "--output", str(picture)]) == UNMEASURED
    assert "python -m harness -m data.bytes=1MB,2MB,4MB measures some" in capsys.readouterr().err
    assert not picture.exists()


@pytest.mark.parametrize(("name", "code"), first_fast([("forms", MISMATCH), ("sweep", OK)]))
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


def test_a_folder_in_the_place_of_the_picture_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "phases.svg" / "in the way").mkdir(parents=True)
    with pytest.raises(Refusal, match="cannot write"):
        save(draw(ALIKE), tmp_path / "phases.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["phases.svg"]
