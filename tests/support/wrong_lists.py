"""Wrong lists of merges, each wrong in one way at one merge, to test checkers with.

A seed decides everything: the words, the rule, the way, and for plain training a certificate that
claims the list to be right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sabotaged

from harness.common.values import first_difference
from harness.proof.calls import CheckFailed, TrainerCall
from harness.proof.certificate import certificate, digest_line
from harness.proof.compiled_replay import Replay, token_ids
from harness.proof.trainer_checks import random_call, random_extension
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


Way = Callable[[random.Random], "WrongList | None"]


def wrong_list(seed: int) -> WrongList:
    """The wrong list of a seed; the ways take turns."""
    way = list(WAYS)[seed % len(WAYS)]
    dice = random.Random(seed)
    found = None
    while found is None:
        found = WAYS[way](dice)
    return found._replace(way=way)


# Wrong lists


def plain_call(dice: random.Random) -> TrainerCall:
    return random_call(dice.randrange(1 << 32), dice.choice(list(TieBreak)))


def extending(dice: random.Random) -> TrainerCall:
    return random_extension(dice.randrange(1 << 32), dice.choice(list(TieBreak)))


def claimed(call: TrainerCall, merges: Sequence[Merge]) -> bytes:
    return certificate(call.word_counts, merges, call.tie_break, call.min_count, call.num_merges)


def differing(call: TrainerCall, merges: Sequence[Merge]) -> WrongList | None:
    """The list as a wrong one; None if it is right, or has a token that no merge before it makes."""
    right = call.defined()
    if merges == right:
        return None
    if len(token_ids(merges)[0]) < len(merges):
        return None
    is_plain = not call.inherited and call.veto == "none"
    content = claimed(call, merges) if is_plain else None
    merge = first_difference(merges, right) + 1
    return WrongList("", call, merges, merge, content)


def trained_by(trainer: sabotaged.Train, call_of: Callable[[random.Random], TrainerCall]) -> Way:
    def way(dice: random.Random) -> WrongList | None:
        call = call_of(dice)
        try:
            return differing(call, call.run(trainer))
        except CheckFailed:
            return None

    return way


def heavy_call(dice: random.Random) -> TrainerCall:
    """Of weights so large that their sum just fits in 32, 53 or 63 bits."""
    call = plain_call(dice)
    positions = sum(count * len(word) for word, count in call.words.items())
    unit = max(2 ** dice.choice((32, 53, 63)) // positions - 1, 1)
    few = {word: count * unit + dice.randrange(2) for word, count in call.words.items()}
    return replace(call, words=few) if positions < 1 << 16 else call


def too_few(dice: random.Random) -> WrongList | None:
    call = plain_call(dice)
    right = call.defined()
    return differing(call, right[: dice.randint(0, len(right))])


def too_many(dice: random.Random) -> WrongList | None:
    call = plain_call(dice)
    right = call.defined()
    return differing(replace(call, num_merges=max(len(right) - dice.randint(1, 3), 0)), right)


# Forged certificates of right lists. Each forgery changes the lines of a certificate, which name the
# call and the merges, and returns the merge that is then wrong, or None if the certificate may still be right.

Lines = list[list[str]]
Forge = Callable[[Lines, TrainerCall, random.Random], "int | None"]
FIRST = 5  # lines before the merges


def write(lines: Lines, name: str, value: object) -> None:
    """Change a line before the merges."""
    line = next(line for line in lines if line[0] == name)
    line[1] = str(value)


def in_a_merge(column: int) -> Forge:
    def forge(lines: Lines, _: TrainerCall, dice: random.Random) -> int:
        line = dice.randrange(FIRST, len(lines))
        lines[line][column] = str(int(lines[line][column]) + 1)
        return line - FIRST + 1

    return forge


def another_tie_break(lines: Lines, call: TrainerCall, dice: random.Random) -> int | None:
    other = plain_call(dice).tie_break
    right, others = call.defined(), replace(call, tie_break=other).defined()
    write(lines, "tie_break", other.value)
    return None if right == others else first_difference(right, others) + 1


def higher_min_count(lines: Lines, call: TrainerCall, _: random.Random) -> int:
    merges = call.defined()
    judged = Replay(call.word_counts, merges, len(merges)).judged(call.tie_break)
    write(lines, "min_count", judged.counts[-1] + 1)
    return judged.counts.index(judged.counts[-1]) + 1


def fewer_wanted(lines: Lines, *_: Any) -> int:
    number = len(lines) - FIRST
    write(lines, "wanted", number - 1)
    return number


FORGERIES: Mapping[str, Forge] = {
    "tie_break": another_tie_break,
    "min_count": higher_min_count,
    "wanted": fewer_wanted,
    "left token": in_a_merge(0),
    "right token": in_a_merge(1),
}


def forged(name: str) -> Way:
    def way(dice: random.Random) -> WrongList | None:
        call = plain_call(dice)
        merges = call.defined()
        if not merges:
            return None

        lines = [line.split() for line in claimed(call, merges).decode().splitlines()[:-1]]
        merge = FORGERIES[name](lines, call, dice)
        if merge is None:
            return None
        content = "".join(" ".join(line) + "\n" for line in lines).encode()
        return WrongList("", call, merges, merge, content + digest_line(content))

    return way


PLAIN = [
    "ignores_tie_break",
    "non_overlapping_count",
    "right_to_left",
    "heap_without_refresh",
    "loses_pairs_in_parallel_maximum",
]
HEAVY = ["counts_in_int32", "counts_in_uint32", "counts_in_float"]
EXTENDING = ["no_veto", "kept_merge_dropped", "inherited_in_another_order"]
WAYS: Mapping[str, Way] = {
    **{name: trained_by(getattr(sabotaged, name), plain_call) for name in PLAIN},
    **{name: trained_by(getattr(sabotaged, name), heavy_call) for name in HEAVY},
    **{name: trained_by(getattr(sabotaged, name), extending) for name in EXTENDING},
    "merges missing": too_few,
    "merges too many": too_many,
    **{f"forged {name}": forged(name) for name in FORGERIES},
}
"""What makes a wrong list, or None if it came out right."""
