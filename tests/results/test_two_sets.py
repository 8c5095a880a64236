"""Two sets of records side by side: what matches, what may differ, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from measured import changed, measured, stopped, stored

from harness.common.errors import MISMATCH, USAGE, Refusal
from harness.records.file import Record
from harness.results.two_sets import compared
from harness.table import main

HEAP = measured("heap", 2.0, concurrent=False)
NAIVE = measured("naive", 9.0)
SLOW = stopped("slow", 20.0)
ELSEWHERE = {"host": "11aa22bb", "environment": {"cpu": "Xeon"}}
MACHINE = "host (0123abcd / 11aa22bb) and in cpu (AMD EPYC / Xeon)"
OTHER_BYTES = {"data": {"name": "stdlib", "bytes": 1_000_000, "sha256": "cd" * 32}}
OWT = {"data": {"name": "owt", "bytes": 2_000, "sha256": "ef" * 32}}
TEXT = f"stdlib, 1,000,000 bytes, sha256 {HEAP['data']['sha256'][:8]}"
NOTHING = "have no cell in common to compare: their first rows"


def line_and_notes(left: list[Record], right: list[Record]) -> tuple[dict[str, str], list[str]]:
    """The first line of the table by its headings, and the notes."""
    sheet, _ = compared(left, right, ("old", "new"), allow_different=True)
    return {column.heading: column.cells[0] for column in sheet.columns}, list(sheet.notes)


@pytest.mark.parametrize(
    ("left", "right", "matches", "starts"),
    [
        ([{}, {"threads": 8}, {"threads": 2}], [{"threads": 2}, {}], 2, ["Only left: heap."]),
        ([{}, ELSEWHERE], [{}], 1, ["Only left: heap."]),
        ([{}, {"vocab_size": 7}], [OWT, {}], 1, ["Only left: heap.", "Only right: heap."]),
        ([{}, {"vocab_size": 7}], [{"vocab_size": 7, **ELSEWHERE}, ELSEWHERE], 2, ["Compared al"]),
    ],
)
def test_rows_of_one_cell_are_a_match_and_others_are_alone(
    left: list[dict[str, Any]], right: list[dict[str, Any]], matches: int, starts: list[str]
) -> None:
    old, new = ([changed(HEAP, **change) for change in changes] for changes in (left, right))
    sheet, _ = compared(old, new, ("old", "new"), allow_different=True)
    assert len(sheet.columns[0].cells) == matches
    notes = [note for note in sheet.notes if note.startswith(("Only", "Compared"))]
    assert [note[: len(start)] for note, start in zip(notes, starts, strict=True)] == starts


@pytest.mark.parametrize(
    ("change", "between", "text"),
    [
        (ELSEWHERE, "", MACHINE),
        ({"host": None}, "", "host (0123abcd / not recorded)"),
        ({**ELSEWHERE, **OTHER_BYTES}, "", f"{MACHINE} and in corpus ({TEXT} / "),
        ({"interpreter": "PyPy"}, "", "interpreter (CPython 3.11.7 / PyPy)"),
        ({"concurrent": True}, "", "concurrent (false / true)"),
        ({"vocab_size": 32_000}, NOTHING, "vocab_size (1,000 / 32,000)"),
        ({"params": {"push": "none"}}, NOTHING, "params (without / push=none)"),
        (OWT, NOTHING, f"corpus ({TEXT} / owt, 2,000 bytes, sha256 efefefef)"),
        ({"variant": "naive"}, NOTHING, "variant (heap / naive)"),
    ],
)
def test_sets_that_differ_are_refused_with_both_sides_and_circumstances_may(
    change: dict[str, Any], between: str, text: str
) -> None:
    sets = [HEAP], [changed(HEAP, **change)], ("old", "new")
    with pytest.raises(Refusal) as refused:
        compared(*sets, allow_different=bool(between))
    assert " ".join(filter(None, ["old and new", between, "differ in", text])) in str(refused.value)
    if not between:
        assert refused.value.exit_code == USAGE
        assert str(refused.value).endswith("; --allow-different compares them all the same")
        sheet, _ = compared(*sets, allow_different=True)
        assert sheet.notes[0].startswith(f"Compared although they differ in {text}")


def blocks(seconds: float, run: str = "2026-11-20T09:00:00+00:00", **changes: Any) -> list[Record]:
    """Eight blocks of a run, with a little noise."""
    records = []
    for block in range(8):
        noisy = seconds * (1 + block / 100)
        records.append(measured("heap", noisy, block=block, run_id=run, **changes))
    return records


@pytest.mark.parametrize(
    ("right", "ratio", "notes"),
    [
        (
            blocks(1.5, "2026-11-21T09:00:00+00:00"),
            "1.50",
            ["Not measured in the same blocks, or in too few, so without an interval: heap."],
        ),
        (blocks(1.5), "1.50 (1.50 to 1.50)", []),
        (blocks(1.0), "1.00 (1.00 to 1.00)", ["No difference: heap."]),
    ],
)
def test_a_ratio_has_an_interval_if_both_ran_in_the_same_blocks(
    right: list[Record], ratio: str, notes: list[str]
) -> None:
    line, below = line_and_notes(blocks(1.0), right)
    assert (line["right / left"], below) == (ratio, notes)


def test_different_merges_have_no_ratio_and_set_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = stored(tmp_path / "l.jsonl", [HEAP])
    new = stored(tmp_path / "r.jsonl", [changed(HEAP, merges_sha256="77" * 32)])
    assert main(["--compare", str(old), str(new)]) == MISMATCH
    differ = "≠ left and right learned different merges, so no ratio: heap (abababab, 77777777)."
    assert differ in capsys.readouterr().out

    # of other bytes they may differ
    other = changed(HEAP, merges_sha256="77" * 32, **OTHER_BYTES)
    assert line_and_notes([HEAP], [other])[0]["right / left"] == "1.00"


def test_failures_and_rows_of_one_set_alone_are_named() -> None:
    _, notes = line_and_notes([HEAP, NAIVE, SLOW], [HEAP, SLOW, changed(HEAP, threads=2)])
    failure = "slow: timeout: over limits.wall=20 s, after 100 of 744 merges."
    expected = {f"left: {failure}", f"right: {failure}", "Only left: naive.", "Only right: heap."}
    assert expected <= {*notes}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--compare a b --pivot variant data", "--compare does not go with --pivot"),
        ("--compare a b --format csv", "--compare does not go with --format csv"),
        ("--relative-to heap --format csv", "--relative-to does not go with --format csv"),
        ("--profile --pivot variant data", "--profile does not go with --pivot"),
        ("c --compare a b", "--compare takes the two sets itself"),
        ("--value max", "--value goes with --pivot"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    line: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == USAGE
    assert text in capsys.readouterr().err
