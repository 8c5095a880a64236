"""A tokenizer is saved whole or not at all, and loaded as it was."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.common.registry import definition
from harness.tokenizer import load
from harness.tokenizers.folder import FILES, save
from harness.tokenizers.learned import trained
from harness.worker.exchange import merges_sha256
from variants.contract import GPT2_PATTERN, Merge, WordCounts

MERGES = [(b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"\xc3", b"\xa9"), (b"\x00", b"\xff"), (b"a", b"a")]
SPECIALS = ["<|e|>", "<|e|>x", "é"]
# Of these tokens, é is spelled like a byte, so there is no tokenizer.json.
WRITTEN = ["manifest.json", "merges.txt", "ranks.tiktoken", "vocab.json"]

words = st.dictionaries(st.binary(min_size=1, max_size=12), st.integers(1, 9), max_size=8) | st.dictionaries(
    st.text("ab\x00ÿ", min_size=1, max_size=12).map(lambda text: text.encode("latin-1")), st.integers(1, 9), max_size=8
)


def saved(
    folder: Path, merges: Sequence[Merge] = MERGES, specials: Sequence[str] = SPECIALS, overwrite: bool = False
) -> list[str]:
    return save(folder, trained(merges, specials, GPT2_PATTERN), {"variant": "mine"}, overwrite=overwrite)


# Files


def test_the_files_are_those_of_gpt2_and_the_manifest_has_the_origin(tmp_path: Path) -> None:
    merges = [(b" ", b"t"), (b"\xff", b"\x00"), (b" t", b"h")]
    saved(tmp_path, merges, ["<|e|>"])
    assert (tmp_path / "merges.txt").read_bytes() == "#version: 0.2\nĠ t\nÿ Ā\nĠt h\n".encode()
    ids = json.loads((tmp_path / "vocab.json").read_bytes())
    assert list(ids.values()) == list(range(260))
    tokens = ("a", "Ġ", "ÿ", "Ń", "<|e|>", "Ġt", "ÿĀ", "Ġth")
    assert [ids[token] for token in tokens] == [97, 32, 255, 173, *range(256, 260)]
    ranks = (tmp_path / "ranks.tiktoken").read_text().splitlines()
    assert ranks[255:] == ["/w== 255", "IHQ= 257", "/wA= 258", "IHRo 259"]
    assert json.loads((tmp_path / "manifest.json").read_bytes()) == {
        "schema": 1,
        "vocab_size": 260,
        "merges": 3,
        "merges_sha256": merges_sha256(merges),
        "special_tokens": [{"text": "<|e|>", "id": 256}],
        "pattern": {"name": "gpt2", "regex": GPT2_PATTERN},
        "variant": "mine",
        "files": {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in FILES[:4]},
    }


@given(word_counts=words, specials=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=3))
def test_a_saved_tokenizer_is_loaded_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, word_counts: dict[bytes, int], specials: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    merges = definition()(WordCounts.from_items(word_counts.items()), 40)
    saved(folder, merges, specials)
    assert load(folder).learned == trained(merges, specials, GPT2_PATTERN)


def test_what_a_form_cannot_hold_is_noted_and_loaded(tmp_path: Path) -> None:
    assert saved(tmp_path, MERGES, ["Ġthe"]) == [
        "special token 'Ġthe' is spelled like another token, so it is in manifest.json only, not in vocab.json",
        "tokenizer.json cannot hold this tokenizer: special token 'Ġthe' is spelled like another token, and a spelling "
        "has one id there",
    ]
    assert not (tmp_path / "tokenizer.json").exists()
    assert load(tmp_path).encode("Ġthe") == [256]
    merges = [(b"#version"[:length], b"#versions"[length : length + 1]) for length in range(1, 9)]
    (note,) = saved(tmp_path, merges, [], overwrite=True)
    assert "for a header" in note
    assert load(tmp_path).merges == merges


@pytest.mark.parametrize(
    ("merges", "specials", "answer"),
    [
        ([(b"a", b"b"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"bc")], [], "two merges make the same token"),
        ([(b"a", b"bc")], [], "merge 1 joins 'bc', which nothing makes"),
        ([], ["x", "x"], "or repeated one; pass each once"),
        ([], [""], "contain an empty or repeated one"),
        ([], ["\ud800"], "is not UTF-8"),
    ],
)
def test_an_impossible_tokenizer_is_not_saved(
    tmp_path: Path, merges: list[Merge], specials: list[str], answer: str
) -> None:
    with pytest.raises(Refusal, match=answer):
        saved(tmp_path, merges, specials)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_a_folder_with_a_tokenizer_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"{")
    with pytest.raises(Refusal, match=rf"has a tokenizer already \({name}\).*overwrite=true") as refused:
        saved(tmp_path)
    assert refused.value.exit_code == USAGE
    assert [path.name for path in tmp_path.iterdir()] == [name]
    saved(tmp_path, overwrite=True)  # removes tokenizer.json, which this tokenizer cannot have
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN


# Whole or not at all


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("survivors", range(len(WRITTEN)))
def test_an_interrupted_save_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int) -> None:
    saved(tmp_path, MERGES)
    replace = os.replace
    replaced: list[Any] = []

    def cut_short(source: Any, target: Any) -> None:
        if len(replaced) == survivors:
            raise Killed
        replaced.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", cut_short)
    with pytest.raises(Killed):
        saved(tmp_path, MERGES[:2], overwrite=True)
    monkeypatch.undo()
    if survivors == 0:
        assert load(tmp_path).merges == MERGES
    else:
        with pytest.raises(Refusal, match=r"vocab\.json cannot be used: it is not the file that manifest\.json desc"):
            load(tmp_path)
    saved(tmp_path, MERGES[:2], overwrite=True)
    assert load(tmp_path).merges == MERGES[:2]
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN


def test_a_full_disk_leaves_the_old_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, MERGES)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refusal, match=r"cannot write a tokenizer to .* \(No space left on device\)") as refused:
        saved(tmp_path, MERGES[:2], overwrite=True)
    assert refused.value.exit_code == UNMEASURED
    assert load(tmp_path).merges == MERGES
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN
    with pytest.raises(Refusal, match="choose another folder"):
        saved(tmp_path / "merges.txt" / "below")
