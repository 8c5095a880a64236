"""How often rules for comparing times find a difference between a program and itself, and a planted
slow-down.

    python results/aa_study/study.py
        the tables of README.md, from its records
    python results/aa_study/study.py --measure 300 results/local/aa
        measure 300 pairs, then show their tables
    python results/aa_study/study.py results/local/aa
        the tables of those pairs
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from scipy.stats import binom, binomtest, mannwhitneyu

FOLDER = Path(__file__).parent
PROGRAM = ("variant=heap", "data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
CLOCKS = ("net", "CPU", "wall")
MARGIN = 0.01
MOST_PRESSURE = 0.2
DRAWS = 20
"""How often the order within pairs is drawn: one program is on both sides, so any order could have
been the measured one.
"""
Times = Sequence[float]
Pair = tuple[dict[str, float], dict[str, float]]


def measure(number: int, folder: Path) -> None:
    """Write `number` pairs of samples: consecutive blocks of one run, in fresh processes, in random
    order.
    """
    import harness

    order = random.Random(0)
    records = harness.run(*PROGRAM, f"repeat={2 * number}", f"results={folder}/records")
    samples = [sample(record) for record in records]
    lines = [
        json.dumps(
            {"kind": "aa", "command": " ".join(PROGRAM), "environment": records[0]["environment"]}
        )
    ]
    for block in range(number):
        first, second = order.sample(samples[2 * block : 2 * block + 2], 2)
        lines.append(json.dumps({"block": block, "first": first, "second": second}))
    (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n")


def sample(record: dict[str, Any]) -> dict[str, Any]:
    if record["status"] != "ok":
        sys.exit(f"block {record['block']} could not be measured: {record['reason']}")
    wall, disturbance = record["seconds"]["total"], record["disturbance"] or {}
    pressed = disturbance.get("psi_cpu_seconds")
    lasted = record["witness"]["wall_seconds"]
    return {
        "net_seconds": wall - (record["cpu_wait_seconds"] or 0.0),
        "wall_seconds": wall,
        "cpu_seconds": record["cpu_seconds"],
        "pressure": None if pressed is None else pressed / lasted,
    }


def read_pairs(path: Path) -> list[Pair]:
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return [(line["first"], line["second"]) for line in lines]


def interval(log_ratios: Times) -> tuple[float, float]:
    """The interval of the order statistics that holds the median with 95 % confidence; all numbers
    if too few.
    """
    rank = int(binom.ppf(0.025, len(log_ratios), 0.5)) if log_ratios else 0
    ordered = sorted(log_ratios)
    return (exp(ordered[rank - 1]), exp(ordered[-rank])) if rank else (0.0, float("inf"))


def paired_apart(first: Times, second: Times) -> bool:
    """This harness's rule: the interval of the ratio within blocks leaves out 1, and is not within
    1 % of it.
    """
    low, high = interval([log(later / earlier) for earlier, later in zip(first, second)])
    return not (low <= 1 <= high or (low >= 1 / (1 + MARGIN) and high <= 1 + MARGIN))


def ranked_apart(first: Times, second: Times) -> bool:
    return bool(mannwhitneyu(first, second).pvalue < 0.05)


def over_5_percent(statistic: Callable[[Times], float]) -> Callable[[Times, Times], bool]:
    return lambda first, second: statistic(second) > 1.05 * statistic(first)


class Rule(NamedTuple):
    name: str
    in_turns: bool
    differ: Callable[[Times, Times], bool]


RULES = (
    Rule("one after the other, mean over 5 % apart", False, over_5_percent(fmean)),
    Rule("one after the other, least over 5 % apart", False, over_5_percent(min)),
    Rule("one after the other, Mann-Whitney test at 5 %", False, ranked_apart),
    Rule("in turns, mean over 5 % apart", True, over_5_percent(fmean)),
    Rule("in turns, Mann-Whitney test at 5 %", True, ranked_apart),
    Rule("in turns, interval of the ratio within blocks (this harness)", True, paired_apart),
)


def comparisons(
    pairs: Sequence[Pair], clock: str, number: int, in_turns: bool
) -> Iterator[tuple[Times, Times]]:
    """Yield `number` samples for each side; no sample is in two comparisons of one draw.

    A rule that takes turns gets consecutive pairs, the sides of each in an order that is drawn, for
    every comparison `DRAWS` times. A rule that compares one program after the other gets `number`
    samples of one side and the next of the same side.
    """
    key = f"{clock.lower()}_seconds"
    times = [(first[key], second[key]) for first, second in pairs]
    if in_turns:
        order = random.Random(0)
        for start in range(0, len(times) - number + 1, number):
            block = times[start : start + number]
            for _ in range(DRAWS):
                drawn = [order.sample(pair, 2) for pair in block]
                yield [pair[0] for pair in drawn], [pair[1] for pair in drawn]
        return

    for side in (0, 1):
        one_side = [pair[side] for pair in times]
        for start in range(0, len(times) - 2 * number + 1, 2 * number):
            middle = start + number
            yield one_side[start:middle], one_side[middle : middle + number]


def alarms(rule: Rule, compared: Sequence[tuple[Times, Times]], planted: float = 0.0) -> int:
    return sum(
        rule.differ(first, [(1 + planted) * seconds for seconds in second])
        for first, second in compared
    )


def blocks_table(studies: dict[str, list[Pair]]) -> Iterator[str]:
    """The harness's rule by the number of blocks."""
    yield "| study | clock | blocks | comparisons | false alarms | +2 % found | +5 % found |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for name, pairs in studies.items():
        for clock in CLOCKS:
            for blocks in (6, 10, 20, 30):
                compared = list(comparisons(pairs, clock, blocks, in_turns=True))
                if not compared:
                    continue
                shares = [
                    alarms(RULES[-1], compared, planted) / len(compared)
                    for planted in (0, 0.02, 0.05)
                ]
                cells = [name, clock, blocks, f"{len(compared):,}", *map(percent, shares)]
                yield f"| {' | '.join(map(str, cells))} |"


