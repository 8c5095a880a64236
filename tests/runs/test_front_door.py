"""The whole command, as people call it: in its own process and folder."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    CHECKOUT,
    SUPPORT,
    TEXT,
    first_fast,
    heed_signals,
    is_running,
    processes_that_mention,
    wait_until,
)

from harness.common import ending
from harness.records.file import Record, read_records

SMALL = "vocab_size=270"


FULL = """
import resource, signal, sys
from harness.__main__ import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6500, 6500))
sys.exit(main(sys.argv[1:]))
"""


class FrontDoor:
    """Starts `python -m harness` in a folder that holds a text, with a temporary folder that can be
    looked into.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.child, self.temporary = folder, folder / "child", folder / "temporary"
        self.temporary.mkdir(parents=True)
        (folder / "text.txt").write_text(TEXT)
        places = {
            "PYTHONPATH": f"{CHECKOUT}:{SUPPORT}",
            "TMPDIR": str(self.temporary),
            "UNRULY_CHILD": str(self.child),
        }
        self.environment = {**os.environ, **places, "COLUMNS": "120", "TERM": "xterm"}

    def started(
        self,
        *arguments: str,
        program: Sequence[str] = ("-m", "harness", "data.path=text.txt", SMALL),
        **others: Any,
    ) -> subprocess.Popen[str]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **others}
        command = [sys.executable, *program, *arguments]
        process: subprocess.Popen[str] = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            encoding="utf-8",
            preexec_fn=heed_signals,
            **streams,
        )
        return process

    def ended(self, *arguments: str, **others: Any) -> tuple[int, str, str]:
        """The exit code, standard output and standard error."""
        process = self.started(*arguments, **others)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def records(self) -> list[Record]:
        return read_records([self.folder / "results/local/records.jsonl"])

    def process_of_child(self) -> int:
        """The number of the process that a trainer has started."""
        wait_until(
            lambda: self.child.exists() and self.child.read_text() != "", "a trainer's child"
        )
        return int(self.child.read_text())

    def wait_for_the_end(self, child: int) -> None:
        wait_until(lambda: not is_running(child), "the end of the trainer's child")
        wait_until(
            lambda: not processes_that_mention(str(self.child)),
            "the end of every process of the run",
        )


@pytest.fixture
def harness(tmp_path: Path) -> FrontDoor:
    return FrontDoor(tmp_path / "a folder, with (odd) = 名字")


@pytest.mark.slow
def test_a_full_disk_costs_the_records_but_not_the_table(harness: FrontDoor) -> None:
    """No file can grow beyond 6.5 kB, as on a disk that is full when one of three variants is
    recorded.
    """
    harness.environment["PYTHONDONTWRITEBYTECODE"] = "1"  # or later processes find half a file
    code, out, err = harness.ended(
        "data.path=text.txt", SMALL, "variants=heap,flat,naive", program=["-c", FULL]
    )
    assert code == 22, err
    assert "(File too large); choose another folder" in err
    assert err.count("\n") == 1
    assert (
        1
        <= sum(record["cell"] == "train" for record in harness.records())
        < out.count("identical")
        <= 3
    )


AS_A_SCRIPT = """
import sys
sys.path.remove("")  # as in a console script, which does not look into the current folder
from harness.__main__ import main

sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command",
    [
        ("variants=mine:train", "data.path=text.txt", SMALL),
        ("conformance", "mine:train", "--only", "*tie*"),
    ],
    ids=["a run", "conformance"],
)
def test_no_file_of_the_folder_replaces_the_standard_library(
    harness: FrontDoor, command: Sequence[str]
) -> None:
    for name in ("queue.py", "heapq.py", "colorsys.py"):
        (harness.folder / name).write_text("raise RuntimeError('replaced')\n")
    (harness.folder / "mine.py").write_text("import colorsys\nfrom variants.heap import train\n")
    code, out, err = harness.ended(*command, program=["-c", AS_A_SCRIPT])
    assert (code, err) == (0, "")
    assert re.search("identical|conforms", out)


# Where the output goes.


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_what_is_done_and_the_time_left(harness: FrontDoor) -> None:
    leader, follower = pty.openpty()
    shown = b""
    trainer = "variant._target_=unruly:shows_progress"
    with harness.started(
        trainer, stdin=follower, stdout=subprocess.DEVNULL, stderr=follower
    ) as process:
        os.close(follower)
        with contextlib.suppress(OSError):  # the other side is closed
            while block := os.read(leader, 4096):
                shown += block
    os.close(leader)
    assert process.returncode == 0
    screen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert re.search(r"counting text.txt \(native\) \S+ +0 of 2, 0:00 elapsed", screen)
    left = r"1 of 2, 0:0\d elapsed, 0:0\d for this one"
    assert re.search(rf"shows_progress on text.txt \S+ +[1-9]\d?% {left}", screen)


# Being ended.


@pytest.mark.parametrize("number", first_fast([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_interruption_leaves_the_table_one_line_and_nothing_running(
    harness: FrontDoor, number: signal.Signals
) -> None:
    targets = "variant._target_=unruly:takes_two,unruly:leaves_a_child_and_hangs"
    process = harness.started("-m", targets)
    child = harness.process_of_child()
    process.send_signal(number)
    process.send_signal(number)  # people press Ctrl-C more than once
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "counter" in out) == (130, True)  # the table of what was measured
    assert (
        err
        == "interrupted; what was measured before is recorded, run the same command again for the rest\n"
    )
    harness.wait_for_the_end(child)
    assert list(harness.temporary.iterdir()) == []
    assert {each["variant"] for each in harness.records()} <= {None, "unruly:takes_two"}


def test_an_interruption_that_a_library_takes_for_an_error_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ending, "end_signals", [signal.SIGINT])
    assert ending.answered(lambda: ending.no_such_function()) == 130  # type: ignore[attr-defined]
    assert capsys.readouterr().err.startswith("interrupted; ")


def test_when_the_command_is_killed_its_worker_ends_itself_and_its_children(
    harness: FrontDoor,
) -> None:
    process = harness.started("variant._target_=unruly:leaves_a_child_and_hangs")
    child = harness.process_of_child()
    process.kill()
    process.communicate(timeout=60)
    harness.wait_for_the_end(child)
