"""Records to rows: one row for each measured cell, with the figures that may be shown and no others.

A time appears only if its merges were right, what was not measured is absent (never 0), and the phases of a row add up
to its total.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from harness.common.comparison import Sample, sample_of, spread
from harness.common.console import well_formed
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG
from harness.records.fields import (
    WORK,
    InWords,
    Key,
    Record,
    asked_of,
    cell_of,
    counts_only,
    in_words,
    key_of,
    together,
    value_at,
)
from harness.records.schema import BY_ITSELF, PHASES
from harness.worker.calling import OWN
from variants.contract import COUNTING_PHASES

if TYPE_CHECKING:
    import pandas as pd

_PROVED = (IDENTICAL, UP_TO_TIES)
TALLIES = (
    "pairs_scanned", "pair_updates", "heap_pushes", "heap_pops", "stale_pops", "words_rewritten", "positions_visited",
)  # fmt: skip
"""Those that every variant may have, in the order in which they are shown."""


@dataclass(frozen=True)
class Row:
    """One cell: its settings (in `record`), its outcome, and the figures that may be shown.

    The figures are there only when the status is ok; each is the median over `runs` records, of which `samples` are
    those that were timed and `phases` what each of them spent. `lost` says what became of the other records of the
    cell. `disputed` holds the digests if rows of the same task differ.
    """

    record: Record
    status: str
    reason: str
    runs: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    system_seconds: float | None = None
    peak_rss_bytes: int | None = None
    peak_private_bytes: int | None = None
    memory_is_sampled: bool = False
    tallies: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    phases: tuple[Mapping[str, float | None], ...] = ()
    instructions: int | None = None
    proved: bool = False
    lost: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """The variant, or the counter if only counting was measured."""
        return str(self.record["counting"] if self.counting_only else self.record["variant"])

    @cached_property
    def counting_only(self) -> bool:
        return counts_only(self.record)

    @cached_property
    def words(self) -> Mapping[str, InWords]:
        """The settings as text and as phrases, by the names of their fields."""
        return in_words(self.record)

    @cached_property
    def params(self) -> Mapping[str, str]:
        """The trainer's parameters, or the counter's, each as it would be given on the command line."""
        params = self.record.get("params") or {}
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}

    @cached_property
    def asked(self) -> Key:
        """Everything that decides which merges are right."""
        return asked_of(self.record)

    @cached_property
    def work(self) -> Key:
        """What, besides the corpus, decides how much there was to do."""
        return key_of(self.record, WORK)

    @cached_property
    def question(self) -> Key:
        """The task, whichever way ties went: times of one task can be compared."""
        return (self.corpus.get("sha256"), *self.work, self.counting_only)

    @cached_property
    def corpus(self) -> Mapping[str, Any]:
        return self.record.get("data") or {}

    @cached_property
    def total(self) -> float | None:
        """The sum of the phases, so that every row adds up; None if no time may be shown."""
        return math.fsum(self.seconds.values()) if self.seconds else None

    @cached_property
    def cpu_seconds(self) -> float | None:
        """The median CPU time of the counter and the trainer together."""
        seconds = [sample.cpu_seconds for sample in self.samples if sample.cpu_seconds is not None]
        return statistics.median(seconds) if seconds else None

    @cached_property
    def spread(self) -> float | None:
        """The longest of the totals less the shortest, by their median; None for a single one."""
        return spread([sample.wall_seconds for sample in self.samples])

    @cached_property
    def counted(self) -> bool:
        """Whether its total is that of the whole way from the file: a table of words is not counted."""
        return "count" in self.seconds or self.record.get("counting") == BY_ITSELF

    @cached_property
    def extrapolated(self) -> Mapping[str, Any]:
        """The estimate for a row that a limit stopped; empty without one."""
        return (self.record.get("extrapolated") or {}) if self.status == "extrapolated" else {}

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Whether its merges are the defined ones, and what shows it if not."""
        return self.record.get("identity") or {"kind": UNPROVED}

    @cached_property
    def by_design(self) -> bool:
        """Whether it makes other merges on purpose, so that its time is that of other work."""
        return bool(self.identity.get("kind") == BY_DESIGN)

    @property
    def other_merges(self) -> bool:
        """Whether it differs by design, and not only because its words do."""
        return self.by_design and not str(self.identity.get("of_own_words") or "").startswith(IDENTICAL)

    @cached_property
    def confirmed(self) -> bool:
        """Whether its merges are proved, and no other row contradicts them."""
        return self.proved and not self.disputed

    @property
    def has_one_answer(self) -> bool:
        """Whether other rows of the same task must have learned the same merges."""
        return self.status == "ok" and not self.counting_only and self.record.get("tie_break") != OWN

    @cached_property
    def merges(self) -> int | None:
        return self.record.get("merges") if self.status == "ok" else None

    @cached_property
    def requested_merges(self) -> int | None:
        """How many merges the vocabulary size has room for."""
        vocab_size = self.record.get("vocab_size")
        return None if vocab_size is None else vocab_size - 256 - len(self.record.get("special_tokens") or ())

    @cached_property
    def exhausted(self) -> bool:
        """Whether it stopped because no pair was left."""
        merges, requested = self.merges, self.requested_merges
        return merges is not None and requested is not None and merges < requested

    @cached_property
    def digest(self) -> str:
        """The first eight digits of the digest of the merges, enough to distinguish two lists."""
        return (self.record.get("merges_sha256") or "")[:8]

    @cached_property
    def threads(self) -> int:
        return int(self.record.get("threads") or 1)

    @cached_property
    def merges_per_second(self) -> float | None:
        """Merges per second of everything but reading and counting."""
        seconds = math.fsum(spent for phase, spent in self.seconds.items() if phase not in COUNTING_PHASES)
        return self.merges / seconds if self.merges is not None and seconds > 0 else None


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no others.

    Runs of warm-up are in no row, unless their merges are wrong.
    """
    records = [record for record in records if not record.get("warm_up") or _is_wrong(record)]
    trained = [record for record in records if not counts_only(record)]
    return _disputes([_row(cell) for cell in together(trained or records, cell_of)])


def measured_phases(rows: Iterable[Row]) -> list[str]:
    """The phases that any row has, in their usual order; any others come after."""
    measured = dict.fromkeys(phase for row in rows for phase in row.seconds)
    return [phase for phase in PHASES if phase in measured] + [phase for phase in measured if phase not in PHASES]


def _row(cell: Sequence[Record]) -> Row:
    wrong = [record for record in cell if _is_wrong(record)]
    right = [record for record in cell if record["status"] == "ok"]
    if wrong or not right:
        first = (wrong or cell)[0]
        return Row(first, "mismatch" if wrong else first["status"], first.get("reason") or "", len(wrong or cell))
    digests = sorted({str(record.get("merges_sha256"))[:8] for record in right})
    if len(digests) > 1:
        reason = f"its own runs gave different merges ({', '.join(digests)})"
        return Row(right[0], "mismatch", reason, len(right))
    lost = [f"{record['status']}: {record.get('reason')}" for record in cell if record["status"] != "ok"]
    # A block that was cut short has some of its cells and not the others, so it compares none of them.
    whole = [record for record in right if record.get("block_whole") is not False]
    lost += ["of a block that was cut short"] if 0 < len(whole) < len(right) else []
    return _medians(whole or right, tuple(dict.fromkeys(lost)))


def _is_wrong(record: Record) -> bool:
    return bool(record["status"] == "mismatch" or (record.get("identity") or {}).get("kind") == WRONG)


def _medians(right: Sequence[Record], lost: tuple[str, ...]) -> Row:
    """The row of records whose merges are right."""
    first = right[0]
    samples = {id(record): sample for record in right if (sample := sample_of(record)) is not None}
    timed = [record["seconds"] for record in right if id(record) in samples]
    instructions = [record["instructions"]["count"] for record in right if record.get("instructions")]
    seconds = _columns([record.get("seconds") or {} for record in right])
    seconds.pop("total", None)
    return Row(
        first,
        "ok",
        "",
        max(len(samples), len(instructions), 1),
        lost=lost,
        samples=tuple(samples.values()),
        phases=tuple(timed),
        instructions=statistics.median_low(instructions) if instructions else None,
        seconds={name: statistics.median(seconds[name]) for name in sorted(seconds, key=_phase_order)},
        system_seconds=_median_of([record for record in right if id(record) in samples], "system_seconds"),
        peak_rss_bytes=_median_of(right, "peak_rss_bytes"),
        peak_private_bytes=_median_of(right, "peak_private_bytes"),
        memory_is_sampled=any(record.get("memory_is_sampled") for record in right),
        tallies={
            name: statistics.median_low(column)
            for name, column in _columns([record.get("tallies") or {} for record in right]).items()
        },
        # A cell that only counts has no merges to prove; its word counts are checked by whoever uses them.
        proved=counts_only(first) or all((record.get("identity") or {}).get("kind") in _PROVED for record in right),
    )


def _columns(mappings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The measured values of mappings by their names; null is not a value."""
    columns: dict[str, list[Any]] = {}
    for values in mappings:
        for name, value in values.items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns


