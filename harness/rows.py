"""Records to rows: one row for each measured cell, with the figures that may be shown and no others.

Everything that looks at results starts here, so the rules stand once: a time appears only if its merges were right,
what was not measured is absent (never 0), and the phases of a row add up to its total.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Record = Mapping[str, Any]

PHASES = ("read", "count", "convert", "init", "max", "update", "other")
"""In the order in which a run goes through them; the same in every table and plot."""

_QUESTION = ("pattern", "special_tokens", "errors", "tie_break", "min_count", "vocab_size")
"""What decides the merges, besides the digest of the corpus: whoever answers the same question answers alike."""

_COUNTING = ("cell", "counting", "params", "threads", "pattern", "special_tokens", "errors", "interpreter", "host")
"""What makes two records the same counting, besides the digest of the corpus."""

_CELL = tuple(dict.fromkeys(("variant", *_COUNTING, *_QUESTION)))
"""What makes two records the same cell, besides the digest of the corpus."""


@dataclass(frozen=True)
class Row:
    """One cell: what was asked (in `record`), what came of it, and the figures that may be shown.

    The figures are there only when the status is ok; each is the median over `runs` records. `lost` says what became of
    the other records of the cell. `disputed` holds the digests where rows that answer the same question differ.
    """

    record: Record
    status: str
    reason: str
    runs: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    peak_private_bytes: int | None = None
    memory_is_sampled: bool = False
    tallies: Mapping[str, int] = field(default_factory=dict)
    counts_reused: bool = False
    proved: bool = False
    agreeing: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the row is about: its variant, or its counter where only counting was measured."""
        return str(self.record["counting"] if self.counting_only else self.record["variant"])

    @property
    def counting_only(self) -> bool:
        return self.record.get("cell") == "count"

    @property
    def corpus(self) -> Mapping[str, Any]:
        return self.record.get("data") or {}

    @property
    def total(self) -> float | None:
        """The sum of the phases, so that every row adds up; None where no time may be shown."""
        return math.fsum(self.seconds.values()) if self.seconds else None

    @property
    def confirmed(self) -> bool:
        """Whether a variant of another family came to the same merges."""
        return self.proved and not self.disputed

    @property
    def merges(self) -> int | None:
        return self.record.get("merges") if self.status == "ok" else None

    @property
    def digest(self) -> str:
        """The first eight digits of the digest of the merges, enough to tell two lists apart."""
        return (self.record.get("merges_sha256") or "")[:8]

    @property
    def requested_merges(self) -> int | None:
        """How many merges the vocabulary asked for has room for."""
        vocab_size = self.record.get("vocab_size")
        return None if vocab_size is None else vocab_size - 256 - len(self.record.get("special_tokens") or ())

    def per_second(self, number: int | None, phases: Iterable[str]) -> float | None:
        """`number` divided by the seconds of `phases`; None where either is unknown."""
        seconds = math.fsum(self.seconds.get(phase, 0.0) for phase in phases)
        return number / seconds if number is not None and seconds > 0 else None

    @property
    def merges_per_second(self) -> float | None:
        """Merges per second of training, that is of everything but reading and counting."""
        return self.per_second(self.merges, self.seconds.keys() - {"read", "count"})


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no others.

    Runs of warm-up are in no row.
    """
    records = [record for record in records if not record.get("warm_up")]
    trained = [record for record in records if record.get("cell") != "count"]
    cells: dict[str, list[Record]] = {}
    for record in trained or records:
        cells.setdefault(_cell(record), []).append(record)
    return _disputes([_row(cell) for cell in cells.values()])


def latest(records: Sequence[Record]) -> list[Record]:
    """Those records of each cell that its latest run made.

    >>> [record["run_id"] for record in latest([
    ...     {"variant": "a", "run_id": "first", "started": "2026-01-01T09:00:00+00:00"},
    ...     {"variant": "b", "run_id": "first", "started": "2026-01-01T09:01:00+00:00"},
    ...     {"variant": "a", "run_id": "second", "started": "2026-01-02T09:00:00+00:00"},
    ... ])]
    ['first', 'second']
    """
    newest: dict[str, Record] = {}
    for record in records:
        kept = newest.setdefault(_cell(record), record)
        if (record.get("started") or "") >= (kept.get("started") or ""):
            newest[_cell(record)] = record
    return [record for record in records if record.get("run_id") == newest[_cell(record)].get("run_id")]


def measured_phases(shown: Iterable[Row]) -> list[str]:
    """The phases that any row has, in their usual order; any others come after."""
    measured = {phase: None for row in shown for phase in row.seconds}
    return [phase for phase in PHASES if phase in measured] + [phase for phase in measured if phase not in PHASES]


def _cell(record: Record) -> str:
    return _key(record, _COUNTING if record.get("cell") == "count" else _CELL)


def _key(record: Record, fields: Sequence[str]) -> str:
    named = {name: record.get(name) for name in fields}
    return json.dumps([named, (record.get("data") or {}).get("sha256")], sort_keys=True)


def _row(cell: Sequence[Record]) -> Row:
    wrong = [record for record in cell if _differs(record)]
    right = [record for record in cell if record["status"] == "ok" and not _differs(record)]
    if wrong or not right:
        first = (wrong or cell)[0]
        status = "mismatch" if wrong else first["status"]
        return Row(first, status, first.get("reason") or "", len(wrong or cell))
    digests = sorted({str(record.get("merges_sha256"))[:8] for record in right})
    if len(digests) > 1:
        return Row(right[0], "mismatch", f"its own runs gave different merges ({', '.join(digests)})", len(right))
    lost = [f"{record['status']}: {record.get('reason')}" for record in cell if record["status"] != "ok"]
    return _medians(right, tuple(dict.fromkeys(lost)))


def _differs(record: Record) -> bool:
    return record["status"] == "mismatch" or (record.get("proof") or {}).get("state") == "mismatch"


def _medians(right: Sequence[Record], lost: tuple[str, ...]) -> Row:
    first, seconds = right[0], _columns(right, "seconds")
    proofs = [record.get("proof") or {} for record in right]
    by = dict.fromkeys(name for proof in proofs for name in proof.get("by") or () if name != first.get("variant"))
    row = Row(first, "ok", "", len(right), lost=lost, agreeing=tuple(by))
    return replace(
        row,
        seconds={name: statistics.median(seconds[name]) for name in _phases_first(seconds) if name != "total"},
        peak_rss_bytes=_median_of(right, "peak_rss_bytes"),
        peak_private_bytes=_median_of(right, "peak_private_bytes"),
        memory_is_sampled=any(record.get("memory_is_sampled") for record in right),
        tallies={name: statistics.median_low(values) for name, values in _columns(right, "tallies").items()},
        counts_reused=any(record.get("counts_reused") for record in right),
        # A cell that only counts has no merges to prove; its word counts are checked by whoever uses them.
        proved=row.counting_only or all(proof.get("state") in ("reference", "confirmed") for proof in proofs),
    )


def _columns(records: Sequence[Record], key: str) -> dict[str, list[Any]]:
    """The measured values under each name of a mapping that every record holds; null is not a value."""
    columns: dict[str, list[Any]] = {}
    for record in records:
        for name, value in (record.get(key) or {}).items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns


def _phases_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _median_of(records: Sequence[Record], key: str) -> int | None:
    values = [record[key] for record in records if record.get(key) is not None]
    return statistics.median_low(values) if values else None


def _disputes(shown: Sequence[Row]) -> list[Row]:
    """Mark the rows that answer one question with different merges: records of several runs may be joined."""
    answers: dict[str, set[str]] = {}
    for row in shown:
        if row.status == "ok" and not row.counting_only:
            answers.setdefault(_key(row.record, _QUESTION), set()).add(row.digest)
    marked = []
    for row in shown:
        digests = answers.get(_key(row.record, _QUESTION), set()) if row.status == "ok" else set()
        marked.append(replace(row, disputed=tuple(sorted(digests))) if len(digests) > 1 else row)
    return marked
