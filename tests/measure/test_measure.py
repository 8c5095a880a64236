"""One measurement survives what it measures, reports what happened, and believes no answer that is
contradicted.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rows import rows_beside
from unruly import SPINS, answer_text
from workbench import BRIEF, CHECKOUT, SUPPORT, first_fast, is_running, limits_wait, wait_until

from harness.common.ending import exit_code_of
from harness.measure import process
from harness.measure.process import WorkerLimits, measure
from harness.measure.watched_process import Turns
from harness.measure.witness import BrokenAnswer, read_answer
from harness.worker import exchange
from harness.worker.calling import expect_merges
from harness.worker.exchange import packed, unpacked
from harness.worker.job import Job, written
from variants.contract import Corpus, TieBreak, WordCounts
from variants.heap import train

pytestmark = pytest.mark.xdist_group("one after the other")
WORDS = WordCounts.from_items(
    [(b"low", 5), (b"lower", 2), (b"widest", 3), (b"newest", 6), (b"\x00\xff\x00\xff", 2)]
)
NUM_MERGES = 8
MERGES = train(WORDS, NUM_MERGES)
Measure = Callable[..., tuple[Any, Path]]
slow = pytest.mark.slow


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measures a trainer or counter of unruly.py (or any target); returns its answer and folder."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_CHILD", str(tmp_path / "child"))
    exchange.write_words(tmp_path / "words", WORDS)
    (tmp_path / "text").write_text("low low lower")
    training = {
        "words": str(tmp_path / "words"),
        "num_merges": NUM_MERGES,
        "tie_break": "greatest_bytes",
    }
    corpus = Corpus(str(tmp_path / "text"), (), "[a-z]+", partial=True)

    def run(target: str, limits: WorkerLimits | None = None, **others: Any) -> tuple[Any, Path]:
        counts = target.startswith("counter_")
        what = {"corpus": corpus} if counts else training
        target = target if ":" in target else f"unruly:{target}"
        job = Job("count" if counts else "train", target, {}, **{**what, **others})
        return measure(
            job, tmp_path / "output", limits or WorkerLimits(wall_seconds=30)
        ), tmp_path / "output"

    return run


@pytest.mark.parametrize("row", rows_beside(__file__, "tricks.toml"))
def test_every_trick_has_its_outcome(
    measured: Measure, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    # a process that cannot write what is buffered ends otherwise
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    answer, output = measured(row["title"], **row.get("job", {}))
    assert answer.status == row["status"], answer
    assert re.fullmatch(row.get("reason", "None"), str(answer.reason))

    for name, least in row.get("over", {}).items():
        assert getattr(answer, name) > least, answer
    assert answer.cpu_seconds is None or answer.cpu_seconds < 10
    assert row.get("printed", "") in answer.stderr_tail
    assert len(answer.stderr_tail) <= 2000

    if answer.status == "ok":
        assert unpacked((output / "merges").read_bytes()) == MERGES
    elif answer.status == "error":
        assert list(output.iterdir()) == []


@pytest.mark.parametrize(("rejections", "status"), [(1, "ok"), (2, "rejected")])
def test_a_rejected_job_runs_once_more(
    measured: Measure, monkeypatch: pytest.MonkeyPatch, rejections: int, status: str
) -> None:
    verdicts = iter(["it used too much"] * rejections)
    monkeypatch.setattr(
        "harness.measure.process.ProcessAccount.check", lambda *_: next(verdicts, None)
    )
    answer, output = measured("takes_two")
    assert answer.status == status
    assert next(verdicts, None) is None
    assert unpacked((output / "merges").read_bytes()) == MERGES


class LazyPair(tuple[bytes, bytes]):
    """A pair that could do the work when it is read."""


class LazyBytes(bytes):
    """A token that could do so."""


@pytest.mark.parametrize(
    "wrong",
    [
        ("a", "b"),
        (b"a", b"b", b""),
        (bytearray(b"a"), b"b"),
        b"ab",
        {b"a": 1, b"b": 2},
        "x" * 10_000,
        LazyPair((b"a", b"b")),
        (LazyBytes(b"a"), b"b"),
    ],
)
def test_a_merge_is_a_plain_pair_of_plain_bytes(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^merge 2 is .{,220}; only a plain tuple of two plain bytes is a merge$"
    ):
        expect_merges([(b"a", b"b"), wrong])


def hole(path: Path) -> None:
    """A file of four terabytes that takes no room."""
    os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 4 << 40)


@pytest.mark.parametrize(
    ("answer", "merges", "message"),
    [
        (b"\xff\x00 garbage", b"", "Expecting value"),
        (b'{"status": "ok", "reason": null}', b"", "missing required field"),
        (answer_text().replace("0.001", "NaN"), b"", "Expected `float`.*total"),
        (
            answer_text().replace('"tallies": {}', '"tallies": {"pops": -3}'),
            b"",
            "Expected `int` >= 0.*tallies",
        ),
        (answer_text().replace(": 8", f": {10**400}"), b"", "merges_done`"),
        *(
            (answer_text().replace('"total"', f'"{seen}": 0, "total"'), b"", f"field `{seen}`")
            for seen in ("cpu_seconds", "witness", "sha256", "words")
        ),
        (lambda path: path.symlink_to("/dev/zero"), b"", "answer.json is not a plain file"),
        (answer_text(), packed(MERGES[:-1]), "7 merges, not 8"),
        (answer_text(), os.mkfifo, "merges is not a plain file"),
        (answer_text(), hole, "merges has 4398046511104 bytes"),
    ],
)
def test_an_answer_and_its_merges_must_be_whole(
    tmp_path: Path, answer: Any, merges: Any, message: str
) -> None:
    put(tmp_path / "answer.json", answer)
    put(tmp_path / "merges", merges)
    with pytest.raises(BrokenAnswer, match=message):
        read_answer(tmp_path, 8)


def put(path: Path, content: Any) -> None:
    """Write a text or bytes, or have something else made there."""
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


# WorkerLimits


@pytest.mark.parametrize(
    ("trainer", "made"), [("hangs_after_some_merges", 5), ("stops_on_request", 3)]
)
def test_a_trainer_over_its_time_is_stopped_with_the_merges_made_so_far(
    measured: Measure, monkeypatch: pytest.MonkeyPatch, trainer: str, made: int
) -> None:
    limits_wait(monkeypatch, lambda done: done == made)
    answer, output = measured(trainer, BRIEF)
    assert (answer.status, answer.merges_done) == ("timeout", made)
    assert answer.reason == "over limits.wall=0.3 s"
    assert unpacked((output / "merges").read_bytes()) == MERGES[:made]


NEVER_END = "hangs_and_will_not_be_ended", "hangs_with_every_descriptor_closed"
ENDLESS = (*NEVER_END, "prints_without_end", "talks_without_end")


@pytest.mark.parametrize("trainer", first_fast(["early_learners:sleepy", *ENDLESS]))
def test_a_limit_on_time_holds_whatever_a_trainer_does(measured: Measure, trainer: str) -> None:
    seconds = 0.001 if trainer == "early_learners:sleepy" else 0.8
    answer, output = measured(trainer, WorkerLimits(wall_seconds=seconds))
    assert answer.status == "timeout" or (answer.status, trainer) == (
        "rejected",
        "talks_without_end",
    )
    assert answer.status == "rejected" or answer.reason == f"over limits.wall={seconds:g} s"
    assert len(answer.stderr_tail) <= 2000
    assert sum(file.stat().st_size for file in output.iterdir()) < 1000
    if trainer == "early_learners:sleepy":  # its call has not begun
        assert (answer.total, answer.seconds, answer.merges_done) == (None, {}, None)
    if trainer == "hangs_and_will_not_be_ended":
        assert answer.peak_rss_bytes > 0  # as the parent saw it


@pytest.mark.parametrize(
    "trainer", ["lets_children_allocate", "allocates_without_end", "allocates_at_once"]
)
def test_a_trainer_over_its_memory_is_ended(measured: Measure, trainer: str) -> None:
    answer, _ = measured(trainer, WorkerLimits(wall_seconds=30, memory_bytes=100_000_000))
    by_itself = "an allocation failed under the memory limit"
    held = "its processes held more than limits.memory=100000000 (100 MB); raise limits.memory"
    reason = by_itself if trainer == "allocates_at_once" else held
    assert (answer.status, answer.reason) == ("out_of_memory", reason)
    assert answer.memory_is_sampled is True


# Nothing is left: no process, no file


def started_in(folder: Path) -> list[int]:
    """The processes whose numbers a trainer has left."""
    numbers = folder / "child"
    return [int(line) for line in numbers.read_text().split()] if numbers.exists() else []


LEFT = (
    ("leaves_a_child_in_a_session_of_its_own", 1),
    ("leaves_a_child_and_hangs", 1),
    ("multiplies", 20),
)


@pytest.mark.parametrize(("trainer", "processes"), first_fast(LEFT, 2))
def test_no_process_is_left_behind(
    measured: Measure, trainer: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda _: len(started_in(tmp_path)) >= processes)
    hangs = not trainer.startswith("leaves") or trainer.endswith("hangs")
    answer, _ = measured(trainer, BRIEF if hangs else None)
    assert answer.status == ("timeout" if hangs else "ok")
    started = started_in(tmp_path)
    assert len(started) >= processes
    wait_until(
        lambda: not any(map(is_running, started)), f"the end of the processes that {trainer}"
    )


def test_an_interruption_ends_measurements_in_every_thread(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python interrupts the main thread alone."""
    interrupts: list[int] = []
    monkeypatch.setattr(process, "end_signals", interrupts)
    with ThreadPoolExecutor() as threads:
        measuring = threads.submit(measured, "leaves_a_child_and_hangs")
        wait_until(lambda: bool(started_in(tmp_path)), "a trainer that has started its child")
        interrupts.append(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            measuring.result()
    assert not any(is_running(number) for number in started_in(tmp_path))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("trainer", "processes"),
    first_fast(
        [("hangs_with_every_descriptor_closed", 1), ("holds_the_lock_beside_a_stranger", 2)]
    ),
)
def test_a_process_that_hears_nothing_ends_when_its_parent_is_killed(
    tmp_path: Path, trainer: str, processes: int
) -> None:
    """Its pipe is closed, or nothing in it can run; nor can any signal."""
    job = Job("train", f"unruly:{trainer}", {}, words=str(tmp_path / "words"), num_merges=1)
    program = (
        "import sys; from pathlib import Path; from harness.worker.job import read_job\n"
        "from harness.measure.process import WorkerLimits, measure\n"
        "measure(read_job(sys.argv[1]), Path(sys.argv[2]), WorkerLimits())"
    )
    command = [sys.executable, "-c", program, written(job), str(tmp_path / "output")]
    with subprocess.Popen(command, cwd=CHECKOUT) as parent:
        wait_until(lambda: len(started_in(tmp_path)) == processes, "the hanging")
        parent.kill()
    wait_until(
        lambda: not any(map(is_running, started_in(tmp_path))),
        "the end of the measured process and its child",
    )


