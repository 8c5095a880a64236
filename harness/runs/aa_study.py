"""An A/A study: hundreds of twins of one program in a file of their own, and what they say of this harness's verdict.

The file holds one line of JSON that says what was compared where and when, then a line for each pair. A study that
was interrupted goes on where it was; the file of a finished one is replaced only when the next is finished.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.common.comparison import MARGIN, MOST_PRESSURE, Sample, spread
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.runs.aa import (
    FIRST,
    KIND,
    POWER,
    SECOND,
    BlockFile,
    Form,
    Twins,
    Way,
    alarms,
    detectable,
    rate_interval,
    read_blocks,
    twins_in,
    ways,
)

FILE_NAME = "pairs.jsonl"
SUMMARY_NAME = "README.md"
BLOCKS = (6, 10, 20, 30)
PLANTED = (0.02, 0.05)
BESIDE = " Other runs were measured at the same time."
FORM = Form(KIND, dict.fromkeys(("wall_seconds", "cpu_seconds", "pressure", "steal"), 6), named=True)
"""Of a study: hundreds of twins of one program, and what they say of this harness's verdict."""


@dataclass(frozen=True)
class Study:
    """What was compared with itself, and the pairs in the order in which they were measured."""

    head: dict[str, Any]
    pairs: list[Twins]


def read_study(path: Path) -> Study:
    """Read a study's file. Raises Refusal if it is none; a last line that was cut off is left out."""
    try:
        head, blocks = read_blocks(path, FORM)
        return Study(head, [twins_in(block) for block in blocks])
    except OSError as error:
        raise Refusal(
            f"cannot read {path} ({error.strerror or error}); python -m harness.doctor --study 300 makes one"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is no A/A study ({error})", UNMEASURED) from error


def carried_out(folder: Path, head: dict[str, Any], number: int, measure: Callable[[int], Twins]) -> Iterator[int]:
    """Measure pairs until there are `number`, each written at once; yields how many there are.

    Goes on with an unfinished study of the same program on the same machine, and puts the whole one in its place.
    """
    partial = folder / f"{FILE_NAME}.partial"
    before = _unfinished(partial, head) or Study(head, [])
    blocks = [{FIRST: first, SECOND: second} for first, second in before.pairs]
    with contextlib.closing(BlockFile(partial, FORM, before.head, blocks)) as file:
        for block in range(len(blocks), number):
            first, second = measure(block)
            file.add({FIRST: first, SECOND: second})
            yield block + 1
    partial.replace(folder / FILE_NAME)
    (folder / SUMMARY_NAME).write_text(summary(read_study(folder / FILE_NAME)))


def _unfinished(partial: Path, head: dict[str, Any]) -> Study | None:
    """What there is already of this study."""
    try:
        found = read_study(partial)
    except Refusal:
        return None
    told_anew = {"started": None, "command": None}
    return found if {**found.head, **told_anew} == {**head, **told_anew} else None


def summary(study: Study) -> str:
    """The study in words and figures, as the page in the folder of its file."""
    return "\n".join([*_said_first(study), "", *_table(study), "", *_said_last(study)]) + "\n"


def _said_first(study: Study) -> list[str]:
    head, pairs = study.head, study.pairs
    compared, machine = head["compared"], head["environment"]
    samples = [sample for pair in pairs for sample in pair]
    walls = [sample.wall_seconds for sample in samples]
    threads = counted_text(compared["threads"], "thread")
    return [
        "# A/A study",
        "",
        f"`{compared['variant']}` against itself: {count_text(len(pairs))} pairs, each sample in a fresh process, on "
        f"{bytes_text(compared['data']['bytes'])} of {compared['data']['name']}, vocabulary "
        f"{count_text(compared['vocab_size'])}, {threads}. {machine['cpu']}, {machine['cores']} processors, "
        f"{machine['kernel']}, {machine['python']}, {head['started'][:10]}.",
        "",
        f"`{head['command']}` made it; the same command writes `{FILE_NAME}` and this page again.",
        "",
        f"A sample takes {1000 * median(walls):.0f} ms of wall time; the longest and the shortest differ by "
        f"{share_text(spread(walls) or 0)} of that. {_load(samples)}{BESIDE if head['concurrent'] else ''}",
    ]


def _load(samples: Sequence[Sample]) -> str:
    """How busy the machine was."""
    known = [sample.pressure for sample in samples if sample.pressure is not None]
    if not known:
        return "The kernel did not say how busy the machine was."
    pressed = sum(pressure > MOST_PRESSURE for pressure in known) / len(known)
    return (
        f"In the median sample something waited for a processor for {share_text(median(known))} of the time (the "
        f"kernel calls this pressure); in {share_text(pressed)} of the samples for over {share_text(MOST_PRESSURE)}."
    )


def _table(study: Study) -> list[str]:
    planted = " | ".join(f"+{share_text(share)} found" for share in PLANTED)
    lines = [
        f"| compared | blocks | comparisons | false alarms | rate (95 % interval) | {planted} "
        f"| found {share_text(POWER)} of the time |",
        "|---|---:|---:|---:|---|" + "---:|" * (len(PLANTED) + 1),
    ]
    for way in ways(study.pairs):
        lines += [f"| {way.name} | {_line(study.pairs, way, blocks)} |" for blocks in BLOCKS]
    return lines


def _line(pairs: Sequence[Twins], way: Way, blocks: int) -> str:
    log_ratios = way.log_ratios(pairs)
    false, compared = alarms(log_ratios, blocks)
    if not compared:
        return f"{blocks} | 0 | - | - | {'- | ' * len(PLANTED)}-"
    low, high = rate_interval(false, compared)
    found = [share_text(alarms(log_ratios, blocks, planted)[0] / compared) for planted in PLANTED]
    smallest = detectable(log_ratios, blocks)
    rate = f"{share_text(false / compared)} ({share_text(low)} to {share_text(high)})"
    resolved = "none" if smallest is None else f"+{share_text(smallest)}"
    return " | ".join([f"{blocks} | {compared} | {false}", rate, *found, resolved])


def _said_last(study: Study) -> list[str]:
    sentences = [
        "A false alarm is a comparison of the program with itself that finds a difference: the interval of the ratio "
        f"within blocks does not contain 1, and is not within {share_text(MARGIN)} of it.",
        "Comparisons follow each other in time and share no block.",
        "A planted slow-down is added to the measured ratios.",
        "The last column is the smallest slow-down that is found that often in blocks drawn at random.",
    ]
    undisturbed = Way("wall", filtered=True)
    if undisturbed in ways(study.pairs):
        kept = sum(ratio is not None for ratio in undisturbed.log_ratios(study.pairs))
        sentences.append(f"Of {count_text(len(study.pairs))} blocks {count_text(kept)} were not disturbed.")
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
