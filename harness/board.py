"""python -m harness.board: the page of a board, from its records: ranks, ratios, memory, whose
merges, and charts.

python -m harness experiment=board results=results/board  measure, for hours; interrupted, resume it
python -m harness.board results/board                     README.md there, a chart for each table, and one of all
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.arguments import Parser
from harness.common.ending import exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.escape import markdown_text
from harness.common.outputs import check_output, write_output
from harness.common.printing import print_stdout
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import bytes_text, count_text, counted_text, ratio_text
from harness.records.file import Record, files_read
from harness.results.canvas import save_figure
from harness.results.charts import dots
from harness.results.fields import together
from harness.results.legend import caption_of
from harness.results.notes import notes, reasons
from harness.results.page import commands
from harness.results.profile import profile, profile_of
from harness.results.ratios import against, clock_note, leader, ratio_of
from harness.results.rows import Row, rows
from harness.results.selection import records_of, unlike
from harness.results.tables import given_sheet
from harness.results.writing import (
    NOT_MEASURED,
    figure_text,
    marked,
    outcome_text,
    proof_text,
    times_text,
)

PAGE, PROFILE = "README.md", "profile.svg"
PROFILED = (
    "The share of all cells that each trainer trains within so many times of the best one's time"
)
Records = Sequence[Record]
# the end of the page: how it was measured, and how to do it again
ABOUT = Path(__file__).with_suffix(".txt")
MISLEADS = "A single ratio misleads: it depends on the corpus and on the vocabulary."

DRAWN = """\
Texts whose names end with a date were [drawn by
it](../../docs/how-to/run.md#a-text-that-nobody-knows-beforehand), so no trainer could be tuned on
them. To draw them again:

```sh
{commands}
```"""


class Entrant(NamedTuple):
    """One trainer in one table: its rows by threads, the one on the fewest, and the fastest, or the
    first of them.
    """

    rows: Mapping[int, Row]
    first: Row
    best: Row

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Ranked by time, then other merges, then rows without a time, stopped ones first."""
        number = self.best.time.number
        return (
            self.best.total is None,
            not self.best.is_ranked,
            math.inf if number is None else number,
        )


class Section(NamedTuple):
    """A corpus and a vocabulary with all rows measured on it, and its trainers in the order of
    their ranks.
    """

    corpus: str
    vocab_size: int
    rows: Sequence[Row]
    entrants: Sequence[Entrant]

    @property
    def title(self) -> str:
        return f"{self.corpus}, {count_text(self.vocab_size)} tokens"

    @property
    def chart(self) -> str:
        """The name of its chart's file."""
        return f"{self.corpus}-{self.vocab_size}.svg".replace("/", "_").replace(" ", "_")

    def ratio_text(self, entrant: Entrant, interval: bool = True) -> str:
        """How many times the first one's time a trainer takes, the same number here, in the chart
        and in README.
        """
        row, reference = entrant.first, self.entrants[0].first
        ratio = ratio_of(row, reference)
        if ratio is None:
            return ""
        return "× 1" if row is reference else times_text(ratio, interval=interval)


def sections(board: Sequence[Row]) -> list[Section]:
    """The tables of a board: corpora in their order, vocabularies from the smallest up."""
    by_corpus: dict[Any, dict[int, list[Row]]] = {}
    for row in board:
        size = row.record.cell.vocab_size
        if not row.counting_only and size is not None:
            sizes = by_corpus.setdefault(row.corpus.sha256, {})
            sizes.setdefault(size, []).append(row)

    found = []
    for sizes in by_corpus.values():
        for size, measured in sorted(sizes.items()):
            by_name = together([(row.name, row) for row in measured])
            entrants = [_entrant(trainer) for trainer in by_name.values()]
            entrants.sort(key=lambda entrant: entrant.order)
            found.append(Section(str(measured[0].corpus.name), size, measured, entrants))
    return found


def _entrant(trainer: Sequence[Row]) -> Entrant:
    by_threads = {row.threads: row for row in trainer}
    first = by_threads[min(by_threads)]
    timed = [row for row in by_threads.values() if row.total is not None]
    return Entrant(by_threads, first, min(timed, key=lambda row: row.total or 0.0, default=first))


def page_of(records: Records, folder: Path) -> tuple[str, list[Section]]:
    """The page in Markdown, and its sections. Raises Refusal if nothing can be compared."""
    shown = rows(records)
    board = sections([row for row in shown if row.status != "skipped"])
    if not board:
        raise Refusal(
            f"no trainer was measured in {folder}; python -m harness experiment=board results={folder} does"
        )
    for section in board:
        _check_one_task(section, folder)

    ratios = sheet_to_markdown(ratios_sheet(board))
    parts = ["# The board", board_headline(board), ratios, MISLEADS]
    if profile_of(_rows_of(board)) is not None:
        parts.append(f"![{PROFILED}]({PROFILE})")
        parts.append(
            f"{PROFILED}. `python -m harness.table {folder.as_posix()} --profile` prints it."
        )
    drawn = [row for row in shown if "instance" in (row.record.cell.data.generated or {})]
    if drawn:
        parts.append(DRAWN.format(commands=commands(drawn)))
    for section in board:
        chart = f"![Seconds of each trainer on {section.corpus}]({section.chart})"
        parts += [f"## {section.title}", chart, sheet_to_markdown(sheet_of(section))]

    skipped = dict.fromkeys((row.name, row.reason) for row in shown if row.status == "skipped")
    if skipped:
        reasons = [f"- {markdown_text(f'{name}: {reason}')}" for name, reason in skipped]
        parts += ["## Not measured", "\n".join(reasons)]
    sheet = given_sheet(_rows_of(board))
    about = ABOUT.read_text().format(
        folder=folder.as_posix(),
        corpus=(board[0].rows[0].corpus.generated or {}).get("of", board[0].corpus),
        vocab_size=board[0].vocab_size,
        given=sheet_to_markdown(sheet).strip(),
    )
    return "\n\n".join(part.strip() for part in [*parts, about] if part) + "\n", board


def _rows_of(board: Sequence[Section]) -> list[Row]:
    return [row for section in board for row in section.rows]


def _check_one_task(section: Section, folder: Path) -> None:
    """Raise Refusal if the rows of a table cannot be compared."""
    names = unlike(section.rows, without=("tie_break", "counting"))
    if names:
        why = f"the records of {section.title} in {folder} differ in {', '.join(names)}"
        advice = "remove older records, or keep each in its own folder"
        raise Refusal(f"{why}, and a ratio is of one machine and one question; {advice}")


def board_headline(board: Sequence[Section]) -> str:
    """Return who is first in how many tables, and how far the next one is behind."""
    leads: dict[str, list[float]] = {}
    for section in board:
        ranked = [entrant.first for entrant in section.entrants if entrant.best.is_ranked]
        ratio = ratio_of(ranked[1], ranked[0]) if len(ranked) > 1 else None
        if ratio is not None and leader(ranked) is ranked[0]:
            leads.setdefault(ranked[0].name, []).append(ratio.number)

    sentences = []
    for name, ratios in sorted(leads.items(), key=lambda item: -len(item[1])):
        behind = " to ".join(dict.fromkeys([ratio_text(min(ratios)), ratio_text(max(ratios))]))
        where = f"{len(ratios)} of {len(board)} tables"
        sentences.append(
            f"**{name}** is fastest in {where}; the next one takes {behind} times as long."
        )
    return " ".join(sentences)


def ratios_sheet(board: Sequence[Section]) -> Sheet:
    """A line for each trainer, a column with its ratio for each table."""
    names = dict.fromkeys(entrant.first.name for section in board for entrant in section.entrants)
    columns = [Column("trainer", list(names), figures=False)]
    for section in board:
        ratios = dict.fromkeys(names, NOT_MEASURED)
        for entrant in section.entrants:
            ratio = section.ratio_text(entrant, interval=False)
            ratios[entrant.first.name] = outcome_text(entrant.first, ratio)
        heading = f"{section.corpus} {count_text(section.vocab_size)}"
        columns.append(Column(heading, list(ratios.values())))
    return Sheet([], columns)


def sheet_of(section: Section) -> Sheet:
    """The table of a section."""
    entrants = section.entrants
    ranks = []
    for rank, entrant in enumerate(entrants, 1):
        ranks.append(str(rank) if entrant.best.is_ranked else NOT_MEASURED)
    columns = [
        Column("rank", ranks),
        Column("trainer", [entrant.first.name for entrant in entrants], figures=False),
    ]

    for width in sorted({row.threads for row in section.rows}):
        times = [_outcome(entrant.rows.get(width)) for entrant in entrants]
        columns.append(Column(counted_text(width, "thread"), times))
    peaks = [entrant.best.peak_rss_bytes for entrant in entrants]
    columns += [
        Column("times the first", [marked(e.first, section.ratio_text(e)) for e in entrants]),
        Column("memory", [bytes_text(peak) if peak else NOT_MEASURED for peak in peaks]),
        Column("merges", [proof_text(entrant.best) for entrant in entrants], figures=False),
    ]
    firsts = [entrant.first for entrant in entrants]
    stopped = [row for row in firsts if row.status == "timeout"]
    below = [*notes(firsts, stopped), *reasons(firsts), *clock_note(against(firsts))]
    return Sheet(caption_of(section.rows), columns, notes=below)


def _outcome(row: Row | None) -> str:
    return NOT_MEASURED if row is None else outcome_text(row, figure_text(row, "total"))


def write_board(records: Records, folder: Path) -> list[Path]:
    """Write the page and its charts into the folder; return what was written."""
    text, board = page_of(records, folder)
    written = [folder / PAGE]
    if profile_of(_rows_of(board)) is not None:
        save_figure(profile(_rows_of(board)), folder / PROFILE)
        written.append(folder / PROFILE)
    for section in board:
        save_figure(dots(section.rows), folder / section.chart)
        written.append(folder / section.chart)
    write_output(folder / PAGE, text.encode(errors="replace"))
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.board",
        description="Write the page of a board and its charts from the records in a folder.",
        epilog="exit code: 0; 2 for a usage error; 22 if there are no records.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("results/board"),
        help="read this folder and write into it (default: %(default)s)",
    )
    folder = parser.parse_args(argv).folder

    def command() -> int:
        check_output(folder, files_read([folder]), names=[PAGE, PROFILE])
        for path in write_board(records_of([str(folder)]), folder):
            print_stdout(f"wrote {path}")
        return OK

    return exit_code_of(command)


if __name__ == "__main__":
    sys.exit(main())
