"""What is written is there whole, or what stood there before is, and nothing lies beside it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.common.files import whole_file, write_whole


def test_folders_are_made_and_what_stood_there_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def full_after(part: Path, content: bytes) -> None:
    """As a disk that takes the beginning."""
    part.write_bytes(content)
    raise OSError(errno.ENOSPC, "No space left on device")


def test_on_a_full_disk_the_old_file_stays_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with (
        pytest.raises(Refusal, match=r"cannot write .*file \(No space left on device\); pass another$") as refused,
        whole_file(path, "pass another", UNMEASURED) as part,
    ):
        full_after(part, b"ne")
    assert refused.value.exit_code == UNMEASURED
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def broken_off(part: Path) -> None:
    part.write_bytes(b"half")
    raise ZeroDivisionError


def test_another_fault_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(ZeroDivisionError), whole_file(path) as part:
        broken_off(part)
    assert list(tmp_path.iterdir()) == []


def test_impossible_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Refusal, match="choose another place with --output") as refused:
        write_whole(tmp_path / "file" / "below", b"")
    assert refused.value.exit_code == USAGE
