"""One timed run at a time on a machine, unless concurrent=true is set, and then both records say so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import CHECKOUT, HEAP, NAIVE, cell_of, heed_signals, reading_of, recorded_run, settings_for

from harness.common.errors import Refusal
from harness.measure import lock
from harness.runs.blocks import measure_task, session_of
from harness.runs.cells import Plan, Preset, Task

pytestmark = pytest.mark.xdist_group("one after the other")
HOLD = "import sys; from harness.measure import lock\nwith lock.timing(): print('held', flush=True); sys.stdin.read()"


def hold() -> subprocess.Popen[str]:
    """A process that holds the machine until its input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def release(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


def test_a_second_timed_run_waits_and_names_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    messages: list[str] = []
    holder = hold()

    def on_message(message: str) -> None:
        messages.append(message)
        release(holder)  # however that ends

    monkeypatch.setattr(lock, "say", on_message)
    run = recorded_run(tmp_path, cells)
    assert [each["concurrent"] for each in run.records()] == [False, False]
    (message,) = [message for message in messages if "another benchmark" in message]
    assert f"(process {holder.pid}, user " in message
    assert "waiting (concurrent=true runs anyway)" in message


def test_waiting_ends_at_once_when_it_is_interrupted(tmp_path: Path) -> None:
    holder = hold()
    (tmp_path / "text.txt").write_text("low lower lowest")
    command = [sys.executable, "-m", "harness", "data.path=text.txt", "vocab_size=260"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    waiting = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
    )
    assert waiting.stderr is not None
    assert "waiting" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=5)
    assert waiting.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    release(holder)


def test_a_second_run_that_is_asked_for_is_marked(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing():
        run = recorded_run(tmp_path, cells, concurrent=True)
    assert {each["concurrent"] for each in run.records()} == {True}


def test_a_run_beside_which_another_appears_is_marked_too(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path), trainer) for trainer in (HEAP, NAIVE)]
    plan = Plan(cells, settings_for(tmp_path))
    with session_of(plan, tmp_path / "jobs") as session:
        measure_task(Task(0, cells[:1]), session)
        with lock.timing(concurrent=True):
            measure_task(Task(0, cells), session)
        assert [each["concurrent"] for each in session.log.records()] == [False, False, True]


def test_a_run_waits_until_no_concurrent_run_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = contextlib.ExitStack()
    beside.enter_context(lock.timing(concurrent=True))
    beside.enter_context(lock.timing(concurrent=True))
    assert lock.is_concurrent()
    monkeypatch.setattr(lock, "say", lambda _: beside.close())
    with lock.timing():
        assert not lock.is_concurrent()


@pytest.mark.parametrize("name", ["timing", "concurrent"])
def test_a_lock_that_is_a_pipe_is_told_at_once(name: str) -> None:
    os.mkfifo(lock.lock_file(name))
    with pytest.raises(Refusal, match="it is not a plain file; remove it"), lock.timing():
        pytest.fail("it was not refused")


@pytest.mark.parametrize("name", ["timing", "concurrent"])
def test_a_lock_that_is_a_link_is_told_at_once(name: str) -> None:
    lock.lock_file(name).symlink_to("elsewhere")
    with pytest.raises(Refusal, match=r"symbolic links.*; set BPE_HARNESS_LOCKS to a folder"), lock.timing():
        pytest.fail("it was not refused")


def test_a_lock_that_somebody_keeps_for_himself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "SECONDS_FOR_A_LOOK", 0)
    with lock.opened(lock.lock_file("concurrent")) as descriptor:
        assert lock.lock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(Refusal, match="another program keeps"), lock.timing(concurrent=True):
            pytest.fail("it was not refused")


@pytest.mark.parametrize("kind", ["proof"])
def test_what_is_not_timed_needs_no_machine_of_its_own(tmp_path: Path, kind: str) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing():
        run = recorded_run(tmp_path, cells, measure=Preset(kind, kind=kind))
    assert {each["concurrent"] for each in run.records()} == {False}


def test_locks_of_another_user_are_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.timing():
        pass
    path = lock.lock_file("timing")
    assert path.stat().st_mode & 0o777 == 0o644
    open_file = os.open

    def refused_for_writing(place: Path, flags: int, *mode: int) -> int:
        if place == path and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(place))
        return open_file(place, flags, *mode)

    monkeypatch.setattr(os, "open", refused_for_writing)
    with lock.timing():
        assert f"(process {os.getpid()}, user " in lock.holder(path)


def test_a_folder_that_cannot_hold_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lock.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(Refusal, match="set BPE_HARNESS_LOCKS to a folder"), lock.timing():
        pytest.fail("it was not refused")
