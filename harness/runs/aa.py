"""A/A runs: a program measured against itself in blocks, each sample in a fresh process, as in any measurement.

Between samples of one block there is no difference but what was planted, so a difference that is found is a false
alarm; and adding one to their ratios shows which would have been found. `SelfComparison` measures one cell of the
user's for `harness.doctor`; the gate's self-test measures a kernel of its own with the same blocks, files and rates.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness.common.comparison import (
    MARGIN,
    Sample,
    cpu_time,
    differ,
    interval,
    sample_of,
    wall_time,
)
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import read_whole, write_whole
from harness.common.registry import resolve
from harness.measure.process import measure
from harness.runs.cells import TrainCell, train_job
from harness.runs.running import planned
from harness.worker import word_store

USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample of some 100 ms, long enough for a clock and short enough for hundreds of pairs."""


SCHEMA = 1
KIND = "aa"
FIRST, SECOND = "first", "second"
POWER = 0.95
"""How often a difference must be found for the machine to be said to resolve it."""
DRAWS = 1000

Block = Mapping[str, Sample]
"""A sample of each program that was measured in turns, by its name."""
Twins = tuple[Sample, Sample]
"""Two samples of one program in one block."""
OfBlock = TypeVar("OfBlock")
LogRatios = Sequence[float | None]
"""The logarithms of the ratios of twins; None for those that were too disturbed to be compared."""


def measured_block(programs: Sequence[str], sample: Callable[[str], Sample], order: random.Random) -> Block:
    """A sample of each of these programs, in random order."""
    return {name: sample(name) for name in order.sample(programs, len(programs))}


def sample_of_answer(answer: Mapping[str, Any], run: str, block: int, threads: int) -> Sample | None:
    """The sample that a measurement's answer holds; None for one without a total."""
    seconds = {"total": answer.get("total")}
    return sample_of({**answer, "run_id": run, "block": block, "threads": threads, "seconds": seconds})


class Form(NamedTuple):
    """How a file of blocks is written: what its first line calls it, and the figures of a sample."""

    kind: str
    decimals: Mapping[str, int]
    """Those of each figure."""
    named: bool
    """Whether each figure stands with its name, or all in this order."""

    def line(self, number: int, block: Block) -> str:
        samples = {name: self._figures(sample) for name, sample in block.items()}
        separators = None if self.named else (",", ":")
        return json.dumps({"block": number, **samples}, separators=separators) + "\n"

    def _figures(self, sample: Sample) -> dict[str, Any] | list[Any]:
        known = {name: getattr(sample, name) for name in self.decimals}
        figures = {name: None if (told := known[name]) is None else round(told, self.decimals[name]) for name in known}
        return figures if self.named else list(figures.values())

    def block(self, line: str, threads: int) -> Block:
        """The block of a line."""
        said = json.loads(line)
        number = int(said.pop("block"))
        figures = said if self.named else {name: dict(zip(self.decimals, said[name], strict=True)) for name in said}
        return {name: Sample(self.kind, number, threads=threads, **known) for name, known in figures.items()}


def read_blocks(path: Path, form: Form) -> tuple[dict[str, Any], list[Block]]:
    """The first line of a file and its blocks; a last line that was cut off is left out.

    Raises OSError, or ValueError, KeyError, TypeError or AttributeError for a file that is none of this form.
    """
    first, *lines = read_whole(path).decode().split("\n")
    head = json.loads(first)
    if (head.get("schema"), head.get("kind")) != (SCHEMA, form.kind):
        raise ValueError(f"its first line is not of {form.kind}, schema {SCHEMA}")
    threads = int(head.get("compared", {}).get("threads", 1))
    return head, [form.block(line, threads) for line in lines[:-1]]


class BlockFile:
    """Blocks on disk as they come: the first line says of what, each other line is a block."""

    def __init__(self, path: Path, form: Form, head: Mapping[str, Any], blocks: Sequence[Block] = ()) -> None:
        """Begin a file, or go on with these blocks of it, without a line that was cut off."""
        self.form = form
        self.blocks = list(blocks)
        lines = [form.line(number, block) for number, block in enumerate(self.blocks)]
        write_whole(path, "".join([json.dumps(dict(head)) + "\n", *lines]).encode(), exit_code=UNMEASURED)
        self.file = path.open("a")

    def add(self, block: Block) -> None:
        self.file.write(self.form.line(len(self.blocks), block))
        self.file.flush()
        self.blocks.append(block)

    def close(self) -> None:
        self.file.close()