def _phase_order(name: str) -> int:
    return PHASES.index(name) if name in PHASES else len(PHASES)


def _median_of(records: Sequence[Record], key: str) -> Any:
    values = [record[key] for record in records if record.get(key) is not None]
    return statistics.median_low(values) if values else None


def _disputes(rows: Sequence[Row]) -> list[Row]:
    """Mark the rows that answer one question with different merges: records of several runs may be joined."""
    answers: dict[Key, set[str]] = {}
    for row in rows:
        if row.has_one_answer:
            answers.setdefault(row.asked, set()).add(row.digest)
    return [
        replace(row, disputed=tuple(sorted(digests)))
        if row.has_one_answer and len(digests := answers[row.asked]) > 1
        else row
        for row in rows
    ]


# Rows for programs


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each row, seconds in full precision; what may not be shown is missing here too.

    Columns of counts are Int64, so that one missing value does not make them floats.
    """
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    tallies = dict.fromkeys([*TALLIES, *(name for row in rows for name in row.tallies)])
    kinds = {"string": _texts(), "Int64": _counts(tallies), "float64": _seconds(phases)}
    columns = {
        name: pd.Series([_encodable(figure(row)) for row in rows], dtype=kind)
        for kind, figures in kinds.items()
        for name, figure in figures.items()
    }
    sampled = pd.Series([row.memory_is_sampled for row in rows], dtype="bool")
    return pd.DataFrame({**columns, "memory_is_sampled": sampled})


_Columns = dict[str, Callable[[Row], Any]]


def _encodable(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _recorded(*keys: str, outer: str = "") -> _Columns:
    """Columns of a record's keys, or of those below the key `outer`."""
    within = f"{outer}." if outer else ""
    values = {name: value_at(f"{within}{name}") for name in keys}
    return {name: lambda row, value=value: value(row.record) for name, value in values.items()}  # type: ignore[misc]


