"""The whole command in a process of its own: what it leaves when it is ended, and what it shows."""

import contextlib
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    TEXT,
    first_fast,
    heed_signals,
    is_running,
    processes_that_mention,
    ran,
    started,
    started_in,
    wait_until,
)

from harness.common import command
from harness.records.file import Record, read_records
from harness.runs.resume import RUNNING

RUN = ("data.path=text.txt", "vocab_size=270")
FULL = """
import resource, signal, sys
from harness.__main__ import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6500, 6500))
sys.exit(main(sys.argv[1:]))
"""
AS_A_SCRIPT = """
import sys
sys.path.remove("")  # as in a console script, which does not look into the current folder
from harness.__main__ import main

sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a text, and another for temporary files."""
    folder = tmp_path / "a folder, with (odd) = 名字"
    (folder / "temporary").mkdir(parents=True)
    (folder / "text.txt").write_text(TEXT)
    return folder


def started_run(folder: Path, *arguments: str, **streams: Any) -> subprocess.Popen[str]:
    variables = {
        "TMPDIR": str(folder / "temporary"),
        "UNRULY_CHILD": str(folder / "child"),
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    how: dict[str, Any] = {"encoding": "utf-8", "preexec_fn": heed_signals, **streams}
    return started(folder, "-m", "harness", *RUN, *arguments, variables=variables, **how)


def wait_for_a_child(folder: Path) -> None:
    wait_until(lambda: bool(started_in(folder)), "a trainer's child")


def wait_for_the_end(folder: Path) -> None:
    wait_until(lambda: not any(map(is_running, started_in(folder))), "the end of the child")
    mentioned = str(folder / "child")
    wait_until(lambda: not processes_that_mention(mentioned), "the end of every process")


def stored(folder: Path) -> list[Record]:
    return read_records([folder / "results/local/records.jsonl"])


@pytest.mark.slow
def test_a_full_disk_costs_the_records_but_not_the_table(folder: Path) -> None:
    """No file can grow beyond 6.5 kB, as on a disk that is full when one of three variants is
    recorded.
    """
    no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}  # or later processes find half a file
    done = ran(folder, "-c", FULL, *RUN, "variants=heap,flat,naive", variables=no_bytecode)
    assert done.returncode == 22, done.stderr
    assert "(File too large); choose another folder" in done.stderr
    assert done.stderr.count("\n") == 1
    recorded = sum(record.trains for record in stored(folder))
    assert 1 <= recorded < done.stdout.count("identical") <= 3


@pytest.mark.slow
def test_no_file_of_the_folder_replaces_the_standard_library(folder: Path) -> None:
    for name in ("queue.py", "heapq.py", "colorsys.py"):
        (folder / name).write_text("raise RuntimeError('replaced')\n")
    (folder / "mine.py").write_text("import colorsys\nfrom variants.heap import train\n")
    done = ran(folder, "-c", AS_A_SCRIPT, *RUN, "variants=mine:train")
    assert (done.returncode, done.stderr) == (0, "")
    assert "identical" in done.stdout


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_what_is_done_and_the_time_left(folder: Path) -> None:
    leader, follower = pty.openpty()
    streams = {"stdin": follower, "stdout": subprocess.DEVNULL, "stderr": follower}
    shown = b""
    with started_run(folder, "variant._target_=unruly:shows_progress", **streams) as process:
        os.close(follower)
        with contextlib.suppress(OSError):  # the other side is closed
            while block := os.read(leader, 4096):
                shown += block
    os.close(leader)

    assert process.returncode == 0
    screen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "1 of 2: counting text.txt (native) " in screen
    amount = r"[1-9]\d?% \d+ of \d+ merges 0:00:\d\d 0:00:\d\d"
    assert re.search(rf"2 of 2: unruly:shows_progress on text.txt \S+ +{amount}", screen)


@pytest.mark.parametrize("number", first_fast([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_interruption_leaves_the_table_one_line_and_nothing_running(
    folder: Path, number: signal.Signals
) -> None:
    targets = "variant._target_=unruly:takes_two,unruly:leaves_a_child_and_hangs"
    process = started_run(folder, "-m", targets)
    wait_for_a_child(folder)
    process.send_signal(number)
    process.send_signal(number)  # people press Ctrl-C more than once
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "counter" in out  # the table of what was measured
    advice = "what was measured before is recorded, run the same command again for the rest"
    assert err == f"interrupted; {advice}\n"
    wait_for_the_end(folder)
    assert list((folder / "temporary").iterdir()) == []
    assert {record["variant"] for record in stored(folder)} <= {None, "unruly:takes_two"}


def test_a_killed_command_ends_its_worker_with_its_children_and_is_continued(folder: Path) -> None:
    targets = "variant._target_=unruly:takes_two,unruly:hangs_the_first_time"
    process = started_run(folder, "-m", targets)
    wait_for_a_child(folder)
    process.kill()
    process.communicate(timeout=60)
    wait_for_the_end(folder)

    _, err = started_run(folder, "-m", targets).communicate(timeout=60)
    assert err.startswith("continuing the run of ")
    trained = [record["variant"] for record in stored(folder) if record.trains]
    assert sorted(trained) == ["unruly:hangs_the_first_time", "unruly:takes_two"]
    assert not list(folder.rglob(f"{RUNNING}*"))


def test_an_interruption_that_a_library_takes_for_an_error_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "end_signals", [signal.SIGINT])
    assert command.answered(lambda: command.no_such_function()) == 130  # type: ignore[attr-defined]
    assert capsys.readouterr().err.startswith("interrupted; ")
