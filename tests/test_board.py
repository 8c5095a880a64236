"""python -m harness.board: the rank, the verdict that names merges first, and a page that can be seen to be stale."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from measured import Record, measured, stopped, stored, wrong

from harness.board import main
from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE
from harness.records.file import RecordFile
from harness.results.board import Place, headline, ratios_sheet, sections, sheet_of, verdict
from harness.results.rows import rows

REPOSITORY = Path(__file__).parent.parent
SPAN = {"asked": 0.05, "most": 20, "reference": "ours"}


def timed(name: str, seconds: float, threads: int = 1, **changes: Any) -> list[Record]:
    """Three blocks of a trainer; ratios are known to a twentieth."""
    known = {"precision": SPAN}
    return [
        measured(
            name, {"count": seconds * 0.7, "update": seconds * 0.3}, block=block, threads=threads, **known, **changes
        )
        for block in range(3)
    ]


def identity(kind: str, **what: Any) -> dict[str, Any]:
    return {"identity": {"kind": kind, **what}}


RECORDS = [
    *timed("slow", 3.0, **identity("identical", tie_break="raw_bytes")),
    *timed("ours", 1.0, **identity("identical", tie_break="greatest_bytes")),
    *timed("ours", 0.5, threads=2, **identity("identical", tie_break="greatest_bytes")),
    *timed("other", 0.9, **identity("different_by_design", reason="it reads lines; merge 3 is another")),
    *timed("lines", 2.0, **identity("different_by_design", reason="lines", of_own_words="identical (huggingface)")),
    wrong("false", **identity("wrong", reason="merge 7, 'a'+'b', occurs 1 time, others 2 times")),
    stopped("late", 60.0),
]


def verdicts() -> dict[str, str]:
    (section,) = sections(rows(RECORDS))
    return {place.first.name: verdict(place) for place in section.places}


def test_trainers_are_ranked_by_their_best_and_what_cannot_be_ranked_comes_last() -> None:
    (section,) = sections(rows(RECORDS))
    sheet = {column.heading: column.cells for column in sheet_of(section).columns}
    assert sheet["trainer"][:4] == ["ours", "lines", "slow", "other"]
    assert sheet["rank"] == ["1", "2", "3", "-", "-", "-"]
    assert sheet["1 thread"][:4] == ["1.000 s", "2.000 s", "3.000 s", "0.900 s"]
    assert set(sheet["1 thread"][4:]) == {"wrong", ">60 s"}
    assert sheet["2 threads"][0] == "0.500 s"


def test_a_verdict_names_what_is_wrong_first_and_then_where_the_time_goes() -> None:
    told = verdicts()
    assert told["false"].startswith("wrong merges, so that no time counts: merge 7")
    assert told["late"] == "it was stopped at 60 s: at least 60.0 times the time of ours"
    assert (
        told["slow"]
        == "3.00 times the time of ours on 1 thread (3 blocks, too few for an interval); 70 % of it in count"
    )
    assert told["other"].startswith(
        "not ranked, other merges by design: it reads lines; 0.90 times the time of ours on"
    )
    assert told["lines"].endswith("of words of its own, on which its merges are identical (huggingface)")
    assert told["ours"] == "what the others are compared with; 2 threads make it 2.0 times as fast; 70 % of it in count"


def test_what_was_stopped_is_told_with_what_all_of_it_would_take() -> None:
    told = {"total_seconds": 180.0, "low_seconds": 120.0, "high_seconds": 300.0}
    before = {"total_seconds": 90.0, "low_seconds": 90.0, "high_seconds": 90.0, "from": "measured"}
    records = [
        *timed("ours", 1.0),
        stopped("a", 60.0),
        stopped("b", 60.0, extrapolated=told),
        stopped("c", 60.0, extrapolated=before),
    ]
    (section,) = sections(rows(records))
    assert [(place.first.name, verdict(place)) for place in section.places][1:] == [
        ("c", "it was stopped at 60 s; all of it would take about 90 s (90 s to 90 s), 90.0 times the time of ours"),
        (
            "b",
            "it was stopped at 60 s; all of it would take about 3 min (2 min to 5 min), 180 times the time of ours",
        ),
        ("a", "it was stopped at 60 s: at least 60.0 times the time of ours"),
    ]
    ratios = ratios_sheet([section]).columns
    assert dict(zip(ratios[0].cells, ratios[1].cells, strict=True)) == {
        "ours": "1.00",
        "c": "~90.0",
        "b": "~180",
        "a": ">60.0",
    }


def test_only_an_interval_of_the_boards_own_reference_is_told() -> None:
    elsewhere = {**SPAN, "blocks": 3, "low": 1.0, "high": 1.0, "reference": "late"}
    apart = [{**record, "run_id": "another", "precision": elsewhere} for record in timed("apart", 4.0)]
    (section,) = sections(rows([*timed("ours", 1.0), *apart]))
    told = {place.first.name: verdict(place) for place in section.places}
    assert told["apart"].startswith("4.00 times the time of ours on 1 thread (in another run, so without an interval)")


def test_what_threads_gain_is_more_than_the_spread_of_their_times() -> None:
    def told(*seconds: float, **changes: Any) -> str:
        one, more = (
            [measured("ours", {"update": each}, block=block, threads=width, **what) for block, each in enumerate(all_)]
            for width, all_, what in ((1, (1.0, 1.1, 1.2), {}), (2, seconds, changes))
        )
        (section,) = sections(rows([*one, *more]))
        return verdict(section.places[0]).split("; ")[1]

    assert told(0.5, 0.6, 0.7) == "2 threads make it 1.8 times as fast"
    assert told(1.5, 1.6, 1.7) == "2 threads slow it down"
    assert told(0.9, 0.95, 1.05) == told(1.0, 1.1, 1.2) == "no clear gain with 2 threads"
    waited = {"disturbance": {"psi_cpu_seconds": 0.5}}
    assert told(0.5, 0.6, 0.7, **waited) == "with 2 threads it had to wait for a processor"


def test_a_run_that_was_stopped_has_the_name_that_another_run_told() -> None:
    fed: dict[str, Any] = {"feeding": {"program": "gigatoken 0.10.0"}}
    board = sections(
        rows(
            [
                *timed("ours", 1.0),
                *timed("peer_gigatoken", 2.0, **fed),
                *timed("ours", 1.0, vocab_size=9),
                {**stopped("peer_gigatoken", 60.0), "vocab_size": 9},
            ]
        )
    )
    sheet = {column.heading: column.cells for column in ratios_sheet(board).columns}
    assert list(sheet["trainer"]) == ["ours", "gigatoken 0.10.0"]


def test_the_headline_says_who_leads_where_and_by_how_much() -> None:
    def told(*tables: tuple[float, float]) -> str:
        made = [
            record
            for size, (ours, theirs) in enumerate(tables, 1000)
            for record in (*timed("ours", ours, vocab_size=size), *timed("slow", theirs, vocab_size=size))
        ]
        return headline(sections(rows(made)))

    assert (
        told((1.0, 3.0), (1.0, 4.0))
        == "**ours** is fastest in 2 of 2 tables; the next one takes 3.00 to 4.00 times as long."
    )
    assert told((1.0, 3.0), (4.0, 1.0), (1.0, 3.0)).endswith(
        "**slow** is fastest in 1 of 3 tables; the next one takes 4.00 times as long."
    )
    assert headline(sections(rows(timed("ours", 1.0)))) == ""


def test_the_ratio_of_each_table_stands_in_one_line() -> None:
    larger = [*timed("slow", 8.0, vocab_size=2000), *timed("ours", 2.0, vocab_size=2000)]
    sheet = {column.heading: column.cells for column in ratios_sheet(sections(rows([*RECORDS, *larger]))).columns}
    at = list(sheet["trainer"]).index("slow")
    assert [sheet[heading][at] for heading in ("stdlib, 1,000 tokens", "stdlib, 2,000 tokens")] == ["3.00", "4.00"]


def test_a_trainer_without_a_reference_has_a_time_and_no_ratio() -> None:
    (row,) = rows(timed("alone", 2.0))
    assert verdict(Place({1: row}, {})) == "70 % of it in count"


def test_the_page_and_its_pictures_are_made_of_records_and_seen_to_be_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "records.jsonl"
    stored(place, RECORDS)
    assert main([str(tmp_path)]) == OK
    page = (tmp_path / "README.md").read_text()
    assert "## stdlib, 1,000 tokens\n\nMeasured 2026-11-21 on AMD EPYC (2 cores).\n" in page
    assert "![Seconds of each trainer on stdlib](stdlib-1000.svg)" in page
    assert (tmp_path / "stdlib-1000.svg").exists()
    assert re.search(r"python -m harness experiment=board data=stdlib .*vocab_size=1000", page)
    assert main([str(tmp_path), "--check"]) == OK
    RecordFile(tmp_path).append(timed("new", 0.1))
    assert main([str(tmp_path), "--check"]) == MISMATCH
    assert "README.md" in capsys.readouterr().err


def test_a_folder_without_records_is_told_how_to_get_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == UNMEASURED
    assert "python -m harness makes some" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "name"),
    [({"host": "another"}, "host"), ({"pattern": "gpt4"}, "pattern"), ({"min_count": 2}, "min_count")],
)
def test_a_table_is_of_one_machine_and_one_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], name: str
) -> None:
    records = [*timed("ours", 1.0), *timed("ours", 0.5, threads=2, **change)]
    stored(tmp_path / "records.jsonl", records)
    assert main([str(tmp_path)]) == USAGE
    assert f"are unlike in {name}, and a ratio is of one machine" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["records.jsonl"]


@pytest.mark.slow
def test_the_board_that_is_kept_is_what_its_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["results/board", "--check"]) == OK
