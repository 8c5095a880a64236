"""Two sets of records side by side: what matches, what may differ, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from measured import changed, stored
from shown import FORMS

from harness.common.errors import MISMATCH, USAGE, Refusal
from harness.records.file import Record
from harness.results.two_sets import compared
from harness.table import main

HEAP, NAIVE, SLOW = (
    next(record for record in FORMS if record["variant"] == name)
    for name in ("heap", "naive", "slow")
)


HERE = HEAP["host"]
ELSEWHERE = {"host": "11aa22bb", "environment": {**HEAP["environment"], "cpu": "Xeon"}}
MACHINE = f"host ({HERE} / 11aa22bb) and in cpu ({HEAP['environment']['cpu']} / Xeon)"
OTHER_BYTES = {"data": {**HEAP["data"], "sha256": "cd" * 32}}
OTHER_TEXT = {"data": {**HEAP["data"], "sha256": "ef" * 32, "name": "owt", "bytes": 11_920_511_059}}
TEXT = f"stdlib, 3,999,812 bytes, sha256 {HEAP['data']['sha256'][:8]}"


@pytest.mark.parametrize(
    ("left", "right", "matches", "alone"),
    [
        (
            [{}, {"variant": "naive"}, {"threads": 2}],
            [{"threads": 2}, {}],
            2,
            ["Only left: naive."],
        ),
        ([{}, ELSEWHERE], [{}], 1, ["Only left: heap."]),
        (
            [{}, {"vocab_size": 2000}],
            [{}, {"vocab_size": 4000}, OTHER_TEXT],
            1,
            ["Only left: heap.", "Only right: "],
        ),
        (
            [{}, {"vocab_size": 2000}],
            [{"vocab_size": 2000, **ELSEWHERE}, ELSEWHERE],
            2,
            ["Compared although they dif"],
        ),
    ],
)
def test_rows_of_one_cell_are_a_match_and_others_are_alone(
    left: list[Record], right: list[Record], matches: int, alone: list[str]
) -> None:
    old, new = ([changed(HEAP, **change) for change in changes] for changes in (left, right))
    sheet, _ = compared(old, new, ("old", "new"), allow_different=True)
    assert len(sheet.columns[0].cells) == matches
    notes = [note for note in sheet.notes if note.startswith(("Only", "Compared"))]
    assert [note.startswith(start) for note, start in zip(notes, alone, strict=True)] == [
        True
    ] * len(alone)


NOTHING = "have no cell in common to compare: their first rows"


@pytest.mark.parametrize(
    ("change", "between", "text"),
    [
        (ELSEWHERE, "", MACHINE),
        ({"host": None}, "", f"host ({HERE} / not recorded)"),
        ({**ELSEWHERE, **OTHER_BYTES}, "", f"{MACHINE} and in corpus ({TEXT} / "),
        ({"interpreter": "CPython 3.14.0"}, "", "interpreter (CPython 3.11.7 / CPython 3.14.0)"),
        ({"concurrent": True}, "", "concurrent (false / true)"),
        ({"vocab_size": 32_000}, NOTHING, "vocab_size (1,000 / 32,000)"),
        (
            {"params": {**HEAP["params"], "push": "none"}},
            NOTHING,
            "params (heap=c, push=all / heap=c, push=none)",
        ),
        (OTHER_TEXT, NOTHING, f"corpus ({TEXT} / owt, 11,920,511,059 bytes, sha256 efefefef)"),
        ({"variant": "naive"}, NOTHING, "variant (heap / naive)"),
    ],
)
def test_sets_that_differ_are_refused_with_both_sides_and_circumstances_may(
    change: dict[str, Any], between: str, text: str
) -> None:
    here, there = changed(HEAP, concurrent=False), changed(HEAP, **{"concurrent": False, **change})
    with pytest.raises(Refusal) as refused:
        compared([here], [there], ("old", "new"), allow_different=bool(between))
    assert str(refused.value).startswith(
        " ".join(filter(None, ["old and new", between, "differ in", text]))
    )
    if not between:
        assert refused.value.exit_code == USAGE
        assert str(refused.value).endswith("; --allow-different compares them all the same")
        sheet, _ = compared([here], [there], ("old", "new"), allow_different=True)
        assert sheet.notes[0].startswith(f"Compared although they differ in {text}")


RUNS = {"a": "2026-11-20T09:00:00+00:00", "b": "2026-11-21T09:00:00+00:00"}


def times(
    record: Record, factor: float, run: str, blocks: int = 1, **changes: object
) -> list[Record]:
    """A record as several blocks of a run have it, at some multiple of its time, a little noise
    added.
    """
    made = []
    for block in range(blocks):
        scale = factor * (1 + block / 100)
        seconds = {
            name: None if spent is None else spent * scale
            for name, spent in record["seconds"].items()
        }
        measured = {
            "seconds": seconds,
            "cpu_seconds": seconds["total"],
            "cpu_wait_seconds": 0.0,
            "run_id": RUNS[run],
        }
        made.append(changed(record, **{**measured, "block": block, "repeat": blocks, **changes}))
    return made


def first_line(
    left: Sequence[Record], right: Sequence[Record], allow_different: bool = False
) -> tuple[dict[str, str], list[str]]:
    """The first line of the table by its headings, and the notes."""
    sheet, _ = compared(left, right, ("old", "new"), allow_different)
    return {column.heading: column.cells[0] for column in sheet.columns}, list(sheet.notes)


@pytest.mark.parametrize(
    ("runs", "factor", "ratio", "notes"),
    [
        (
            "ab",
            1.5,
            "1.50",
            ["Not measured in the same blocks, or in too few, so without an interval: heap."],
        ),
        ("aa", 1.5, "1.50 (1.50 to 1.50)", []),
        ("aa", 1.0, "1.00 (1.00 to 1.00)", ["No difference: heap."]),
    ],
)
def test_a_ratio_has_an_interval_if_both_ran_in_the_same_blocks(
    runs: str, factor: float, ratio: str, notes: list[str]
) -> None:
    line, below = first_line(times(HEAP, 1, runs[0], 8), times(HEAP, factor, runs[1], 8))
    assert (line["right / left"], below) == (ratio, notes)


def test_different_merges_have_no_ratio_and_set_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = times(HEAP, 1, "a")
    new = times(HEAP, 1, "b", merges_sha256="77" * 32)
    paths = [stored(tmp_path / "l.jsonl", old), stored(tmp_path / "r.jsonl", new)]
    assert main(["--compare", *map(str, paths)]) == MISMATCH
    differ = "≠ left and right learned different merges, so no ratio: heap (3f2a91bc, 77777777)."
    assert differ in capsys.readouterr().out
    assert first_line(old, new)[0]["right / left"] == "≠"

    # of other bytes they may differ
    other = times(HEAP, 1, "b", merges_sha256="77" * 32, data=OTHER_BYTES["data"])
    assert first_line(old, other, allow_different=True)[0]["right / left"] == "1.00"


def test_failures_and_rows_of_one_set_alone_are_named() -> None:
    right = [*times(HEAP, 1, "b"), SLOW, *times(HEAP, 2, "b", threads=2)]
    _, notes = first_line([*times(HEAP, 1, "a"), *times(NAIVE, 1, "a"), SLOW], right)
    assert "left: slow: timeout: over limits.wall=20 s, after 311 of 743 merges." in notes
    assert "right: slow: timeout: over limits.wall=20 s, after 311 of 743 merges." in notes
    assert {"Only left: naive.", "Only right: heap."} <= set(notes)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--compare a b --pivot variant data", "--compare does not go with --pivot"),
        ("--compare a b --format csv", "--compare does not go with --format csv"),
        ("--relative-to heap --format csv", "--relative-to does not go with --format csv"),
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
