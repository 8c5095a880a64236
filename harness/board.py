"""python -m harness.board: the page of a board, from its records: ranks, ratios, memory, whose
merges, and charts.

python -m harness experiment=board results=results/board  measure, for hours; interrupted, resume it
python -m harness.board results/board                     README.md there, a chart for each table, and one of all
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.common.command import Parser, exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.files import check_output, write_output
from harness.common.printing import markdown_text, print_stdout
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import count_text, counted_text
from harness.records.file import Record, files_read
from harness.report import commands
from harness.results.charts import dots, save_figure
from harness.results.fields import together
from harness.results.lines import profile_figure, profile_of
from harness.results.notes import finding
from harness.results.ratios import TASK, ratio_of, unlike
from harness.results.rows import Row, rows
from harness.results.selection import records_of
from harness.results.tables import TableOptions, given_sheet, table_of
from harness.results.writing import NOT_MEASURED, caption_of, figure_text, outcome_text, times_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PROFILE = "README.md", "profile.svg"
PROFILED = (
    "The share of all cells that each trainer trains within so many times of the best one's time"
)
# the end of the page: how it was measured, and how to do it again
ABOUT = Path(__file__).with_suffix(".txt")
MISLEADS = "A single ratio misleads: it depends on the corpus and on the vocabulary."
FIGURES = ("variant", "ratio", "memory", "proof")
"""The columns of a table beside the ranks and the times."""

DRAWN = """\
Texts whose names end with a date were [drawn by
it](../../docs/how-to/board.md#a-text-that-nobody-knows-beforehand), so no trainer could be tuned on
them. To draw them again:

```sh
{commands}
```"""


class Section(NamedTuple):
    """A corpus and a vocabulary with all rows; `firsts` has that of each trainer on the fewest
    threads, by which it is ranked, in that order.
    """

    corpus: str
    vocab_size: int
    rows: Sequence[Row]
    firsts: Sequence[Row]

    @property
    def title(self) -> str:
        return f"{self.corpus}, {count_text(self.vocab_size)} tokens"


def sections(board: Sequence[Row]) -> list[Section]:
    """The tables of a board: corpora in their order, vocabularies from the smallest up."""
    measured = [row for row in board if not row.counting_only and row.status != "skipped"]
    found = []
    for of_text in together((row.corpus.sha256, row) for row in measured).values():
        of_text.sort(key=lambda row: (row.values["vocab_size"], row.threads))
        for size, table in together((row.values["vocab_size"], row) for row in of_text).items():
            firsts: dict[str, Row] = {}
            for row in table:
                firsts.setdefault(row.name, row)
            ranked = sorted(firsts.values(), key=attrgetter("order"))
            found.append(Section(str(table[0].corpus.name), size, table, ranked))
    return found


def page_of(records: Sequence[Record], folder: Path) -> tuple[str, dict[str, partial[Figure]]]:
    """The page in Markdown, and what draws each of its charts by the name of its file. Raises
    Refusal if nothing can be compared.
    """
    shown = rows(records)
    board = sections(shown)
    if not board:
        raise Refusal(
            f"no trainer was measured in {folder}; python -m harness experiment=board results={folder} does"
        )
    for section in board:
        names = unlike(section.rows, ("data", *TASK))
        if names:
            why = f"the records of {section.title} in {folder} differ in {', '.join(names)}"
            advice = "remove older records, or keep each in its own folder"
            raise Refusal(f"{why}, and a ratio is of one machine and one question; {advice}")

    measured = [row for section in board for row in section.rows]
    headline, _ = finding([row for section in board for row in section.firsts])
    parts = ["# The board", markdown_text(headline and f"{headline}."), MISLEADS]
    charts = {}
    with suppress(Refusal):  # one trainer alone has neither
        charts[PROFILE] = partial(profile_figure, profile_of(measured))
        parts.append(sheet_to_markdown(ratios_sheet(board)))
        printed = f"`python -m harness.table {folder.as_posix()} --profile` prints it."
        parts += [f"![{PROFILED}]({PROFILE})", f"{PROFILED}. {printed}"]
    drawn = [row for row in shown if "instance" in (row.corpus.generated or {})]
    if drawn:
        parts.append(DRAWN.format(commands=commands(drawn)))

    for section in board:
        file = f"{section.corpus}-{section.vocab_size}.svg".replace("/", "_").replace(" ", "_")
        charts[file] = partial(dots, section.firsts)
        chart = f"![Seconds of each trainer on {section.corpus}]({file})"
        parts += [f"## {section.title}", chart, sheet_to_markdown(sheet_of(section))]

    skipped = [f"{row.name}: {row.reason}" for row in shown if row.status == "skipped"]
    if skipped:
        lines = [f"- {markdown_text(line)}" for line in dict.fromkeys(skipped)]
        parts += ["## Not measured", "\n".join(lines)]
    about = ABOUT.read_text().format(
        folder=folder.as_posix(),
        corpus=(measured[0].corpus.generated or {}).get("of", board[0].corpus),
        vocab_size=board[0].vocab_size,
        given=sheet_to_markdown(given_sheet(measured)).strip(),
    )
    return "\n\n".join(map(str.strip, filter(None, [*parts, about]))) + "\n", charts


def ratios_sheet(board: Sequence[Section]) -> Sheet:
    """How many times the first trainer's time each one takes, with a column for each table."""
    names = dict.fromkeys(row.name for section in board for row in section.firsts)
    columns = [Column("variant", list(names), figures=False)]
    for section in board:
        texts = {}
        for row in section.firsts:
            ratio = ratio_of(row, section.firsts[0])
            texts[row.name] = outcome_text(row, times_text(ratio, "", brief=True))
        columns.append(Column(section.title, [texts.get(name, NOT_MEASURED) for name in names]))
    return Sheet(["How many times the time of the first trainer each one takes"], columns)


def sheet_of(section: Section) -> Sheet:
    """The table of a section: that of its trainers with their ranks, and their times on each number
    of threads.
    """
    firsts = section.firsts
    sheet = table_of(firsts, TableOptions(FIGURES, notes=True))
    variants, *figures = sheet.columns
    ranks = []
    for rank, row in enumerate(firsts, 1):
        ranks.append(str(rank) if row.is_ranked else NOT_MEASURED)

    times = []
    for threads, of_width in together((row.threads, row) for row in section.rows).items():
        texts = {row.name: outcome_text(row, figure_text(row, "total")) for row in of_width}
        cells = [texts.get(row.name, NOT_MEASURED) for row in firsts]
        times.append(Column(counted_text(threads, "thread"), cells))
    columns = [Column("rank", ranks), variants, *times, *figures]
    return sheet._replace(caption=caption_of(section.rows), columns=columns)


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
