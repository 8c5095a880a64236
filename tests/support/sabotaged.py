"""Trainers that learn the wrong merges, each in one way: mistakes found in published code, and
their nearest relatives.

Most are the definition with one of its steps replaced, or a stage with one of its lines
(sabotaged.toml), so that what is wrong is all there is to read. Trainers that break the contract
around the merges are in ill_mannered.py.
"""

import importlib
import inspect
import itertools
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import tomllib

from variants import heap, naive, naive_extending
from variants.contract import (
    GREATEST_BYTES,
    Merge,
    Meter,
    Pair,
    TieBreak,
    Veto,
    inverted,
)
from variants.words import PairCounts, count_pairs, merge_pair, most_frequent_pair

Train = Callable[..., list[Merge]]


def replacing(train: Train, /, **steps: Any) -> Train:
    """A trainer of this module in which some of the functions that it calls are others."""
    functions = {**train.__globals__, **steps, "__name__": __name__}
    replaced = FunctionType(train.__code__, functions, train.__name__, train.__defaults__)
    replaced.__kwdefaults__ = train.__kwdefaults__
    replaced.__qualname__ = "replacing.<locals>.train"
    return replaced


def mutated(module: str, changes: Mapping[str, str]) -> Train:
    """The trainer of a module in which some texts are others, or the one that takes its steps."""
    source = inspect.getsource(importlib.import_module(f"variants.{module}"))
    for right, wrong in changes.items():
        assert source.count(right) == 1, right
        source = source.replace(right, wrong)
    names: dict[str, Any] = {"__name__": f"variants.{module}"}
    exec(source, names)

    if module == "pair_queue":
        return replacing(heap.train, learn=replacing(heap.learn, **names))
    learn = {"words": naive.train, "extending": naive_extending.train}.get(module)
    return replacing(learn or names["train"], **names)


TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
for module, trainers in TEXTS.items():
    for name, changes in trainers.items():
        globals()[name] = mutated(module, changes)

honest = naive.train


# Ties and counts


def ranking(rank: Callable[[int, bytes, bytes], Any], best: Callable[..., Pair] = max) -> Train:
    """The definition, ranking pairs by their counts and the bytes of their tokens."""

    def choose(counts: PairCounts, tokens: Sequence[bytes], _: Meter) -> Pair:
        return best(counts, key=lambda pair: rank(counts[pair], *(tokens[part] for part in pair)))

    return replacing(naive.train, most_frequent_pair=choose)


def remapped(token: bytes) -> list[int]:
    return [byte if 33 <= byte < 127 else 256 + byte for byte in token]


ties_to_the_smallest = ranking(lambda count, *pair: (count, *map(inverted, pair)))
ties_by_signed_bytes = ranking(lambda count, *pair: (count, *(array("b", half) for half in pair)))
ties_by_remapped_characters = ranking(lambda count, *pair: (count, *map(remapped, pair)))
inverted_key_without_terminator = ranking(
    lambda count, left, right: (-count, inverted(left)[:-1], inverted(right)[:-1]), min
)


def taking(used: Mapping[TieBreak, TieBreak]) -> Train:
    """The definition, taking one tie-break for another."""

    def train(*arguments: Any, tie_break: TieBreak = GREATEST_BYTES, **options: Any) -> list[Merge]:
        return honest(*arguments, tie_break=used.get(tie_break, tie_break), **options)

    return train


ignores_tie_break = taking(dict.fromkeys(TieBreak, GREATEST_BYTES))
huggingface_with_raw_byte_ids = taking({TieBreak.HUGGINGFACE: TieBreak.RAW_BYTES})
raw_ids_compared_as_bytes = taking({TieBreak.RAW_BYTES: TieBreak.SMALLEST_BYTES})


def count_without_overlap(
    words: Sequence[Sequence[int]], weights: Sequence[int], meter: Meter
) -> PairCounts:
    """The counts of pairs if `aaa` held (a, a) once."""
    counts = count_pairs(words, weights, meter)
    for word, weight in zip(words, weights):
        for token, run in itertools.groupby(word):
            pairs = len(list(run)) - 1
            if pairs:
                counts[token, token] -= pairs // 2 * weight
    return counts


leaves_out_pairs_that_occur_once = replacing(
    naive.train,
    count_pairs=lambda *words: {
        pair: count for pair, count in count_pairs(*words).items() if count > 1
    },
)
non_overlapping_count = replacing(naive.train, count_pairs=count_without_overlap)
runs_counted_without_overlap = replacing(naive_extending.train, count_pairs=count_without_overlap)
right_to_left = replacing(
    naive.train,
    merge_pair=lambda word, pair, token: merge_pair(word[::-1], pair[::-1], token)[::-1],
)


def choose_in_even_slices(counts: PairCounts, keys: Sequence[Any], meter: Meter) -> Pair:
    """Four workers choose among as many pairs each, and nobody among the pairs that are left."""
    pairs = list(counts.items())
    shared_out = max(len(pairs) // 4, 1) * 4
    return most_frequent_pair(dict(pairs[:shared_out]), keys, meter)


loses_pairs_in_parallel_maximum = replacing(naive.train, most_frequent_pair=choose_in_even_slices)


# Going on from inherited merges


def only_once(refused: Callable[..., bool]) -> Callable[..., bool]:
    asked: set[Any] = set()

    def refused_at_first(*pair: Any) -> bool:
        is_new = pair not in asked
        asked.add(pair)
        return is_new and refused(*pair)

    return refused_at_first


veto_forgotten_for_the_second_occurrence = replacing(naive_extending.train, cache=only_once)


def veto_applied_to_inherited(
    *arguments: Any, inherited: Sequence[Merge] = (), veto: Veto | None = None, **options: Any
) -> list[Merge]:
    left = [merge for merge in inherited if veto is None or not veto(*merge)]
    return naive_extending.train(*arguments, inherited=left, veto=veto, **options)


def refuses_nothing(*_: Any, inherited: Sequence[Merge] = (), **__: Any) -> list[Merge]:
    return list(inherited)


def refuses_another_order_only(*_: Any, inherited: Sequence[Merge] = (), **__: Any) -> list[Merge]:
    if len(inherited[0][0]) > 1:
        raise ValueError("its token is not made yet")
    return list(inherited)


def refuses_by_another_error(*_: Any, **__: Any) -> list[Merge]:
    raise KeyError("its token is not made yet")


def inherits_in_one_thread_only(
    *arguments: Any, threads: int = 1, inherited: Sequence[Merge] = (), **options: Any
) -> list[Merge]:
    kept = inherited if threads == 1 else ()
    return naive_extending.train(*arguments, inherited=kept, **options)
