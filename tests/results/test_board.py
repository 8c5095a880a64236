"""python -m harness.board: the rank, what is not ranked and why, and the page with its charts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from measured import measured, stopped, stored, wrong

from harness.board import headline, main, page_of, ratios_sheet, sections, sheet_of
from harness.common.errors import OK, USAGE
from harness.records.file import Record
from harness.results.rows import rows
from harness.results.selection import records_of

REPOSITORY = Path(__file__).parents[2]


def timed(
    name: str, seconds: float, threads: int = 1, number: int = 3, **changes: Any
) -> list[Record]:
    """Blocks of a trainer."""
    phases = {"count": seconds * 0.7, "update": seconds * 0.3}
    return [
        measured(name, phases, block=block, threads=threads, **changes) for block in range(number)
    ]


def identity(kind: str, **what: Any) -> dict[str, Any]:
    return {"identity": {"kind": kind, **what}}


RECORDS = [
    *timed("slow", 3.0, **identity("identical", tie_break="raw_bytes")),
    *timed("ours", 1.0, **identity("identical", tie_break="greatest_bytes")),
    *timed("ours", 0.5, threads=2, **identity("identical", tie_break="greatest_bytes")),
    *timed(
        "other", 0.9, **identity("different_by_design", reason="it reads lines; merge 3 is another")
    ),
    *timed(
        "lines",
        2.0,
        **identity(
            "different_by_design", reason="lines; x", of_own_words="identical (huggingface)"
        ),
    ),
    *timed("unproved", 0.1, **identity("unproved")),
    wrong("false", **identity("wrong", reason="merge 7, 'a'+'b', occurs 1 time, others 2 times")),
    stopped("late", 60.0),
    stopped(
        "b",
        60.0,
        extrapolated={"total_seconds": 180.0, "low_seconds": 120.0, "high_seconds": 300.0},
    ),
]


def table(records: list[Record]) -> tuple[dict[str, list[str]], list[str]]:
    (section,) = sections(rows(records))
    sheet = sheet_of(section)
    return {column.heading: list(column.cells) for column in sheet.columns}, list(sheet.notes)


def test_only_proved_merges_are_ranked_by_their_best_time() -> None:
    sheet, notes = table(RECORDS)
    assert sheet["trainer"][:5] == ["ours", "lines", "slow", "unproved", "other"]
    assert sheet["rank"] == ["1", "2", "3", *"-----"]
    assert sheet["1 thread"][:5] == ["1.00 s", "2.00 s", "3.00 s", "100 ms", "900 ms"]
    assert set(sheet["1 thread"][5:]) == {"wrong", ">60 s", "~3.0 min"}
    assert sheet["2 threads"][0] == "500 ms"
    assert sheet["times the first"][:5] == ["× 1", "× 2.00*", "× 3.00", "× 0.100?", "× 0.900*"]
    assert set(sheet["times the first"][5:]) == {"-", ">× 60.0", "~× 180"}
    assert notes == [
        "false: wrong merges, so no time is shown: merge 7, 'a'+'b', occurs 1 time, others 2 times.",
        "lines: other merges on purpose: lines; identical on its own words (identical (huggingface)).",
        "unproved: nobody has proved its merges, so it is not ranked.",
        "other: other merges on purpose: it reads lines.",
    ]


def test_the_headline_says_who_leads_and_by_how_much() -> None:
    def line(*tables: tuple[float, float]) -> str:
        made = [
            record
            for size, (ours, theirs) in enumerate(tables, 1000)
            for record in (
                *timed("ours", ours, vocab_size=size),
                *timed("slow", theirs, vocab_size=size),
            )
        ]
        return headline(sections(rows(made)))

    first = "**ours** is fastest in 2 of 2 tables; the next one takes 3.00 to 4.00 times as long."
    assert line((1.0, 3.0), (1.0, 4.0)) == first
    assert line((1.0, 3.0), (4.0, 1.0), (1.0, 3.0)).endswith(
        "**slow** is fastest in 1 of 3 tables; the next one takes 4.00 times as long."
    )
    assert headline(sections(rows(timed("ours", 1.0)))) == ""


def test_the_ratio_of_each_table_is_in_one_line() -> None:
    larger = [
        *timed("slow", 8.0, 1, 8, vocab_size=2000),
        *timed("ours", 2.0, 1, 8, vocab_size=2000),
    ]
    columns = ratios_sheet(sections(rows([*RECORDS, *larger]))).columns
    sheet = {
        column.heading: dict(zip(columns[0].cells, column.cells, strict=True)) for column in columns
    }
    assert [sheet[name]["slow"] for name in ("stdlib 1,000", "stdlib 2,000")] == [
        "× 3.00",
        "× 4.00",
    ]
    assert [sheet["stdlib 1,000"][name] for name in ("false", "lines")] == [
        "wrong",
        "× 2.00*",
    ]
    assert table(larger)[0]["times the first"] == ["× 1", "× 4.00 (4.00 to 4.00)"]


def test_the_page_and_its_charts_are_made_of_records(tmp_path: Path) -> None:
    place = tmp_path / "records.jsonl"
    stored(place, RECORDS)
    assert main([str(tmp_path)]) == OK
    page = (tmp_path / "README.md").read_text()
    assert (
        "## stdlib, 1,000 tokens\n\n![Seconds of each trainer on stdlib](stdlib-1000.svg)" in page
    )
    assert "AMD EPYC (2 CPUs), 2026-11-21" in page
    assert (tmp_path / "stdlib-1000.svg").exists()
    assert "(profile.svg)" in page
    assert "late" in (tmp_path / "profile.svg").read_text()
    assert re.search(r"python -m harness experiment=board data=stdlib .*vocab_size=1000", page)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"host": "another"}, "host"),
        ({"pattern": "gpt4"}, "pattern"),
        ({"min_count": 2}, "min_count"),
    ],
)
def test_a_table_is_of_one_machine_and_one_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], name: str
) -> None:
    records = [*timed("ours", 1.0), *timed("ours", 0.5, threads=2, **change)]
    stored(tmp_path / "records.jsonl", records)
    assert main([str(tmp_path)]) == USAGE
    assert f"differ in {name}, and a ratio is of one machine" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["records.jsonl"]


@pytest.mark.slow
def test_the_stored_board_is_what_its_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    folder = Path("results/board")
    page, _ = page_of(records_of([str(folder)]), folder)
    assert (folder / "README.md").read_text() == page
