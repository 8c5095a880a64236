"""Training on an iterator, here and with Hugging Face: CPU seconds and peak memory, in interleaved
blocks.

python results/training/benchmark.py TEXT [--blocks N]    # measure, and append to figures.jsonl
python results/training/benchmark.py --table              # print the table of what is stored

TEXT is UTF-8 with <|endoftext|> between documents. Each measurement is a process of its own, which
reads the text through a generator; ours has one thread, Hugging Face one or, as by default, one for
each core. CPU seconds are those of the training call; memory is the peak of the whole process. Both
sides break ties as Hugging Face does and must learn the same merges.
"""

import argparse
import hashlib
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures.jsonl"
SEPARATOR = "<|endoftext|>"
VOCAB_SIZE = 32_000
GIGABYTE = 1_000_000_000
SIDES = ("huggingface", "huggingface, one thread", "ours")
SOURCES = ("documents", "lines")
Train = Callable[[Iterator[str]], list[tuple[str, str]]]
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", nargs="?", help="a UTF-8 file")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the stored figures")
    parser.add_argument("--measure", nargs=2, metavar=("SIDE", "SOURCE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.table:
        print("\n".join(table([json.loads(line) for line in FIGURES.read_text().splitlines()])))
        return 0
    if options.text is None:
        parser.error("name a text, or pass --table")
    if options.measure:
        print(json.dumps(measured(*options.measure, Path(options.text))))
        return 0
    for line in blocks(Path(options.text), options.blocks):
        with FIGURES.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)
    return 0


def blocks(text: Path, number: int) -> Iterator[dict[str, Any]]:
    """Every measurement, in random order within its block; 1 GB of ours once a block."""
    cells = [*itertools.product(SIDES, SOURCES), ("ours", "gigabyte")]
    about = {
        "text": text.name,
        "bytes": text.stat().st_size,
        "sha256": hashlib.sha256(text.read_bytes()).hexdigest(),
    }
    chance = random.Random(1)
    for block in range(number):
        for side, source in chance.sample(cells, len(cells)):
            command = [sys.executable, __file__, str(text), "--measure", side, source]
            environment = {**os.environ, **(ONE_THREAD if side == SIDES[1] else {})}
            output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            yield {
                **about,
                "block": block,
                "side": side,
                "source": source,
                **json.loads(output.stdout),
            }


def measured(side: str, source: str, text: Path) -> dict[str, Any]:
    """Train in this process, and say what it took."""
    version, train = ours() if side == "ours" else huggingface()
    read = {"documents": documents, "lines": lines, "gigabyte": gigabyte}[source](text)
    wall, cpu = time.perf_counter(), time.process_time()
    merges = train(read)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None, "Linux tells the peak"
    digest = hashlib.sha256("\n".join(map(" ".join, merges)).encode()).hexdigest()
    figures = {
        "cpu_seconds": round(cpu, 4),
        "wall_seconds": round(wall, 4),
        "peak_bytes": int(peak[1]) * 1024,
    }
    return {"version": version, **figures, "merges": len(merges), "merges_sha256": digest}


def huggingface() -> tuple[str, Train]:
    import tokenizers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def train(read: Iterator[str]) -> list[tuple[str, str]]:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(read, trainer)
        return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]

    return f"tokenizers {tokenizers.__version__}", train


def ours() -> tuple[str, Train]:
    import harness
    from harness import tokenizer
    from harness.tokenizers.learned import spelled

    def train(read: Iterator[str]) -> list[tuple[str, str]]:
        trained = tokenizer.train(read, VOCAB_SIZE, special_tokens=(), tie_break="huggingface")
        return [(spelled(left), spelled(right)) for left, right in trained.merges]

    return f"bpe-harness {harness.__version__}", train


def lines(text: Path) -> Iterator[str]:
    with text.open(encoding="utf-8", newline="\n") as file:
        yield from file


def documents(text: Path) -> Iterator[str]:
    rest = ""
    with text.open(encoding="utf-8", newline="") as file:
        while block := file.read(1 << 20):
            *whole, rest = (rest + block).split(SEPARATOR)
            yield from whole
    yield rest


def gigabyte(text: Path) -> Iterator[str]:
    """The documents over and over, as 1 GB."""
    size = 0
    while size < GIGABYTE:
        for document in documents(text):
            yield document
            size += len(document.encode())


def table(figures: list[dict[str, Any]]) -> Iterator[str]:
    """Medians over the blocks, and of the ratios within them."""
    blocks = 1 + max(each["block"] for each in figures)
    yield f"{figures[0]['text']}: {figures[0]['bytes']:,} bytes, to {VOCAB_SIZE:,} tokens, {blocks} blocks\n"
    yield "| source | trainer | CPU s | times ours | peak | times ours |"
    yield "|---|---|---:|---:|---:|---:|"
    for source, side in [*itertools.product(SOURCES, SIDES), ("gigabyte", "ours")]:
        rows, ours = (
            [each for each in figures if (each["source"], each["side"]) == (source, name)]
            for name in (side, "ours")
        )
        assert len({row["merges_sha256"] for row in [*rows, *ours]}) == 1, "both learn the same"
        cells = []
        for key, unit, form in (("cpu_seconds", 1, "{:.2f}"), ("peak_bytes", 1e6, "{:.0f} MB")):
            ratio = statistics.median(
                row[key] / our[key] for row, our in zip(rows, ours, strict=True)
            )
            cells += [
                form.format(statistics.median(row[key] for row in rows) / unit),
                f"{ratio:.1f}",
            ]
        name = "documents, repeated to 1 GB" if source == "gigabyte" else source
        threads = ", one thread" if side == SIDES[1] else ""
        yield f"| {name} | {rows[0]['version']}{threads} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
