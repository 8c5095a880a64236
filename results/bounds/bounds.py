"""What training on the texts of the board takes at least, and how far from it the board's times are.

python results/bounds/bounds.py --measure   # of the texts that are here, written to figures.json
python results/bounds/bounds.py             # print the table of what is stored
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.board import Section, sections
from harness.common import registry
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import bytes_text, count_text, ratio_text, seconds_text
from harness.measure.machine import environment
from harness.proof.compiled_replay import Replay
from harness.proof.native import _replay
from harness.results.rows import rows
from harness.results.selection import records_of
from harness.runs.blocks import words_of
from harness.runs.plan import plan_of_words
from variants import flat
from variants.contract import Merge

BOARD = Path("results/board")
FIGURES = Path(__file__).with_name("figures.json")
ENTRIES = 1 << 26
STEPS = 20_000
REPEATS = 300


def rounds(merges: Iterable[Merge]) -> list[int]:
    """The round of each merge, from 1: one more than that of any earlier merge that it waits for.

    A merge waits for those that make one of its tokens, and for those whose pair can share a token
    with its own pair in a text: the right token of one is the left token of the other.

    >>> rounds([(b"t", b"h"), (b"i", b"n"), (b"th", b"e"), (b"e", b"n"), (b"in", b"g")])
    [1, 1, 2, 3, 2]
    """
    making: dict[bytes, int] = defaultdict(int)
    on_the_left: dict[bytes, int] = defaultdict(int)
    on_the_right: dict[bytes, int] = defaultdict(int)

    found = []
    for left, right in merges:
        before = max(making[left], making[right], on_the_right[left], on_the_left[right])
        number = before + 1
        found.append(number)

        token = left + right
        making[token] = max(making[token], number)
        on_the_left[left] = max(on_the_left[left], number)
        on_the_right[right] = max(on_the_right[right], number)
    return found


def memory() -> dict[str, float]:
    """Seconds of reading a byte, and of a look-up that waits for the one before: the least of some,
    in a table of 256 MiB, larger than the caches.
    """
    order = np.random.default_rng(0).permutation(ENTRIES).astype(np.uint32)
    table = np.empty_like(order)
    table[order] = np.roll(order, -1)  # one circle through all entries
    entry = 0

    def walk() -> None:
        nonlocal entry
        entry = _replay.follow(table, entry, STEPS)

    return {
        "byte": least(lambda: table.view(np.uint64).sum()) / table.nbytes,
        "visit": least(walk) / STEPS,
    }


def least(call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def figures_of(name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Counts of one text. The list of a smaller vocabulary is the beginning of that of a larger."""
    lists = {}
    for size in sorted(sizes, reverse=True):
        plan = plan_of_words(name, [f"vocab_size={size}"])
        cell = plan.cells[0]
        if not lists:
            words = words_of(cell, plan.settings)[0]
            merges = flat.train(words, cell.num_merges)
            judged = Replay(words, merges, len(merges)).up_to_ties
            tied = np.cumsum([sharing > 1 for sharing in judged.sharing]).tolist()
            deepest = np.maximum.accumulate(rounds(merges)).tolist()

        number = min(cell.num_merges, len(merges))
        lists[size] = {"merges": number, "tied": tied[number - 1], "rounds": deepest[number - 1]}
    return {"bytes": cell.reading.file.bytes, "words": len(words), "lists": lists}


def sections_of_cards() -> list[Section]:
    """The tables of the board, but those of texts that a date drew."""
    found = sections(rows(records_of([str(BOARD)])))
    return [section for section in found if section.corpus in registry.cards("data")]


def table(figures: dict[str, Any]) -> Sheet:
    """A row for each table of the board; times are those of the first two ranks, on one thread."""
    machine = figures["memory"]
    names = "text", "vocabulary", "bytes", "words", "merges", "tied", "rounds"
    cells: dict[str, list[str]] = {name: [] for name in [*names, "bound", "first", "second"]}
    for section in sections_of_cards():
        text = figures["texts"][section.corpus]
        listed = text["lists"][str(section.vocab_size)]
        visits = text["words"] + listed["merges"]
        bound = text["bytes"] * machine["byte"] + visits * machine["visit"]

        ranked = [row for row in section.firsts if row.is_ranked]
        first, second = (
            f"{row.name}, × {ratio_text(row.time.number / bound)}" for row in ranked[:2]
        )
        numbers = section.vocab_size, text["words"], listed["merges"], listed["tied"]
        vocabulary, words, merges, tied = map(count_text, numbers)
        row = section.corpus, vocabulary, bytes_text(text["bytes"]), words, merges, tied
        row += count_text(listed["rounds"]), seconds_text(bound), first, second
        for column, cell in zip(cells.values(), row, strict=True):
            column.append(cell)
    byte, visit = (machine[name] * 1e9 for name in ("byte", "visit"))
    caption = f"{machine['cpu']}: {byte:.3f} ns to read a byte, {visit:.0f} ns to visit an entry"
    columns = []
    for name, column in cells.items():
        columns.append(Column(name, column, figures=name not in ("text", "first", "second")))
    return Sheet([caption], columns)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measure", action="store_true", help="measure again, for minutes")
    if parser.parse_args(arguments).measure:
        sizes: dict[str, list[int]] = {}
        for section in sections_of_cards():
            sizes.setdefault(section.corpus, []).append(section.vocab_size)
        texts = {name: figures_of(name, vocabularies) for name, vocabularies in sizes.items()}
        machine = {"cpu": environment()["cpu"], **memory()}
        FIGURES.write_text(json.dumps({"memory": machine, "texts": texts}, indent=1) + "\n")
    print(sheet_to_markdown(table(json.loads(FIGURES.read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
