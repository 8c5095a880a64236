"""Wrong lists of merges, each wrong in one way at one merge, to test checkers with.

A seed decides everything: the words, the rule, the way, and for plain training a certificate that
claims the list to be right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.proof.calls import TrainerCall
from harness.proof.certificate import certificate, digest_line
from harness.proof.compiled_replay import inherited_first, judge_merges
from harness.proof.diagnosis import first_difference
from harness.proof.trainer_checks import random_call, random_extension
from variants.contract import NULL_METER, Merge, Meter, Pair, TieBreak, WordCounts
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

UNREADABLE = 0
"""In place of the number of a merge: the certificate cannot be read, or is not of the table."""
Words = Sequence[Sequence[int]]
View = Callable[[PairCounts, PairCounts], PairCounts]


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


# Trainers with one step that is wrong


def count_without_overlap(words: Words, weights: Sequence[int], _: Meter) -> PairCounts:
    """The counts of pairs if `aaa` held (a, a) once."""
    counts: PairCounts = {}
    for word, weight in zip(words, weights):
        index = 0
        while index < len(word) - 1:
            left, right = word[index : index + 2]
            counts[left, right] = counts.get((left, right), 0) + weight
            in_a_run = left == right and word[index + 1 : index + 3] == [left, left]
            index += 2 if in_a_run else 1
    return counts


def merge_backwards(word: Sequence[int], pair: Pair, token: int) -> list[int]:
    return merge_pair(word[::-1], pair[::-1], token)[::-1]


def kept_in(bits: int) -> View:
    """Counts in a signed integer of so many bits; with 53 in a double."""
    half = 1 << bits - 1

    def kept(count: int) -> int:
        return int(float(count)) if bits == 53 else (count + half) % (2 * half) - half

    return lambda counts, _: {pair: kept(count) for pair, count in counts.items()}


def stale(counts: PairCounts, before: PairCounts) -> PairCounts:
    return {pair: before.get(pair, count) for pair, count in counts.items()}


def gone(counts: PairCounts, before: PairCounts) -> PairCounts:
    return {**before, **counts}


def learn_wrongly(
    call: TrainerCall,
    view: View = lambda counts, _: counts,
    count: Callable[[Words, Sequence[int], Meter], PairCounts] = count_pairs,
    merge: Callable[[Sequence[int], Pair, int], list[int]] = merge_pair,
) -> list[Merge]:
    """Learn by the definition, but for one step: merging, counting, or what is seen of the counts
    and of those before the last merge.
    """
    vocabulary = Vocabulary(call.tie_break.key)
    words, weights = [list(word) for word in call.words], list(call.words.values())
    counts, before = count(words, weights, NULL_METER), PairCounts()
    while counts and len(vocabulary.merges) < call.num_merges:
        seen = view(counts, before)
        pair = most_frequent_pair(seen, vocabulary.keys, NULL_METER)
        if seen[pair] < call.min_count:
            break

        token = vocabulary.add(pair)
        words = [merge(word, pair, token) for word in words]
        before = {other: number for other, number in counts.items() if other != pair}
        counts = count(words, weights, NULL_METER)
    return vocabulary.merges


# Wrong lists


def plain_call(dice: random.Random) -> TrainerCall:
    return random_call(dice.randrange(1 << 32), dice.choice(list(TieBreak)))


def extending(dice: random.Random) -> TrainerCall:
    return random_extension(dice.randrange(1 << 32), dice.choice(list(TieBreak)))


def word_counts(call: TrainerCall) -> WordCounts:
    return WordCounts.from_items(call.words.items())


def claimed(call: TrainerCall, merges: Sequence[Merge]) -> bytes:
    return certificate(word_counts(call), merges, call.tie_break, call.min_count, call.num_merges)


def differing(call: TrainerCall, merges: Sequence[Merge]) -> WrongList | None:
    """The list as a wrong one; None if it is right, or has a token that no merge before it makes."""
    right = call.defined()
    if merges == right:
        return None
    is_plain = not call.inherited and call.veto == "none"
    try:
        content = claimed(call, merges)
    except KeyError:
        return None
    merge = first_difference(merges, right) + 1
    return WrongList("", call, merges, merge, content if is_plain else None)


def another_tie(dice: random.Random) -> WrongList | None:
    call = plain_call(dice)
    return differing(call, replace(call, tie_break=plain_call(dice).tie_break).defined())


def trained_wrongly(**steps: Any) -> Way:
    def way(dice: random.Random) -> WrongList | None:
        call = plain_call(dice)
        return differing(call, learn_wrongly(call, **steps))

    return way


def overflowing(bits: int) -> Way:
    """Of weights so large that their sum, but not every count, fits in one bit less."""

    def way(dice: random.Random) -> WrongList | None:
        call = plain_call(dice)
        positions = sum(count * len(word) for word, count in call.words.items())
        if positions >= 1 << 16:
            return None

        unit = (2**bits - 1) // positions
        words = {word: count * unit for word, count in call.words.items()}
        if bits == 53:
            words = {word: 2**53 + dice.randrange(4) for word in words}
        call = replace(call, words=words)
        return differing(call, learn_wrongly(call, kept_in(bits)))

    return way


def too_few(dice: random.Random) -> WrongList | None:
    call = plain_call(dice)
    right = call.defined()
    return differing(call, right[: dice.randint(0, len(right))])


def too_many(dice: random.Random) -> WrongList | None:
    call = plain_call(dice)
    right = call.defined()
    return differing(replace(call, num_merges=max(len(right) - dice.randint(1, 3), 0)), right)


def after_inherited(dice: random.Random) -> WrongList | None:
    """Two neighbours change places, so one comes too early."""
    call = extending(dice)
    right = call.defined()
    inherited = sum(inherited_first(right, call.inherited, call.inheriting)[1])
    if not 0 < inherited < len(right) - 1:
        return None
    index = dice.randrange(inherited, len(right) - 1)
    return differing(call, [*right[:index], right[index + 1], right[index], *right[index + 2 :]])


def without_veto(dice: random.Random) -> WrongList | None:
    call = extending(dice)
    return differing(call, replace(call, veto="none").defined())


# Forged certificates of right lists. Each forgery changes the lines of a certificate, which name the
# call and the merges, and returns the merge that is then wrong, UNREADABLE, or None if the certificate may still be
# right.

Lines = list[list[str]]
Forge = Callable[[Lines, TrainerCall, random.Random], "int | None"]
FIRST = 5  # lines before the merges


def header(name: str, value: str, column: int = 1) -> Forge:
    def forge(lines: Lines, *_: Any) -> int:
        line = next(line for line in lines if line[0] == name)
        line[column] = value
        return UNREADABLE

    return forge


def in_a_merge(column: int) -> Forge:
    def forge(lines: Lines, _: TrainerCall, dice: random.Random) -> int:
        line = dice.randrange(FIRST, len(lines))
        lines[line][column] = str(int(lines[line][column]) + 1)
        return line - FIRST + 1

    return forge


def another_tie_break(lines: Lines, call: TrainerCall, dice: random.Random) -> int | None:
    other = plain_call(dice).tie_break
    right, others = call.defined(), replace(call, tie_break=other).defined()
    header("tie_break", other.value)(lines, call, dice)
    return None if right == others else first_difference(right, others) + 1


def higher_min_count(lines: Lines, call: TrainerCall, dice: random.Random) -> int:
    merges = call.defined()
    judged = judge_merges(word_counts(call), merges, len(merges), tie_break=call.tie_break)
    header("min_count", str(judged.counts[-1] + 1))(lines, call, dice)
    return judged.counts.index(judged.counts[-1]) + 1


def fewer_wanted(lines: Lines, call: TrainerCall, dice: random.Random) -> int:
    number = len(lines) - FIRST
    header("wanted", str(number - 1))(lines, call, dice)
    return number


FORGERIES: Mapping[str, Forge] = {
    "format": header("bpe-certificate", "2"),
    "table size": header("table", "1"),
    "table digest": header("table", "0" * 64, column=2),
    "tie_break": another_tie_break,
    "unknown tie_break": header("tie_break", "smallest"),
    "min_count": higher_min_count,
    "wanted": fewer_wanted,
    "left token": in_a_merge(0),
    "right token": in_a_merge(1),
    "digest": lambda *_: UNREADABLE,
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
        digest = digest_line(b"" if name == "digest" else content)
        return WrongList("", call, merges, merge, content + digest)

    return way


WAYS: Mapping[str, Way] = {
    "tie broken otherwise": another_tie,
    "runs counted without overlap": trained_wrongly(count=count_without_overlap),
    "runs merged from the right": trained_wrongly(merge=merge_backwards),
    "stale count": trained_wrongly(view=stale),
    "pair that no longer exists": trained_wrongly(view=gone),
    **{f"count in {bits} bits": overflowing(bits) for bits in (31, 32, 53, 63)},
    "merges missing": too_few,
    "merges too many": too_many,
    "wrong after inherited merges": after_inherited,
    "veto forgotten": without_veto,
    **{f"forged {name}": forged(name) for name in FORGERIES},
}
"""What makes a wrong list, or None if it came out right."""
