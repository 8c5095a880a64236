"""Records as a table: on the terminal, as Markdown for a README, as CSV for other programs.

    python -m harness.table                        the latest run of everything in results/local
    python -m harness.table a.jsonl b --work       joined from a file and a folder, with the counts of work
    python -m harness.table --format markdown

A pure function of records. A time is shown only where the merges were right; what was not measured is a dash.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness import published
from harness.columns import (
    column,
    instructions_ratio,
    mark_of,
    memory_column,
    merges_column,
    merges_differ,
    merges_made,
    proof_column,
    ratio_columns,
    seconds_columns,
    settings,
    speed_columns,
)
from harness.errors import MISMATCH, OK, Refusal
from harness.fairness import given_sheet, identity_column, identity_notes, outside
from harness.findings import findings
from harness.frame import WORK, frame_of
from harness.legend import NOT_MEASURED, Legend, status_text
from harness.record_arguments import add_record_arguments, chosen_records
from harness.rows import PHASES, Row, rows
from harness.sheet import Column, Sheet, print_sheet, sheet_to_markdown
from harness.units import count_text, instructions_text, rate_text

if TYPE_CHECKING:
    import pandas as pd

Records = Sequence[Mapping[str, Any]]


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
    _print_sheets(_sheets(records, work, sort, relative_to, every_run), console)


def _print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    for place, sheet in enumerate(sheets):
        if place:
            console.print()
        print_sheet(sheet, console)


def to_markdown(
    records: Records,
    *,
    work: bool = False,
    sort: str = "appearance",
    relative_to: str | None = None,
    every_run: bool = False,
) -> str:
    """The same as GitHub tables, caption above and notes below."""
    return "\n".join(sheet_to_markdown(sheet) for sheet in _sheets(records, work, sort, relative_to, every_run))


def to_csv(records: Records, *, sort: str = "appearance", relative_to: str | None = None) -> str:
    """A line for each row, with everything that identifies it and its raw figures: see `harness.frame`."""
    shown = _sorted(rows(records), sort)
    return str(frame_of(shown, relative_to).to_csv(index=False, lineterminator="\n"))


def explanations(records: Records) -> list[str]:
    """The sentences that stand below the table: failures by name, marks by meaning, what the times do not say."""
    return _notes(Legend(rows(records)))


def exit_code(records: Records, known_wrong: Sequence[str] = ()) -> int:
    """MISMATCH if a row's merges are wrong, or if rows contradict each other; else OK.

    Of the variants in `known_wrong` it is known, and shown, that their merges are wrong.
    """
    judged = [row for row in rows(records) if not (row.status == "mismatch" and row.name in known_wrong)]
    return MISMATCH if any(row.status == "mismatch" or row.disputed for row in judged) else OK


def frame(records: Records) -> pd.DataFrame:
    """The rows with their raw figures, for pandas; the figures of a row that is not ok are missing."""
    return frame_of(rows(records))


def _sheets(records: Records, work: bool, sort: str, relative_to: str | None, every_run: bool) -> list[Sheet]:
    shown = _sorted(rows(records), sort)
    counting_only = all(row.counting_only for row in shown)
    sheet = _counting_sheet if counting_only else _training_sheet
    sheets = [sheet(shown, relative_to, every_run)]
    if outside(shown):
        sheets.append(given_sheet(Legend(shown)))
    return [*sheets, _work_sheet(shown)] if work else sheets


def _notes(legend: Legend, relative_to: str | None = None) -> list[str]:
    return legend.notes() + identity_notes(legend) + findings(legend.rows, legend.short_labels(), relative_to)


def _sorted(shown: list[Row], sort: str) -> list[Row]:
    if sort == "total":
        return sorted(shown, key=lambda row: (row.total is None, row.by_design, row.total or 0.0))
    return shown


def _training_sheet(shown: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(shown)
    columns = [Column("variant", legend.names, figures=False), *settings(legend)]
    if merges_differ(shown, legend):
        columns.append(merges_made(shown))
    counted = any(row.instructions is not None for row in shown)
    # Where instructions were counted and nothing timed, columns of times would be dashes.
    if any(row.seconds or row.extrapolated for row in shown) or not counted:
        # A trainer that takes the counts as they are converts nothing, and few copy: columns where one does.
        # Outside trainers tell none of them.
        always = [phase for phase in PHASES if phase not in ("convert", "copy") and not outside(shown)]
        columns += seconds_columns(shown, always, every_run)
        columns += ratio_columns(shown, relative_to) if relative_to is not None else []
        columns += [memory_column(shown), merges_column(shown)]
    if counted:
        columns.append(column("instructions", shown, lambda row: row.instructions, instructions_text, mark_of))
        columns += [instructions_ratio(shown, relative_to)] if relative_to is not None else []
    columns += [identity_column(shown)] if outside(shown) else []
    columns.append(proof_column(shown))
    return Sheet(legend.caption(), columns, [_style(row) for row in shown], _notes(legend, relative_to))


def _counting_sheet(shown: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(shown)
    columns = [Column("counter", legend.names, figures=False), *settings(legend)]
    if "threads" not in legend.columns:
        columns.append(column("threads", shown, lambda row: row.record.get("threads"), count_text))
    columns += seconds_columns(shown, ["read", "count"], every_run)
    columns += [
        column("MB/s", shown, lambda row: _corpus_per_second(row, "bytes"), _megabytes_text),
        *(speed_columns(shown, relative_to) if relative_to is not None else []),
        column("pre-tokens/s", shown, lambda row: _corpus_per_second(row, "pre_tokens"), rate_text),
        column("words", shown, lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        memory_column(shown),
    ]
    if any(row.status != "ok" for row in shown):
        columns.append(Column("status", [status_text(row) for row in shown], figures=False))
    return Sheet(legend.caption(), columns, [_style(row) for row in shown], _notes(legend))


def _work_sheet(shown: Sequence[Row]) -> Sheet:
    """How often each row did what: the same on every machine, so it says why one is faster than another."""
    counted = [row for row in shown if row.status == "ok"]
    names = {name for row in counted for name in row.tallies}
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *settings(legend)]
    columns += [
        Column(name.replace("_", " "), [_tally_text(row, name) for row in counted]) for name in WORK if name in names
    ]
    notes = [_own_tallies(row, name) for row, name in zip(counted, legend.names, strict=True)]
    return Sheet([], columns, ["" for _ in counted], [note for note in dict.fromkeys(notes) if note])


def _own_tallies(row: Row, name: str) -> str:
    """What a variant counts that the columns, which are for all, do not have."""
    own = [
        f"{tally.replace('_', ' ')} {count_text(number)}" for tally, number in row.tallies.items() if tally not in WORK
    ]
    return f"{name} also counted: {', '.join(own)}." if own else ""


def _tally_text(row: Row, name: str) -> str:
    return count_text(row.tallies[name]) if name in row.tallies else NOT_MEASURED


def _corpus_per_second(row: Row, unit: str) -> float | None:
    return row.per_second(row.corpus.get(unit), row.seconds)


def _megabytes_text(bytes_per_second: float) -> str:
    return rate_text(bytes_per_second / 1e6)


def _style(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.table",
        description="Print records as a table. A time is shown only where the merges were right.",
        epilog="examples:\n"
        "  python -m harness.table                             the latest run of each cell in results/local\n"
        "  python -m harness.table mine.jsonl yours/ --work    joined, with the counts of work\n"
        "  python -m harness.table --format csv > times.csv    raw seconds and bytes\n"
        "  python -m harness.table --relative-to NAME          ratios, with intervals where there are blocks\n\n"
        "merges/s is merges divided by all seconds but those of read and count. memory is the peak. spread is the\n"
        "longest total less the shortest, by their median. A ratio is the median of those within blocks, of CPU\n"
        "seconds where both rows ran one thread, else of wall seconds; its interval holds it with 95 % confidence.\n"
        "exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show;\n"
        "with --against published also 20 if a claim is refuted, 22 if none could be judged.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_record_arguments(parser)
    formats = ("terminal", "markdown", "csv")
    parser.add_argument("--format", choices=formats, default=formats[0], help="(default: %(default)s)")
    parser.add_argument("--work", action="store_true", help="a second table: how often each variant did what")
    parser.add_argument(
        "--against", choices=["published"], help="the series' figures beside ours, and which of its claims hold"
    )
    orders = ("appearance", "total")
    parser.add_argument(
        "--relative-to",
        metavar="VARIANT",
        help="a column: how many times the total of that variant; of counters, as fast as those named",
    )
    parser.add_argument("--runs", action="store_true", help="a column: the total of every run, as a/b/c")
    parser.add_argument(
        "--known-wrong",
        metavar="VARIANTS",
        default="",
        help="those whose merges are known to be wrong: they are shown, and the exit code is that of the others",
    )
    parser.add_argument("--sort", choices=orders, default=orders[0], help="the order of rows (default: %(default)s)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show ≠ gets a question mark instead of a traceback.
        sys.stdout.reconfigure(errors="replace")
    known_wrong = arguments.known_wrong.split(",")
    try:
        chosen = chosen_records(arguments)
        if arguments.against is not None:
            return _show_published(chosen, arguments.format)
        form: dict[str, Any] = {"sort": arguments.sort, "relative_to": arguments.relative_to}
        if arguments.format == "csv":
            sys.stdout.write(to_csv(chosen, **form))
            return exit_code(chosen, known_wrong)
        form |= {"work": arguments.work, "every_run": arguments.runs}
        if arguments.format == "markdown":
            sys.stdout.write(to_markdown(chosen, **form))
        else:
            render(chosen, Console(), **form)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    return exit_code(chosen, known_wrong)


def _show_published(chosen: Records, form: str) -> int:
    """Theirs beside ours; returns the exit code."""
    if form == "csv":
        raise Refusal("--against published has no CSV form; say --format markdown, or leave it out")
    shown, code = published.sheets(chosen)
    if form == "markdown":
        sys.stdout.write("\n".join(map(sheet_to_markdown, shown)))
    else:
        _print_sheets(shown, Console())
    return exit_code(chosen) or code


if __name__ == "__main__":
    sys.exit(main())
