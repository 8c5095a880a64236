"""Encoding is fast, bounded in memory, and the same as when it is slow and done at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned

from harness.common.errors import UNMEASURED, Refusal
from harness.tokenizers import model
from harness.tokenizers.learned import Learned, join, join_by_heap
from harness.tokenizers.model import Tokenizer, last_cut_of
from variants.contract import Pair

SMALL_WINDOW = 24
CHANCE = random.Random(0)
CUTTABLE = [
    *(pattern for name, pattern in PATTERNS.items() if name not in ("document", "bytes")),
    *(spelling(slots, CHANCE) for slots in CHANCE.sample(all_slots(), 12)),
]

SOME = [*SPECIALS, "<|e|", "<|", "the", " the", " ", "  ", "\n", "\r\n", "\t", "'ll", "1", "123", "é", "一", ".", "!\n"]
texts = st.lists(st.sampled_from([*SOME, " !", "\u00a0", "/", "A", "a"]) | st.text(max_size=3)).map("".join)


def naive(tokens: list[int], ranks: dict[Pair, int], made: list[int]) -> list[int]:
    """One merge at a time: the lowest rank, and of equals the leftmost, found by looking at every pair."""
    tokens = list(tokens)
    while True:
        found = [(ranks[pair], place) for place, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not found:
            return tokens
        rank, place = min(found)
        tokens[place : place + 2] = [made[rank]]


@given(
    merges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True, max_size=10),
    made=st.lists(st.integers(0, 5), min_size=10, max_size=10),
    tokens=st.lists(st.integers(0, 3), max_size=60),
)
def test_scan_and_heap_merge_as_looking_at_every_pair_does(
    merges: list[Pair], made: list[int], tokens: list[int]
) -> None:
    """Any lists, those too that no training makes: a merge may make a pair that comes before it."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    expected = naive(tokens, ranks, made)
    assert join_by_heap(tokens, ranks, made) == join(tokens, ranks, made) == expected
    assert join(tokens[:20], ranks, made) == naive(tokens[:20], ranks, made)


# Parts


@given(text=texts, cut_at=st.lists(st.integers(0, 200), max_size=12), bytewise=st.booleans())
@example(text="x <|e|>x y", cut_at=[8], bytewise=False)
@example(text="é一", cut_at=[1, 3], bytewise=True)
@examples(40)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_text_in_parts_is_encoded_as_the_whole(pattern: str, text: str, cut_at: list[int], bytewise: bool) -> None:
    one = Tokenizer(learned(pattern, SPECIALS))
    whole: str | bytes = text.encode() if bytewise else text
    places = [0, *sorted(place for place in cut_at if place < len(whole)), len(whole)]
    parts = [whole[start:stop] for start, stop in pairwise(places)]
    expected = one.encode(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "WINDOW", SMALL_WINDOW)
        assert list(one.encode_iterable(parts)) == expected
        assert one.encode(text) == expected


@pytest.mark.parametrize("pattern", CUTTABLE)
@given(text=texts)
@examples(50)
def test_safe_cuts_leave_the_pre_tokens(pattern: str, text: str) -> None:
    last_cut = last_cut_of(pattern)
    assert last_cut is not None
    expected = regex.findall(pattern, text)
    for last in range(len(text) + 1):
        if cut := last_cut(text, 0, last):
            assert cut <= last
            assert regex.findall(pattern, text[:cut]) + regex.findall(pattern, text[cut:]) == expected


def test_unknown_patterns_are_not_cut() -> None:
    assert last_cut_of(PATTERNS["line"]) is model._after_line_end
    for pattern in (None, PATTERNS["document"], r"\w+ \w+|.", r" ?\p{L}+|\s+(?=a)", r"(?r)\s+", r"x| ?\p{L}+"):
        assert last_cut_of(pattern) is None


def test_parts_are_read_only_as_they_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model, "WINDOW", 1000)
    one = Tokenizer(learned("gpt2", SPECIALS))
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "the cat's mat "

    ids = one.encode_iterable(endless())
    first = [next(ids) for _ in range(50)]
    assert taken < 200
    assert first == one.encode("the cat's mat " * 50)[:50]


# Files


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_a_file_is_encoded_as_its_bytes(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "BLOCK", block)
    monkeypatch.setattr(model, "WINDOW", 100)
    content = TEXT.encode() + b"\xff\xfe the \xe4\xb8" + TEXT[:50].encode()
    (tmp_path / "text").write_bytes(content)
    one = Tokenizer(learned("gpt2", SPECIALS))
    done: list[int] = []
    ids = one.encode_file(tmp_path / "text", tmp_path / "ids.npy", on_progress=done.append)
    assert isinstance(ids, np.memmap)
    assert ids.dtype == np.uint16
    assert ids.tolist() == np.load(tmp_path / "ids.npy").tolist() == one.encode(content)
    assert done[-1] == len(content)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids.npy", "text"]


def test_large_ids_and_empty_files_make_arrays(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"<|far|>a")
    vocab = {**dict(enumerate(bytes((byte,)) for byte in range(256))), 65_536: b"<|far|>"}
    one = Tokenizer(Learned(vocab, [], {"<|far|>": 65_536}, PATTERNS["gpt2"]))
    ids = one.encode_file(tmp_path / "text", tmp_path / "ids.npy")
    assert (ids.dtype, ids.tolist()) == (np.uint32, [65_536, 97])
    (tmp_path / "text").write_bytes(b"")
    assert one.encode_file(tmp_path / "text", tmp_path / "ids.npy").shape == (0,)
    assert np.load(tmp_path / "ids.npy").shape == (0,)


def test_a_file_that_cannot_be_read_or_written_leaves_nothing(tmp_path: Path) -> None:
    one = Tokenizer(learned())
    with pytest.raises(Refusal, match=r"cannot read .*nowhere .No such file") as refused:
        one.encode_file(tmp_path / "nowhere", tmp_path / "ids.npy")
    assert refused.value.exit_code == UNMEASURED
    (tmp_path / "text").write_bytes(b"a")
    with pytest.raises(Refusal, match="choose another place for the ids"):
        one.encode_file(tmp_path / "text", tmp_path / "text" / "ids.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
