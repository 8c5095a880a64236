"""One HTML page about records, without a network: the result, its bars, a table to sort and filter, the environment.

The page's policy lets it fetch nothing, and run no script but its own, so that no record can bring one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.common.console import html_text
from harness.common.errors import Refusal
from harness.common.sheet import Sheet
from harness.common.units import bytes_text, count_text, seconds_text
from harness.records.load import command_of
from harness.results.chart import Chart
from harness.results.charts import ChartOptions, dots, phases, ratios_panel
from harness.results.fields import time_of
from harness.results.legend import Legend, failures, is_slower, join_names
from harness.results.matches import SideBySide, comparison_of, comparison_sheet
from harness.results.rows import Row
from harness.results.svg import svg_of
from harness.results.tables import TableOptions, by_task, tables, times_text
from harness.results.where import panel_title

MOST_HEADLINES = 6
MOST_CHARTS = 4
MOST_COMMANDS = 200
SCRIPT = """
const table = document.querySelector("table.sorted");
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
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --page: #ffffff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --page: #0d1117; --bad: #ff9a92; } }
body { color: var(--ink); background: var(--page); font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto;
  padding: 1rem; max-width: 62rem; }
h1 { font-size: 1.4rem; line-height: 1.3; margin: 0.5rem 0; overflow-wrap: anywhere; }
p, li, summary { overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: 0.9rem; margin: 0.2rem 0; }
svg { display: block; width: 100%; max-width: 40rem; height: auto; margin: 1rem 0; }
.scrolled { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.6rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { cursor: pointer; border-bottom: 2px solid var(--faint); }
th[aria-sort="ascending"]::after { content: " ↑"; }
th[aria-sort="descending"]::after { content: " ↓"; }
.figure { text-align: right; }
.red > * { color: var(--bad); }
.dim > * { color: var(--faint); }
input { font: inherit; padding: 0.3rem; width: 100%; max-width: 20rem; margin: 0.5rem 0; color: inherit;
  background: inherit; border: 1px solid var(--faint); border-radius: 4px; }
details { margin: 0.75rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8rem; }
"""


def page(rows: Sequence[Row], relative_to: str | None = None) -> str:
    """The page about rows: the same rows give the same page."""
    tasks = by_task(rows)
    headlines = [(panel_title(task, tasks), headline(task)) for task in tasks]
    titled = headlines[0][1] if len(tasks) == 1 else f"{len(tasks)} tasks, {len(rows)} rows"
    sheet = _one_sheet(rows, relative_to)
    parts = [f"<h1>{html_text(titled)}</h1>", *_paragraphs(Legend(rows).caption()[-3:])]
    if len(tasks) > 1:
        items = [f"<li>{html_text(f'{name}: {text}')}</li>" for name, text in headlines[:MOST_HEADLINES]]
        more = len(headlines) - MOST_HEADLINES
        parts += ["<ul>", *items, f"<li>and {more} more: see the table</li>" if more > 0 else "", "</ul>"]
    parts += list(_charts(tasks))
    parts += [*_table(sheet, rows), *_paragraphs(failures(rows, Legend(rows).short_labels()))]
    parts += [*_environments(rows), *_commands(rows)]
    return _whole(titled, parts)


def page_of_two(sets: SideBySide) -> str:
    """The page about two sets of records side by side."""
    matches = sets.matching.matches
    labels = Legend([match.left for match in matches]).short_labels()
    lines = [
        (label, match.right, comparison)
        for match, label in zip(matches, labels, strict=True)
        if (comparison := comparison_of(match)) is not None
    ]
    title = f"{sets.names[1]} compared with {sets.names[0]}"
    parts = [f"<h1>{html_text(title)}</h1>"]
    if lines:
        panel = ratios_panel(lines, "left")
        parts.append(_figure(Chart("right / left: over 1, the right set is slower", [], [], [panel]), "ratios"))
    sheet = comparison_sheet(sets)
    rows = [match.right for match in matches]
    parts += [*_table(sheet, rows), *_paragraphs([*sheet.notes, *sheet.caption]), *_environments(rows)]
    return _whole(title, parts)


def headline(task: Sequence[Row]) -> str:
    """The result in one sentence, such as "flat: 0.0102 s, 44 times as fast as heap; all 10 identical"."""
    labels = dict(zip(map(id, task), Legend(task).short_labels(), strict=True))
    timed = sorted((row for row in task if row.total and not row.by_design), key=lambda row: row.total or 0.0)
    ranked = [row for row in timed if row.confirmed] or timed
    if not ranked:
        return _verdict(task) or "no times"
    first, others = ranked[0], ranked[1:]
    tied = [row for row in others if not is_slower(row, first)]
    text = f"{labels[id(first)]}: {seconds_text(first.total or 0.0)}"
    if tied:
        text += f", tied with {join_names([labels[id(row)] for row in tied[:2]])}"
    slower = [row for row in others if is_slower(row, first)]
    if slower:
        times = [(times_text(row, first), labels[id(row)]) for row in slower]
        text += f", {times[0][0]} times as fast as {times[0][1]}"
        text += f", {times[-1][0]} times as fast as {times[-1][1]}" if len(times) > 1 else ""
    return "; ".join(filter(None, [text, _verdict(task)]))


def _verdict(task: Sequence[Row]) -> str:
    """How many rows are proved to have learned the defined merges, and what happened to the others."""
    if len(task) < 2 or all(row.counting_only for row in task):
        return ""
    proved = [row for row in task if row.status == "ok" and row.confirmed]
    same = len({row.digest for row in proved}) == 1
    counts = {
        "wrong": sum(row.status == "mismatch" or bool(row.disputed) for row in task),
        "different by design": sum(row.status == "ok" and row.by_design and not row.proved for row in task),
        "stopped": sum(row.status in ("extrapolated", "timeout") for row in task),
    }
    rest = len(task) - len(proved) - sum(counts.values())
    texts = [
        f"{'all' if len(proved) == len(task) else f'{len(proved)} of'} {len(task)} {'identical' if same else 'proved'}"
    ]
    texts += [f"{number} {name}" for name, number in counts.items() if number]
    return ", ".join([*texts, *([f"{rest} without a time or a proof"] if rest > 0 else [])])


def _charts(tasks: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Bars for each task, by phase if phases were measured."""
    for number, task in enumerate(tasks[:MOST_CHARTS]):
        kind = phases if any(len(row.seconds) > 1 for row in task) else dots
        title = panel_title(task, tasks) if len(tasks) > 1 else "Seconds from the file to the merges"
        try:
            chart = kind(task, ChartOptions(title=title))
        except Refusal:
            continue  # no row of this task has a time
        yield _figure(replace(chart, caption=[], notes=[]), f"task{number}")


def _figure(chart: Chart, name: str) -> str:
    """The SVG as a part of the page: ids and references are its own."""
    svg = svg_of(chart)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(r'(<svg [^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)


def _one_sheet(rows: Sequence[Row], relative_to: str | None) -> Sheet:
    """All rows in one table, with every phase."""
    if all(row.counting_only for row in rows):
        return tables(rows, TableOptions(relative_to=relative_to))[0]
    legend = Legend(rows)
    names = ["variant", *legend.columns, "total", "ratio", "max", "update", "memory", "merges/s", "proof"]
    return tables(rows, TableOptions(columns=names, relative_to=relative_to, joined=True))[0]


def _table(sheet: Sheet, rows: Sequence[Row]) -> list[str]:
    """The table with a field to filter it, each cell with the number that it is sorted by."""
    head = "".join(
        f'<th scope="col"{_class(column.figures)}>{html_text(column.heading)}</th>' for column in sheet.columns
    )
    lines = ['<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">']
    lines += ['<div class="scrolled"><table class="sorted">', f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for place, style in enumerate(sheet.styles):
        cells = [
            f'<td data-key="{_sort_key(column.heading, column.cells[place], rows[place])}"{_class(column.figures)}>'
            f"{html_text(column.cells[place])}</td>"
            for column in sheet.columns
        ]
        lines.append(f'<tr class="{style}">{"".join(cells)}</tr>')
    return [*lines, "</tbody></table></div>"]


def _class(is_figure: bool) -> str:
    return ' class="figure"' if is_figure else ""


def _sort_key(heading: str, text: str, row: Row) -> str:
    """The number by which a cell is sorted; empty if it is sorted as a text."""
    if heading == "total":
        number = time_of(row).number
        return "" if number is None else repr(number)
    if heading == "memory":
        return "" if row.peak_rss_bytes is None else str(row.peak_rss_bytes)
    found = re.match(r"[~>×\s]*([\d,]*\.?\d+)", text)
    return found[1].replace(",", "") if found else ""


def _environments(rows: Sequence[Row]) -> Iterator[str]:
    """Every machine with its software, folded."""
    groups: dict[str, tuple[Mapping[str, Any], int]] = {}
    for row in rows:
        environment: Mapping[str, Any] = {"host": row.record.get("host"), **(row.record.get("environment") or {})}
        key = json.dumps(environment, sort_keys=True, default=str)
        groups[key] = environment, groups.get(key, (environment, 0))[1] + 1
    for environment, number in groups.values():
        facts = "".join(f"<li>{html_text(f'{name}: {text}')}</li>" for name, text in _flat(environment))
        title = f"Environment of {count_text(number)} {'row' if number == 1 else 'rows'}"
        yield f"<details><summary>{title}</summary><ul>{facts}</ul></details>"


def _flat(values: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{outer}{name}.")
        elif name.endswith("memory_bytes") and isinstance(value, int):
            yield f"{outer}{name.removesuffix('_bytes')}", bytes_text(value)
        elif isinstance(value, bool):
            yield f"{outer}{name}", "yes" if value else "no"
        else:
            yield f"{outer}{name}", "-" if value is None else str(value)


def _commands(rows: Sequence[Row]) -> list[str]:
    """The commands that measured the rows, folded."""
    commands = dict.fromkeys(command_of(row.record) for row in rows[:MOST_COMMANDS])
    lines = "\n".join(map(html_text, commands))
    return [f"<details><summary>Measure again</summary><pre>{lines}</pre></details>"] if commands else []


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f'<p class="faint">{html_text(line)}</p>' for line in lines]


def _whole(title: str, parts: Sequence[str]) -> str:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            *filter(None, parts),
            f"<script>{SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )
