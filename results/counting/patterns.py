"""How fast text is counted with each pattern, by the compiled scanner and by `regex`.

python results/counting/patterns.py TEXT... [--blocks N] [--instructions PATH]

User CPU seconds on one thread. In each block every pattern has its turn, in random order; the ratio
to gpt2's time is the median over the blocks. Small texts are counted many times over; `regex` gets
the first four megabytes.
"""

import argparse
import random
import resource
import statistics
import tempfile
from pathlib import Path

from harness.common import registry
from variants.contract import Corpus
from variants.counting.native import native
from variants.counting.patterns import FAMILY, compiled, slots_of
from variants.counting.pretokenize import serial

SPECIAL_TOKENS = ("<|endoftext|>",)
BYTES_AT_ONCE = 30_000_000
BYTES_FOR_REGEX, SECONDS_FOR_REGEX = 4_000_000, 0.2


def main() -> None:
    """Measure each text and print a table of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--instructions", default="fastest")
    options = parser.parse_args()
    cards = {name: card["regex"] for name, card in registry.cards("pattern").items()}
    patterns = {
        name: each
        for name, each in cards.items()
        if compiled(each) and slots_of(each).split == FAMILY
    }
    for text in options.texts:
        report(text, patterns, options.blocks, options.instructions)


def report(text: Path, patterns: dict[str, str], blocks: int, instructions: str) -> None:
    size = text.stat().st_size
    times = max(1, BYTES_AT_ONCE // size)
    seconds: dict[str, list[float]] = {name: [] for name in patterns}
    chance = random.Random(1)
    for _ in range(blocks):
        for name in chance.sample(sorted(patterns), len(patterns)):
            corpus = Corpus(str(text), SPECIAL_TOKENS, patterns[name], "replace")
            before = user_seconds()
            for _ in range(times):
                native(corpus, instructions=instructions)
            seconds[name].append((user_seconds() - before) / times)
    print(f"\n{text.name}: {size:,} bytes, {blocks} blocks\n")
    print(
        "| pattern | spelling | MB/s | times gpt2's time | `regex`, MB/s |\n|---|---|---:|---:|---:|"
    )
    for name, pattern in patterns.items():
        ratio = statistics.median(
            one / gpt2 for one, gpt2 in zip(seconds[name], seconds["gpt2"], strict=True)
        )
        speed = size / statistics.median(seconds[name]) / 1e6
        spelling = pattern.replace("|", "\\|")
        print(
            f"| `{name}` | `{spelling}` | {speed:,.0f} | {ratio:.2f} | {by_regex(text, pattern):.1f} |",
            flush=True,
        )


def by_regex(text: Path, pattern: str) -> float:
    """Megabytes a second by the definition."""
    with text.open("rb") as file, tempfile.NamedTemporaryFile() as beginning:
        content = file.read(BYTES_FOR_REGEX).decode(errors="ignore").encode()
        beginning.write(content)
        beginning.flush()
        times, before = 0, user_seconds()
        while user_seconds() - before < SECONDS_FOR_REGEX:
            serial(Corpus(beginning.name, SPECIAL_TOKENS, pattern, "replace"))
            times += 1
        return times * len(content) / (user_seconds() - before) / 1e6


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


if __name__ == "__main__":
    main()
