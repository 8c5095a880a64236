"""A cold page cache: the corpus is dropped from memory before each process that is measured, or nothing is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from workbench import cells

from harness.common.errors import Refusal
from harness.measure import process, sandbox
from harness.records.fields import FIELD, cell_of, differences
from harness.runs.jobs import train_job


@pytest.fixture
def read_before(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"ab " * 100_000)
    assert path.read_bytes()
    return path


def is_memory(path: Path) -> bool:
    """Whether the file system of a path is memory itself, so that nothing can be dropped from it."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    mounts = [(len(line[1]), line[2]) for line in lines if path.is_relative_to(line[1])]
    return max(mounts)[1] in ("tmpfs", "ramfs")


def test_a_file_is_dropped_from_memory(read_before: Path) -> None:
    if is_memory(read_before):
        pytest.skip("the tests' folder is in memory")
    assert sandbox.bytes_in_memory(str(read_before)) >= read_before.stat().st_size
    sandbox.drop(str(read_before))
    assert sandbox.bytes_in_memory(str(read_before)) == 0
    with read_before.open("rb") as file:
        assert file.read(1) == b"a"
    assert sandbox.bytes_in_memory(str(read_before)) > 0


def test_a_file_that_stays_in_memory_or_a_system_without_the_call_is_refused(
    read_before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)
    monkeypatch.setattr(sandbox, "SECONDS_BETWEEN_TRIES", 0)
    with pytest.raises(Refusal, match=r"corpus\.txt stays in memory"):
        sandbox.drop(str(read_before))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Refusal, match="needs Linux"):
        sandbox.drop(str(read_before))


@pytest.mark.parametrize("state", ["warm", "cold"])
def test_each_process_of_a_cold_run_drops_the_corpus(
    read_before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    dropped: list[str] = []
    monkeypatch.setattr(process, "drop", dropped.append)
    [cell] = cells("variant=flat_file", f"data.path={read_before}", "vocab_size=258", f"page_cache={state}")
    job = train_job(cell, cell.variant, tmp_path / "words", None)
    answer = process.measure(job, tmp_path / "output", process.Limits())
    assert (answer["status"], answer["page_cache"]) == ("ok", state), answer["reason"]
    assert dropped == ([str(read_before)] if state == "cold" else [])


def test_other_values_are_refused() -> None:
    with pytest.raises(Refusal, match=r"page_cache.*tepid.*warm.*cold"):
        cells("page_cache=tepid")


def test_cold_runs_are_cells_of_their_own_and_old_records_warm_ones() -> None:
    old: dict[str, Any] = {"variant": "flat_file"}
    warm, cold = {**old, "page_cache": "warm"}, {**old, "page_cache": "cold"}
    assert cell_of(old) == cell_of(warm) != cell_of(cold)
    assert [difference.condition for difference in differences(old, cold)] == ["page_cache"]
    words = FIELD["page_cache"].in_words(cold)
    assert words is not None
    assert words.phrase == "page cache cold"
