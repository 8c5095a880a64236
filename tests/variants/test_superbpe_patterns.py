"""The patterns of SuperBPE, each one expression, cut as the original does in several steps, line by line."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.common import registry
from variants.contract import Corpus
from variants.counting import patterns
from variants.counting.pretokenize import pre_tokens

texts = st.text(st.sampled_from("ab1\u00bd .,:-/\t\r\n\u00a0\u3000\u00e9\u4e00\u0301'sS")) | st.text(max_size=30)
LINES = regex.compile(r"[^\n]*\n|[^\n]+")
ALONE = regex.compile(r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)")
O200K = registry.cards("pattern")["o200k"]["regex"]
WORDS = regex.compile(O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", ""))


def second_stage(text: str) -> Iterator[str]:
    """What the expression matches stands alone, and so does each stretch between two matches."""
    for line in LINES.findall(text):
        at = 0
        for match in ALONE.finditer(line):
            yield from filter(None, (line[at : match.start()], match.group()))
            at = match.end()
        yield from filter(None, [line[at:]])


def first_stage(text: str) -> Iterator[str]:
    for line in LINES.findall(text):
        yield from (match.group() for match in WORDS.finditer(line))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("superbpe") / "text.txt"


def pieces(file: Path, text: str, pattern: str) -> list[str]:
    file.write_bytes(text.encode())
    corpus = Corpus(str(file), (), registry.cards("pattern")[pattern]["regex"])
    return [piece.decode() for piece in pre_tokens(corpus)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts)
def test_the_two_expressions_cut_any_text_as_the_steps_do(file: Path, text: str) -> None:
    assert pieces(file, text, "superbpe") == list(second_stage(text))
    assert pieces(file, text, "superbpe_words") == list(first_stage(text))


def test_contractions_are_words_of_their_own_in_the_first_stage() -> None:
    assert WORDS.pattern != O200K, "o200k's expression is written otherwise now"
    assert list(first_stage("don't\n")) == ["don", "'t", "\n"]


def test_a_long_line_takes_little_memory() -> None:
    """As a group of single characters it took a hundred bytes for each, and six megabytes of one line ran out of it."""
    pattern = regex.compile(registry.cards("pattern")["superbpe"]["regex"])
    line = "the way of the world is this one, " * 10_000
    tracemalloc.start()
    try:
        assert [match.end() for match in pattern.finditer(line)] == [len(line) - 1, len(line)]
        assert tracemalloc.get_traced_memory()[1] < 20 * len(line)
    finally:
        tracemalloc.stop()


def test_the_older_spelling_of_the_pattern_is_known_and_cuts_alike() -> None:
    new, old = (spelling for spelling, slots in patterns.EXACT_SPELLINGS.items() if slots.split == patterns.SUPERBPE)
    text = "a b  1234 c:: d \n\n e, --/\n" * 3
    assert regex.findall(new or "", text) == regex.findall(old or "", text)
