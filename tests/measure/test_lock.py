"""One timed run at a time on a machine, unless concurrent=true is set, and then both records show
it.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from unittest import mock

import pytest
from workbench import cell_of, reading_of, recorded_run, settings_for

from harness.__main__ import main
from harness.common.errors import Refusal
from harness.measure import quiet as lock
from harness.runs.blocks import measure_task
from harness.runs.cells import Plan, make_tasks
from harness.runs.session import session_of

pytestmark = pytest.mark.xdist_group("one after the other")


@pytest.mark.parametrize("concurrent", [[False], [True, True]])
def test_a_timed_run_waits_for_one_like_it_and_until_no_concurrent_run_is_left(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, concurrent: list[bool]
) -> None:
    with contextlib.ExitStack() as others:
        for each in concurrent:
            others.enter_context(lock.timing(concurrent=each))
        assert lock.is_concurrent() == any(concurrent)
        monkeypatch.setattr(time, "sleep", lambda _: others.close())
        with lock.timing():
            assert not lock.is_concurrent()
    waiting = "another benchmark is running here; waiting (concurrent=true runs anyway)\n"
    assert capfd.readouterr().err == waiting


def test_waiting_ends_at_once_when_it_is_interrupted(
    book: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", mock.Mock(side_effect=KeyboardInterrupt))
    with lock.timing():
        assert main([book, "vocab_size=260"]) == 130
    assert [path.name for path in here.iterdir()] == ["book.txt"]


def test_runs_beside_each_other_are_marked_and_untimed_ones_do_not_wait(tmp_path: Path) -> None:
    cells = [cell_of(reading_of(tmp_path))]
    with lock.timing():
        run = recorded_run(tmp_path, cells, concurrent=True)
        untimed = recorded_run(tmp_path, cells, kind="proof")
    plan = Plan(make_tasks(cells), settings_for(tmp_path))
    with session_of(plan, tmp_path / "jobs") as session, lock.timing(concurrent=True):
        measure_task(plan.tasks[0], session)
    alone = recorded_run(tmp_path, cells, rerun=True)

    marks = []
    for log in (run, untimed, session.log, alone):
        marks.append({record["concurrent"] for record in log.records()})
    assert marks == [{True}, {False}, {True}, {False}]


def test_locks_of_another_user_are_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.timing():
        assert lock.lock_file("timing").stat().st_mode & 0o777 == 0o644
        opened = mock.Mock(wraps=os.open)
        monkeypatch.setattr(os, "open", opened)
        assert lock.is_concurrent("timing")
    assert opened.call_args_list
    for call in opened.call_args_list:
        assert not call.args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def test_lock_that_cannot_be_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("pipe", "link"):
        (tmp_path / folder).mkdir()
    os.mkfifo(tmp_path / "pipe" / lock.lock_file("timing").name)
    (tmp_path / "link" / lock.lock_file("timing").name).symlink_to(tmp_path)

    reasons = {"pipe": "it is not a file", "link": "it is a link", "none": "No such file or direct"}
    for folder, reason in reasons.items():
        monkeypatch.setenv(lock.VARIABLE, str(tmp_path / folder))
        message = rf"^cannot lock .* \({reason}.*\); set BPE_HARNESS_LOCKS to a folder"
        with pytest.raises(Refusal, match=message):
            lock.timing()
