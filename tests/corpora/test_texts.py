"""A text as people have it is read right or refused in one sentence: the rows of texts.toml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import tomllib
from fetched import PACK, cached

from harness.common.errors import Refusal
from harness.corpora.texts import documents, text

ROWS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text())["row"]


def write(files: dict[str, str]) -> None:
    for name, content in files.items():
        raw = re.sub(rb"\\x(..)", lambda match: bytes.fromhex(match[1].decode()), content.encode())
        if not name.startswith("raw:"):
            for suffix in Path(name).suffixes:
                raw = PACK.get(suffix, bytes)(raw)
        path = Path(name.removeprefix("raw:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


@pytest.mark.parametrize("row", ROWS, ids=[row["title"] for row in ROWS])
def test_a_text_is_read_right_or_refused_in_one_sentence(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(row.get("files", {}))
    source = row["source"] if "source" in row else next(iter(row["files"]))
    how = row.get("settings", []), row.get("tokens", ["<|>"]), row.get("errors", "strict")
    before = cached()
    if "refused" in row:
        with pytest.raises(Refusal) as refused:
            text(source, *how)
        sentence = str(refused.value)
        assert row["refused"] in sentence
        assert "\n" not in sentence
        assert cached() == before, "something half-written was left"
        return

    file = text(source, *how)
    assert file.path.read_bytes().decode() == row["text"]
    assert file.name == row.get("name", file.name)
    is_slice = any("data.column" not in setting for setting in how[0])
    if not is_slice and how[2] == "strict":
        with documents(source, how[0]) as found:
            streamed = b"".join(block for document in found for block in document)
        assert streamed.decode().replace("<|>", "") == row["text"].replace("<|>", "")
