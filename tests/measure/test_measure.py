"""One measurement survives what it measures, reports what happened, and believes no answer that is
contradicted.
"""

import io
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from rows import Row, each_row, write_files
from unruly import ANSWER, SPINS
from workbench import CHECKOUT, SUPPORT, is_running, limits_wait, started, started_in, wait_until

from harness.common.command import exit_code_of
from harness.measure import process
from harness.measure.machine import Totals
from harness.measure.process import WorkerLimits, measure
from harness.measure.watched_process import Cpu, Turns, WatchedProcess
from harness.measure.witness import Answer, BrokenAnswer, Clocks, ProcessAccount, read_answer
from harness.worker import exchange
from harness.worker.exchange import Job, packed, unpacked, written
from variants.contract import Corpus, TieBreak, WordCounts
from variants.heap import train

pytestmark = pytest.mark.xdist_group("one after the other")
WORDS = WordCounts.from_items(
    [(b"low", 5), (b"lower", 2), (b"widest", 3), (b"newest", 6), (b"\x00\xff\x00\xff", 2)]
)
MERGES = train(WORDS, 8)
Measure = Callable[..., tuple[Any, Path]]


@pytest.fixture
def measured(here: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measures a trainer or counter of unruly.py (or any target); returns its answer and folder."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_CHILD", str(here / "child"))
    exchange.write_words(here / "words", WORDS)
    (here / "text").write_text("low low lower")
    words = str(here / "words")
    corpus = Corpus(str(here / "text"), (), "[a-z]+", partial=True)

    def run(target: str, limits: WorkerLimits | None = None, **others: Any) -> tuple[Any, Path]:
        target = target if ":" in target else f"unruly:{target}"
        job = Job("count", target, {}, corpus=corpus)
        if "counter" not in target:
            options = {"words": words, "num_merges": 8, "tie_break": "greatest_bytes", **others}
            job = Job("train", target, {}, **options)
        output = Path(tempfile.mkdtemp(dir=here)) / "output"
        return measure(job, output, limits or WorkerLimits(wall_seconds=30)), output

    return run


def some_are_running(folder: Path) -> bool:
    return any(map(is_running, started_in(folder)))


@each_row(__file__, "tricks.toml")
def test_every_trick_has_its_outcome(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    # a process that cannot write what is buffered ends otherwise
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    write_files(tmp_path, row.get("files", {}))
    limits = WorkerLimits(**{"wall_seconds": 30, **row.get("limits", {})})
    made, started = row.get("made", 0), row.get("started", 0)
    if made or started:
        limits_wait(monkeypatch, lambda done: done >= made and len(started_in(tmp_path)) >= started)
    for _ in range(row.get("blocks", 1)):
        answer, output = measured(row["title"], limits, **row.get("job", {}))
        expect_outcome(row, answer, output)

    assert len(started_in(tmp_path)) >= started
    assert not some_are_running(tmp_path)


def expect_outcome(row: Row, answer: Any, output: Path) -> None:
    assert re.fullmatch(row["status"], answer.status), answer
    assert re.fullmatch(row.get("reason", "None"), str(answer.reason))
    figures = {**msgspec.structs.asdict(answer), **(answer.witness or {}), **(answer.words or {})}
    for name, least in row.get("over", {}).items():
        assert figures[name] > least, answer
    for name, most in {"cpu_seconds": 10, **row.get("under", {})}.items():
        assert figures[name] is None or figures[name] < most, answer
    expected = {**dict.fromkeys(row.get("unknown", ())), **row.get("figures", {})}
    assert {name: figures[name] for name in expected} == expected
    assert row.get("printed", "") in answer.stderr_tail
    assert len(answer.stderr_tail) <= 2000

    tie_break = row.get("job", {}).get("tie_break", "greatest_bytes")
    made = row.get("made", 8 if answer.status == "ok" else 0)
    if made:
        merges = train(WORDS, made, tie_break=TieBreak(tie_break))
        assert unpacked((output / "merges").read_bytes()) == merges
    if answer.status == "error":
        assert list(output.iterdir()) == []
    if answer.status == "timeout":
        assert sum(file.stat().st_size for file in output.iterdir()) < 1000


def test_a_rejected_job_runs_once_more(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    check = "harness.measure.process.ProcessAccount.contradiction"
    for rejections, status in ((1, "ok"), (2, "rejected")):
        verdicts = iter(["it used too much"] * rejections)
        monkeypatch.setattr(check, lambda *_, verdicts=verdicts: next(verdicts, None))
        answer, _ = measured("takes_two")
        assert answer.status == status
        assert next(verdicts, None) is None


@each_row(__file__, "answers.toml")
def test_an_answer_and_its_merges_must_be_whole(tmp_path: Path, row: Row) -> None:
    answer = row.get("answer", ANSWER)
    for right, wrong in row.get("changes", {}).items():
        answer = answer.replace(right, wrong)
    write_files(tmp_path, {"answer.json": answer})
    (tmp_path / "merges").write_bytes(packed(MERGES[: row.get("merges", 8)]))
    with pytest.raises(BrokenAnswer, match=row["message"]):
        read_answer(tmp_path, 8)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("answer.json", lambda path: path.symlink_to("/dev/zero"), "is not a plain file"),
        ("merges", os.mkfifo, "is not a plain file"),
        # four terabytes that take no room
        (
            "merges",
            lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 4 << 40),
            "has 4398046511104 bytes",
        ),
    ],
)
def test_links_pipes_and_holes_are_no_answer(
    tmp_path: Path, name: str, make: Callable[[Path], None], message: str
) -> None:
    (tmp_path / "answer.json").write_text(ANSWER)
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    with pytest.raises(BrokenAnswer, match=f"{name} {message}"):
        read_answer(tmp_path, 8)


