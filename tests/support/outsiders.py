"""Trainers as others make them: they read the file by themselves and break ties in ways of their own."""

from __future__ import annotations

from typing import Any

from variants import minbpe
from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.counting.pretokenize import serial
from variants.feeding import Feeding
from variants.heap import train as train_on_words
from variants.words import Vocabulary, count_pairs, merge_pair


def takes_raw_bytes(
    corpus: Corpus, num_merges: int, meter: Meter = NULL_METER, *, tie_break: TieBreak = TieBreak.RAW_BYTES
) -> list[Merge]:
    return train_on_words(serial(corpus, meter), num_merges, meter, tie_break=tie_break)


def promises_raw_bytes(
    corpus: Corpus, num_merges: int, meter: Meter = NULL_METER, *, tie_break: TieBreak = TieBreak.RAW_BYTES
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
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    rarest: bool = True,
) -> list[Merge]:
    """Its card says that it means to, if it sets `rarest`."""
    assert tie_break is None
    assert rarest
    vocabulary = Vocabulary(TieBreak.RAW_BYTES.key)
    word_counts = serial(corpus, meter)
    words, weights = [list(word) for word in word_counts], list(word_counts.values())
    while len(vocabulary.merges) < num_merges and (counts := count_pairs(words, weights, meter)):
        pair = min(counts, key=counts.__getitem__)
        new_token = vocabulary.add(pair)
        words = [merge_pair(word, pair, new_token) for word in words]
    return vocabulary.merges


def feeding(corpus: Corpus, **parameters: Any) -> Feeding:
    reason = "it takes the rarest pair" if "rarest" in parameters else None
    return Feeding("outsiders 1", "the file", "itself", f"cut out of {len(corpus.path)}", "the first pair met", reason)
