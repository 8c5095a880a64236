"""Rows for programs: a pandas data frame of every field and figure, and the list that `harness.run` returns."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.common.comparison import compare
from harness.common.console import well_formed
from harness.common.sheet import print_sheets, sheets_to_html_part
from harness.proof import UNPROVED, WRONG
from harness.records.fields import value_at
from harness.records.schema import PHASES
from harness.results.ratios import Baseline
from harness.results.rows import TALLIES, Row, measured_phases, rows
from harness.results.tables import tables

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, Callable[[Row], Any]]


def frame_of(rows: Sequence[Row], relative_to: str | None = None) -> pd.DataFrame:
    """One line for each row, seconds in full precision; what may not be shown is missing here too.

    Columns of counts are Int64, so that one missing value does not make them floats. With a baseline four more columns
    say how each row compares with it within blocks.
    """
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    kinds: dict[str, Columns] = {"string": _TEXTS, "Int64": _counts(rows), "float64": _seconds(rows)}
    columns = {
        name: pd.Series([_encodable(value(row)) for row in rows], dtype=kind)
        for kind, values in kinds.items()
        for name, value in values.items()
    }
    columns["memory_is_sampled"] = pd.Series([row.memory_is_sampled for row in rows], dtype="bool")
    if relative_to is not None:
        compared = [
            compare(row.samples, base.samples) if base is not None and row is not base else None
            for row, base in Baseline(rows, relative_to).pairs
        ]
        for name, kind in (("ratio", "float64"), ("low", "float64"), ("high", "float64"), ("clock", "string")):
            figures = [comparison and getattr(comparison, name) for comparison in compared]
            columns[f"paired_{name}"] = pd.Series(figures, dtype=kind)
    return pd.DataFrame(columns)


def _encodable(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _recorded(*keys: str) -> Columns:
    """Columns of a record's keys, each named by what comes last in it."""
    readers = {key.rpartition(".")[2]: value_at(key) for key in keys}
    return {name: lambda row, read=read: read(row.record) for name, read in readers.items()}  # type: ignore[misc]


def _identity(key: str) -> Callable[[Row], Any]:
    return lambda row: None if row.counting_only else row.identity.get(key)


def _proof(row: Row) -> str | None:
    """The identity of the row, which is the weakest of its records'."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    return WRONG if row.status == "mismatch" else row.identity["kind"] if row.proved or row.by_design else UNPROVED


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


_TEXTS: Columns = {
    **_recorded("cell", "variant"),
    "params": lambda row: json.dumps(row.record.get("params") or {}, sort_keys=True),
    **_recorded("counting"),
    "status": lambda row: row.status,
    "reason": lambda row: row.reason or None,
    "proof": _proof,
    "proof_tie_break": _identity("tie_break"),
    "wrong_merge": _identity("merge"),
    "got": lambda row: _json(_identity("got")(row)),
    "want": lambda row: _json(_identity("want")(row)),
    "data": lambda row: row.corpus.get("name"),
    "data_sha256": lambda row: row.corpus.get("sha256"),
    "special_tokens": lambda row: _json(row.record.get("special_tokens")),
    **_recorded("pattern", "errors", "tie_break", "interpreter", "host", "started", "merges_sha256"),
    **_recorded("environment.cpu"),
}


def _counts(rows: Sequence[Row]) -> Columns:
    tallies = dict.fromkeys([*TALLIES, *(name for row in rows for name in row.tallies)])
    return {
        **_recorded("data.bytes", "data.documents", "data.pre_tokens", "data.words"),
        **_recorded("threads", "vocab_size", "min_count", "merges_done"),
        "merges": lambda row: row.merges,
        "runs": lambda row: row.runs,
        "instructions": lambda row: row.instructions,
        "peak_rss_bytes": lambda row: row.peak_rss_bytes,
        **{name: lambda row, name=name: row.tallies.get(name) for name in tallies},  # type: ignore[misc]
    }


def _seconds(rows: Sequence[Row]) -> Columns:
    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    ends = [f"{end}_seconds" for end in ("total", "low", "high")]
    return {
        "total_seconds": lambda row: row.total,
        "least_total_seconds": lambda row: min((sample.wall_seconds for sample in row.samples), default=None),
        "most_total_seconds": lambda row: max((sample.wall_seconds for sample in row.samples), default=None),
        "cpu_seconds": lambda row: row.cpu_seconds,
        **{f"{phase}_seconds": lambda row, phase=phase: row.seconds.get(phase) for phase in phases},  # type: ignore[misc]
        "merges_per_second": lambda row: row.figures["merges/s"],
        **{f"extrapolated_{key}": lambda row, key=key: row.extrapolated.get(key) for key in ends},  # type: ignore[misc]
    }


class Records(list[dict[str, Any]]):
    """The records of a run's trainers, one for each measured run, in order; it shows itself as the table.

    `counters` holds the records of the word counters, which were measured separately: what a trainer's record says of
    reading and counting comes from there. `everything` is both, as they are stored.
    """

    def __init__(self, records: Iterable[dict[str, Any]] = ()) -> None:
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
        # Each line is one run of a trainer, so the figures of several are left out.
        frame = frame.drop(columns=["cell", "runs", "least_total_seconds", "most_total_seconds"])
        for place, name in enumerate(("block", "repeat")):
            frame.insert(1 + place, name, [record.get(name) for record in self])
            frame[name] = frame[name].astype("Int64")
        return frame

    def __str__(self) -> str:
        """The table that the command prints, as text at full width; `list(records)` shows the records themselves."""
        if not self.everything:
            return "no records"
        text = io.StringIO()
        print_sheets(tables(rows(self.everything)), Console(file=text))
        return text.getvalue()

    def _repr_html_(self) -> str:
        """The table that the command prints, for a notebook."""
        return sheets_to_html_part(tables(rows(self.everything)), "Records") if self.everything else "<p>no records</p>"
