"""The cache: what a run uses stays while others clear it, copies are told and bounded, everything is made again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.common import files
from harness.common.errors import OK, USAGE
from harness.corpora import prepare
from harness.corpora.__main__ import main
from harness.corpora.cards import card_of

TEXT = "low lower lowest " * 1000


def sliced(folder: Path, length: int) -> Path:
    """A slice of a file of one's own, as a run takes it."""
    (folder / "book.txt").write_text(TEXT)
    card = {**card_of("file"), "path": str(folder / "book.txt"), "bytes": str(length)}
    return prepare(card, []).path


def let_go() -> None:
    """As if this process had ended."""
    for descriptor in files._held.values():
        os.close(descriptor)
    files._held.clear()


def test_only_unused_entries_are_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used = sliced(tmp_path, 500)
    assert main(["cache", "--clear", "copies"]) == OK
    assert capsys.readouterr().out == "removed 0 B in 0 entries; 1 in use stay there\n"
    assert used.read_text() == TEXT[:500]
    let_go()
    assert main(["cache", "--clear", "slices"]) == OK
    assert capsys.readouterr().out == "removed 501 B in 1 entries\n"
    assert not used.exists()
    assert sliced(tmp_path, 500).read_text() == TEXT[:500]


def test_another_process_holds_what_it_uses() -> None:
    entry = files.cache_folder("slices", "one")
    waiting = "import sys; from pathlib import Path; from harness.common import files; "
    waiting += "files.hold(Path(sys.argv[1])); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, str(entry)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as user:
        assert user.stdout is not None
        user.stdout.readline()
        (there,) = files.entries("slices")
        assert not files.remove(there)
        user.communicate(b"\n")
    assert files.remove(there)
    assert not files.hold(entry)
    assert list(entry.parent.iterdir()) == []


def test_unfinished_entries_are_listed_and_cleared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = files.cache_folder("slices")
    left = kept / ".left"
    left.mkdir()
    (left / "text").write_bytes(bytes(700))
    (files.cache_folder("digests") / ".0.1").write_bytes(bytes(20))
    with files.placing(kept / "one") as temporary:
        temporary.write_bytes(bytes(80))
        assert main(["cache"]) == OK
        assert "half-made     800 B     3" in capsys.readouterr().out
        assert main(["cache", "--clear", "all"]) == OK  # all of it was begun just now
        assert capsys.readouterr().out == "removed 0 B in 0 entries; 3 in use stay there\n"
        monkeypatch.setattr(files, "JUST_STARTED_SECONDS", -1)
        assert main(["cache", "--clear", "copies"]) == OK
        assert capsys.readouterr().out == "removed 720 B in 2 entries; 1 in use stay there\n"
    assert (kept / "one").read_bytes() == bytes(80)
    assert [path.name for path in kept.iterdir()] == ["one"]


def test_over_the_limit_the_longest_unused_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sliced(tmp_path, 700), sliced(tmp_path, 800)
    let_go()
    os.utime(second.parent, (1, 1))
    monkeypatch.setenv(files.LIMIT_VARIABLE, "2kB")
    third = sliced(tmp_path, 900)
    assert [path.exists() for path in (first, second, third)] == [True, False, True]
    assert main(["cache"]) == OK
    where, slices, *_ = capsys.readouterr().out.splitlines()
    assert (where, slices.split()[:5]) == (str(files.cache_folder()), ["slices", "1.60", "kB", "2", "copies"])
    monkeypatch.setenv(files.LIMIT_VARIABLE, "much")
    assert main(["cache"]) == USAGE
    assert "BPE_HARNESS_CACHE_LIMIT=much is not a size" in capsys.readouterr().err


def test_large_copy_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WORTH_TELLING_BYTES", 600)
    kept = sliced(tmp_path, 700).parent.parent
    message = f"a slice of book.txt: a copy of 701 B is kept in {kept}; "
    assert capsys.readouterr().err == f"{message}python -m harness.corpora cache lists and clears such copies\n"
    sliced(tmp_path, 700)
    assert capsys.readouterr().err == ""
