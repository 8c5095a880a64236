"""A comparison with outside trainers: what each was given, its class, and no ratio where the work was another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shown import to_csv, to_markdown

from harness.common.errors import MISMATCH, OK
from harness.records.file import RecordFile
from harness.results.fairness import incomparable, outside
from harness.results.rows import Row, rows
from harness.table import exit_code, main

FED = {
    "program": "program 1",
    "way_in": "train, the file",
    "pre_tokens": "itself",
    "special_tokens": "cut out before",
    "ties": "the first",
    "by_design": None,
}


def record(name: str, seconds: float = 1.0, **others: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "cell": "train",
        "run_key": name,
        "status": "ok",
        "reason": None,
        "variant": name,
        "params": {},
        "counting": "itself",
        "threads": 1,
        "takes_threads": True,
        "data": {"name": "text", "sha256": "ab" * 32, "bytes": 1000, "words": 10},
        "pattern": "gpt2",
        "special_tokens": ["<|e|>"],
        "errors": "strict",
        "tie_break": "greatest_bytes",
        "min_count": 1,
        "vocab_size": 300,
        "merges": 43,
        "merges_sha256": "cd" * 32,
        "identity": {"kind": "identical", "tie_break": "greatest_bytes", "reason": None},
        "feeding": FED,
        "seconds": {"other": seconds, "total": seconds},
        "cpu_seconds": seconds,
        "peak_rss_bytes": 10**6,
        "host": "here",
        "started": "2026-01-01T09:00:00+00:00",
        "run_id": "2026-01-01T09:00:00+00:00",
    }
    return {**known, **others}


BASE = record("base")
DESIGNED = record(
    "other",
    identity={"kind": "different_by_design", "tie_break": None, "reason": "it merges syllables; merge 1 is rare"},
    merges=20,
    tie_break="own",
)


def row(**others: Any) -> Row:
    (made,) = rows([record("row", **others)])
    return made


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({}, None),
        ({"tie_break": "raw_bytes"}, None),
        ({"threads": 2}, None),
        ({"vocab_size": 400, "merges": 143}, "another vocabulary"),
        ({"pattern": "line"}, "another pattern"),
        ({"special_tokens": []}, "other special tokens"),
        ({"errors": "replace"}, "errors treated otherwise"),
        ({"min_count": 2}, "another min_count"),
        ({"merges": 40}, "40 merges, not 43"),
        ({"identity": {"kind": "different_by_design", "tie_break": None, "reason": "why"}}, "different by design"),
    ],
)
def test_only_the_same_work_is_compared(others: dict[str, Any], why: str | None) -> None:
    assert incomparable(row(**others), row()) == why


def test_both_may_have_come_to_the_end_of_all_pairs() -> None:
    assert incomparable(row(merges=40), row(merges=41)) is None


def test_a_ratio_is_refused_with_its_reason() -> None:
    table = to_markdown([BASE, record("peer", 3.0), DESIGNED], relative_to="base")
    lines = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("| ")}
    assert "| 3.00 |" in lines["peer"]
    assert "| not comparable |" in lines["other"]
    assert "- Not comparable with base, which did other work (different by design): other." in table
    assert "it merges syllables; merge 1 is rare" in table


def test_a_row_of_other_special_tokens_has_a_table_of_its_own_without_ratios() -> None:
    own, other = to_markdown([BASE, record("peer", 3.0, special_tokens=[])], relative_to="base").split(
        "special tokens none"
    )
    assert "| total / base |" in own
    assert "peer" not in own
    assert "| peer |" in other
    assert "total / base" not in other


def test_no_paired_ratio_of_other_work_reaches_another_program() -> None:
    blocks = [{**each, "block": block, "run_id": "run"} for each in (BASE, DESIGNED) for block in range(7)]
    header, base, other = to_csv(blocks, relative_to="base").splitlines()
    place = header.split(",").index("paired_ratio")
    assert base.split(",")[place] == ""
    assert '"different_by_design"' in other or "different_by_design" in other
    assert "CPU" not in other.split(",")[-4:]


def test_what_does_other_work_is_not_ranked() -> None:
    table = to_markdown(
        [BASE, record("peer", 3.0), {**DESIGNED, "seconds": {"other": 0.5, "total": 0.5}}], sort="total"
    )
    names = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert names[:5] == ["variant", "base", "peer", "other", "given to"][: len(names)]
    assert "cannot rank" not in to_markdown([BASE, {**DESIGNED, "seconds": {"other": 1.01, "total": 1.01}}])


def test_the_table_shows_what_each_was_given() -> None:
    table = to_markdown([BASE, record("ours", feeding=None, identity=None), record("peer", threads=2)])
    given = table[table.index("| given to") :]
    assert "| base, 1 thread | program 1 | train, the file | itself | cut out before | the first |" in given
    assert "| ours, 1 thread | - | - | - | - | - |" in given
    assert "| peer, 2 threads |" in given
    assert "| identical |" in table
    assert "identical: each merge is the defined one; the tie-break is in parentheses unless it is" in table


def test_who_was_ended_before_it_could_tell_is_told_by_its_other_rows() -> None:
    ended: dict[str, Any] = {
        "status": "timeout",
        "reason": "over",
        "feeding": None,
        "identity": None,
        "takes_threads": None,
    }
    other_text = {"name": "other", "sha256": "ef" * 32}
    table = to_markdown([BASE, record("base", **ended, data=other_text), record("never", **ended)])
    given = table[table.index("| given to") :]
    assert given.count("| base") == 1
    assert "| never | - | - | - | - | - |" in given


def test_a_table_of_our_own_has_none_of_it() -> None:
    own = record("ours", feeding=None, identity=None)
    assert not outside(rows([own]))
    table = to_markdown([own])
    assert "identical:" not in table
    assert "given to" not in table


def test_wrong_merges_are_told_with_the_counts() -> None:
    reason = "merge 7, 'a'+'b', occurs once, others 2 times"
    wrong = {"kind": "wrong", "tie_break": None, "reason": reason, "merge": 7}
    table = to_markdown([record("peer", status="mismatch", identity=wrong)])
    assert f"peer: its merges are wrong, so no time is shown: {reason}." in table
    assert "| wrong at merge 7 |" in table


def test_up_to_ties_is_told_with_both_pairs() -> None:
    identity = {
        "kind": "identical_up_to_ties",
        "tie_break": None,
        "reason": "9 of its merges are choices among equals",
        "merge": 3,
        "got": ["61", "62"],
        "want": ["63", "64"],
        "got_count": 5,
        "want_count": 5,
    }
    peer = record("peer", identity=identity, tie_break="own")
    table = to_markdown([BASE, peer], relative_to="base")
    assert "merge 3 is 'a'+'b' where another is 'c'+'d', 5 each." in table
    assert "| identical up to ties |" in table
    assert "| 1.00 |" in table


def test_a_variant_that_is_known_to_be_wrong_leaves_the_exit_code_to_the_others() -> None:
    wrong = {"kind": "wrong", "tie_break": None, "reason": "merge 7 is rare"}
    bad = [record(name, status="mismatch", identity=wrong) for name in ("one", "two")]
    assert exit_code([BASE, bad[0]]) == MISMATCH
    assert exit_code([BASE, bad[0]], ["one"]) == OK
    assert exit_code([BASE, *bad], ["one"]) == MISMATCH


def test_the_command_is_told_who_is_known_to_be_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    identity = {"kind": "wrong", "tie_break": None, "reason": "it is rare"}
    wrong = record("one", status="mismatch", reason="it is rare", identity=identity)
    RecordFile(tmp_path).append([BASE, wrong])
    assert main([str(tmp_path)]) == MISMATCH
    assert main([str(tmp_path), "--known-wrong", "one,two"]) == OK
    assert "its merges are wrong" in capsys.readouterr().out
