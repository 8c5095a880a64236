"""An A/A study: hundreds of pairs of one program in a file of their own, and what they say of this harness's verdict.

The file holds one line of JSON that says what was compared where and when, then a line for each pair. A study that was
interrupted goes on where it was; the file of a finished one is replaced only when the next is finished.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.comparison import MARGIN, MOST_PRESSURE, Sample, spread
from harness.errors import UNMEASURED, Refusal
from harness.resolution import POWER, Pair, Way, alarms, detectable, rate_interval, ways
from harness.units import bytes_text, count_text, share_text

SCHEMA = 1
FILE_NAME = "pairs.jsonl"
SUMMARY_NAME = "README.md"
BLOCKS = (6, 10, 20, 30)
PLANTED = (0.02, 0.05)
BESIDE = " Other runs were measured beside it."
_FIGURES = ("wall_seconds", "cpu_seconds", "pressure", "steal")


@dataclass(frozen=True)
class Study:
    """What was compared with itself, and the pairs in the order in which they were measured."""

    head: dict[str, Any]
    pairs: list[Pair]


def read_study(path: Path) -> Study:
    """Read a study's file. Raises Refusal if it is none; a last line that was cut off is left out."""
    try:
        first, *lines = path.read_text().split("\n")
        head = json.loads(first)
        if head.get("schema") != SCHEMA or head.get("kind") != "aa":
            raise ValueError(f"not an A/A study of schema {SCHEMA}")
        return Study(head, [_pair(json.loads(line), head) for line in lines[:-1]])
    except OSError as error:
        raise Refusal(
            f"cannot read {path} ({error.strerror}); python -m harness.doctor --study 300 makes one"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is no A/A study ({error})", UNMEASURED) from error


def _pair(line: dict[str, Any], head: dict[str, Any]) -> Pair:
    block, threads = int(line["block"]), int(head["compared"]["threads"])
    first, second = (
        Sample("study", block, side["wall_seconds"], side["cpu_seconds"], threads, side["pressure"], side["steal"])
        for side in (line["first"], line["second"])
    )
    return first, second


def pair_line(pair: Pair) -> str:
    """A pair as its line."""
    sides = [{name: _rounded(getattr(sample, name)) for name in _FIGURES} for sample in pair]
    return json.dumps({"block": pair[0].block, "first": sides[0], "second": sides[1]}) + "\n"


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)


