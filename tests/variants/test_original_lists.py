"""The lists of merges that original programs made are reached merge for merge; few machines have
these lists.
"""

import re
from pathlib import Path

import pytest
from rows import Row, each_row
from workbench import CHECKOUT, corpus_of

from harness.common import registry
from harness.tokenizers.forms import read_merges
from variants import vetoes
from variants.contract import Merge, TieBreak
from variants.counting import native

SHARED = CHECKOUT.parent / "shared"
"""A folder beside the checkout that holds texts, and lists of their merges."""
pytestmark = pytest.mark.slow


def merges_in(name: str) -> list[Merge]:
    """The merges of a list; skips the test without it."""
    file = SHARED / name
    if not file.is_file():
        pytest.skip(f"needs {file}")
    return read_merges(re.sub(rb"(?m)^#.*\n", b"", file.read_bytes()))


@each_row(__file__, "original_lists.toml")
def test_list_of_an_original_program_is_reached(row: Row, tmp_path: Path) -> None:
    merges = merges_in(row["list"])
    rules: Row = {"tie_break": TieBreak(row["tie_break"]), "veto": vetoes.named(row["veto"])}
    if "extends" in row:
        rules |= {"inherited": merges_in(row["extends"]), "inheriting": "met"}

    text = (SHARED / "corpora" / row["text"]["file"]).read_bytes()[: row["text"]["bytes"]]
    words = native.native(corpus_of(tmp_path, text, (), registry.patterns()[row["pattern"]]))
    for trainer in row["trainers"]:
        assert registry.resolve(trainer)(words, len(merges), **rules) == merges
