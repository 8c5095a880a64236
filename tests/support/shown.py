"""Records as a command shows them: its tables in Markdown and CSV, their cells and notes."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness import table
from harness.common.escape import frame_to_csv
from harness.common.sheet import Sheet, print_sheets
from harness.records.file import Record, read_records
from harness.results.frame import frame_of
from harness.results.rows import Row, rows
from harness.results.tables import TableOptions, tables

Records = Sequence[Record]
RECORDS = Path(__file__).parents[1] / "fixtures" / "records"
FORMS, REPEATS, COUNTING, SWEEP = (
    read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")
)


def printed(sheets: Sequence[Sheet]) -> str:
    """The sheets as a file has them, without spaces at the ends of lines."""
    out = io.StringIO()
    print_sheets(sheets, Console(file=out, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def expected(name: str) -> str:
    """A table that a test expects, kept beside it."""
    return (RECORDS.parents[1] / "results" / "expected" / f"{name}.txt").read_text()


def to_markdown(records: Records, *, sort: str = "appearance", **options: Any) -> str:
    return table.markdown(tables(ordered(records, sort), TableOptions(**options)))


def table_text(records: Records, **options: Any) -> str:
    """The tables as a file has them."""
    return printed(tables(rows(records), TableOptions(**options)))


def to_csv(records: Records) -> str:
    return frame_to_csv(frame_of(rows(records)))


def cells(records: Records, number: int = 0, **options: Any) -> list[dict[str, str]]:
    """The cells of one of the tables, as Markdown has them."""
    blocks = [
        block.splitlines()
        for block in to_markdown(records, **options).split("\n\n")
        if block.startswith("|")
    ]
    lines = [
        [unescaped(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in blocks[number]
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def explanations(records: Records, **options: Any) -> list[str]:
    """The notes below the first table."""
    return list(tables(rows(records), TableOptions(**options))[0].notes)


def unescaped(text: str) -> str:
    return html.unescape(re.sub(r"\\([\\|*`<>\[\]~_])", r"\1", text))


def ordered(records: Records, sort: str) -> list[Row]:
    return sorted(rows(records), key=table.by_total) if sort == "total" else rows(records)
