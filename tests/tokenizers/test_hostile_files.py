"""Mutated tokenizers and odd arrays of ids get one sentence, from every door and in bounded memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers_made import SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.tokenizer import load, main, train
from harness.tokenizers.extension import tokens_in
from harness.tokenizers.folder import save

ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    1 << 70,
    "",
    "a",
    "\x00",
    "Ġ" * 300,
    [],
    [1, 2],
    {},
    {"": {}},
]
FORMS = ("manifest.json", "tokenizer.json", "vocab.json", "merges.txt", "ranks.tiktoken")
GPT2: dict[str, Any] = {"pattern": None, "special_tokens": ["<|e|>"]}


def mutated_json(content: bytes, chance: random.Random) -> bytes:
    """The content with one value, deep or not, replaced by an odd one, taken away or renamed."""
    whole = part = json.loads(content)
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = chance.choice(keys)
        inner = part[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            break
        part = inner

    change = chance.randrange(3)
    if change == 0:
        part[key] = chance.choice(ODD)
    elif change == 1:
        del part[key]
    elif isinstance(part, dict):
        part[f"{key}x"] = part.pop(key)
    else:
        part.insert(0, inner)
    return json.dumps(whole).encode()


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """The content with some bytes replaced by others, or cut, or doubled."""
    start = chance.randrange(len(content))
    stop = start + chance.randint(1, 30)
    middle = chance.choice(
        [b"", b"\xff", b"-1", b" ", b"\n\n", b"[" * 9999, content[start:stop] * 2]
    )
    return content[:start] + middle + content[stop:]


def problem_of(path: Path, again: Path, options: dict[str, Any]) -> str:
    """Why a tokenizer is refused; empty if it is loaded, decodes what it encodes, and is saved."""
    try:
        tokenizer = load(path, **options)
        tokenizer.save(again)
    except Refusal as refusal:
        return str(refusal)
    ids = tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT.encode()
    assert load(again).encode(TEXT) == ids
    return ""


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_tokenizer_is_loaded_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    save(tmp_path, learned("gpt2", SPECIALS, merges=20), {})
    name = FORMS[seed % len(FORMS)]
    content = (tmp_path / name).read_bytes()
    mutations: list[Callable[[bytes, random.Random], bytes]] = [mutated_bytes]
    if name.endswith(".json"):
        mutations.append(mutated_json)
    (tmp_path / name).write_bytes(chance.choice(mutations)(content, chance))
    if name in ("vocab.json", "merges.txt"):
        (tmp_path / "manifest.json").unlink()
    path = tmp_path / ("vocab.json" if name == "merges.txt" else name)

    options = {} if name in FORMS[:2] else GPT2
    problem = problem_of(path, tmp_path / "again", options)
    assert "\n" not in problem


def header(shape: tuple[int, ...], kind: str = "<u2") -> bytes:
    """The first bytes of a .npy file that promises an array of this shape."""
    text = repr({"descr": kind, "fortran_order": False, "shape": shape})
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + f"{text}\n".encode()


ARRAYS: dict[str, Any] = {
    "infinity": np.array([1, np.inf]),
    "two dimensions": np.array([[1, 2]]),
    "a scalar": np.array(5),
    "fields": np.array([(1, 2)], [("a", "i4"), ("b", "i4")]),
    "truth": np.array([True]),
    "text": np.array(["1"]),
    "7 TiB": header((1 << 42,)),
    "more than an address": header((1 << 62, 4)),
    "objects": header((2,), "|O"),
    "an unclosed header": b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16,
    "an archive": b"PK\x03\x04abc",
    "nothing": b"",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_is_not_ids_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, learned(), {})
    path, array = tmp_path / "x.npy", ARRAYS[name]
    if isinstance(array, bytes):
        path.write_bytes(array)
    else:
        np.save(path, array)
    assert main(["decode", str(tmp_path), str(path)]) == 22
    assert capsys.readouterr().err.startswith(f"{path} is ")


@pytest.mark.parametrize("ids", [np.array([104, 105], ">u4"), np.empty(0, "u2")])
def test_ids_of_any_whole_numbers_are_decoded(
    tmp_path: Path, ids: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    save(tmp_path, learned(), {})
    np.save(tmp_path / "ids.npy", ids)
    assert main(["decode", str(tmp_path), str(tmp_path / "ids.npy")]) == 0
    assert capfdbinary.readouterr().out == bytes(ids.tolist())


@pytest.mark.parametrize("ids", [[[104]], [1.5], [-1], [999], ["1"], np.array([[104]])])
def test_what_is_not_an_id_is_not_decoded(ids: Any) -> None:
    with pytest.raises(Refusal, match="the ids of this tokenizer are 0 to 258"):
        train({"low": 5}, 259).decode(ids)


@pytest.mark.parametrize("word", ["1.5", "9" * 5000])
def test_a_word_that_is_not_a_number_is_named(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, learned(), {})
    assert main(["decode", str(tmp_path), f"104 {word}"]) == 2
    assert f"{word[:40]!r} is not an id" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["[" * 50_000, "5", '"\\ud800"', '"a'])
def test_a_file_of_seeds_that_is_not_strings_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "seeds").write_text(line)
    with pytest.raises(Refusal, match="is not a JSON string"):
        tokens_in("seeds", str(tmp_path / "seeds"))
