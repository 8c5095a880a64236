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
import regex
from tokenizers_made import PATTERNS, SPECIALS, changed, isolated, learned, sequence

from harness.common.errors import Refusal
from harness.tokenizer import load
from harness.tokenizers.folder import save
from harness.tokenizers.forms import ranks_text, read_merges_file
from harness.tokenizers.learned import BYTES, spelled, trained
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT, joined, pattern_of
from variants.contract import GPT2_PATTERN
from variants.counting.patterns import compiled

# Tokenizers

BROKEN = json.loads(Path(__file__).with_name("broken_tokenizers.json").read_text(encoding="utf-8"))
"""How a tokenizer is made, what of it is changed, the options of `load`, and what the answer is."""
DEEP: dict[str, Any] = {"pattern": "(" * 4000 + ")" * 4000}
BROKEN.append(["ranks", [], DEEP, r"^pattern '.{80}' is not a regular expression: .{0,90}$"])
GPT2: dict[str, Any] = {"pattern": "gpt2", "special_tokens": ["<|endoftext|>"]}


def ours(folder: Path, name: str, old: str | None, new: str | None) -> Path:
    save(folder, learned("gpt2", SPECIALS), {})
    return with_file(folder, name, old, new)


def gpt2(folder: Path, name: str = "merges.txt", old: str = "", new: str = "") -> Path:
    """GPT-2's own order of ids: bytes by their characters, merges, the special token last; and no
    manifest.
    """
    tokens = [*sorted(map(spelled, BYTES)), "th", "the", "<|endoftext|>"]
    (folder / "vocab.json").write_text(
        json.dumps({token: number for number, token in enumerate(tokens)})
    )
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
    known = [split(PATTERNS.get(step, step)) if isinstance(step, str) else step for step in written]
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


def test_files_of_gpt2_are_read_with_their_own_ids(tmp_path: Path) -> None:
    ids = load(gpt2(tmp_path), **GPT2).encode("the !<|endoftext|>")
    assert ids == [257, ord("Ġ") - 256 + 188, 0, 258]


@pytest.mark.parametrize(("make", "change", "options", "answer"), BROKEN)
def test_broken_files_are_refused_with_a_sentence(
    tmp_path: Path, make: str, change: list[Any], options: dict[str, Any], answer: str
) -> None:
    path = MAKERS[make](tmp_path, *change)
    with pytest.raises(Refusal, match=answer) as refused:
        load(path, **options)
    assert "\n" not in str(refused.value)


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
    assert read_merges_file(written(tmp_path, "{ x\n")).merges == [(b"{", b"x")]


def test_a_folder_is_read_by_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(
        Refusal, match=r"holds none of merges.txt, tokenizer.json; pass a file of byte-level merges"
    ):
        read_merges_file(tmp_path)
    written(tmp_path, json.dumps({"model": {"merges": ["a b"]}}), "tokenizer.json")
    assert read_merges_file(tmp_path).merges == [(b"a", b"b")]
    written(tmp_path, "#version: 0.2", "merges.txt")
    assert read_merges_file(tmp_path).merges == []


@pytest.mark.parametrize(("content", "why"), LISTS["refused"])
def test_broken_files_are_refused_with_the_line(tmp_path: Path, content: str, why: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(
        Refusal, match=rf"^{re.escape(str(path))}, read as .*: .*{re.escape(why)}.*; it can be"
    ):
        read_merges_file(path)


# Pre-tokenizers become one expression that splits as their steps do

SIGNS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAINS = {
    "digits, then GPT-2's": [r"\p{N}", GPT2_PATTERN],
    "digits together, then GPT-2's": [r"\p{N}+", GPT2_PATTERN],
    "numbers in threes, then any": [r"\p{N}{1,3}", PATTERNS["llama3"].replace("{1,3}", "+")],
    "numbers, then threes": [r"\p{N}+", PATTERNS["llama3"]],
    "DeepSeek V3's": [r"\p{N}{1,3}", "[一-龥\u3040-\u309f\u30a0-\u30ff]+", SIGNS],
}
PIECES = (
    *(
        "ア・イ",
        "中",
        "a",
        "B",
        "'s",
        "'S",
        "'",
        "12",
        "3",
        "٣٣٣٣",
        "½",
        "e\u0301",
        "\u0301",
        "\u200b",
        "\x00",
        "$x",
    ),
    *(" ", "  ", "\n", "\r\n", " \n ", "\u3000", "!", "?!", "...", " 1", "1 "),
    *("・", "ー", "\u3099", "\u309b", "\u3040"),
)


def split(expression: str) -> dict[str, Any]:
    return {**SPLIT, "pattern": {"Regex": expression}}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_steps_joined_split_as_one_after_another(chain: list[str]) -> None:
    expression, chance = regex.compile(joined(chain)), random.Random(7)
    for _ in range(300):
        text = "".join(chance.choices(chance.sample(PIECES, 6), k=chance.randint(0, 30)))
        pieces = [text]
        for step in chain:
            pieces = [part for piece in pieces for part in isolated(step, piece)]
        assert [found.group() for found in expression.finditer(text)] == pieces, text


DIGITS = {"type": "Digits", "individual_digits": True}
WHOLE = {**BYTE_LEVEL, "use_regex": True}
READ: list[tuple[list[Any], str | None]] = [
    (
        [{**split(PATTERNS["gpt4"]), "behavior": "Removed", "invert": True}, BYTE_LEVEL],
        PATTERNS["gpt4"],
    ),
    ([WHOLE], GPT2_PATTERN),
    ([BYTE_LEVEL], None),
    ([DIGITS, WHOLE], PATTERNS["starcoder2"]),
    ([sequence(split(r"\p{N}")), split(GPT2_PATTERN), BYTE_LEVEL], PATTERNS["starcoder2"]),
]


@pytest.mark.parametrize(("steps", "pattern"), READ)
def test_a_pre_tokenizer_is_read_as_its_pattern(steps: list[Any], pattern: str | None) -> None:
    assert pattern_of(sequence(*steps)) == pattern
    assert compiled(pattern)


def test_sets_within_sets_mean_what_hugging_face_means_by_them() -> None:
    expression = pattern_of(sequence(split(r"\p{Han}+|[\p{L}&&[^\p{Han}]]+|."), BYTE_LEVEL))
    assert regex.findall(expression or "", "中文ABc1") == ["中文", "ABc", "1"]
