"""Records as pictures.

    python -m harness.plot                                          results/local/phases.svg, of the latest run there
    python -m harness.plot a.jsonl b --output phases.png            joined, as a PNG
    python -m harness.plot results/readme/ladder --kind ladder --output ladder.svg
    python -m harness.plot results/readme/ladder --kind all --output pictures/

A pure function of records. A time is drawn only where the merges were right; what was estimated or cut short has marks
of its own, and what has no time is named below the picture.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common.console import Parser, say, tell
from harness.common.errors import OK, UNMEASURED, WHOLE_FILES, Refusal, guarded
from harness.results.charts.chart import Request
from harness.results.charts.files import check_suffix, save
from harness.results.charts.kinds import KINDS
from harness.results.charts.layout import figure_of
from harness.results.charts.questions import CONDITIONS, chosen
from harness.results.charts.values import QUANTITIES
from harness.results.chosen import DEFAULT_RESULTS, add_record_arguments, chosen_records
from harness.results.colours import DARK, LIGHT
from harness.results.rows import rows
from harness.table import exit_code

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Sequence[Mapping[str, Any]]
EVERY = "all"
PLAIN = next(iter(KINDS))


def draw(records: Records, kind: str = PLAIN, request: Request | None = None, where: Sequence[str] = ()) -> Figure:
    """The picture of one kind of these records. Raises Refusal where they do not have what it takes."""
    request = request or Request()
    return figure_of(KINDS[kind].describe(chosen(rows(records), where), request), request.theme)


def _draw_all(records: Records, folder: Path, request: Request, where: Sequence[str], follow: bool) -> int:
    """Every kind that the records support, in one folder; says which, and why not the others."""
    drawn = 0
    for kind in KINDS:
        path = folder / f"{kind}.svg"
        try:
            save(draw(records, kind, request, where), path, follow)
        except Refusal as refusal:
            say(f"no {kind}: {refusal}")
            continue
        drawn += 1
        tell(f"wrote {path}")
    return OK if drawn else UNMEASURED


def _parser() -> argparse.ArgumentParser:
    kinds = "\n".join(f"  {name:<11} {kind.shows}" for name, kind in KINDS.items())
    about = textwrap.fill(", ".join(CONDITIONS), 100)
    parser = Parser(
        prog="python -m harness.plot",
        description="Draw records. A time is drawn only if the merges were right. Estimates and stopped runs have\n"
        "their own marks, and rows without a time are named below the picture.",
        epilog=f"kinds:\n{kinds}\n  {EVERY:<11} every kind that the records support, into the folder --output\n\n"
        "examples:\n"
        "  python -m harness.plot                                       the latest run\n"
        "  python -m harness.plot mine.jsonl yours/ --output both.png   joined, as a PNG\n"
        "  python -m harness.plot --kind ladder --where data=stdlib --where 'variant=naive,heap*'\n"
        "  python -m harness.plot results/readme/ladder --kind all --output pictures\n\n"
        f"--where NAME=VALUE can be about\n{about}.\n"
        "A VALUE may have wildcards and commas. An SVG is light or dark like its reader's system; a PNG is\n"
        "light. --theme sets either.\n\n"
        "exit code: 0; 2 for a usage error, or if there is too much for one picture; 21 if merges are wrong or\n"
        "rows contradict each other; 22 if the records lack what the picture needs.",
    )
    add_record_arguments(parser)
    parser.add_argument(
        "--kind", choices=[*KINDS, EVERY], default=PLAIN, metavar="KIND", help="see below (default: %(default)s)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help=f".svg or .png (default: {DEFAULT_RESULTS}/KIND.svg); with --kind {EVERY} a folder",
    )
    parser.add_argument("--where", metavar="NAME=VALUE", action="append", default=[], help="only such rows; repeatable")
    parser.add_argument(
        "--seconds",
        choices=QUANTITIES,
        default=QUANTITIES[0],
        help="of what: all but reading and counting, the whole way, or the processors on it (default: %(default)s)",
    )
    parser.add_argument("--relative-to", metavar="VARIANT", help="whose time ratios are of (default: the fastest row)")
    parser.add_argument("--theme", choices=("auto", "light", "dark"), default="auto", help="(default: %(default)s)")
    parser.add_argument("--title", help="instead of the one that says what was measured")
    parser.add_argument("--log", action="store_true", help="phases: totals on a log axis, phases as shares")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: command(arguments), WHOLE_FILES)


def command(arguments: argparse.Namespace) -> int:
    theme = DARK if arguments.theme == "dark" else LIGHT
    follow = arguments.theme == "auto"
    asked = Request(theme, arguments.title, arguments.seconds, arguments.relative_to, arguments.log)
    output = arguments.output or Path(DEFAULT_RESULTS, "" if arguments.kind == EVERY else f"{arguments.kind}.svg")
    if arguments.kind != EVERY:
        check_suffix(output)
    records = chosen_records(arguments)
    if arguments.kind == EVERY:
        return _draw_all(records, output, asked, arguments.where, follow) or exit_code(records)
    save(draw(records, arguments.kind, asked, arguments.where), output, follow)
    tell(f"wrote {output}")
    return exit_code(records)


if __name__ == "__main__":
    sys.exit(main())
