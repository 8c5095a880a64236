"""Trainers as others make them: they read the file by themselves and break ties in ways of their
own.
"""

from __future__ import annotations

from typing import NamedTuple

from variants import minbpe
from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.counting.pretokenize import serial
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
    corpus: Corpus, num_merges: int, *, tie_break: TieBreak | None = None
) -> list[Merge]:
    """Takes those first that others take last."""
    assert tie_break is None
    return minbpe.train(corpus, num_merges)[::-1]


class Excused(NamedTuple):
    """A Feeding with an excuse of the module's own, which counts for nothing."""

    program: str = "outsiders 1"
    way_in: str = "the file"
    pre_tokens: str = "itself"
    special_tokens: str = "cut out"
    ties: str = "the first pair met"
    by_design: str = "it is faster"


def feeding(_: Corpus) -> Excused:
    return Excused()
