"""The proof: a replay judges each list of merges against the true counts of its words, and explains a
wrong merge in the words of the definition.

The compiled replay (compiled_replay.py) says how many merges are right under one tie-break, and what
was true when the first wrong one was made: a tie broken otherwise, a pair that is less frequent than
another, one that may not be merged, or a merge too many or too few. No trainer takes part, and it
shares no code with any.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from harness.common.errors import Refusal
from harness.common.files import write_output
from harness.common.units import count_text, counted_text, occasions_text, token_text
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, Identity, Kind
from harness.proof.compiled_replay import Moment, Replay, token_ids
from variants.contract import GREATEST_BYTES, Merge, TieBreak, WordCounts

MOST_BYTES_IN_A_RECORD = 4096


def prove(
    replay: Replay,
    tie_break: TieBreak | None = GREATEST_BYTES,
    *,
    whole: bool = True,
    by_design: str | None = None,
) -> Identity:
    """Return the identity of a list under a tie-break; None if a trainer's own is none of ours.

    A list is not `whole` if its trainer was stopped. `by_design` is a trainer's reason to make other
    merges, if any.
    """
    made = len(replay.merges)
    if not whole and not made:
        return Identity(UNPROVED, reason="it was stopped before its first merge")
    needed = max(replay.num_merges, 0) if whole else made
    if made > needed:
        reason = f"it made {counted_text(made, 'merge')}, and {count_text(needed)} were requested"
        return Identity(WRONG, reason=reason, merge=needed + 1)

    replay = replace(replay, num_merges=needed)
    reached: dict[TieBreak, int] = {}
    for rule in TieBreak if tie_break is None else (tie_break,):
        judged = replay.judged(rule)
        if replay.is_right(judged):
            return Identity(IDENTICAL, rule.value)
        reached[rule] = judged.right

    if tie_break is None:
        judged = replay.up_to_ties
        if replay.is_right(judged):
            rule = max(reached, key=lambda rule: reached[rule])
            reason = f"{count_text(replay.ties)} of its merges are choices among equals"
            return identity_at(explained(replay, reached[rule] + 1), UP_TO_TIES, reason, rule)

    identity = wrong_at(replay, judged.right + 1, list(reached))
    if by_design is None:
        return identity
    return structs.replace(identity, kind=BY_DESIGN, reason=f"{by_design}; {identity.reason}")


def wrong_at(replay: Replay, number: int, tie_breaks: Sequence[TieBreak]) -> Identity:
    """The identity of a list whose merge of this number is wrong, or missing."""
    if number <= len(replay.merges):
        step = explained(replay, number, tie_breaks)
        return identity_at(step, WRONG, describe(step), tie_breaks[0])

    moment = replay.end
    left = f", with pairs left that occur {occasions_text(moment.highest)}" if moment else ""
    reason = f"it ended after {counted_text(len(replay.merges), 'merge')}{left}"
    return Identity(WRONG, reason=reason, merge=number)


def identity_at(step: Step, kind: Kind, reason: str, tie_break: TieBreak) -> Identity:
    want = step.choices.get(tie_break)
    return Identity(
        kind,
        reason=reason,
        merge=step.number,
        got=in_hex(step.merge),
        want=want and in_hex(want),
        got_count=step.occurrences,
        want_count=step.highest,
    )


def in_hex(merge: Merge) -> list[str]:
    """A merge as records hold it: of each token the first bytes, as a wrong one may be as long as
    memory.
    """
    return [token[:MOST_BYTES_IN_A_RECORD].hex() for token in merge]


# In words


class Step(NamedTuple):
    """One merge, numbered from 1, with what was true of it at its moment.

    `reason` says why it may not be made; empty if it may. `occurrences` is the count of its pair.
    `highest` is the highest count of a pair that may be merged (0: no pair is left), `sharing` how
    many pairs have it, and `choices` which of them each tie-break takes.
    """

    number: int
    merge: Merge
    reason: str = ""
    occurrences: int = 0
    highest: int = 0
    sharing: int = 0
    choices: Mapping[TieBreak, Merge] = {}


def explained(
    replay: Replay, number: int, tie_breaks: Sequence[TieBreak] = tuple(TieBreak)
) -> Step:
    """What is true of a merge of a list, after those before it."""
    merge = replay.merges[number - 1]
    moment = replay.moment(number - 1, merge)
    reason = refusal(replay, number, moment)
    if moment is None:
        return Step(number, merge, reason)

    count, sharing = moment.pair_count, len(moment.best)
    if not reason and 0 < moment.highest == count < replay.min_count:
        reason = f"{occasions_text(count)}, below min_count"
    choices = {tie_break: moment.choice(tie_break) for tie_break in tie_breaks if moment.best}
    return Step(number, merge, reason, count, moment.highest, sharing, choices)


def refusal(replay: Replay, number: int, moment: Moment | None) -> str:
    """Why a merge may not be made at its moment, however frequent it is; empty if it may."""
    merge = replay.merges[number - 1]
    if number <= replay.staying:
        return "in place of an inherited one"
    if moment is None:
        return "after a merge that cannot be made"
    if not {*moment.spellings} >= {*merge}:
        return "of a token that no earlier merge makes"
    if merge in replay.merges[: number - 1]:
        return "made before"
    is_spelled_again = b"".join(merge) in moment.spellings[256:][: replay.staying]
    if is_spelled_again or (replay.veto is not None and replay.veto(*merge)):
        return "vetoed, or spelling an inherited token again"
    return ""


def describe(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> describe(Step(7, (b"a", b"b"), "", 3, 3, 2, tied))
    "merge 7: b'a' + b'b', 3 times, a tie with 1 other; raw_bytes takes b'a' + b'b'; greatest_bytes takes b'c' + b'd'"
    >>> describe(Step(2, (b"a", b"b"), "", 1, 1, 1))
    "merge 2: b'a' + b'b', once, the most frequent pair of its moment"
    >>> describe(Step(2, (b"a", b"b"), "", 1, 3, 1, {TieBreak.RAW_BYTES: (b"c", b"d")}))
    "merge 2: b'a' + b'b', once; the most frequent is b'c' + b'd', 3 times"
    """
    text = f"merge {step.number}: {merge_text(step.merge)}"
    if step.reason:
        return f"{text}, {step.reason}"
    text += f", {occasions_text(step.occurrences)}"
    is_best = 0 < step.occurrences == step.highest
    if is_best and step.sharing == 1:
        return f"{text}, the most frequent pair of its moment"
    if not step.highest:
        return f"{text}; no pair was left"

    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    if step.sharing == 1:
        return f"{text}; the most frequent is {merge_text(*takers)}, {occasions_text(step.highest)}"

    if is_best:
        text += (
            f", a tie with {count_text(step.sharing - 1)} other{'s' if step.sharing > 2 else ''}"
        )
    else:
        text += f"; {count_text(step.sharing)} pairs occur {occasions_text(step.highest)}"
    for pair, names in takers.items():
        text += f"; {', '.join(names)} take{'s' * (len(names) == 1)} {merge_text(pair)}"
    return text


