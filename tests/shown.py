"""Records as a command shows them: its tables in Markdown, CSV and HTML, and what stands below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import table
from harness.results.frame import frame_of
from harness.results.legend import Legend
from harness.results.rows import Row, rows
from harness.results.tables import notes_of
from harness.results.tasks import sheets_of

Records = Sequence[Mapping[str, Any]]


def to_markdown(records: Records, *, sort: str = "appearance", **further: Any) -> str:
    return table.markdown(sheets_of(ordered(records, sort), **further))


def to_csv(records: Records, *, sort: str = "appearance", relative_to: str | None = None) -> str:
    return table.csv(frame_of(ordered(records, sort), relative_to))


def to_html(records: Records, **further: Any) -> str:
    return table.html(sheets_of(rows(records), **further))


def explanations(records: Records) -> list[str]:
    return notes_of(Legend(rows(records)))


def ordered(records: Records, sort: str) -> list[Row]:
    return table.in_order(rows(records), sort)
