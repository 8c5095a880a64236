"""python -m harness.board: the page of a board, from its records: ranks, ratios, memory, whose
merges, and charts.

python -m harness experiment=board results=results/board  measure, for hours; interrupted, resume it
python -m harness.board results/board                     README.md there, a chart for each table, and one of all
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.common.arguments import Parser
from harness.common.ending import exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.escape import markdown_text
from harness.common.files import check_output, write_output
from harness.common.printing import print_stdout
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import count_text, counted_text, ratio_text
from harness.records.file import Record, files_read
from harness.results.canvas import save_figure
from harness.results.charts import dots
from harness.results.fields import together
from harness.results.legend import caption_of
from harness.results.notes import notes
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PROFILE = "README.md", "profile.svg"
PROFILED = (
    "The share of all cells that each trainer trains within so many times of the best one's time"
)
# the end of the page: how it was measured, and how to do it again
ABOUT = Path(__file__).with_suffix(".txt")
MISLEADS = "A single ratio misleads: it depends on the corpus and on the vocabulary."

DRAWN = """\
Texts whose names end with a date were [drawn by
it](../../docs/how-to/board.md#a-text-that-nobody-knows-beforehand), so no trainer could be tuned on
them. To draw them again:

```sh
{commands}
```"""


class Section(NamedTuple):
    """A corpus and a vocabulary with all its rows, and those of each trainer in the order of their
    ranks, from the fewest threads up.
    """

    corpus: str
    vocab_size: int
    rows: Sequence[Row]
    trainers: Sequence[Sequence[Row]]

    @property
    def firsts(self) -> list[Row]:
        """The row of each trainer on the fewest threads, by which it is ranked."""
        return [trainer[0] for trainer in self.trainers]

    @property
    def title(self) -> str:
        return f"{self.corpus}, {count_text(self.vocab_size)} tokens"

    @property
    def chart(self) -> str:
        """The name of its chart's file."""
        return f"{self.corpus}-{self.vocab_size}.svg".replace("/", "_").replace(" ", "_")

    def ratios(self, interval: bool = True) -> list[str]:
        """How many times the first one's time each trainer takes."""
        firsts = self.firsts
        return [times_text(ratio_of(row, firsts[0]), interval=interval) for row in firsts]


def sections(board: Sequence[Row]) -> list[Section]:
    """The tables of a board: corpora in their order, vocabularies from the smallest up."""
    measured = [row for row in board if not row.counting_only]
    corpora = list(dict.fromkeys(row.corpus.sha256 for row in measured))
    tables = together(
        [
            ((corpora.index(row.corpus.sha256), row.record.cell.vocab_size or 0), row)
            for row in measured
        ]
    )

    found = []
    for (_, size), table in sorted(tables.items()):
        by_threads = sorted(table, key=lambda row: row.threads)
        trainers = [*together([(row.name, row) for row in by_threads]).values()]
        trainers.sort(key=lambda trainer: trainer[0].order)
        found.append(Section(str(table[0].corpus.name), size, table, trainers))
    return found


def page_of(records: Sequence[Record], folder: Path) -> tuple[str, dict[str, Callable[[], Figure]]]:
    """The page in Markdown, and what draws each of its charts by the name of its file. Raises
    Refusal if nothing can be compared.
    """
    shown = rows(records)
    board = sections([row for row in shown if row.status != "skipped"])
    if not board:
        raise Refusal(
            f"no trainer was measured in {folder}; python -m harness experiment=board results={folder} does"
        )
    for section in board:
        _check_one_task(section, folder)

    charts: dict[str, Callable[[], Figure]] = {}
    ratios = sheet_to_markdown(ratios_sheet(board))
    parts = ["# The board", board_headline(board), ratios, MISLEADS]
    measured = [row for section in board for row in section.rows]
    if profile_of(measured) is not None:
        charts[PROFILE] = partial(profile, measured)
        printed = f"`python -m harness.table {folder.as_posix()} --profile` prints it."
        parts += [f"![{PROFILED}]({PROFILE})", f"{PROFILED}. {printed}"]
    drawn = [row for row in shown if "instance" in (row.corpus.generated or {})]
    if drawn:
        parts.append(DRAWN.format(commands=commands(drawn)))

    for section in board:
        charts[section.chart] = partial(dots, section.firsts)
        chart = f"![Seconds of each trainer on {section.corpus}]({section.chart})"
        parts += [f"## {section.title}", chart, sheet_to_markdown(sheet_of(section))]

    skipped = dict.fromkeys((row.name, row.reason) for row in shown if row.status == "skipped")
    if skipped:
        reasons = [f"- {markdown_text(f'{name}: {reason}')}" for name, reason in skipped]
        parts += ["## Not measured", "\n".join(reasons)]
    about = ABOUT.read_text().format(
        folder=folder.as_posix(),
        corpus=(measured[0].corpus.generated or {}).get("of", board[0].corpus),
        vocab_size=board[0].vocab_size,
        given=sheet_to_markdown(given_sheet(measured)).strip(),
    )
    return "\n\n".join(part.strip() for part in [*parts, about] if part) + "\n", charts


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
        ranked = [row for row in section.firsts if row.is_ranked]
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
    names = dict.fromkeys(row.name for section in board for row in section.firsts)
    columns = [Column("trainer", list(names), figures=False)]
    for section in board:
        cells = dict.fromkeys(names, NOT_MEASURED)
        for row, ratio in zip(section.firsts, section.ratios(interval=False), strict=True):
            cells[row.name] = outcome_text(row, ratio)
        heading = f"{section.corpus} {count_text(section.vocab_size)}"
        columns.append(Column(heading, list(cells.values())))
    return Sheet([], columns)


def sheet_of(section: Section) -> Sheet:
    """The table of a section."""
    firsts = section.firsts
    ranks = []
    for rank, row in enumerate(firsts, 1):
        ranks.append(str(rank) if row.is_ranked else NOT_MEASURED)
    columns = [
        Column("rank", ranks),
        Column("trainer", [row.name for row in firsts], figures=False),
    ]

    for width in sorted({row.threads for row in section.rows}):
        times = []
        for trainer in section.trainers:
            texts = [
                outcome_text(row, figure_text(row, "total"))
                for row in trainer
                if row.threads == width
            ]
            times.append(texts[0] if texts else NOT_MEASURED)
        columns.append(Column(counted_text(width, "thread"), times))
    columns += [
        Column("times the first", list(map(marked, firsts, section.ratios()))),
        Column("memory", [figure_text(row, "memory") or NOT_MEASURED for row in firsts]),
        Column("merges", list(map(proof_text, firsts)), figures=False),
    ]
    stopped = [row for row in firsts if row.status == "timeout"]
    compared = against(firsts)
    below = [*notes(firsts, stopped, compared=compared), *clock_note(compared)]
    return Sheet(caption_of(section.rows), columns, notes=below)


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
        text, charts = page_of(records_of([str(folder)]), folder)
        for name, draw in charts.items():
            save_figure(draw(), folder / name)
        write_output(folder / PAGE, text.encode(errors="replace"))
        for name in (PAGE, *charts):
            print_stdout(f"wrote {folder / name}")
        return OK

    return exit_code_of(command)


if __name__ == "__main__":
    sys.exit(main())