def _texts() -> _Columns:
    data = _recorded("name", "sha256", outer="data")
    return {
        **_recorded("cell", "variant"),
        "params": lambda row: json.dumps(row.record.get("params") or {}, sort_keys=True),
        **_recorded("counting"),
        "status": lambda row: row.status,
        "reason": lambda row: row.reason or None,
        "proof": lambda row: _proof(row),
        "proof_tie_break": lambda row: _identity(row).get("tie_break"),
        "wrong_merge": lambda row: _identity(row).get("merge"),
        "got": lambda row: _json(_identity(row).get("got")),
        "want": lambda row: _json(_identity(row).get("want")),
        "data": data["name"],
        "data_sha256": data["sha256"],
        "special_tokens": lambda row: _json(row.record.get("special_tokens")),
        **_recorded("pattern", "errors", "tie_break", "interpreter", "host", "started", "merges_sha256"),
        **_recorded("cpu", outer="environment"),
    }


def _counts(tallies: Iterable[str]) -> _Columns:
    figures = ("merges", "runs", "instructions", "peak_rss_bytes", "peak_private_bytes")
    return {
        **_recorded("bytes", "documents", "pre_tokens", "words", outer="data"),
        **_recorded("threads", "vocab_size", "min_count", "merges_done"),
        **{name: attrgetter(name) for name in figures},
        **{name: lambda row, name=name: row.tallies.get(name) for name in tallies},  # type: ignore[misc]
    }


def _seconds(phases: Iterable[str]) -> _Columns:
    return {
        "total_seconds": lambda row: row.total,
        "least_total_seconds": lambda row: min((sample.wall_seconds for sample in row.samples), default=None),
        "most_total_seconds": lambda row: max((sample.wall_seconds for sample in row.samples), default=None),
        "cpu_seconds": lambda row: row.cpu_seconds,
        **{f"{phase}_seconds": lambda row, phase=phase: row.seconds.get(phase) for phase in phases},  # type: ignore[misc]
        "merges_per_second": lambda row: row.merges_per_second,
        **{
            f"extrapolated_{end}_seconds": lambda row, end=end: row.extrapolated.get(f"{end}_seconds")  # type: ignore[misc]
            for end in ("total", "low", "high")
        },
    }


def _identity(row: Row) -> Mapping[str, Any]:
    return {} if row.counting_only else row.identity


def _proof(row: Row) -> str | None:
    """The identity of the row, which is the weakest of its records'."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    return WRONG if row.status == "mismatch" else row.identity["kind"] if row.proved or row.by_design else UNPROVED


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
