"""Ids become the bytes of their tokens, from a list, an array or a stream; an unknown id is named
with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer
from harness.tokenizers.encoding import decoder_of
from harness.tokenizers.plain import PlainDecoder

ONE = Tokenizer(learned("gpt2", SPECIALS))
LAST = max(ONE.vocab)
CONTAINERS: list[Callable[[list[int]], Iterable[int]]] = [list, iter, np.array]
DECODERS = [decoder_of(ONE.learned), PlainDecoder(ONE.vocab)]


@given(ids=st.lists(st.integers(0, LAST), max_size=30), unknown=st.sampled_from([-1, LAST + 1]))
@examples(60)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("decoder", DECODERS, ids=["compiled", "plain"])
def test_ids_are_decoded_as_by_the_vocabulary(
    decoder: PlainDecoder,
    container: Callable[[list[int]], Iterable[int]],
    ids: list[int],
    unknown: int,
) -> None:
    expected = b"".join(ONE.vocab[number] for number in ids)
    if ids or container is not np.array:  # an empty list is an array of floats
        assert decoder.decode(container(ids)) == expected
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
