"""Patterns of the published family are read in any spelling of their parts; any other is left to
regex.
"""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest
import regex
from exploring import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from tokenizers_made import isolated
from workbench import first_fast

from harness.common import registry
from variants.counting import patterns
from variants.counting.patterns import compiled, slots_of

pytest.importorskip("variants.native._scanner")

from scanned_texts import PATHS, PIECES, expect_definition

MEMBERS = all_slots()
CARDS = {name: card["regex"] for name, card in registry.cards("pattern").items()}
FOLDED = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CL100K = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2, GPT4, LLAMA3, QWEN2 = (
    patterns.slots_of(CARDS[name]) for name in ("gpt2", "gpt4", "llama3", "qwen2")
)
assert GPT2 is not None and GPT4 is not None and LLAMA3 is not None and QWEN2 is not None  # noqa: PT018
MARKED = CARDS["qwen2"].replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}")
SPELLINGS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": GPT2,
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": GPT2,
    CARDS["gpt4"]: LLAMA3,
    CARDS["olmo"]: LLAMA3,
    CARDS["qwen2"].replace(r"\p{N}|", r"\p{N}{1}|"): QWEN2,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+": QWEN2,
    CL100K: LLAMA3._replace(contraction=patterns.NO_CONTRACTION),
    f"(?:{CL100K})": LLAMA3._replace(contraction=patterns.NO_CONTRACTION),
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s": GPT4._replace(whole_tail=True),
    MARKED: QWEN2._replace(marks=True),
    CARDS["qwen2"].replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+"): QWEN2._replace(
        trail=patterns.NO_TRAIL
    ),
}
OTHERS = [
    *(
        f"{others}|{CL100K}"
        for others in (
            "'(?i:[sdmt]|ll|ve|rex)",
            "'[sdmt]?",
            "'[sdmt|]|'ll|'ve|'re",
            "(?R)",
            "'ll|'llx",
        )
    ),
    *(
        "",
        r"\w+|\W+",
        rf"(?x){CL100K}",
        rf"[a-z]+|{CL100K}",
        rf"(?:'s|'t)|{CL100K}",
        f"{FOLDED}|{CARDS['o200k']}",
    ),
    MARKED.replace(r"\p{N}]?", r"\p{N}]?+"),  # the prefix may be a mark, and would keep it
    CARDS["o200k"].replace("]*", "]*+", 1),
    CL100K.replace(r"\s*[", r"\s*+["),
    CL100K.replace(r"\s+(?", r"\s++(?"),
    *(CL100K.replace("{1,3}", width) for width in ("{1,10}", "{2,3}", "{1,3}?", "{3}", "{1}?")),
    *(
        CL100K.replace(r"\p{L}+", letters)
        for letters in (r"[\p{L}&&[^\p{Lu}]]+", r"\p{Han}+", r"\p{L}+(?=x)")
    ),
    r" ?[^\s\p{L}\p{N}]+| ?\p{L}+| ?\p{N}+|\s+(?!\S)|\s+",
]


@pytest.mark.parametrize(("expression", "slots"), SPELLINGS.items(), ids=range(len(SPELLINGS)))
def test_published_spellings_have_their_slots(expression: str, slots: patterns.Slots) -> None:
    assert slots_of(expression) == slots


@pytest.mark.parametrize("expression", OTHERS, ids=range(len(OTHERS)))
def test_what_is_not_of_the_family_is_left_to_regex(expression: str) -> None:
    assert slots_of(expression) is None
    assert compiled(expression) is None


def test_every_card_has_a_compiled_form() -> None:
    assert [name for name, expression in CARDS.items() if compiled(expression) is None] == []


@pytest.mark.parametrize("block", first_fast(range(40)))
def test_random_members_split_random_texts_as_regex_does(tmp_path: Path, block: int) -> None:
    chance = random.Random(block)
    for _ in range(80):
        slots = chance.choice(MEMBERS)
        expression = spelling(slots, chance)
        assert slots_of(expression) == slots, expression
        pieces = chance.sample(PIECES, chance.randint(2, 14))
        text = "".join(
            chance.choices(pieces, k=chance.randint(0, chance.choice((5, 30, 120, 600))))
        )
        for how in ({}, {"threads": 3, "smallest_range": 1, "buffer": chance.choice((8, 64, 100))}):
            expect_definition(
                tmp_path / "text",
                text.encode(),
                (),
                expression,
                instructions=chance.choice(PATHS),
                **how,
            )


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(CARDS)), st.data())
def test_a_character_more_or_less_is_unknown_or_splits_as_regex(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    expression = CARDS[name] or ""
    at = data.draw(st.integers(0, len(expression)))
    changed = (
        expression[:at]
        + data.draw(st.sampled_from(("", "+", "?", "\\", "|", " ")))
        + expression[at + 1 :]
    )
    if compiled(changed) is not None:
        expect_definition(tmp_path / "text", "".join(PIECES).encode(), (), changed)


# The patterns of SuperBPE, each one expression, cut as the original does in several steps, line by
# line.

LINE = r"[^\n]*\n|[^\n]+"
ALONE = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)"
WORDS = (CARDS["o200k"] or "").replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "")


@examples(60)
@given(
    st.text(st.sampled_from("ab1\u00bd .,:-/\t\r\n\u00a0\u3000\u00e9\u4e00\u0301'sS"))
    | st.text(max_size=30)
)
@example("don't\n")
def test_the_two_expressions_cut_any_text_as_the_steps_do(text: str) -> None:
    lines = regex.findall(LINE, text)
    assert regex.findall(CARDS["superbpe"], text) == [
        piece for line in lines for piece in isolated(ALONE, line)
    ]
    words = [word for line in lines for word in regex.findall(WORDS, line)]
    assert regex.findall(CARDS["superbpe_words"], text) == words


def test_a_long_line_takes_little_memory() -> None:
    """As a group of single characters it took a hundred bytes for each, and six megabytes of one
    line ran out of it.
    """
    pattern = regex.compile(CARDS["superbpe"] or "")
    line = "the way of the world is this one, " * 10_000
    tracemalloc.start()
    try:
        assert [match.end() for match in pattern.finditer(line)] == [len(line) - 1, len(line)]
        assert tracemalloc.get_traced_memory()[1] < 20 * len(line)
    finally:
        tracemalloc.stop()


def test_the_older_spelling_of_the_pattern_cuts_alike() -> None:
    new, old = (
        spelling
        for spelling, slots in patterns.EXACT_SPELLINGS.items()
        if slots.split == patterns.SUPERBPE
    )
    text = "a b  1234 c:: d \n\n e, --/\n" * 3
    assert regex.findall(new or "", text) == regex.findall(old or "", text)
