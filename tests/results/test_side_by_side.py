"""Two sets of records are one table where they compare, and a sentence where they do not."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from measured import stored

from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE
from harness.records.file import Record
from harness.records.load import read_records
from harness.table import main

FORMS = read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])
HEAP, NAIVE, SLOW = (
    next(record for record in FORMS if record["variant"] == name) for name in ("heap", "naive", "slow")
)


RUNS = {"a": "2026-11-20T09:00:00+00:00", "b": "2026-11-21T09:00:00+00:00"}


def times(record: Record, factor: float, run: str, blocks: int = 1, **changes: Any) -> list[Record]:
    """A record as several blocks of a run have it, at some multiple of its time, a little noise added."""
    made = []
    for block in range(blocks):
        seconds = {
            name: None if spent is None else spent * factor * (1 + block / 100)
            for name, spent in record["seconds"].items()
        }
        clocked = {
            "seconds": seconds,
            "cpu_seconds": seconds["total"],
            "block": block,
            "repeat": blocks,
            "run_id": RUNS[run],
        }
        made.append({**record, **clocked, **changes})
    return made


def written(path: Path, *records: Sequence[Record]) -> str:
    stored(path, [record for each in records for record in each])
    return str(path)


def compared(tmp_path: Path, left: Sequence[Record], right: Sequence[Record], *further: str) -> list[str]:
    return ["--compare", written(tmp_path / "old.jsonl", left), written(tmp_path / "new.jsonl", right), *further]


def lines(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {line["left_variant"]: line for line in csv.DictReader(io.StringIO(capsys.readouterr().out))}


def test_a_single_run_has_a_plain_ratio_that_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(compared(tmp_path, times(HEAP, 1, "a"), times(HEAP, 1.5, "b"))) == OK
    text = capsys.readouterr().out
    assert text.splitlines()[0].startswith("left: ")
    row = next(line for line in text.splitlines() if line.startswith("heap "))
    assert row.split()[1:6] == ["2.45", "s", "3.68", "s", "1.50"]
    assert "Not measured in the same blocks, or in too few, so without an interval: heap." in text


def test_several_runs_have_a_ratio_without_an_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = compared(tmp_path, times(HEAP, 1, "a", 8), times(HEAP, 1.5, "b", 8))
    assert main([*asked, "--format", "csv"]) == OK
    (line,) = lines(capsys).values()
    assert (line["in"], line["blocks"], line["clock"]) == ("both", "0", "CPU")
    assert float(line["ratio"]) == pytest.approx(1.5)
    assert (line["low"], line["high"]) == ("", "")


def test_blocks_of_one_run_are_compared_within(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = compared(tmp_path, times(HEAP, 1, "a", 8), times(HEAP, 1.5, "a", 8), "--format", "csv")
    assert main(asked) == OK
    (line,) = lines(capsys).values()
    assert line["blocks"] == "8"
    assert [float(line[name]) for name in ("low", "ratio", "high")] == pytest.approx([1.5] * 3)


def test_equal_sets_are_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(compared(tmp_path, times(HEAP, 1, "a", 8), times(HEAP, 1, "a", 8))) == OK
    assert "No difference: heap." in capsys.readouterr().out


def test_unlike_hosts_and_corpora_are_refused_and_named_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = times(HEAP, 1, "b", host="11aa22bb", data={**HEAP["data"], "sha256": "cd" * 32})
    asked = compared(tmp_path, times(HEAP, 1, "a"), there)
    assert main(asked) == USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "are unlike in host (" in said.err
    assert "and in corpus (stdlib, 3,999,812 bytes, sha256 " in said.err
    assert said.err.endswith("--unlike host corpus compares them all the same\n")
    assert main([*asked, "--unlike", "host"]) == USAGE
    assert "unlike in corpus" in capsys.readouterr().err
    for allowed in (["--unlike", "host", "corpus"], ["--unlike"]):
        assert main([*asked, *allowed]) == OK
        shown = capsys.readouterr().out
        assert "Compared although unlike in host (" in shown
        assert "another task" in shown
        assert "host, corpus" in shown


def test_merges_that_differ_have_no_ratio_and_make_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = times(HEAP, 1, "b", merges_sha256="77" * 32)
    assert main(compared(tmp_path, times(HEAP, 1, "a"), other)) == MISMATCH
    text = capsys.readouterr().out
    assert "≠ 3f2a91bc, 77777777" in text
    assert "≠ left and right learned different merges, so no ratio: heap (3f2a91bc, 77777777)." in text
    row = next(line for line in text.splitlines() if line.startswith("heap "))
    assert row.split()[5] == "≠"


def test_every_end_and_every_lone_cell_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = [*times(HEAP, 1, "a"), *times(NAIVE, 1, "a"), SLOW]
    right = [*times(HEAP, 1, "b"), SLOW, *times(HEAP, 2, "b", threads=2)]
    asked = compared(tmp_path, left, right)
    assert main(asked) == OK
    text = capsys.readouterr().out
    assert "left: slow: timeout: over limits.wall=20 s, after 311 of 743 merges." in text
    assert "right: slow: timeout: over limits.wall=20 s" in text
    assert "Only left: naive." in text
    assert "Only right: heap." in text
    assert main([*asked, "--format", "csv"]) == OK
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["in"] for line in table] == ["both", "both", "left", "right"]
    assert [line["left_status"] for line in table] == ["ok", "timeout", "ok", ""]


@pytest.mark.parametrize(("name", "start"), [("t.html", "<!DOCTYPE html>"), ("t.md", "left: "), ("t.csv", "in,")])
def test_it_can_be_had_in_every_format(tmp_path: Path, name: str, start: str) -> None:
    asked = compared(tmp_path, times(HEAP, 1, "a"), times(HEAP, 2, "b"), "--output", str(tmp_path / name))
    assert main(asked) == OK
    assert (tmp_path / name).read_text().startswith(start)


def test_sets_without_records_or_in_common_nothing_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(compared(tmp_path, times(HEAP, 1, "a"), [])) == UNMEASURED
    assert "no records in" in capsys.readouterr().err
    assert main(compared(tmp_path, times(HEAP, 1, "a"), times(NAIVE, 1, "b"))) == UNMEASURED
    assert "have nothing in common to compare: one has heap, the other naive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--compare", "a", "b", "--pivot", "variant", "data"], "--compare does not go with --pivot"),
        (["--compare", "a", "b", "--relative-to", "heap"], "--compare does not go with --relative-to"),
        (["c", "--compare", "a", "b"], "--compare takes the two sets itself"),
        (["--value", "max"], "--value goes with --pivot"),
        (["--unlike", "host"], "--unlike goes with --compare"),
        (["--compare", "a"], "expected 2 arguments"),
    ],
)
def test_what_does_not_go_together_is_answered(asked: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(asked)
    assert ended.value.code == USAGE
    assert told in capsys.readouterr().err
