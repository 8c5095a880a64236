"""One fault has one exit code at every door: 22 for a file or a package, 2 for a wrong command.

doors.toml has the doors and what is wrong.
"""

import io
import os
import sys
from pathlib import Path

import pytest
import tomllib
from rows import Row, each_row, write_files
from workbench import Call

from harness.common.errors import OK, UNMEASURED
from harness.corpora import local
from harness.tokenizer import train

DOORS = tomllib.loads(Path(__file__).with_name("doors.toml").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    (here / "t.txt").write_text("low low lower newest\n")
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    os.mkfifo("pipe.txt")
    Path("deep.json").write_text('{"a":' + "[" * 9999)
    train(Path("t.txt"), 262).save("saved")


def code_of(command: str, name: str, call: Call) -> int:
    """The exit code of a command, which prints no traceback."""
    ended = call("", *(argument.format(name) for argument in command.split()))
    assert "Traceback" not in ended.out + ended.err
    return ended.code


@each_row(__file__, "doors.toml")
def test_every_door_ends_with_the_same_code(
    row: Row, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    name = row["name"].removeprefix("raw:")
    commands = dict(DOORS[row["doors"]])
    if "run" in row:
        commands["run"] = row["run"]
    for door in row.get("but", ()):
        del commands[door]

    if "content" in row:
        write_files(Path(), {row["name"]: row["content"]})
    if "first" in row:
        assert code_of(row["first"], "", call) == OK
    if "missing" in row:
        monkeypatch.setitem(sys.modules, row["missing"], None)

    codes = {door: code_of(command, name, call) for door, command in commands.items()}
    assert codes == dict.fromkeys(commands, row["exit"])


def test_standard_input_is_a_text(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    for command in DOORS["texts"].values():
        local.spooled.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"low low lower newest\n")))
        assert code_of(command, "-", call) == OK


def test_a_failure_leaves_no_folder(call: Call) -> None:
    Path("rows.jsonl").write_text('{"text": "low"}\n{"text": 5}\n')
    before = sorted(Path().iterdir())
    for command in (
        "tokenizer train rows.jsonl --vocab-size 262 --save a/b/new",
        "tokenizer encode saved --data rows.jsonl --output a/b/ids.npy",
        "variant=heap data.path=rows.jsonl vocab_size=262 plan=true save=a/b/new",
    ):
        assert code_of(command, "", call) == UNMEASURED
        assert sorted(Path().iterdir()) == before
