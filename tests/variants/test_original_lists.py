"""The lists of merges that original programs made are reached merge for merge; few machines have
these lists.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.common import registry
from harness.tokenizers.learned import read_spelling
from variants import flat, naive_extending, parity, seg_status, vetoes
from variants.contract import Corpus, Merge, TieBreak, WordCounts
from variants.counting import native

SHARED = next(
    (each / "shared" for each in Path(__file__).resolve().parents if (each / "shared").is_dir()),
    Path("shared"),
)
"""A folder beside the checkout that holds texts, and lists of their merges."""
pytestmark = pytest.mark.slow


def merges_in(file: Path) -> list[Merge]:
    """The merges of a list; skips the test if it is missing."""
    if not file.is_file():
        pytest.skip(f"needs {file}")
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if not line.startswith("#")]
    return [(read_spelling(left), read_spelling(right)) for left, right in pairs]


def head_of(name: str) -> tuple[list[Merge], dict[str, Any]]:
    """The merges of a list of the family, and what its first line says of them."""
    file = SHARED / "family" / f"{name}.txt"
    return merges_in(file), json.loads(
        file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    )


def words_of(folder: Path, pattern: str, text: dict[str, Any]) -> WordCounts:
    content = (SHARED / "corpora" / text["file"]).read_bytes()
    (folder / "text").write_bytes(content[text["offset"] :][: text["bytes"]])
    return native.native(
        Corpus(str(folder / "text"), (), registry.cards("pattern")[pattern]["regex"])
    )


@pytest.mark.parametrize(
    ("name", "file", "size"),
    [("udhr", "multi_udhr.txt", 999_788), ("novels", "en_novels.txt", 999_555)],
)
def test_superwords(name: str, file: str, size: int, tmp_path: Path) -> None:
    first, both = (
        merges_in(SHARED / "superwords" / f"{name}{stage}.txt") for stage in (".stage1", "")
    )
    text, rule = {"file": file, "offset": 0, "bytes": size}, TieBreak.HUGGINGFACE
    words, pieces = (
        words_of(tmp_path, pattern, text) for pattern in ("superbpe_words", "superbpe")
    )
    assert flat.train(words, len(first), tie_break=rule) == first
    extending: dict[str, Any] = {"inherited": first, "inheriting": "met", "veto": vetoes.superbpe}
    assert flat.train(pieces, len(both), tie_break=rule, **extending) == both


@pytest.mark.parametrize("name", ["whole.ja", "whole.emoji"])
def test_whole_characters(name: str, tmp_path: Path) -> None:
    merges, head = head_of(name)
    words = words_of(tmp_path, head["pattern"], head["text"])
    rules: dict[str, Any] = {
        "tie_break": TieBreak(head["tie_break"]),
        "veto": vetoes.named(head["veto"]),
    }
    for module in (naive_extending, seg_status, flat):
        assert module.train(words, len(merges), **rules) == merges


@pytest.mark.parametrize("name", ["parity.dev", "parity.ratio"])
def test_parity(name: str, tmp_path: Path) -> None:
    merges, head = head_of(name)
    tables, dev = (
        [words_of(tmp_path, head["pattern"], text) for text in head[key] or ()]
        for key in ("train", "dev")
    )
    rules: dict[str, Any] = {"dev": dev, "ratio": head.get("ratio") or ()}
    rules["tie_break"] = parity.TIE_BREAKS[head["tie_break"]]
    served = parity.train(tables, len(merges), **rules)
    assert [merge for merge, _ in served] == merges
    assert parity.naive(tables, 30, **rules) == served[:30]
