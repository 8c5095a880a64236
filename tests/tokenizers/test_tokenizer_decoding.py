"""Ids become the bytes of their tokens, from a list, an array or a stream; an unknown id is named
with its place.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer
from variants.native import built

ONE = Tokenizer(learned("gpt2", SPECIALS))
LAST = max(ONE.vocab)
CHANCE = random.Random(0)
NUMBERS = [*range(250), *range(60_000, 60_040), *range(2**31, 2**31 + 30)]
SPARSE = {number: CHANCE.randbytes(CHANCE.randint(0, 40)) for number in NUMBERS}
CONTAINERS: list[Callable[[list[int]], Iterable[int]]] = [
    list,
    iter,
    partial(array, "q"),
    partial(np.array, dtype=np.int64),
    partial(np.array, dtype=">i8"),
]


@given(
    ids=st.lists(st.sampled_from(NUMBERS), max_size=30),
    unknown=st.sampled_from([-1, 251, 2**31 - 1, 2**63 - 1]),
)
@examples(60)
@pytest.mark.parametrize("container", CONTAINERS)
def test_ids_are_decoded_as_by_the_vocabulary(
    container: Callable[[list[int]], Iterable[int]],
    ids: list[int],
    unknown: int,
) -> None:
    decoder = built("_encoder").Decoder(SPARSE)
    assert decoder.decode(container(ids)) == b"".join(SPARSE[number] for number in ids)
    with pytest.raises(KeyError) as raised:
        decoder.decode(container([*ids, unknown, 0]))
    assert raised.value.args == (len(ids), unknown)


@given(content=st.text(max_size=12) | st.sampled_from([TEXT, "中é👩"]))
@examples(60)
def test_a_stream_gives_the_same_text_character_by_character(content: str) -> None:
    ids = ONE.encode(content)
    parts = list(ONE.decode_stream(iter(ids), errors="strict"))
    assert "".join(parts) == ONE.decode_text(ids) == content
    assert len(parts) <= len(ids)


def test_a_stream_waits_for_the_bytes_of_a_character() -> None:
    first, second = "é".encode()
    assert [*ONE.decode_stream([97, first, second, first])] == ["a", "é", "\ufffd"]
    stream = ONE.decode_stream([97, first, LAST + 1])
    assert next(stream) == "a"
    with pytest.raises(Refusal, match=rf"ids\[2\] is {LAST + 1}; the ids of this tokenizer are 0"):
        next(stream)
