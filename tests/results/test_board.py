"""python -m harness.board: the rank, what is not ranked and why, and the page with its charts."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from measured import measured, stopped, stored, wrong
from msgspec.structs import replace
from shown import expected, printed

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
    blocks = range(number)
    return [measured(name, phases, block=block, threads=threads, **changes) for block in blocks]


def design(reason: str, **on_own_words: str) -> dict[str, str]:
    return {"kind": "different_by_design", "reason": reason, **on_own_words}


IDENTICAL = {"kind": "identical", "tie_break": "greatest_bytes"}
LATE = {"total_seconds": 180.0, "low_seconds": 120.0, "high_seconds": 300.0}
WRONG = {"kind": "wrong", "reason": "merge 7, 'a'+'b', occurs 1 time, others 2 times"}
RECORDS = [
    *timed("slow", 3.0, identity={**IDENTICAL, "tie_break": "raw_bytes"}),
    *timed("ours", 1.0, identity=IDENTICAL),
    *timed("ours", 0.5, threads=2, identity=IDENTICAL),
    *timed("other", 0.9, identity=design("it reads lines; merge 3 is another")),
    *timed("lines", 2.0, identity=design("lines; x", of_own_words="identical (huggingface)")),
    *timed("unproved", 0.1, identity={"kind": "unproved"}),
    wrong("false", identity=WRONG),
    stopped("late", 60.0),
    stopped("b", 60.0, extrapolated=LATE),
]


LARGER = [*timed("slow", 8.0, 1, 8, vocab_size=2000), *timed("ours", 2.0, 1, 8, vocab_size=2000)]


def test_only_proved_merges_are_ranked_and_each_table_has_its_ratios() -> None:
    board = sections(rows([*RECORDS, *LARGER]))
    sheets = [ratios_sheet(board), *map(sheet_of, board)]
    assert printed(sheets) == expected("board")


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (
            [(1.0, 3.0), (1.0, 4.0)],
            "**ours** is fastest in 2 of 2 tables; the next one takes 3.00 to 4.00 times as long.",
        ),
        (
            [(1.0, 3.0), (4.0, 1.0), (1.0, 3.0)],
            "**slow** is fastest in 1 of 3 tables; the next one takes 4.00 times as long.",
        ),
        ([], ""),
    ],
)
def test_the_headline_says_who_leads_and_by_how_much(
    times: list[tuple[float, float]], sentence: str
) -> None:
    records = [] if times else timed("ours", 1.0)
    for size, (ours, slow) in enumerate(times, 1000):
        records += [*timed("ours", ours, vocab_size=size), *timed("slow", slow, vocab_size=size)]
    assert headline(sections(rows(records))).endswith(sentence)


def test_the_page_and_its_charts_are_made_of_records(tmp_path: Path) -> None:
    stored(tmp_path / "records.jsonl", RECORDS)
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


def test_the_page_names_what_was_drawn_and_how_to_draw_it_again(tmp_path: Path) -> None:
    drawn = timed("ours", 1.0, data="sotu-slice1-20261127")
    for number, record in enumerate(drawn):
        data = replace(record.cell.data, generated={"instance": "slice", "of": "sotu"})
        run = replace(record.run, overrides=["data=sotu", "instances=2", "seed=20261127"])
        drawn[number] = dataclasses.replace(record, cell=replace(record.cell, data=data), run=run)
    page, _ = page_of([*RECORDS, *drawn], tmp_path)
    assert "## sotu-slice1-20261127, 1,000 tokens" in page
    assert "```sh\npython -m harness data=sotu instances=2 seed=20261127\n```" in page
    assert "were [drawn by" not in page_of(RECORDS, tmp_path)[0]
    assert " experiment=board data=sotu vocab_size=1000 " in page_of(drawn, tmp_path)[0]


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
