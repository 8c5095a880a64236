"""How flat's CPU seconds grow with its input: eight shapes, each at four sizes that double.

python results/frontier/growth.py [--rounds 3] [--smallest 50000] [--sizes 4] [--only SHAPE ...]

Every measurement is a fresh process; rounds are interleaved. Each cell is the median and, from the
second size on, its ratio to the size before. tests/variants/test_growth.py holds the counts of work
of the same shapes to at most 2.6 times for twice the input.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from variants import flat
from variants.contract import Meter, WordCounts

HERE = Path(__file__).resolve().parent
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
Table = Iterable[tuple[bytes, int]]


def letters(dice: random.Random, length: int, alphabet: bytes = LETTERS) -> bytes:
    return bytes(dice.choices(alphabet, k=length))


def edge_of_weights(dice: random.Random, size: int) -> Table:
    """Words of one weight, then ids that occur once: logs, tables, dumps of code."""
    for _ in range(size // 25):
        yield letters(dice, 10), 1000
    for _ in range(size):
        yield b"%016x" % dice.getrandbits(64), 1


def zipf_weights(dice: random.Random, size: int) -> Table:
    for rank in range(size):
        yield letters(dice, 2 + rank.bit_length() // 2), 1 + 10 * size // (rank + 1)


def one_weight(dice: random.Random, size: int) -> Table:
    for _ in range(size):
        yield letters(dice, 10), 1


def geometric_weights(dice: random.Random, size: int) -> Table:
    for index in range(size):
        yield letters(dice, 8), 1 + int(1e9 * 0.999 ** (index * 20_000 // size))


def lines(dice: random.Random, size: int) -> Table:
    """Lines of words, as superwords have them."""
    words = [letters(dice, dice.randint(1, 8)) for _ in range(2_000)]
    for _ in range(size):
        yield b"".join(b" " + dice.choice(words) for _ in range(8)), 1


def long_word(dice: random.Random, size: int) -> Table:
    words = [letters(dice, dice.randint(1, 8)) for _ in range(2_000)]
    yield b"".join(dice.choices(words, k=4 * size)), 1


def dna(dice: random.Random, size: int) -> Table:
    yield letters(dice, 20 * size, b"ACGT"), 1


def repeats(dice: random.Random, size: int) -> Table:
    """A stretch again and again, and runs of one letter."""
    yield letters(dice, size) * 10, 1
    for length in range(1, int(size**0.5)):
        yield b"a" * length, 1


@dataclass(frozen=True)
class Shape:
    table: Callable[[random.Random, int], Table]
    merges: float
    """For each unit of the size."""
    inherited: int = 0
    """Merges that were learned before; the others go on from these."""


SHAPES = {
    "edge of weights": Shape(edge_of_weights, 0.3),
    "Zipf weights": Shape(zipf_weights, 0.5),
    "one weight": Shape(one_weight, 1),
    "geometric weights": Shape(geometric_weights, 1),
    "superwords to the end": Shape(lines, 1000, inherited=3_000),
    "one long word": Shape(long_word, 0.5),
    "DNA": Shape(dna, 0.5),
    "repeats": Shape(repeats, 10),
}


def train(name: str, size: int) -> tuple[float, dict[str, int]]:
    """The CPU seconds and the counts of work of one training, in this process."""
    shape = SHAPES[name]
    words = WordCounts.from_items(shape.table(random.Random(size), size))
    inherited = flat.train(words, shape.inherited)
    meter = Meter()

    begun = time.process_time()
    merges = shape.inherited + int(shape.merges * size)
    flat.train(words, merges, meter, inherited=inherited)
    return time.process_time() - begun, meter.tallies


def seconds(name: str, size: int) -> float:
    """CPU seconds of one training in a fresh process."""
    call = f"import growth; print(growth.train({name!r}, {size})[0])"
    ended = subprocess.run(
        [sys.executable, "-c", call], cwd=HERE, check=True, capture_output=True, text=True
    )
    return float(ended.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smallest", type=int, default=50_000, help="the first size")
    parser.add_argument("--sizes", type=int, default=4, help="how many, each twice the last")
    parser.add_argument("--only", nargs="+", default=SHAPES, metavar="SHAPE")
    options = parser.parse_args()
    sizes = [options.smallest << doubling for doubling in range(options.sizes)]

    print(f"| shape | {' | '.join(f'{size:,}' for size in sizes)} |\n|---|{'---:|' * len(sizes)}")
    for name in options.only:
        samples: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(options.rounds):
            for size in sizes:
                samples[size].append(seconds(name, size))
        medians = [median(samples[size]) for size in sizes]
        cells = [f"{medians[0]:.3f}"]
        for smaller, larger in itertools.pairwise(medians):
            cells.append(f"{larger:.3f} (× {larger / smaller:.1f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
