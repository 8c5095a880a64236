"""What tokenizers do with texts is counted, and shown side by side as a table and a chart."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import PATTERNS

from harness.tokenizer import Tokenizer
from harness.tokenizers.learned import trained
from harness.tokenizers.statistics import Figures, figures_of, sheet

MERGES = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he")]


def figures(blocks: Sequence[bytes]) -> Figures:
    return figures_of("mine", Tokenizer(trained(MERGES, ["<|e|>"], PATTERNS["gpt2"])), "tale", blocks)


def test_the_figures_are_those_of_the_text() -> None:
    row = figures([b"a the the<|e|>\n", b"the cat"])
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    assert (row.bytes, row.words, row.tokens, row.special_tokens) == (22, 5, 11, 1)
    assert (row.bytes_per_token, row.tokens_per_word) == (2, 11 / 5)
    assert (row.used, row.vocabulary) == (8, 260)
    assert row.longest[:2] == [b" the".hex(), b"he".hex()]
    nothing = figures([])
    assert (nothing.bytes_per_token, nothing.tokens_per_word, nothing.longest) == (None, None, [])
    assert [column.cells[0] for column in sheet([nothing]).columns[4:6]] == ["-", "-"]


@given(content=st.text("ab \n\t").map(str.encode), places=st.lists(st.integers(0, 40)))
def test_words_are_counted_across_blocks(content: bytes, places: list[int]) -> None:
    bounds = [0, *sorted(place for place in places if place <= len(content)), len(content)]
    row = figures([content[start:stop] for start, stop in zip(bounds, bounds[1:], strict=False)])
    assert (row.words, row.bytes) == (len(content.split()), len(content))
