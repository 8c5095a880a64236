"""How long the table of a text's words takes to make: in parts, and by the compiled counter.

python results/counting/workers.py TEXT [ROUNDS]

Whole commands, from start to Parquet file, in turn; each begins without the table, and with the
text in memory.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow
from pyarrow import parquet

WAYS = {
    "in parts, 2 threads": ["counting=dask"],
    "native, 2 threads": ["counting=native", "threads=2"],
    "native, 1 thread": ["counting=native", "threads=1"],
}


def seconds(text: Path, settings: list[str], cache: Path) -> tuple[float, pyarrow.Table]:
    """How long it takes, and what comes out."""
    words = cache / "words.parquet"
    command = [sys.executable, "-m", "harness.corpora", "counts", "file", "--parquet", str(words)]
    for setting in [f"data.path={text}", *settings]:
        command += ["--set", setting]
    started = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "BPE_HARNESS_CACHE": str(cache)},
    )
    took = time.perf_counter() - started
    made = parquet.read_table(words).sort_by("word")
    for path in cache.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    words.unlink()
    return took, made


def main(text: Path, rounds: int = 7) -> None:
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as cache:
        # and the classes of characters are there
        _, expected = seconds(text, WAYS["native, 1 thread"], Path(cache))
        for _ in range(rounds):
            for way, settings in WAYS.items():
                second, made = seconds(text, settings, Path(cache))
                assert made.equals(expected), f"{way}: other words"
                took[way].append(second)
    first = took["in parts, 2 threads"]
    lines = ["| made by | seconds | times as long as in parts |", "|---|---:|---:|"]
    for way, times in took.items():
        ratios = [ours / theirs for ours, theirs in zip(times, first, strict=True)]
        lines.append(
            f"| {way} | {statistics.median(times):.2f} | {statistics.median(ratios):.2f} |"
        )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
