"""One HTML page about records, without a network: the result, its bars, a table to sort and filter,
the environment.

The page's policy lets it fetch nothing, and run no script but its own, so that no record can bring
one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.common.console import html_text, html_texts
from harness.common.errors import Refusal
from harness.common.sheet import STYLE, html_table
from harness.common.units import counted_text
from harness.results.charts import Chart, claim, dots, phases
from harness.results.drawing import svg_of
from harness.results.legend import Legend, failures, is_outside_table, unfinished
from harness.results.rows import Row
from harness.results.selection import panel_title
from harness.results.tables import TableOptions, by_task, table_of

MOST_CHARTS = 4
COMMAND = ("python", "-m", "harness")


def page(rows: Sequence[Row], relative_to: str | None = None) -> str:
    """The page about rows: the same rows give the same page."""
    tasks = by_task(rows)
    headlines = [headline(task) for task in tasks]
    title = headlines[0] if len(tasks) == 1 else f"{len(tasks)} tasks, {len(rows)} rows"
    legend = Legend(rows)
    parts = _paragraphs(legend.caption(len(tasks)))
    if len(tasks) > 1:
        named = [
            f"{panel_title(task, tasks)}: {text}"
            for task, text in zip(tasks, headlines, strict=True)
        ]
        parts += ["<ul>", *(f"<li>{item}</li>" for item in html_texts(named)), "</ul>"]
    parts += [*_charts(tasks), *_table(rows, legend, relative_to)]
    parts += _paragraphs([*unfinished(rows), *failures(legend)])
    environments = Counter(
        json.dumps(row.record.get("environment") or {}, indent=1) for row in rows
    )
    parts += [
        _folded(f"Environment of {counted_text(count, 'row')}", text)
        for text, count in environments.items()
    ]
    commands = dict.fromkeys(
        shlex.join([*COMMAND, *row.record.get("overrides", ())]) for row in rows
    )
    parts.append(_folded("Measure again", "\n".join(commands)))
    return _whole(title, parts)


def headline(task: Sequence[Row]) -> str:
    """The result in one sentence, such as "flat: 0.0102 s, 44 times as fast as heap; all 10
    identical".
    """
    return "; ".join(filter(None, [claim(task), _verdict(task)])) or "no times"


def _verdict(task: Sequence[Row]) -> str:
    """How many rows are proved to have learned the defined merges, and how many learned wrong
    ones.
    """
    if len(task) < 2 or all(row.counting_only for row in task):
        return ""
    proved = [row for row in task if row.confirmed]
    wrong = sum(row.status == "mismatch" or bool(row.disputed) for row in task)
    kind = "identical" if len({row.digest for row in proved}) == 1 else "proved"
    text = f"{'all' if len(proved) == len(task) else f'{len(proved)} of'} {len(task)} {kind}"
    return f"{text}, {wrong} wrong" if wrong else text


def _charts(tasks: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Bars for each task, by phase if phases were measured."""
    for number, task in enumerate(tasks[:MOST_CHARTS]):
        kind = phases if any(len(row.seconds) > 1 for row in task) else dots
        title = (
            panel_title(task, tasks) if len(tasks) > 1 else "Seconds from the file to the merges"
        )
        try:
            chart = kind(task)
        except Refusal:
            continue  # no row of this task has a time
        yield _figure(chart._replace(title=title, caption=[], notes=[]), f"task{number}")


def _figure(chart: Chart, name: str) -> str:
    """The SVG as a part of the page: ids and references are its own."""
    svg = svg_of(chart)
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(r'(<svg [^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)


def _table(rows: Sequence[Row], legend: Legend, relative_to: str | None) -> list[str]:
    """All rows in one table with a field to filter it; cells with a unit have the number that they
    are sorted by.
    """
    phases = [] if is_outside_table(rows) else ["max", "update"]
    names = ["variant", *legend.titles(), "total", "ratio", *phases, "memory", "merges/s", "proof"]
    if all(row.counting_only for row in rows):
        names = []
    sheet = table_of(rows, TableOptions(names, relative_to=relative_to))
    keys = [[row.figures.get(column.heading) for row in rows] for column in sheet.columns]
    search = '<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
    return [
        search,
        *html_table(
            sheet, [["" if key is None else repr(key) for key in column] for column in keys]
        ),
    ]


def _folded(title: str, text: str) -> str:
    lines = "\n".join(html_texts(text.split("\n")))
    return f"<details><summary>{title}</summary><pre>{lines}</pre></details>"


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{line}</p>" for line in html_texts(lines)]


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
