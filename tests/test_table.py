"""Tables say what the records say: to the digit, in every form that an outcome can take."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured, stopped, stored
from rich.cells import cell_len
from rich.console import Console
from shown import explanations, to_csv, to_markdown

from harness.common.errors import MISMATCH, OK, Refusal
from harness.common.units import seconds_texts
from harness.records.file import RecordFile
from harness.records.load import read_records
from harness.records.schema import BY_ITSELF, PHASES
from harness.results.frame import frame_of
from harness.results.latest import latest
from harness.results.legend import Legend
from harness.results.rows import rows
from harness.table import exit_code, main, render

RECORDS = Path(__file__).parent / "records"
FORMS, REPEATS, COUNTING, SWEEP = (
    read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")
)
FAILED = {record["variant"]: record for record in FORMS if record["status"] != "ok"}

UNITS = (
    "Times are seconds of wall time; memory: at its peak, 1 MB is 1,000,000 bytes; MB/s: of the corpus, by total; "
    "merges/s: by all seconds but those of read and count."
)

Record = dict[str, Any]


def printed(records: list[Record], width: int = 80, terminal: bool = False, work: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    render(records, console, work=work)
    return out.getvalue()


def printed_lines(records: list[Record], work: bool = False) -> list[str]:
    """As a pipe gets it, without the blanks at the ends of lines."""
    return [line.rstrip() for line in printed(records, work=work).splitlines()]


def markdown_table(
    records: Sequence[Mapping[str, Any]], work: bool = False, relative_to: str | None = None
) -> list[dict[str, str]]:
    """The first table of the Markdown, or the one of the work, read back as Markdown reads it."""
    blocks = [
        block.splitlines()
        for block in to_markdown(records, work=work, relative_to=relative_to).split("\n\n")
        if block.startswith("|")
    ]
    lines = blocks[1 if work else 0]
    cells = [[unescaped(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def unescaped(text: str) -> str:
    return html.unescape(re.sub(r"\\([\\|*`<>\[\]~_])", r"\1", text))


def csv_rows(records: list[Record]) -> dict[str, dict[str, str]]:
    return {row["variant"]: row for row in csv.DictReader(io.StringIO(to_csv(records)))}


def changed(record: Mapping[str, Any], **changes: Any) -> Record:
    return {**record, **changes}


def named(records: list[Record], variant: str) -> Record:
    return next(record for record in records if record["variant"] == variant)


NAIVE, HEAP = named(FORMS, "naive"), named(FORMS, "heap")


def test_every_form_of_outcome_is_shown_as_such() -> None:
    assert printed_lines(FORMS) == [
        "stdlib: 3,999,812 bytes, 171 documents, 1,150,342 pre-tokens, 41,234 words",
        "vocabulary 1,000 (743 merges), pattern gpt2, special tokens <|endoftext|>, tie-break greatest_bytes,"
        " min_count 1",
        "counting serial, 1 thread, CPython 3.11.7, AMD EPYC 7B13 (2 cores), 2026-11-21",
        "",
        "variant    total    read   count    init     max   update   other   memory   MB/s  merges/s  proof",
        "─" * 111,
        "naive    34.335   0.004   0.911   0.310   1.900   31.200   0.010   1.24 GB  0.12      22.2   identical",
        "heap      2.454   0.004   0.911   0.310   0.021    1.200   0.008   91.2 MB  1.63       483   identical",
        "lonely    1.720?  0.004?  0.910?  0.200?  0.100?   0.500?  0.006?  91.2 MB  2.33?      923?  unproved",
        "wrong" + " " * 88 + "wrong at merge 12",
        "short" + " " * 88 + "wrong at merge 700",
        "slow          -       -       -       -       -        -       -         -     -         -   timeout",
        "broken        -       -       -       -       -        -       -         -     -         -   error",
        "hungry        -       -       -       -       -        -       -         -     -         -   out of memory",
        "gone          -       -       -       -       -        -       -         -     -         -   killed",
        "odd           -       -       -       -       -        -       -         -     -         -   rejected",
        "absent        -       -       -       -       -        -       -         -     -         -   skipped",
        "",
        "wrong: its merges are wrong, so no time is shown: merge 12 differs from the reference.",
        "short: its merges are wrong, so no time is shown: merge 700 differs from the reference.",
        "slow: timeout: over limits.wall=20 s, after 311 of 743 merges.",
        "broken: error: ZeroDivisionError: division by zero in train, after 5 of 743 merges.",
        "hungry: out of memory: over limits.memory=2 GB.",
        "gone: killed: signal 9, after 120 of 743 merges.",
        "odd: rejected: the worker's clock says 1.2 s, the parent's 3.4 s.",
        "absent: skipped: needs Python 3.14.",
        "? not proved: lonely.",
        UNITS,
    ]


@pytest.mark.parametrize("variant", FAILED)
def test_a_row_that_is_not_ok_shows_no_figure_in_any_format(variant: str) -> None:
    record = FAILED[variant]
    (row,) = markdown_table([record, HEAP])[:1]
    figures = {row[name] for name in row if name not in ("variant", "proof")}
    assert figures == ({""} if record["status"] == "mismatch" else {"-"})
    line = csv_rows([record])[variant]
    assert {line[name] for name in line if name.endswith("_seconds") or name in record["tallies"]} == {""}
    assert line["status"] == record["status"]
    assert line["merges_per_second"] == line["peak_rss_bytes"] == line["merges"] == ""


def test_what_was_not_measured_is_a_dash_and_never_a_zero() -> None:
    row = markdown_table([named(SWEEP, "peer_rustbpe")])[0]
    assert (row["init"], row["max"], row["update"], row["convert"]) == ("-", "-", "0.400?", "0.050?")
    assert csv_rows(SWEEP)["peer_rustbpe"]["init_seconds"] == ""


@pytest.mark.parametrize("records", [FORMS, REPEATS, SWEEP, COUNTING], ids=["forms", "repeats", "sweep", "counting"])
def test_every_row_adds_up_as_written(records: list[Record]) -> None:
    added = 0
    for row in markdown_table(records):
        parts = [row[phase].rstrip("*?") for phase in PHASES if phase in row]
        if row["total"] not in ("-", ""):
            total = Decimal(row["total"].rstrip("*?").replace(",", ""))
            assert sum(Decimal(part.replace(",", "")) for part in parts if part != "-") == total
            added += 1
    assert added == sum(row.total is not None for row in rows(records)) > 0


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=7), st.integers(0, 3))
def test_rounded_parts_add_up_and_none_is_off_by_a_whole_digit(seconds: list[float], decimals: int) -> None:
    total, parts = seconds_texts(seconds, decimals)
    written = [Decimal(part.replace(",", "")) for part in parts]
    assert sum(written) == Decimal(total.replace(",", ""))
    for part, second in zip(written, seconds, strict=True):
        assert abs(float(part) - second) < 10.0**-decimals * 1.001


@pytest.mark.parametrize("width", [80, 50])
def test_a_narrow_terminal_turns_the_table_and_cuts_nothing_off(width: int) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed(SWEEP, width, terminal=True, work=True))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    first = text.split("\nvariant")[1].splitlines()
    assert first[0].split()[:2] == ["naive", "incremental"]
    assert next(line for line in first if line.startswith("total")).split()[1:3] == ["34.334", "11.054"]
    cells = {cell for row in markdown_table(SWEEP) for name, cell in row.items() if name != "proof"}
    assert {cell for cell in cells if not re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", text)} == set()


def test_a_wide_terminal_keeps_the_table_upright_and_colours_what_is_wrong() -> None:
    text = printed(FORMS, 150, terminal=True)
    wrong = next(line for line in text.splitlines() if "wrong at merge 12" in line)
    assert "\x1b[31m" in wrong
    assert "\x1b" not in printed(FORMS, 150)


def test_a_pipe_gets_the_whole_width() -> None:
    assert max(map(len, printed(FORMS, width=40).splitlines())) == len(UNITS) == 162


def test_markdown_says_the_same_as_the_terminal() -> None:
    """Cells that hold pipes and asterisks come back as they were."""
    table = markdown_table(FORMS)
    heading, _, *lines = printed_lines(FORMS)[4:17]
    assert list(table[0]) == heading.split()
    assert [row["variant"] for row in table] == [line.split()[0] for line in lines]
    assert table[4]["proof"] == "wrong at merge 700"
    assert table[0] == {
        "variant": "naive", "total": "34.335", "read": "0.004", "count": "0.911", "init": "0.310", "max": "1.900",
        "update": "31.200", "other": "0.010", "memory": "1.24 GB", "MB/s": "0.12", "merges/s": "22.2",
        "proof": "identical",
    }  # fmt: skip
    assert "@" not in to_markdown(FORMS)  # GitHub would call a person of that name


def test_csv_holds_the_records_figures_in_full() -> None:
    line = csv_rows(FORMS)["heap"]
    for phase, seconds in HEAP["seconds"].items():
        assert float(line[f"{phase}_seconds"]) == pytest.approx(seconds, rel=1e-12)
    recorded = ("peak_rss_bytes", "peak_private_bytes", "threads", "vocab_size", "min_count", "merges", "merges_sha256")
    for name in recorded:
        assert line[name] == str(HEAP[name])
    for name in ("bytes", "documents", "pre_tokens", "words"):
        assert line[name] == str(HEAP["data"][name])
    assert {name: line[name] for name in HEAP["tallies"]} == {name: str(n) for name, n in HEAP["tallies"].items()}
    assert json.loads(line["params"]) == HEAP["params"]
    assert json.loads(line["special_tokens"]) == HEAP["special_tokens"]
    assert line["proof"] == "identical"
    short = csv_rows(FORMS)["short"]
    identity = named(FORMS, "short")["identity"]
    assert (int(short["wrong_merge"]), json.loads(short["want"])) == (identity["merge"], identity["want"])
    assert short["got"] == ""


def test_frame_has_numbers_for_pandas() -> None:
    table = frame_of(rows(FORMS))
    assert list(table["variant"]) == [record["variant"] for record in FORMS]
    assert str(table["peak_rss_bytes"].dtype) == "Int64"
    assert table.loc[table["status"] != "ok", "total_seconds"].isna().all()


def test_repeats_become_one_row_of_medians() -> None:
    table = markdown_table(latest(REPEATS))
    assert [row["variant"] for row in table] == ["naive", "heap(push=all) x3", "heap(push=grown)", "native"]
    assert table[1] == {
        "variant": "heap(push=all) x3", "interpreter": "CPython 3.11.7", "total": "2.554", "spread": "16 %",
        "read": "0.004", "count": "0.900", "convert": "0.000", "init": "0.310", "max": "0.020", "update": "1.300",
        "other": "0.020", "memory": "92.0 MB", "MB/s": "1.57", "merges/s": "450",
        "proof": "identical",
    }  # fmt: skip
    assert explanations(latest(REPEATS)) == [
        "xN: each figure is the median of N records; the total is the sum of the phases' medians.",
    ]


def test_each_task_has_a_table_of_its_own_and_what_they_share_is_said_once() -> None:
    made = [measured(name, 1.0, vocab_size=size) for size in (300, 400) for name in ("a", "b")]
    tables = to_markdown(made)
    assert tables.count("| variant |") == 2
    assert [tables.count(text) for text in ("vocabulary 300", "vocabulary 400", "vocab size |")] == [1, 1, 0]
    assert tables.count("Times are seconds of wall time") == 1
    alone = to_markdown([measured("a", 1.0, vocab_size=size) for size in (300, 400)])
    assert (alone.count("| variant |"), alone.count("| vocab size |")) == (1, 1)


def test_without_a_path_only_the_latest_run_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = [
        {**measured(name, 1.0), "run_id": f"2026-01-0{day}T09:00:00+00:00"}
        for day, name in ((1, "a"), (3, "b"), (2, "c"))
    ]
    Path("results/local").mkdir(parents=True)
    stored(Path("results/local/records.jsonl"), made)
    shown = {}
    for arguments in ([], ["--all"], ["results/local"]):
        assert main([*arguments, "--format", "csv"]) == OK
        shown[tuple(arguments)] = [line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert shown == {(): ["b"], ("--all",): ["a", "b", "c"], ("results/local",): ["a", "b", "c"]}


def test_only_the_latest_run_of_each_cell_is_shown_unless_all_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDS / "repeats.jsonl")
    assert main([path, "--format", "csv"]) == OK
    latest_only = [(row["variant"], row["runs"]) for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert main([path, "--format", "csv", "--all"]) == OK
    every = [(row["variant"], row["runs"]) for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert latest_only == [("naive", "1"), ("heap", "3"), ("heap", "1"), ("native", "1")]
    assert every == [("heap", "4"), ("naive", "1"), ("heap", "1"), ("native", "1")]


def test_rows_can_be_sorted_by_total(capsys: pytest.CaptureFixture[str]) -> None:
    main([str(RECORDS / "forms.jsonl"), "--format", "csv", "--sort", "total"])
    order = [row["variant"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert order[:4] == ["lonely", "heap", "naive", "wrong"]


def test_work_is_counted_with_a_dash_where_a_variant_has_none() -> None:
    work = markdown_table(FORMS, work=True)
    assert work[0] == {
        "work": "naive", "pairs scanned": "9,000,000", "pair updates": "250,000,000", "heap pushes": "-",
        "heap pops": "-", "stale pops": "-", "words rewritten": "30,000,000", "positions visited": "260,000,000",
    }  # fmt: skip
    assert [row["work"] for row in work] == ["naive", "heap", "lonely"]
    assert work[1]["stale pops"] == "8,380"


def test_what_only_one_variant_counts_stands_below_the_work() -> None:
    assert "lonely also counted: shuffles 12." in to_markdown(FORMS, work=True)


def test_no_work_counted_is_said() -> None:
    assert printed_lines(REPEATS, work=True)[-1] == "No work was counted."
    assert to_markdown(REPEATS, work=True).endswith("\n- No work was counted.\n")


def test_counting_has_a_table_of_its_own_where_nothing_was_trained() -> None:
    assert printed_lines(COUNTING)[1:] == [
        "pattern gpt2, special tokens <|endoftext|>",
        "CPython 3.11.7, AMD EPYC 7B13 (2 cores), 2026-11-21",
        "",
        "counter    threads  total   read  count  MB/s  pre-tokens/s   words   memory  status",
        "─" * 84,
        "serial           1  2.000  0.004  1.996  2.00       575,171  41,234  60.0 MB  ok",
        "processes        2  1.000  0.010  0.990  4.00     1,150,342  41,234   120 MB  ok",
        "processes        4      -      -      -     -             -       -        -  error",
        "",
        "processes, threads 4: error: worker 2 died.",
        "Times are seconds of wall time; memory: at its peak, 1 MB is 1,000,000 bytes; MB/s: of the corpus, by total; "
        "pre-tokens/s: by total.",
    ]


def test_cells_that_only_count_are_no_rows_beside_trained_ones() -> None:
    assert [row.name for row in rows([*COUNTING, HEAP])] == ["heap"]


def test_settings_are_columns_only_where_rows_differ() -> None:
    other = {**HEAP["data"], "name": "owt", "sha256": "cd" * 32}
    table = markdown_table(
        [
            HEAP,
            changed(HEAP, threads=2),
            changed(HEAP, data=other),
            changed(HEAP, pattern="line", tie_break="raw_bytes", min_count=10, counting="processes", host="11aa22bb"),
        ]
    )
    settings = ["data", "pattern", "tie-break", "min_count", "counting", "threads", "host"]
    assert list(table[0])[:8] == ["variant", *settings]
    assert [table[3][name] for name in settings] == [
        "stdlib", "line", "raw_bytes", "10", "processes", "1", "11aa22bb",
    ]  # fmt: skip
    assert [(row["data"], row["threads"]) for row in table[:3]] == [("stdlib", "1"), ("stdlib", "2"), ("owt", "1")]


@pytest.mark.parametrize(("size", "name"), [(1000, "stdlib 1.00 kB"), (3_999_813, "stdlib cdcdcdcd")])
def test_two_corpora_of_one_name_are_told_apart_by_size_or_else_by_digest(size: int, name: str) -> None:
    slice_of_it = {**HEAP["data"], "sha256": "cd" * 32, "bytes": size, "words": 50}
    lines = printed_lines([HEAP, changed(HEAP, data=slice_of_it)])
    assert lines[1] == f"{name}: {size:,} bytes, 171 documents, 1,150,342 pre-tokens, 50 words"
    assert [row["data"] for row in markdown_table([HEAP, changed(HEAP, data=slice_of_it)])][1] == name


def test_what_depends_on_the_pattern_is_no_fact_of_the_corpus() -> None:
    lines = changed(HEAP, pattern="line", data={**HEAP["data"], "pre_tokens": 9000, "words": 8000})
    assert printed_lines([HEAP, lines])[0] == "stdlib: 3,999,812 bytes, 171 documents"


def test_a_row_is_named_in_a_sentence_by_what_tells_it_from_its_namesakes() -> None:
    slow = [
        changed(named(FORMS, "slow"), threads=threads, min_count=min_count)
        for threads, min_count in ((1, 1), (2, 1), (2, 5))
    ]
    names = [sentence.split(": timeout")[0] for sentence in explanations([*slow, changed(HEAP, host="11aa22bb")])]
    assert names == ["slow, min_count 1, threads 1", "slow, min_count 1, threads 2", "slow, min_count 5"]


def test_a_counter_that_was_chosen_and_replaced_bytes_are_said() -> None:
    chosen = changed(HEAP, counting="processes", counting_chosen=True, errors="replace")
    caption = "\n".join(printed_lines([chosen])[:3])
    assert "counting processes (chosen)" in caption
    assert "errors replace" in caption
    assert "errors" not in "\n".join(printed_lines([changed(HEAP, errors="strict")])[:3])
    assert [row["counting"] for row in markdown_table([HEAP, chosen])] == ["serial", "processes (chosen)"]


def test_memory_of_several_processes_is_marked_as_sampled() -> None:
    sampled = changed(HEAP, memory_is_sampled=True)
    assert [row["memory"] for row in markdown_table([sampled, NAIVE])] == ["~91.2 MB", "1.24 GB"]
    assert explanations([sampled, NAIVE]) == ["~ the peak of several processes together, sampled while they ran."]


def test_short_times_are_shown_in_microseconds() -> None:
    seconds = {"read": 0.0006767, "count": 0.0002166, "max": 0.0000687, "other": 0.0001, "total": 0.001062}
    short = changed(HEAP, seconds=seconds)
    row = markdown_table([short])[0]
    assert [row[name] for name in ("total", "read", "max", "update")] == ["0.001062", "0.000677", "0.000069", "-"]


def test_a_vocabulary_that_stayed_small_is_explained() -> None:
    small = changed(HEAP, merges=650, merges_done=650)
    assert explanations([small]) == ["650 of 743 merges, then no pair of count 1 or more was left: heap."]


def test_a_total_without_counting_says_so() -> None:
    uncounted = changed(HEAP, seconds={**HEAP["seconds"], "read": None, "count": None, "total": None})
    assert markdown_table([uncounted, NAIVE])[0]["count"] == "-"
    assert explanations([uncounted, NAIVE]) == ["Counting was not measured, so the total excludes it: heap."]


def test_a_repeat_that_failed_is_left_out_and_named() -> None:
    slow = changed(HEAP, status="timeout", reason="over limits.wall=1 s", seconds=None)
    (row,) = rows([HEAP, slow])
    assert row.runs == 1
    assert row.total == pytest.approx(HEAP["seconds"]["total"])
    assert explanations([HEAP, slow]) == ["Some records were left out (timeout: over limits.wall=1 s): heap."]


def test_a_row_is_named_by_what_it_departs_in_from_most_of_its_name() -> None:
    settings = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}]
    records = [changed(HEAP, params=params, vocab_size=300 + place) for place, params in enumerate(settings)]
    assert Legend(rows(records[:2])).names == ["heap(a=1)", "heap(a=2)"]
    assert Legend(rows(records[:3])).names == ["heap", "heap(a=2)", "heap(b=2)"]
    assert Legend(rows(records)).names == ["heap", "heap(a=2)", "heap(b=2)", "heap(b=2)"]


def test_rows_that_share_a_remark_are_named_by_their_variant_where_these_are_all_its_rows() -> None:
    records = [changed(record, vocab_size=size) for record in (HEAP, NAIVE) for size in (300, 301, 302)]
    bare = [
        changed(record, counting=BY_ITSELF, seconds={**record["seconds"], "count": None}) for record in records[:-1]
    ]
    (told,) = [note for note in explanations([*bare, records[-1]]) if note.startswith("One total")]
    assert told.split(": ")[1] == "heap; naive, vocab size 300; naive, vocab size 301."


def test_one_wrong_repeat_spoils_its_row() -> None:
    wrong = changed(named(FORMS, "wrong"), variant="heap", params=HEAP["params"])
    assert markdown_table([HEAP, wrong, HEAP])[0]["total"] == ""
    assert exit_code([HEAP, wrong, HEAP]) == MISMATCH


def test_runs_of_one_cell_that_differ_in_their_merges_are_a_mismatch() -> None:
    other = changed(HEAP, merges_sha256="77" * 32)
    assert markdown_table([HEAP, other])[0]["proof"] == "wrong"
    assert "its own runs gave different merges (3f2a91bc, 77777777)" in explanations([HEAP, other])[0]
    assert exit_code([HEAP, other]) == MISMATCH


def test_rows_of_joined_records_that_contradict_each_other_are_not_believed() -> None:
    other = changed(NAIVE, merges_sha256="77" * 32)
    table = markdown_table([HEAP, other])
    assert [row["total"] for row in table] == ["2.454?", "34.335?"]
    assert explanations([HEAP, other]) == [
        "? these differ in their merges, so not all are right: heap (3f2a91bc); naive (77777777)."
    ]
    assert exit_code([HEAP, other]) == MISMATCH
    assert exit_code([HEAP, changed(other, min_count=2)]) == OK  # another question has another answer


def test_long_tokens_are_whole_in_the_sentence() -> None:
    identity = {"kind": "wrong", "merge": 1200, "reason": f"merge 1,200, '{'a' * 600}'+'b', is rare"}
    wrong = changed(named(FORMS, "wrong"), identity=identity)
    assert markdown_table([wrong, HEAP])[0]["proof"] == "wrong at merge 1,200"
    assert f"'{'a' * 600}'+'b'" in explanations([wrong])[0]


def test_a_broken_line_is_reported_and_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "records.jsonl"
    stored(path, [HEAP])
    path.write_text(path.read_text() + '{"kind": "measur\n')
    RecordFile(tmp_path).append([NAIVE])
    assert main([str(tmp_path), "--format", "csv"]) == OK
    captured = capsys.readouterr()
    assert [row["variant"] for row in csv.DictReader(io.StringIO(captured.out))] == ["heap", "naive"]
    assert captured.err.startswith(f"{path}, line 5: skipped")


def command(*arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    line = [sys.executable, "-m", "harness.table", *arguments]
    return subprocess.run(line, capture_output=True, text=True, encoding=encoding, env=environment, check=False)


def test_the_command_on_a_terminal_without_unicode_has_no_traceback() -> None:
    ended = command(str(RECORDS / "forms.jsonl"), encoding="ascii")
    assert (ended.returncode, ended.stderr) == (MISMATCH, "")
    assert "wrong at merge 12" in ended.stdout


def test_help_teaches_with_an_example() -> None:
    ended = command("--help")
    assert ended.returncode == OK
    assert "python -m harness.table mine.jsonl yours/ --work" in ended.stdout


def test_a_table_for_the_eye_loads_no_pandas() -> None:
    code = "import sys, harness.table; print('pandas' in sys.modules or 'matplotlib' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def test_totals_are_told_as_multiples_of_a_chosen_variants() -> None:
    table = markdown_table(FORMS, relative_to="heap")
    ratios = {row["variant"]: row["total / heap"] for row in table}
    assert (ratios["naive"], ratios["heap"], ratios["wrong"]) == ("14.0", "1.00", "")
    with pytest.raises(Refusal, match=r"no time of 'nobody' to compare with; there are: .*heap"):
        to_markdown(FORMS, relative_to="nobody")


def series_of(records: list[Record], *further: str, path: Path, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    stored(path, records)
    main([str(path), "--series", "--format", "markdown", *further])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_the_series_form_has_the_series_columns_and_adds_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heading, *lines = series_of(SWEEP, path=tmp_path / "r.jsonl", capsys=capsys)
    assert heading == [
        "variant", "data", "total", "count", "merge", "max", "update", "other", "memory", "threads",
    ]  # fmt: skip
    added = 0
    for line in lines:
        if line[3] != "-":
            total, count, merge, *parts = (Decimal(cell.rstrip("*?").replace(",", "")) for cell in line[2:8])
            assert total == count + merge
            assert merge == sum(parts)
            added += 1
    assert added == 10
    assert {line[0]: line[2] for line in lines if line[3] == "-"} == {"gpu": "skipped", "cpp_std_scan": "timeout"}


def test_three_runs_stand_as_the_series_writes_them_or_as_a_median_with_their_spread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        changed(
            HEAP, block=block, repeat=3, seconds={"count": 1.0, "max": 0.5, "update": update, "total": 1.5 + update}
        )
        for block, update in enumerate((2.0, 1.0, 4.0))
    ]
    every = series_of(runs, "--runs", path=tmp_path / "r.jsonl", capsys=capsys)[1]
    assert every[2:8] == ["3.500/2.500/5.500", "1.000/1.000/1.000", "2.500/1.500/4.500", "0.500/0.500/0.500",
                          "2.000/1.000/4.000", "0.000/0.000/0.000"]  # fmt: skip
    heading, median = series_of(runs, path=tmp_path / "r.jsonl", capsys=capsys)
    assert dict(zip(heading, median, strict=True))["spread"] == "86 %"
    assert median[2] == "3.500"


def test_columns_are_chosen_by_name_and_units_are_those_of_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDS / "repeats.jsonl")
    assert main([path, "--columns", "variant,memory,ratio", "--relative-to", "heap", "--format", "markdown"]) == OK
    said = capsys.readouterr().out
    assert "\n| variant | memory | total / heap |\n" in said
    assert "MB/s: of the corpus" not in said
    assert "memory: at its peak" in said
    assert main([path, "--columns", "variant,nonesuch"]) == 2
    assert "the table has no column 'nonesuch'; it has variant, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([path, "--columns", "variant", "--format", "csv"])
    assert "which has every column" in capsys.readouterr().err


def test_json_has_what_csv_has_and_latex_the_table(tmp_path: Path) -> None:
    path = str(RECORDS / "forms.jsonl")
    for name in ("a.json", "a.csv", "a.tex"):
        assert main([path, "--output", str(tmp_path / name)]) == MISMATCH
    objects = json.loads((tmp_path / "a.json").read_text())
    lines = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [each["variant"] for each in objects] == [line["variant"] for line in lines]
    assert objects[0].keys() == lines[0].keys()
    assert objects[0]["total_seconds"] == float(lines[0]["total_seconds"])
    latex = (tmp_path / "a.tex").read_text()
    assert latex.count("\\\\\n") == len(lines) + 1
    assert "\\begin{tabular}{l" in latex
    assert re.search(r"(?<!\\)_", re.sub("^%.*", "", latex, flags=re.M)) is None


def test_what_a_limit_ended_is_compared_with_a_whole_total() -> None:
    """What it would have taken includes counting, so the baseline's counting belongs to its total too."""
    foreseen = {"total_seconds": 60.0, "low_seconds": 50.0, "high_seconds": 70.0}
    slow = stopped("naive", 1, extrapolated=foreseen)
    fast = measured("heap", {"count": 4.0, "update": 1.0})
    (row,) = (row for row in markdown_table([slow, fast], relative_to="heap") if row["variant"] == "naive")
    assert row["total / heap"] == ">10.0"
