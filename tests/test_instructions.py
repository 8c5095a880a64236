"""Instructions are counted of the trainer's call and of nothing else, and come out the same again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from workbench import HEAP, TESTS, cell_of, reading_of, settings_for, unruly

from harness.instructions import count_of_call, measure_instructions
from harness.measure import Limits
from harness.registry import VariantCard
from harness.schedule import Run
from harness.settings import Preset

INSTRUCTIONS = Preset("instructions", "instructions")
needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind here")


def account(folder: Path, name: str, total: int) -> None:
    """A file as callgrind leaves it."""
    (folder / f"callgrind.{name}").write_text(f"version: 1\nevents: Ir\nfn=(1) main\n0 {total}\n\ntotals: {total}\n")


def recorded(folder: Path, variant: VariantCard = HEAP, num_merges: int = 10, **others: Any) -> Mapping[str, Any]:
    """The record of a trainer whose instructions were counted."""
    others.setdefault("limits", Limits(wall_seconds=120))
    cell = cell_of(reading_of(folder), variant, num_merges, **others)
    run = Run([cell], settings_for(folder, measure=INSTRUCTIONS), Path(tempfile.mkdtemp(dir=folder)))
    run.measure_all()
    run.prove()
    return run.records()[-1]


def test_the_call_is_what_lies_between_the_marks_without_the_thread_that_listens(tmp_path: Path) -> None:
    for name, total in {"7.1-01": 5, "7.2-01": 300, "7.2-02": 40, "7.2-03": 2, "7-01": 6, "7": 0}.items():
        account(tmp_path, name, total)
    assert count_of_call(tmp_path) == 302


def test_several_processes_or_no_marks_are_no_count(tmp_path: Path) -> None:
    account(tmp_path, "7-01", 6)
    with pytest.raises(ValueError, match="has not seen the call begin once"):
        count_of_call(tmp_path)
    account(tmp_path, "7.1-01", 5)
    account(tmp_path, "7.2-01", 300)
    account(tmp_path, "7.3-01", 20)
    with pytest.raises(ValueError, match="a trainer cannot call ctermid"):
        count_of_call(tmp_path)
    account(tmp_path, "8-01", 6)
    with pytest.raises(ValueError, match="several processes"):
        count_of_call(tmp_path)


def test_without_valgrind_the_reason_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    record = recorded(tmp_path)
    assert record["status"] == "skipped"
    assert record["reason"].endswith("apt-get install valgrind")
    assert record["instructions"] is None


def test_several_threads_are_skipped(tmp_path: Path) -> None:
    answer = measure_instructions({"threads": 2}, tmp_path / "output", Limits(), lambda _: None)
    assert answer["status"] == "skipped"
    assert "threads=1" in answer["reason"]


@needs_valgrind
def test_a_count_comes_out_the_same_again_with_merges_and_tallies_and_without_times(tmp_path: Path) -> None:
    first, second = recorded(tmp_path), recorded(tmp_path)
    counts = [record["instructions"]["count"] for record in (first, second)]
    assert counts[0] == pytest.approx(counts[1], rel=1e-4)
    assert first["tallies"] == second["tallies"] != {}
    assert first["merges_sha256"] == second["merges_sha256"] is not None
    assert first["status"] == second["status"] == "ok"
    assert first["proof"]["state"] in ("reference", "confirmed")
    assert set(first["seconds"].values()) == {None}
    assert first["cpu_seconds"] is first["peak_rss_bytes"] is None
    assert first["instructions"]["tool"].startswith("callgrind of valgrind")
    assert first["instructions"]["path"]


@pytest.mark.slow
@needs_valgrind
def test_the_start_of_python_is_not_in_the_count_and_every_merge_is(tmp_path: Path) -> None:
    """Python alone takes over a hundred million instructions, a few merges of a few words less than one."""
    none, some = (recorded(tmp_path, num_merges=merges)["instructions"]["count"] for merges in (0, 10))
    assert 0 < none < some < 20_000_000


@pytest.mark.slow
@needs_valgrind
def test_a_trainer_that_fails_under_callgrind_is_a_record_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    raised = recorded(tmp_path, unruly("raises"))
    assert (raised["status"], raised["instructions"]) == ("error", None)
    assert raised["reason"].startswith("LookupError: nothing here")
    late = recorded(tmp_path, unruly("hangs"), limits=Limits(wall_seconds=0.5))
    assert (late["status"], late["instructions"]) == ("timeout", None)
