"""Two sets of records are one table if they compare, and a sentence that says how they differ if they do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from measured import stored

from harness.common.errors import MISMATCH, OK, USAGE, Refusal
from harness.records.file import Record, read_records
from harness.results.rows import rows
from harness.results.views import matched, side_by_side
from harness.table import main

FORMS = read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])
HEAP, NAIVE, SLOW = (
    next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive", "slow")
)
ELSEWHERE = {"host": "11aa22bb", "environment": {**HEAP["environment"], "cores": 64}}
OTHER_BYTES = {"data": {**HEAP["data"], "sha256": "cd" * 32}}
OTHER_TEXT = {"data": {**HEAP["data"], "sha256": "ef" * 32, "name": "owt", "bytes": 11_920_511_059}}
CPU = HEAP["environment"]["cpu"]
HERE = f"{CPU} ({HEAP['environment']['cores']} cores), {HEAP['host']}"
TEXT = f"stdlib, 3,999,812 bytes, sha256 {HEAP['data']['sha256'][:8]}"


def changed(**changes: object) -> Record:
    return {**HEAP, **changes}


@pytest.mark.parametrize(
    ("left", "right", "matches", "alone"),
    [
        ([{}, {"variant": "naive"}, {"threads": 2}], [{"threads": 2}, {}], ["", ""], 1),
        ([{}, ELSEWHERE], [{}], [""], 1),
        ([{}, {"vocab_size": 2000}], [{}, {"vocab_size": 4000}, OTHER_TEXT], [""], 3),
        ([{}, {"vocab_size": 2000}], [{"vocab_size": 2000, **ELSEWHERE}, ELSEWHERE], ["host", "host"], 0),
    ],
)
def test_rows_of_one_cell_are_a_match_and_others_are_alone(
    left: list[Record], right: list[Record], matches: list[str], alone: int
) -> None:
    sets = matched(rows([changed(**change) for change in left]), rows([changed(**change) for change in right]))
    assert [" ".join(each.field.unlike for each in match.differences) for match in sets.matches] == matches
    assert sum(map(len, sets.alone)) == alone
    assert all(match.left.record["vocab_size"] == match.right.record["vocab_size"] for match in sets.matches)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (ELSEWHERE, f"host ({HERE} / {CPU} (64 cores), 11aa22bb)"),
        ({"host": None}, f"host ({HERE} / not recorded)"),
        (OTHER_BYTES, f"corpus ({TEXT} / "),
        ({**ELSEWHERE, **OTHER_BYTES}, "host ("),
        ({"interpreter": "CPython 3.14.0"}, "python (CPython 3.11.7 / CPython 3.14.0)"),
        ({"concurrent": True}, "concurrent (false / true)"),
    ],
)
def test_circumstances_that_differ_are_refused_with_both_sides_unless_they_may(change: Record, text: str) -> None:
    here, there = changed(concurrent=False), changed(**{"concurrent": False, **change})
    with pytest.raises(Refusal) as refused:
        side_by_side([here], [there], ("old", "new"), unlike=False)
    assert refused.value.exit_code == USAGE
    assert str(refused.value).startswith(f"old and new differ in {text}")
    assert str(refused.value).endswith("; --unlike compares them all the same")
    assert len(side_by_side([here], [there], ("old", "new"), unlike=True).matches) == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"vocab_size": 32_000}, "vocab_size (1,000 / 32,000)"),
        ({"special_tokens": []}, "special_tokens (<|endoftext|> / none)"),
        ({"params": {**HEAP["params"], "push": "none"}}, "params (heap=c, push=all / heap=c, push=none)"),
        (OTHER_TEXT, f"corpus ({TEXT} / owt, 11,920,511,059 bytes, sha256 efefefef)"),
        ({"variant": "naive"}, "heap and naive"),
    ],
)
def test_sets_of_other_cells_are_refused_with_what_differs(change: Record, text: str) -> None:
    with pytest.raises(Refusal) as refused:
        side_by_side([HEAP], [changed(**change)], ("old", "new"), unlike=True)
    assert str(refused.value) == f"old and new have no cell in common to compare: their first rows differ in {text}"


# The command


RUNS = {"a": "2026-11-20T09:00:00+00:00", "b": "2026-11-21T09:00:00+00:00"}


def times(record: Record, factor: float, run: str, blocks: int = 1, **changes: object) -> list[Record]:
    """A record as several blocks of a run have it, at some multiple of its time, a little noise added."""
    made = []
    for block in range(blocks):
        scale = factor * (1 + block / 100)
        seconds = {name: None if spent is None else spent * scale for name, spent in record["seconds"].items()}
        measured = {"seconds": seconds, "cpu_seconds": seconds["total"], "run_id": RUNS[run]}
        made.append({**record, **measured, "block": block, "repeat": blocks, **changes})
    return made


def compared(tmp_path: Path, left: Sequence[Record], right: Sequence[Record], *more: str) -> list[str]:
    return [
        "--compare",
        *(str(stored(tmp_path / name, own)) for name, own in (("l.jsonl", left), ("r.jsonl", right))),
        *more,
    ]


@pytest.mark.parametrize(
    ("runs", "blocks", "factor", "ratio", "note"),
    [
        ("ab", 8, 1.5, "1.50 ", "Not measured in the same blocks, or in too few, so without an interval: heap."),
        ("aa", 8, 1.5, "1.50 (1.50 to 1.50) ", ""),
        ("aa", 8, 1.0, "1.00 (1.00 to 1.00) ", "No difference: heap."),
    ],
)
def test_a_ratio_has_an_interval_if_both_ran_in_the_same_blocks(
    runs: str, blocks: int, factor: float, ratio: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = times(HEAP, 1, runs[0], blocks), times(HEAP, factor, runs[1], blocks)
    assert main(compared(tmp_path, left, right)) == OK
    text = capsys.readouterr().out
    assert text.startswith("left: ")
    assert f" {ratio} " in next(line for line in text.splitlines() if line.startswith("heap "))
    assert note in text
    assert ("without an interval" in text) == (ratio == "1.50 ")


def test_unlike_sets_are_compared_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = times(HEAP, 1, "b", host="11aa22bb", data=OTHER_BYTES["data"])
    arguments = compared(tmp_path, times(HEAP, 1, "a"), there)
    assert main(arguments) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("; --unlike compares them all the same\n")
    assert main([*arguments, "--unlike"]) == OK
    assert "Compared although they differ in host (" in capsys.readouterr().out


def test_merges_that_differ_have_no_ratio_and_set_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = times(HEAP, 1, "b", merges_sha256="77" * 32)
    assert main(compared(tmp_path, times(HEAP, 1, "a"), other)) == MISMATCH
    text = capsys.readouterr().out
    assert "≠ 3f2a91bc, 77777777" in text
    assert "≠ left and right learned different merges, so no ratio: heap." in text
    assert re.search(r"^heap .* s +≠ ", text, re.MULTILINE)
    other = times(HEAP, 1, "b", merges_sha256="77" * 32, data=OTHER_BYTES["data"])  # of other bytes they may differ
    assert main(compared(tmp_path, times(HEAP, 1, "a"), other, "--unlike")) == OK


def test_failures_and_rows_of_one_set_alone_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = [*times(HEAP, 1, "a"), *times(NAIVE, 1, "a"), SLOW]
    right = [*times(HEAP, 1, "b"), SLOW, *times(HEAP, 2, "b", threads=2)]
    assert main(compared(tmp_path, left, right)) == OK
    text = capsys.readouterr().out
    assert "left: slow: timeout: over limits.wall=20 s, after 311 of 743 merges." in text
    assert "right: slow: timeout: over limits.wall=20 s" in text
    assert "Only left: naive." in text
    assert "Only right: heap." in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--compare", "a", "b", "--pivot", "variant", "data"], "--compare does not go with --pivot"),
        (["--compare", "a", "b", "--relative-to", "heap"], "--compare does not go with --relative-to"),
        (["--compare", "a", "b", "--format", "csv"], "--compare does not go with --format csv"),
        (["c", "--compare", "a", "b"], "--compare takes the two sets itself"),
        (["--value", "max"], "--value goes with --pivot"),
        (["--compare", "a"], "expected 2 arguments"),
    ],
)
def test_options_that_exclude_each_other_are_a_usage_error(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE
    assert text in capsys.readouterr().err
