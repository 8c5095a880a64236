"""Two sets of records side by side: what matches, what may differ, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from measured import changed, measured, stopped, stored
from shown import expected, printed

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


def blocks(seconds: float, run: str = "2026-11-20T09:00:00+00:00", **changes: Any) -> list[Record]:
    """Eight blocks of a run, with a little noise."""
    records = []
    for block in range(8):
        noisy = seconds * (1 + block / 100)
        records.append(measured("heap", noisy, block=block, run_id=run, **changes))
    return records


TWO_THREADS = changed(HEAP, threads=2)
SMALL = changed(HEAP, vocab_size=300, merges=44)
OTHER_MERGES = changed(HEAP, merges_sha256="77" * 32)
CASES: dict[str, tuple[list[Record], list[Record]]] = {
    "cells_in_another_order": ([HEAP, changed(HEAP, threads=8), TWO_THREADS], [TWO_THREADS, HEAP]),
    "one_cell_twice": ([HEAP, changed(HEAP, **ELSEWHERE)], [HEAP]),
    "only_on_one_side": ([HEAP, SMALL], [changed(HEAP, **OWT), HEAP]),
    "elsewhere": ([HEAP, SMALL], [changed(SMALL, **ELSEWHERE), changed(HEAP, **ELSEWHERE)]),
    "of_two_runs": (blocks(1.0), blocks(1.5, "2026-11-21T09:00:00+00:00")),
    "within_blocks": (blocks(1.0), blocks(1.5)),
    "no_difference": (blocks(1.0), blocks(1.0)),
    "different_merges": ([HEAP], [OTHER_MERGES]),
    # of other bytes they may differ
    "different_merges_of_other_bytes": ([HEAP], [changed(OTHER_MERGES, **OTHER_BYTES)]),
    "failures": ([HEAP, NAIVE, SLOW], [HEAP, SLOW, TWO_THREADS]),
}


@pytest.mark.parametrize("name", CASES)
def test_two_sets_are_side_by_side_as_in_the_file(name: str) -> None:
    left, right = CASES[name]
    sheet, is_bad = compared(left, right, ("old", "new"), allow_different=True)
    assert printed([sheet]) == expected(f"compare_{name}")
    assert is_bad == (name == "different_merges")


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


def test_different_merges_set_the_exit_code(tmp_path: Path) -> None:
    old = stored(tmp_path / "l.jsonl", [HEAP])
    new = stored(tmp_path / "r.jsonl", [OTHER_MERGES])
    assert main(["--compare", str(old), str(new)]) == MISMATCH


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
