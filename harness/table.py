"""python -m harness.table: records as a table on the terminal, as Markdown, and as CSV for other
programs.

A time is shown only if the merges were right; a dash means "not measured".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK
from harness.common.files import check_output, write_output
from harness.common.printing import frame_to_csv, print_stderr
from harness.common.sheet import Sheet, print_sheets, sheet_to_markdown, sheet_to_text
from harness.records.file import files_read
from harness.results.frame import frame_of, hyperfine, sheet_to_latex
from harness.results.lines import profile_of, profile_sheet
from harness.results.rows import Row, is_wrong, rows
from harness.results.selection import add_record_arguments, chosen_rows, records_of, rows_where
from harness.results.tables import TableOptions, compared_sheet, pivot_sheet, tables

CSV = "csv"  # the format in which each row has every field and figure, unrounded
HYPERFINE = "hyperfine"  # JSON for what tracks benchmarks over time
FORMATS = {
    ".txt": "terminal",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": CSV,
    ".json": HYPERFINE,
}
WRITERS = {"terminal": sheet_to_text, "markdown": sheet_to_markdown, "latex": sheet_to_latex}
LAYOUTS = ("compare", "profile", "pivot")
PLAIN = ("columns", "phases", "work", "relative_to")
"""The options of the plain table, which goes with none of the layouts."""
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

    add(
        "--pivot",
        nargs=2,
        metavar=("DOWN", "ACROSS"),
        help="lay out one figure of every row by two fields such as variant, data, threads, vocab_size",
    )
    add(
        "--profile",
        action="store_true",
        help="show in what share of cells each trainer is within so many times of the best",
    )
    add(
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

    forms = [f"--format {form}" for form in (CSV, HYPERFINE) if form == options.format]
    layouts = [f"--{name}" for name in LAYOUTS if getattr(options, name)] + forms
    plain = [f"--{name.replace('_', '-')}" for name in PLAIN if getattr(options, name)]
    if layouts and len(layouts + plain) > 1:
        parser.error("{} does not go with {}".format(*layouts, *plain))
    if options.value and not (options.pivot or options.compare):
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

    if options.format == CSV:
        text = frame_to_csv(frame_of(shown))
    elif options.format == HYPERFINE:
        text = hyperfine(shown)
        for row in shown:
            if row.total is None:
                print_stderr(f"left out {row.name}: {row.status}: {row.reason}")
    else:
        sheets = _sheets(shown, options)
        if options.format == "terminal" and options.output is None:
            print_sheets(sheets)
            return MISMATCH if is_wrong(shown) else OK
        text = "\n".join(map(WRITERS[options.format], sheets))

    if options.output is None:
        sys.stdout.write(text)
    else:
        write_output(options.output, text.encode(errors="replace"))
    return MISMATCH if is_wrong(shown) else OK


def _sheets(shown: Sequence[Row], options: argparse.Namespace) -> list[Sheet]:
    value = options.value or "total"
    if options.profile:
        return [profile_sheet(profile_of(shown))]
    if options.pivot:
        return [pivot_sheet(shown, options.pivot, value, whole=options.notes)]
    if options.compare:
        return [compared_sheet(shown, options.paths, value, whole=options.notes)]
    columns = options.columns.split(",") if options.columns else ()
    what = TableOptions(columns, options.phases, options.work, options.notes, options.relative_to)
    return tables(shown, what)


def two_sets(options: argparse.Namespace) -> list[Row]:
    """The rows of both sets that are compared, each with its side."""
    records = []
    for side, path in zip(("left", "right"), options.paths, strict=True):
        for record in records_of([path], options.all):
            cell = structs.replace(record.cell, gate={"side": side, "tier": None})
            records.append(replace(record, cell=cell))
    return rows_where(rows(records), options.where)


if __name__ == "__main__":
    sys.exit(main())
