"""Two sets of records are one table if they compare, and a sentence that says how they differ if they do not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from measured import stored

from harness.common.errors import MISMATCH, OK, USAGE, Refusal
from harness.records.file import Record, read_records
from harness.results.rows import rows
from harness.results.views import SideBySide, matched, require_alike
from harness.table import main

FORMS = read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])
HEAP, NAIVE, SLOW = (
    next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive", "slow")
)
ELSEWHERE = {"host": "11aa22bb", "environment": {**HEAP["environment"], "cores": 64}}
OTHER_BYTES = {"data": {**HEAP["data"], "sha256": "cd" * 32}}
OTHER_TEXT = {"data": {**HEAP["data"], "sha256": "ef" * 32, "name": "owt", "bytes": 11_920_511_059}}


def changed(**changes: object) -> Record:
    return {**HEAP, **changes}


def sets_of(left: Sequence[Record], right: Sequence[Record]) -> SideBySide:
    return matched(rows(left), rows(right), ("old", "new"))


def unlike_in(sets: SideBySide) -> list[list[str]]:
    return [[difference.condition for difference in match.differences] for match in sets.matches]


def refusal(left: Sequence[Record], right: Sequence[Record], allowed: Sequence[str] = ()) -> Refusal:
    with pytest.raises(Refusal) as refused:
        require_alike(sets_of(left, right), allowed)
    return refused.value


def test_rows_of_one_cell_are_a_match_and_others_are_alone() -> None:
    both = sets_of([HEAP, changed(variant="naive"), changed(threads=2)], [changed(threads=2), HEAP])
    assert [(match.left.name, match.left.record["threads"]) for match in both.matches] == [("heap", 1), ("heap", 2)]
    assert unlike_in(both) == [[], []]
    assert [row.name for row in both.only_left] == ["naive"]
    alone = sets_of([HEAP, changed(**ELSEWHERE)], [HEAP])
    assert (len(alone.matches), len(alone.only_left)) == (1, 1)
    require_alike(both)
    both = sets_of([HEAP, changed(vocab_size=2000)], [HEAP, changed(vocab_size=4000), changed(**OTHER_TEXT)])
    assert unlike_in(both) == [[]]
    assert [row.record["vocab_size"] for row in both.only_left] == [2000]
    assert [row.record["vocab_size"] for row in both.only_right] == [4000, 1000]


@pytest.mark.parametrize(
    ("change", "condition", "text"),
    [
        (ELSEWHERE, "host", "(2 cores / 64 cores)"),
        ({"host": "11aa22bb"}, "host", f"({HEAP['host']} / 11aa22bb)"),
        ({"host": None}, "host", f"({HEAP['host']} / not recorded)"),
        (OTHER_BYTES, "corpus", "(stdlib, 3,999,812 bytes, sha256 "),
        (OTHER_TEXT, "corpus", "(stdlib, 3,999,812 bytes / owt, 11,920,511,059 bytes)"),
        ({"interpreter": "CPython 3.14.0"}, "python", "(CPython 3.11.7 / CPython 3.14.0)"),
        ({"special_tokens": []}, "special_tokens", "(<|endoftext|> / none)"),
        ({"vocab_size": 32_000}, "vocab_size", "(1,000 / 32,000)"),
        ({"params": {**HEAP["params"], "push": "none"}}, "params", "/ push=none)"),
        ({"limits": {"wall_seconds": 60}}, "limits.wall", "/ 60)"),
        ({"concurrent": True}, "concurrent", "/ true)"),
    ],
)
def test_a_condition_that_differs_is_refused_with_both_sides_and_allowed_by_its_name(
    change: Record, condition: str, text: str
) -> None:
    here = changed(errors="strict", concurrent=False)
    there = {**here, **change}
    refused = refusal([here], [there])
    assert refused.exit_code == USAGE
    assert str(refused).startswith(f"old and new are unlike in {condition} (")
    assert text in str(refused)
    assert str(refused).endswith(f"; --unlike {condition} compares them all the same")
    require_alike(sets_of([here], [there]), [condition])


@pytest.mark.parametrize(
    ("change", "allowed", "text"),
    [
        ({**ELSEWHERE, **OTHER_BYTES}, [], "unlike in host (2 cores / 64 cores) and in corpus ("),
        ({**ELSEWHERE, **OTHER_BYTES}, ["host"], "unlike in corpus ("),
        ({"variant": "naive"}, [], "old and new have nothing in common to compare: one has heap, the other naive"),
        ({}, ["hosts"], "unknown condition 'hosts'; did you mean host? there are: host, corpus"),
    ],
)
def test_what_is_unlike_must_be_allowed(change: Record, allowed: Sequence[str], text: str) -> None:
    assert text in str(refusal([HEAP], [changed(**change)], allowed))


def test_the_nearest_rows_are_a_match() -> None:
    left = [changed(vocab_size=size) for size in (1000, 2000)]
    right = [changed(vocab_size=size, **ELSEWHERE) for size in (2000, 1000)]
    both = sets_of(left, right)
    assert [match.right.record["vocab_size"] for match in both.matches] == [1000, 2000]
    assert unlike_in(both) == [["host"], ["host"]]
    at_2000 = changed(vocab_size=2000)
    assert unlike_in(sets_of([HEAP, at_2000], [HEAP, {**at_2000, **ELSEWHERE}])) == [[], ["host"]]
    assert "unlike in host" in str(refusal([HEAP, at_2000], [HEAP, {**at_2000, **OTHER_BYTES, **ELSEWHERE}]))


def test_a_limit_on_memory_counts_only_if_it_ended_the_row() -> None:
    low, high = ({"memory_bytes": size, "wall_seconds": None} for size in (10**9, 10**10))
    require_alike(sets_of([changed(limits=low)], [changed(limits=high)]))
    ended = {"status": "out_of_memory", "reason": "over limits.memory", "seconds": {}}
    assert "limits.memory" in str(refusal([changed(limits=low, **ended)], [changed(limits=high, **ended)]))
    require_alike(sets_of([changed(threads=None)], [changed(threads=2)]))  # an unknown value is unlike nothing


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


def line_of(text: str, name: str = "heap") -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()


@pytest.mark.parametrize(
    ("runs", "blocks", "factor", "ratio", "note"),
    [
        ("ab", 1, 1.5, ["1.50"], "Not measured in the same blocks, or in too few, so without an interval: heap."),
        ("ab", 8, 1.5, ["1.50"], "Not measured in the same blocks, or in too few, so without an interval: heap."),
        ("aa", 8, 1.5, ["1.50", "(1.50", "to", "1.50)"], ""),
        ("aa", 8, 1.0, ["1.00", "(1.00", "to", "1.00)"], "No difference: heap."),
    ],
)
def test_a_ratio_has_an_interval_if_both_ran_in_the_same_blocks(
    runs: str,
    blocks: int,
    factor: float,
    ratio: list[str],
    note: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    left, right = times(HEAP, 1, runs[0], blocks), times(HEAP, factor, runs[1], blocks)
    assert main(compared(tmp_path, left, right)) == OK
    text = capsys.readouterr().out
    assert text.startswith("left: ")
    assert line_of(text)[5 : 5 + len(ratio)] == ratio
    assert note in text
    assert ("without an interval" in text) == (len(ratio) == 1)


def test_unlike_sets_are_compared_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = times(HEAP, 1, "b", host="11aa22bb", data=OTHER_BYTES["data"])
    arguments = compared(tmp_path, times(HEAP, 1, "a"), there)
    assert main(arguments) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("--unlike host corpus compares them all the same\n")
    for allowed in (["--unlike", "host", "corpus"], ["--unlike"]):
        assert main([*arguments, *allowed]) == OK
        shown = capsys.readouterr().out
        assert all(text in shown for text in ("Compared although unlike in host (", "another task", "host, corpus"))


def test_merges_that_differ_have_no_ratio_and_set_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = times(HEAP, 1, "b", merges_sha256="77" * 32)
    assert main(compared(tmp_path, times(HEAP, 1, "a"), other)) == MISMATCH
    text = capsys.readouterr().out
    assert "≠ 3f2a91bc, 77777777" in text
    assert "≠ left and right learned different merges, so no ratio: heap (3f2a91bc, 77777777)." in text
    assert line_of(text)[5] == "≠"
    other = times(HEAP, 1, "b", merges_sha256="77" * 32, min_count=2)  # of another task they may differ
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
