"""The whole command, as people call it: in its own process and folder."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workbench import CHECKOUT, SUPPORT, TEXT, first_fast, heed_signals, is_running, processes_that_mention, wait_until

from harness.common import errors
from harness.records.file import Record, read_records

SMALL = "vocab_size=270"


FULL_AFTER = """
import resource, signal, sys
from harness.__main__ import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
sys.exit(main(sys.argv[2:]))
"""


def without_time_spent(err: str) -> str:
    """Without the line that a command which took long, as on a busy machine, ends with."""
    return re.sub(r"^This command took .*\n", "", err, flags=re.MULTILINE)


class FrontDoor:
    """Runs `python -m harness` in a folder that holds a text, with a temporary folder that can be looked into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        (folder / "text.txt").write_text(TEXT)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(SUPPORT)]),
            "TMPDIR": str(self.temporary),
            "UNRULY_CHILD": str(folder / "child"),
            "COLUMNS": "200",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "harness", *arguments]

    def done(self, command: list[str], **others: Any) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of a command."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, encoding="utf-8", **others
        )
        return done.returncode, done.stdout, without_time_spent(done.stderr)

    def records(self) -> list[Record]:
        return read_records([self.folder / "results/local/records.jsonl"])

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, not waited for."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            preexec_fn=heed_signals,
        )


@pytest.fixture
def harness(tmp_path: Path) -> FrontDoor:
    folder = tmp_path / "a folder, with (odd) = 名字"
    folder.mkdir()
    return FrontDoor(folder)


@pytest.mark.slow
def test_a_full_disk_costs_the_records_but_not_the_table(harness: FrontDoor) -> None:
    """No file can grow beyond 8 kB, as on a disk that is full when one of three variants is recorded."""
    run = [sys.executable, "-c", FULL_AFTER, "8000", "data.path=text.txt", SMALL, "variants=heap,flat,naive"]
    code, out, err = harness.done(run, stdout=subprocess.PIPE)
    assert code == 22
    assert "(File too large); choose another folder" in err
    assert err.count("\n") == 1
    assert 1 <= sum(record["cell"] == "train" for record in harness.records()) < out.count("identical") <= 3


# Where the output goes.


@pytest.mark.parametrize(
    ("arguments", "code", "measured"),
    first_fast(
        [
            ((SMALL, "variant._target_=unruly:returns_one_too_few"), 21, 2),
            ((SMALL, "variant._target_=variants.heap:train"), 0, 2),
            (("plan=true",), 0, 0),
            (("--help",), 0, 0),
        ]
    ),
)
def test_a_reader_that_leaves_early_changes_nothing(
    harness: FrontDoor, arguments: tuple[str, ...], code: int, measured: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended, _, err = harness.done(harness.command("data.path=text.txt", *arguments), stdout=writing)
    assert (ended, err) == (code, "")
    os.close(writing)
    assert not measured or len(harness.records()) == measured


@pytest.mark.slow
def test_output_that_finds_no_room_is_a_sentence(harness: FrontDoor) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        code, _, err = harness.done(harness.command("data.path=text.txt", SMALL), stdout=full)
    assert code == 22
    assert err.startswith("cannot go on ([Errno 28] No space left on device)")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_what_is_done_and_the_time_left(harness: FrontDoor) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        harness.command("data.path=text.txt", SMALL, "variant._target_=unruly:shows_progress"),
        cwd=harness.folder,
        env={**harness.environment, "TERM": "xterm", "COLUMNS": "120"},
        stdin=follower,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    ) as process:
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # the other side is closed
            while block := os.read(leader, 4096):
                shown += block
    os.close(leader)
    assert process.returncode == 0
    screen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "[1/2] counting text.txt (native)" in screen
    assert "[2/2] unruly:shows_progress on text.txt" in screen
    assert re.search(r"shows_progress on text.txt \S+ +[1-9]\d?% 0:00:0\d 0:00:0\d", screen)


# Being ended.


def wait_for_child(harness: FrontDoor) -> int:
    path = harness.folder / "child"
    wait_until(lambda: path.exists() and path.read_text() != "", "a trainer that has started its child")
    return int(path.read_text())


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_an_interruption_is_one_line_and_leaves_nothing_running(harness: FrontDoor, number: signal.Signals) -> None:
    targets = "variant._target_=unruly:takes_two,unruly:leaves_a_child_and_hangs"
    process = harness.started("-m", "data.path=text.txt", SMALL, targets)
    child = wait_for_child(harness)
    process.send_signal(number)
    process.send_signal(number)  # people press Ctrl-C more than once
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "interrupted; what was measured before is recorded, run the same command again for the rest\n"
    wait_until(lambda: not is_running(child), "the end of the trainer's child")
    wait_until(lambda: not processes_that_mention(str(harness.folder / "child")), "the end of every process of the run")
    assert list(harness.temporary.iterdir()) == []
    recorded = harness.records()
    assert recorded[0]["cell"] == "count"
    assert all(each["variant"] == "unruly:takes_two" for each in recorded[1:])


def test_an_interruption_that_a_library_takes_for_an_error_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "end_signals", [signal.SIGINT])

    def interrupted_inside_a_library() -> int:
        try:
            raise KeyboardInterrupt
        finally:
            raise AttributeError("half made")

    assert errors.answered(interrupted_inside_a_library) == 130
    assert capsys.readouterr().err.startswith("interrupted; ")


def test_when_the_command_is_killed_its_worker_ends_itself_and_its_children(harness: FrontDoor) -> None:
    process = harness.started("data.path=text.txt", SMALL, "variant._target_=unruly:leaves_a_child_and_hangs")
    child = wait_for_child(harness)
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not is_running(child), "the end of the trainer's child")
    wait_until(lambda: not processes_that_mention(str(harness.folder / "child")), "the end of every process of the run")
