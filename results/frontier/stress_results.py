"""Show what the records of the hard texts say.

python results/frontier/stress_results.py chart       # draw each trainer's seconds into stress.svg
python results/frontier/stress_results.py switches    # print what flat takes without each idea
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.common.units import count_text
from harness.records.file import read_records
from harness.results.charts import Axis, Chart, Entry, Mark, Panel, Point, log_range, look_of
from harness.results.drawing import save
from harness.results.rows import Row, rows

FASTEST = "flat_file"
HERE = Path(__file__).resolve().parent
NOTES = [
    "Ring: stopped after ten seconds, total estimated. Arrow: it takes longer than ten seconds."
]
SWITCHES = ("layout", "accumulators", "pruning")


def main(arguments: Sequence[str]) -> int:
    """Draw the chart, or print the table; returns the exit code."""
    if arguments == ["chart"]:
        trainers = rows(read_records([HERE / "stress" / "trainers"]))
        save(chart_of([row for row in trainers if row.time.number]), HERE / "stress.svg")
    elif arguments == ["switches"]:
        print("\n".join(switches_table(rows(read_records([HERE / "stress" / "switches"])))))
    else:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    return 0


def chart_of(trainers: list[Row]) -> Chart:
    """A line for each text, a dot for each trainer, in the order of flat_file's seconds."""
    texts = by_text(trainers)
    names = sorted(texts, key=lambda text: min(row.time.number or 0.0 for row in texts[text]))
    marks: list[Mark] = []
    for place, text in enumerate(names):
        for row in texts[text]:
            marks.append(
                Point(row.time.number or 0.0, place, look_of(row.name), row.name, row.time)
            )
    low, high = log_range([row.time.number for row in trainers])
    won = sum(
        min(texts[text], key=lambda row: row.time.number or 0.0).name == FASTEST for text in names
    )
    trainer_names = list(dict.fromkeys(row.name for row in trainers))
    key = [Entry(name, look_of(name).colour, look_of(name).marker) for name in trainer_names]
    title = f"{FASTEST} is first on {won} of {len(names)} hard texts"
    panel = Panel(Axis("seconds from the text to the merges", low, high, log=True), names, marks)
    return Chart(title, ["Text, and size of the vocabulary"], NOTES, [panel], key, step=0.24)


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
        str(row.corpus.get("name"))
        .removesuffix(".txt")
        .replace("_one_word", ", one word")
        .replace("_", " ")
    )
    return f"{name}: {count_text(row.record['vocab_size'])}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