@pytest.mark.parametrize(
    ("words", "reported", "message"),
    [
        (WORDS, 4, "other words than it reports"),
        (WordCounts.from_items([(b"a", 2**62), (b"b", 2**62)]), 2, "too large to be one"),
    ],
)
def test_words_that_a_counter_leaves_must_be_those_it_reports(
    tmp_path: Path, words: WordCounts, reported: int, message: str
) -> None:
    text = ANSWER.replace('"merges_done": 8', f'"words_done": {reported}')
    (tmp_path / "answer.json").write_text(text)
    exchange.write_columns(tmp_path / "words", words)
    with pytest.raises(BrokenAnswer, match=message):
        read_answer(tmp_path, 8)

    (tmp_path / "words/counts").rename(tmp_path / "counts")
    (tmp_path / "words/counts").symlink_to(tmp_path / "counts")
    with pytest.raises(BrokenAnswer, match="counts is not a plain file"):
        read_answer(tmp_path, 8)

    (tmp_path / "words").rename(tmp_path / "elsewhere")
    (tmp_path / "words").symlink_to("elsewhere")
    with pytest.raises(BrokenAnswer, match="words is a link"):
        read_answer(tmp_path, 8)


CALL = {"total": 1.0, "wall": 1.001, "start": 0.0, "after": 0.0, "timed_out": False}
"""A call of one second that no clock contradicts."""


@each_row(__file__, "calls.toml")
def test_times_that_the_account_of_the_call_contradicts_are_rejected(row: Row) -> None:
    call = {**CALL, **row["changes"]}
    started, ended = Cpu(call["start"]), Cpu(call["start"] + 1.0)
    finished = Cpu(ended.total + call["after"])
    process: Any = SimpleNamespace(used=finished, peak_bytes=call.get("peak", 0))
    account = ProcessAccount(process, call.get("inherited", 0), late=call.get("late", 0.0))
    if call.get("heard", True):
        account.received = Cpu()
        account.begun = Clocks(started, Totals(), Turns(), [], 0.0)
        turns = Turns(1.0, call.get("waited", 0.0))
        account.ended = Clocks(ended, Totals(), turns, [], call["wall"])

    answer = Answer("ok", total=call["total"], seconds={"init": call.get("phases", 0.5)})
    answer.from_file, answer.words = call.get("from_file", False), {"bytes": call.get("bytes", 0)}
    assert re.fullmatch(row["reason"], str(account.contradiction(answer, call["timed_out"])))
    if row["reason"] == "None" and account.call:
        account.add_to(answer)
        assert answer.total == pytest.approx(call.get("shown", call["total"]))
        assert (answer.cpu_wait_seconds or 0) >= 0


