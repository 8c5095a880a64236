"""Trainers as others make them: they read the file by themselves and break ties in ways of their
own.
"""

from collections.abc import Callable
from typing import NamedTuple

from variants import minbpe
from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.counting.pretokenize import serial
from variants.heap import train as train_on_words

RAW_BYTES = TieBreak.RAW_BYTES


def trainer(
    learn: Callable[[Corpus, int, Meter], list[Merge]], own: TieBreak | None
) -> Callable[..., list[Merge]]:
    """A trainer that has one tie-break of its own, which may be none of ours."""

    def train(
        corpus: Corpus,
        num_merges: int,
        meter: Meter = NULL_METER,
        *,
        tie_break: TieBreak | None = own,
    ) -> list[Merge]:
        if tie_break != own:
            raise Unavailable("it breaks ties in its own way")
        return learn(corpus, num_merges, meter)

    return train


def learn_by_raw_bytes(corpus: Corpus, num_merges: int, meter: Meter) -> list[Merge]:
    return train_on_words(serial(corpus, meter), num_merges, meter, tie_break=RAW_BYTES)


def learn_the_rarest(corpus: Corpus, num_merges: int, meter: Meter) -> list[Merge]:
    """Take those first that others take last."""
    return minbpe.train(corpus, num_merges, meter)[::-1]


takes_raw_bytes = trainer(learn_by_raw_bytes, RAW_BYTES)
promises_raw_bytes = trainer(minbpe.train, RAW_BYTES)
takes_the_first = trainer(minbpe.train, None)
takes_the_rarest = trainer(learn_the_rarest, None)


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
