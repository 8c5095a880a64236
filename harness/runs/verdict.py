"""The verdict: every list of merges is held against a reference on which trainers of different families agree.

A kept reference settles it at once. Without one, two families of this run that agree make it; without those, a trainer
of another family is run after the timed cells, untimed. Where two families disagree, a third decides; where none can,
neither is right and everybody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.common.registry import VariantCard
from harness.runs.store import Reference
from harness.worker.merges_bytes import MOST_BYTES_IN_A_RECORD, in_hex
from variants.contract import Merge


@dataclass(frozen=True)
class Claim:
    """The merges a variant came to, and how many it was asked for; `whole` unless it was stopped.

    An `outside` trainer is judged and does not judge: several of them agree on nothing that none of ours confirms.
    """

    variant: str
    family: str
    merges: Sequence[Merge]
    num_merges: int
    whole: bool
    outside: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is known of one claim: state reference, confirmed, unconfirmed or mismatch, and who agrees."""

    state: str
    by: tuple[str, ...] = ()
    first_divergence: dict[str, Any] | None = None


Rerun = Callable[[VariantCard, int], Claim | None]


def find_reference(
    claims: Sequence[Claim], judges: Iterable[VariantCard], rerun: Rerun
) -> tuple[Reference | None, bool]:
    """A reference for as many merges as the longest of `claims` made, and whether families were seen to disagree.

    `judges` are variants fit to be run for it, fastest first, and looked at only where claims do not suffice; `rerun`
    runs one and returns its claim, None if it fails.
    """
    longest = max((reach(claim) for claim in claims), default=0)
    if not longest and not any(claim.whole for claim in claims):
        return None, False
    compared = [replace(claim, num_merges=longest, whole=True) for claim in claims if reach(claim) == longest]
    agreed = agreement(compared)
    for judge in judges if agreed is None else ():
        if judge.family not in {claim.family for claim in compared}:
            claim = rerun(judge, longest)
            if claim is not None:
                compared.append(claim)
                agreed = agreement(compared)
        if agreed is not None:
            break
    disagreed = len({tuple(claim.merges) for claim in compared}) > 1
    return agreed, disagreed


def reach(claim: Claim) -> int:
    """How many merges a claim says something about: a stopped one only about those it made."""
    return claim.num_merges if claim.whole else len(claim.merges)


def agreement(claims: Sequence[Claim]) -> Reference | None:
    """The merges that most families agree on, if those are two or more and no other merges have as many.

    At least one must be ours, and families of ours count before those from outside.
    """
    by_merges: dict[tuple[Merge, ...], list[Claim]] = {}
    for claim in claims:
        by_merges.setdefault(tuple(claim.merges), []).append(claim)
    ranked = sorted(by_merges.values(), key=voices, reverse=True)
    heard = [voices(group) for group in ranked]
    if not heard or heard[0][0] < 1 or heard[0][1] < 2 or (len(heard) > 1 and heard[0] == heard[1]):
        return None
    group = ranked[0]
    first = group[0]
    names = tuple(dict.fromkeys(claim.variant for claim in group))
    return Reference(list(first.merges), len(first.merges) < first.num_merges, names)


def voices(claims: Sequence[Claim]) -> tuple[int, int]:
    """How many families of ours, and how many in all, there are among claims."""
    return len({claim.family for claim in claims if not claim.outside}), len({claim.family for claim in claims})


def verdict(claim: Claim, reference: Reference | None) -> Verdict:
    """Hold one claim against the reference; a stopped one must be a prefix of it."""
    if reference is None or not reference.covers(reach(claim)) or not (claim.whole or claim.merges):
        return Verdict("unconfirmed")
    expected = reference.merges[: claim.num_merges if claim.whole else len(claim.merges)]
    divergence = first_divergence(claim.merges, expected)
    if divergence is not None:
        return Verdict("mismatch", reference.by, divergence)
    return Verdict("reference" if claim.variant in reference.by else "confirmed", reference.by)


def first_divergence(got: Sequence[Merge], want: Sequence[Merge]) -> dict[str, Any] | None:
    """The first merge that differs, from 1, with both sides in hexadecimal; None where a list had ended.

    >>> first_divergence([(b"a", b"b")], [(b"a", b"b"), (b"c", b"d")])
    {'merge': 2, 'got': None, 'want': ['63', '64']}
    """
    for index in range(max(len(got), len(want))):
        mine = tuple(got[index]) if index < len(got) else None
        theirs = tuple(want[index]) if index < len(want) else None
        if mine != theirs:
            sides = {"got": mine, "want": theirs}
            most = MOST_BYTES_IN_A_RECORD
            return {"merge": index + 1, **{side: merge and in_hex(merge, most) for side, merge in sides.items()}}
    return None