@slow
@pytest.mark.parametrize(
    ("trainer", "printed"),
    [
        ("early_learners:asks_that_of_an_earlier_block", "was alone\n"),
        ("planting:plants_code_for_a_later_start", "planted it\n"),
        ("keeps_its_merges_on_disk", ""),
    ],
)
def test_nothing_of_an_earlier_block_is_found(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainer: str, printed: str
) -> None:
    # others have no packages of a user's own
    of_no_environment = getattr(sys, "_base_executable", sys.executable)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        interpreter = of_no_environment if trainer.startswith("planting") else sys.executable
        answer, output = measured(trainer, interpreter=interpreter)
        assert (answer.status, answer.stderr_tail) == ("ok", printed)
        assert printed or answer.cpu_seconds > 0.25
        shutil.rmtree(output)


# How a target is called


def test_threads_and_a_tie_break_reach_a_trainer(measured: Measure, tmp_path: Path) -> None:
    assert measured("takes_threads", threads=2)[0].takes_threads is True
    shutil.rmtree(tmp_path / "output")
    answer, output = measured("variants.heap:train", tie_break="smallest_bytes")
    assert answer.status == "ok"
    expected = train(WORDS, NUM_MERGES, tie_break=TieBreak.SMALLEST_BYTES)
    assert unpacked((output / "merges").read_bytes()) == expected


