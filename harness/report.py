"""python -m harness.report: records as one page of HTML that opens anywhere, without a network: the
result, its bars, a table to sort and filter, the environment.

The page's policy lets it fetch nothing, and run no script but its own, so that no record can bring
one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, Refusal
from harness.common.files import check_output, write_output
from harness.common.printing import html_text, print_stdout
from harness.common.sheet import STYLE, html_list, html_table
from harness.common.units import counted_text
from harness.records.file import files_read
from harness.results.charts import phases, svg_of
from harness.results.notes import headline
from harness.results.rows import Row, is_wrong
from harness.results.selection import DEFAULT_RESULTS, add_record_arguments, chosen_rows
from harness.results.tables import TableOptions, by_task, table_of
from harness.results.writing import panel_title

MOST_PANELS = 4
FILTER = '<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">'


def page(rows: Sequence[Row]) -> str:
    """The page about rows: the same rows give the same page."""
    tasks = by_task(rows)
    if len(tasks) == 1:
        title, parts = headline(rows), []
    else:
        title = f"{len(tasks)} tasks, {len(rows)} rows"
        parts = html_list([f"{panel_title(task, tasks)}: {headline(task)}" for task in tasks])

    drawn = [row for task in tasks[:MOST_PANELS] for row in task]
    if any(row.seconds for row in drawn):
        # the page has the rest of the words
        heading = "Time from the file to the merges"
        if len(tasks) > MOST_PANELS:
            heading += f", the first {MOST_PANELS} of {len(tasks)} tasks"
        parts.append(svg_of(phases(drawn, heading)))

    # cells with a unit have the number that they are sorted by
    sheet, keys = table_of(rows, TableOptions(notes=True)), []
    for column in sheet.columns:
        numbers = [row.figures.get(column.heading) for row in rows]
        keys.append(["" if number is None else repr(number) for number in numbers])
    parts += [FILTER, *html_table(sheet, keys)]

    environments = [json.dumps(row.record.run.environment, indent=1) for row in rows]
    for text, count in Counter(environments).items():
        parts.append(_folded(f"Environment of {counted_text(count, 'row')}", text))
    return _whole(title, [*parts, _folded("Measure again", commands(rows))])


def commands(rows: Sequence[Row]) -> str:
    """The commands that measured the rows, a line each."""
    commands = [f"python -m harness {shlex.join(row.record.run.overrides)}" for row in rows]
    return "\n".join(map(str.strip, dict.fromkeys(commands)))


def _folded(title: str, text: str) -> str:
    lines = "\n".join(map(html_text, text.split("\n")))
    return f"<details><summary>{title}</summary><pre>{lines}</pre></details>"


def _whole(title: str, parts: Sequence[str]) -> str:
    script, style = (Path(__file__).with_suffix(suffix).read_text() for suffix in (".js", ".css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )

    lines = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html_text(title)}</title>\n<style>\n{STYLE}\n{style}</style>\n</head>\n<body>",
        f'<main class="bpe-harness">\n<h1>{html_text(title)}</h1>',
        *parts,
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: the result, bars, a table, the environment.",
        epilog="exit code: 0; 2 for a usage error; 21 if merges are wrong or rows contradict each other;\n"
        "22 if there is nothing to show.",
    )
    add_record_arguments(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(DEFAULT_RESULTS, "report.html"),
        help="write to this .html file (default: %(default)s)",
    )
    arguments = parser.parse_args(argv)

    def command() -> int:
        if arguments.output.suffix != ".html":
            raise Refusal(
                f"cannot write a page into {arguments.output}; pass a file that ends in .html"
            )
        check_output(arguments.output, files_read(arguments.paths))
        shown = chosen_rows(arguments)
        write_output(arguments.output, page(shown).encode())
        print_stdout(f"wrote {arguments.output}")
        return MISMATCH if is_wrong(shown) else OK

    return exit_code_of(command)


if __name__ == "__main__":
    sys.exit(main())
