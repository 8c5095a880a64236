"""What disturbs timing on this machine, what could be done about it, and what the machine can tell apart.

    python -m harness.doctor               a look, then an A/A run of half a minute
    python -m harness.doctor --no-run      the look alone
    python -m harness.doctor --repeat 30   what thirty blocks can tell apart
    python -m harness.doctor --study 300   an A/A study of 300 pairs, and a summary

An A/A run measures one variant against itself. Whatever differs there is the machine's doing.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.common.choices import at_least
from harness.common.comparison import FEWEST_BLOCKS
from harness.common.errors import OK, guarded
from harness.common.files import temporary_folder
from harness.common.media import json_text, terminal_text
from harness.common.progress import Display
from harness.common.sheet import Column, Sheet, print_sheet
from harness.common.streams import Parser
from harness.common.units import count_text, share_text
from harness.measure import lock
from harness.measure.checkup import DISTURBS, UNKNOWN, Finding, Machine, findings
from harness.measure.environment import environment, host
from harness.runs.aa import POWER, SCHEMA, SelfComparison, Twins, detectable, ways
from harness.runs.aa_study import BLOCKS, FILE_NAME, SUMMARY_NAME, as_json, carried_out, read_study, summary

SECONDS = 30.0
REPEAT = 10
FEWEST_PAIRS = 20
STUDY_FOLDER = Path("results", "aa_study")
_SIGNS = {DISTURBS: "!", UNKNOWN: "?"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: command(arguments))


def command(arguments: argparse.Namespace) -> int:
    """Do what was asked. Raises Refusal for what cannot be done."""
    at_least("--repeat", arguments.repeat, FEWEST_BLOCKS)
    console = Console(stderr=arguments.json, highlight=False, markup=False)
    if arguments.replay is not None:
        study = read_study(arguments.replay)
        print(json.dumps(as_json(study)) if arguments.json else summary(study).rstrip())  # noqa: T201
        return OK
    if arguments.study is not None:
        at_least("--study", arguments.study, FEWEST_BLOCKS)
        return carry_out(arguments, console)
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


def measured_pairs(compared: SelfComparison, fewest: int, seconds: float) -> Iterator[Twins]:
    """As many pairs as fit into the time, and at least `fewest`; one of warm-up before them shows how many fit."""
    order = random.Random(0)
    started = time.monotonic()
    compared.pair(-1, order)
    number = max(fewest, int(seconds / (time.monotonic() - started)))
    with Display(1).showing("A/A run", number, "pairs") as on_progress:
        for block in range(number):
            yield compared.pair(block, order)
            on_progress(block + 1)


def resolution(compared: SelfComparison, pairs: Sequence[Twins], repeat: int) -> dict[str, Any]:
    """The smallest slow-down found at the chosen repeats and at others, for each way to compare."""
    counts = sorted({*BLOCKS, repeat})
    return {
        "compared": compared.described(),
        "pairs": len(pairs),
        "sample_seconds": sorted(sample.wall_seconds for pair in pairs for sample in pair)[len(pairs)],
        "power": POWER,
        "detectable": {
            way.name: {blocks: detectable(way.log_ratios(pairs), blocks) for blocks in counts} for way in ways(pairs)
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


def carry_out(arguments: argparse.Namespace, console: Console) -> int:
    """Carry an A/A study out, or go on with one, and print its summary."""
    known = environment()
    with temporary_folder() as folder, lock.timing(arguments.concurrent):
        compared = SelfComparison(arguments.set, folder)
        order = random.Random(0)
        head = {
            "schema": SCHEMA,
            "kind": "aa",
            "command": " ".join(["python -m harness.doctor", f"--study {arguments.study}", *_said(arguments)]),
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "compared": compared.described(),
            "concurrent": arguments.concurrent,
            "host": host(known),
            "environment": known,
        }
        compared.pair(-1, order)
        label = f"A/A study of {compared.cell.variant.name}"
        with Display(1).showing(label, arguments.study, "pairs") as on_progress:
            for done in carried_out(arguments.output, head, arguments.study, lambda block: compared.pair(block, order)):
                on_progress(done)
    study = read_study(arguments.output / FILE_NAME)
    print(json.dumps(as_json(study)) if arguments.json else summary(study).rstrip())  # noqa: T201
    console.print(
        f"{count_text(len(study.pairs))} pairs in {arguments.output / FILE_NAME}, their summary in "
        f"{arguments.output / SUMMARY_NAME}",
        soft_wrap=True,
    )
    return OK


def _said(arguments: argparse.Namespace) -> list[str]:
    """What else decides the pairs and their place, as it was said."""
    said = [f"--set {override}" for override in arguments.set] + ["--concurrent"] * arguments.concurrent
    return said if arguments.output == STUDY_FOLDER else [*said, f"--output {arguments.output}"]


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
    add("--study", type=int, metavar="PAIRS", help="an A/A study of so many pairs; it goes on if it was interrupted")
    add("--output", type=Path, default=STUDY_FOLDER, metavar="FOLDER", help="of a study (default: %(default)s)")
    add("--replay", type=Path, metavar="FILE", help="the summary of a study's pairs, measuring nothing")
    add("--json", action="store_true", help="everything as one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
