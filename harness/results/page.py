"""One HTML page about records, without a network: the result, its bars, a table to sort and filter, the environment.

The page's policy lets it fetch nothing, and run no script but its own, so that no record can bring one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.common.console import html_text, html_texts
from harness.common.errors import Refusal
from harness.common.sheet import STYLE, Sheet, html_document, html_table
from harness.common.units import bytes_text, counted_text
from harness.records.file import command_of
from harness.results.chart import Chart
from harness.results.charts import ChartOptions, claim, dots, phases
from harness.results.drawing import svg_of
from harness.results.legend import Legend, failures, is_outside_table, unfinished
from harness.results.rows import Row
from harness.results.selection import panel_title
from harness.results.tables import TableOptions, by_task, tables

MOST_HEADLINES, MOST_CHARTS, MOST_COMMANDS = 6, 4, 200
SCRIPT = """
const table = document.querySelector("table");
const body = table.tBodies[0];
const key = cell => {
  const number = parseFloat(cell.dataset.key);
  return Number.isNaN(number) ? cell.textContent.toLowerCase() : number;
};
table.tHead.addEventListener("click", event => {
  const heading = event.target.closest("th");
  if (!heading) return;
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const place = heading.cellIndex, sign = down ? -1 : 1;
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
  const rows = [...body.rows].sort((a, b) => sign * compare(key(a.cells[place]), key(b.cells[place])));
  body.append(...rows);
});
document.querySelector("#filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(/\\s+/);
  for (const row of body.rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
});
"""
_STYLE = """
.bpe-harness { font-size: 1rem; margin: 0 auto; max-width: 66rem; }
.bpe-harness h1 { font-size: 1.4rem; line-height: 1.3; margin: 0.5rem 0; overflow-wrap: anywhere; }
.bpe-harness p { color: var(--faint); font-size: 0.9rem; margin: 0.2rem 0; overflow-wrap: anywhere; }
.bpe-harness svg { display: block; width: 100%; max-width: 40rem; height: auto; margin: 1rem 0; }
.bpe-harness table { font-size: 0.9rem; }
.bpe-harness thead th { cursor: pointer; }
.bpe-harness th[aria-sort="ascending"]::after { content: " ↑"; }
.bpe-harness th[aria-sort="descending"]::after { content: " ↓"; }
.bpe-harness input { font: inherit; padding: 0.3rem; width: 100%; max-width: 20rem; margin: 0.5rem 0; color: inherit;
  background: inherit; border: 1px solid var(--faint); border-radius: 4px; box-sizing: border-box; }
.bpe-harness details { margin: 0.75rem 0; }
.bpe-harness pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8rem; }
"""


def page(rows: Sequence[Row], relative_to: str | None = None) -> str:
    """The page about rows: the same rows give the same page."""
    tasks = by_task(rows)
    headlines = [headline(task) for task in tasks]
    title = headlines[0] if len(tasks) == 1 else f"{len(tasks)} tasks, {len(rows)} rows"
    legend = Legend(rows)
    parts = _paragraphs(legend.caption(len(tasks)))
    if len(tasks) > 1:
        named = [f"{panel_title(task, tasks)}: {text}" for task, text in zip(tasks, headlines, strict=True)]
        more = len(named) - MOST_HEADLINES
        items = [*named[:MOST_HEADLINES], *([f"and {more} more: see the table"] if more > 0 else [])]
        parts += ["<ul>", *(f"<li>{item}</li>" for item in html_texts(items)), "</ul>"]
    parts += [*_charts(tasks), *_table(_one_sheet(rows, legend, relative_to), rows)]
    parts += _paragraphs([*unfinished(rows), *failures(legend)])
    parts += [*_environments(rows), *_commands(rows)]
    return _whole(title, parts)


def headline(task: Sequence[Row]) -> str:
    """The result in one sentence, such as "flat: 0.0102 s, 44 times as fast as heap; all 10 identical"."""
    return "; ".join(filter(None, [claim(task), _verdict(task)])) or "no times"


def _verdict(task: Sequence[Row]) -> str:
    """How many rows are proved to have learned the defined merges, and what happened to the others."""
    if len(task) < 2 or all(row.counting_only for row in task):
        return ""
    proved = [row for row in task if row.status == "ok" and row.confirmed]
    counts = {
        "wrong": sum(row.status == "mismatch" or bool(row.disputed) for row in task),
        "different by design": sum(row.status == "ok" and row.by_design and not row.proved for row in task),
        "stopped": sum(row.status in ("extrapolated", "timeout") for row in task),
    }
    rest = len(task) - len(proved) - sum(counts.values())
    kind = "identical" if len({row.digest for row in proved}) == 1 else "proved"
    texts = [f"{'all' if len(proved) == len(task) else f'{len(proved)} of'} {len(task)} {kind}"]
    texts += [f"{number} {name}" for name, number in counts.items() if number]
    return ", ".join([*texts, *([f"{rest} without a time or a proof"] if rest > 0 else [])])


def _charts(tasks: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Bars for each task, by phase if phases were measured."""
    for number, task in enumerate(tasks[:MOST_CHARTS]):
        kind = phases if any(len(row.seconds) > 1 for row in task) else dots
        title = panel_title(task, tasks) if len(tasks) > 1 else "Seconds from the file to the merges"
        try:
            chart = kind(task, ChartOptions())
        except Refusal:
            continue  # no row of this task has a time
        yield _figure(chart._replace(title=title, caption=[], notes=[]), f"task{number}")


