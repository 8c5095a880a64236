"""python -m harness.table: records as a table on the terminal, as Markdown, and as CSV for other
programs.

A time is shown only if the merges were right; a dash means "not measured".
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness.common.arguments import Parser
from harness.common.ending import exit_code_of
from harness.common.errors import MISMATCH, OK
from harness.common.escape import frame_to_csv
from harness.common.outputs import check_output, write_output
from harness.common.printing import print_stderr
from harness.common.sheet import Sheet, print_sheets, sheet_to_markdown
from harness.records.file import files_read
from harness.results.export import hyperfine
from harness.results.frame import frame_of
from harness.results.latex import sheet_to_latex
from harness.results.pivot import compared_sheet, pivot_sheet, with_side
from harness.results.profile import profile_sheet, required_profile
from harness.results.rows import Row, is_wrong, rows
from harness.results.selection import add_record_arguments, chosen_rows, records_of, rows_where
from harness.results.tables import TableOptions, tables

CSV = "csv"  # the format in which each row has every field and figure, unrounded
HYPERFINE = "hyperfine"  # JSON for what tracks benchmarks over time
FORMATS = {
    ".txt": "terminal",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": CSV,
    ".json": HYPERFINE,
}
PLAIN = ("columns", "phases", "work", "relative_to")
"""The options of the plain table, which no other layout has."""
_EPILOG = """\
examples:
  python -m harness.table                             the latest run
  python -m harness.table mine.jsonl yours/ --phases  joined, time by phase
  python -m harness.table --format csv > times.csv    raw seconds and bytes
  python -m harness.table --output times.json         as hyperfine's JSON
  python -m harness.table --where variant='heap,flat*' --sort total
  python -m harness.table --columns variant,total,CPU,spread,MB/s,merges/s
  python -m harness.table --pivot variant data --value MB/s
  python -m harness.table --compare old/ new/         side by side
  python -m harness.table results/board --profile     all trainers over all texts at once

total is net time: wall time without waiting for a CPU, or wall time if several threads or processes worked.
ratio is the total divided by that of the first row: with several blocks the median of the ratios within them, with its
95 % interval from 6 blocks on; * if the row makes other merges on purpose. memory is the peak, ~ if it was sampled.
spread is the longest total minus the shortest, divided by the median. MB/s is of the corpus by the total.
> 120 s: the run was stopped at limits.wall, and its ratio is that of the limit; ?: not proved.

exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.
"""


def _parser() -> argparse.ArgumentParser:
    description = "Print records as a table. A time is shown only if the merges were right."
    parser = Parser(prog="python -m harness.table", description=description, epilog=_EPILOG)
    add = parser.add_argument
    add_record_arguments(parser)
    add(
        "--format",
        choices=FORMATS.values(),
        help="choose the form (default: by the end of --output, or terminal)",
    )
    add("--output", metavar="FILE", type=Path, help="write to this file: .md .tex .csv .json .txt")
    add("--phases", action="store_true", help="show the time of each phase, spread and CPU time")
    add("--work", action="store_true", help="show how many times each variant did what")
    add(
        "--notes",
        action="store_true",
        help="show all notes, and the input of each outside trainer",
    )
    add(
        "--relative-to",
        metavar="VARIANT",
        help="divide by this variant or counter (default: the first row)",
    )
    add("--columns", metavar="NAMES", help="show these alone, such as variant,total,memory,proof")
    add("--sort", choices=("appearance", "total"), help="order the rows (default: appearance)")

    layout = parser.add_mutually_exclusive_group()
    layout.add_argument(
        "--pivot",
        nargs=2,
        metavar=("DOWN", "ACROSS"),
        help="lay out one figure of every row by two fields such as variant, data, threads, vocab_size",
    )
    layout.add_argument(
        "--profile",
        action="store_true",
        help="show in what share of cells each trainer is within so many times of the best",
    )
    layout.add_argument(
        "--compare",
        action="store_true",
        help="show two sets of records side by side: --compare LEFT RIGHT",
    )
    add(
        "--value",
        metavar="FIGURE",
        help="choose the figure of --pivot or --compare: total, a phase, memory, MB/s, merges/s, ... (default: total)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = _parser()
    options = parser.parse_intermixed_args(argv)
    if options.format is None:
        ending = ".txt" if options.output is None else options.output.suffix
        if ending not in FORMATS:
            parser.error(
                f"cannot tell a format from {options.output}; end it with one of {', '.join(FORMATS)}"
            )
        options.format = FORMATS[ending]

    layouts = ("pivot", "profile", "compare")
    layout = next((f"--{name}" for name in layouts if getattr(options, name)), None)
    whole = f"--format {options.format}" if options.format in (CSV, HYPERFINE) else None
    if whole and layout:
        parser.error(f"{layout} does not go with {whole}, which has every row")
    for name in PLAIN:
        if getattr(options, name) and (layout or whole):
            parser.error(f"--{name.replace('_', '-')} does not go with {layout or whole}")
    if options.value and layout not in ("--pivot", "--compare"):
        parser.error("--value goes with --pivot or --compare")
    if options.compare and len(options.paths) != 2:
        parser.error("--compare takes two sets of records: --compare LEFT RIGHT")
    return exit_code_of(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    if options.output is not None:
        check_output(options.output, files_read(options.paths))
    shown = two_sets(options) if options.compare else chosen_rows(options)
    if options.sort == "total":
        shown.sort(key=lambda row: row.order)
    value = options.value or "total"
    if options.format == CSV:
        _write(frame_to_csv(frame_of(shown)), options.output)
    elif options.format == HYPERFINE:
        _write(hyperfine(shown), options.output)
        for row in shown:
            if row.total is None:
                print_stderr(f"left out {row.name}: {row.status}: {row.reason}")
    elif options.profile:
        _deliver([profile_sheet(required_profile(shown))], options)
    elif options.pivot:
        _deliver([pivot_sheet(shown, options.pivot, value, whole=options.notes)], options)
    elif options.compare:
        _deliver([compared_sheet(shown, options.paths, value, whole=options.notes)], options)
    else:
        columns = options.columns.split(",") if options.columns else ()
        what = TableOptions(
            columns, options.phases, options.work, options.notes, options.relative_to
        )
        _deliver(tables(shown, what), options)
    return MISMATCH if is_wrong(shown) else OK


def two_sets(options: argparse.Namespace) -> list[Row]:
    """The rows of both sets that are compared, each with its side."""
    records = []
    for side, path in zip(("left", "right"), options.paths, strict=True):
        records += with_side(records_of([path], options.all), side)
    return rows_where(rows(records), options.where)


def _deliver(sheets: Sequence[Sheet], options: argparse.Namespace) -> None:
    if options.format == "markdown":
        _write(markdown(sheets), options.output)
    elif options.format == "latex":
        _write("\n".join(map(sheet_to_latex, sheets)), options.output)
    elif options.output is None:
        print_sheets(sheets)
    else:
        page = io.StringIO()
        print_sheets(sheets, Console(file=page, force_terminal=False))
        _write(page.getvalue(), options.output)


def _write(text: str, output: Path | None) -> None:
    """Print what was requested, or write it to a file, whole or not at all."""
    if output is None:
        sys.stdout.write(text)
    else:
        write_output(output, text.encode(errors="replace"))


def markdown(sheets: Sequence[Sheet]) -> str:
    return "\n".join(map(sheet_to_markdown, sheets))


if __name__ == "__main__":
    sys.exit(main())
