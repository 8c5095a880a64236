"""Flat from a file to merges in one call: the compiled counter, then the trainer, in one process.

As two cells of a run, a counter and a trainer are measured in processes of their own, and word counts go from one to
the other by a file. Outside trainers read files themselves; this is what can be set beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from variants import flat
from variants.contract import GREATEST_BYTES, NULL_METER, Corpus, Merge, Meter, TieBreak, Veto
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding
from variants.native import built

try:
    from variants.counting.native import before_the_clock, native
except ImportError:  # another interpreter, without what the counter is made with: the compiled parts are missing too
    before_the_clock = native = None  # type: ignore[assignment]

__all__ = ["before_the_clock", "feeding", "train"]


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
) -> list[Merge]:
    """Count the words of a corpus and learn merges. Raises what the counter and the trainer raise."""
    for module in ("_flat", "_scanner"):
        built(module)
    word_counts = native(corpus, meter, threads=threads)
    columns = [word_counts.data, word_counts.offsets, word_counts.counts]
    del word_counts  # so that the words' memory goes to the lists as soon as the text is laid out
    return flat.train_on(
        columns,
        num_merges,
        meter,
        tie_break=tie_break,
        min_count=min_count,
        threads=threads,
        inherited=inherited,
        inheriting=inheriting,
        veto=veto,
    )


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(
        "here, flat",
        "the file",
        BY_THE_PATTERN,
        CUT_OUT,
        "by tie_break",
    )
