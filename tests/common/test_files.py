"""Files are written whole, and what killed commands left is removed."""

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from workbench import CHECKOUT, started

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import output_file, write_output

HOLD = """
import sys
from harness.common import cache, files
with files.temporary_folder() as folder:
    (folder / "left").write_text("left")
    print(folder, cache.folder("texts"), flush=True)
    sys.stdin.read()
"""


def holder(**variables: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that uses the cache and a temporary folder, until it can read no more."""
    process = started(CHECKOUT, "-c", HOLD, variables=variables, stdin=subprocess.PIPE)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().split()[0])


# Writing


def broken_off(part: Path, error: Exception) -> None:
    """As a disk that takes the beginning."""
    part.write_bytes(b"ne")
    raise error


def test_what_another_command_has_written_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appears when this command has asked whether the path is free, and found it so."""
    path = tmp_path / "file"

    def free_until_now(_: Path) -> bool:
        path.write_bytes(b"theirs")
        return False

    monkeypatch.setattr(os.path, "lexists", free_until_now)
    part = tmp_path / "part"
    part.write_bytes(b"mine")
    with pytest.raises(Refusal, match="file exists already; replace it with"):
        files.place([(path, part)], replace=False)
    assert path.read_bytes() == b"theirs"


def test_a_file_is_written_whole_or_the_old_one_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_output(path, b"one")
    write_output(path, b"two")

    full = OSError(errno.ENOSPC, "No space left on device")
    sentence = r"cannot write .*file \(No space left on device\); pass another$"
    with (
        pytest.raises(Refusal, match=sentence) as refused,
        output_file(path, instead="pass another") as part,
    ):
        broken_off(part, full)
    assert refused.value.exit_code == UNMEASURED
    with pytest.raises(ZeroDivisionError), output_file(path) as part:
        broken_off(part, ZeroDivisionError())
    with pytest.raises(Refusal, match="choose another place with --output"):
        write_output(path / "below", b"")

    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_what_was_written_is_on_disk_with_its_name(tmp_path: Path, disk_events: list[str]) -> None:
    """A power cut after the command said so costs nothing: file before name, name before the end."""
    write_output(tmp_path / "file", b"one")
    with output_file(tmp_path / "folder") as part:
        part.mkdir()
        (part / "inside").write_bytes(b"two")
    written = ["file", "file renamed", tmp_path.name]
    assert disk_events == [*written, "folder", "inside", "folder renamed", tmp_path.name]


# Temporary folders


def test_the_folder_of_a_killed_command_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (killed, left), (living, used) = (holder(TMPDIR=str(tmp_path)) for _ in range(2))
    killed.kill()
    killed.communicate()
    for folder in (left, used):
        os.utime(folder, (1, 1))

    files.remove_abandoned.cache_clear()
    with files.temporary_folder() as own:
        assert sorted(tmp_path.iterdir()) == sorted([own, used])
    living.communicate()
    assert living.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_names_that_others_left_stop_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named pipe, a link, and a folder of another user under the names of temporary folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    folder, pipe, link = (tmp_path / f"{files.TEMPORARY}{name}" for name in "abc")
    folder.mkdir()
    os.mkfifo(pipe)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    link.symlink_to(tmp_path / "elsewhere")
    for path in (folder, pipe, link):
        os.utime(path, (1, 1))
    before = sorted(tmp_path.rglob("*"))

    stranger = folder.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    files.remove_abandoned.cache_clear()
    files.remove_abandoned(tmp_path, files.TEMPORARY)
    assert sorted(tmp_path.rglob("*")) == before


def test_folders_in_folders_without_end_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "top" / "locked").mkdir(mode=0, parents=True)
    (tmp_path / "top" / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "top")
    for _ in range(1100):  # deeper than a function can call itself, and than a path can be long
        Path("deeper").mkdir()
        os.chdir("deeper")

    monkeypatch.undo()
    files.remove_tree(tmp_path / "top")
    assert list(tmp_path.iterdir()) == []
