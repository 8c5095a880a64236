"""python -m harness.board: the page of a board, from its records: ranks, ratios, memory, whose merges, and pictures.

    python -m harness experiment=board results=results/board      measure, for hours; goes on where it was cut short
    python -m harness.board results/board                         results/board/README.md and a picture for each table
    python -m harness.board results/board --check                 21 if the page is not what the records say

A pure function of the records: of each cell the latest run.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common.console import Parser, markdown_text, say, tell
from harness.common.errors import MISMATCH, OK, WHOLE_FILES, Refusal, guarded
from harness.common.files import write_whole
from harness.common.sheet import sheet_to_markdown
from harness.plot import draw
from harness.results.board import Section, fed_sheet, headline, ratios_sheet, sections, sheet_of
from harness.results.charts.chart import Request
from harness.results.charts.files import alike, save
from harness.results.charts.questions import unlike
from harness.results.chosen import records_of
from harness.results.legend import Legend
from harness.results.rows import Row, rows
from harness.runs.fields import FIELD
from harness.runs.reproduction import command_of, overrides_of

PAGE = "README.md"
Records = Sequence[Mapping[str, Any]]
ABOUT = """\
Made by `python -m harness.board {folder}` from the records in this folder. Each trainer gets the file in the fastest
way that its authors document. It runs in a process of its own, in interleaved blocks, as many as its ratio to the first
trainer needs to be precise, up to a limit; each verdict gives the interval. Why this does not bias the result:
{measuring}. What could favour us: {fairness}.

- Times cover everything from the file to the merges, counting included.
- A trainer that was stopped at the limit is run on small parts of the text, and what all of it would take follows from
  these (`~`). `>`: at least, where they do not show it.
- `identical (RULE)`: the same merges as ours under that tie-break. `identical up to ties`: each merge was of a pair as
  frequent as any other.
- `different by design`: other merges on purpose. Such a trainer is ranked only if its merges are identical on the words
  that it cuts by its own rules.
- Wrong merges get no time.

