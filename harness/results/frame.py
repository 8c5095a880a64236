"""Rows as a pandas data frame: every setting, seconds in full precision, bytes and counts as integers.

Figures that may not be rows are missing here too, so that no program downstream can take them for times.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.common.console import well_formed
from harness.proof import UNPROVED, WRONG
from harness.records.schema import PHASES
from harness.results.fields import WORK
from harness.results.rows import Row, measured_phases
from harness.results.tables import Baseline
from harness.runs.fields import value_at

if TYPE_CHECKING:
    import pandas as pd


_TEXTS = ("pattern", "errors", "tie_break", "interpreter", "host", "started", "merges_sha256")
_Columns = Mapping[str, Callable[[Row], Any]]


def frame_of(rows: Sequence[Row], relative_to: str | None = None) -> pd.DataFrame:
    """One line for each row. Columns of counts are Int64, so that one missing value does not make them floats."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    kinds = {"string": _texts(), "Int64": _counts(rows), "float64": _seconds(rows), "bool": _marks()}
    columns = {
        name: pd.Series([_kept(figure(row)) for row in rows], dtype=kind)
        for kind, figures in kinds.items()
        for name, figure in figures.items()
    }
    if relative_to is not None:
        compared = Baseline(rows, relative_to).comparisons
        for name, kind in (("ratio", "float64"), ("low", "float64"), ("high", "float64"), ("clock", "string")):
            figures = [comparison and getattr(comparison, name) for comparison in compared]
            columns[f"paired_{name}"] = pd.Series(figures, dtype=kind)
    return pd.DataFrame(columns)


def _kept(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _recorded(key: str) -> Callable[[Row], Any]:
    value = value_at(key)
    return lambda row: value(row.record)


def _within(attribute: str, name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, attribute).get(name)


def _texts() -> _Columns:
    return {
        "cell": _recorded("cell"),
        "variant": _recorded("variant"),
        "params": lambda row: json.dumps(row.record.get("params") or {}, sort_keys=True),
        "counting": _recorded("counting"),
        "status": lambda row: row.status,
        "reason": lambda row: row.reason or None,
        "proof": _proof,
        "proof_tie_break": _of_identity("tie_break"),
        "wrong_merge": _of_identity("merge"),
        "got": lambda row: _json(_of_identity("got")(row)),
        "want": lambda row: _json(_of_identity("want")(row)),
        "data": _recorded("data.name"),
        "data_sha256": _recorded("data.sha256"),
        "special_tokens": lambda row: _json(row.record.get("special_tokens")),
        **{name: _recorded(name) for name in _TEXTS},
        "cpu": _recorded("environment.cpu"),
    }


def _counts(rows: Sequence[Row]) -> _Columns:
    tallies = dict.fromkeys([*WORK, *(name for row in rows for name in row.tallies)])
    figures = ("merges", "runs", "instructions", "peak_rss_bytes", "peak_private_bytes")
    return {
        **{name: _recorded(f"data.{name}") for name in ("bytes", "documents", "pre_tokens", "words")},
        **{name: _recorded(name) for name in ("threads", "vocab_size", "min_count", "merges_done")},
        **{name: operator.attrgetter(name) for name in figures},
        **{name: _within("tallies", name) for name in tallies},
    }


def _seconds(rows: Sequence[Row]) -> _Columns:
    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    ends = ("total", "low", "high")
    return {
        "total_seconds": lambda row: row.total,
        "least_total_seconds": lambda row: min((sample.wall_seconds for sample in row.samples), default=None),
        "most_total_seconds": lambda row: max((sample.wall_seconds for sample in row.samples), default=None),
        "cpu_seconds": lambda row: row.cpu_seconds,
        **{f"{phase}_seconds": _within("seconds", phase) for phase in phases},
        "merges_per_second": lambda row: row.merges_per_second,
        **{f"extrapolated_{end}_seconds": _within("extrapolated", f"{end}_seconds") for end in ends},
    }


def _marks() -> _Columns:
    return {name: operator.attrgetter(name) for name in ("memory_is_sampled",)}


def _proof(row: Row) -> str | None:
    """The identity of the row, which is the weakest of its records'."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    return WRONG if row.status == "mismatch" else row.identity["kind"] if row.proved or row.by_design else UNPROVED


def _of_identity(key: str) -> Callable[[Row], Any]:
    return lambda row: None if row.counting_only else row.identity.get(key)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
