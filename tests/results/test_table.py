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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from measured import changed, measured, stopped, stored
from rich.cells import cell_len
from rich.console import Console
from shown import (
    COUNTING,
    FORMS,
    RECORDS,
    REPEATS,
    SWEEP,
    cells,
    expected,
    explanations,
    to_csv,
    to_markdown,
)

import harness
from harness.common.errors import MISMATCH, OK
from harness.common.sheet import print_sheets
from harness.records.file import Record
from harness.results.export import hyperfine
from harness.results.frame import frame_of
from harness.results.latex import sheet_to_latex
from harness.results.legend import caption_of, columns_of, labels_of
from harness.results.page import page
from harness.results.rows import is_wrong, rows
from harness.results.tables import TableOptions, tables
from harness.results.writing import proof_text
from harness.table import main


def printed(records: Any, width: int = 80, terminal: bool = False, work: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    print_sheets(tables(rows(records), TableOptions(work=work)), console)
    return out.getvalue()


def csv_rows(records: Any) -> dict[str, dict[str, str]]:
    return {row["variant"]: row for row in csv.DictReader(io.StringIO(to_csv(records)))}


def named(records: Sequence[Record], variant: str) -> Record:
    return next(record for record in records if record.cell.variant == variant)


NAIVE, HEAP = named(FORMS, "naive"), named(FORMS, "heap")


def test_three_variants_take_twelve_lines_of_80_columns() -> None:
    text = printed([named(SWEEP, name) for name in ("naive", "heap", "flat")])
    assert re.sub(" +\n", "\n", text) == expected("three_variants")


def test_every_form_of_outcome_is_shown_as_such() -> None:
    assert re.sub(" +\n", "\n", printed(FORMS)) == expected("every_outcome")
    every = explanations(FORMS, notes=True)
    assert "slow: timeout: over limits.wall=20 s, after 311 of 743 merges." in every
    assert "Not comparable with naive (its merges are not proved): lonely." in every


def test_what_a_proof_says_stands_beside_any_list_without_one() -> None:
    unproved = measured("other", 1.0, identity=None, merges_sha256="cd" * 32)
    own_word = measured(
        "fast", 0.1, identity={"kind": "different_by_design"}, merges_sha256="ef" * 32
    )
    shown = rows([measured("heap", 2.0), unproved, own_word])
    assert [proof_text(row) for row in shown] == ["identical", "cdcdcdcd ?", "different by design"]
    assert [row.disputed for row in shown] == [False, True, False]


@pytest.mark.parametrize("width", [80, 50])
def test_a_narrow_terminal_continues_below_and_cuts_nothing_off(width: int) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed(SWEEP, width, terminal=True, work=True))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b[31m" in printed(FORMS, width, terminal=True)  # wrong merges are red
    assert "\x1b" not in printed(SWEEP, width)
    texts = {cell for row in cells(SWEEP) for name, cell in row.items() if name != "proof"}
    assert {
        cell for cell in texts if not re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", text)
    } == set()


def test_csv_holds_the_figures_of_the_records_in_full() -> None:
    line = csv_rows(FORMS)["heap"]
    for phase, seconds in HEAP["seconds"].items():
        assert float(line[f"{phase}_seconds"]) == pytest.approx(seconds, rel=1e-12)
    for name in ("peak_rss_bytes", "threads", "vocab_size", "min_count", "merges", "merges_sha256"):
        assert line[name] == str(HEAP[name])
    for name in ("bytes", "documents", "pre_tokens", "words"):
        assert line[name] == str(HEAP["data"][name])
    assert {name: line[name] for name in HEAP["tallies"]} == {
        name: str(n) for name, n in HEAP["tallies"].items()
    }
    assert (line["proof"], json.loads(line["params"])) == ("identical", HEAP["params"])
    short = csv_rows(FORMS)["short"]
    identity = named(FORMS, "short")["identity"]
    assert (int(short["wrong_merge"]), short["got"]) == (identity["merge"], "")
    assert json.loads(short["want"]) == identity["want"]
    table = frame_of(rows(FORMS))
    assert str(table["peak_rss_bytes"].dtype) == "Int64"
    assert table.loc[table["status"] != "ok", "total_seconds"].isna().all()


def test_each_task_has_a_table_of_its_own() -> None:
    made = [measured(name, 1.0, vocab_size=size) for size in (300, 400) for name in ("a", "b")]
    tables = to_markdown(made)
    assert tables.count("| variant |") == 2
    assert [
        tables.count(text) for text in ("vocabulary 300", "vocabulary 400", "vocab size |")
    ] == [1, 1, 0]
    alone = to_markdown([measured("a", 1.0, vocab_size=size) for size in (300, 400)])
    assert (alone.count("| variant |"), alone.count("| vocab size |")) == (1, 1)


def test_only_the_latest_run_is_shown_without_a_path_and_of_each_cell_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = [
        measured(name, 1.0, run_id=f"2026-01-0{day}T09:00:00+00:00")
        for day, name in ((1, "a"), (3, "b"), (2, "c"))
    ]
    Path("results/local").mkdir(parents=True)
    stored(Path("results/local/records.jsonl"), made)

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


def test_work_is_counted_with_a_dash_if_a_variant_has_none() -> None:
    work = cells(FORMS, 1, work=True)
    assert work[0]["pairs scanned"] == "9,000,000"
    assert (work[0]["heap pushes"], work[1]["stale pops"], work[2]["shuffles"]) == (
        "-",
        "8,380",
        "12",
    )
    assert [row["work"] for row in work] == ["naive", "heap", "lonely"]
    assert "No work was counted." in to_markdown([measured("a", 1.0)], work=True)


def test_counting_has_a_table_of_its_own_if_nothing_was_trained() -> None:
    table = cells(COUNTING)
    assert [(row["counter"], row["threads"], row["total"], row["status"]) for row in table] == [
        ("serial", "1", "2.00 s", "ok"),
        ("processes", "2", "1.00 s", "ok"),
        ("processes", "4", "-", "error"),
    ]
    assert [row["total / serial"] for row in cells(COUNTING, relative_to="serial")] == [
        "1.00",
        "0.500",
        "-",
    ]
    assert len(cells([*COUNTING, NAIVE])) == 1


def test_settings_are_columns_only_if_rows_differ() -> None:
    assert "threads" not in cells([HEAP])[0]
    assert [row["threads"] for row in cells([HEAP, changed(HEAP, threads=2)])] == ["1", "2"]
    ties = [HEAP, changed(NAIVE, tie_break="raw_bytes", counting="processes")]
    # the proof says it, and nothing hangs on it
    assert {"tie-break", "counting"}.isdisjoint(cells(ties)[0])
    assert [row["counting"] for row in cells([HEAP, changed(HEAP, counting="processes")])] == [
        "serial",
        "processes",
    ]


def test_namesakes_are_distinguished_by_what_differs() -> None:
    for size, name in ((HEAP["data"]["bytes"], "stdlib ffffffff"), (12_345, "stdlib 12.3 kB")):
        other = changed(HEAP, data={**HEAP["data"], "sha256": "f" * 64, "bytes": size})
        assert columns_of(rows([HEAP, other]))["data"].cells[1] == name
    both = rows([NAIVE, HEAP, changed(HEAP, threads=2)])
    assert labels_of(both) == ["naive", "heap, threads 1", "heap, threads 2"]


def test_the_caption_leaves_defaults_out() -> None:
    odd = changed(
        HEAP, errors="replace", pattern="line", counting="processes", counting_chosen=True
    )
    caption = " ".join(caption_of(rows([odd])))
    assert all(
        text in caption
        for text in ("pattern line", "errors replace", "counting processes (chosen)")
    )
    plain = " ".join(caption_of(rows([HEAP])))
    assert not any(
        text in plain for text in ("gpt2", "endoftext", "min_count", "counting", "tie-break")
    )


def test_a_text_without_further_pairs_is_reported() -> None:
    short = changed(HEAP, merges=15, vocab_size=300)
    assert explanations([short]) == ["No pair is left after 15 of 43 merges."]
    assert explanations([short, changed(NAIVE, merges=43, vocab_size=300)]) == []


def test_a_repeat_that_failed_is_left_out_and_named() -> None:
    failed = changed(HEAP, status="error", reason="lost", block=1, seconds=None, merges_sha256=None)
    (row,) = cells([HEAP, failed])
    assert row["total"] == "2.45 s"
    assert explanations([HEAP, failed]) == ["heap: failed in 1 of 2 blocks (block 2): error: lost."]


def test_blocks_that_failed_are_named_in_one_form_everywhere() -> None:
    failed = [
        changed(HEAP, status="error", reason="lost", block=block, seconds=None, merges_sha256=None)
        for block in (2, 4)
    ]
    records = [*(changed(HEAP, block=block) for block in (0, 1, 3, 5)), *failed]
    sentence = "failed in 2 of 6 blocks (blocks 3, 5): error: lost"
    assert explanations(records) == [f"heap: {sentence}."]
    assert frame_of(rows(records))["reason"].tolist() == [sentence]
    assert f"heap: {sentence}." in page(rows(records))


def test_wrong_or_contradicting_merges_spoil_a_row() -> None:
    spoilt = changed(
        named(FORMS, "wrong"), variant="heap", params=HEAP["params"], counting=HEAP["counting"]
    )
    (row,) = rows([HEAP, spoilt])
    assert (row.status, row.total) == ("mismatch", None)
    (own,) = rows([HEAP, changed(HEAP, merges_sha256="0" * 64, block=1)])
    assert own.status == "mismatch"
    joined = [NAIVE, changed(HEAP, merges_sha256="0" * 64)]
    assert is_wrong(rows(joined))
    assert [row["total"][-1] for row in cells(joined)] == ["?", "?"]
    assert explanations(joined)[0].startswith(
        "? These differ in their merges, so not all are right: naive ("
    )


def test_an_estimate_is_the_same_everywhere() -> None:
    expected = {"total_seconds": 40_700.0, "low_seconds": 33_100.0, "high_seconds": 48_900.0}
    slow = stopped("slow", 20.0, extrapolated=expected)
    (_, row) = cells([measured("one", 10.0), slow])
    assert (row["total"], row["ratio"], row["update"], row["proof"]) == (
        "~11.3 h",
        "~× 4,070",
        "-",
        "extrapolated",
    )
    estimate = "estimated total 11.3 h (9.2 h to 13.6 h)"
    note = f"slow: extrapolated: over limits.wall=20 s, after 100 of 744 merges; {estimate}."
    assert explanations([slow]) == [note]
    vague = stopped("slow", 20.0, extrapolated={**expected, "high_seconds": 4e11})
    assert [cells([measured("one", 10.0), vague])[1][name] for name in ("total", "ratio")] == [
        ">9.1 h",
        ">× 3,310",
    ]


def test_a_table_for_people_loads_no_pandas() -> None:
    code = (
        "import sys, harness.table; print('pandas' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_command_on_a_terminal_without_unicode_has_no_traceback() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "harness.table", str(RECORDS / "sweep.jsonl")]
    assert (
        "Traceback"
        not in subprocess.run(command, capture_output=True, text=True, env=environment).stderr
    )


@pytest.mark.parametrize(
    ("name", "start"),
    [("t.md", "stdlib: "), ("t.csv", "cell,"), ("t.txt", "stdlib: "), ("t.tex", "% stdlib: ")],
)
def test_a_file_is_written_whole_in_the_format_of_its_name(
    tmp_path: Path, name: str, start: str
) -> None:
    assert (
        main([str(RECORDS / "forms.jsonl"), "--output", str(tmp_path / "below" / name)]) == MISMATCH
    )
    assert [path.name for path in (tmp_path / "below").iterdir()] == [name]
    text = (tmp_path / "below" / name).read_text()
    assert text.startswith(start)
    assert "\x1b" not in text


def test_a_table_of_latex_can_be_put_into_a_paper() -> None:
    records = [measured("a_b & 50 %", 2.0), measured("c\\^~{}", 4.0, status="error", reason="x\ny")]
    text = "\n".join(map(sheet_to_latex, tables(rows(records))))
    assert text == expected("latex")


def test_an_export_is_what_hyperfine_writes() -> None:
    shown = rows([*FORMS, *REPEATS])
    timed = [row for row in shown if row.total is not None]
    results = json.loads(hyperfine(shown))["results"]
    assert 0 < len(results) == len(timed) < len(shown)

    names = [result["command"] for result in results]
    assert len({*names}) == len(names)
    for row, result in zip(timed, results, strict=True):
        times = [sample.seconds for sample in row.samples]
        assert result["times"] == times
        assert (result["min"], result["max"]) == (min(times), max(times))
        assert result["median"] == statistics.median(times)
        assert result["mean"] == pytest.approx(statistics.mean(times))
        parts = [] if result["user"] is None else [result["user"] + result["system"]]
        assert parts == [pytest.approx(row.cpu_seconds)] * len(parts)
        assert bool(parts) == (None not in (row.cpu_seconds, row.system_seconds))
        assert (result["stddev"] is None) == (len(times) == 1)


def test_stored_records_are_a_data_frame() -> None:
    records = harness.read(str(RECORDS / "sweep.jsonl"))
    frame = records.frame()
    assert len(frame) == len(records) == len(SWEEP)
    totals = [(record.get("seconds") or {}).get("total") for record in SWEEP]
    assert frame["total_seconds"].sum() == pytest.approx(sum(filter(None, totals)))