# Nothing is left: no process, no file


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
    assert not some_are_running(tmp_path)


@pytest.mark.usefixtures("measured")
def test_a_process_that_hears_nothing_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """Its pipe is closed, and nothing in it can run; nor can any signal."""
    target, words = "unruly:hears_nothing_beside_a_stranger", str(tmp_path / "words")
    job = Job("train", target, {}, words=words, num_merges=1)
    program = (
        "import sys; from pathlib import Path; from harness.worker.exchange import read_job\n"
        "from harness.measure.process import WorkerLimits, measure\n"
        "measure(read_job(sys.argv[1]), Path(sys.argv[2]), WorkerLimits())"
    )
    arguments = "-c", program, written(job), str(tmp_path / "output")
    with started(CHECKOUT, *arguments) as parent:
        wait_until(lambda: len(started_in(tmp_path)) == 2, "the hanging")
        parent.kill()
    wait_until(lambda: not some_are_running(tmp_path), "the end of its processes")


# The account beside an answer


@pytest.mark.slow
def test_a_parent_that_ignores_its_children_measures_as_any(measured: Measure) -> None:
    """A command inherits from its parent what that ignores."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        answer, _ = measured("lets_an_orphan_work")
        assert exit_code_of(lambda: subprocess.run(["false"]).returncode) == 1
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (answer.status, answer.reason) == ("ok", None)
    assert answer.cpu_seconds > 0.2


def test_an_answer_has_its_account(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.measure.watched_process.turns_of", lambda _: Turns())
    answer, _ = measured("works_and_reports")
    witness, seconds, disturbance = answer.witness, answer.seconds, answer.disturbance
    assert set(seconds) == {"init", "max", "update"}
    phases = sum(seconds.values())
    assert 0.25 <= seconds["init"] <= phases <= answer.total <= witness["wall_seconds"]
    assert answer.cpu_seconds == witness["cpu_seconds"] > answer.system_seconds >= 0
    assert answer.cpu_wait_unknown == "the system does not report waiting for a CPU"
    assert answer.peak_rss_bytes > 0
    assert answer.tallies["heap_pushes"] > 0

    assert min(value for value in disturbance.values() if value is not None) >= 0
    if Path("/proc/pressure/cpu").exists():
        for name in ("psi_cpu_seconds", "steal_seconds"):
            assert disturbance[name] is not None


def test_only_what_came_before_the_harness_listened_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.measure.watched_process.turns_of", lambda _: Turns())
    process, (ours, theirs) = WatchedProcess.__new__(WatchedProcess), socket.socketpair()
    process.line, process.listening, process.reports = ours, [ours], io.BytesIO()
    with ours, theirs:
        process.heard_at = 0.0
        theirs.send(b"begin")
        process.listen(9)
        assert process.late > 0

        process.heard_at = 0.0
        Timer(0.5, theirs.send, [b"end"]).start()
        assert process.listen(9) == b"end"
        assert process.late == 0


def test_waiting_for_a_processor_is_seen_and_is_not_sleeping(measured: Measure) -> None:
    answer, _ = measured("sleeps")
    assert answer.total - answer.cpu_wait_seconds >= 0.49

    with started(CHECKOUT, "-c", SPINS) as busy:
        os.sched_setaffinity(busy.pid, {min(os.sched_getaffinity(0))})
        answer, _ = measured("works_on_the_first_processor")
        busy.kill()
    # The trainer works for 0.2 s of CPU time; how the kernel shares the CPU is its own affair.
    assert answer.cpu_wait_seconds > 0.01
    assert answer.total - answer.cpu_wait_seconds > 0.19
