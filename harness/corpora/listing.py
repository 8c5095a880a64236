"""Data sets, told to a person: all of them in a table, or one with all that its card says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.common.media import csv_text, terminal_text
from harness.common.sheet import Column, Sheet, sheet_to_markdown
from harness.common.units import bytes_text, count_text
from harness.corpora.sources import FETCHED, FIND
from harness.corpora.sources import place_of as kept

Card = Mapping[str, Any]

HEADINGS = ("name", "language", "bytes", "here", "licence", "what it is")
UNKNOWN, ON_USE = "-", "on use"


def state(card: Card) -> str:
    """Whether the file is on this machine: yes, no, on use (made here when a run asks for it), or yours."""
    kind = card["source"]["kind"]
    if kind in FETCHED:
        return "yes" if kept(card).exists() else "no"
    return ON_USE if kind in FIND else "yours"


def row(card: Card) -> tuple[str, ...]:
    size = card["facts"].get("bytes")
    texts = (
        card["language"],
        UNKNOWN if size is None else bytes_text(size),
        state(card),
        card["licence"],
        card["about"],
    )
    return card["name"], *(text or UNKNOWN for text in texts)


def print_list(cards: Iterable[Card], console: Console) -> None:
    """A line for each data set; what it is folds where the terminal is narrow."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True, header_style="bold")
    for heading in HEADINGS[:-1]:
        table.add_column(heading, justify="right" if heading == "bytes" else "left", no_wrap=heading != "licence")
    table.add_column(HEADINGS[-1], min_width=20)
    for card in cards:
        table.add_row(*map(Text, map(terminal_text, row(card))), style="" if state(card) != "no" else "dim")
    if not console.is_terminal:
        table.width = console.measure(table, options=console.options.update(max_width=10**6)).maximum
    console.print(table, crop=False)


def list_as_markdown(cards: Sequence[Card]) -> str:
    cells = zip(*map(row, cards), strict=True)
    columns = [Column(heading, column, heading == "bytes") for heading, column in zip(HEADINGS, cells, strict=True)]
    return sheet_to_markdown(Sheet([], columns, [], []))


def list_as_csv(cards: Iterable[Card]) -> str:
    """For other programs: sizes whole, and nothing where nothing is known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADINGS)
    for card in cards:
        cells = dict(zip(HEADINGS, row(card), strict=True)) | {"bytes": card["facts"].get("bytes", "")}
        writer.writerow("" if cell == UNKNOWN else csv_text(str(cell)) for cell in cells.values())
    return text.getvalue()


def described(card: Card) -> str:
    """Everything that a card says, a line each, and where the file is or will be."""
    source, facts = card["source"], card["facts"]
    lines = [("name", card["name"]), ("what it is", card["about"]), ("language", card["language"])]
    lines += [("licence", card["licence"]), ("source", source["kind"])]
    lines += [(f"  {key}", value_text(value)) for key, value in source.items() if key not in ("kind", "file")]
    lines.append(("special tokens", value_text(card["special_tokens"])))
    lines.append(("vocab_size", count_text(card["vocab_size"])))
    lines += [(key, value_text(card[key])) for key in ("bytes", "skip", "documents") if card[key] is not None]
    lines.append(("facts", "" if facts else "none known"))
    lines += [(f"  {fact}", value_text(value)) for fact, value in facts.items()]
    lines.append(("file", place_text(card)))
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}{text or UNKNOWN if name != 'facts' else text}".rstrip() for name, text in lines)


def value_text(value: Any) -> str:
    if isinstance(value, int):
        return count_text(value)
    if isinstance(value, list):
        return ", ".join(map(value_text, value)) or "none"
    return str(value)


def place_text(card: Card) -> str:
    here = state(card)
    if here == "yours":
        return "yours, data.path=FILE"
    if here == ON_USE:
        return f"made here when it is used; python -m harness.corpora path {card['name']} says where it is"
    fetch = "" if here == "yes" else f", once python -m harness.corpora fetch {card['name']} has put it there"
    return f"{kept(card)}{fetch}"
