"""The command python -m harness.forecast: what a corpus of any size will need, from slices that are measured here."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.errors import OK, Refusal, guarded
from harness.common.files import temporary_folder
from harness.common.sheet import Column, PatientConsole, Sheet, print_sheet, sheet_to_markdown
from harness.common.streams import Parser, tell
from harness.common.units import bytes_text, count_text, duration_text, parse_bytes
from harness.measure.environment import memory_bytes
from harness.runs.asked import data_override
from harness.runs.drift import Drifted, drifts, sheet_of
from harness.runs.forecasting import Check, Slice, checked, grown, measured_slices
from harness.runs.growth import COUNTING_MEMORY, KINDS, REPEATED, TRAINING_MEMORY, WORDS, Expected, Growth

DESCRIPTION = """\
Measure slices of a corpus and predict what a larger one will need: distinct words, the size of
their table, seconds and memory of counting and of training, each with an interval that is
meant to hold nine times in ten. The largest slice is also compared with what the smaller ones
predict for it."""
EPILOG = """\
examples:
  python -m harness.forecast --data owt --bytes 1TB variant=flat counting=native
  python -m harness.forecast --data book.txt --bytes 100GB --sizes 1MB,4MB,16MB
  python -m harness.forecast --data owt --drift vocab_size=32000

exit code: 0; 2 for a usage error; 22 if a slice could not be measured."""
SIZES = "1MB,10MB,100MB,1GB"
SHARE_OF_MEMORY = 0.8
MOST_TEXT = 10**15


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.forecast",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    made.add_argument("overrides", metavar="NAME=VALUE", nargs="*", help="as for python -m harness")
    made.add_argument("--data", metavar="NAME|FILE", help="a data set or a file (default: that of python -m harness)")
    made.add_argument("--bytes", default="1TB", metavar="SIZE", help="of the corpus (default: %(default)s)")
    made.add_argument("--machine", metavar="MEMORY", help="such as 64GB: where one ends (default: this machine's)")
    made.add_argument("--sizes", default=SIZES, help="of the slices (default: %(default)s, those that there are)")
    made.add_argument("--drift", action="store_true", help="how merges change if less text or fewer words are taken")
    made.add_argument("--format", choices=("terminal", "markdown", "json"), default="terminal")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: command(parser().parse_intermixed_args(argv)))


def command(asked: argparse.Namespace) -> int:
    overrides = checked_overrides([*data_override(asked.data), *asked.overrides])
    sizes = [size.strip() for size in asked.sizes.split(",")]
    for size in sizes:
        parse_bytes(size, "--sizes")
    if asked.drift:
        show_drift(drifts(overrides, sizes), asked.format)
        return OK
    target = parse_bytes(asked.bytes, "--bytes")
    memory = parse_bytes(asked.machine, "--machine") if asked.machine else memory_bytes("MemTotal")
    with temporary_folder() as folder:
        slices = measured_slices(overrides, sizes, Path(folder))
    forecast = Forecast(slices, grown(slices), checked(slices), target, memory)
    if asked.format == "json":
        json.dump(as_json(forecast), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        show(forecast_sheet(forecast), asked.format)
    return OK


def checked_overrides(overrides: list[str]) -> list[str]:
    said = {override.partition("=")[0] for override in overrides}
    for key in ("data.bytes", "data.documents", "counts"):
        if key in said:
            raise Refusal(f"{key} is not for a forecast, which takes slices of its own; say --sizes")
    return overrides


class Forecast(NamedTuple):
    """Slices, how their figures grow, what was checked; the size that is asked about, and a machine's memory."""

    slices: list[Slice]
    growths: Mapping[str, Growth]
    checks: list[Check]
    target: int
    memory: int | None


def text_of(name: str, value: float) -> str:
    if name.startswith("seconds"):
        return duration_text(value) if value >= 1 else f"{value:.3g} s"
    return count_text(round(value)) if "words" in name and "bytes" not in name else bytes_text(round(value))


def interval_text(name: str, expected: Expected) -> str:
    return f"{text_of(name, expected.value)} ({text_of(name, expected.low)} to {text_of(name, expected.high)})"


def forecast_sheet(forecast: Forecast) -> Sheet:
    largest, names = forecast.slices[-1], [kind.name for kind in KINDS if kind.name in forecast.growths]
    growths = forecast.growths
    columns = [Column("", names, figures=False)]
    columns += [
        Column(f"at {bytes_text(each.size)}", [text_of(name, each.figures[name]) for name in names])
        for each in forecast.slices
    ]
    columns.append(Column("grows as bytes^", [f"{growths[name].exponent:.2f}" for name in names]))
    if forecast.checks:
        held = {check.name: check for check in forecast.checks}
        columns.append(
            Column(
                f"predicted for {bytes_text(largest.size)} without it",
                [interval_text(name, held[name].expected) if name in held else "" for name in names],
            )
        )
    expected = [interval_text(name, growths[name].expected(forecast.target)) for name in names]
    columns.append(Column(f"at {bytes_text(forecast.target)}", expected))
    return Sheet([], columns, [""] * len(names), notes_on(forecast))


def text_bytes(size: float) -> str:
    """A size of text; what is beyond all text is no number."""
    return bytes_text(round(size)) if size < MOST_TEXT else f"over {bytes_text(MOST_TEXT)}"


def notes_on(forecast: Forecast) -> list[str]:
    notes = []
    if forecast.checks:
        missed = [check.name for check in forecast.checks if not check.held]
        told = f"all but {', '.join(missed)}" if missed else "all"
        notes.append(
            f"the largest slice, predicted from the others: {told} of {len(forecast.checks)} figures are within their "
            "interval"
        )
    if forecast.memory is not None:
        usable = SHARE_OF_MEMORY * forecast.memory
        for kind, instead in (
            (COUNTING_MEMORY, "beyond it counting.memory=SIZE spills, counting=dask divides the text"),
            (TRAINING_MEMORY, "beyond it leave out rare words or train on a sample"),
        ):
            if kind.name in forecast.growths:
                ends = forecast.growths[kind.name].reaches(usable)
                about = "about " * (ends.value < MOST_TEXT)
                notes.append(
                    f"a machine of {bytes_text(forecast.memory)} has room for the {kind.name} of {about}"
                    f"{text_bytes(ends.value)} of text ({text_bytes(ends.low)} to {text_bytes(ends.high)}); {instead}"
                )
    if WORDS.name in forecast.growths and REPEATED.name in forecast.growths:
        words, repeated = (forecast.growths[kind.name].expected(forecast.target).value for kind in (WORDS, REPEATED))
        notes.append(f"without the words that are seen only once the table has {repeated / words:.0%} of its words")
    return notes


def as_json(forecast: Forecast) -> dict[str, Any]:
    return {
        "slices": [{"bytes": each.size, **each.figures} for each in forecast.slices],
        "growth": {
            name: {"exponent": each.exponent, "at": asdict(each.expected(forecast.target))}
            for name, each in forecast.growths.items()
        },
        "bytes": forecast.target,
        "checks": [
            {"name": check.name, "expected": asdict(check.expected), "found": check.found, "held": check.held}
            for check in forecast.checks
        ],
    }


def show_drift(drifted: Sequence[Drifted], form: str) -> None:
    if form == "json":
        json.dump([each._asdict() for each in drifted], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        show(sheet_of(drifted), form)


def show(sheet: Sheet, form: str) -> None:
    if form == "markdown":
        tell(sheet_to_markdown(sheet).rstrip("\n"))
    else:
        print_sheet(sheet, PatientConsole())


if __name__ == "__main__":
    sys.exit(main())
