"""A sheet: cells of text under headings, between a caption and notes; on a terminal or in Markdown.

Nothing here knows what a record is, and nothing is ever cut off: where a terminal is too narrow for the columns, the
sheet is turned round, so that its rows become columns, as many side by side as fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_FOLDED_AT = 16
"""In a sheet that was turned round, text wider than this is folded, so that a long cell costs little; figures never."""

_BETWEEN_COLUMNS = 2


@dataclass(frozen=True)
class Column:
    """A heading and a cell for each row; figures stand to the right, with room for the marks that some of them bear."""

    heading: str
    cells: Sequence[str]
    figures: bool = True


@dataclass(frozen=True)
class Sheet:
    """`columns` of equal length, the first of which names the rows; `styles` are rich's, one for each row."""

    caption: Sequence[str]
    columns: Sequence[Column]
    styles: Sequence[str]
    notes: Sequence[str]


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Print at full width where the console is no terminal, else within its width."""
    _print_lines([*sheet.caption, ""] if sheet.caption else [], console)
    if sheet.columns:
        _print_table(sheet, console)
    _print_lines(["", *sheet.notes] if sheet.notes else [], console)


def sheet_to_markdown(sheet: Sheet) -> str:
    """A GitHub table; caption and notes are paragraphs above and below it."""
    caption = [f"{_escaped(line)}  " for line in sheet.caption[:-1]] + [_escaped(line) for line in sheet.caption[-1:]]
    notes = [f"- {_escaped(note)}" for note in sheet.notes]
    blocks = (caption, _markdown_table(sheet.columns) if sheet.columns else [], notes)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _print_table(sheet: Sheet, console: Console) -> None:
    table = _upright(sheet)
    width = _width(table, console)
    if not console.is_terminal or width <= console.width:
        table.width = width
        console.print(table, crop=False)
        return
    for number, part in enumerate(_turned(sheet, console)):
        _print_lines([""] if number else [], console)
        console.print(part)


def _print_lines(lines: Sequence[str], console: Console) -> None:
    for line in lines:
        console.print(Text(line), soft_wrap=not console.is_terminal)


def _new_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True, header_style="bold")


def _width(table: Table, console: Console) -> int:
    """What the table would take with all the room in the world."""
    return Measurement.get(console, console.options.update(max_width=10**6), table).maximum


def _upright(sheet: Sheet) -> Table:
    table = _new_table()
    for column in sheet.columns:
        table.add_column(Text(column.heading), justify="right" if column.figures else "left", no_wrap=True)
    columns = [_aligned(column) for column in sheet.columns]
    for cells, style in zip(zip(*columns, strict=True), sheet.styles, strict=True):
        table.add_row(*map(Text, cells), style=style)
    return table


def _aligned(column: Column) -> list[str]:
    """The cells with blanks for the marks that they lack, so that digits stand under digits."""
    if not column.figures:
        return list(column.cells)
    marks = [len(cell) - len(cell.rstrip("*?")) for cell in column.cells]
    return [cell + " " * (max(marks) - mark) for cell, mark in zip(column.cells, marks, strict=True)]


def _turned(sheet: Sheet, console: Console) -> list[Table]:
    """Tables in which the sheet's rows are columns, as many in each as the console has room for."""
    room = console.width - max(cell_len(column.heading) for column in sheet.columns)
    parts: list[dict[int, int]] = [{}]
    for place in range(len(sheet.styles)):
        width = _turned_width(sheet, place)
        if parts[-1] and sum(parts[-1].values()) + width + _BETWEEN_COLUMNS * (len(parts[-1]) + 1) > room:
            parts.append({})
        parts[-1][place] = width
    return [_turned_part(sheet, widths) for widths in parts]


def _turned_width(sheet: Sheet, place: int) -> int:
    widths = [(column.figures, cell_len(column.cells[place])) for column in sheet.columns]
    return max(width if figures else min(width, _FOLDED_AT) for figures, width in widths)


def _turned_part(sheet: Sheet, widths: Mapping[int, int]) -> Table:
    names, *others = sheet.columns
    table = _new_table()
    table.add_column(Text(names.heading), no_wrap=True)
    for place, width in widths.items():
        style = sheet.styles[place]
        table.add_column(Text(names.cells[place]), justify="right", style=style, width=width, overflow="fold")
    for column in others:
        table.add_row(Text(column.heading), *(Text(column.cells[place]) for place in widths))
    return table


def _markdown_table(columns: Sequence[Column]) -> list[str]:
    heading = _markdown_row([column.heading for column in columns])
    rule = "|" + "|".join("---:" if column.figures else "---" for column in columns) + "|"
    return [heading, rule, *(_markdown_row(cells) for cells in zip(*(column.cells for column in columns), strict=True))]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    r"""Text that Markdown shows as it is: nothing becomes emphasis, a cell's end, HTML or the mention of a person.

    >>> print(_escaped("seg_status @merge 1: '|'+'*'"))
    seg_status &#64;merge 1: '\|'+'\*'
    """
    text = re.sub(r"[\\|*`<>\[\]~]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text.replace("&", "&amp;"))
    return text.replace("@", "&#64;")
