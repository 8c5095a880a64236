"""Training that goes on from merges: what is refused, and seeds."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import Row, answer_of, each_row
from tokenizers_made import replayed

from harness.proof.cases import merges_from
from variants import flat, naive_extending, seg_status
from variants.contract import TieBreak, WordCounts
from variants.seeds import seeds

WORDS = WordCounts.from_columns([b"xy", b"abab"], [0, 2])


@pytest.mark.parametrize("trainer", [naive_extending, seg_status, flat])
@each_row(__file__, "extending.toml")
def test_trainer_goes_on_from_merges_or_refuses_them(row: Row, trainer: Any) -> None:
    how = {"inherited": merges_from(row["inherited"]), "inheriting": row.get("inheriting", "kept")}
    learned = answer_of(trainer.train, WORDS, row.get("num_merges", 9), **how)
    if "refused" in row:
        assert learned.startswith(row["refused"])
    else:
        assert learned == list(merges_from(row["learned"]))


@given(st.lists(st.text("ab\xc3\xa9", min_size=1), max_size=9), st.sampled_from(TieBreak))
@settings(max_examples=30, deadline=None)
def test_seed_encodes_to_one_token_by_merges_of_plain_training(
    texts: list[str], tie_break: TieBreak
) -> None:
    spellings = [text.encode("latin-1") for text in texts]
    merges = seeds(spellings, tie_break)
    once = WordCounts.from_items((spelling, 1) for spelling in {*spellings})
    assert merges == naive_extending.train(once, 999, tie_break=tie_break)
    for spelling in spellings:
        assert replayed(spelling, merges) == [spelling]