def merge_text(merge: Merge) -> str:
    """The two tokens, up to 40 characters of each."""
    return " + ".join(f"b{token_text(token, 40)}" for token in merge)


def words_fault(got: WordCounts, want: WordCounts) -> str | None:
    """Return one sentence about the most frequent word with another count; None if all are equal.

    >>> words_fault(WordCounts.from_items([(b" low", 47)]), WordCounts.from_items([(b" low", 45)]))
    "its words differ in 1 word: ' low' has count 47, not 45"
    >>> words_fault(WordCounts.from_items([(b"a", 1)]), WordCounts.from_items([(b"b", 2)]))
    "its words differ in 2 words: 'b' has count 0, not 2"
    >>> words_fault(WordCounts.from_items([(b"a", 3)]), WordCounts.from_items([(b"b", 2)]))
    "its words differ in 2 words: 'a' has count 3, not 0"
    """
    mine, right = dict(got.items()), dict(want.items())
    differing = {word for word, _ in mine.items() ^ right.items()}
    if not differing:
        return None

    word = max(differing, key=lambda word: (max(mine.get(word, 0), right.get(word, 0)), word))
    counts = f"has count {mine.get(word, 0)}, not {right.get(word, 0)}"
    number = counted_text(len(differing), "word")
    return f"its words differ in {number}: {token_text(word, 60)} {counts}"


# Certificates: a list of merges with all that others need to check it without us.
# docs/reference/certificate.md describes the two files, the table of words and the certificate, and
# outside/ holds a checker that shares no code with what writes them.


def table_lines(words: WordCounts) -> Iterator[bytes]:
    """The plain form of a table: for each word its count and its bytes in hexadecimal digits, in
    the order of the bytes.

    >>> b"".join(table_lines(WordCounts.from_items([(b"low", 5), (b"er", 2)])))
    b'2 6572\\n5 6c6f77\\n'
    """
    return (b"%d %b\n" % (count, word.hex().encode()) for word, count in sorted(words.items()))


def certificate(
    words: WordCounts, merges: Sequence[Merge], tie_break: TieBreak, min_count: int, wanted: int
) -> bytes:
    """The certificate of `merges`, which the caller has proved; `wanted` is how many were requested."""
    table = b"".join(table_lines(words))
    lines = [
        "bpe-certificate 1",
        f"table {len(table)} {hashlib.sha256(table).hexdigest()}",
        f"tie_break {tie_break.value}",
        f"min_count {min_count}",
        f"wanted {wanted}",
    ]

    for left, right in zip(*token_ids(merges), strict=True):
        lines.append(f"{left} {right}")
    content = "".join(f"{line}\n" for line in lines).encode()
    return content + digest_line(content)


def digest_line(content: bytes) -> bytes:
    return b"sha256 %b\n" % hashlib.sha256(content).hexdigest().encode()


def check_plain(is_plain: bool) -> None:
    """Raise Refusal, before anything is trained, if the training is not plain."""
    if not is_plain:
        raise Refusal(
            "a certificate is of plain training: leave out certificate, or extend, veto, seeds and protected"
        )


def write_certificate(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a certificate, compressed if its name ends in .gz. Raises Refusal if that fails."""
    packed = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    write_output(path, packed, overwrite=overwrite, instead="choose another file")
