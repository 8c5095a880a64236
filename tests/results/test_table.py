"""Tables say what the records say: to the digit, in every form that an outcome can take."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from measured import changed, measured, stopped, stored, wrong
from rich.cells import cell_len
from rich.console import Console
from shown import COUNTING, FORMS, RECORDS, REPEATS, SWEEP, expected, table_text, to_csv

import harness
from harness.common.errors import MISMATCH, OK
from harness.common.sheet import print_sheets
from harness.records.file import Record
from harness.results.export import hyperfine
from harness.results.frame import frame_of
from harness.results.latex import sheet_to_latex
from harness.results.page import page
from harness.results.rows import is_wrong, rows
from harness.results.tables import TableOptions, tables
from harness.table import main

HEAP, NAIVE = measured("heap", 2.0), measured("naive", 4.0)
TEXT = HEAP["data"]
ESTIMATE = {"total_seconds": 40_700.0, "low_seconds": 33_100.0, "high_seconds": 48_900.0}
DESIGN = {"kind": "different_by_design", "reason": "it merges syllables"}
FAILED = {"status": "error", "reason": "lost", "merges_sha256": None}
ODD = {"errors": "replace", "pattern": "line", "counting": "processes", "counting_chosen": True}
CASES: dict[str, tuple[list[Record], dict[str, Any]]] = {
    "three_variants": (
        [each for each in SWEEP if each["variant"] in ("naive", "heap", "flat")],
        {},
    ),
    "every_outcome": (FORMS, {}),
    "every_note": (FORMS, {"notes": True}),
    "work": (FORMS, {"work": True}),
    "no_work": ([HEAP], {"work": True}),
    "counters": (COUNTING, {"relative_to": "serial"}),
    "counters_beside_a_trainer": ([*COUNTING, HEAP], {}),
    # what a proof says stands beside any list without one
    "unproved": (
        [
            HEAP,
            measured("other", 1.0, identity=None, merges_sha256="cd" * 32),
            measured("fast", 0.1, identity=DESIGN, merges_sha256="ef" * 32),
        ],
        {},
    ),
    "contradiction": ([HEAP, changed(NAIVE, merges_sha256="cd" * 32)], {}),
    "wrong_block": ([HEAP, wrong("heap", block=1), NAIVE], {}),
    "other_merges_in_a_block": ([HEAP, changed(HEAP, block=1, merges_sha256="cd" * 32)], {}),
    "tasks": (
        [changed(each, vocab_size=size) for size in (300, 400) for each in (HEAP, NAIVE)],
        {},
    ),
    "one_variant": ([changed(HEAP, vocab_size=size) for size in (300, 400)], {}),
    # the proof names the rule of ties, and nothing hangs on the counting
    "minor_settings": ([HEAP, changed(NAIVE, tie_break="raw_bytes", counting="processes")], {}),
    "settings_of_namesakes": (
        [NAIVE, HEAP, changed(HEAP, threads=2), changed(HEAP, counting="processes")],
        {},
    ),
    "texts_of_one_name": (
        [
            HEAP,
            changed(HEAP, data={**TEXT, "sha256": "f" * 64}),
            changed(HEAP, data={**TEXT, "sha256": "e" * 64, "bytes": 12_345}),
        ],
        {},
    ),
    "caption_of_odd_settings": ([changed(HEAP, **ODD)], {}),
    "no_pairs_left": ([changed(HEAP, merges=15, vocab_size=300)], {}),
    "different_numbers_of_merges": (
        [changed(HEAP, merges=15, vocab_size=300), changed(NAIVE, merges=43, vocab_size=300)],
        {},
    ),
    "failed_blocks": (
        [
            *(changed(HEAP, block=block) for block in (0, 1, 3, 5)),
            *(measured("heap", {}, block=block, **FAILED) for block in (2, 4)),
        ],
        {},
    ),
    "estimate": ([HEAP, stopped("slow", 20.0, extrapolated=ESTIMATE)], {}),
    "vague_estimate": (
        [HEAP, stopped("slow", 20.0, extrapolated={**ESTIMATE, "high_seconds": 4e11})],
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_the_one_in_its_file(name: str) -> None:
    records, options = CASES[name]
    assert table_text(records, **options) == expected(name)


@pytest.mark.parametrize("width", [80, 50])
def test_a_narrow_terminal_continues_below_and_cuts_nothing_off(width: int) -> None:
    def on_terminal(records: list[Record]) -> str:
        out = io.StringIO()
        console = Console(file=out, width=width, force_terminal=True, color_system="standard")
        print_sheets(tables(rows(records), TableOptions(work=True)), console)
        return out.getvalue()

    assert "\x1b[31m" in on_terminal(FORMS)  # wrong merges are red
    text = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(SWEEP))
    assert max(map(cell_len, text.splitlines())) <= width
    for sheet in tables(rows(SWEEP), TableOptions(work=True)):
        for column in sheet.columns:
            assert {cell for cell in column.cells if cell not in text} == set()


def test_csv_holds_the_figures_of_the_records_in_full() -> None:
    lines = {line["variant"]: line for line in csv.DictReader(io.StringIO(to_csv(FORMS)))}
    heap, short = (next(r for r in FORMS if r["variant"] == name) for name in ("heap", "short"))
    line = lines["heap"]
    for phase, seconds in heap["seconds"].items():
        assert float(line[f"{phase}_seconds"]) == pytest.approx(seconds, rel=1e-12)
    names = ["peak_rss_bytes", "threads", "vocab_size", "min_count", "merges", "merges_sha256"]
    texts = {name: heap[name] for name in names}
    texts |= {name: heap["data"][name] for name in ("bytes", "documents", "pre_tokens", "words")}
    assert {name: line[name] for name in (*texts, *heap["tallies"])} == {
        name: str(value) for name, value in {**texts, **heap["tallies"]}.items()
    }
    assert (line["proof"], json.loads(line["params"])) == ("identical", heap["params"])
    assert (int(lines["short"]["wrong_merge"]), lines["short"]["got"]) == (700, "")
    assert json.loads(lines["short"]["want"]) == short["identity"]["want"]

    frame = frame_of(rows(FORMS))
    assert str(frame["peak_rss_bytes"].dtype) == "Int64"
    assert frame.loc[frame["status"] != "ok", "total_seconds"].isna().all()


def test_only_the_latest_run_is_shown_without_a_path_and_of_each_cell_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    days = {"a": 1, "b": 3, "c": 2}
    records = [
        measured(name, 1.0, run_id=f"2026-01-0{day}T09:00:00Z") for name, day in days.items()
    ]
    Path("results/local").mkdir(parents=True)
    stored(Path("results/local/records.jsonl"), records)

    def shown(*arguments: str) -> list[str]:
        assert main([*arguments, "--format", "csv"]) == OK
        lines = csv.DictReader(io.StringIO(capsys.readouterr().out))
        return [f"{line['variant']} {line['runs']}" for line in lines]

    assert shown() == ["b 1"]
    assert shown("--all") == shown("results/local") == ["a 1", "b 1", "c 1"]
    assert shown("results/local", "--where", "variant=a,c") == ["a 1", "c 1"]
    repeats = str(RECORDS / "repeats.jsonl")
    assert shown(repeats) == ["naive 1", "heap 3", "heap 1", "native 1"]
    assert shown(repeats, "--all") == ["heap 4", "naive 1", "heap 1", "native 1"]


def test_wrong_or_contradicting_merges_are_wrong_and_failed_blocks_have_one_form_everywhere() -> (
    None
):
    for name in ("contradiction", "wrong_block", "other_merges_in_a_block"):
        assert is_wrong(rows(CASES[name][0]))
    failed = rows(CASES["failed_blocks"][0])
    sentence = "failed in 2 of 6 blocks (blocks 3, 5): error: lost"
    assert frame_of(failed)["reason"].tolist() == [sentence]
    assert f"heap: {sentence}." in page(failed)


def test_a_table_for_people_loads_no_pandas() -> None:
    code = "import sys, harness.table; print({'pandas', 'matplotlib'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_the_command_on_a_terminal_without_unicode_has_no_traceback() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "harness.table", str(RECORDS / "sweep.jsonl")]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("name", "start"),
    [("t.md", "stdlib: "), ("t.csv", "cell,"), ("t.txt", "stdlib: "), ("t.tex", "% stdlib: ")],
)
def test_a_file_is_written_whole_in_the_format_of_its_name(
    tmp_path: Path, name: str, start: str
) -> None:
    path = tmp_path / "below" / name
    assert main([str(RECORDS / "forms.jsonl"), "--output", str(path)]) == MISMATCH
    assert [*path.parent.iterdir()] == [path]
    assert path.read_text().startswith(start)
    assert "\x1b" not in path.read_text()


def test_a_table_of_latex_can_be_put_into_a_paper() -> None:
    records = [measured("a_b & 50 %", 2.0), measured("c\\^~{}", 4.0, status="error", reason="x\ny")]
    text = "\n".join(map(sheet_to_latex, tables(rows(records))))
    assert text == expected("latex")


def test_an_export_is_what_hyperfine_writes() -> None:
    shown = rows([*FORMS, *REPEATS])
    timed = [row for row in shown if row.total is not None]
    results = json.loads(hyperfine(shown))["results"]
    assert 0 < len(results) == len(timed) < len(shown)
    assert len({result["command"] for result in results}) == len(results)

    for row, result in zip(timed, results, strict=True):
        times = [sample.seconds for sample in row.samples]
        assert result["times"] == times
        assert (result["min"], result["max"]) == (min(times), max(times))
        assert result["median"] == statistics.median(times)
        assert result["mean"] == pytest.approx(statistics.mean(times))
        assert (result["stddev"] is None) == (len(times) == 1)
        if None in (row.cpu_seconds, row.system_seconds):
            assert result["user"] is None
        else:
            assert result["user"] + result["system"] == pytest.approx(row.cpu_seconds)


def test_stored_records_are_a_data_frame() -> None:
    records = harness.read(str(RECORDS / "sweep.jsonl"))
    frame = records.frame()
    assert len(frame) == len(records) == len(SWEEP)
    totals = [record["seconds"]["total"] for record in SWEEP]
    assert frame["total_seconds"].sum() == pytest.approx(sum(filter(None, totals)))
