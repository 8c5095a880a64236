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
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.errors import MISMATCH, OK, Refusal
from harness.frame import WORK, frame_of
from harness.legend import NOT_MEASURED, REUSED, SAMPLED, UNCONFIRMED, Legend, divergence_text, status_text
from harness.record_arguments import add_record_arguments, chosen_records
from harness.rows import PHASES, Row, measured_phases, rows
from harness.sheet import Column, Sheet, print_sheet, sheet_to_markdown
from harness.units import bytes_text, count_text, decimals_for, rate_text, seconds_texts

if TYPE_CHECKING:
    import pandas as pd

Records = Sequence[Mapping[str, Any]]

_LONGEST_TOKEN = 20
_NAMED_IN_PROOF = 2
_FIGURES = ("vocab size", "min_count", "threads")


def render(
    records: Records,
    console: Console,
    *,
    work: bool = False,
    sort: str = "appearance",
    relative_to: str | None = None,
) -> None:
    """Print the table, and with `work` one of the tallies; where there is no terminal, full width without colours."""
    sheets = _sheets(records, work, sort, relative_to)
    for place, sheet in enumerate(sheets):
        if place:
            console.print()
        print_sheet(sheet, console)


def to_markdown(
    records: Records, *, work: bool = False, sort: str = "appearance", relative_to: str | None = None
) -> str:
    """The same as GitHub tables, caption above and notes below."""
    return "\n".join(sheet_to_markdown(sheet) for sheet in _sheets(records, work, sort, relative_to))


def to_csv(records: Records, *, sort: str = "appearance") -> str:
    """A line for each row, with everything that identifies it and its raw figures: see `harness.frame`."""
    return str(frame_of(_sorted(rows(records), sort)).to_csv(index=False, lineterminator="\n"))


def explanations(records: Records) -> list[str]:
    """The sentences that stand below the table: failures by name, marks by meaning."""
    return Legend(rows(records)).notes()


def exit_code(records: Records) -> int:
    """MISMATCH if a row's merges are wrong, or if rows contradict each other; else OK."""
    return MISMATCH if any(row.status == "mismatch" or row.disputed for row in rows(records)) else OK


def frame(records: Records) -> pd.DataFrame:
    """The rows with their raw figures, for pandas; the figures of a row that is not ok are missing."""
    return frame_of(rows(records))


def _sheets(records: Records, work: bool, sort: str, relative_to: str | None) -> list[Sheet]:
    shown = _sorted(rows(records), sort)
    counting_only = all(row.counting_only for row in shown)
    main = _counting_sheet(shown) if counting_only else _training_sheet(shown, relative_to)
    return [main, _work_sheet(shown)] if work else [main]


def _sorted(shown: list[Row], sort: str) -> list[Row]:
    if sort == "total":
        return sorted(shown, key=lambda row: (row.total is None, row.total or 0.0))
    return shown


def _training_sheet(shown: Sequence[Row], relative_to: str | None) -> Sheet:
    legend = Legend(shown)
    columns = [Column("variant", legend.names, figures=False), *_settings(legend)]
    if len({row.merges for row in shown if row.merges is not None}) > 1 and "vocab size" not in legend.columns:
        columns.append(_column("merges", shown, lambda row: row.merges, count_text))
    # A trainer that takes the counts as they are converts nothing; the column is there when one had to.
    always = [phase for phase in PHASES if phase != "convert"]
    columns += _seconds_columns(shown, always)
    if relative_to is not None:
        columns.append(_ratio_column(shown, relative_to))
    columns.append(_memory_column(shown))
    columns.append(_column("merges/s", shown, lambda row: row.merges_per_second, rate_text, _mark))
    columns.append(Column("proof", [_proof(row) for row in shown], figures=False))
    return Sheet(legend.caption(), columns, [_style(row) for row in shown], legend.notes())


def _counting_sheet(shown: Sequence[Row]) -> Sheet:
    legend = Legend(shown)
    settings = _settings(legend)
    if "threads" not in legend.columns:
        settings.append(_column("threads", shown, lambda row: row.record.get("threads"), count_text))
    columns = [Column("counter", legend.names, figures=False), *settings, *_seconds_columns(shown, ["read", "count"])]
    columns += [
        _column("MB/s", shown, lambda row: _corpus_per_second(row, "bytes"), _megabytes_text),
        _column("pre-tokens/s", shown, lambda row: _corpus_per_second(row, "pre_tokens"), rate_text),
        _column("words", shown, lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        _memory_column(shown),
    ]
    if any(row.status != "ok" for row in shown):
        columns.append(Column("status", [status_text(row) for row in shown], figures=False))
    return Sheet(legend.caption(), columns, [_style(row) for row in shown], legend.notes())


def _work_sheet(shown: Sequence[Row]) -> Sheet:
    """How often each row did what: the same on every machine, so it says why one is faster than another."""
    counted = [row for row in shown if row.status == "ok"]
    names = {name for row in counted for name in row.tallies}
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *_settings(legend)]
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


def _settings(legend: Legend) -> list[Column]:
    return [Column(title, texts, figures=title in _FIGURES) for title, texts in legend.columns.items()]


