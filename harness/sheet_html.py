"""Sheets as a page of HTML that needs nothing else: no script, no font, no file beside it.

All rules of style hold below one class, so that the page's `<section>` can be put into another page together with its
`<style>`. What a colour says is said by a sign or a word as well, headings are headings to a screen reader, and a table
that is wider than the page can be scrolled by keyboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from harness.sheet import Column, Sheet

_CLASSES = {"red": "wrong", "dim": "unmeasured", "yellow": "unconfirmed"}
"""What rich's styles mean."""

STYLE = """\
.bpe-harness { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --card: #ffffff;
  --wrong: #b3261e; --unconfirmed: #7a5200;
  color: var(--ink); background: var(--card); font: 0.875rem/1.45 system-ui, sans-serif; padding: 1rem; }
@media (prefers-color-scheme: dark) { .bpe-harness { --ink: #e6edf3; --faint: #9da7b3; --line: #3d444d;
  --card: #0d1117; --wrong: #ff9a92; --unconfirmed: #e3b341; } }
.bpe-harness .scrolled { overflow-x: auto; max-width: 100%; }
.bpe-harness .scrolled:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.bpe-harness table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.bpe-harness caption { text-align: left; color: var(--faint); padding-bottom: 0.75rem; }
.bpe-harness caption span { display: block; overflow-wrap: anywhere; }
.bpe-harness th, .bpe-harness td { padding: 0.25rem 0.6rem; text-align: left; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); font-weight: normal; }
.bpe-harness thead th { font-weight: 600; border-bottom: 2px solid var(--faint); }
.bpe-harness tbody th { position: sticky; left: 0; background: var(--card); }
.bpe-harness .figure { text-align: right; }
.bpe-harness .wrong > * { color: var(--wrong); }
.bpe-harness .unmeasured > * { color: var(--faint); }
.bpe-harness .unconfirmed > * { color: var(--unconfirmed); }
.bpe-harness ul { margin: 0.75rem 0 1.5rem; padding-left: 1.2rem; max-width: 60rem; overflow-wrap: anywhere; }
"""


def sheets_to_html(sheets: Sequence[Sheet], title: str) -> str:
    """A whole page of sheets, one under the other."""
    tables = "\n".join(_section(sheet, number) for number, sheet in enumerate(sheets, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\nbody {{ margin: 0; }}\n{STYLE}</style>\n</head>\n"
        f'<body>\n<section class="bpe-harness" aria-label="{escape(title)}">\n{tables}\n</section>\n</body>\n</html>\n'
    )


def _section(sheet: Sheet, number: int) -> str:
    notes = f"notes-{number}"
    parts = []
    if sheet.columns:
        described = f' aria-describedby="{notes}"' if sheet.notes else ""
        label = escape(sheet.caption[0] if sheet.caption else sheet.columns[0].heading)
        parts.append(f'<div class="scrolled" role="region" tabindex="0" aria-label="{label}">')
        parts += [f"<table{described}>", *_caption(sheet.caption), *_head(sheet.columns), *_body(sheet), "</table>"]
        parts.append("</div>")
    else:
        parts += [f"<p>{escape(line)}</p>" for line in sheet.caption]
    if sheet.notes:
        parts += [f'<ul id="{notes}">', *(f"<li>{escape(note)}</li>" for note in sheet.notes), "</ul>"]
    return "\n".join(parts)


def _caption(lines: Sequence[str]) -> list[str]:
    return ["<caption>" + "".join(f"<span>{escape(line)}</span>" for line in lines) + "</caption>"] if lines else []


def _head(columns: Sequence[Column]) -> list[str]:
    cells = "".join(f'<th scope="col"{_kind(column)}>{escape(column.heading)}</th>' for column in columns)
    return [f"<thead><tr>{cells}</tr></thead>"]


def _body(sheet: Sheet) -> list[str]:
    names, *others = sheet.columns
    lines = ["<tbody>"]
    for place, style in enumerate(sheet.styles):
        meaning = f' class="{_CLASSES[style]}"' if style else ""
        cells = "".join(f"<td{_kind(column)}>{escape(column.cells[place])}</td>" for column in others)
        lines.append(f'<tr{meaning}><th scope="row">{escape(names.cells[place])}</th>{cells}</tr>')
    return [*lines, "</tbody>"]


def _kind(column: Column) -> str:
    return ' class="figure"' if column.figures else ""
