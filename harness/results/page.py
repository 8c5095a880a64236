"""One HTML page about records, without a network: the result, its bars, a table to sort and filter,
the environment.

The page's policy lets it fetch nothing, and run no script but its own, so that no record can bring
one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.common.printing import html_text
from harness.common.sheet import STYLE, html_list, html_table
from harness.common.units import counted_text
from harness.results.canvas import svg_of
from harness.results.charts import phases
from harness.results.notes import headline
from harness.results.rows import Row
from harness.results.selection import panel_title
from harness.results.tables import TableOptions, by_task, table_of

MOST_PANELS = 4
COMMAND = ("python", "-m", "harness")


def page(rows: Sequence[Row]) -> str:
    """The page about rows: the same rows give the same page."""
    tasks = by_task(rows)
    if len(tasks) == 1:
        title, parts = headline(rows), list[str]()
    else:
        title = f"{len(tasks)} tasks, {len(rows)} rows"
        parts = html_list([f"{panel_title(task, tasks)}: {headline(task)}" for task in tasks])

    parts += [*_chart(tasks), *_table(rows)]
    environments = [json.dumps(row.record.run.environment, indent=1) for row in rows]
    for text, count in Counter(environments).items():
        parts.append(_folded(f"Environment of {counted_text(count, 'row')}", text))
    return _whole(title, [*parts, _folded("Measure again", commands(rows))])


def _chart(tasks: Sequence[Sequence[Row]]) -> Iterator[str]:
    """The chart of the first tasks, if any of their rows has a time; it says which it leaves out."""
    drawn = [row for task in tasks[:MOST_PANELS] for row in task]
    if any(row.seconds for row in drawn):
        # the page has the rest of the words
        title = "Time from the file to the merges"
        if len(tasks) > MOST_PANELS:
            title += f", the first {MOST_PANELS} of {len(tasks)} tasks"
        yield svg_of(phases(drawn, title))


def _table(rows: Sequence[Row]) -> list[str]:
    """All rows in one table with a field to filter it, and all notes; cells with a unit have the
    number that they are sorted by.
    """
    sheet = table_of(rows, TableOptions(notes=True))
    keys = []
    for column in sheet.columns:
        numbers = [row.figures.get(column.heading) for row in rows]
        keys.append(["" if number is None else repr(number) for number in numbers])
    search = '<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
    return [search, *html_table(sheet, keys)]


def commands(rows: Sequence[Row]) -> str:
    """The commands that measured the rows, a line each."""
    return "\n".join(
        dict.fromkeys(shlex.join([*COMMAND, *row.record.run.overrides]) for row in rows)
    )


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
