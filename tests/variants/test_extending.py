"""Training that goes on from merges: worked examples, the definition against the heap, published lists, refusals."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import regex
import sabotaged
import sabotaged_extenders
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.common import registry
from harness.conformance import parametrize_with_checks
from harness.proof.cases import merges_from
from harness.proof.checks import CheckFailed, outcome_of
from harness.proof.extension import EXTENSION_CASES, extension_checks
from harness.tokenizers.learned import join, read_spelling, split
from variants import flat, naive_extending, seg_status, vetoes
from variants.contract import Corpus, Merge, TieBreak, Veto, WordCounts
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


def extender(name: str) -> Train:
    card = registry.variants()[name]
    return functools.partial(registry.resolve(card.target), **card.params)


def swapped_words(left: bytes, right: bytes) -> bool:
    """A veto of one's own: no token of which the left half is the longer."""
    return len(left) > len(right)


# ---- the definition against the others, on whatever lists

alphabet = st.sampled_from([b"a", b"b", b" ", b":", b"\xc3", "é".encode()])
tokens = st.lists(alphabet, min_size=1, max_size=3).map(b"".join)
any_list = st.lists(st.tuples(tokens, tokens), max_size=8)
pieces = st.dictionaries(
    st.lists(alphabet, min_size=1, max_size=14).map(b"".join),
    st.integers(1, 6) | st.integers(2**32, 2**32 + 6),
    max_size=6,
)
some_veto = st.sampled_from(
    [
        *map(vetoes.named, ("none", "superbpe", "bytes:3", "characters:2", "whole_characters", "protected:61.6162.c3")),
        swapped_words,
        vetoes.any_of([vetoes.whole_characters, swapped_words]),
    ]
)


def learned_or_refused(train: Train, *arguments: Any, **keywords: Any) -> Sequence[Merge] | str:
    try:
        return train(*arguments, **keywords)
    except ValueError as error:
        return str(error)


@st.composite
def learned_list(draw: st.DrawFn) -> list[Merge]:
    """Merges that were learned, of the same or other words; some are left out or stand elsewhere."""
    merges = naive_extending.train(WordCounts.from_items(draw(pieces).items()), draw(st.integers(0, 12)))
    left_out = draw(st.sets(st.integers(0, 11), max_size=2))
    merges = [merge for place, merge in enumerate(merges) if place not in left_out]
    return draw(st.permutations(merges)) if draw(st.booleans()) else merges


@given(
    pieces, any_list | learned_list(), st.sampled_from(["kept", "met"]), some_veto, st.sampled_from(TieBreak), st.data()
)
@settings(max_examples=80, deadline=None)
def test_extenders_come_to_the_definition_whatever_they_inherit(
    words: dict[bytes, int],
    inherited: list[Merge],
    inheriting: str,
    veto: Veto | None,
    tie_break: TieBreak,
    data: st.DataObject,
) -> None:
    train = extender(data.draw(st.sampled_from(["seg_status", "flat"])))
    asked: dict[str, Any] = {
        "tie_break": tie_break,
        "min_count": data.draw(st.sampled_from([1, 1, 3])),
        "inherited": inherited,
        "inheriting": inheriting,
        "veto": veto,
    }
    num_merges = len(inherited) + data.draw(st.integers(0, 30))
    counts = WordCounts.from_items(words.items())
    assert learned_or_refused(train, counts, num_merges, **asked) == learned_or_refused(
        naive_extending.train, counts, num_merges, **asked
    )


@given(pieces, st.integers(0, 20), st.integers(0, 20), st.sampled_from(["kept", "met"]), st.sampled_from(TieBreak))
@settings(max_examples=30, deadline=None)
def test_what_is_learned_in_two_parts_is_what_is_learned_at_once(
    words: dict[bytes, int], first: int, more: int, inheriting: str, tie_break: TieBreak
) -> None:
    counts = WordCounts.from_items(words.items())
    half = naive_extending.train(counts, first, tie_break=tie_break)
    extended = seg_status.train(counts, first + more, tie_break=tie_break, inherited=half, inheriting=inheriting)
    assert extended == naive_extending.train(counts, first + more, tie_break=tie_break)


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
    assert vetoes.named(f"{__name__}:swapped_words") is swapped_words
    assert naive_extending.train(WORDS, 9, veto=swapped_words) == [(b"c", b"d"), (b"b", b"cd"), (b"a", b"bcd")]


# ---- the checks themselves: each mistake is seen

CHECKS = {check.name: check for check in extension_checks(list(TieBreak))}


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        ("veto_forgotten_for_the_second_occurrence", "check_extends[veto_again]"),
        ("no_veto", "check_extends[veto_colon]"),
        ("no_veto", "check_extends[veto_and_min_count]"),
        ("veto_applied_to_inherited", "check_extends[veto_spares_inherited]"),
        ("spells_a_token_twice", "check_extends[spelled_once]"),
        ("dropped_merge_kept", "check_extends[met_never_met]"),
        ("dropped_merge_kept", "check_extends[dropped_ones_have_no_id]"),
        ("used_up_merge_dropped", "check_extends[met_used_up]"),
        ("kept_merge_dropped", "check_extends[kept_never_met]"),
        ("inherited_in_another_order", "check_extends[ids_in_the_order_of_the_list]"),
        ("threshold_not_rescanned", "check_extends_as_defined[1]"),
        ("threshold_not_rescanned", "check_learns_in_two_parts"),
        ("runs_counted_without_overlap", "check_extends[kept_long_run]"),
    ],
)
def test_a_sabotaged_extender_is_caught_by_the_check_meant_for_it(wrong: str, check: str) -> None:
    with pytest.raises(CheckFailed):
        CHECKS[check](getattr(sabotaged_extenders, wrong))


def test_the_extender_without_sabotage_passes() -> None:
    for check in CHECKS.values():
        outcome = outcome_of(check, sabotaged_extenders.honest)
        assert outcome.status == "passed" or outcome.check == "check_extends_at_any_width", outcome.message


def test_an_extender_that_refuses_nothing_or_knows_one_width_is_caught() -> None:
    def loses_the_list(*arguments: Any, threads: int = 1, inherited: Any = (), **asked: Any) -> list[Merge]:
        return naive_extending.train(*arguments, inherited=inherited if threads == 1 else (), **asked)

    with pytest.raises(CheckFailed, match="raised no ValueError: merges out of their order cannot all be kept"):
        CHECKS["check_refuses_to_inherit"](lambda *_, **__: [])
    with pytest.raises(CheckFailed, match="called with threads=2"):
        CHECKS["check_extends_at_any_width"](loses_the_list)


def test_a_failure_becomes_a_test_that_says_what_is_inherited() -> None:
    outcome = outcome_of(CHECKS["check_extends[veto_spares_inherited]"], sabotaged_extenders.veto_applied_to_inherited)
    assert outcome.counterexample is not None
    test = outcome.counterexample.smallest(sabotaged_extenders.veto_applied_to_inherited).as_test(
        sabotaged_extenders.veto_applied_to_inherited
    )
    assert "    inherited = [(b':', b' '), (b'a', b': ')]\n" in test
    assert "inherited=inherited, inheriting='kept', veto=vetoes.named('superbpe')" in test


def test_conformance_checks_extending_where_a_trainer_can() -> None:
    cases = parametrize_with_checks([sabotaged_extenders.honest, sabotaged.honest]).args[1]
    ids = [case.id for case in cases if "check_extends" in case.id]
    assert {one.partition("-")[0] for one in ids} == {"sabotaged_extenders:extending_with.<locals>.train"}
    assert len(ids) > len(EXTENSION_CASES)
