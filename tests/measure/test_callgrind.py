"""Instructions are counted of the trainer's call and of nothing else, and come out the same
again.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from workbench import HEAP, cell_of, reading_of, run_of, unruly

from harness.common.registry import VariantCard
from harness.measure.callgrind import MOST_LAYOUTS, count_of_call, measure_instructions
from harness.measure.process import ProcessOptions, WorkerLimits
from harness.runs.jobs import train_job
from harness.worker import exchange
from harness.worker.job import Job
from variants.contract import WordCounts

pytestmark = pytest.mark.usefixtures("unruly_trainers")
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="there is no valgrind here"
)


def recorded(
    folder: Path, variant: VariantCard = HEAP, num_merges: int = 10, **others: Any
) -> Mapping[str, Any]:
    """The record of a trainer whose instructions were counted."""
    others.setdefault("limits", WorkerLimits(wall_seconds=120))
    cell = cell_of(reading_of(folder), variant, num_merges, **others)
    return run_of(folder, [cell], kind="instructions").records()[-1]


@pytest.mark.parametrize(
    ("accounts", "count"),
    [
        ({"7.1": 5, "7.2": 302, "7": 6}, 302),
        ({"7": 6}, "has not seen the call begin once"),
        ({"7": 6, "7.1": 5, "7.2": 300, "7.3": 20}, "a trainer cannot call ctermid"),
        ({"7.1": 5, "7.2": 302, "7": 6, "8": 6}, "several processes"),
    ],
)
def test_the_call_is_between_marks_of_one_process(
    tmp_path: Path, accounts: dict[str, int], count: int | str
) -> None:
    for name, total in accounts.items():
        account = f"version: 1\nevents: Ir\nfn=(1) main\n0 {total}\n\ntotals: {total}\n"
        (tmp_path / f"callgrind.{name}").write_text(account)
    if isinstance(count, int):
        assert count_of_call(tmp_path) == count
    else:
        with pytest.raises(ValueError, match=count):
            count_of_call(tmp_path)


@pytest.mark.parametrize(
    ("valgrind", "threads", "message"),
    [
        (None, 1, "apt-get install valgrind"),
        ("valgrind", 2, "instructions are counted with threads=1 only"),
    ],
)
def test_what_cannot_be_counted_is_skipped_with_a_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    valgrind: str | None,
    threads: int,
    message: str,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: valgrind)
    answer: Any = measure_instructions(
        Job("train", "a:b", {}, threads), tmp_path / "output", WorkerLimits()
    )
    assert (answer.status, answer.reason.endswith(message)) == ("skipped", True)


@needs_valgrind
@pytest.mark.slow
def test_a_count_comes_out_the_same_again_with_merges_and_tallies_and_without_times(
    tmp_path: Path,
) -> None:
    """Python alone takes over a hundred million instructions, a few merges of a few words less than
    one.
    """
    first, second, without_merges = (
        recorded(tmp_path),
        recorded(tmp_path),
        recorded(tmp_path, num_merges=0),
    )
    one, other, none = (
        record["instructions"]["count"] for record in (first, second, without_merges)
    )
    assert one == pytest.approx(other, rel=1e-4)
    assert 0 < none < one < 20_000_000
    assert first["tallies"] == second["tallies"] != {}
    assert first["merges_sha256"] == second["merges_sha256"] is not None
    assert first["status"] == second["status"] == "ok"
    assert first["identity"]["kind"] == "identical"
    assert set(first["seconds"].values()) == {None}
    assert first["cpu_seconds"] is first["peak_rss_bytes"] is None
    assert first["instructions"]["tool"].startswith("callgrind of valgrind")
    assert first["instructions"]["path"]


@pytest.mark.slow
@needs_valgrind
def test_a_trainer_that_fails_under_callgrind_is_a_record_like_any_other(tmp_path: Path) -> None:
    raised = recorded(tmp_path, unruly("raises"))
    assert (raised["status"], raised["instructions"]) == ("error", None)
    assert raised["reason"].startswith("LookupError: nothing here")
    late = recorded(tmp_path, unruly("hangs"), limits=WorkerLimits(wall_seconds=0.5))
    assert (late["status"], late["instructions"]) == ("timeout", None)


@pytest.mark.slow
@needs_valgrind
def test_layouts_move_what_a_trainer_keeps_in_memory(tmp_path: Path) -> None:
    variant, words = unruly("steps_by_address"), tmp_path / "words"
    exchange.write_words(words, WordCounts.from_items([(b"hug", 10), (b"pug", 5), (b"hugs", 5)]))
    job = train_job(cell_of(reading_of(tmp_path), variant, 2), variant, words)
    counts = []
    for layout in (0, 1, MOST_LAYOUTS - 1):
        answer: Any = measure_instructions(
            job,
            tmp_path / str(layout),
            WorkerLimits(wall_seconds=120),
            options=ProcessOptions(layout=layout),
        )
        assert answer.status == "ok", answer
        counts.append(answer.instructions["count"])
    assert len(set(counts)) == 3
    assert max(counts) > 1.005 * min(counts)