def carried_out(folder: Path, head: dict[str, Any], number: int, measure: Callable[[int], Pair]) -> Iterator[int]:
    """Measure pairs until there are `number`, each written at once; yields how many there are.

    Goes on with an unfinished study of the same program on the same machine, and puts the whole one in its place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE_NAME}.partial"
    done = _resumable(partial, head)
    if not done:
        partial.write_text(json.dumps(head) + "\n")
    with partial.open("a") as file:
        for block in range(done, number):
            file.write(pair_line(measure(block)))
            file.flush()
            yield block + 1
    partial.replace(folder / FILE_NAME)
    (folder / SUMMARY_NAME).write_text(summary(read_study(folder / FILE_NAME)))


def _resumable(partial: Path, head: dict[str, Any]) -> int:
    """How many pairs of this study there are already; a line that was cut off is taken away."""
    if not partial.exists():
        return 0
    try:
        found = read_study(partial)
    except Refusal:
        return 0
    if {**found.head, "started": None, "command": None} != {**head, "started": None, "command": None}:
        return 0
    whole = partial.read_text().rpartition("\n")[0] + "\n"
    partial.write_text(whole)
    return len(found.pairs)


def summary(study: Study) -> str:
    """The study in words and figures, as the page that stands beside its file."""
    return "\n".join([*_said_first(study), "", *_table(study), "", *_said_last(study)]) + "\n"


def _said_first(study: Study) -> list[str]:
    head, pairs = study.head, study.pairs
    compared, machine = head["compared"], head["environment"]
    samples = [sample for pair in pairs for sample in pair]
    walls = [sample.wall_seconds for sample in samples]
    threads = "1 thread" if compared["threads"] == 1 else f"{compared['threads']} threads"
    return [
        "# A/A study",
        "",
        f"`{compared['variant']}` against itself: {count_text(len(pairs))} pairs, each sample in a fresh process, on "
        f"{bytes_text(compared['data']['bytes'])} of {compared['data']['name']}, vocabulary "
        f"{count_text(compared['vocab_size'])}, {threads}. {machine['cpu']}, {machine['cores']} processors, "
        f"{machine['kernel']}, {machine['python']}, {head['started'][:10]}.",
        "",
        f"Made by `{head['command']}`, which writes `{FILE_NAME}` and this page anew.",
        "",
        f"A sample takes {1000 * median(walls):.0f} ms by the clock; the longest less the shortest is "
        f"{share_text(spread(walls) or 0)} of that. {_load(samples)}{BESIDE if head['concurrent'] else ''}",
    ]


def _load(samples: Sequence[Sample]) -> str:
    """How busy the machine was."""
    known = [sample.pressure for sample in samples if sample.pressure is not None]
    if not known:
        return "The kernel did not say how busy the machine was."
    pressed = sum(pressure > MOST_PRESSURE for pressure in known) / len(known)
    return (
        f"In the median sample something waited for a processor for {share_text(median(known))} of the time (what the "
        f"kernel calls pressure), in {share_text(pressed)} of them for over {share_text(MOST_PRESSURE)}."
    )


def _table(study: Study) -> list[str]:
    planted = " | ".join(f"+{share_text(share)} found" for share in PLANTED)
    lines = [
        f"| compared | blocks | comparisons | false alarms | rate (95 % interval) | {planted} "
        f"| found {share_text(POWER)} of the time |",
        "|---|---:|---:|---:|---|" + "---:|" * (len(PLANTED) + 1),
    ]
    for way in ways(study.pairs):
        lines += [f"| {way.name} | {_line(way, study.pairs, blocks)} |" for blocks in BLOCKS]
    return lines


def _line(way: Way, pairs: Sequence[Pair], blocks: int) -> str:
    log_ratios = way.log_ratios(pairs)
    false, compared = alarms(log_ratios, blocks)
    if not compared:
        return f"{blocks} | 0 | - | - | {'- | ' * len(PLANTED)}-"
    low, high = rate_interval(false, compared)
    found = [share_text(alarms(log_ratios, blocks, planted)[0] / compared) for planted in PLANTED]
    smallest = detectable(log_ratios, blocks)
    return " | ".join(
        [
            f"{blocks} | {compared} | {false}",
            f"{share_text(false / compared)} ({share_text(low)} to {share_text(high)})",
            *found,
            "none" if smallest is None else f"+{share_text(smallest)}",
        ]
    )


def _said_last(study: Study) -> list[str]:
    left_out = [Way("wall", filtered=True)] if Way("wall", filtered=True) in ways(study.pairs) else []
    kept = [sum(ratio is not None for ratio in way.log_ratios(study.pairs)) for way in left_out]
    sentences = [
        "A false alarm is a comparison of the program with itself that ends in a difference: the interval of the ratio "
        f"within blocks leaves out 1 and does not lie within {share_text(MARGIN)} of it.",
        "Comparisons follow each other in time and share no block.",
        "A planted slow-down is added to the measured ratios.",
        "The last column is the smallest slow-down that blocks drawn from all of these would show that often.",
    ]
    if kept:
        sentences.append(f"Of {count_text(len(study.pairs))} blocks {count_text(kept[0])} were not disturbed.")
    return [" ".join(sentences)]


def as_json(study: Study) -> dict[str, Any]:
    """The figures of the summary, for programs."""
    found = []
    for way in ways(study.pairs):
        log_ratios = way.log_ratios(study.pairs)
        for blocks in BLOCKS:
            false, compared = alarms(log_ratios, blocks)
            smallest = detectable(log_ratios, blocks)
            found.append(
                {**dataclasses.asdict(way), "blocks": blocks, "comparisons": compared, "false_alarms": false}
                | {"detectable": smallest}
            )
    return {**study.head, "pairs": len(study.pairs), "verdicts": found}
