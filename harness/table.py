"""Records as a table: on the terminal, as Markdown, HTML or LaTeX, and as CSV or JSON for other programs.

    python -m harness.table                        the latest run in results/local; --all shows every run
    python -m harness.table a.jsonl b --work       joined from a file and a folder, with the counts of work
    python -m harness.table --pivot variant data   one figure of every row, laid out by two fields
    python -m harness.table --compare old new      two sets side by side

A pure function of records, with a table of its own for each task. A time is shown only where the merges were right;
what was not measured is a dash.
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
from harness.results.matches import comparison_frame, comparison_sheet, side_by_side
from harness.results.pivot import pivot, pivot_frame, pivot_sheet
from harness.results.rows import Row, rows
from harness.results.tables import RATIO, main_sheet, only, series_sheet
from harness.results.tasks import sheets_of, task_by_task

if TYPE_CHECKING:
    import pandas as pd


FOR_PROGRAMS = ("csv", "json")
"""Of these each row has everything that is known of it, in raw figures."""
FORMATS = ("terminal", "markdown", "html", "latex", *FOR_PROGRAMS)
_ENDINGS = {
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".tex": "latex",
}
_EPILOG = """\
examples:
  python -m harness.table                            the latest run; --all: every run
  python -m harness.table mine.jsonl yours/ --work   joined, with the counts of work
  python -m harness.table --format csv > times.csv   raw seconds and bytes
  python -m harness.table --output times.html        a page, or a part of one
  python -m harness.table --relative-to NAME         ratios; with blocks, intervals too
  python -m harness.table --columns variant,total,memory,proof --sort total
  python -m harness.table --pivot variant data --value MB/s
  python -m harness.table --pivot variant threads --relative-to NAME
  python -m harness.table --series --runs            the series' columns, runs as a/b/c
  python -m harness.table --compare old/ new/        side by side; of two machines
                                                     with --unlike host

columns and units: total and its phases are seconds of wall time, and CPU is processor time. spread is the longest total
minus the shortest, divided by the median. memory is the peak, in decimal units. MB/s is millions of bytes of the corpus
per second of total; merges/s leaves out the time of read and count. A ratio is the median of the ratios within blocks:
of CPU seconds if both rows ran one thread, else of wall seconds. Its interval has 95 % confidence.
A row with wrong merges shows no time but the first wrong merge. >9 h means that a limit ended the run, which would have
taken at least that long. Notes below the table explain these and other outcomes, such as timeout and skipped; in CSV
they are the columns status, reason, first_divergence and extrapolated_..._seconds.

exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.
"""


def parsed(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    """The arguments; what does not go together ends the program with a sentence."""
    parser = table_parser(prog)
    arguments = parser.parse_args(argv)
    if arguments.format is None:
        ending = arguments.output.suffix.lower() if arguments.output is not None else ""
        arguments.format = _ENDINGS.get(ending, "terminal")
    for asked, others in _APART.items():
        together = [other for other in others if _said(arguments, asked) and _said(arguments, other)]
        if together:
            parser.error(f"--{asked.replace('_', '-')} does not go with --{together[0].replace('_', '-')}")
    for asked, needed in (("value", "pivot"), ("unlike", "compare")):
        if _said(arguments, asked) and not _said(arguments, needed):
            parser.error(f"--{asked} goes with --{needed}")
    if arguments.columns is not None and arguments.format in FOR_PROGRAMS:
        parser.error(f"--columns does not go with --format {arguments.format}, which has every column")
    if _said(arguments, "compare") and arguments.paths != NO_PATHS:
        parser.error("--compare takes the two sets itself: --compare LEFT RIGHT")
    arguments.value = arguments.value or "total"
    return arguments


_APART = {
    "compare": ("pivot", "relative_to", "work", "runs", "series", "sort", "columns"),
    "pivot": ("work", "runs", "series", "columns"),
    "series": ("relative_to", "work", "columns"),
    "columns": ("work",),
}


def _said(arguments: argparse.Namespace, name: str) -> bool:
    return getattr(arguments, name) not in (None, False)


def table_parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Print records as a table. A time is shown only where the merges were right.",
        epilog=_EPILOG,
    )
    add_record_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="(default: what --output ends with, else terminal)")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write to this file, whole or not at all (.md .html .tex .csv .json, else text)",
    )
    parser.add_argument("--work", action="store_true", help="a second table: how often each variant did what")
    parser.add_argument(
        "--relative-to",
        metavar="VARIANT",
        help="a column: how many times the total of that variant; of counters, as fast as those named",
    )
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="these alone, such as variant,total,memory,proof; ratio is that of --relative-to",
    )
    parser.add_argument("--runs", action="store_true", help="a column: the total of every run, as a/b/c")
    parser.add_argument("--series", action="store_true", help="the columns of the series; with --runs all as a/b/c")
    parser.add_argument(
        "--known-wrong",
        metavar="VARIANTS",
        default="",
        help="those whose merges are known to be wrong: they are shown, and the exit code is that of the others",
    )
    parser.add_argument("--sort", choices=("appearance", "total"), help="the order of rows (default: appearance)")
    parser.add_argument(
        "--pivot",
        nargs=2,
        metavar=("DOWN", "ACROSS"),
        help="one figure of every row, laid out by two fields such as variant, data, threads, vocab_size, params.NAME",
    )
    parser.add_argument(
        "--value", metavar="FIGURE", help="which: total, a phase, memory, MB/s, merges/s, a tally ... (default: total)"
    )
    add_compare_arguments(parser)
    return parser


Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Shown:
    """What a command shows, in whatever format; a table for programs is made when it is asked for."""

    sheets: Sequence[Sheet]
    frame: Callable[[], pd.DataFrame]
    exit_code: int


def render(records: Records, console: Console, *, work: bool = False, relative_to: str | None = None) -> None:
    """Print the table, and with `work` one of the tallies; where there is no terminal, full width without colours."""
    _print_sheets(sheets_of(rows(records), work, relative_to), console)


def exit_code(records: Records, known_wrong: Sequence[str] = ()) -> int:
    """MISMATCH if a row's merges are wrong, or if rows contradict each other; else OK.

    Of the variants in `known_wrong` it is known, and shown, that their merges are wrong.
    """
    return exit_code_of(rows(records), known_wrong)


def exit_code_of(shown: Sequence[Row], known_wrong: Sequence[str] = ()) -> int:
    judged = [row for row in shown if not (row.status == "mismatch" and row.name in known_wrong)]
    return MISMATCH if any(row.status == "mismatch" or row.disputed for row in judged) else OK


def in_order(shown: list[Row], sort: str) -> list[Row]:
    if sort == "total":
        return sorted(shown, key=lambda row: (row.total is None, row.by_design, row.total or 0.0))
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
    shown = _asked_for(arguments)
    _deliver(shown, arguments.format, arguments.output)
    return shown.exit_code


def _asked_for(arguments: argparse.Namespace) -> Shown:
    if arguments.compare is not None:
        return _compared(arguments)
    chosen = chosen_records(arguments)
    shown = in_order(rows(chosen), arguments.sort)
    code = exit_code_of(shown, arguments.known_wrong.split(","))
    if arguments.pivot is not None:
        laid = pivot(shown, (arguments.pivot[0], arguments.pivot[1]), arguments.value, arguments.relative_to)
        return Shown([pivot_sheet(laid)], lambda: pivot_frame(laid), code)
    if arguments.series:
        sheets = task_by_task(shown, lambda task, _: [series_sheet(task, arguments.runs)])
    elif arguments.columns is not None:
        sheets = task_by_task(shown, lambda task, base: [_only_asked(task, base, arguments)], arguments.relative_to)
    else:
        sheets = sheets_of(shown, arguments.work, arguments.relative_to, arguments.runs)
    return Shown(sheets, lambda: frame_of(shown, arguments.relative_to), code)


def _only_asked(task: Sequence[Row], base: str | None, arguments: argparse.Namespace) -> Sheet:
    """The columns that were asked for; without ratios in a task that has nothing to compare with."""
    names = [name for name in arguments.columns.split(",") if name != RATIO or base == arguments.relative_to]
    return only(main_sheet(task, base, arguments.runs), names)


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
