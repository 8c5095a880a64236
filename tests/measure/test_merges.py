"""Merges as ids spell what a list of bytes holds, pass to the parent as they are, and are refused
if they are anything else.
"""

import copy
import pickle
import random
from array import array
from typing import Any

import pytest

from harness.proof.cases import random_call
from harness.proof.checks import TrainerCall
from harness.proof.compiled_replay import token_ids
from harness.worker.calling import expect_merges
from harness.worker.exchange import merges_sha256, packed, unpacked
from variants.contract import GREATEST_BYTES, Merges


def ids(*numbers: int) -> Merges:
    return Merges(array("I", numbers))


def test_merges_spell_what_a_list_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        dice = random.Random(seed)
        monkeypatch.setattr(Merges, "LONG", dice.choice((1, 2, 5, 256)))
        words = random_call(seed, GREATEST_BYTES).words
        expected = TrainerCall(words, dice.choice((0, 1, 2, 20))).defined()
        merges = Merges(array("I"))
        for pair in zip(*token_ids(expected), strict=True):
            merges.ids.extend(pair)

        for index in dice.sample(range(len(expected)), len(expected)):
            assert merges[index] == merges[index - len(expected)] == expected[index]
        assert merges == expected == list(Merges(merges.ids)) == list(merges)
        assert merges[1:] == expected[1:]
        assert merges[::-2] == expected[::-2]
        assert merges_sha256(merges) == merges_sha256(expected)
        assert merges == pickle.loads(pickle.dumps(merges)) == copy.deepcopy(merges)
        expect_merges(merges)
        assert unpacked(packed(merges)) == unpacked(packed(expected)) == expected


def test_merges_are_equal_if_they_spell_the_same_and_grow() -> None:
    first, other = (ids(97, 97, 97, 256, 256, 97, 97, last) for last in (257, 258))
    assert first == other == list(first)

    merges = ids(97, 98)
    assert merges not in ([(b"a", b"a")], [], Merges(), ())
    merges.ids.extend([256, 99])
    assert merges == [(b"a", b"b"), (b"ab", b"c")]
    with pytest.raises(IndexError):
        merges[2]


def test_merges_of_any_tokens_come_back_from_bytes() -> None:
    token = b"a"  # one object in many places, as trainers hand tokens over
    merges = [(token, token), (token, token), (b"\x00" * 300, b""), (b"\xff", b"ab")]
    assert unpacked(packed(merges)) == unpacked(packed([list(merge) for merge in merges])) == merges
    assert packed(merges[:1]) == packed([(bytes([97]), b"a")])
    assert unpacked(packed([]), most=0) == []
    assert len(packed(ids(97, 98, 256, 99))) == 17


class LazyPair(tuple[bytes, bytes]):
    """A pair that could do the work when it is read."""


class LazyBytes(bytes):
    """A token that could do so."""


@pytest.mark.parametrize(
    "wrong",
    [
        ("a", "b"),
        (b"a", b"b", b""),
        (bytearray(b"a"), b"b"),
        "x" * 10_000,
        LazyPair((b"a", b"b")),
        (LazyBytes(b"a"), b"b"),
    ],
)
def test_a_merge_is_a_plain_pair_of_plain_bytes(wrong: Any) -> None:
    message = r"^merge 2 is .{,220}; only a plain tuple of two plain bytes is a merge$"
    with pytest.raises(ValueError, match=message):
        expect_merges([(b"a", b"b"), wrong])


@pytest.mark.parametrize("numbers", [[97, 98], array("Q", [97, 98]), array("I", [97])])
def test_ids_of_another_kind_are_refused(numbers: Any) -> None:
    with pytest.raises(ValueError, match="not pairs in an array of type I"):
        expect_merges(Merges(numbers))


PAIR = packed([(b"a", b"b")])
GROWING = [97, 97, *(number // 2 for number in range(512, 590))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(ids(97, 98))[:-1], "merges end between"),
        (packed(((b"a", b"b"),)), "something else than merges"),
        (packed([b"ab"]), "something else than a pair"),
        (packed([(b"a", "b")]), "something else than a token"),
        (PAIR + b"s", "something is behind"),
        (b"[" + b"\xff" * 4, "more than 100 merges"),
        (packed(ids(*[97] * 202)), "more than 100 merges"),
        (packed(ids(97, 256)), "merge 1 is of a token that no merge before it makes"),
        (packed(ids(*GROWING)), "merge 31 spells more than a text can hold"),
    ],
)
def test_content_of_a_process_is_merges_or_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpacked(content, most=100)


def test_merges_that_are_cut_short_are_refused() -> None:
    for end in range(len(PAIR)):
        with pytest.raises(ValueError, match="merges end"):
            unpacked(PAIR[:end])
