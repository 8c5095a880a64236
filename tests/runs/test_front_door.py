"""The whole command, as people call it: in a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from workbench import CHECKOUT, SUPPORT, TEXT, heed_signals, is_running, processes_that_mention, wait_until

from harness.common import errors
from harness.records.file import read_records

SMALL = "vocab_size=270"


@dataclass
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str
    folder: Path

    def records(self, results: str = "results/local") -> list[dict[str, Any]]:
        path = self.folder / results / "records.jsonl"
        return read_records([path]) if path.exists() else []

    def trained(self, results: str = "results/local") -> list[dict[str, Any]]:
        return [record for record in self.records(results) if record["cell"] == "train"]

    def refused(self) -> str:
        """The one sentence of a refusal."""
        assert self.code != 0
        assert "Traceback" not in self.err
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


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

    def __call__(self, *arguments: str, at: str = ".", given: str = "", **others: Any) -> Said:
        done = subprocess.run(
            self.command(*arguments),
            input=given,
            cwd=self.folder / at,
            env={**self.environment, **others},
            capture_output=True,
            timeout=120,
            encoding="utf-8",
        )
        assert list(self.temporary.iterdir()) == []
        return Said(done.returncode, done.stdout, without_time_spent(done.stderr), self.folder / at)

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


# What a newcomer does.


# What goes wrong in a trainer.


# Input that is not what it should be.


@pytest.mark.slow
def test_a_full_disk_costs_the_records_but_not_the_table(harness: FrontDoor) -> None:
    """No file can grow beyond 8 kB, as on a disk that is full when one of three variants is recorded."""
    run = [sys.executable, "-c", FULL_AFTER, "8000", "data.path=text.txt", SMALL, "variants=heap,flat,naive"]
    done = subprocess.run(run, cwd=harness.folder, env=harness.environment, capture_output=True, encoding="utf-8")
    said = Said(done.returncode, done.stdout, without_time_spent(done.stderr), harness.folder)
    assert said.code == 22
    assert "(File too large); choose another folder" in said.refused()
    assert 1 <= len(said.trained()) < said.out.count("identical") <= 3


# Where the output goes.


@pytest.mark.parametrize(
    ("target", "code"),
    [pytest.param("variants.heap:train", 0, marks=pytest.mark.slow), ("unruly:returns_one_too_few", 21)],
)
def test_a_reader_that_leaves_early_changes_nothing(harness: FrontDoor, target: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        harness.command("data.path=text.txt", SMALL, f"variant._target_={target}"),
        cwd=harness.folder,
        env=harness.environment,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (done.returncode, without_time_spent(done.stderr.decode())) == (code, "")
    assert (harness.folder / "results/local/records.jsonl").read_bytes().count(b'"kind":"measurement"') == 2


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["--help", "plan=true"])
def test_a_reader_that_leaves_before_a_short_answer_is_no_fault(harness: FrontDoor, argument: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        harness.command("data.path=text.txt", argument),
        cwd=harness.folder,
        env=harness.environment,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_output_that_finds_no_room_is_a_sentence(harness: FrontDoor) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            harness.command("data.path=text.txt", SMALL),
            cwd=harness.folder,
            env=harness.environment,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 22
    assert done.stderr.startswith(b"cannot go on ([Errno 28] No space left on device)")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_rate_and_time_left(harness: FrontDoor) -> None:
    said = on_a_terminal(harness, "data.path=text.txt", SMALL, "variant._target_=unruly:shows_progress")
    assert "[1/2] counting text.txt (native)" in said
    assert "[2/2] unruly:shows_progress on text.txt" in said
    assert re.search(r"[\d.]+ merges/s", said)
    assert re.search(r"ETA 0:00:0\d", said)


def on_a_terminal(harness: FrontDoor, *arguments: str) -> str:
    """What standard error shows where it is a terminal, without the codes that place and colour it."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        harness.command(*arguments),
        cwd=harness.folder,
        env={**harness.environment, "TERM": "xterm", "COLUMNS": "120"},
        stdin=follower,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 4096)
            except OSError:  # the other side is closed
                break
            if not block:
                break
            shown += block
    os.close(leader)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


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
    recorded = Said(130, out, err, harness.folder).records()
    assert recorded[0]["cell"] == "count"
    assert all(each["variant"] == "unruly:takes_two" for each in recorded[1:])


def test_an_interruption_that_a_library_takes_for_an_error_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "asked_to_end", [signal.SIGINT])

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


def test_ctrl_c_while_a_command_is_being_imported_is_told_in_a_word(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise KeyboardInterrupt\n")  # what harness.table imports among the first
    said = subprocess.run(
        [sys.executable, "-m", "harness.table"],
        env={"PYTHONPATH": f"{tmp_path}:{CHECKOUT}"},
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stderr) == (-signal.SIGINT, "interrupted\n")
