"""gigabpe: `train_bpe`, which reads the file itself, as Hugging Face's own way with files does.

It looks for pre-tokens line by line, so that blanks before a line's end make other words than in the whole text, and
takes special tokens for text. Under the pattern gpt2_lines, which cuts any text so, its merges are everybody's.
"""

from __future__ import annotations

from variants.contract import (
    GPT2_CHARACTERS,
    GPT2_LINES_PATTERN,
    GPT2_PATTERN,
    NULL_METER,
    Corpus,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
)
from variants.feeding import Feeding
from variants.peers import expect, expect_no_minimum, expect_own_ties, expect_strict, installed, with_version

NAME = "gigabpe"
TIES = "the smallest ids, as Hugging Face's trainer"
gigabpe = installed("gigabpe")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on a file. Raises Unavailable where the package is absent or lacks what is asked.

    Its alphabet is that of the bytes that it meets, so that a vocabulary for all 256 has room for more merges, which
    are left out here.
    """
    expect(NAME, gigabpe)
    expect_own_ties(NAME, tie_break, TIES)
    expect_no_minimum(NAME, min_count)
    expect_strict(NAME, corpus)
    if corpus.pattern not in (GPT2_PATTERN, GPT2_LINES_PATTERN):
        raise Unavailable(f"{NAME} trains with GPT-2's pattern only; leave out the pattern, or set pattern=gpt2_lines")
    _, learned = gigabpe.train_bpe([corpus.path], 256 + num_merges, pretokenizer="bytelevel", threads=threads)
    byte_of = {character: byte for byte, character in enumerate(GPT2_CHARACTERS)}
    merges = [
        (bytes(byte_of[each] for each in left), bytes(byte_of[each] for each in right))
        for left, right in learned[:num_merges]
    ]
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:
    lines = corpus.pattern == GPT2_LINES_PATTERN and not corpus.special_tokens
    return Feeding(
        with_version(NAME),
        "train_bpe, the file, line by line",
        "itself, GPT-2's pattern built in, in each line for itself",
        "none: their text is counted as text",
        TIES,
        None
        if lines
        else "it cuts the text into lines before it looks for pre-tokens, and takes special tokens for text",
        None if lines else GPT2_LINES_PATTERN,
    )
