"""What a command lays down while it runs is gone with it, or with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from workbench import CHECKOUT

from harness.common import files

HOLD = """
import sys
from harness.common.files import temporary_folder
with temporary_folder() as folder:
    (folder / "left").write_text("left")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_command_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", HOLD]
    holders = [
        subprocess.Popen(
            command, env=environment, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    killed, living = holders
    try:
        folders = [Path(holder.stdout.readline().strip()) for holder in holders if holder.stdout is not None]
        killed.kill()
        killed.wait()
        for folder in folders:
            os.utime(folder, (1, 1))
        files.remove_abandoned.cache_clear()
        with files.temporary_folder() as own:
            assert sorted(tmp_path.iterdir()) == sorted([own, folders[1]])
    finally:
        for holder in holders:
            holder.communicate()
    assert living.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_folders_in_folders_without_end_are_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1100):  # deeper than a function can call itself, and than a path can be long
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (top / "locked").mkdir(mode=0)
    (top / "link").symlink_to(tmp_path)
    files.remove_tree(top)
    assert list(tmp_path.iterdir()) == []
