"""Training that goes on from merges: worked examples, the definition against the heap, published lists, refusals."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from random_extensions import swapped_words

from harness.common import registry
from harness.proof.cases import merges_from
from harness.tokenizers.learned import join, read_spelling, split
from variants import flat, naive_extending, seg_status, vetoes
from variants.contract import Corpus, Merge, TieBreak, WordCounts
from variants.counting import native
from variants.seeds import seeds

Train = Callable[..., "Sequence[Merge]"]
SHARED = next(
    (each / "shared" for each in Path(__file__).resolve().parents if (each / "shared").is_dir()), Path("shared")
)
"""A folder beside the checkout that holds texts, and lists which the original program made of them; few have it."""
TRAINERS: dict[str, Train] = {
    "naive_extending": naive_extending.train, "seg_status": seg_status.train, "flat": flat.train,
}  # fmt: skip


alphabet = st.sampled_from([b"a", b"b", b" ", b":", b"\xc3", "é".encode()])


# ---- the lists that the original program made


def spelled(file: Path) -> list[Merge]:
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if not line.startswith("#")]
    return [(read_spelling(left), read_spelling(right)) for left, right in pairs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "size"), [("udhr", "multi_udhr.txt", 999_788), ("novels", "en_novels.txt", 999_555)]
)
def test_the_lists_of_the_original_are_reached_merge_for_merge(name: str, text: str, size: int, tmp_path: Path) -> None:
    folder, corpus, beginning = SHARED / "superwords", SHARED / "corpora" / text, tmp_path / "beginning.txt"
    if not (folder.is_dir() and corpus.is_file()):
        pytest.skip(f"needs {folder} and {corpus}")
    with corpus.open("rb") as file:
        beginning.write_bytes(file.read(size))
    words, pieces = (
        native.native(Corpus(str(beginning), (), registry.cards("pattern")[pattern]["regex"]))
        for pattern in ("superbpe_words", "superbpe")
    )
    first, both = spelled(folder / f"{name}.stage1.txt"), spelled(folder / f"{name}.txt")
    train = functools.partial(flat.train, tie_break=TieBreak.HUGGINGFACE)
    assert train(words, len(first)) == first
    assert train(pieces, len(both), inherited=first, inheriting="met", veto=vetoes.superbpe) == both


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole.ja", "whole.emoji"])
def test_the_lists_of_whole_characters_are_reached_merge_for_merge(name: str, tmp_path: Path) -> None:
    file = SHARED / "family" / f"{name}.txt"
    if not file.is_file():
        pytest.skip(f"needs {file}")
    head = json.loads(file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# "))
    text = (SHARED / "corpora" / head["text"]["file"]).read_bytes()
    (tmp_path / "text").write_bytes(text[head["text"]["offset"] :][: head["text"]["bytes"]])
    words = native.native(Corpus(str(tmp_path / "text"), (), registry.cards("pattern")[head["pattern"]]["regex"]))
    merges = spelled(file)
    for train in TRAINERS.values():
        learned = train(words, len(merges), tie_break=TieBreak(head["tie_break"]), veto=vetoes.named(head["veto"]))
        assert learned == merges


# ---- refusals

WORDS = WordCounts.from_items([(b"abcd", 2)])


@pytest.mark.parametrize(
    ("inherited", "asked", "sentence"),
    [
        (
            [(b"ab", b"c")],
            {},
            "inherited merge 1 needs the token b'ab', which no merge before it makes; put",
        ),
        ([(b"a", b"b"), (b"a", b"b")], {}, "inherited merge 2 spells the token b'ab' a second time; leave one out"),
        ([(b"a", b"b")], {"inheriting": "all"}, "inheriting is 'all'; it is 'kept' or 'met'"),
        ([(b"a", b"b")], {"num_merges": 0}, "num_merges=0 is below the 1 merges that are inherited; they count among"),
    ],
)
@pytest.mark.parametrize("train", TRAINERS.values(), ids=TRAINERS)
def test_what_cannot_be_inherited_is_refused_with_a_sentence(
    train: Train, inherited: Sequence[Merge], asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match="^" + regex.escape(sentence, special_only=False)):
        train(WORDS, **{"num_merges": 9, "inherited": inherited, **asked})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("superbp", "unknown veto 'superbp'; did you mean superbpe? there are: none, superbpe, whole"),
        ("[bytes:4,whole_character]", "unknown veto 'whole_character'; did you mean whole_characters?"),
        ("protected:6", "unknown veto 'protected:6'; did you mean protected:HEX.HEX?"),
        ("bytes:1", "veto=bytes:1 leaves no pair to merge"),
        ("variants.vetoes:MOST_WORDS", "is not a function of two halves' bytes"),
    ],
)
def test_a_veto_that_is_none_is_refused_with_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=regex.escape(sentence)):
        vetoes.named(name)


def test_spellings_become_merges_in_the_order_of_plain_training() -> None:
    spellings = [b"mov", b"movzx", b"zx", b"mov", b"a"]
    assert seeds(spellings) == list(merges_from("z+x o+v m+ov mov+zx"))
    assert seeds([b"ab", b"bc"], TieBreak.SMALLEST_BYTES) == list(merges_from("a+b b+c"))
    with pytest.raises(ValueError, match="a word of no bytes"):
        seeds([b"a", b""])


@given(st.lists(st.lists(alphabet, min_size=1, max_size=9).map(b"".join), max_size=9), st.sampled_from(TieBreak))
@settings(max_examples=30, deadline=None)
def test_a_seed_encodes_to_one_token(spellings: list[bytes], tie_break: TieBreak) -> None:
    merges = seeds(spellings, tie_break)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    for spelling in spellings:
        assert join(split(spelling), ranks, [left + right for left, right in merges]) == [spelling]


def test_a_veto_of_ones_own_is_found_by_its_target() -> None:
    assert vetoes.named("random_extensions:swapped_words") is swapped_words
    assert naive_extending.train(WORDS, 9, veto=swapped_words) == [(b"c", b"d"), (b"b", b"cd"), (b"a", b"bcd")]
