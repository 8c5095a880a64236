"""What disturbs timing on this machine, what could be done about it, and what the machine can tell apart.

    python -m harness.doctor               a look, then an A/A run of half a minute
    python -m harness.doctor --no-run      the look alone
    python -m harness.doctor --repeat 30   what thirty blocks can tell apart

An A/A run measures one variant against itself. Whatever differs there is the machine's doing.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.common.comparison import FEWEST_BLOCKS, MARGIN, Sample, cpu_time, interval, sample_of, wall_time
from harness.common.console import Parser, json_text, terminal_text
from harness.common.errors import OK, UNMEASURED, Refusal, guarded
from harness.common.files import temporary_folder
from harness.common.progress import Display
from harness.common.registry import at_least, resolve
from harness.common.sheet import Column, Sheet, print_sheet
from harness.common.units import share_text
from harness.measure import lock
from harness.measure.checkup import DISTURBS, UNKNOWN, Finding, Machine, findings
from harness.measure.process import measure
from harness.runs.cells import TrainCell, train_job
from harness.runs.running import planned
from harness.worker import word_store

SECONDS = 30.0
REPEAT = 10
FEWEST_PAIRS = 20
BLOCKS = (6, 10, 20, 30)
POWER = 0.95
"""The machine resolves a difference that is found in at least this share of runs."""
DRAWS = 1000
USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample takes some 100 ms: long enough for a clock, and short enough for many pairs."""
_SIGNS = {DISTURBS: "!", UNKNOWN: "?"}

Pair = tuple[Sample, Sample]
LogRatios = Sequence[float | None]
"""Logarithms of the ratios of pairs; None for a pair that was too disturbed to compare."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: command(arguments))


def command(arguments: argparse.Namespace) -> int:
    """Do what was asked. Raises Refusal for what cannot be done."""
    at_least("--repeat", arguments.repeat, FEWEST_BLOCKS)
    console = Console(stderr=arguments.json, highlight=False, markup=False)
    seen = findings(Machine())
    if not arguments.json:
        show(seen, console)
    told: dict[str, Any] = {"findings": [dataclasses.asdict(finding) for finding in seen], "resolution": None}
    if not arguments.no_run:
        with temporary_folder() as folder, lock.timing(arguments.concurrent):
            compared = SelfComparison(arguments.set, folder)
            pairs = list(measured_pairs(compared, max(FEWEST_PAIRS, arguments.repeat), arguments.seconds))
        told["resolution"] = resolution(compared, pairs, arguments.repeat)
        if not arguments.json:
            show_resolution(told["resolution"], arguments.repeat, console)
    if arguments.json:
        print(json_text(told))  # noqa: T201
    return OK


def measured_pairs(compared: SelfComparison, fewest: int, seconds: float) -> Iterator[Pair]:
    """As many pairs as fit into the time, and at least `fewest`; one of warm-up before them shows how many fit."""
    started = time.monotonic()
    compared.pair(-1)
    number = max(fewest, int(seconds / (time.monotonic() - started)))
    with Display(1).showing("A/A run", number, "pairs") as on_progress:
        for block in range(number):
            yield compared.pair(block)
            on_progress(block + 1)


def resolution(compared: SelfComparison, pairs: Sequence[Pair], repeat: int) -> dict[str, Any]:
    """The smallest slow-down found at the chosen repeats and at others, for each way to compare."""
    counts = sorted({*BLOCKS, repeat})
    return {
        "compared": compared.described(),
        "pairs": len(pairs),
        "sample_seconds": sorted(sample.wall_seconds for pair in pairs for sample in pair)[len(pairs)],
        "power": POWER,
        "detectable": {
            clock.name: {blocks: detectable(clock.log_ratios(pairs), blocks) for blocks in counts}
            for clock in clocks(pairs)
        },
    }


def show(seen: Sequence[Finding], console: Console) -> None:
    """What was found, with what can be done in the line below it."""
    for finding in seen:
        what = terminal_text(finding.what)
        console.print(f"{_SIGNS.get(finding.state, ' ')} {finding.name:<19}{what}", soft_wrap=True)
        if finding.advice:
            console.print(f"  {'':<19}-> {terminal_text(finding.advice)}", soft_wrap=True)
    bad = sum(finding.state == DISTURBS for finding in seen)
    console.print(f"{bad} of {len(seen)} disturb timing (!); ? is what cannot be seen or is not there", soft_wrap=True)


def show_resolution(study: dict[str, Any], repeat: int, console: Console) -> None:
    """What the machine resolves, and the sentence for the chosen repeats."""
    compared, found = study["compared"], study["detectable"]
    counts = list(next(iter(found.values())))
    caption = (
        f"A/A run: {compared['variant']} against itself on {compared['data']['name']}, {study['pairs']} pairs, "
        f"a sample takes {1000 * study['sample_seconds']:.0f} ms"
    )
    columns = [Column("smallest difference found", list(found), figures=False)]
    columns += [Column(f"repeat={count}", [_smallest(found[way][count]) for way in found]) for count in counts]
    console.print()
    print_sheet(Sheet([caption], columns, ["" for _ in found], []), console)
    way = next(iter(found))
    smallest = found[way][repeat]
    if smallest is None:
        sentence = f"With repeat={repeat} this machine now resolves nothing: it is too busy"
    else:
        sentence = (
            f"With repeat={repeat} this machine now resolves {share_text(smallest)} ({way}): a slow-down by that much "
            f"is found {share_text(POWER)} of the time"
        )
    console.print(f"\n{sentence}.", soft_wrap=True)


def _smallest(share: float | None) -> str:
    return "none" if share is None else share_text(share)


class SelfComparison:
    """One cell, measured again and again; its words are counted once, untimed."""

    def __init__(self, overrides: Sequence[str], folder: Path) -> None:
        """Compose the usual cell with these overrides. Raises Refusal if they describe several cells."""
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
        self.job = train_job(self.cell, self.cell.variant, self.cell.num_merges, words, self.cell.interpreter)

    def pair(self, block: int) -> Pair:
        """Return two samples of one block."""
        return self.sample(block), self.sample(block)

    def sample(self, block: int) -> Sample:
        """Measure the cell once. Raises Refusal if that fails: a comparison of failures means nothing."""
        output = self.folder / "sample"
        try:
            answer = measure(self.job, output, self.cell.limits)
        finally:
            shutil.rmtree(output, ignore_errors=True)
        seconds = {"total": answer.get("total")}
        record = {**answer, "run_id": "doctor", "block": block, "threads": self.cell.threads, "seconds": seconds}
        sample = sample_of(record)
        if answer["status"] != "ok" or sample is None:
            reason = f"{answer['status']}: {answer['reason']}"
            raise Refusal(f"{self.cell.variant.name} could not be compared with itself ({reason})", UNMEASURED)
        return sample

    def described(self) -> dict[str, Any]:
        """Return what was compared, for the output as JSON."""
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
    """Return the usual overrides that these do not replace.

    >>> usual_beside(["data=owt", "variant=flat"])
    ['vocab_size=1000', 'limits.wall=60']
    """
    keys = {override.lstrip("+~").partition("=")[0].partition(".")[0] for override in overrides}
    return [override for override in USUAL if override.partition("=")[0].partition(".")[0] not in keys]


@dataclass(frozen=True)
class Clock:
    """A time that samples are compared by, with or without the pairs that were disturbed."""

    kind: str
    filtered: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind} time{', disturbed blocks left out' if self.filtered else ''}"

    def log_ratios(self, pairs: Iterable[Pair]) -> list[float | None]:
        """Return the logarithm of each pair's ratio, in order; None for a disturbed pair if these are left out."""
        seconds = cpu_time if self.kind == "CPU" else wall_time
        return [
            None if self.filtered and (first.pressed or second.pressed) else math.log(seconds(second) / seconds(first))
            for first, second in pairs
        ]