def rules_table(studies: dict[str, list[Pair]], clock: str, number: int = 10) -> Iterator[str]:
    """Every rule, with ten samples of each side."""
    headings = [
        f"{name}: {column}" for name in studies for column in ("false alarms", "+5 % found")
    ]
    yield f"| rule, by {clock} time | {' | '.join(headings)} |"
    yield "|---|" + "---:|" * len(headings)
    for rule in RULES:
        cells = [rule.name]
        for pairs in studies.values():
            compared = list(comparisons(pairs, clock, number, rule.in_turns))
            false = alarms(rule, compared)
            interval_too = rate(false, len(compared))
            cells.append(percent(false / len(compared)) if rule.in_turns else interval_too)
            cells.append(percent(alarms(rule, compared, 0.05) / len(compared)))
        yield f"| {' | '.join(cells)} |"


def rate(some: int, of: int) -> str:
    ends = binomtest(some, of).proportion_ci(0.95, method="exact")
    return f"{percent(some / of)} ({percent(ends.low)} to {percent(ends.high)})"


def percent(share: float) -> str:
    return (
        f"{100 * share:.1f}".removesuffix(".0") + " %" if share < 0.0995 else f"{100 * share:.0f} %"
    )


def busy_text(name: str, pairs: Sequence[Pair]) -> str:
    pressures = [each["pressure"] for pair in pairs for each in pair]
    over = percent(sum(pressure > MOST_PRESSURE for pressure in pressures) / len(pressures))
    milliseconds = 1000 * median(each["wall_seconds"] for pair in pairs for each in pair)
    waited = f"{over} of the samples waited for over 20 % of their time"
    return f"{name}: {len(pairs)} pairs, {milliseconds:.0f} ms; {waited}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measure", type=int, metavar="PAIRS")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    options = parser.parse_args()
    if options.measure is not None and options.measure < 20:
        parser.error("--measure takes 20 pairs or more")
    if options.measure:
        measure(options.measure, options.folder)
    studies = {
        path.stem: read_pairs(path) for path in sorted(options.folder.glob("*.jsonl"), reverse=True)
    }
    studies = {name: pairs for name, pairs in studies.items() if pairs}
    parts = [[busy_text(*study) for study in studies.items()], blocks_table(studies)]
    for clock in CLOCKS:
        parts.append(rules_table(studies, clock))
    print("\n\n".join("\n".join(part) for part in parts))


if __name__ == "__main__":
    main()
