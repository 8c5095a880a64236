"""python -m harness.board: the page of a board, from its records: ranks, ratios, memory, whose
merges, and charts.

python -m harness experiment=board results=results/board      measure, for hours; an interrupted run
continues python -m harness.board results/board                         results/board/README.md and
a chart for each table python -m harness.board results/board --check                 21 if the page
is not what the records say
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.console import Parser, markdown_text, say, tell
from harness.common.errors import MISMATCH, OK, WHOLE_FILES, Refusal, guarded
from harness.common.files import write_whole
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import bytes_text, count_text, counted_text, one_line, ratio_text
from harness.results.charts import dots
from harness.results.drawing import same_picture, save
from harness.results.fields import together
from harness.results.legend import Legend, failures
from harness.results.rows import NOT_MEASURED, Row, ratio_of, rows, times_of
from harness.results.selection import records_of, unlike
from harness.results.tables import given_sheet

PAGE = "README.md"
Records = Sequence[Mapping[str, Any]]
# the end of the page: how it was measured, and how to do it again
ABOUT = Path(__file__).with_suffix(".txt")
MISLEADS = "A single ratio misleads: it depends on the corpus and on the vocabulary. A star: other merges, on purpose."


class Place(NamedTuple):
    """One trainer in one table: its rows by threads, the one on the fewest, and the fastest, or the
    first of them.
    """

    rows: Mapping[int, Row]
    first: Row
    best: Row

    @property
    def is_ranked(self) -> bool:
        """Whether it has a time and proved merges, of the defined kind or of its own words."""
        return self.best.total is not None and (
            self.best.confirmed or is_right_on_its_words(self.best)
        )

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Ranked by time, then other merges, then rows without a time, estimates first."""
        number = self.best.time.number
        return self.best.total is None, not self.is_ranked, math.inf if number is None else number


class Section(NamedTuple):
    """A corpus and a vocabulary with all rows measured on it, and its trainers in the order of
    their ranks.
    """

    corpus: str
    vocab_size: int
    rows: Sequence[Row]
    places: Sequence[Place]

    @property
    def title(self) -> str:
        return f"{self.corpus}, {count_text(self.vocab_size)} tokens"

    @property
    def chart(self) -> str:
        """The name of its chart's file."""
        return f"{self.corpus}-{self.vocab_size}.svg".replace("/", "_").replace(" ", "_")

    def ratio_text(self, place: Place, interval: bool = True) -> str:
        """How many times the first one's time a trainer takes, the same number here, in the chart
        and in README.
        """
        row, reference = place.first, self.places[0].first
        ratio = ratio_of(row, reference)
        if ratio is None:
            return NOT_MEASURED
        return "× 1" if row is reference else times_of(ratio, interval=interval) + row.mark


def sections(board: Sequence[Row]) -> list[Section]:
    """The tables of a board: corpora in their order, vocabularies from the smallest up."""
    trained = [
        row for row in board if not row.counting_only and row.record.get("vocab_size") is not None
    ]
    found = []
    for corpus in together([(row.corpus.get("sha256"), row) for row in trained]).values():
        for size, own in sorted(
            together([(row.record["vocab_size"], row) for row in corpus]).items()
        ):
            places = [_place(rows) for rows in together([(row.name, row) for row in own]).values()]
            places.sort(key=lambda place: place.order)
            found.append(Section(str(own[0].corpus.get("name")), size, own, places))
    return found


def _place(rows: Sequence[Row]) -> Place:
    own = {row.threads: row for row in rows}
    first = own[min(own)]
    timed = [row for row in own.values() if row.total is not None]
    return Place(own, first, min(timed, key=lambda row: row.total or 0.0, default=first))


def is_right_on_its_words(row: Row) -> bool:
    """Whether its merges differ only because its words do: on its own words they are the defined
    ones.
    """
    return row.by_design and not row.other_merges


def page_of(records: Records, folder: Path) -> tuple[str, list[Section]]:
    """The page in Markdown, and its sections. Raises Refusal if nothing can be compared."""
    shown = rows(records)
    skipped = dict.fromkeys((row.name, row.reason) for row in shown if row.status == "skipped")
    board = sections([row for row in shown if row.status != "skipped"])
    if not board:
        raise Refusal(
            f"no trainer was measured in {folder}; python -m harness experiment=board results={folder} does"
        )
    for section in board:
        if names := unlike(section.rows, without=("tie_break", "counting")):
            why = f"the records of {section.title} in {folder} differ in {', '.join(names)}"
            advice = "remove older records, or keep each in its own folder"
            raise Refusal(f"{why}, and a ratio is of one machine and one question; {advice}")
    parts = ["# The board", headline(board), sheet_to_markdown(ratios_sheet(board)), MISLEADS]
    for section in board:
        chart = f"![Seconds of each trainer on {section.corpus}]({section.chart})"
        parts += [f"## {section.title}", chart, sheet_to_markdown(sheet_of(section))]
    if skipped:
        reasons = "\n".join(f"- {markdown_text(f'{name}: {reason}')}" for name, reason in skipped)
        parts += ["## Not measured", reasons]
    first, given = board[0], given_sheet([row for section in board for row in section.rows])
    about = {"folder": folder.as_posix(), "corpus": first.corpus, "vocab_size": first.vocab_size}
    parts.append(ABOUT.read_text().format(given=sheet_to_markdown(given).strip(), **about))
    return "\n\n".join(part.strip() for part in parts if part) + "\n", board