What was measured:
"""


def page_of(records: Records, folder: Path) -> tuple[str, list[Section]]:
    """The page in Markdown, and its sections, each with a picture. Raises Refusal where nothing can be compared."""
    shown = rows(records)
    skipped = [row for row in shown if row.status == "skipped"]
    board = sections([row for row in shown if row.status != "skipped"])
    if not board:
        raise Refusal(f"no trainer was measured in {folder}; python -m harness experiment=board results={folder} does")
    for section in board:
        require_one_question(section, folder)
    measured = [row for section in board for row in section.rows]
    parts = [
        "# The board",
        headline(board),
        RATIOS,
        sheet_text(ratios_sheet(board)),
        "## How it was measured",
        about(measured, folder),
    ]
    for section in board:
        parts += section_parts(section)
    parts += ["## What each was given", sheet_text(fed_sheet(measured))]
    if absent := absent_parts(skipped):
        parts += ["## Not measured", absent]
    parts += ["## One cell again", reproduce(measured, folder)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n", board


def require_one_question(section: Section, folder: Path) -> None:
    """Raises Refusal if the rows of a table were asked different things, or on different machines."""
    found = unlike(section.rows, without=("tie_break", "counting"))
    if found:
        raise Refusal(
            f"the records of {section.title} in {folder} are unlike in {' and '.join(found.values())}, and a ratio is "
            "of one machine and one question; take out what is older, or keep each in a folder of its own"
        )


RATIOS = (
    "Each time divided by that of the first trainer, on the fewest threads that were measured. A star: different by "
    "design, so the work is not the same. A single ratio misleads: it depends on the corpus and on the vocabulary."
)


def about(measured: Sequence[Row], folder: Path) -> str:
    """Where, when and how it was measured, in the words of every caption."""
    return "\n".join(
        [
            ABOUT.format(
                folder=folder.as_posix(),
                measuring=page_link("explanation/measuring.md", folder),
                fairness=page_link("../results/fairness/README.md", folder),
            ),
            *(f"- {markdown_text(line)}" for line in Legend(measured).caption()),
            f"- measured {', '.join(days(measured))}; harness at commit {', '.join(commits(measured))}",
        ]
    )


def page_link(page: str, folder: Path) -> str:
    """A page of the documentation: as a link where the board lies in a checkout, else by its name."""
    place = folder / ".." / ".." / "docs" / page
    name = f"docs/{page}".removeprefix("docs/../")
    return f"[{name}](../../{name})" if place.exists() else name


def days(measured: Sequence[Row]) -> list[str]:
    return sorted({str(row.record["started"])[:10] for row in measured})


def commits(measured: Sequence[Row]) -> list[str]:
    found = {str((row.record.get("environment") or {}).get("commit") or "unknown")[:12] for row in measured}
    return sorted(found)


def section_parts(section: Section) -> list[str]:
    picture = f"![Seconds of each trainer on {section.corpus}]({section.picture})"
    return [f"## {section.title}", measured_on(section.rows), sheet_text(sheet_of(section)), picture]


def measured_on(measured: Sequence[Row]) -> str:
    """When and on what machine: tables of one board may be of several."""
    told = (FIELD["host"].in_words(row.record) for row in measured)
    machines = dict.fromkeys(words.said for words in told if words is not None)
    return markdown_text(f"Measured {' and '.join(days(measured))} on {' and '.join(machines)}.")


def sheet_text(sheet: Any) -> str:
    return sheet_to_markdown(sheet).strip()


def absent_parts(skipped: Sequence[Row]) -> str:
    """Who could not be measured, each once, with the reason."""
    reasons = dict.fromkeys((row.name, row.reason) for row in skipped)
    return "\n".join(f"- {markdown_text(name)}: {markdown_text(reason)}" for name, reason in reasons)


def reproduce(measured: Sequence[Row], folder: Path) -> str:
    """The commands that measure a cell of the board again."""
    row = next((row for row in measured if row.total is not None), measured[0])
    asked = [each for each in overrides_of(row.record) if each.startswith("data")]
    asked.append(f"vocab_size={row.record['vocab_size']}")
    lines = [
        "One table of the board, and one cell as its record tells it:",
        "",
        "```sh",
        shlex.join(["python", "-m", "harness", "experiment=board", *asked, "results=results/again"]),
        command_of(row.record),
        "```",
        "",
        f"A trainer of yours beside them: {page_link('how-to/board.md', folder)}.",
    ]
    return "\n".join(lines)


def write(records: Records, folder: Path, output: Path) -> list[Path]:
    """Write the page and its pictures into `output`; returns what was written."""
    text, board = page_of(records, folder)
    written = []
    for section in board:
        drawn(records, section, output / section.picture)
        written.append(output / section.picture)
    write_whole(output / PAGE, text.encode(errors="replace"))
    return [output / PAGE, *written]


def drawn(records: Records, section: Section, path: Path) -> None:
    """The picture of a section."""
    chosen = [f"data={section.corpus}", f"vocab_size={section.vocab_size}"]
    save(draw(records, "dots", Request(programs=section.programs), chosen), path)


def stale(records: Records, folder: Path) -> list[Path]:
    """What lies in the folder and is not what its records say."""
    with tempfile.TemporaryDirectory() as temporary:
        fresh = write(records, folder, Path(temporary))
        found = []
        for path in fresh:
            kept = folder / path.name
            same = kept.exists() and (
                kept.read_bytes() == path.read_bytes() if path.name == PAGE else alike(kept, path)
            )
            found += [] if same else [kept]
    return found


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.board",
        description="Write the page of a board and its pictures from the records in a folder.",
        epilog="exit code: 0; 2 for a usage error; 21 if --check finds the page stale; 22 if there are no records.",
    )
    made.add_argument("folder", type=Path, nargs="?", default=Path("results/board"), help="(default: %(default)s)")
    made.add_argument("--check", action="store_true", help="write nothing; 21 if the page is not what its records say")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    return guarded(lambda: command(arguments.folder, arguments.check), WHOLE_FILES)


def command(folder: Path, check: bool) -> int:
    records = records_of([str(folder)])
    if check:
        if old := stale(records, folder):
            say(f"{', '.join(map(str, old))}: stale; python -m harness.board {folder} makes them anew")
            return MISMATCH
        return OK
    for path in write(records, folder, folder):
        tell(f"wrote {path}")
    return OK


if __name__ == "__main__":
    sys.exit(main())
