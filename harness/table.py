"""Records as a table: on the terminal, as Markdown for a README, as CSV for other programs, as a page of HTML.

    python -m harness.table                        the latest run of everything in results/local
    python -m harness.table a.jsonl b --work       joined from a file and a folder, with the counts of work
    python -m harness.table --pivot variant data   one figure of every row, laid out by two fields
    python -m harness.table --compare old new      two sets side by side

A pure function of records. A time is shown only where the merges were right; what was not measured is a dash.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness import published
from harness.errors import MISMATCH, OK, Refusal
from harness.fairness import given_sheet, outside
from harness.frame import frame_of
from harness.legend import Legend
from harness.pivot import pivot, pivot_frame, pivot_sheet
from harness.record_arguments import chosen_records, records_of
from harness.row_sheets import main_sheet, notes_of, work_sheet
from harness.rows import Row, rows
from harness.series_sheet import series_sheet
from harness.sheet import Sheet, print_sheet, sheet_to_markdown
from harness.sheet_html import sheets_to_html
from harness.side_by_side import comparison_frame, comparison_sheet, side_by_side
from harness.table_arguments import FORMATS, parsed
from harness.whole_file import write_whole

if TYPE_CHECKING:
    import argparse

    import pandas as pd

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Shown:
    """What a command shows, in whatever format; a table for programs is made when it is asked for."""

    sheets: Sequence[Sheet]
    frame: Callable[[], pd.DataFrame]
    exit_code: int


def render(
    records: Records,
    console: Console,
    *,
    work: bool = False,
    sort: str = "appearance",
    relative_to: str | None = None,
    every_run: bool = False,
) -> None:
    """Print the table, and with `work` one of the tallies; where there is no terminal, full width without colours."""
    _print_sheets(_sheets(_sorted(rows(records), sort), work, relative_to, every_run), console)


def to_markdown(
    records: Records,
    *,
    work: bool = False,
    sort: str = "appearance",
    relative_to: str | None = None,
    every_run: bool = False,
) -> str:
    """The same as GitHub tables, caption above and notes below."""
    return _markdown(_sheets(_sorted(rows(records), sort), work, relative_to, every_run))


def to_csv(records: Records, *, sort: str = "appearance", relative_to: str | None = None) -> str:
    """A line for each row, with everything that identifies it and its raw figures: see `harness.frame`."""
    return _csv(frame_of(_sorted(rows(records), sort), relative_to))


def to_html(records: Records, *, work: bool = False, sort: str = "appearance", relative_to: str | None = None) -> str:
    """The same as a page of HTML that needs nothing else and can be put into another: see `harness.sheet_html`."""
    return _html(_sheets(_sorted(rows(records), sort), work, relative_to, False))


def explanations(records: Records) -> list[str]:
    """The sentences that stand below the table: failures by name, marks by meaning, what the times do not say."""
    return notes_of(Legend(rows(records)))


def exit_code(records: Records, known_wrong: Sequence[str] = ()) -> int:
    """MISMATCH if a row's merges are wrong, or if rows contradict each other; else OK.

    Of the variants in `known_wrong` it is known, and shown, that their merges are wrong.
    """
    judged = [row for row in rows(records) if not (row.status == "mismatch" and row.name in known_wrong)]
    return MISMATCH if any(row.status == "mismatch" or row.disputed for row in judged) else OK


def frame(records: Records) -> pd.DataFrame:
    """The rows with their raw figures, for pandas; the figures of a row that is not ok are missing."""
    return frame_of(rows(records))


def _sheets(shown: Sequence[Row], work: bool, relative_to: str | None, every_run: bool) -> list[Sheet]:
    sheets = [main_sheet(shown, relative_to, every_run)]
    if outside(shown):
        sheets.append(given_sheet(Legend(shown)))
    return [*sheets, work_sheet(shown)] if work else sheets


def _sorted(shown: list[Row], sort: str) -> list[Row]:
    if sort == "total":
        return sorted(shown, key=lambda row: (row.total is None, row.by_design, row.total or 0.0))
    return shown


def _markdown(sheets: Sequence[Sheet]) -> str:
    return "\n".join(map(sheet_to_markdown, sheets))


def _html(sheets: Sequence[Sheet]) -> str:
    return sheets_to_html(sheets, next((line for sheet in sheets for line in sheet.caption), "Records"))


def _csv(table: pd.DataFrame) -> str:
    return str(table.to_csv(index=False, lineterminator="\n"))


def _print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    for place, sheet in enumerate(sheets):
        if place:
            console.print()
        print_sheet(sheet, console)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parsed(argv, prog="python -m harness.table")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show ≠ gets a question mark instead of a traceback.
        sys.stdout.reconfigure(errors="replace")
    try:
        shown = _asked_for(arguments)
        _deliver(shown, arguments.format, arguments.output)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    return shown.exit_code


def _asked_for(arguments: argparse.Namespace) -> Shown:
    if arguments.compare is not None:
        return _compared(arguments)
    chosen = chosen_records(arguments)
    code = exit_code(chosen, arguments.known_wrong.split(","))
    if arguments.against is not None:
        sheets, verdict = published.sheets(chosen)
        return Shown(sheets, _no_frame, code or verdict)
    shown = _sorted(rows(chosen), arguments.sort)
    if arguments.pivot is not None:
        laid = pivot(shown, (arguments.pivot[0], arguments.pivot[1]), arguments.value, arguments.relative_to)
        return Shown([pivot_sheet(laid)], lambda: pivot_frame(laid), code)
    if arguments.series:
        sheets = [series_sheet(shown, arguments.runs)]
    else:
        sheets = _sheets(shown, arguments.work, arguments.relative_to, arguments.runs)
    return Shown(sheets, lambda: frame_of(shown, arguments.relative_to), code)


def _compared(arguments: argparse.Namespace) -> Shown:
    left, right = arguments.compare
    records = [records_of([path], arguments.all) for path in (left, right)]
    sets = side_by_side(records[0], records[1], (left, right), arguments.unlike)
    return Shown([comparison_sheet(sets)], lambda: comparison_frame(sets), MISMATCH if sets.wrong else OK)


def _no_frame() -> pd.DataFrame:
    others = ", ".join(name for name in FORMATS if name != "csv")
    raise Refusal(f"--against published has no CSV form; say --format with one of {others}")


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
        text = _csv(shown.frame()) if form == "csv" else (_html if form == "html" else _markdown)(shown.sheets)
    if output is None:
        sys.stdout.write(text)
    else:
        write_whole(output, text.encode())


if __name__ == "__main__":
    sys.exit(main())
