"""The lists of merges that original programs made are reached merge for merge; few machines have
these lists.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rows import rows_beside
from workbench import corpus_of

from harness.common import registry
from harness.tokenizers.learned import read_spelling
from variants import vetoes
from variants.contract import Merge, TieBreak, WordCounts
from variants.counting import native

SHARED = next(
    (each / "shared" for each in Path(__file__).resolve().parents if (each / "shared").is_dir()),
    Path("shared"),
)
"""A folder beside the checkout that holds texts, and lists of their merges."""
pytestmark = pytest.mark.slow


def merges_in(name: str) -> list[Merge]:
    """The merges of a list; skips the test without it."""
    file = SHARED / name
    if not file.is_file():
        pytest.skip(f"needs {file}")
    merges = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            left, right = map(read_spelling, line.split(" "))
            merges.append((left, right))
    return merges


def words_of(folder: Path, pattern: str, text: dict[str, Any]) -> WordCounts:
    content = (SHARED / "corpora" / text["file"]).read_bytes()
    part = content[text.get("offset", 0) :][: text["bytes"]]
    return native.native(corpus_of(folder, part, (), registry.patterns()[pattern]))


@pytest.mark.parametrize("row", rows_beside(__file__, "original_lists.toml"))
def test_list_of_an_original_program_is_reached(row: dict[str, Any], tmp_path: Path) -> None:
    merges = merges_in(row["list"])
    rules: dict[str, Any] = {}
    if "extends" in row:
        rules = {"inherited": merges_in(row["extends"]), "inheriting": "met"}
    rules["tie_break"] = TieBreak(row["tie_break"])
    rules["veto"] = vetoes.named(row["veto"])
    counted = words_of(tmp_path, row["pattern"], row["text"])
    for trainer in row["trainers"]:
        assert registry.resolve(trainer)(counted, len(merges), **rules) == merges
