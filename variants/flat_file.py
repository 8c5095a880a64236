"""Flat from a file to merges in one call: the compiled counter, then the trainer, in one process.

As two cells of a run, a counter and a trainer are measured in processes of their own, and word
counts go from one to the other by a file. Outside trainers read files themselves; this is what can
be set beside them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from variants import flat
from variants.contract import (
    GPT2_PATTERN,
    GREATEST_BYTES,
    NULL_METER,
    Corpus,
    Merge,
    Meter,
    TieBreak,
    Veto,
    vocab_of,
)
from variants.extending import check_inherited
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding
from variants.native import built, loading
from variants.vetoes import limits_of

try:
    from variants.counting.native import before_the_clock as make_tables
    from variants.counting.native import in_parts, native
# another interpreter, without what the counter is made with: the compiled parts are missing too
except ImportError:
    make_tables = in_parts = native = None  # type: ignore[assignment]

load = loading("_flat", "_scanner")
MOST_CELLS = 2**32 + 2 * 256
"""The most cells that four bytes can number. The 256 words of one byte are counted and not laid out."""


def before_the_clock() -> None:
    """Load what is compiled, and make or read the tables of Unicode's classes: no work on any
    corpus.
    """
    load()
    make_tables()


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    threads: int = 1,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> Sequence[Merge]:
    """Count the words of a corpus and learn merges. Raises what the counter and the trainer
    raise.
    """
    load()
    check_inherited(inherited, inheriting, num_merges)
    how: dict[str, Any] = {"tie_break": tie_break, "min_count": min_count, "threads": threads}
    # pieces are encoded as they are read: never all of the text is here
    if inherited or not flat.is_bounded(veto):
        pieces = built("_flat").Pieces(flat.ids_of(inherited))
        in_parts(corpus, pieces, meter, threads=threads)
        how.update(pieces=pieces, dropping=inheriting == "met", veto=limits_of(veto))
        return flat.train_compiled([], num_merges, meter, **how)
    counting: dict[str, Any] = {} if veto else {"most_cells": MOST_CELLS}  # a veto may cut words
    word_counts = native(corpus, meter, threads=threads, **counting)
    columns = [word_counts.data, word_counts.offsets, word_counts.counts]
    del word_counts  # so that the words' memory goes to the lists as soon as the text is laid out
    return flat.train_on(columns, num_merges, meter, veto=veto, **how)


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding("here, flat", "the file", BY_THE_PATTERN, CUT_OUT, "by tie_break")


def train_bpe(
    input_path: str | os.PathLike[str],
    vocab_size: int,
    special_tokens: Sequence[str] | str | None = ("<|endoftext|>",),
    *,
    pattern: str | None = GPT2_PATTERN,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    threads: int = 1,
    errors: str = "strict",
    partial: bool = False,
    meter: Meter = NULL_METER,
) -> tuple[dict[int, bytes], list[Merge]]:
    """Return (vocabulary, merges) of a file, called as CS336's assignment has it.

    `vocab_size` is the final size, the 256 bytes and the special tokens included; the vocabulary is
    smaller if no pair is left before. `special_tokens` may be a single token, or None for none.
    `pattern` is a regular expression for pre-tokens, None takes the raw bytes between special
    tokens. `errors="replace"` reads bytes that are not UTF-8 as U+FFFD. Raises ValueError for an
    invalid argument, InvalidText with the offset of the first bad byte, LeftOut if the pattern
    leaves text out unless it may be `partial`, OSError if the file cannot be read, and what `train`
    raises.
    """
    tokens = (special_tokens,) if isinstance(special_tokens, str) else tuple(special_tokens or ())
    if not all(isinstance(token, str) for token in tokens):
        raise ValueError('special_tokens are texts, such as ["<|endoftext|>"], or None')

    num_merges = vocab_size - 256 - len(tokens)
    if num_merges < 0:
        raise ValueError(
            f"vocab_size={vocab_size} is below the {256 + len(tokens)} bytes and special tokens"
        )
    if "" in tokens or len(set(tokens)) < len(tokens):
        raise ValueError("special_tokens holds an empty token or one twice; leave it out")
    if errors not in ("strict", "replace"):
        raise ValueError(f"errors={errors!r} is neither strict nor replace")

    corpus = Corpus(os.fspath(input_path), tokens, pattern, errors, partial)
    how: dict[str, Any] = {"tie_break": tie_break, "min_count": min_count, "threads": threads}
    merges = train(corpus, num_merges, meter, **how)
    return vocab_of(merges, tokens), list(merges)
