"""Records as a table: on the terminal, as Markdown, and as CSV for other programs.

    python -m harness.table                        the latest run in results/local; --all shows every run
    python -m harness.table a.jsonl b --phases     joined from a file and a folder, with the seconds of each phase
    python -m harness.table --pivot variant data   one figure of every row, laid out by two fields
    python -m harness.table --compare old new      two sets side by side

A time is shown only if the merges were right; a dash means "not measured".
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from harness.common.console import Parser, frame_to_csv
from harness.common.errors import MISMATCH, OK, UNCHANGED, guarded
from harness.common.files import write_whole
from harness.common.sheet import Sheet, print_sheets, sheet_to_markdown
from harness.results.frame import frame_of
from harness.results.rows import Row, is_wrong
from harness.results.selection import NO_PATHS, add_record_arguments, chosen_rows, records_of
from harness.results.tables import TableOptions, compared, pivot_sheet, tables

if TYPE_CHECKING:
    pass

CSV = "csv"
"""The format in which each row has every field and figure, unrounded."""
FORMATS = {".txt": "terminal", ".md": "markdown", ".csv": CSV}
_EXCLUSIVE = {
    "compare": ("pivot", "relative_to", "where", "work", "sort", "columns", "phases"),
    "pivot": ("work", "columns", "phases"),
    "columns": ("phases",),
    "relative_to": (),
}
_EPILOG = """\
examples:
  python -m harness.table                            the latest run; --all: every run
  python -m harness.table mine.jsonl yours/ --phases joined, with the seconds of phases
  python -m harness.table --format csv > times.csv   raw seconds and bytes
  python -m harness.table --output times.md          for a page of Markdown
  python -m harness.table --relative-to NAME         ratios to that variant
  python -m harness.table --where variant='heap,flat*' --sort total
  python -m harness.table --columns variant,total,CPU,spread,MB/s,merges/s
  python -m harness.table --pivot variant data --value MB/s
  python -m harness.table --compare old/ new/        side by side; of two machines
                                                     with --unlike

ratio is the total divided by that of the first row: with several blocks the median of the ratios within them, with its
95 % interval from 6 blocks on; of CPU seconds if both rows ran one thread, else of wall seconds. memory is the peak,
~ if it was sampled over several processes.
spread is the longest total minus the shortest, divided by the median. MB/s is of the corpus by the total.
~61 min: the run was stopped, and its total is estimated; >12 s: it takes at least that long; ?: not proved.

exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.
"""


def _parser() -> argparse.ArgumentParser:
    description = "Print records as a table. A time is shown only if the merges were right."
    parser = Parser(prog="python -m harness.table", description=description, epilog=_EPILOG)
    add = parser.add_argument
    add_record_arguments(parser)
    add("--format", choices=FORMATS.values(), help="(default: by the end of --output, or terminal)")
    add("--output", metavar="FILE", type=Path, help="write to this file (.md .csv .txt)")
    add("--phases", action="store_true", help="the seconds of each phase, spread and CPU time")
    add("--work", action="store_true", help="a second table: how many times each variant did what")
    add("--notes", action="store_true", help="all notes below the table, and what each outside trainer was given")
    add("--relative-to", metavar="VARIANT", help="ratios to this variant or counter (default: the first row)")
    add("--columns", metavar="NAMES", help="these alone, such as variant,total,memory,proof")
    add("--sort", choices=("appearance", "total"), help="the order of rows (default: appearance)")
    layout = "one figure of every row, laid out by two fields such as variant, data, threads, vocab_size"
    add("--pivot", nargs=2, metavar=("DOWN", "ACROSS"), help=layout)
    add("--value", metavar="FIGURE", help="which: total, a phase, memory, MB/s, merges/s, a tally ... (default: total)")
    add("--compare", nargs=2, metavar=("LEFT", "RIGHT"), help="two sets of records side by side")
    add("--unlike", action="store_true", help="compare them although machine, Python, limits or corpus differ")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.format is None:
        ending = ".txt" if options.output is None else options.output.suffix
        if ending not in FORMATS:
            parser.error(f"cannot tell a format from {options.output}; end it with one of {', '.join(FORMATS)}")
        options.format = FORMATS[ending]
    _require_compatible(parser, options)
    return guarded(lambda: _command(options), UNCHANGED)


def _require_compatible(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a sentence about options that exclude or need each other."""
    given = {name for name, value in vars(options).items() if value not in (None, False, [], "")}
    for name, others in _EXCLUSIVE.items():
        if name in given and (used := [other for other in others if other in given]):
            parser.error(f"--{name} does not go with --{used[0].replace('_', '-')}")
        if name in given and options.format == CSV:
            parser.error(f"--{name.replace('_', '-')} does not go with --format csv, which has every row and column")
    for name, needed in (("value", "pivot"), ("unlike", "compare")):
        if name in given and needed not in given:
            parser.error(f"--{name} goes with --{needed}")
    if "compare" in given and options.paths != NO_PATHS:
        parser.error("--compare takes the two sets itself: --compare LEFT RIGHT")


def _command(options: argparse.Namespace) -> int:
    if options.compare is not None:
        left, right = (records_of([path], options.all) for path in options.compare)
        sheet, is_bad = compared(left, right, options.compare, options.unlike)
        _deliver([sheet], options)
        return MISMATCH if is_bad else OK
    ordered = in_order(chosen_rows(options), options.sort)
    if options.format == CSV:
        _write(frame_to_csv(frame_of(ordered)), options)
    elif options.pivot is not None:
        _deliver([pivot_sheet(ordered, options.pivot, options.value or "total", options.relative_to)], options)
    else:
        columns = options.columns.split(",") if options.columns else ()
        shown = TableOptions(columns, options.phases, options.work, options.notes, options.relative_to)
        _deliver(tables(ordered, shown), options)
    return MISMATCH if is_wrong(ordered) else OK


def in_order(rows: list[Row], sort: str | None) -> list[Row]:
    if sort == "total":
        return sorted(rows, key=lambda row: (row.total is None, row.other_merges, row.total or 0.0))
    return rows


def _deliver(sheets: Sequence[Sheet], options: argparse.Namespace) -> None:
    if options.format == "markdown":
        _write(markdown(sheets), options)
    elif options.output is None:
        print_sheets(sheets)
    else:
        page = io.StringIO()
        print_sheets(sheets, Console(file=page, force_terminal=False))
        _write(page.getvalue(), options)


def _write(text: str, options: argparse.Namespace) -> None:
    """Print what was requested, or write it to a file, whole or not at all."""
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_whole(options.output, text.encode(errors="replace"))


def markdown(sheets: Sequence[Sheet]) -> str:
    return "\n".join(map(sheet_to_markdown, sheets))


if __name__ == "__main__":
    sys.exit(main())
