"""Records as charts.

    python -m harness.plot                                          results/local/phases.svg, of the latest run there
    python -m harness.plot a.jsonl b --output phases.png            joined, as a PNG
    python -m harness.plot results/readme/ladder --kind ladder --output ladder.svg
    python -m harness.plot results/readme/ladder --kind all --output pictures/

A time is drawn only if the merges were right; rows without a time are named below the chart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common.console import Parser, say, tell
from harness.common.errors import MISMATCH, OK, UNMEASURED, WHOLE_FILES, Refusal, guarded
from harness.results.charts import ChartOptions
from harness.results.drawing import check_suffix, draw_chart, save
from harness.results.rows import QUANTITIES, is_wrong, rows
from harness.results.scaling import KINDS
from harness.results.selection import CONDITIONS, DEFAULT_RESULTS, add_record_arguments, chosen_rows, rows_where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVERY, PLAIN = "all", next(iter(KINDS))
_EPILOG = f"""\
kinds:
{chr(10).join(f"  {name:<11} {shows}" for name, (shows, _) in KINDS.items())}
  {EVERY:<11} every kind that the records support, into the folder --output

examples:
  python -m harness.plot                                       the latest run
  python -m harness.plot mine.jsonl yours/ --output both.png   joined, as a PNG
  python -m harness.plot --kind ladder --where data=stdlib --where 'variant=naive,heap*'
  python -m harness.plot results/readme/ladder --kind all --output pictures

--where NAME=VALUE can be about {", ".join(CONDITIONS)}.
A VALUE may have wildcards and commas. An SVG is light or dark like its reader's system; a PNG is light.

exit code: 0; 2 for a usage error, or if there is too much for one chart; 21 if merges are wrong or rows contradict \
each other; 22 if the records lack what the chart needs."""


def draw(
    records: Sequence[Mapping[str, Any]],
    kind: str = PLAIN,
    options: ChartOptions | None = None,
    where: Sequence[str] = (),
) -> Figure:
    """The chart of one kind of these records as a figure. Raises Refusal if they do not have what it takes."""
    return draw_chart(KINDS[kind][1](rows_where(rows(records), where), options or ChartOptions()))


def _parser() -> argparse.ArgumentParser:
    description = "Draw records. A time is drawn only if the merges were right; rows without a time are named below."
    parser = Parser(prog="python -m harness.plot", description=description, epilog=_EPILOG)
    add = parser.add_argument
    add_record_arguments(parser)
    add("--kind", choices=[*KINDS, EVERY], default=PLAIN, metavar="KIND", help="see below (default: %(default)s)")
    output = f".svg or .png (default: {DEFAULT_RESULTS}/KIND.svg); with --kind {EVERY} a folder"
    add("--output", metavar="FILE", type=Path, help=output)
    seconds = "of what: all but reading and counting, the whole way, or the processors on it (default: %(default)s)"
    add("--seconds", choices=QUANTITIES, default=QUANTITIES[0], help=seconds)
    add("--relative-to", metavar="VARIANT", help="whose time ratios are of (default: the fastest row)")
    add("--title", help="instead of the result")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: _command(arguments), WHOLE_FILES)


def _command(arguments: argparse.Namespace) -> int:
    every = arguments.kind == EVERY
    folder = arguments.output or Path(DEFAULT_RESULTS)
    paths = {kind: folder / f"{kind}.svg" for kind in (KINDS if every else [arguments.kind])}
    if not every and arguments.output is not None:
        paths = {arguments.kind: arguments.output}
        check_suffix(arguments.output)
    shown = chosen_rows(arguments)
    options = ChartOptions(arguments.title, arguments.seconds, arguments.relative_to)
    drawn = 0
    for kind, path in paths.items():
        try:
            save(KINDS[kind][1](shown, options), path)
        except Refusal as refusal:
            if not every:
                raise
            say(f"no {kind}: {refusal}")
        else:
            drawn += 1
            tell(f"wrote {path}")
    return UNMEASURED if not drawn else MISMATCH if is_wrong(shown) else OK


if __name__ == "__main__":
    sys.exit(main())
