"""Print what flat takes on the hard texts without each of its ideas.

python results/frontier/stress_results.py
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.common.units import count_text
from harness.records.file import read_records
from harness.results.rows import Row, rows

HERE = Path(__file__).resolve().parent
SWITCHES = ("layout", "accumulators", "pruning")


def main(_: Sequence[str] = ()) -> int:
    """Print the table; returns the exit code."""
    print("\n".join(switches_table(rows(read_records([HERE / "stress" / "switches"])))))
    return 0


def switches_table(variants: list[Row]) -> list[str]:
    """Lines of a Markdown table: a text in each, a switch in each column."""
    lines = [
        f"| text | {' | '.join(f'without {switch}' for switch in SWITCHES)} |",
        "|---|---:|---:|---:|",
    ]
    for text, own in by_text(variants).items():
        (base,) = (row for row in own if all(row.params[switch] == "true" for switch in SWITCHES))
        others = [next(row for row in own if row.params[switch] == "false") for switch in SWITCHES]
        lines.append(f"| {text} | {' | '.join(ratios_text(row, base) for row in others)} |")
    return lines


def ratios_text(row: Row, base: Row) -> str:
    """The median of the ratios within blocks, and the smallest and the largest."""
    seconds, base_seconds = (
        {each.block: each.cpu_seconds or math.nan for each in side.samples} for side in (row, base)
    )
    ratios = sorted(seconds[block] / base_seconds[block] for block in seconds)
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def by_text(trainers: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each text, without those of word counters."""
    texts: dict[str, list[Row]] = {}
    for row in trainers:
        if not row.counting_only:
            texts.setdefault(title_of(row), []).append(row)
    return texts


def title_of(row: Row) -> str:
    """The name of a text and its vocabulary, such as "DNA, one word: 50,000"."""
    name = (
        str(row.corpus.name)
        .removesuffix(".txt")
        .replace("_one_word", ", one word")
        .replace("_", " ")
    )
    return f"{name}: {count_text(row.record.cell.vocab_size or 0)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