class SelfComparison:
    """One cell, measured again and again; its words are counted once, untimed."""

    def __init__(self, overrides: Sequence[str], folder: Path) -> None:
        """Compose the cell: the usual one, with the overrides of whoever wants another."""
        cells, _ = planned([*usual_beside(overrides), *overrides])
        if len(cells) != 1:
            raise Refusal(
                f"an A/A run is of one cell, and these are {len(cells)}; name one variant, one corpus, one width"
            )
        self.cell: TrainCell = cells[0]
        self.folder = folder
        words = folder / "words"
        counter = resolve(self.cell.count.counter.target)
        word_store.write(words, counter(self.cell.reading.corpus, **self.cell.count.counter.params))
        cell = self.cell
        self.job = train_job(cell, cell.variant, cell.num_merges, words, cell.interpreter)

    def sample(self, block: int) -> Sample:
        """Measure it once. Raises Refusal if it cannot be measured: a comparison of failures says nothing."""
        output = self.folder / "sample"
        try:
            answer = measure(self.job, output, self.cell.limits)
        finally:
            shutil.rmtree(output, ignore_errors=True)
        found = sample_of_answer(answer, KIND, block, self.cell.threads)
        if answer["status"] != "ok" or found is None:
            told = f"{answer['status']}: {answer['reason']}"
            raise Refusal(f"{self.cell.variant.name} could not be compared with itself ({told})", UNMEASURED)
        return found

    def pair(self, block: int, order: random.Random) -> Twins:
        """Two samples of one block; chance decides which of the two that are the same is called the first."""
        return twins_in(measured_block((FIRST, SECOND), lambda _: self.sample(block), order))

    def described(self) -> dict[str, Any]:
        """What was compared with itself, for whoever reads the figures later."""
        file = self.cell.reading.file
        return {
            "variant": self.cell.variant.name,
            "params": dict(self.cell.variant.params),
            "threads": self.cell.threads,
            "data": {"name": file.name, "bytes": file.bytes, "sha256": file.sha256},
            "pattern": self.cell.reading.pattern_name,
            "vocab_size": self.cell.vocab_size,
        }


def usual_beside(overrides: Sequence[str]) -> list[str]:
    """What is usual, as far as the overrides say nothing of it.

    >>> usual_beside(["data=owt", "variant=flat"])
    ['vocab_size=1000', 'limits.wall=60']
    """
    said = {override.lstrip("+~").partition("=")[0].partition(".")[0] for override in overrides}
    return [override for override in USUAL if override.partition("=")[0].partition(".")[0] not in said]


def twins_in(block: Block) -> Twins:
    return block[FIRST], block[SECOND]


@dataclass(frozen=True)
class Way:
    """A way to compare samples: by which clock, and whether disturbed pairs are left out."""

    clock: str
    filtered: bool = False

    @property
    def name(self) -> str:
        return f"{self.clock} time{', disturbed blocks left out' if self.filtered else ''}"

    def log_ratios(self, pairs: Iterable[Twins]) -> list[float | None]:
        """Of every pair, in order; nothing for pairs that lack what the way needs."""
        time = cpu_time if self.clock == "CPU" else wall_time
        return [
            None if self.filtered and (first.pressed or second.pressed) else math.log(time(second) / time(first))
            for first, second in pairs
        ]


def ways(pairs: Sequence[Twins]) -> list[Way]:
    """Those for which the pairs hold what is needed: CPU time of one thread, wall time, pressure."""
    samples = [sample for pair in pairs for sample in pair]
    found = [Way("CPU")] if all(sample.one_thread for sample in samples) else []
    found.append(Way("wall"))
    return [*found, Way("wall", filtered=True)] if all(sample.pressure is not None for sample in samples) else found


def found_different(log_ratios: LogRatios, shift: float = 0.0) -> bool:
    """Whether these blocks are found to differ, with the logarithm of a planted ratio added to each."""
    low, high = interval([ratio + shift for ratio in log_ratios if ratio is not None])
    return low is not None and high is not None and differ(math.exp(low), math.exp(high))


def windows(blocks: Sequence[OfBlock], number: int) -> list[Sequence[OfBlock]]:
    """What was seen in blocks, cut into as many comparisons of that number as there are, none used twice.

    >>> windows([0.1, 0.2, 0.3, 0.4, 0.5], 2)
    [[0.1, 0.2], [0.3, 0.4]]
    """
    return [blocks[start : start + number] for start in range(0, len(blocks) - number + 1, number)]


def alarms(log_ratios: LogRatios, blocks: int, planted: float = 0.0) -> tuple[int, int]:
    """In how many of how many comparisons of `blocks` blocks a difference was found, with one planted or none."""
    compared = windows(log_ratios, blocks)
    return sum(found_different(window, math.log1p(planted)) for window in compared), len(compared)


def detectable(log_ratios: LogRatios, blocks: int, seed: int = 0) -> float | None:
    """The smallest slow-down that is found by `blocks` blocks as often as POWER says; None if none can be.

    Blocks are drawn from those measured, either way round, for which of the two was first was left to chance.
    """
    draw = random.Random(seed)
    both = [*log_ratios, *(None if ratio is None else -ratio for ratio in log_ratios)]
    needed = sorted(_needed(draw.choices(both, k=blocks)) for _ in range(DRAWS))
    # The smallest that is enough for this share of the draws.
    enough = needed[math.ceil(POWER * DRAWS) - 1]
    return None if math.isinf(enough) else math.expm1(enough)


def _needed(window: LogRatios) -> float:
    """What has to be added to a window's ratios so that a slow-down is found."""
    low, high = interval([ratio for ratio in window if ratio is not None])
    if low is None or high is None:
        return math.inf
    return max(-low, math.log1p(MARGIN) - high, 0.0)


def rate_interval(some: int, of: int) -> tuple[float, float]:
    """Between which rates `some` of `of` may lie, with 95 % confidence.

    >>> [round(end, 3) for end in rate_interval(0, 246)]
    [0.0, 0.015]
    """
    from scipy.stats import binomtest  # here: see harness.comparison

    found = binomtest(some, of).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)
