"""Rows as a pandas data frame: every setting, seconds in full precision, bytes and counts as integers.

Figures that may not be shown are missing here too, so that no program downstream can take them for times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.columns import comparisons
from harness.rows import PHASES, Row, measured_phases

if TYPE_CHECKING:
    import pandas as pd

WORK = (
    "pairs_scanned", "pair_updates", "heap_pushes", "heap_pops", "stale_pops", "words_rewritten", "positions_visited",
)  # fmt: skip
"""The tallies that are columns of the Work table, in this order; any other stands below it."""


_Figure = Callable[[Row], Any]


def frame_of(shown: Sequence[Row], relative_to: str | None = None) -> pd.DataFrame:
    """One line for each row. Columns of counts are Int64, so that one missing value does not make them floats."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    kinds = (("string", _texts()), ("Int64", _counts(shown)), ("float64", _seconds(shown)))
    columns = {
        name: pd.Series(map(figure, shown), dtype=kind) for kind, figures in kinds for name, figure in figures.items()
    }
    columns["counts_reused"] = pd.Series([row.counts_reused for row in shown], dtype="bool")
    columns["memory_is_sampled"] = pd.Series([row.memory_is_sampled for row in shown], dtype="bool")
    if relative_to is not None:
        compared = comparisons(shown, relative_to).values()
        for name in ("ratio", "low", "high"):
            figures = [getattr(comparison, name) if comparison is not None else None for comparison in compared]
            columns[f"paired_{name}"] = pd.Series(figures, dtype="float64")
        columns["paired_clock"] = pd.Series(
            [comparison and comparison.clock for comparison in compared], dtype="string"
        )
    return pd.DataFrame(columns)


def _texts() -> dict[str, _Figure]:
    recorded = ("pattern", "errors", "tie_break", "interpreter", "host", "started", "merges_sha256")
    return {
        "cell": _recorded("cell"),
        "variant": _recorded("variant"),
        "params": lambda row: json.dumps(row.record.get("params") or {}, sort_keys=True),
        "counting": _recorded("counting"),
        "status": lambda row: row.status,
        "reason": lambda row: row.reason or None,
        "proof": _proof_state,
        "identity": lambda row: row.identity.get("kind"),
        "agreeing": lambda row: " ".join(row.agreeing) or None,
        "first_divergence": lambda row: _json(row.record.get("first_divergence")),
        "data": lambda row: row.corpus.get("name"),
        "data_sha256": lambda row: row.corpus.get("sha256"),
        "special_tokens": lambda row: _json(row.record.get("special_tokens")),
        **{name: _recorded(name) for name in recorded},
        "cpu": lambda row: (row.record.get("environment") or {}).get("cpu"),
    }


def _counts(shown: Sequence[Row]) -> dict[str, _Figure]:
    tallies = dict.fromkeys([*WORK, *(name for row in shown for name in row.tallies)])
    return {
        **{name: _of_corpus(name) for name in ("bytes", "documents", "pre_tokens", "words")},
        **{name: _recorded(name) for name in ("threads", "vocab_size", "min_count", "merges_done")},
        "merges": lambda row: row.merges,
        "runs": lambda row: row.runs,
        "instructions": lambda row: row.instructions,
        "peak_rss_bytes": lambda row: row.peak_rss_bytes,
        "peak_private_bytes": lambda row: row.peak_private_bytes,
        **{name: _tally(name) for name in tallies},
    }


def _seconds(shown: Sequence[Row]) -> dict[str, _Figure]:
    phases = dict.fromkeys([*PHASES, *measured_phases(shown)])
    return {
        "total_seconds": lambda row: row.total,
        "least_total_seconds": _extreme(min),
        "most_total_seconds": _extreme(max),
        "cpu_seconds": lambda row: row.cpu_seconds,
        **{f"{phase}_seconds": _phase(phase) for phase in phases},
        "merges_per_second": lambda row: row.merges_per_second,
        **{f"extrapolated_{end}_seconds": _extrapolated(end) for end in ("total", "low", "high")},
    }


def _proof_state(row: Row) -> str | None:
    """That of the row, which is the weakest of its records'."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    weak = "mismatch" if row.status == "mismatch" else "unconfirmed"
    return row.record["proof"]["state"] if row.confirmed else weak


def _recorded(name: str) -> _Figure:
    return lambda row: row.record.get(name)


def _of_corpus(name: str) -> _Figure:
    return lambda row: row.corpus.get(name)


def _tally(name: str) -> _Figure:
    return lambda row: row.tallies.get(name)


def _phase(name: str) -> _Figure:
    return lambda row: row.seconds.get(name)


def _extreme(of: Callable[[list[float]], float]) -> _Figure:
    return lambda row: of([sample.wall_seconds for sample in row.samples]) if row.samples else None


def _extrapolated(end: str) -> _Figure:
    return lambda row: row.extrapolated.get(f"{end}_seconds")


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
