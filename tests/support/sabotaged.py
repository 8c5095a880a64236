"""Trainers that learn the wrong merges, each in one way: mistakes found in published code, and
their nearest relatives.

Most are the definition with one of its steps replaced, or a stage with one of its lines, so that
what is wrong is all there is to read. A step that chooses takes the keys of greatest_bytes, which
are the tokens. Trainers that break the contract around the merges are in ill_mannered.py.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from harness.proof.wrong_lists import count_without_overlap, merge_backwards
from variants import extending, fine_grained, heap, naive, naive_extending, pair_queue
from variants.contract import (
    GREATEST_BYTES,
    NULL_METER,
    Merge,
    Meter,
    Pair,
    TieBreak,
    Veto,
    WordCounts,
    inverted,
)
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

Train = Callable[..., list[Merge]]
Words = Sequence[Sequence[int]]


def replacing(train: Train, **steps: Any) -> Train:
    """A trainer of this module in which some of the functions that it calls are others."""
    functions = {**train.__globals__, **steps, "__name__": __name__}
    replaced = FunctionType(train.__code__, functions, train.__name__, train.__defaults__)
    replaced.__kwdefaults__, replaced.__qualname__ = (
        train.__kwdefaults__,
        "replacing.<locals>.train",
    )
    return replaced


def mutated(module: ModuleType, changes: Mapping[str, str]) -> dict[str, Any]:
    """The names of a module in which some texts are others."""
    source = inspect.getsource(module)
    for right, wrong in changes.items():
        assert source.count(right) == 1, right
        source = source.replace(right, wrong)
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(source, names)
    return names


honest = replacing(naive.train)


# Ties. A rank is made from a pair's count, its tokens' bytes and its tokens' ids.


def ranking(
    rank: Callable[[int, bytes, bytes, Pair], Any], best: Callable[..., Pair] = max
) -> Train:
    def choose(counts: PairCounts, tokens: Sequence[bytes], _: Meter) -> Pair:
        return best(
            counts, key=lambda pair: rank(counts[pair], tokens[pair[0]], tokens[pair[1]], pair)
        )

    return replacing(naive.train, most_frequent_pair=choose)


ties_to_the_smallest = ranking(
    lambda count, left, right, _: (count, inverted(left), inverted(right))
)
ties_by_id = ranking(lambda count, _left, _right, ids: (count, ids))
ties_by_concatenation = ranking(lambda count, left, right, _: (count, left + right))
ties_to_the_first_seen = ranking(lambda count, _left, _right, _: count)


def remapped(token: bytes) -> list[int]:
    return [byte if 33 <= byte < 127 else 256 + byte for byte in token]


ties_by_signed_bytes = ranking(
    lambda count, left, right, _: (count, array("b", left), array("b", right))
)
ties_by_remapped_characters = ranking(
    lambda count, left, right, _: (count, remapped(left), remapped(right))
)
inverted_key_without_terminator = ranking(
    lambda count, left, right, _: (-count, inverted(left)[:-1], inverted(right)[:-1]), min
)


def taking(used: Callable[[TieBreak], TieBreak]) -> Train:
    """The definition, taking one tie-break for another."""

    def train(*arguments: Any, tie_break: TieBreak = GREATEST_BYTES, **options: Any) -> list[Merge]:
        return honest(*arguments, tie_break=used(tie_break), **options)

    return train


ignores_tie_break = taking(lambda _: GREATEST_BYTES)
huggingface_with_raw_byte_ids = taking(
    lambda each: TieBreak.RAW_BYTES if each is TieBreak.HUGGINGFACE else each
)
raw_ids_compared_as_bytes = taking(
    lambda each: TieBreak.SMALLEST_BYTES if each is TieBreak.RAW_BYTES else each
)


# Counts.


non_overlapping_count = replacing(naive.train, count_pairs=count_without_overlap)
counts_in_int32 = ranking(lambda count, left, right, _: (ctypes.c_int32(count).value, left, right))
counts_in_uint32 = ranking(
    lambda count, left, right, _: (ctypes.c_uint32(count).value, left, right)
)
counts_in_float = ranking(lambda count, left, right, _: (float(count), left, right))
leaves_out_pairs_that_occur_once = replacing(
    naive.train,
    count_pairs=lambda *words: {
        pair: count for pair, count in count_pairs(*words).items() if count > 1
    },
)


# The maximum.


def choose_in_even_slices(counts: PairCounts, keys: Sequence[Any], meter: Meter) -> Pair:
    pairs, workers = list(counts), 4
    size = max(len(pairs) // workers, 1)
    slices = [pairs[start : start + size] for start in range(0, size * workers, size)]
    found = [
        most_frequent_pair({pair: counts[pair] for pair in part}, keys, meter)
        for part in slices
        if part
    ]
    return most_frequent_pair({pair: counts[pair] for pair in found}, keys, meter)


loses_pairs_in_parallel_maximum = replacing(naive.train, most_frequent_pair=choose_in_even_slices)


def with_queue(right: str, wrong: str) -> Train:
    """The stage `heap` with another queue."""
    queue = mutated(pair_queue, {right: wrong})["PairQueue"]
    return replacing(heap.train, learn=replacing(heap.learn, PairQueue=queue))


heap_without_refresh = with_queue("if sign * claimed == count:", "if count:")
heap_dropping_stale_entries = with_queue("elif count:", "elif False:")


# Replacing.


right_to_left = replacing(
    naive.train,
    merge_pair=merge_backwards,
)
nul_as_truth_value = replacing(
    naive.train,
    merge_pair=lambda word, pair, token: merge_pair(word, pair, token) if all(pair) else list(word),
)
token_length_in_one_byte = ranking(
    lambda count, left, right, _: (len(left + right) < 256, count, left, right)
)


def dead_neighbour(
    word_counts: WordCounts, num_merges: int, *_: Meter, tie_break: TieBreak = GREATEST_BYTES
) -> list[Merge]:
    """Updates the counts around each occurrence by the neighbours it had, which the same merge may
    have replaced.
    """
    learned = Vocabulary(tie_break.key)
    words, weights = [list(word) for word in word_counts], list(word_counts.values())
    counts = count_pairs(words, weights, NULL_METER)

    def change(pair: Pair, weight: int) -> None:
        counts[pair] = counts.get(pair, 0) + weight

    while any(count > 0 for count in counts.values()) and len(learned.merges) < num_merges:
        left, right = pair = most_frequent_pair(counts, learned.keys, NULL_METER)
        token = learned.add(pair)
        del counts[pair]
        for number, (word, weight) in enumerate(zip(words, weights)):
            words[number], place = merge_pair(word, pair, token), 0
            while place < len(word) - 1:
                if (word[place], word[place + 1]) != pair:
                    place += 1
                    continue
                if place:
                    change((word[place - 1], left), -weight)
                    change((word[place - 1], token), weight)
                if place + 2 < len(word):
                    change((right, word[place + 2]), -weight)
                    change((token, word[place + 2]), weight)
                place += 2
    return learned.merges


NEW_PAIRS = "self.index_pairs([pair for pair in come if new_token in pair], number)"
window_dropped = mutated(
    fine_grained, {" or pair in remaining:": ":", "self.index_pairs(come, number)": NEW_PAIRS}
)
index_dropped_too_early = replacing(window_dropped["train"])
first_dropped = mutated(
    fine_grained, {"if self.counts_occurrences and holders[number] > 1:": "if False:"}
)
index_dropped_at_the_first_of_two = functools.partial(
    replacing(first_dropped["train"]), index="occurrences"
)


# Going on from inherited merges.

extending_with = functools.partial(replacing, naive_extending.train)
honest_extender = extending_with()


def mutant(name: str, right: str, wrong: str) -> Train:
    """The definition with a step of extending.py in which one text is another."""
    return extending_with(**{name: mutated(extending, {right: wrong})[name]})


def only_once(refused: Callable[..., bool]) -> Callable[..., bool]:
    asked: set[Any] = set()

    def refused_at_first(*pair: Any) -> bool:
        is_new = pair not in asked
        asked.add(pair)
        return is_new and refused(*pair)

    return refused_at_first


veto_forgotten_for_the_second_occurrence = extending_with(cache=only_once)
no_veto = mutant("Refused", "self.veto is not None and bool(self.veto(left, right))", "False")
spells_a_token_twice = mutant("Refused", "{left + right for left, right in inherited}", "set()")
dropped_merge_kept = extending_with(
    inherit=lambda inherited, _, *how: extending.inherit(inherited, "kept", *how)
)
used_up_merge_dropped = mutant("inherit", "met.update(make(pair))", "met = {*make(pair)}")
kept_merge_dropped = extending_with(
    inherit=lambda inherited, _, *how: extending.inherit(inherited, "met", *how)
)
inherited_in_another_order = extending_with(
    inherit=lambda inherited, *how: extending.inherit(inherited[::-1], *how)
)
runs_counted_without_overlap = extending_with(count_pairs=count_without_overlap)


def veto_applied_to_inherited(
    *arguments: Any, inherited: Sequence[Merge] = (), veto: Veto | None = None, **options: Any
) -> list[Merge]:
    left = [merge for merge in inherited if veto is None or not veto(*merge)]
    return honest_extender(*arguments, inherited=left, veto=veto, **options)


def refuses_nothing(*_: Any, inherited: Sequence[Merge] = (), **__: Any) -> list[Merge]:
    return list(inherited)


def inherits_in_one_thread_only(
    *arguments: Any, threads: int = 1, inherited: Sequence[Merge] = (), **options: Any
) -> list[Merge]:
    return honest_extender(*arguments, inherited=inherited if threads == 1 else (), **options)