def headline(board: Sequence[Section]) -> str:
    """Who is first in how many tables, and how far behind the next one is."""
    led: dict[str, list[float]] = {}
    for section in board:
        ranked = [place.first for place in section.places if place.is_ranked]
        if len(ranked) > 1 and (ratio := ratio_of(ranked[1], ranked[0])) is not None:
            led.setdefault(ranked[0].name, []).append(ratio.number)
    sentences = []
    for name, ratios in sorted(led.items(), key=lambda item: -len(item[1])):
        behind = " to ".join(dict.fromkeys([ratio_text(min(ratios)), ratio_text(max(ratios))]))
        where = f"{len(ratios)} of {len(board)} tables"
        sentences.append(
            f"**{name}** is fastest in {where}; the next one takes {behind} times as long."
        )
    return " ".join(sentences)


def ratios_sheet(board: Sequence[Section]) -> Sheet:
    """A line for each trainer, a column with its ratio for each table."""
    names = list(dict.fromkeys(place.first.name for section in board for place in section.places))
    columns = [Column("trainer", names, figures=False)]
    for section in board:
        ratios = {
            place.first.name: "wrong"
            if place.first.status == "mismatch"
            else section.ratio_text(place, interval=False)
            for place in section.places
        }
        columns.append(Column(section.title, [ratios.get(name, NOT_MEASURED) for name in names]))
    return Sheet([], columns, ["" for _ in names], [])


def sheet_of(section: Section) -> Sheet:
    """The table of a section."""
    places = section.places
    peaks = [place.best.peak_rss_bytes for place in places]
    widths = sorted({row.threads for row in section.rows})
    columns = [
        Column(
            "rank",
            [
                str(rank) if place.is_ranked else NOT_MEASURED
                for rank, place in enumerate(places, 1)
            ],
        ),
        Column("trainer", [place.first.name for place in places], figures=False),
        *(
            Column(
                counted_text(width, "thread"),
                [_time_text(place.rows.get(width)) for place in places],
            )
            for width in widths
        ),
        Column("times the first", [section.ratio_text(place) for place in places]),
        Column("memory", [NOT_MEASURED if peak is None else bytes_text(peak) for peak in peaks]),
        Column("merges", [place.best.proof for place in places], figures=False),
    ]
    return Sheet(Legend(section.rows).caption(), columns, ["" for _ in places], _notes(section))


def _time_text(row: Row | None) -> str:
    if row is None:
        return NOT_MEASURED
    return row.time.text or ("wrong" if row.status == "mismatch" else row.status_text)


def _notes(section: Section) -> list[str]:
    """Why rows are not ranked: wrong merges, other merges on purpose, failures that are no
    timeouts.
    """
    fewest = [place.first for place in section.places]
    stopped = [row for row in fewest if row.status in ("timeout", "extrapolated")]
    notes = failures(Legend(fewest), stopped)
    for row in fewest:
        if row.status == "ok" and row.by_design:
            reason = one_line(
                str(row.identity.get("reason") or "").rpartition("; ")[0] or "no reason recorded"
            )
            own = (
                f"; identical on its own words ({row.identity['of_own_words']})"
                if is_right_on_its_words(row)
                else ""
            )
            notes.append(f"{row.name}: other merges on purpose: {reason}{own}.")
        elif row.status == "ok" and not row.confirmed:
            notes.append(f"{row.name}: nobody has proved its merges, so it is not ranked.")
    return notes


def write(records: Records, folder: Path, output: Path) -> list[Path]:
    """Write the page and its charts into `output`; return what was written."""
    text, board = page_of(records, folder)
    for section in board:
        save(dots(section.rows), output / section.chart)
    write_whole(output / PAGE, text.encode(errors="replace"))
    return [output / PAGE, *(output / section.chart for section in board)]


def stale_files(records: Records, folder: Path) -> list[Path]:
    """The files in the folder that are not what its records say."""
    with tempfile.TemporaryDirectory() as temporary:
        page, *charts = write(records, folder, Path(temporary))
        stale = [chart for chart in charts if not same_picture(folder / chart.name, chart)]
        if not (folder / PAGE).exists() or (folder / PAGE).read_bytes() != page.read_bytes():
            stale.append(page)
        return [folder / path.name for path in stale]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.board",
        description="Write the page of a board and its charts from the records in a folder.",
        epilog="exit code: 0; 2 for a usage error; 21 if --check finds the page stale; 22 if there are no records.",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("results/board"), help="(default: %(default)s)"
    )
    check = "write nothing; 21 if the page is not what its records say"
    parser.add_argument("--check", action="store_true", help=check)
    arguments = parser.parse_args(argv)
    folder = arguments.folder

    def command() -> int:
        records = records_of([str(folder)])
        if not arguments.check:
            for path in write(records, folder, folder):
                tell(f"wrote {path}")
        elif old := stale_files(records, folder):
            say(f"{', '.join(map(str, old))}: stale; run python -m harness.board {folder}")
            return MISMATCH
        return OK

    return guarded(command, WHOLE_FILES)


if __name__ == "__main__":
    sys.exit(main())
