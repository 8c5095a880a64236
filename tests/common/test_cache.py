"""The cache: an entry that lost bytes is made again, and the whole can be moved, listed and cleared."""

import errno
import os
import re
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from rows import write_files
from test_files import holder
from workbench import Call, damage

from harness.common import cache
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.corpora import files as corpora_files
from harness.corpora import standard_library, text
from harness.tokenizers.extension import Extension

WORDS = b"the words of an entry"


def write(folder: Path) -> list[int]:
    (folder / "inner").mkdir()
    (folder / "words").write_bytes(WORDS)
    (folder / "inner" / "more").write_bytes(b"")
    return [1]


# Entries


@pytest.mark.parametrize("name", ["words", cache.SEAL])
@pytest.mark.parametrize("how", ["empty", "half", "longer", "zeros", "removed", "a folder"])
def test_a_broken_entry_is_made_again(name: str, how: str) -> None:
    entry = cache.kept("texts", "key", write)
    assert cache.find("texts", "key") == entry
    damage(entry.path / name, how)
    assert cache.find("texts", "key") is None
    assert cache.kept("texts", "key", write) == cache.find("texts", "key") == entry
    assert (entry.path / "words").read_bytes() == WORDS
    assert [path.name for path in entry.path.parent.iterdir()] == ["key"], "something was left"


def test_a_copied_entry_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = cache.kept("texts", "key", write)
    copy = cache.place("texts", "copy")
    shutil.copytree(entry.path, copy)
    assert cache.find("texts", "copy") == cache.Entry(copy, entry.digests, [1])
    monkeypatch.setattr(cache, "digest_of", None)
    assert cache.find("texts", "copy") == cache.Entry(copy, entry.digests, [1])


def test_an_entry_that_cannot_be_written_leaves_the_old_one() -> None:
    entry = cache.kept("texts", "key", write)

    def fail(folder: Path) -> None:
        write(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    sentence = r"cannot write .*key \(No space left on device\); set BPE_HARNESS_CACHE to a folder"
    with pytest.raises(Refusal, match=sentence) as refused:
        cache.put("texts", "key", fail)
    assert refused.value.exit_code == UNMEASURED
    assert cache.find("texts", "key") == entry
    assert [path.name for path in entry.path.parent.iterdir()] == ["key"]


def test_another_process_may_make_the_same_entry() -> None:
    def interfere(folder: Path) -> list[int]:
        cache.put("texts", "key", write)
        return write(folder)

    assert cache.put("texts", "key", interfere) == cache.find("texts", "key")


def test_an_entry_is_on_disk_before_its_name(disk_events: list[str]) -> None:
    """Files, then the seal with the folders, then the name: a power cut leaves all or nothing."""
    cache.kept("texts", "key", write)
    assert disk_events == ["inner", "more", "words", cache.SEAL, "key", "key renamed", "texts"]


KEYS = st.sampled_from("ab")
CONTENTS = st.binary(max_size=9)


class CacheMachine(RuleBasedStateMachine):
    """The cache beside a dictionary: whatever happens to files, a reader gets what was made last."""

    def __init__(self) -> None:
        super().__init__()
        cache.clear(["texts"])
        self.model: dict[str, bytes] = {}

    @rule(key=KEYS, content=CONTENTS)
    def put(self, key: str, content: bytes) -> None:
        cache.put("texts", key, lambda folder: (folder / "text").write_bytes(content))
        self.model[key] = content

    @rule(key=KEYS, content=CONTENTS)
    def keep(self, key: str, content: bytes) -> None:
        entry = cache.kept("texts", key, lambda folder: (folder / "text").write_bytes(content))
        expected = self.model.setdefault(key, content)
        assert (entry.path / "text").read_bytes() == expected
        assert entry.facts == len(expected)

    @rule(key=KEYS, name=st.sampled_from(["text", cache.SEAL]), length=st.integers(0, 9))
    def cut(self, key: str, name: str, length: int) -> None:
        path = cache.place("texts", key) / name
        if path.is_file() and path.stat().st_size > length:
            os.truncate(path, length)
            self.model.pop(key, None)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        cache.remove("texts", key)
        self.model.pop(key, None)

    @invariant()
    def find(self) -> None:
        for key in "ab":
            entry = cache.find("texts", key)
            assert (entry is None) == (key not in self.model)
            if entry is not None:
                assert (entry.path / "text").read_bytes() == self.model[key]


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=30, stateful_step_count=15)


# Readers


def empty(kind: str) -> None:
    """Lose the bytes of all files of a kind, as a power cut does to those not synced."""
    paths = [path for path in cache.folder(kind).rglob("*") if path.is_file()]
    assert paths
    for path in paths:
        path.write_bytes(b"")


@pytest.mark.parametrize("name", ["ties", "stdlib", "joined", "cut", "in place"])
def test_a_text_that_lost_its_bytes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(corpora_files, "SECONDS_TO_SETTLE", -1)
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    sources: dict[str, Any] = {
        "joined": [tmp_path / "a", tmp_path / "b"],
        "cut": "ties",
        "in place": tmp_path / "a",
    }
    source = sources.get(name, name)
    settings = ["data.bytes=1000"] if name == "cut" else []
    before = text(source, settings)
    content = before.path.read_bytes()
    for kind in ("corpora", "texts", "digests"):
        if cache.listing(kind):
            empty(kind)

    standard_library.cache_clear()
    again = text(source, settings)
    assert again == before
    assert again.path.read_bytes() == content


def test_merges_that_lost_their_bytes_are_written_again() -> None:
    extension = Extension("a", ((b"a", b"b"),))
    path = Path(extension.job().merges)
    content = path.read_bytes()
    empty("inherited")
    assert Path(extension.job().merges).read_bytes() == content


# The folder


def test_cache_is_listed_and_cleared_only_while_nobody_else_uses_it(call: Call) -> None:
    texts, root = cache.folder("texts"), cache.root()
    for folder in (texts, cache.folder("spilled"), root):
        write_files(folder, {".left/text": "x" * 700})  # by killed runs
    cache.kept("texts", "one", lambda folder: (folder / "text").write_bytes(bytes(80)))
    shown = call("corpora cache").out
    for line in (r"texts +\S+ k?B +2  gen", r"spilled +700 B +1  ", r"other +\S+ kB +2  "):
        assert re.search(line, shown), shown

    user, _ = holder()
    sentence = "another command uses the cache; clear it when that has ended\n"
    assert call("corpora cache --clear all") == (UNMEASURED, "", sentence)
    user.communicate()
    cleared = call("corpora cache --clear texts")
    assert re.match(r"removed \S+ k?B in 2 entries\n", cleared.out)
    assert list(texts.iterdir()) == []
    assert call("corpora cache --clear all").code == OK
    assert [path for path in root.rglob("*") if path.is_file()] == []


def test_variables_move_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    for name in (cache.VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    places = {"HOME": ".cache/bpe-harness", "XDG_CACHE_HOME": "bpe-harness"}
    for name, place in {**places, cache.VARIABLE: ""}.items():  # each before those above
        monkeypatch.setenv(name, str(tmp_path / name))
        assert cache.folder("a") == tmp_path / name / place / "a"

    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    refused = call("corpora path ties")
    assert refused.code == UNMEASURED
    assert re.match(rf"cannot use the cache .*; set {cache.VARIABLE} to a folder", refused.err)


def test_a_home_that_cannot_be_written_gets_a_temporary_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    (tmp_path / "home").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(cache.VARIABLE, "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    first, again = call("corpora path ties"), call("corpora path ties")
    assert again == (OK, first.out, "")
    note = "(Not a directory), so nothing is kept after this command; set BPE_HARNESS_CACHE"
    assert note in first.err


def test_users_cannot_share_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied")
    monkeypatch.setattr(Path, "mkdir", Mock(side_effect=denied))
    with pytest.raises(
        Refusal, match=r"\(Permission denied; two users cannot share a cache\); set"
    ):
        cache.root()


def test_a_lock_is_a_plain_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "link").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    stranger = tmp_path.stat().st_uid + 1

    reasons = {
        "link": "it is a link",
        "pipe": "it is not a file",
        "folder": "Is a directory",
        "file": "it belongs to another user",
    }
    for name, reason in reasons.items():
        if name == "file":
            monkeypatch.setattr(os, "geteuid", lambda: stranger)
        with pytest.raises(Refusal, match=rf"cannot use the cache .*{name} \({reason}\)"):
            cache.lock(tmp_path / name)
    assert (tmp_path / "elsewhere").read_text() == "kept"
