"""A sheet: cells of text under headings, between a caption and notes; on a terminal, in Markdown or
HTML.

Nothing here knows what a record is, and nothing is ever cut off: on a narrow terminal some columns
follow below.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from harness.common.printing import html_text, markdown_text, terminal_text

_BETWEEN_COLUMNS = 2


class Column(NamedTuple):
    """A heading and a cell for each row; figures stand to the right, with room for the marks that
    some of them bear.
    """

    heading: str
    cells: Sequence[str]
    figures: bool = True


class Sheet(NamedTuple):
    """`columns` of equal length, the first of which names the rows; `styles` are rich's, one for
    each row or none at all.
    """

    caption: Sequence[str]
    columns: Sequence[Column]
    styles: Sequence[str] = ()
    notes: Sequence[str] = ()


def print_sheets(sheets: Sequence[Sheet], console: Console | None = None) -> None:
    """Print one below the other, at full width if the console is not a terminal, else within its
    width.
    """
    console = console or Console()
    for number, sheet in enumerate(sheets):
        if number:
            console.print()
        if sheet.caption:
            _print_lines([*sheet.caption, ""], console)
        _print_table(sheet, console)
        if sheet.notes:
            _print_lines(["", *sheet.notes], console)


def sheet_to_text(sheet: Sheet) -> str:
    """The sheet at full width."""
    text = io.StringIO()
    print_sheets([sheet], Console(file=text, force_terminal=False))
    return text.getvalue()


def sheet_to_markdown(sheet: Sheet) -> str:
    """A GitHub table; caption and notes are paragraphs above and below it."""
    kinds = ["---:" if column.figures else "---" for column in sheet.columns]
    table = []
    for cells in zip(*([name, *cells] for name, cells, _ in sheet.columns), strict=True):
        table.append(f"| {' | '.join(map(markdown_text, cells))} |")
    table.insert(1, f"|{'|'.join(kinds)}|")

    caption = "  \n".join(map(markdown_text, sheet.caption))
    notes = "\n".join(f"- {markdown_text(note)}" for note in sheet.notes)
    return "\n\n".join(filter(None, [caption, "\n".join(table), notes])) + "\n"


def _print_table(sheet: Sheet, console: Console) -> None:
    columns = list(map(_aligned, sheet.columns))
    widths = [cell_len(heading) for heading, *_ in columns]
    room = console.width if console.is_terminal else sum(widths) + _BETWEEN_COLUMNS * len(widths)

    for number, indices in enumerate(_column_parts(widths, room)):
        if number:
            console.print()
        rows = zip(*(columns[index] for index in indices), strict=True)
        head, *below = map((" " * _BETWEEN_COLUMNS).join, rows)
        lines = [Text(head, style="bold"), Text("─" * cell_len(head))]
        for row, style in zip_longest(below, sheet.styles, fillvalue=""):
            lines.append(Text(row, style=style))
        console.print(Text("\n").join(lines), soft_wrap=True)


def _aligned(column: Column) -> list[str]:
    """The heading and the cells in one width: texts to the left, figures to the right with digits
    under digits.
    """
    cells = list(map(terminal_text, column.cells))
    if column.figures:  # those that lack a mark get a space for it
        marks = [len(cell) - len(cell.rstrip("*?")) for cell in cells]
        cells = [cell + " " * (max(marks) - mark) for cell, mark in zip(cells, marks, strict=True)]
    cells.insert(0, terminal_text(column.heading))

    width = max(map(cell_len, cells))
    aligned = []
    for cell in cells:
        blanks = " " * (width - cell_len(cell))
        aligned.append(blanks + cell if column.figures else cell + blanks)
    return aligned


def _column_parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """The indices of the columns, in as many parts as the room takes; each begins with the first
    column.

    >>> _column_parts([4, 5, 5, 5], 18)
    [[0, 1, 2], [0, 3]]
    """
    parts = [[0]]
    for index, width in enumerate(widths[1:], 1):
        used = sum(widths[other] + _BETWEEN_COLUMNS for other in parts[-1])
        if len(parts[-1]) > 1 and used + width > room:
            parts.append([0])
        parts[-1].append(index)
    return parts


def _print_lines(lines: Sequence[str], console: Console) -> None:
    for line in lines:
        console.print(Text(terminal_text(line)), soft_wrap=not console.is_terminal)


# A page needs nothing else: no script, no font, no file beside it. All rules of style hold below
# one class, so that a `<section>` can be put into another page with its `<style>`. Whatever a
# colour says, a sign or a word says as well, headings are headings to a screen reader, and a table
# wider than the page can be scrolled by keyboard.

_CLASSES = {"red": "wrong", "dim": "unmeasured", "yellow": "unconfirmed"}  # what rich's styles mean

STYLE = """\
body { margin: 0; background: #ffffff; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; } }
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


def sheets_to_html_part(sheets: Sequence[Sheet], title: str) -> str:
    """Sheets one under the other as a part of a page, such as a notebook's, with a style that
    touches nothing else.
    """
    parts = [f"<style>\n{STYLE[STYLE.index('.bpe-harness') :]}</style>"]
    parts.append(f'<section class="bpe-harness" aria-label="{html_text(title)}">')

    for sheet in sheets:
        parts += html_table(sheet)
    return "\n".join([*parts, "</section>\n"])


def html_table(sheet: Sheet, keys: Sequence[Sequence[str]] = ()) -> list[str]:
    """The table between its caption and its notes; with `keys` each cell has the one that it is
    sorted by.
    """
    label = html_text(sheet.caption[0] if sheet.caption else "records")
    lines = [f'<div class="scrolled" role="region" tabindex="0" aria-label="{label}">', "<table>"]
    if sheet.caption:
        caption = "".join(f"<span>{line}</span>" for line in map(html_text, sheet.caption))
        lines.append(f"<caption>{caption}</caption>")

    head = "".join(_html_cell('th scope="col"', column, column.heading) for column in sheet.columns)
    lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for index in range(len(sheet.columns[0].cells)):
        style = sheet.styles[index] if sheet.styles else ""
        line = f'<tr class="{_CLASSES[style]}">' if style else "<tr>"
        for number, column in enumerate(sheet.columns):
            tag = "td" if number else 'th scope="row"'
            key = f' data-key="{keys[number][index]}"' if keys else ""
            line += _html_cell(tag + key, column, column.cells[index])
        lines.append(f"{line}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>", *html_list(sheet.notes)]


def html_list(items: Sequence[str]) -> list[str]:
    return ["<ul>", *(f"<li>{html_text(item)}</li>" for item in items), "</ul>"] if items else []


def _html_cell(tag: str, column: Column, text: str) -> str:
    kind = ' class="figure"' if column.figures else ""
    return f"<{tag}{kind}>{html_text(text)}</{tag[:2]}>"
