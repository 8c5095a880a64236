"""Pruning takes out what a text never uses, and every text without it keeps its tokens."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from test_tokenizer_forms import merge_lists
from tokenizers_made import PATTERNS, TEXT, learned, of_merges

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer, load, main
from harness.tokenizers.learned import Around, Learned, trained
from harness.tokenizers.prune import Texts, check_texts, prune
from variants.contract import Merge, vocab_of


def texts_of(*texts: str) -> Texts:
    return lambda: [[text.encode()] for text in texts]


def leaves(one: Learned) -> set[int]:
    """The ids of tokens of several bytes that no merge joins with another token."""
    ids = one.token_ids()
    joined = {token for merge in one.merges for token in merge}
    return {ids[token] for token in ids if len(token) > 1 and token not in joined}


@given(
    merges=merge_lists(),
    corpus=st.lists(st.text("abc ", max_size=20), min_size=1, max_size=4),
    least=st.integers(1, 3),
    is_whole=st.booleans(),
)
@examples(80)
def test_a_text_without_removed_tokens_keeps_its_tokens(
    merges: list[Merge], corpus: list[str], least: int, is_whole: bool
) -> None:
    one = Tokenizer(Learned(vocab_of(merges), merges, {}, PATTERNS["gpt2"], is_whole))
    texts = texts_of("a", *corpus)
    pruning = prune(one, texts, least)
    smaller = pruning.tokenizer

    counts = Counter(number for text in ["a", *corpus] for number in smaller.encode(text))
    assert [number for number in leaves(smaller.learned) if counts[number] < least] == []
    assert {*pruning.removed} | {*pruning.new_ids} == {*one.vocab}
    assert [one.vocab[old] for old in pruning.new_ids] == [*smaller.vocab.values()]
    assert [*smaller.vocab] == [*range(len(smaller))]

    chance = random.Random(len(merges))
    others = ["".join(chance.choices("abc ", k=chance.randint(1, 12))) for _ in range(60)]
    for text in [*corpus, *others]:
        ids = one.encode(text)
        if pruning.removed.keys().isdisjoint(ids):
            assert smaller.encode(text) == [pruning.new_ids[number] for number in ids]
    same, parts = check_texts(one, pruning, texts)
    assert 0 < same <= parts
    if least == 1:
        assert same == parts


LONE = [("x", "y"), ("xy", "z"), ("a", "b")]


@pytest.mark.parametrize(
    ("merges", "text", "least", "keep", "removed"),
    [
        (LONE, "xyz", 1, [], [b"the", b"ab", b"th"]),
        (LONE, "xyz", 1, [b"the"], [b"ab"]),
        # th occurs three times as soon as the, which is rare, is gone
        ([], "the the th", 3, [], [b"the"]),
    ],
)
def test_parts_go_after_what_they_are_part_of(
    merges: list[tuple[str, str]], text: str, least: int, keep: list[bytes], removed: list[bytes]
) -> None:
    one = of_merges(("t", "h"), ("th", "e"), *merges)
    pruning = prune(one, texts_of(text), least, keep)
    assert [one.vocab[number] for number in pruning.removed] == removed


def test_a_changed_token_would_be_found() -> None:
    one = of_merges(("t", "h"), ("th", "e"))
    pruning = prune(one, texts_of("the"))
    other = Tokenizer(trained([(b"h", b"e"), (b"t", b"he")], [], PATTERNS["gpt2"]))
    with pytest.raises(Refusal, match="pruning changes the tokens of 'th', which is a bug"):
        check_texts(one, pruning._replace(tokenizer=other), texts_of("th"))


def test_special_tokens_and_what_is_added_stay() -> None:
    one = learned("gpt2", ("<s>", "<pad>"))
    padding = {"pad_id": 300, "pad_token": one.vocab[300].decode("latin-1")}
    added = Tokenizer(one._replace(around=Around(padding=padding)))
    pruning = prune(added, texts_of("zzz"))
    assert 300 in pruning.new_ids
    assert {*pruning.tokenizer.special_tokens} == {"<s>", "<pad>"}
    moved = pruning.tokenizer.learned.around.padding
    assert moved is not None
    assert pruning.tokenizer.vocab[moved["pad_id"]] == one.vocab[300]


def test_a_pruned_tokenizer_is_saved_with_the_map_and_is_not_cut(tmp_path: Path) -> None:
    one = Tokenizer(learned("gpt4", ("<s>",)), {"inherited_merges": 200})
    one.save(tmp_path / "old")
    (tmp_path / "text").write_text(TEXT[:200])
    options = ["--data", str(tmp_path / "text"), "--output", str(tmp_path / "new")]
    assert main(["prune", str(tmp_path / "old"), *options]) == 0

    new = load(tmp_path / "new")
    new_ids = json.loads((tmp_path / "new/new_ids.json").read_text())
    ids = one.encode(TEXT[:200])
    assert new.encode(TEXT[:200]) == [new_ids[str(number)] for number in ids]
    assert new.origin["inherited_merges"] == len(new.merges) < 200
    with pytest.raises(Refusal, match="a cut of a pruned tokenizer; cut first, then prune"):
        new.cut(300)
