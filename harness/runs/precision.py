"""measure.precision: blocks are added until every ratio is known that well, and stopping so does not bias them.

The first cell of those that answer one question is their reference: the same corpus, vocabulary, tie-break and threads.
After 3, 4, 6, 9, 13 and 20 blocks (what `looks` gives for the least and the most) each other cell's interval is looked
at, and a cell whose interval is narrow enough is not run again; the reference runs as long as any of its others.

Who looks six times and stops at what pleases must not use the interval of a single look. So each look has its share of
the doubt: with six, each interval is one of 1 - 0.05 / 6, and all of them together hold in 95 % of cases (Bonferroni).
A look decides by how far the ratios lie apart and never by where they lie: where noise goes either way alike, the ratio
itself is as right as that of a fixed number of blocks. tests/test_precision.py shows both by simulation.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from harness.common.comparison import CONFIDENCE, Sample, clock_of, pairs_of
from harness.common.errors import Refusal

FEWEST = 3
"""Of two ratios the distance says almost nothing of the noise."""
MOST = 20
KNOWN, GAVE_UP, NO_TIMES = "known", "most blocks", "no times"

Item = TypeVar("Item", bound=Hashable)


class Known(NamedTuple):
    """What is known of a ratio of times, after how many blocks: its interval, and why no more blocks were added.

    `low` and `high` hold at all looks together with 95 % confidence; None before the first look. `blocks` counts those
    in which both were measured and neither was disturbed. `stopped` is None while blocks are still to be added.
    """

    blocks: int
    low: float | None = None
    high: float | None = None
    stopped: str | None = None


@dataclass(frozen=True)
class Rule:
    """How well a ratio is to be known, as a share of it, and between which numbers of blocks."""

    within: float
    fewest: int = FEWEST
    most: int = MOST

    @functools.cached_property
    def looks(self) -> tuple[int, ...]:
        """After how many blocks it is looked: each time half as many more.

        >>> Rule(0.05).looks, Rule(0.05, 3, 3).looks
        ((3, 4, 6, 9, 13, 20), (3,))
        """
        found = [self.fewest]
        while (last := found[-1]) < self.most:
            step = max(1, last // 2)
            found.append(self.most if last + step + step // 2 >= self.most else last + step)
        return tuple(found)

    def known(self, log_ratios: Sequence[float]) -> Known:
        """What the logarithms of ratios, in the order of their blocks, say at the looks that they reach."""
        told = Known(len(log_ratios))
        for look in self.looks:
            if look > len(log_ratios):
                break
            middle = statistics.fmean(log_ratios[:look])
            half = self.half_width(statistics.stdev(log_ratios[:look]), look)
            enough = math.expm1(half) <= self.within
            ended = KNOWN if enough else GAVE_UP if look == self.most else None
            told = Known(look, math.exp(middle - half), math.exp(middle + half), ended)
            if ended:
                break
        return told

    def half_width(self, deviation: float, blocks: int) -> float:
        """Half of Student's interval for a mean of so many, at one look's share of the doubt."""
        return quantile(blocks - 1, len(self.looks)) * deviation / math.sqrt(blocks)

    def foreseen(self, log_ratios: Sequence[float]) -> int:
        """How many blocks it will probably take, if the noise goes on as it was."""
        if len(log_ratios) < 2:
            return self.fewest
        deviation = statistics.stdev(log_ratios)
        ahead = (look for look in self.looks if look >= len(log_ratios))
        return next((look for look in ahead if math.expm1(self.half_width(deviation, look)) <= self.within), self.most)


@functools.cache
def quantile(degrees: int, looks: int) -> float:
    """How many standard errors an interval reaches from the mean, where `looks` of them share the doubt.

    >>> round(quantile(2, 1), 3), round(quantile(2, 6), 2)
    (4.303, 10.89)
    """
    from scipy.special import stdtrit  # here: only who asks for a precision waits for it

    return float(stdtrit(degrees, 1 - (1 - CONFIDENCE) / 2 / looks))


class Precision:
    """The rule over all that one command measures: what still has to run, and what is known of it."""

    def __init__(self, rule: Rule, items: Iterable[Item], question: Callable[[Item], Hashable]) -> None:
        """`question` says which items are compared with each other; the first of them is the reference."""
        self.rule = rule
        self.groups: dict[Hashable, list[Hashable]] = {}
        for item in items:
            self.groups.setdefault(question(item), []).append(item)

    def wanted(self, block: int, samples: Mapping[Hashable, Sequence[Sample]]) -> set[Hashable]:
        """What has to run in a block, by the samples of the blocks before it."""
        if block < self.rule.fewest:
            return {item for group in self.groups.values() for item in group}
        before = {item: [each for each in listed if each.block < block] for item, listed in samples.items()}
        wanted: set[Hashable] = set()
        for group in self.groups.values():
            open_ones = {item for item in group if self.outcome(item, group, before).stopped is None}
            wanted |= open_ones | ({group[0]} if open_ones else set())
        return wanted

    def outcome(self, item: Hashable, group: Sequence[Hashable], samples: Mapping[Hashable, Sequence[Sample]]) -> Known:
        """What is known of one item's ratio to the first of its group."""
        if item == group[0] and len(group) > 1:
            return Known(len(samples.get(item, ())), 1.0, 1.0, KNOWN)  # it runs as long as another needs it
        ratios = log_ratios(item, group, samples)
        return self.rule.known(ratios) if ratios else Known(0, None, None, NO_TIMES)

    def foreseen(self, samples: Mapping[Hashable, Sequence[Sample]]) -> dict[Hashable, int]:
        """In how many blocks each will probably have been measured in the end."""
        foreseen: dict[Hashable, int] = {}
        for group in self.groups.values():
            for item in group[1:] or group:
                foreseen[item] = self.rule.foreseen(log_ratios(item, group, samples))
            foreseen[group[0]] = max(foreseen[item] for item in group[1:] or group)
        return foreseen

    def all_known(self, samples: Mapping[Hashable, Sequence[Sample]]) -> dict[Hashable, tuple[Known, Hashable]]:
        """What is known of each in the end, and what it was compared with."""
        return {
            item: (self.outcome(item, group, samples), group[0]) for group in self.groups.values() for item in group
        }


def log_ratios(
    item: Hashable, group: Sequence[Hashable], samples: Mapping[Hashable, Sequence[Sample]]
) -> tuple[float, ...]:
    """By block; of something that nothing is compared with, its own times by their mean."""
    own = samples.get(item, ())
    if len(group) == 1:
        seconds = list(map(math.log, map(clock_of(own), own)))
        return tuple(each - statistics.fmean(seconds) for each in seconds)
    _, usable, clock = pairs_of(own, samples.get(group[0], ()))
    return tuple(math.log(clock(ours) / clock(theirs)) for ours, theirs in usable)


def rule_of(precision: float | None, fewest: int, most: int, *, timed: bool) -> Rule | None:
    """The rule that is asked for, None if none is. Raises Refusal for an impossible one."""
    if precision is None:
        return None
    if not 0 < precision < 1:
        raise Refusal(f"measure.precision={precision:g} is no share; 0.05 is within 5 %")
    if not timed:
        raise Refusal("measure.precision is of times, and none are measured so; leave it out, or set measure=quick")
    least = max(FEWEST, fewest)
    if most < least:
        raise Refusal(f"measure.most={most} is fewer than the {least} blocks that there are at least; set more")
    return Rule(precision, least, most)
