"""One timed run at a time on a machine, unless concurrent=true is set."""

import fcntl
import io
import os
from pathlib import Path
from unittest import mock

import pytest
from workbench import cell_of, reading_of, recorded_run

from harness.__main__ import main
from harness.common.errors import Refusal
from harness.measure import quiet as lock

pytestmark = pytest.mark.xdist_group("one after the other")


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_timed_run_waits_for_one_like_it_until_it_is_interrupted(
    book: str,
    here: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_interrupted: bool,
) -> None:
    flock = fcntl.flock
    other = lock.timing()

    def waited(file: io.FileIO | int, how: int) -> None:
        if isinstance(file, io.FileIO) and how == fcntl.LOCK_EX and not other.closed:
            other.close()
            if is_interrupted:
                raise KeyboardInterrupt
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", waited)
    assert main([book, "vocab_size=260"]) == (130 if is_interrupted else 0)
    waiting = "another benchmark is running here; waiting (concurrent=true runs anyway)\n"
    assert capfd.readouterr().err.startswith(waiting)
    assert [path.name for path in here.iterdir()] == ["book.txt"] or not is_interrupted


def test_concurrent_and_untimed_runs_do_not_wait(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing():
        logs = [
            recorded_run(tmp_path, cells, **how)
            for how in ({"concurrent": True}, {"kind": "proof"})
        ]
    for log in logs:
        assert {record.status for record in log.records()} == {"ok"}


def test_locks_of_another_user_are_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.timing():
        assert lock.lock_file().stat().st_mode & 0o777 == 0o644
        opened = mock.Mock(wraps=os.open)
        monkeypatch.setattr(os, "open", opened)
        with lock.open_lock() as again:
            assert not lock.lock(again)
    assert opened.call_args_list
    for call in opened.call_args_list:
        assert not call.args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def test_lock_that_cannot_be_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / lock.lock_file().name).symlink_to(tmp_path)
    for folder, reason in {"": "it is a link", "none": "No such file or direct"}.items():
        monkeypatch.setenv(lock.VARIABLE, str(tmp_path / folder))
        message = rf"^cannot lock .* \({reason}.*\); set BPE_HARNESS_LOCKS to a folder"
        with pytest.raises(Refusal, match=message):
            lock.timing()