def test_no_file_of_the_tree_replaces_an_import_of_the_measured_process(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "harness").mkdir(parents=True)
    modules = ("json", "contextlib", "runpy", "sitecustomize", "heapq", "queue", "os")
    for name in (*(f"{module}.py" for module in modules), "harness/__init__.py"):
        (tree / name).write_text("raise RuntimeError('replaced')\n")
    (tree / "mine.py").write_text("from variants.heap import train\n")
    monkeypatch.chdir(tree)
    answer, _ = measured("mine:train")
    assert (answer.status, answer.reason) == ("ok", None)


# The account beside an answer


@slow
def test_a_parent_that_ignores_its_children_measures_as_any(measured: Measure) -> None:
    """A command inherits from its parent what that ignores."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        answer, _ = measured("lets_an_orphan_work")
        assert exit_code_of(lambda: subprocess.run(["false"], check=False).returncode) == 1
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (answer.status, answer.reason) == ("ok", None)
    assert answer.cpu_seconds > 0.2


def test_an_answer_has_its_account(measured: Measure) -> None:
    answer, _ = measured("works_and_reports")
    witness, seconds, disturbance = answer.witness, answer.seconds, answer.disturbance
    assert set(seconds) == {"init", "max", "update"}
    assert (
        0.25 <= seconds["init"] <= sum(seconds.values()) <= answer.total <= witness["wall_seconds"]
    )
    assert answer.cpu_seconds == witness["cpu_seconds"] > answer.system_seconds >= 0
    assert answer.peak_rss_bytes > 0
    assert answer.tallies["heap_pushes"] > 0
    assert min(value for value in disturbance.values() if value is not None) >= 0
    if Path("/proc/pressure/cpu").exists():
        assert None not in [
            disturbance[name] for name in ("psi_cpu_seconds", "psi_io_seconds", "steal_seconds")
        ]


def test_waiting_for_a_processor_is_not_sleeping(measured: Measure) -> None:
    answer, _ = measured("sleeps")
    assert answer.total - answer.cpu_wait_seconds >= 0.49


def test_waiting_for_a_processor_beside_a_busy_process_is_seen(measured: Measure) -> None:
    with subprocess.Popen([sys.executable, "-c", SPINS]) as busy:
        os.sched_setaffinity(busy.pid, {min(os.sched_getaffinity(0))})
        answer, _ = measured("works_on_the_first_processor")
        busy.kill()
    # The trainer works for 0.2 s of CPU time; how the kernel shares the CPU is its own affair.
    assert answer.cpu_wait_seconds > 0.01
    assert answer.total - answer.cpu_wait_seconds > 0.19


@pytest.mark.parametrize(
    "trainer", ["works_in_a_thread", "waits_beside_its_own_work", "starts_a_child"]
)
def test_waiting_is_unknown_if_others_did_the_work(measured: Measure, trainer: str) -> None:
    """Else a trainer could let its main thread wait on purpose while another works."""
    answer, _ = measured(trainer)
    assert answer.cpu_wait_unknown == "other threads or processes did part of the work"
    assert answer.cpu_wait_seconds is None


def test_waiting_is_unknown_if_the_system_does_not_report_it(
    measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.measure.watched_process.turns_of", lambda _: Turns())
    answer, _ = measured("works_and_reports")
    assert answer.cpu_wait_unknown == "the system does not report waiting for a CPU"


def test_a_long_import_is_recorded_and_belongs_to_no_total(measured: Measure) -> None:
    answer, _ = measured("early_learners:prepared")
    assert (answer.status, answer.reason) == ("ok", None)
    assert answer.witness["import_cpu_seconds"] > 0.3
    assert answer.cpu_seconds < 0.3


def test_the_manifest_of_a_counter_is_not_believed(measured: Measure) -> None:
    answer, _ = measured("counter_that_forges_its_manifest")
    words = WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    assert {
        name: answer.words[name] for name in ("words", "pre_tokens", "sha256")
    } == exchange.facts(words)
