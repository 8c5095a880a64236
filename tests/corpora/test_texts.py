"""A text as people have it is read right or refused in one sentence: the rows of texts.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fetched import cached
from rows import rows_beside, write_files

from harness.common.errors import Refusal
from harness.corpora.texts import documents, text


@pytest.mark.parametrize("row", rows_beside(__file__, "texts.toml"))
def test_a_text_is_read_right_or_refused_in_one_sentence(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, row.get("files", {}))
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
