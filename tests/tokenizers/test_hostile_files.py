"""Mutated tokenizers and odd arrays of ids get one sentence, from every door and in bounded memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rows import rows_beside, write_files
from tokenizers_made import SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.tokenizer import load, main, train
from harness.tokenizers.folder import FILES_OF, save
from harness.tokenizers.post_processor import Around

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
AROUND = json.loads(Path(__file__).with_name("around.json").read_text(encoding="utf-8"))
MUCH_AROUND = msgspec.convert(AROUND["of a manifest"], Around)
JUNK = [b"", b"\xff", b"-1", b" ", b"\n\n", b"[" * 9999]


def mutated_json(content: bytes, chance: random.Random) -> bytes:
    """The content with one value, deep or not, replaced by an odd one, taken away or doubled."""
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
    elif change == 1 or isinstance(part, dict):
        del part[key]
    else:
        part.insert(0, inner)
    return json.dumps(whole).encode()


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """The content with some bytes replaced by others, or cut, or doubled."""
    start = chance.randrange(len(content))
    stop = start + chance.randint(1, 30)
    return content[:start] + chance.choice([*JUNK, content[start:stop] * 2]) + content[stop:]


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_tokenizer_is_loaded_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    save(tmp_path, learned("gpt2", SPECIALS, merges=20)._replace(around=MUCH_AROUND), {})
    names = FILES_OF["ours"]
    path = tmp_path / names[seed % len(names)]
    mutated = mutated_bytes
    if path.suffix == ".json" and chance.random() < 0.5:
        mutated = mutated_json
    path.write_bytes(mutated(path.read_bytes(), chance))
    options: dict[str, Any] = {}
    if path.name not in ("manifest.json", "tokenizer.json"):
        options = {"pattern": None, "special_tokens": ["<|e|>"]}
    if path.name == "merges.txt":
        path = tmp_path / "vocab.json"

    try:
        tokenizer = load(path, **options)
        tokenizer.save(tmp_path / "again")
    except Refusal as refusal:
        sentence = str(refusal)
    else:
        sentence = ""
        ids = tokenizer.encode(TEXT)
        assert tokenizer.decode(ids) == TEXT.encode()
        assert load(tmp_path / "again").encode(TEXT) == ids
    assert "\n" not in sentence


@pytest.mark.parametrize("row", rows_beside(__file__, "arrays.toml"))
def test_an_array_that_is_not_ids_is_refused(
    row: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, learned(), {})
    write_files(tmp_path, row["files"])
    path = tmp_path / next(iter(row["files"]))
    assert main(["decode", str(tmp_path), str(path)]) == 22
    assert (
        capsys.readouterr().err
        == f"{path} is {row['refused']}; pass one that encode --output wrote\n"
    )


@pytest.mark.parametrize("ids", [[[104]], [1.5], [-1], [999], ["1"], np.array([[104]])])
def test_what_is_not_an_id_is_not_decoded(ids: Any) -> None:
    with pytest.raises(Refusal, match="the ids of this tokenizer are 0 to 258"):
        train({"low": 5}, 259).decode(ids)
