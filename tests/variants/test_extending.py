"""Training that goes on from merges: what is refused, and seeds."""

from __future__ import annotations

import re
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import rows_beside
from tokenizers_made import split

from harness.proof.cases import merges_from
from harness.tokenizers.learned import join
from variants import flat, naive_extending, seg_status
from variants.contract import TieBreak, WordCounts
from variants.seeds import seeds

WORDS = WordCounts(
    memoryview(b"xyabab"), memoryview(array("q", [0, 2, 6])), memoryview(array("Q", [0, 2]))
)


@pytest.mark.parametrize("trainer", [naive_extending, seg_status, flat])
@pytest.mark.parametrize("row", rows_beside(__file__, "extending.toml"))
def test_trainer_goes_on_from_merges_or_refuses_them(row: dict[str, Any], trainer: Any) -> None:
    inherited = merges_from(row["inherited"])
    how = {"inherited": inherited, "inheriting": row.get("inheriting", "kept")}
    if "refused" in row:
        with pytest.raises(ValueError, match="^" + re.escape(row["refused"])):
            trainer.train(WORDS, row.get("num_merges", 9), **how)
    else:
        assert trainer.train(WORDS, 9, **how) == list(merges_from(row["learned"]))


def test_spellings_become_merges_in_the_order_of_plain_training() -> None:
    spellings = [b"mov", b"movzx", b"zx", b"mov", b"a"]
    assert seeds(spellings) == list(merges_from("z+x o+v m+ov mov+zx"))
    assert seeds([b"ab", b"bc"], TieBreak.SMALLEST_BYTES) == list(merges_from("a+b b+c"))


@given(
    st.lists(st.text("ab\xc3\xa9", min_size=1), max_size=9),
    st.sampled_from(TieBreak),
)
@settings(max_examples=30, deadline=None)
def test_seed_encodes_to_one_token(texts: list[str], tie_break: TieBreak) -> None:
    spellings = [text.encode("latin-1") for text in texts]
    merges = seeds(spellings, tie_break)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    tokens = [left + right for left, right in merges]
    for spelling in spellings:
        assert join(split(spelling), ranks.get, tokens) == [spelling]
