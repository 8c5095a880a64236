"""Wrong lists of merges, each wrong in one way at one merge, to test checkers with.

A seed decides everything: the words, the rule, the way, and for plain training a certificate that
claims the list to be right.
"""

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import sabotaged
from ill_mannered import changing, ignores_min_count
from unruly import returning

from harness.common.values import first_difference
from harness.proof.cases import random_call, random_extension
from harness.proof.checks import CheckFailed, TrainerCall
from harness.proof.compiled_replay import token_ids
from harness.proof.prove import certificate
from variants.contract import Merge, TieBreak


class WrongList(NamedTuple):
    """A call, the merges that are wrong for it from number `merge` on, and their certificate; None
    where the training is not plain.
    """

    way: str
    call: TrainerCall
    merges: Sequence[Merge]
    merge: int
    certificate: bytes | None


def wrong_list(seed: int) -> WrongList:
    """The wrong list of a seed; the ways take turns, each until its list comes out wrong, with no
    token that no merge before it makes.
    """
    way, (trainer, make) = list(WAYS.items())[seed % len(WAYS)]
    dice = random.Random(seed)
    while True:
        call = make(dice.randrange(1 << 32), dice.choice(list(TieBreak)))
        right = call.defined()
        with contextlib.suppress(CheckFailed):
            merges = call.run(trainer)
            if merges != right and len(token_ids(merges)[0]) == len(merges):
                break

    is_plain = not call.inherited and call.veto == "none"
    content = claimed(call, merges) if is_plain else None
    return WrongList(way, call, merges, first_difference(merges, right) + 1, content)


def claimed(call: TrainerCall, merges: Sequence[Merge]) -> bytes:
    return certificate(call.word_counts, merges, call.tie_break, call.min_count, call.num_merges)


def call_for_half(seed: int, tie_break: TieBreak) -> TrainerCall:
    call = random_call(seed, tie_break)
    return replace(call, num_merges=len(call.defined()) // 2)


PLAIN = [
    "ignores_tie_break",
    "non_overlapping_count",
    "right_to_left",
    "heap_without_refresh",
    "loses_pairs_in_parallel_maximum",
    "counts_in_int32",
]
EXTENDING = ["no_veto", "kept_merge_dropped", "inherited_in_another_order"]
WAYS: Mapping[str, tuple[sabotaged.Train, Callable[[int, TieBreak], TrainerCall]]] = {
    **{name: (getattr(sabotaged, name), random_call) for name in PLAIN},
    **{name: (getattr(sabotaged, name), random_extension) for name in EXTENDING},
    "merges below min_count": (ignores_min_count, random_call),
    "merges missing": (returning(lambda merges, _: merges[: len(merges) // 2]), random_call),
    "merges too many": (changing(number=lambda number: 2 * number), call_for_half),
}
"""Who learns the wrong list, and what for."""
