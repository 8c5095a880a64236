"""Files of every form are read, whoever wrote them; whatever is wrong with one, one sentence says
it.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from rows import rows_beside
from tokenizers_made import PATTERNS, SPECIALS, changed, learned, sequence

from harness.common.errors import Refusal
from harness.tokenizer import load
from harness.tokenizers.folder import save
from harness.tokenizers.forms import ranks_text, read_merges_file
from harness.tokenizers.learned import BYTES, spelled, trained
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, split_by

# Tokenizers

BROKEN = json.loads(Path(__file__).with_name("broken_tokenizers.json").read_text(encoding="utf-8"))
"""How a tokenizer is made, what of it is changed, the options of `load`, and what the answer is."""
DEEP: dict[str, Any] = {"pattern": "(" * 4000 + ")" * 4000}
BROKEN.append(["ranks", [], DEEP, r"^pattern '.{80}' is not a regular expression: .{0,90}$"])


def ours(folder: Path, name: str, old: str | None, new: str | None) -> Path:
    save(folder, learned("gpt2", SPECIALS), {})
    return with_file(folder, name, old, new)


def gpt2(folder: Path, name: str = "merges.txt", old: str = "", new: str = "") -> Path:
    """GPT-2's own order of ids: bytes by their characters, merges, the special token last; and no
    manifest.
    """
    tokens = [*sorted(map(spelled, BYTES)), "th", "the", "<|endoftext|>"]
    ids = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(ids))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")
    return with_file(folder, name, old, new)


def with_file(folder: Path, name: str, old: str | None, new: str | None) -> Path:
    """The folder with one text of a file replaced, or all of it; or without the file."""
    content = (folder / name).read_text(encoding="utf-8")
    (folder / name).unlink()
    if new is not None:
        text = new if old is None else content.replace(old, new, 1)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def steps(folder: Path, *written: Any) -> Path:
    """A tokenizer.json with the steps of a pre-tokenizer; a text is a Split by it."""
    known = []
    for step in written:
        known.append(split_by(PATTERNS.get(step, step)) if isinstance(step, str) else step)
    return changed(folder, pre_tokenizer=sequence(*known, BYTE_LEVEL))


def ranks(folder: Path, where: str = "append", content: str = "") -> Path:
    before = ranks_text(learned()) if where == "append" else b""
    return written(folder, before + content.encode(), "some.tiktoken")


MAKERS: dict[str, Any] = {
    "ours": ours,
    "gpt2": gpt2,
    "tokenizer_json": lambda folder, changes: changed(folder, **changes),
    "steps": steps,
    "ranks": ranks,
}


@pytest.mark.parametrize(("make", "change", "options", "answer"), BROKEN)
def test_broken_files_are_refused_with_a_sentence(
    tmp_path: Path, make: str, change: list[Any], options: dict[str, Any], answer: str
) -> None:
    path = MAKERS[make](tmp_path, *change)
    with pytest.raises(Refusal, match=answer) as refused:
        load(path, **options)
    assert "\n" not in str(refused.value)


def test_files_of_gpt2_are_read_with_their_own_ids(tmp_path: Path) -> None:
    options: dict[str, Any] = {"pattern": "gpt2", "special_tokens": ["<|endoftext|>"]}
    ids = load(gpt2(tmp_path), **options).encode("the !<|endoftext|>")
    assert ids == [257, ord("Ġ") - 256 + 188, 0, 258]


LETTERS = "aBqsS'123٣½²e\u0301\u200b\u200c\u212a\x00$x \n\r\u3000!?.中ア・イー\u3099\u309b\u3040"


@pytest.mark.parametrize("row", rows_beside(__file__, "tokenizer_json.toml"))
def test_a_tokenizer_json_means_here_what_hugging_face_means(
    row: dict[str, Any], tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = changed(tmp_path, **row["changes"])
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ours = load(path)
    if "pattern" in row:
        assert ours.pattern == PATTERNS[row["pattern"]]

    chance = random.Random(7)
    for _ in range(300):
        text = "".join(chance.choices(chance.sample(LETTERS, 8), k=chance.randint(1, 30)))
        pieces = [piece for piece, _ in theirs.pre_tokenizer.pre_tokenize_str(text)]
        assert [spelled(piece.encode()) for piece in ours.pieces(text) if piece] == pieces
        assert ours.encode(text) == theirs.encode(text).ids

    ours.save(tmp_path / "again")
    assert load(tmp_path / "again").learned == ours.learned


# Merges

MERGES = [(b"t", b"h"), (b"th", b"e")]
LISTS = json.loads(Path(__file__).with_name("merges.json").read_text(encoding="utf-8"))
"""Contents with their form, or with what is wrong with them."""


def written(folder: Path, content: str | bytes, name: str = "merges") -> Path:
    """A file with a content, in which RANKS are those of MERGES and DEEP is a deep list."""
    if isinstance(content, str):
        ranks = ranks_text(trained(MERGES, [], None)).decode()
        content = content.replace("RANKS", ranks).replace("DEEP", "[" * 50_000)
        content = content.encode(errors="surrogateescape")
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("content", "form"), LISTS["read"])
def test_the_content_decides_the_form(tmp_path: Path, content: str, form: str) -> None:
    assert read_merges_file(written(tmp_path, content)) == (MERGES, form)


@pytest.mark.parametrize(("content", "why"), LISTS["refused"])
def test_broken_files_are_refused_with_the_line(tmp_path: Path, content: str, why: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(
        Refusal, match=rf"^{re.escape(str(path))}, read as .*: .*{re.escape(why)}.*; it can be"
    ):
        read_merges_file(path)