def clocks(pairs: Sequence[Pair]) -> list[Clock]:
    """Return the clocks that the pairs allow: CPU time needs one thread, leaving out disturbed blocks pressure."""
    samples = [sample for pair in pairs for sample in pair]
    found = [Clock("CPU")] if all(sample.one_thread for sample in samples) else []
    found.append(Clock("wall"))
    return [*found, Clock("wall", filtered=True)] if all(sample.pressure is not None for sample in samples) else found


def detectable(log_ratios: LogRatios, blocks: int, seed: int = 0) -> float | None:
    """Return the smallest slow-down that `blocks` blocks find with probability POWER; None if they find none.

    Blocks are drawn from those measured, in both directions, for either of the two samples might have been the first.
    """
    draw = random.Random(seed)
    both = [*log_ratios, *(None if ratio is None else -ratio for ratio in log_ratios)]
    needed = sorted(_needed(draw.choices(both, k=blocks)) for _ in range(DRAWS))
    enough = needed[math.ceil(POWER * DRAWS) - 1]
    return None if math.isinf(enough) else math.expm1(enough)


def _needed(log_ratios: LogRatios) -> float:
    """Return what has to be added to the ratios so that a slow-down is found."""
    low, high = interval([ratio for ratio in log_ratios if ratio is not None])
    if low is None or high is None:
        return math.inf
    return max(-low, math.log1p(MARGIN) - high, 0.0)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.doctor",
        description=(__doc__ or "").partition("\n")[0],
        epilog="examples:\n"
        + (__doc__ or "").partition("\n\n")[2].replace("\n    ", "\n  ").replace("    ", "  ", 1)
        + "\nexit code: 0; 22 if the A/A run could not be measured; 130 if it was interrupted.",
    )
    add: Callable[..., Any] = parser.add_argument
    add("--no-run", action="store_true", help="look only, measure nothing")
    add(
        "--repeat",
        type=int,
        default=REPEAT,
        metavar="N",
        help="say what N blocks can tell apart (default: %(default)s)",
    )
    add("--seconds", type=float, default=SECONDS, help="how long the A/A run may take (default: %(default)g)")
    add(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="another variant, corpus or width: variant=NAME"
    )
    add("--concurrent", action="store_true", help="measure although another run is being timed on this machine")
    add("--json", action="store_true", help="everything as one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
