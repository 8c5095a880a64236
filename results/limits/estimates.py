"""How often the estimate of a stopped trainer holds its true total: python results/limits/estimates.py

Each of 40 cases is trained whole, and then with limits.wall at half of that: eight trainers on five
texts, each text as long as the trainer needs for over a second. That starting a process takes a while
is left out, so a case of two seconds has as many parts as one of a minute.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.common.printing import print_stdout
from harness.records.file import Record
from harness.runs import jobs
from harness.runs.run import run_command

TRAINERS = (
    "naive",
    "incremental",
    "fine_grained",
    "heap",
    "heap_python",
    "heap_max",
    "seg_status",
    "minbpe",
)
TEXTS = (
    "stdlib data.bytes={}",
    "random_text data.source.bytes={} data.source.seed=3",
    "one_word data.source.bytes={}",
    "no_repeats data.source.words={}",
    "runs data.source.bytes={}",
)
SMALLEST = {"naive": 4_000, "minbpe": 4_000}
LEAST_SECONDS, SHARE = 1.5, 2


def measured(variant: str, text: str, size: int, *limits: str) -> Record:
    """The record of a run that is kept nowhere else."""
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        where = [f"results={folder}", "vocab_size=857", "concurrent=true", *limits]
        data = f"data={text.format(size)}".split()
        run_command([f"variant={variant}", *data, *where], lambda found, _: records.extend(found))
    return next(record for record in records if record["cell"] == "train")


def case(variant: str, text: str) -> tuple[float, Record] | None:
    """The true total, and the record of the run that was stopped; None without a size that takes
    long enough.
    """
    for size in (SMALLEST.get(variant, 100_000) * 3**power for power in range(6)):
        whole = measured(variant, text, size, "limits.wall=30")
        wall = whole["seconds"].get("total")
        if wall is None:
            return None
        total = wall - (whole["cpu_wait_seconds"] or 0.0)  # estimates are of net time too
        if total >= LEAST_SECONDS:
            return total, measured(variant, text, size, f"limits.wall={total / SHARE:.3f}")
    return None


def main() -> int:
    jobs.SECONDS_TO_START = 0.0
    print_stdout(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    held: list[bool] = []
    silent = 0
    for variant, text in itertools.product(TRAINERS, TEXTS):
        name = text.partition(" ")[0]
        found = case(variant, text)
        if found is None:
            print_stdout(f"{variant} {name}: not measured")
            continue
        total, record = found
        told: dict[str, Any] = record.get("extrapolated") or {}
        if told:
            held.append(told["low_seconds"] <= total <= told["high_seconds"])
            says = "{total_seconds:.2f} s ({low_seconds:.2f} to {high_seconds:.2f})".format(**told)
        else:
            silent += 1
            says = f"{record['status']}: {record['reason']}"
        print_stdout(f"{variant} {name}: took {total:.2f} s, says {says}")
    print_stdout(
        f"{sum(held)} of {len(held)} intervals hold the total; {silent} say no more than a limit"
    )
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main())
