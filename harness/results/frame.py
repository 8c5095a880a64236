"""Rows for programs: a pandas data frame of every field and figure, and the list that `harness.run`
returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.common.sheet import sheet_to_text, sheets_to_html_part
from harness.proof import UNPROVED, WRONG
from harness.records.file import Record
from harness.records.schema import PHASES
from harness.results.rows import UNKNOWN, Row, rows, tallies_of
from harness.results.tables import tables

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each row, seconds in full precision; what may not be shown is missing here too.

    Columns of counts are Int64, so that one missing value does not make them floats.
    """
    # only here: it costs half a second, and a table for the eye needs none of it
    import pandas as pd

    kinds: dict[Any, Callable[[Row], dict[str, Any]]] = {
        "string": _text_columns,
        "Int64": partial(_counts, tallies=tallies_of(rows)),
        "float64": _seconds_columns,
        "bool": lambda row: {"memory_is_sampled": row.memory_is_sampled},
    }
    parts = []
    for kind, values in kinds.items():
        part = pd.DataFrame([values(row) for row in rows], dtype="object")
        parts.append(part.astype(kind))
    return pd.concat(parts, axis="columns")


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _text_columns(row: Row) -> dict[str, Any]:
    run, cell, measurement = row.record.run, row.record.cell, row.record.measurement
    identity = UNKNOWN if row.counting_only else row.identity

    return {
        "cell": cell.role,
        "variant": cell.variant,
        "params": json.dumps(cell.params, sort_keys=True),
        "counting": cell.counting,
        "status": row.status,
        "reason": row.reason or None,
        "proof": _proof(row),
        "proof_tie_break": identity.tie_break,
        "wrong_merge": identity.merge,
        "got": _json(identity.got),
        "want": _json(identity.want),
        "data": row.corpus.name,
        "data_sha256": row.corpus.sha256,
        "special_tokens": _json(cell.special_tokens),
        "pattern": cell.pattern,
        "errors": cell.errors,
        "tie_break": cell.tie_break,
        "interpreter": cell.interpreter,
        "host": run.host,
        "started": measurement.started,
        "merges_sha256": measurement.merges_sha256,
        "cpu": run.environment.get("cpu"),
    }


def _proof(row: Row) -> str | None:
    """The weakest verdict on the merges of its runs; None if there are none."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    if row.status == "mismatch":
        return WRONG
    return row.identity.kind if row.proved or row.by_design else UNPROVED


def _counts(row: Row, tallies: Sequence[str]) -> dict[str, Any]:
    cell, data = row.record.cell, row.corpus

    return {
        "bytes": data.bytes,
        "documents": data.documents,
        "pre_tokens": data.pre_tokens,
        "words": data.words,
        "threads": cell.threads,
        "vocab_size": cell.vocab_size,
        "min_count": cell.min_count,
        "merges_done": row.record.measurement.merges_done,
        "merges": row.merges,
        "runs": row.runs,
        "instructions": row.instructions,
        "peak_rss_bytes": row.peak_rss_bytes,
        **{name: row.tallies.get(name) for name in tallies},
    }


def _seconds_columns(row: Row) -> dict[str, Any]:
    seconds = {
        "total_seconds": row.total,
        "wall_seconds": row.wall_seconds,
        "cpu_seconds": row.cpu_seconds,
    }
    for phase in PHASES:
        seconds[f"{phase}_seconds"] = row.seconds.get(phase)
    seconds["merges_per_second"] = row.figures["merges/s"]
    seconds["limit_seconds"] = row.wall_limit
    return seconds


class Records(list[Record]):
    """The records of a run's trainers, one for each measured run, in order; it shows itself as the
    table.

    `counters` holds the records of the word counters, which were measured separately: what a
    trainer's record says of reading and counting comes from there. `everything` is both, as they
    are stored.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.everything = list(records)
        super().__init__(record for record in self.everything if record.trains)
        self.counters = [record for record in self.everything if not record.trains]

    def frame(self) -> pd.DataFrame:
        """A tidy pandas data frame: one line for each measured run of a trainer, one column for
        each figure.

        Settings are text, seconds are floats in full precision, bytes and counts of work are Int64;
        what was not measured, or may not be shown because the merges were wrong, is missing.
        `block` and `repeat` say which of how many runs it is. docs/reference/records.md says what
        each column holds.
        """
        lines, blocks, repeats = list[Row](), list[Any](), list[Any]()
        for record in self:
            lines += rows([record])
            blocks.append(record.measurement.block)
            repeats.append(record.run.repeat)

        frame = frame_of(lines).drop(columns=["cell", "runs"])
        frame.insert(1, "block", blocks)
        frame.insert(2, "repeat", repeats)
        return frame.astype({"block": "Int64", "repeat": "Int64"})

    def __str__(self) -> str:
        """The table that the command prints, as text at full width; `list(records)` shows the
        records themselves.
        """
        if not self.everything:
            return "no records"
        return "\n".join(map(sheet_to_text, tables(rows(self.everything))))

    def _repr_html_(self) -> str:
        """The table that the command prints, for a notebook."""
        return (
            sheets_to_html_part(tables(rows(self.everything)), "Records")
            if self.everything
            else "<p>no records</p>"
        )
