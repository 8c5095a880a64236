"""What `harness.run` returns: a list of the trainers' records that shows itself as the table."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.common.sheet import print_sheet, sheets_to_html_part
from harness.results.frame import frame_of
from harness.results.rows import rows
from harness.results.tables import tables

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]


class Records(list[Record]):
    """The records of a run's trainers, one for each measured run, in order; a list like any other.

    `counters` holds the records of the word counters, which were measured by themselves: what a trainer's record says
    of reading and counting comes from there. `everything` is both, as they are stored.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.everything = list(records)
        super().__init__(record for record in self.everything if record.get("cell") != "count")
        self.counters = [record for record in self.everything if record.get("cell") == "count"]

    def frame(self) -> pd.DataFrame:
        """A tidy pandas data frame: one line for each measured run of a trainer, one column for each figure.

        Settings are text, seconds are floats in full precision, bytes and counts of work are Int64; what was not
        measured, or may not be shown because the merges were wrong, is missing. `block` and `repeat` say which of how
        many runs it is. docs/reference/records.md says what each column holds.
        """
        frame = frame_of([row for record in self for row in rows([record])])
        # Each line is one run of a trainer, so what is said of several is left out.
        frame = frame.drop(columns=["cell", "runs", "least_total_seconds", "most_total_seconds"])
        for place, name in enumerate(("block", "repeat")):
            frame.insert(1 + place, name, [record.get(name) for record in self])
            frame[name] = frame[name].astype("Int64")
        return frame

    def __str__(self) -> str:
        """The table that the command prints, as text at full width; `list(records)` shows the records themselves."""
        shown = rows(self.everything)
        if not shown:
            return "no records"
        text = io.StringIO()
        for sheet in tables(shown):
            print_sheet(sheet, Console(file=text))
        return text.getvalue()

    def _repr_html_(self) -> str:
        """The table that the command prints, for a notebook."""
        shown = rows(self.everything)
        return sheets_to_html_part(tables(shown), "Records") if shown else "<p>no records</p>"