def _seconds_columns(shown: Sequence[Row], always: Sequence[str]) -> list[Column]:
    """The total and its phases: those of `always`, and any other in which some row spent time."""
    spent = [phase for phase in measured_phases(shown) if any(row.seconds.get(phase) for row in shown)]
    usual = [phase for phase in PHASES if phase in always or phase in spent]
    phases = usual + [phase for phase in spent if phase not in PHASES]
    decimals = decimals_for(row.total for row in shown if row.total is not None)
    texts = []
    for row in shown:
        total, parts = seconds_texts(list(row.seconds.values()), decimals)
        written = dict(zip(("total", *row.seconds), (total, *parts), strict=True)) if row.seconds else {}
        texts.append({name: text + _phase_mark(row, name) for name, text in written.items()})
    return [
        Column(name, [text.get(name, _nothing(row)) for row, text in zip(shown, texts, strict=True)])
        for name in ("total", *phases)
    ]


def _column(
    heading: str,
    shown: Sequence[Row],
    figure: Callable[[Row], Any],
    text: Callable[[Any], str],
    mark: Callable[[Row], str] = lambda _: "",
) -> Column:
    figures = [(row, figure(row)) for row in shown]
    return Column(heading, [_nothing(row) if value is None else text(value) + mark(row) for row, value in figures])


def _ratio_column(shown: Sequence[Row], variant: str) -> Column:
    """How many times a row's total is that of `variant` on the same corpus, to the same vocabulary."""
    baselines = {
        _question(row): row.total for row in reversed(shown) if row.record.get("variant") == variant and row.total
    }
    if not baselines:
        known = dict.fromkeys(str(row.record.get("variant")) for row in shown if row.total)
        raise Refusal(f"no time of {variant!r} to compare with; there are: {', '.join(known) or 'none'}")
    ratios = [
        row.total / baselines[_question(row)] if row.total and _question(row) in baselines else None for row in shown
    ]
    texts = [
        _nothing(row) if ratio is None else _ratio_text(ratio) + _mark(row)
        for row, ratio in zip(shown, ratios, strict=True)
    ]
    return Column(f"total / {variant}", texts)


def _ratio_text(ratio: float) -> str:
    """To three digits where it is large, to two where it is small: 27.4, 0.31, 0.0013."""
    return rate_text(ratio) if ratio >= 0.1 else f"{ratio:.2g}"


def _question(row: Row) -> tuple[Any, ...]:
    return row.corpus.get("sha256"), row.record.get("vocab_size"), row.record.get("pattern")


def _memory_column(shown: Sequence[Row]) -> Column:
    column = _column("memory", shown, lambda row: row.peak_rss_bytes, bytes_text)
    sampled = [SAMPLED if row.memory_is_sampled else "" for row in shown]
    return Column("memory", [mark + cell for mark, cell in zip(sampled, column.cells, strict=True)])


def _nothing(row: Row) -> str:
    """A dash says "not measured"; a mismatch was measured, and none of it counts."""
    return "" if row.status == "mismatch" else NOT_MEASURED


def _mark(row: Row) -> str:
    return "" if row.confirmed else UNCONFIRMED


def _phase_mark(row: Row, phase: str) -> str:
    return (REUSED if row.counts_reused and phase in ("read", "count") else "") + _mark(row)


def _corpus_per_second(row: Row, unit: str) -> float | None:
    return row.per_second(row.corpus.get(unit), row.seconds)


def _megabytes_text(bytes_per_second: float) -> str:
    return rate_text(bytes_per_second / 1e6)


def _proof(row: Row) -> str:
    if row.status == "mismatch":
        return f"≠ {divergence_text(row, _LONGEST_TOKEN)}"
    if row.status != "ok":
        return status_text(row)
    if not row.confirmed:
        return f"{row.digest} {UNCONFIRMED}"
    others = len(row.agreeing) - _NAMED_IN_PROOF
    named = ", ".join(row.agreeing[:_NAMED_IN_PROOF]) + (f" +{others}" if others > 0 else "")
    return f"{row.digest} = {named}" if named else row.digest


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
        "  python -m harness.table --format csv > times.csv    raw seconds and bytes\n\n"
        "merges/s is merges divided by all seconds but those of read and count. memory is the peak.\n"
        "exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_record_arguments(parser)
    formats = ("terminal", "markdown", "csv")
    parser.add_argument("--format", choices=formats, default=formats[0], help="(default: %(default)s)")
    parser.add_argument("--work", action="store_true", help="a second table: how often each variant did what")
    orders = ("appearance", "total")
    parser.add_argument("--relative-to", metavar="VARIANT", help="a column: how many times the total of that variant")
    parser.add_argument("--sort", choices=orders, default=orders[0], help="the order of rows (default: %(default)s)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show ≠ gets a question mark instead of a traceback.
        sys.stdout.reconfigure(errors="replace")
    try:
        chosen = chosen_records(arguments)
        form: dict[str, Any] = {"work": arguments.work, "sort": arguments.sort, "relative_to": arguments.relative_to}
        if arguments.format == "csv":
            sys.stdout.write(to_csv(chosen, sort=arguments.sort))
        elif arguments.format == "markdown":
            sys.stdout.write(to_markdown(chosen, **form))
        else:
            render(chosen, Console(), **form)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    return exit_code(chosen)


if __name__ == "__main__":
    sys.exit(main())
