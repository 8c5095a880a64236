"""Merges as ids spell what a list of bytes holds, pass to the parent as they are, and are refused
if too long.
"""

from __future__ import annotations

import copy
import pickle
import random
from array import array
from typing import Any

import pytest

from harness.worker.calling import expect_merges
from harness.worker.exchange import merges_sha256, packed, unpacked
from variants.contract import Merge, Merges


def random_ids(dice: random.Random, number: int) -> array[int]:
    """Pairs of any tokens before them, the newest most often, so that tokens grow on either side
    and on both.
    """
    ids = array("I")
    for newest in range(255, 255 + number):
        any_token = dice.randrange(97, newest + 1)
        either = [dice.choice((newest, any_token)), dice.randrange(97, min(newest + 1, 259))]
        dice.shuffle(either)
        ids.extend(either)
    return ids


def spelled(ids: array[int]) -> list[Merge]:
    tokens = [bytes((byte,)) for byte in range(256)]
    merges = []
    for left, right in zip(ids[::2], ids[1::2], strict=True):
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return merges


@pytest.mark.parametrize("seed", range(40))
def test_merges_spell_what_a_list_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(Merges, "LONG", dice.choice((1, 2, 5, 256)))
    ids = random_ids(dice, dice.choice((0, 1, 2, 20)))
    expected = spelled(ids)
    merges = Merges(ids)
    for index in dice.sample(range(len(expected)), len(expected)):
        assert merges[index] == merges[index - len(expected)] == expected[index]
    assert merges == expected == list(Merges(ids)) == list(merges)
    assert merges[1:] == expected[1:]
    assert merges[::-2] == expected[::-2]
    assert merges_sha256(merges) == merges_sha256(expected)
    assert merges == pickle.loads(pickle.dumps(merges)) == copy.deepcopy(merges)
    expect_merges(merges)
    assert unpacked(packed(merges)) == unpacked(packed(expected)) == expected


def test_merges_are_equal_if_they_spell_the_same_and_grow() -> None:
    first, other = (
        Merges(array("I", [97, 97, 97, 256, 256, 97, *last])) for last in ([97, 257], [97, 258])
    )
    assert first == other == list(first)
    merges = Merges(array("I", [97, 98]))
    assert merges not in ([(b"a", b"a")], [], Merges(), ())
    merges.ids.extend([256, 99])
    assert merges == [(b"a", b"b"), (b"ab", b"c")]
    with pytest.raises(IndexError):
        merges[2]


# As bytes


def test_merges_of_any_tokens_come_back_from_bytes() -> None:
    token = b"a"  # one object in many places, as trainers hand tokens over
    merges = [(token, token), (token, token), (b"\x00" * 300, b""), (b"\xff", b"ab")]
    assert unpacked(packed(merges)) == unpacked(packed([list(merge) for merge in merges])) == merges
    assert packed([(token, token)]) == packed([(bytes([97]), b"a")])
    assert unpacked(packed([]), most=0) == unpacked(packed(Merges()), most=0) == []
    assert len(packed(Merges(array("I", [97, 98, 256, 99])))) == 17


@pytest.mark.parametrize("ids", [[97, 98], array("Q", [97, 98]), array("I", [97])])
def test_ids_of_another_kind_are_refused(ids: Any) -> None:
    with pytest.raises(ValueError, match="not pairs in an array of type I"):
        expect_merges(Merges(ids))


def of_ids(*ids: int) -> bytes:
    return b"I" + array("I", ids).tobytes()


PAIR = packed([(b"a", b"b")])
GROWING = [97, 97, *(255 + place for place in range(1, 40) for _ in "ab")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((PAIR[:end], "merges end") for end in range(len(PAIR))),
        (of_ids(97, 98)[:-1], "merges end between"),
        (packed(((b"a", b"b"),)), "something else than merges"),
        (packed([b"ab"]), "something else than a pair"),
        (packed([(b"a", "b")]), "something else than a token"),
        (packed([(b"a", b"b", b"c")]), "something else than a pair"),
        (PAIR + b"s", "something is behind"),
        (packed([(b"a", b"b")] * 101), "more than 100 merges"),
        (b"[" + b"\xff" * 4, "more than 100 merges"),
        (of_ids(*[97] * 202), "more than 100 merges"),
        (of_ids(97, 256), "merge 1 is of a token that no merge before it makes"),
        (of_ids(97, 98, 258, 97), "merge 2 is of a token that no merge before it makes"),
        (of_ids(*GROWING), "merge 31 spells more than a text can hold"),
    ],
)
def test_content_of_a_process_is_merges_or_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpacked(content, most=100)
