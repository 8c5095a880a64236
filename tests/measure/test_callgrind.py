"""Instructions are counted of the trainer's call and of nothing else, and come out the same
again.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rows import Row, each_row
from workbench import HEAP, cell_of, reading_of, recorded_run, unruly

from harness.common.registry import VariantCard
from harness.measure.process import (
    MOST_LAYOUTS,
    ProcessOptions,
    WorkerLimits,
    count_of_call,
    measure_instructions,
)
from harness.runs.jobs import train_job
from harness.worker import exchange
from harness.worker.exchange import Job
from variants.contract import WordCounts

pytestmark = pytest.mark.usefixtures("unruly_trainers")
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="there is no valgrind here"
)
LIMITS = WorkerLimits(wall_seconds=120)


@each_row(__file__, "accounts.toml")
def test_the_call_is_between_marks_of_one_process(tmp_path: Path, row: Row) -> None:
    for name, total in row["accounts"].items():
        account = f"version: 1\nevents: Ir\nfn=(1) main\n0 {total}\n\ntotals: {total}\n"
        (tmp_path / f"callgrind.{name}").write_text(account)
    try:
        counted = str(count_of_call(tmp_path))
    except ValueError as error:
        counted = str(error)
    assert counted == row["counted"]


def test_what_cannot_be_counted_is_skipped_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "counting instructions needs valgrind; install it with: apt-get install valgrind"
    threads = "callgrind runs one thread at a time, so instructions are counted with threads=1 only"
    for valgrind, number, reason in ((None, 1, missing), ("valgrind", 2, threads)):
        monkeypatch.setattr(shutil, "which", lambda _, found=valgrind: found)
        job = Job("train", "a:b", {}, number)
        answer: Any = measure_instructions(job, tmp_path / str(number), LIMITS)
        assert (answer.status, answer.reason) == ("skipped", reason)


def recorded(
    folder: Path, variant: VariantCard = HEAP, num_merges: int = 10, limits: WorkerLimits = LIMITS
) -> Mapping[str, Any]:
    """The record of a trainer whose instructions were counted."""
    cell = cell_of(reading_of(folder), variant, num_merges, limits=limits)
    return recorded_run(folder, [cell], kind="instructions").records()[-1]


@needs_valgrind
@pytest.mark.slow
def test_count_comes_out_the_same_again_with_merges_and_tallies_and_without_times(
    tmp_path: Path,
) -> None:
    """Python alone takes over a hundred million instructions, a few merges of a few words less than
    one.
    """
    first, second = recorded(tmp_path), recorded(tmp_path)
    without_merges = recorded(tmp_path, num_merges=0)
    count = first["instructions"]["count"]
    assert count == pytest.approx(second["instructions"]["count"], rel=1e-4)
    assert 0 < without_merges["instructions"]["count"] < count < 20_000_000
    assert first["instructions"]["tool"].startswith("callgrind of valgrind")
    assert first["instructions"]["path"]

    assert (first["status"], first["identity"]["kind"]) == ("ok", "identical")
    assert (first["tallies"], first["merges_sha256"]) == (
        second["tallies"],
        second["merges_sha256"],
    )
    assert first["tallies"]
    assert {*first["seconds"].values(), first["cpu_seconds"], first["peak_rss_bytes"]} == {None}

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
    job = train_job(cell_of(reading_of(tmp_path), variant, 2), words)
    counts = []
    for layout in (0, 1, MOST_LAYOUTS - 1):
        options = ProcessOptions(layout=layout)
        answer: Any = measure_instructions(job, tmp_path / str(layout), LIMITS, options=options)
        assert answer.status == "ok", answer
        counts.append(answer.instructions["count"])
    assert len(set(counts)) == 3
    assert max(counts) > 1.005 * min(counts)
