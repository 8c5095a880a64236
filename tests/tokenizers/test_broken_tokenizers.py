"""Whatever is wrong with a tokenizer's files, one sentence says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import SPECIALS, changed, learned, sequence

from harness.common.errors import Refusal
from harness.tokenizer import load
from harness.tokenizers.folder import save
from harness.tokenizers.forms import ranks_text
from harness.tokenizers.learned import BYTES, spelled
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT
from variants.contract import GPT2_PATTERN

STRING = sequence({**SPLIT, "pattern": {"String": "a"}}, BYTE_LEVEL)
GPT2: dict[str, Any] = {"pattern": GPT2_PATTERN, "special_tokens": ["<|endoftext|>"]}


def with_file(folder: Path, name: str, old: str | None, new: str | None) -> Path:
    """The folder with one text of a file replaced, or all of it; or without the file."""
    content = (folder / name).read_text(encoding="utf-8")
    if new is None:
        (folder / name).unlink()
    else:
        text = new if old is None else content.replace(old, new, 1)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def ours(folder: Path, *change: Any) -> Path:
    save(folder, learned("gpt2", SPECIALS), {})
    return with_file(folder, *change)


def gpt2(folder: Path, *change: Any) -> Path:
    """GPT-2's own order of ids: bytes by their characters, merges, the special token last; and no manifest."""
    tokens = [*sorted(map(spelled, BYTES)), "th", "the", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")
    return with_file(folder, *change) if change else folder


def tokenizer_json(folder: Path, changes: dict[str, Any]) -> Path:
    return changed(folder, **changes)


def ranks(folder: Path, content: str | None = None) -> Path:
    path = folder / "some.tiktoken"
    path.write_bytes(ranks_text(learned()) if content is None else content.encode())
    return path


def test_files_of_gpt2_are_read_with_their_own_ids(tmp_path: Path) -> None:
    ids = load(gpt2(tmp_path), **GPT2).encode("the !<|endoftext|>")
    assert ids == [257, ord("Ġ") - 256 + 188, 0, 258]


@pytest.mark.parametrize(
    ("make", "change", "options", "answer"),
    [
        (ours, ("vocab.json", "", ""), {"pattern": None}, "contains the pattern and the special tokens"),
        (ours, ("vocab.json", "{", "{ "), {}, "vocab.json cannot be used: it is not the file that manifest.json"),
        (ours, ("merges.txt", "t", "h"), {}, "merges.txt cannot be used: it is not the file that manifest.json"),
        (ours, ("merges.txt", None, None), {}, "No such file or directory.; python -m harness.tokenizer train"),
        (ours, ("manifest.json", None, "{"), {}, "manifest.json cannot be used: Input data was truncated"),
        (ours, ("manifest.json", None, '{"schema": 2}'), {}, "Invalid enum value 2 - at `..schema`"),
        (ours, ("manifest.json", '"special_tokens"', '"s"'), {}, "missing required field `special_tokens`"),
        (gpt2, (), {}, "lacks its pattern; python -m harness.tokenizer convert --to ours takes --pattern"),
        (gpt2, (), {"pattern": None}, "'<.endoftext.>' is not a byte, no merge makes it"),
        (gpt2, (), {**GPT2, "special_tokens": ["<|e|>"]}, "no special token '<.e.>'; pass those"),
        (gpt2, (), {**GPT2, "pattern": "("}, "is not a regular expression"),
        (gpt2, ("merges.txt", "t h", "t h\r"), GPT2, "line 2 is not a merge"),
        (gpt2, ("merges.txt", "t h\n", ""), GPT2, "merge 1 joins 'th', which nothing makes"),
        (gpt2, ("merges.txt", "th e", "th i"), GPT2, "it gives no id to 'thi'"),
        (gpt2, ("vocab.json", '"the"', '"thi"'), GPT2, "it gives no id to 'the'"),
        (gpt2, ("vocab.json", "258", "257"), GPT2, "it gives one id to two tokens"),
        (gpt2, ("vocab.json", "258", "258.0"), GPT2, "Expected `int`, got `float`"),
        (tokenizer_json, ({"normalizer": {"type": "NFC"}},), {}, "it changes the text first .normalizer NFC."),
        (tokenizer_json, ({"model__byte_fallback": True},), {}, "its byte_fallback is true; ours has none"),
        (tokenizer_json, ({"model__dropout": 0.1},), {}, "its dropout is 0.1; ours has none"),
        (tokenizer_json, ({"model__type": "WordPiece"},), {}, "its model is WordPiece"),
        (tokenizer_json, ({"model__vocab": []},), {}, "it gives no id to "),
        (tokenizer_json, ({"model__merges": [["x", "yz"]]},), {}, "merge 1 joins 'yz', which nothing makes"),
        (tokenizer_json, ({"pre_tokenizer": None},), {}, "its pre-tokenizer is null; the last one must be ByteLevel"),
        (tokenizer_json, ({"pre_tokenizer": {"type": "ByteLevel"}},), {}, "puts a blank before the text"),
        (tokenizer_json, ({"pre_tokenizer": STRING},), {}, "is not a Split by a Regex"),
        (tokenizer_json, ({"added_tokens": [{"id": 256, "content": "<|e|>", "lstrip": True}]},), {}, "has lstrip"),
        (tokenizer_json, ({"added_tokens": [{"id": 999, "content": "<|e|>"}]},), {}, "it gives two ids to '<.e.>'"),
        (tokenizer_json, ({"added_tokens": [{}]},), {}, "missing required field `id` - at `..added_tokens.0.`"),
        (tokenizer_json, ({"model__vocab__x": -1},), {}, "Expected `int` >= 0 - at `..model.vocab"),
        (ranks, ("YQ==\n",), {"pattern": None}, "line 1 is not a token in base64 and its rank"),
        (ranks, (), {"pattern": None, "special_tokens": {"<|e|>": 5}}, "special token '<.e.>' has the id 5 of"),
        (ranks, (), {"pattern": None, "special_tokens": {"a": 500, "b": 500}}, "special token .b. has the id 500"),
        (ranks, (), {}, "lacks its pattern"),
        (ranks, (), {"pattern": None, "special_tokens": ["<|e|>"]}, "give each as <.e.>=ID"),
    ],
)  # fmt: skip
def test_broken_files_are_refused_with_a_sentence(
    tmp_path: Path, make: Any, change: tuple[Any, ...], options: dict[str, Any], answer: str
) -> None:
    path = make(tmp_path, *change)
    with pytest.raises(Refusal, match=answer) as refused:
        load(path, **options)
    assert "\n" not in str(refused.value)
