"""Records as a table: on the terminal, as Markdown, HTML or LaTeX, and as CSV or JSON for other programs.

    python -m harness.table                        the latest run in results/local; --all shows every run
    python -m harness.table a.jsonl b --phases     joined from a file and a folder, with the seconds of each phase
    python -m harness.table --pivot variant data   one figure of every row, laid out by two fields
    python -m harness.table --compare old new      two sets side by side

A time is shown only if the merges were right; a dash means "not measured".
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.common.console import Parser, csv_text, json_text
from harness.common.errors import MISMATCH, OK, UNCHANGED, guarded
from harness.common.files import write_whole
from harness.common.sheet import Sheet, print_sheet, sheet_to_latex, sheet_to_markdown, sheets_to_html
from harness.results.chosen import (
    NO_PATHS,
    add_compare_arguments,
    add_record_arguments,
    chosen_records,
    records_of,
)
from harness.results.frame import frame_of
from harness.results.legend import makes_other_merges
from harness.results.matches import comparison_frame, comparison_sheet, side_by_side
from harness.results.pivot import pivot, pivot_frame, pivot_sheet
from harness.results.rows import Row, rows
from harness.results.tables import TableOptions, tables
from harness.results.where import add_where_argument, rows_where

if TYPE_CHECKING:
    import pandas as pd

Records = Sequence[Mapping[str, Any]]
FOR_PROGRAMS = ("csv", "json")
"""Formats in which each row has everything that is known of it, in raw figures."""
FORMATS = ("terminal", "markdown", "html", "latex", *FOR_PROGRAMS)
_ENDINGS = {".md": "markdown", ".csv": "csv", ".json": "json", ".html": "html", ".htm": "html", ".tex": "latex"}
_EPILOG = """\
examples:
  python -m harness.table                            the latest run; --all: every run
  python -m harness.table mine.jsonl yours/ --phases joined, with the seconds of phases
  python -m harness.table --format csv > times.csv   raw seconds and bytes
  python -m harness.table --output times.html        a page, or a part of one
  python -m harness.table --relative-to NAME         ratios to that variant
  python -m harness.table --where variant='heap,flat*' --sort total
  python -m harness.table --columns variant,total,CPU,spread,MB/s,merges/s
  python -m harness.table --pivot variant data --value MB/s
  python -m harness.table --compare old/ new/        side by side; of two machines
                                                     with --unlike host

ratio is the total divided by that of the first row: with several blocks the median of the ratios within them, with its
95 % interval from 6 blocks on; of CPU seconds if both rows ran one thread, else of wall seconds. memory is the peak.
spread is the longest total minus the shortest, divided by the median. MB/s is of the corpus by the total.
~61 min: the run was stopped, and its total is estimated; >12 s: it takes at least that long; ?: not proved.

exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.
"""


def parsed(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    """The arguments; options that exclude each other end the program with a sentence."""
    parser = table_parser(prog)
    options = parser.parse_args(argv)
    if options.format is None:
        ending = options.output.suffix.lower() if options.output is not None else ""
        options.format = _ENDINGS.get(ending, "terminal")
    for name, others in _EXCLUSIVE.items():
        used = [other for other in others if _is_given(options, name) and _is_given(options, other)]
        if used:
            parser.error(f"--{name.replace('_', '-')} does not go with --{used[0].replace('_', '-')}")
    for name, needed in (("value", "pivot"), ("unlike", "compare")):
        if _is_given(options, name) and not _is_given(options, needed):
            parser.error(f"--{name} goes with --{needed}")
    if options.columns is not None and options.format in FOR_PROGRAMS:
        parser.error(f"--columns does not go with --format {options.format}, which has every column")
    if _is_given(options, "compare") and options.paths != NO_PATHS:
        parser.error("--compare takes the two sets itself: --compare LEFT RIGHT")
    options.value = options.value or "total"
    return options


_EXCLUSIVE = {
    "compare": ("pivot", "relative_to", "work", "runs", "series", "sort", "columns", "phases"),
    "pivot": ("work", "runs", "series", "columns", "phases"),
    "series": ("relative_to", "work", "columns", "phases"),
    "columns": ("phases",),
}


def _is_given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name) not in (None, False)


def table_parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Print records as a table. A time is shown only if the merges were right.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add_record_arguments(parser)
    add_where_argument(parser)
    add("--format", choices=FORMATS, help="(default: what --output ends with, else terminal)")
    add("--output", metavar="FILE", type=Path, help="write to this file (.md .html .tex .csv .json, else text)")
    add("--phases", action="store_true", help="the seconds of each phase, spread and CPU time")
    add("--work", action="store_true", help="a second table: how many times each variant did what")
    add("--notes", action="store_true", help="everything worth knowing about the rows below the table")
    add("--relative-to", metavar="VARIANT", help="ratios to this variant or counter (default: the first row)")
    add("--columns", metavar="NAMES", help="these alone, such as variant,total,memory,proof")
    add("--runs", action="store_true", help="a column: the total of every run, as a / b / c")
    add("--series", action="store_true", help="the columns of the series")
    add(
        "--known-wrong",
        metavar="VARIANTS",
        default="",
        help="variants whose merges are known to be wrong: shown, but ignored for the exit code",
    )
    add("--sort", choices=("appearance", "total"), help="the order of rows (default: appearance)")
    add(
        "--pivot",
        nargs=2,
        metavar=("DOWN", "ACROSS"),
        help="one figure of every row, laid out by two fields such as variant, data, threads, vocab_size, params.NAME",
    )
    add("--value", metavar="FIGURE", help="which: total, a phase, memory, MB/s, merges/s, a tally ... (default: total)")
    add_compare_arguments(parser)
    return parser


@dataclass(frozen=True)
class Shown:
    """What a command shows, in whatever format; a table for programs is made on demand."""

    sheets: Sequence[Sheet]
    frame: Callable[[], pd.DataFrame]
    exit_code: int


def render(records: Records, console: Console, options: TableOptions | None = None) -> None:
    """Print a table for each task."""
    _print_sheets(tables(rows(records), options), console)


def exit_code(records: Records, known_wrong: Sequence[str] = ()) -> int:
    """MISMATCH if merges are wrong, except those of `known_wrong`, or if rows contradict each other; else OK."""
    return exit_code_of(rows(records), known_wrong)


def exit_code_of(shown: Sequence[Row], known_wrong: Sequence[str] = ()) -> int:
    judged = [row for row in shown if not (row.status == "mismatch" and row.name in known_wrong)]
    return MISMATCH if any(row.status == "mismatch" or row.disputed for row in judged) else OK


def in_order(shown: list[Row], sort: str) -> list[Row]:
    if sort == "total":
        return sorted(shown, key=lambda row: (row.total is None, makes_other_merges(row), row.total or 0.0))
    return shown


def markdown(sheets: Sequence[Sheet]) -> str:
    return "\n".join(map(sheet_to_markdown, sheets))


def html(sheets: Sequence[Sheet]) -> str:
    return sheets_to_html(sheets, next((line for sheet in sheets for line in sheet.caption), "Records"))


def csv(table: pd.DataFrame) -> str:
    texts = table.select_dtypes(include=["string", "object"]).columns
    harmless = table.assign(
        **{name: [csv_text(cell) if isinstance(cell, str) else cell for cell in table[name]] for name in texts}
    )
    return str(harmless.rename(columns=csv_text).to_csv(index=False, lineterminator="\n"))


def latex(sheets: Sequence[Sheet]) -> str:
    return "\n".join(map(sheet_to_latex, sheets))


def as_json(table: pd.DataFrame) -> str:
    """An object for each row; what is not known is null."""
    lines = [json_text(row) for row in json.loads(table.to_json(orient="records", double_precision=15))]
    return "[\n" + ",\n".join(lines) + "\n]\n"


_PAGES = {"markdown": markdown, "html": html, "latex": latex}
_PROGRAMS = {"csv": csv, "json": as_json}


def _print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    for place, sheet in enumerate(sheets):
        if place:
            console.print()
        print_sheet(sheet, console)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parsed(argv, prog="python -m harness.table")
    return guarded(lambda: command(arguments), UNCHANGED)


def command(arguments: argparse.Namespace) -> int:
    shown = _shown(arguments)
    _deliver(shown, arguments.format, arguments.output)
    return shown.exit_code


def _shown(arguments: argparse.Namespace) -> Shown:
    if arguments.compare is not None:
        return _compared(arguments)
    chosen = rows_where(rows(chosen_records(arguments)), arguments.where)
    ordered = in_order(chosen, arguments.sort)
    code = exit_code_of(ordered, arguments.known_wrong.split(","))
    if arguments.pivot is not None:
        laid = pivot(ordered, (arguments.pivot[0], arguments.pivot[1]), arguments.value, arguments.relative_to)
        return Shown([pivot_sheet(laid)], lambda: pivot_frame(laid), code)
    options = TableOptions(
        columns=arguments.columns.split(",") if arguments.columns else (),
        relative_to=arguments.relative_to,
        **{name: getattr(arguments, name) for name in ("phases", "work", "notes", "runs", "series")},
    )
    return Shown(tables(ordered, options), lambda: frame_of(ordered, arguments.relative_to), code)


def _compared(arguments: argparse.Namespace) -> Shown:
    left, right = arguments.compare
    records = [records_of([path], arguments.all) for path in (left, right)]
    sets = side_by_side(records[0], records[1], (left, right), arguments.unlike)
    return Shown([comparison_sheet(sets)], lambda: comparison_frame(sets), MISMATCH if sets.wrong else OK)


def _deliver(shown: Shown, form: str, output: Path | None) -> None:
    """Print what was asked for, or write it to a file, whole or not at all."""
    if form == "terminal" and output is None:
        _print_sheets(shown.sheets, Console())
        return
    if form == "terminal":
        page = io.StringIO()
        _print_sheets(shown.sheets, Console(file=page, force_terminal=False))
        text = page.getvalue()
    else:
        text = _PROGRAMS[form](shown.frame()) if form in FOR_PROGRAMS else _PAGES[form](shown.sheets)
    if output is None:
        sys.stdout.write(text)
    else:
        write_whole(output, text.encode(errors="replace"))


if __name__ == "__main__":
    sys.exit(main())
