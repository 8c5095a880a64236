"""One timed run at a time on a machine, unless another is asked for, and then both say so."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import CHECKOUT, HEAP, NAIVE, cell_of, reading_of, settings_for

from harness.common.errors import UNMEASURED, Refusal
from harness.measure import lock
from harness.runs.running import measured
from harness.runs.settings import Preset

pytestmark = pytest.mark.xdist_group("one after the other")
HOLD = "import sys; from harness.measure import lock\nwith lock.timing(): print('held', flush=True); sys.stdin.read()"


def test_a_second_timed_run_is_refused_and_told_how_it_is_allowed(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing():
        with (
            pytest.raises(Refusal, match="concurrent=true") as refused,
            measured(cells, settings_for(tmp_path), tmp_path),
        ):
            pytest.fail("it was not refused")
        assert refused.value.exit_code == UNMEASURED
    with measured(cells, settings_for(tmp_path), tmp_path / "jobs") as run:
        assert [each["concurrent"] for each in run.records()] == [False, False]


def test_a_second_run_that_is_asked_for_is_marked(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing(), measured(cells, settings_for(tmp_path, concurrent=True), tmp_path / "jobs") as run:
        assert {each["concurrent"] for each in run.records()} == {True}


def test_a_run_beside_which_another_appears_is_marked_too(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path), trainer) for trainer in (HEAP, NAIVE)]
    with measured(cells[:1], settings_for(tmp_path), tmp_path / "jobs") as run:
        with lock.timing(concurrent=True):
            run.cells = cells
            run.measure_all()
        assert [each["concurrent"] for each in run.records()] == [False, False, True]


def test_nobody_may_be_timed_alone_beside_a_concurrent_run() -> None:
    with lock.timing(concurrent=True), lock.timing(concurrent=True):
        assert lock.is_concurrent()
        with pytest.raises(Refusal, match="another run is being timed"), lock.timing():
            pytest.fail("it was not refused")
    assert not lock.is_concurrent()
    with lock.timing():
        pass


@pytest.mark.parametrize("name", ["timing", "concurrent"])
def test_a_lock_that_is_a_pipe_is_told_at_once(name: str) -> None:
    os.mkfifo(lock.lock_file(name))
    with pytest.raises(Refusal, match="it is no plain file; remove it"), lock.timing():
        pytest.fail("it was not refused")


@pytest.mark.parametrize("name", ["timing", "concurrent"])
def test_a_lock_that_is_a_link_is_told_at_once(name: str) -> None:
    lock.lock_file(name).symlink_to("elsewhere")
    with pytest.raises(Refusal, match=r"symbolic links.*; set BPE_HARNESS_LOCKS to a folder"), lock.timing():
        pytest.fail("it was not refused")


def test_a_lock_that_somebody_keeps_for_himself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "SECONDS_FOR_A_LOOK", 0)
    descriptor = lock.opened(lock.lock_file("concurrent"))
    try:
        assert lock.locked(descriptor, fcntl.LOCK_EX)
        with pytest.raises(Refusal, match="another program keeps"), lock.timing(concurrent=True):
            pytest.fail("it was not refused")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("kind", ["proof"])
def test_what_is_not_timed_needs_no_machine_of_its_own(tmp_path: Path, kind: str) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    settings = settings_for(tmp_path, measure=Preset(kind, kind=kind))
    with lock.timing(), measured(cells, settings, tmp_path / "jobs") as run:
        assert {each["concurrent"] for each in run.records()} == {False}


def test_a_lock_goes_with_the_process_that_held_it() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Refusal), lock.timing():
        pytest.fail("it was not refused")
    holder.kill()
    holder.communicate()
    with lock.timing():
        pass


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
    with lock.timing(), pytest.raises(Refusal), lock.timing():
        pytest.fail("it was not refused")


def test_a_folder_that_cannot_hold_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lock.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(Refusal, match="set BPE_HARNESS_LOCKS to a folder"), lock.timing():
        pytest.fail("it was not refused")


def test_a_run_that_is_refused_because_of_another_leaves_nothing(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, save=tmp_path / "tokenizer")
    cells = [cell_of(reading_of(tmp_path), HEAP)]
    before = sorted(tmp_path.iterdir())
    with lock.timing(), pytest.raises(Refusal, match="another run"), measured(cells, settings, tmp_path / "jobs"):
        pytest.fail("it was not refused")
    assert sorted(tmp_path.iterdir()) == before
