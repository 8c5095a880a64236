"""CPU seconds of flat on tables in which many pairs share one count, in this checkout and another.

python results/frontier/ties.py [--rounds 5] [--merges 100000] [--other CHECKOUT]

Every measurement is a fresh process; rounds are interleaved. --other adds the flat of another
checkout.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[2]
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
TIE_BREAKS = ("greatest_bytes", "huggingface")


def fibonacci(length: int) -> bytes:
    shorter, longer = b"a", b"b"
    while len(longer) < length:
        shorter, longer = longer, longer + shorter
    return longer[:length]


TABLES: dict[str, Callable[[random.Random], Iterable[bytes]]] = {
    "DNA, one word": lambda dice: [bytes(dice.choices(b"ACGT", k=1_000_000))],
    "two letters, one word": lambda dice: [bytes(dice.choices(b"ab", k=500_000))],
    "random bytes, one word": lambda dice: [dice.randbytes(300_000)],
    "numbers in order, one word": lambda _: [b"".join(b"%d" % number for number in range(100_000))],
    "runs of a": lambda _: [b"a" * length for length in range(1, 1500)],
    "Fibonacci word": lambda _: [fibonacci(1_000_000)],
    "hexadecimal ids": lambda dice: (b"%016x" % dice.getrandbits(64) for _ in range(50_000)),
    "random words of 8 bytes": lambda dice: (dice.randbytes(8) for _ in range(30_000)),
    "random words of 10 letters": lambda dice: (
        bytes(dice.choices(LETTERS, k=10)) for _ in range(60_000)
    ),
    "numbers": lambda _: (b"%d" % number for number in range(300_000)),
}


def measure(table: str, tie_break: str, merges: int) -> float:
    """CPU seconds of one training, in this process."""
    from variants import flat
    from variants.contract import TieBreak, WordCounts

    words = WordCounts.from_items((word, 1) for word in TABLES[table](random.Random(1)))
    before = os.times()
    flat.train(words, merges, tie_break=TieBreak(tie_break))
    after = os.times()
    return after.user + after.system - before.user - before.system


def measured(checkout: Path, table: str, tie_break: str, merges: int) -> float:
    """The same in a fresh process, which imports `variants` from `checkout`."""
    call = f"import ties; print(ties.measure({table!r}, {tie_break!r}, {merges}))"
    paths = os.pathsep.join((str(checkout), str(Path(__file__).parent)))
    environment = {**os.environ, "PYTHONPATH": paths}
    return float(
        subprocess.run(
            [sys.executable, "-c", call],
            env=environment,
            cwd=checkout,
            check=True,
            capture_output=True,
        ).stdout
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--merges", type=int, default=100_000)
    parser.add_argument("--other", type=Path, help="another checkout, built")
    options = parser.parse_args()
    sides = {"flat": HERE}
    if options.other:
        sides["other"] = options.other.resolve()
    sys.stdout.write(
        f"| table | tie-break | {' | '.join(sides)} |\n|---|---|{'---:|' * len(sides)}\n"
    )
    for table in TABLES:
        for tie_break in TIE_BREAKS:
            seconds: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side, checkout in sides.items():
                    seconds[side].append(measured(checkout, table, tie_break, options.merges))
            shown = (f"{median(each):.2f}" for each in seconds.values())
            sys.stdout.write(f"| {table} | {tie_break} | {' | '.join(shown)} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
