"""Patterns of the published family are read in any spelling of their parts; any other is left to
regex.
"""

import random
import tracemalloc
from pathlib import Path

import regex
from exploring import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from rows import Row, each_row
from scanned_texts import PIECES, expect_definition
from tokenizers_made import PATTERNS, isolated

from variants.counting import patterns
from variants.counting.patterns import Slots, compiled, slots_of


@each_row(__file__, "patterns.toml")
def test_pattern_has_its_slots_or_is_left_to_regex(row: Row) -> None:
    slots = Slots(**row["slots"]) if "slots" in row else None
    assert slots_of(row["regex"]) == slots
    assert (compiled(row["regex"]) is None) == (slots is None)


def test_random_spellings_of_a_member_are_read() -> None:
    chance = random.Random(0)
    for slots in all_slots():
        expression = spelling(slots, chance)
        assert slots_of(expression) == slots, expression


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(PATTERNS)), st.floats(0, 1), st.sampled_from(("", *"+?\\| ")))
def test_a_character_more_or_less_is_unknown_or_splits_as_regex(
    tmp_path: Path, name: str, share: float, inserted: str
) -> None:
    expression = PATTERNS[name] or ""
    at = int(share * len(expression))
    changed = expression[:at] + inserted + expression[at + 1 :]
    if compiled(changed) is not None:
        expect_definition(tmp_path, "".join(PIECES).encode(), (), changed)


# The patterns of SuperBPE are one expression each and cut as the original does in several steps,
# line by line.
LINE = r"[^\n]*\n|[^\n]+"
ALONE = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)"
WORDS = PATTERNS["o200k"].replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "")
SUPERBPE = [
    spelling
    for spelling, slots in patterns.EXACT_SPELLINGS.items()
    if spelling and slots.split == patterns.SUPERBPE
]


@examples(60)
@given(st.text("ab1\u00bd .,:-/\t\r\n\u00a0\u3000\u00e9\u4e00\u0301'sS") | st.sampled_from(PIECES))
@example("don't\n")
def test_expressions_of_superbpe_cut_any_text_as_the_steps_do(text: str) -> None:
    lines = regex.findall(LINE, text)
    pieces, words = [], []
    for line in lines:
        pieces += isolated(ALONE, line)
        words += regex.findall(WORDS, line)

    assert PATTERNS["superbpe"] in SUPERBPE
    assert [regex.findall(spelling, text) for spelling in SUPERBPE] == [pieces, pieces]
    assert regex.findall(PATTERNS["superbpe_words"], text) == words


def test_long_line_takes_little_memory() -> None:
    """As a group of single characters it took a hundred bytes for each, and six megabytes of one
    line ran out of it.
    """
    pattern = regex.compile(PATTERNS["superbpe"])
    line = "the way of the world is this one, " * 10_000
    tracemalloc.start()
    ends = [match.end() for match in pattern.finditer(line)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ends == [len(line) - 1, len(line)]
    assert peak < 20 * len(line)
