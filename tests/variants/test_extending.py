"""Training that goes on from merges: what is refused, vetoes, and seeds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from random_extensions import swapped_words
from tokenizers_made import split

from harness.proof.cases import merges_from
from harness.tokenizers.learned import join
from variants import flat, naive_extending, seg_status, vetoes
from variants.contract import Merge, TieBreak, WordCounts
from variants.seeds import seeds

Train = Callable[..., "Sequence[Merge]"]
TRAINERS: dict[str, Train] = {
    "naive_extending": naive_extending.train, "seg_status": seg_status.train, "flat": flat.train,
}  # fmt: skip


alphabet = st.sampled_from([b"a", b"b", b" ", b":", b"\xc3", "é".encode()])


# ---- refusals

WORDS = WordCounts.from_items([(b"abcd", 2)])


@pytest.mark.parametrize(
    ("inherited", "options", "sentence"),
    [
        (
            [(b"ab", b"c")],
            {},
            "inherited merge 1 needs the token b'ab', which no merge before it makes; put",
        ),
        (
            [(b"a", b"b"), (b"a", b"b")],
            {},
            "inherited merge 2 spells the token b'ab' a second time; leave one out",
        ),
        ([(b"a", b"b")], {"inheriting": "all"}, "inheriting is 'all'; it is 'kept' or 'met'"),
        (
            [(b"a", b"b")],
            {"num_merges": 0},
            "num_merges=0 is below the 1 merges that are inherited; they count among",
        ),
    ],
)
@pytest.mark.parametrize("train", TRAINERS.values(), ids=TRAINERS)
def test_what_cannot_be_inherited_is_refused_with_a_sentence(
    train: Train, inherited: Sequence[Merge], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match="^" + regex.escape(sentence, special_only=False)):
        train(WORDS, **{"num_merges": 9, "inherited": inherited, **options})


@pytest.mark.parametrize("train", TRAINERS.values(), ids=TRAINERS)
def test_the_pairs_of_a_word_of_weight_0_are_not_met(train: Train) -> None:
    offsets, counts = memoryview(array("q", [0, 2, 6])), memoryview(array("Q", [0, 2]))
    words = WordCounts(memoryview(b"xyabab"), offsets, counts)
    inherited = [(b"x", b"y"), (b"a", b"b")]
    met = [(b"a", b"b"), (b"ab", b"ab")]
    assert train(words, 9, inherited=inherited, inheriting="met") == met
    assert train(words, 9, inherited=inherited) == [inherited[0], *met]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bytes:1", "veto=bytes:1 leaves no pair to merge; set bytes:2 or more"),
        (
            "characters:1",
            "veto=characters:1 leaves only bytes of one character to merge; set characters:2 or more",
        ),
    ],
)
def test_a_limit_of_one_is_refused_with_what_it_leaves(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        vetoes.named(name)


def test_spellings_become_merges_in_the_order_of_plain_training() -> None:
    spellings = [b"mov", b"movzx", b"zx", b"mov", b"a"]
    assert seeds(spellings) == list(merges_from("z+x o+v m+ov mov+zx"))
    assert seeds([b"ab", b"bc"], TieBreak.SMALLEST_BYTES) == list(merges_from("a+b b+c"))


@given(
    st.lists(st.lists(alphabet, min_size=1, max_size=9).map(b"".join), max_size=9),
    st.sampled_from(TieBreak),
)
@settings(max_examples=30, deadline=None)
def test_a_seed_encodes_to_one_token(spellings: list[bytes], tie_break: TieBreak) -> None:
    merges = seeds(spellings, tie_break)
    ranks, made = (
        {merge: rank for rank, merge in enumerate(merges)},
        [left + right for left, right in merges],
    )
    for spelling in spellings:
        assert join(split(spelling), ranks.get, made) == [spelling]


def test_a_veto_of_ones_own_is_found_by_its_target() -> None:
    assert vetoes.named("random_extensions:swapped_words") is swapped_words
    assert naive_extending.train(WORDS, 9, veto=swapped_words) == [
        (b"c", b"d"),
        (b"b", b"cd"),
        (b"a", b"bcd"),
    ]