def _figure(chart: Chart, name: str) -> str:
    """The SVG as a part of the page: ids and references are its own."""
    svg = svg_of(chart)
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(r'(<svg [^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)


def _one_sheet(rows: Sequence[Row], legend: Legend, relative_to: str | None) -> Sheet:
    """All rows in one table."""
    if all(row.counting_only for row in rows):
        return tables(rows, TableOptions(relative_to=relative_to, joined=True))[0]
    phases = [] if is_outside_table(rows) else ["max", "update"]
    names = ["variant", *legend.titles(), "total", "ratio", *phases, "memory", "merges/s", "proof"]
    return tables(rows, TableOptions(columns=names, relative_to=relative_to, joined=True))[0]


def _table(sheet: Sheet, rows: Sequence[Row]) -> list[str]:
    """The table with a field to filter it, each cell with the number that it is sorted by."""
    exact: Mapping[str, Sequence[float | None]] = {
        "total": [row.time.number for row in rows],
        "memory": [row.peak_rss_bytes for row in rows],
    }
    numbers = [exact.get(column.heading) or map(_number_in, column.cells) for column in sheet.columns]
    keys = [["" if number is None else repr(number) for number in column] for column in numbers]
    search = '<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
    return [search, *html_table(sheet, keys)]


def _number_in(text: str) -> float | None:
    number = re.match(r"[~>×\s]*([\d,]*\.?\d+)", text)
    return float(number[1].replace(",", "")) if number else None


def _environments(rows: Sequence[Row]) -> Iterator[str]:
    """Every machine with its software, folded."""
    machines = [{"host": row.record.get("host"), **(row.record.get("environment") or {})} for row in rows]
    for text, number in Counter(json.dumps(machine, sort_keys=True) for machine in machines).items():
        facts = "".join(f"<li>{fact}</li>" for fact in html_texts(list(_facts(json.loads(text)))))
        title = f"Environment of {counted_text(number, 'row')}"
        yield f"<details><summary>{title}</summary><ul>{facts}</ul></details>"


def _facts(values: Mapping[str, Any], outer: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _facts(value, f"{outer}{name}.")
        elif name.endswith("memory_bytes") and isinstance(value, int):
            yield f"{outer}{name.removesuffix('_bytes')}: {bytes_text(value)}"
        else:
            yield f"{outer}{name}: {'-' if value is None else value}"


def _commands(rows: Sequence[Row]) -> list[str]:
    """The commands that measured the rows, folded."""
    overrides = {tuple(row.record.get("overrides", ())): row.record for row in rows[:MOST_COMMANDS]}
    lines = "\n".join(html_texts(map(command_of, overrides.values())))
    return [f"<details><summary>Measure again</summary><pre>{lines}</pre></details>"]


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{line}</p>" for line in html_texts(lines)]


def _whole(title: str, parts: Sequence[str]) -> str:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )
    body = "\n".join(['<main class="bpe-harness">', f"<h1>{html_text(title)}</h1>", *parts, "</main>"])
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return html_document(title, STYLE + _STYLE, f"{body}\n<script>{SCRIPT}</script>\n", head)
