"""The cache: it is cleared while nobody else uses it, everything is made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.common import files
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.corpora import prepare
from harness.corpora.__main__ import main
from harness.corpora.cards import card_of

TEXT = "low lower lowest " * 1000


def sliced(folder: Path, length: int) -> Path:
    """A slice of a file of one's own, as a run takes it."""
    (folder / "book.txt").write_text(TEXT)
    card = {**card_of("file"), "path": str(folder / "book.txt"), "bytes": str(length)}
    return prepare(card, []).path


def test_cache_is_cleared_only_while_nobody_else_uses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used = sliced(tmp_path, 500)
    waiting = "from harness.common import files; files.cache_folder('texts'); print(flush=True); input()"
    command = [sys.executable, "-c", waiting]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        user.stdout.readline()
        assert main(["cache", "--clear", "all"]) == UNMEASURED
        assert capsys.readouterr().err == "another command uses the cache; clear it when that has ended\n"
        assert used.read_text() == TEXT[:500]
        user.communicate(b"\n")
    assert main(["cache", "--clear", "texts"]) == OK
    assert capsys.readouterr().out == "removed 500 B in 1 entries\n"
    assert not used.exists()
    assert sliced(tmp_path, 500).read_text() == TEXT[:500]


def test_what_killed_runs_left_is_listed_and_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    texts = files.cache_folder("texts")
    (texts / ".left").mkdir()
    (texts / ".left" / "text").write_bytes(bytes(700))
    with files.placing(texts / "one") as temporary:
        temporary.write_bytes(bytes(80))
    assert main(["cache"]) == OK
    assert "texts         780 B     2" in capsys.readouterr().out
    assert main(["cache", "--clear", "all"]) == OK
    assert capsys.readouterr().out == "removed 780 B in 2 entries\n"
    assert list(texts.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({files.CACHE_VARIABLE: "here", "XDG_CACHE_HOME": "xdg"}, "here/a"),
        ({"XDG_CACHE_HOME": "xdg", "HOME": "home"}, "xdg/bpe-harness/a"),
        ({"HOME": "home"}, "home/.cache/bpe-harness/a"),
    ],
)
def test_variables_move_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], place: str
) -> None:
    for name in (files.CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    assert files.cache_folder("a") == tmp_path / place
    assert (tmp_path / place).is_dir()


def test_unusable_cache_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(files.CACHE_VARIABLE, str(tmp_path / "file"))
    assert main(["path", "ties"]) == UNMEASURED
    with pytest.raises(Refusal, match=rf"cannot use the cache .*; set {files.CACHE_VARIABLE} to a folder"):
        files.cache_folder("corpora")
