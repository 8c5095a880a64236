"""Trainers as others make them: they read the file by themselves and break ties in ways of their
own.
"""

from __future__ import annotations

from typing import Any

from variants import minbpe
from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.counting.pretokenize import serial
from variants.feeding import Feeding
from variants.heap import train as train_on_words


def takes_raw_bytes(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
) -> list[Merge]:
    return train_on_words(serial(corpus, meter), num_merges, meter, tie_break=tie_break)


def promises_raw_bytes(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
) -> list[Merge]:
    assert tie_break is TieBreak.RAW_BYTES
    return minbpe.train(corpus, num_merges, meter)


def takes_the_first(
    corpus: Corpus, num_merges: int, meter: Meter = NULL_METER, *, tie_break: TieBreak | None = None
) -> list[Merge]:
    if tie_break is not None:
        raise Unavailable("it takes the first pair")
    return minbpe.train(corpus, num_merges, meter)


def takes_the_rarest(
    corpus: Corpus, num_merges: int, *, tie_break: TieBreak | None = None, rarest: bool = True
) -> list[Merge]:
    """Takes those first that others take last. Its card says that it means to, if it sets
    `rarest`.
    """
    assert (tie_break, rarest) == (None, True)
    return minbpe.train(corpus, num_merges)[::-1]


def feeding(corpus: Corpus, **parameters: Any) -> Feeding:
    reason = "it takes the rarest pair" if "rarest" in parameters else None
    return Feeding(
        "outsiders 1",
        "the file",
        "itself",
        f"cut out of {len(corpus.path)}",
        "the first pair met",
        reason,
    )
