"""Wrong lists of merges, each wrong in one way at one merge, to test checkers and trainers with.

A seed decides everything: the table, the rule, the way, and a certificate that claims the list to
be right. python -m harness.proof.wrong_lists FOLDER writes them as files;
docs/reference/certificate.md says how to use them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import files
from harness.common.arguments import Parser
from harness.common.ending import UNCHANGED, exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.printing import print_stdout
from harness.proof.calls import TrainerCall
from harness.proof.certificate import certificate, digest_line, table_lines
from harness.proof.diagnosis import first_difference
from harness.proof.trainer_checks import random_call, random_extension
from harness.proof.true_counts import INHERITED, RIGHT, Replay, replay
from variants.contract import NULL_METER, Merge, Meter, Pair, TieBreak, WordCounts
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

UNREADABLE = 0
"""In place of the number of a merge: the certificate cannot be read, or is not of the table."""
Words = Sequence[Sequence[int]]
View = Callable[[PairCounts, PairCounts], PairCounts]


class WrongList(NamedTuple):
    """A call, the merges that are wrong for it from number `merge` on, and their certificate."""

    way: str
    call: TrainerCall
    merges: Sequence[Merge]
    merge: int
    certificate: bytes


Way = Callable[[random.Random], WrongList | None]


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


def judged(call: TrainerCall, merges: Sequence[Merge]) -> Replay:
    keywords = call.keywords()
    keywords.pop("tie_break", None)
    return replay(word_counts(call), merges, **keywords)


def claimed(call: TrainerCall, merges: Sequence[Merge]) -> bytes:
    """A certificate that says of each wrong merge what is true of the best pair of its moment."""
    replayed, steps = judged(call, merges), []
    for step in replayed.steps:
        count = step.count if step.judgement in RIGHT else step.best.count
        steps.append(replace(step, count=count))
    claims = replace(replayed, steps=steps)
    return certificate(word_counts(call), claims, call.tie_break, call.veto, call.num_merges)


def differing(call: TrainerCall, merges: Sequence[Merge]) -> WrongList | None:
    """The list as a wrong one; None if it is right, or has a token that no merge before it makes."""
    right = call.defined()
    if merges == right:
        return None
    try:
        content = claimed(call, merges)
    except KeyError:
        return None
    return WrongList("", call, merges, first_difference(merges, right) + 1, content)


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
    inherited = sum(step.judgement == INHERITED for step in judged(call, right).steps)
    if not 0 < inherited < len(right) - 1:
        return None
    index = dice.randrange(inherited, len(right) - 1)
    return differing(call, [*right[:index], right[index + 1], right[index], *right[index + 2 :]])


def without_veto(dice: random.Random) -> WrongList | None:
    call = extending(dice)
    return differing(call, replace(call, veto="none").defined())


# Forged certificates of right lists. Each forgery changes one field, and returns the merge that is
# then wrong, UNREADABLE, or None if the certificate may still be right.


class Genuine(NamedTuple):
    """A right list as it was replayed, and its certificate without the digest, in columns."""

    replayed: Replay
    lines: list[list[str]]

    def set(self, name: str, value: str, merge: int = UNREADABLE, column: int = 1) -> int:
        line = next(line for line in self.lines if line[0] == name)
        line[column] = value
        return merge

    def add(self, merge: int, column: int) -> int:
        """Add 1 to a number of a merge, or of what is left after the last one."""
        first = len(self.lines) - 1 - len(self.replayed.steps)
        line = self.lines[first + merge - 1]
        line[column] = str(int(line[column]) + 1)
        return merge


Forge = Callable[[Genuine, random.Random], int | None]


def header(name: str, value: str, merge: int = UNREADABLE, column: int = 1) -> Forge:
    return lambda genuine, _: genuine.set(name, value, merge, column)


def in_a_merge(column: int) -> Forge:
    return lambda genuine, dice: genuine.add(dice.randint(1, len(genuine.replayed.steps)), column)


def after_all(column: int) -> Forge:
    return lambda genuine, _: genuine.add(len(genuine.replayed.steps) + 1, column)


def another_tie_break(genuine: Genuine, dice: random.Random) -> int | None:
    other = plain_call(dice).tie_break
    step = genuine.replayed.first_against(other)
    return None if step is None else genuine.set("tie_break", other.value, step.number)


def higher_min_count(genuine: Genuine, _: random.Random) -> int:
    counts = [step.count for step in genuine.replayed.steps]
    return genuine.set("min_count", str(counts[-1] + 1), counts.index(counts[-1]) + 1)


def fewer_wanted(genuine: Genuine, _: random.Random) -> int:
    number = len(genuine.replayed.steps)
    return genuine.set("wanted", str(number - 1), number)


FORGERIES: Mapping[str, Forge] = {
    "format": header("bpe-certificate", "2"),
    "table size": header("table", "1"),
    "table digest": header("table", "0" * 64, column=2),
    "tie_break": another_tie_break,
    "unknown tie_break": header("tie_break", "smallest"),
    "min_count": higher_min_count,
    "veto": header("veto", "bytes:1", 1),
    "unknown veto": header("veto", "words"),
    "inherited": header("inherited", "1", 1),
    "wanted": fewer_wanted,
    "number of merges": header("merges", "0"),
    "left token": in_a_merge(0),
    "right token": in_a_merge(1),
    "count": in_a_merge(2),
    "sharing": in_a_merge(3),
    "count left": after_all(1),
    "sharing left": after_all(2),
    "digest": lambda _, __: UNREADABLE,
}


def forged(name: str) -> Way:
    def way(dice: random.Random) -> WrongList | None:
        call = plain_call(dice)
        merges = call.defined()
        if not merges:
            return None

        lines = claimed(call, merges).decode().splitlines()[:-1]
        genuine = Genuine(judged(call, merges), [line.split() for line in lines])
        merge = FORGERIES[name](genuine, dice)
        if merge is None:
            return None
        content = "".join(" ".join(line) + "\n" for line in genuine.lines).encode()
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


# The command


def main(argv: Sequence[str] | None = None) -> int:
    """Write wrong lists as files; returns the exit code."""
    parser = Parser(
        prog="python -m harness.proof.wrong_lists",
        description="Write tables of words with lists of merges that are wrong in one way.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder")
    number = "how many (default: %(default)s)"
    parser.add_argument("--number", metavar="N", type=int, default=1000, help=number)
    options = parser.parse_args(argv)
    return exit_code_of(lambda: write_lists(options.folder, options.number), UNCHANGED)


def write_lists(folder: Path, number: int) -> int:
    """Write for each seed a table, a certificate, and the right merges; then what is wrong."""
    if folder.exists():
        raise Refusal(f"{folder} exists; choose a new folder")

    with files.whole_file(folder, "choose another folder", lasting=False) as part:
        part.mkdir()
        rows = []
        for seed in range(number):
            wrong = wrong_list(seed)
            right = (f"{left.hex()} {right.hex()}\n" for left, right in wrong.call.defined())
            (part / f"{seed}.table").write_bytes(b"".join(table_lines(word_counts(wrong.call))))
            (part / f"{seed}.certificate").write_bytes(wrong.certificate)
            (part / f"{seed}.right").write_text("".join(right))
            rows.append(f"{seed}\t{wrong.merge or 'unreadable'}\t{wrong.way}\n")
        (part / "expected.tsv").write_text("".join(rows))

    print_stdout(f"{folder}: {number} tables, certificates and right lists; see expected.tsv")
    return OK


if __name__ == "__main__":
    sys.exit(main())
