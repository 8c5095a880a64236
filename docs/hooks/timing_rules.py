"""What common rules of comparing times say of a program compared with itself: how often they find a difference.

The samples are those of an A/A study. A rule that takes its two sides one after the other gets N samples of one side
and then N of the other, as a baseline of yesterday and a run of today would be; a rule that interleaves gets N pairs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.common.comparison import Sample
from harness.common.units import share_text
from harness.runs.aa import Twins, found_different, rate_interval

Times = Sequence[float]
CLOCKS: dict[str, Callable[[Sample], float]] = {
    "CPU": lambda sample: sample.cpu_seconds or math.nan,
    "wall": lambda sample: sample.wall_seconds,
}


@dataclass(frozen=True)
class Rule:
    """How it decides, and whether its two sides are measured in turns."""

    name: str
    interleaved: bool
    finds: Callable[[Times, Times], bool]


def apart(statistic: Callable[[Times], float], share: float) -> Callable[[Times, Times], bool]:
    """Whether the second side's statistic is greater than the first's by more than a share."""
    return lambda first, second: statistic(second) > (1 + share) * statistic(first)


def ranked_apart(first: Times, second: Times) -> bool:
    """Mann and Whitney's test at 5 %, both ways."""
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(first, second).pvalue < 0.05)


def paired_apart(first: Times, second: Times) -> bool:
    """The rule of this harness."""
    return found_different([math.log(later / earlier) for earlier, later in zip(first, second, strict=True)])


RULES = (
    Rule("one after the other, mean over 5 % apart", False, apart(statistics.fmean, 0.05)),
    Rule("one after the other, least over 5 % apart", False, apart(min, 0.05)),
    Rule("one after the other, Mann-Whitney test at 5 %", False, ranked_apart),
    Rule("in turns, mean over 5 % apart", True, apart(statistics.fmean, 0.05)),
    Rule("in turns, Mann-Whitney test at 5 %", True, ranked_apart),
    Rule("in turns, interval of the ratio within blocks (this harness)", True, paired_apart),
)


def sides(
    pairs: Sequence[Twins], clock: Callable[[Sample], float], number: int, interleaved: bool
) -> Iterator[tuple[Times, Times]]:
    """The samples as comparisons of `number` samples a side, none used in two of them.

    >>> a = [(Sample("r", n, 1.0 + n), Sample("r", n, 2.0 + n)) for n in range(4)]
    >>> list(sides(a, lambda sample: sample.wall_seconds, 2, interleaved=True))
    [([1.0, 2.0], [2.0, 3.0]), ([3.0, 4.0], [4.0, 5.0])]
    >>> list(sides(a, lambda sample: sample.wall_seconds, 2, interleaved=False))
    [([1.0, 2.0], [3.0, 4.0]), ([2.0, 3.0], [4.0, 5.0])]
    """
    first, second = ([clock(pair[side]) for pair in pairs] for side in (0, 1))
    if interleaved:
        for start in range(0, len(pairs) - number + 1, number):
            yield first[start : start + number], second[start : start + number]
        return
    for times in (first, second):
        for start in range(0, len(times) - 2 * number + 1, 2 * number):
            yield times[start : start + number], times[start + number : start + 2 * number]


def table(studies: Sequence[tuple[str, Sequence[Twins]]], clock_name: str, number: int, planted: float) -> str:
    """A row for each rule: how often it finds a difference where there is none, and how often one that was planted."""
    time = CLOCKS[clock_name]
    headings = [f"{name}: {what}" for name, _ in studies for what in ("false alarms", f"+{share_text(planted)} found")]
    lines = [f"| rule | {' | '.join(headings)} |", "|---|" + "---:|" * len(headings)]
    for rule in RULES:
        cells = []
        for _, pairs in studies:
            compared = list(sides(pairs, time, number, rule.interleaved))
            false = sum(rule.finds(*each) for each in compared)
            low, high = rate_interval(false, len(compared))
            found = sum(rule.finds(first, [(1 + planted) * each for each in second]) for first, second in compared)
            cells.append(f"{share_text(false / len(compared))} ({share_text(low)} to {share_text(high)})")
            cells.append(share_text(found / len(compared)))
        lines.append(f"| {rule.name} | {' | '.join(cells)} |")
    return "\n".join(lines)
