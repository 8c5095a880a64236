"""What disturbs timing on this machine, what could be done about it, and what the machine can tell apart.

    python -m harness.doctor               a look, then an A/A run of some seconds
    python -m harness.doctor --no-run      the look alone
    python -m harness.doctor --repeat 30   what thirty blocks can tell apart

An A/A run measures one variant against itself. Whatever differs there is the machine's doing.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from harness import run
from harness.common.comparison import FEWEST_BLOCKS, MARGIN, cpu_time, interval, sample_of, wall_time
from harness.common.console import Parser, terminal_text
from harness.common.errors import OK, UNMEASURED, Refusal, guarded
from harness.common.files import temporary_folder
from harness.common.registry import at_least
from harness.common.units import share_text
from harness.measure.checkup import DISTURBS, UNKNOWN, findings

REPEAT = 10
FEWEST_PAIRS = 20
POWER = 0.95
"""The machine resolves a difference that is found in at least this share of runs."""
DRAWS = 1000
USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample takes some 100 ms: long enough for a clock, and short enough for many pairs."""
SIGNS = {DISTURBS: "!", UNKNOWN: "?"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = parser().parse_args(argv)
    return guarded(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    at_least("--repeat", options.repeat, FEWEST_BLOCKS)
    console = Console(highlight=False, markup=False)
    found = findings()
    for finding in found:
        what = terminal_text(finding.what)
        console.print(f"{SIGNS.get(finding.state, ' ')} {finding.name:<19}{what}", soft_wrap=True)
        if finding.advice:
            console.print(f"  {'':<19}-> {terminal_text(finding.advice)}", soft_wrap=True)
    bad = sum(finding.state == DISTURBS for finding in found)
    console.print(f"{bad} of {len(found)} disturb timing (!); ? means unavailable", soft_wrap=True)
    if not options.no_run:
        console.print(f"\n{resolution(options.repeat)}", soft_wrap=True)
    return OK


def resolution(repeat: int) -> str:
    """Measure a cell against itself; return the smallest slow-down that `repeat` blocks find, by each clock."""
    (first,) = measure(1)
    records = measure(2 * max(FEWEST_PAIRS, repeat))
    samples = [sample for record in records if (sample := sample_of(record)) is not None]
    pairs = list(zip(samples[::2], samples[1::2], strict=False))
    clocks = {"CPU time": cpu_time} if all(sample.one_thread for sample in samples) else {}
    smallest = []
    for name, clock in {**clocks, "wall time": wall_time}.items():
        share = detectable([math.log(clock(second) / clock(first)) for first, second in pairs], repeat)
        smallest += [f"{share_text(share)} of {name}"] if share else []
    milliseconds = 1000 * sorted(sample.wall_seconds for sample in samples)[len(pairs)]
    return (
        f"A/A run: {first['variant']} against itself on {first['data']['name']}, {len(pairs)} pairs, a sample takes "
        f"{milliseconds:.0f} ms.\n"
        f"With repeat={repeat} this machine now resolves {' and '.join(smallest) or 'nothing'}: "
        f"so large a slow-down is found {share_text(POWER)} of the time."
    )


def measure(repeat: int) -> list[dict[str, Any]]:
    """Return the records of a cell. Raises Refusal if it could not be measured."""
    with temporary_folder() as folder:
        records = run(*USUAL, repeat=repeat, results=folder)
    for record in records:
        if record["status"] != "ok":
            name, reason = record["variant"], f"{record['status']}: {record['reason']}"
            raise Refusal(f"{name} could not be compared with itself ({reason})", UNMEASURED)
    return records


def detectable(log_ratios: Sequence[float], blocks: int, seed: int = 0) -> float | None:
    """Return the smallest slow-down that `blocks` blocks find with probability POWER.

    Blocks are drawn from those measured, in both directions, for either of the two samples might have been the first.
    """
    draw = random.Random(seed)
    both = [*log_ratios, *(-ratio for ratio in log_ratios)]
    needed = []
    for _ in range(DRAWS):
        low, high = interval(draw.choices(both, k=blocks))
        needed.append(math.inf if low is None or high is None else max(-low, math.log1p(MARGIN) - high, 0.0))
    enough = sorted(needed)[math.ceil(POWER * DRAWS) - 1]
    return None if math.isinf(enough) else math.expm1(enough)


def parser() -> argparse.ArgumentParser:
    first, _, rest = (__doc__ or "").partition("\n\n")
    described = Parser(
        prog="python -m harness.doctor",
        description=first,
        epilog="examples:\n"
        + rest.replace("\n    ", "\n  ").replace("    ", "  ", 1)
        + "\nexit code: 0; 22 if the A/A run could not be measured; 130 if it was interrupted.",
    )
    described.add_argument("--no-run", action="store_true", help="look only, measure nothing")
    described.add_argument(
        "--repeat", type=int, default=REPEAT, metavar="N", help="how many blocks to judge (default: %(default)s)"
    )
    return described


if __name__ == "__main__":
    sys.exit(main())
