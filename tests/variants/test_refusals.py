"""A variant says in one sentence what it cannot do, and what to do instead: rows of refusals.toml."""

import heapq
import re
import sys
from typing import Any

import pytest
from rows import Row, each_row

from harness.common import registry
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts


@each_row(__file__, "refusals.toml")
def test_variant_says_what_it_cannot_do(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(heapq, "heappush_max", raising=False)  # as before Python 3.14
    if "interpreter" in row:
        monkeypatch.setattr(sys.implementation, "cache_tag", row["interpreter"])
    for module in row.get("absent", []):
        monkeypatch.setitem(sys.modules, module, None)

    words = row.get("words", {"abc": 2})
    given: Any = WordCounts.from_columns(map(str.encode, words), words.values())
    if "text" in row:
        pattern = registry.patterns()[row["text"].get("pattern", "gpt2")]
        given = Corpus(__file__, **{**row["text"], "pattern": pattern})
    if "peers" in row["train"]:
        monkeypatch.setattr(row["train"].replace(":train", ".PEER.package"), object())

    params = dict(row.get("params", {}))
    if "tie_break" in params:
        params["tie_break"] = TieBreak(params["tie_break"])

    expected = Unavailable if "unavailable" in row else ValueError
    sentence = row.get("unavailable") or row["refused"]
    with pytest.raises(expected, match=re.escape(sentence)):
        registry.resolve(row["train"])(given, 5, **params)
