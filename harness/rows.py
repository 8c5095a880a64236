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

from harness.calling import OWN
from harness.comparison import Sample, sample_of, spread
from harness.record_keys import BY_DESIGN

Record = Mapping[str, Any]

PHASES = ("read", "count", "convert", "init", "copy", "max", "update", "other")
"""In the order in which a run goes through them; the same in every table and plot."""

_QUESTION = ("pattern", "special_tokens", "errors", "tie_break", "min_count", "vocab_size")
"""What decides the merges, besides the digest of the corpus: whoever answers the same question answers alike."""

_FURTHER_WORK = ("special_tokens", "errors", "min_count")

_COUNTING = ("cell", "counting", "params", "threads", "pattern", "special_tokens", "errors", "interpreter", "host")
"""What makes two records the same counting, besides the digest of the corpus."""

_UNTIMED = ("proof", "instructions")
"""The presets of conf/measure whose records hold no times."""

_CELL = tuple(dict.fromkeys(("variant", *_COUNTING, *_QUESTION)))
"""What makes two records the same cell, besides the digest of the corpus."""


@dataclass(frozen=True)
class Row:
    """One cell: what was asked (in `record`), what came of it, and the figures that may be shown.

    The figures are there only when the status is ok; each is the median over `runs` records, of which `samples` are
    those that were timed and `each` their phases. `lost` says what became of the other records of the cell. `disputed`
    holds the digests where rows that answer the same question differ.
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
    samples: tuple[Sample, ...] = ()
    each: tuple[Mapping[str, float], ...] = ()
    instructions: int | None = None
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
    def cpu_seconds(self) -> float | None:
        """The median CPU time of the counter and the trainer together."""
        known = [sample.cpu_seconds for sample in self.samples if sample.cpu_seconds is not None]
        return statistics.median(known) if known else None

    @property
    def spread(self) -> float | None:
        """The longest of the totals less the shortest, by their median; None where there is but one."""
        return spread([sample.wall_seconds for sample in self.samples])

    @property
    def extrapolated(self) -> Mapping[str, Any]:
        """What the whole would have taken, where a limit ended it early; empty where none did or nobody can say."""
        return (self.record.get("extrapolated") or {}) if self.status == "extrapolated" else {}

    @property
    def question(self) -> tuple[Any, ...]:
        """What was to be done: the times of rows that did the same are there to be compared."""
        asked = [str(self.record.get(name)) for name in ("vocab_size", "pattern", *_FURTHER_WORK)]
        return self.corpus.get("sha256"), *asked, self.counting_only

    @property
    def identity(self) -> Mapping[str, Any]:
        """How far an outside trainer's merges are those that are defined; empty where nobody asked."""
        return self.record.get("identity") or {}

    @property
    def by_design(self) -> bool:
        """Whether it is meant to make other merges, so that its time is that of other work."""
        return self.identity.get("kind") == BY_DESIGN

    @property
    def exhausted(self) -> bool:
        """Whether it ended because no pair was left."""
        made, asked = self.merges, self.requested_merges
        return made is not None and asked is not None and made < asked

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


_PROVED = ("reference", "confirmed", "replayed")


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no others.

    Runs of warm-up are in no row, unless their merges are wrong.
    """
    records = _confirmed_by_others([record for record in records if not record.get("warm_up") or _differs(record)])
    trained = [record for record in records if record.get("cell") != "count"]
    cells: dict[str, list[Record]] = {}
    for record in trained or records:
        cells.setdefault(_cell(record), []).append(record)
    return _disputes([_row(cell) for cell in cells.values()])


def _confirmed_by_others(records: Sequence[Record]) -> list[Record]:
    """The records, those from before an interruption with the proof that the same merges have in the same run."""
    proofs: dict[tuple[str, ...], Record] = {}
    for record in records:
        if (record.get("proof") or {}).get("state") in _PROVED and record["status"] == "ok":
            proofs.setdefault(_answer(record), record["proof"])
    return [
        {**record, "proof": {**proofs[_answer(record)], "state": "confirmed"}}
        if record.get("block_whole") is False and not _differs(record) and _answer(record) in proofs
        else record
        for record in records
    ]


def _answer(record: Record) -> tuple[str, ...]:
    """The run, the question and the merges that were the answer to it."""
    return str(record.get("run_id")), _key(record, _QUESTION), str(record.get("merges_sha256"))


def latest(records: Sequence[Record]) -> list[Record]:
    """Those records of each cell that its latest run made; of times and of what is no time, the latest of each.

    >>> [record["run_id"] for record in latest([
    ...     {"variant": "a", "run_id": "first", "started": "2026-01-01T09:00:00+00:00"},
    ...     {"variant": "b", "run_id": "first", "started": "2026-01-01T09:01:00+00:00"},
    ...     {"variant": "a", "run_id": "second", "started": "2026-01-02T09:00:00+00:00"},
    ...     {"variant": "a", "run_id": "third", "started": "2026-01-03T09:00:00+00:00", "measure": "instructions"},
    ... ])]
    ['first', 'second', 'third']
    """
    newest: dict[tuple[str, str], Record] = {}
    for record in records:
        kept = newest.setdefault(_measured(record), record)
        if (record.get("started") or "") >= (kept.get("started") or ""):
            newest[_measured(record)] = record
    return [record for record in records if record.get("run_id") == newest[_measured(record)].get("run_id")]


def asked(row: Row) -> str:
    """Everything that decides which merges are right: rows of which it is equal have to come to the same."""
    return _key(row.record, _QUESTION)


def measured_phases(shown: Iterable[Row]) -> list[str]:
    """The phases that any row has, in their usual order; any others come after."""
    measured = {phase: None for row in shown for phase in row.seconds}
    return [phase for phase in PHASES if phase in measured] + [phase for phase in measured if phase not in PHASES]


def _cell(record: Record) -> str:
    return _key(record, _COUNTING if record.get("cell") == "count" else _CELL)


def _measured(record: Record) -> tuple[str, str]:
    """The cell and what was measured of it, as far as one does not replace the other."""
    return _cell(record), str(record.get("measure")) if record.get("measure") in _UNTIMED else "time"


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
    # A block that was cut short has some of its cells and not the others, so it compares none of them.
    whole = [record for record in right if record.get("block_whole") is not False]
    lost += ["of a block that was cut short"] if 0 < len(whole) < len(right) else []
    return _medians(whole or right, tuple(dict.fromkeys(lost)))


def _differs(record: Record) -> bool:
    return record["status"] == "mismatch" or (record.get("proof") or {}).get("state") == "mismatch"


def _medians(right: Sequence[Record], lost: tuple[str, ...]) -> Row:
    first, seconds = right[0], _columns(right, "seconds")
    proofs = [record.get("proof") or {} for record in right]
    by = dict.fromkeys(name for proof in proofs for name in proof.get("by") or () if name != first.get("variant"))
    samples = tuple(filter(None, map(sample_of, right)))
    instructions = [record["instructions"]["count"] for record in right if record.get("instructions")]
    row = Row(first, "ok", "", max(len(samples), len(instructions), 1), lost=lost, agreeing=tuple(by))
    return replace(
        row,
        samples=samples,
        each=tuple(_phases(record) for record in right if sample_of(record) is not None),
        instructions=statistics.median_low(instructions) if instructions else None,
        seconds={name: statistics.median(seconds[name]) for name in _phases_first(seconds) if name != "total"},
        peak_rss_bytes=_median_of(right, "peak_rss_bytes"),
        peak_private_bytes=_median_of(right, "peak_private_bytes"),
        memory_is_sampled=any(record.get("memory_is_sampled") for record in right),
        tallies={name: statistics.median_low(values) for name, values in _columns(right, "tallies").items()},
        counts_reused="count" in seconds and any(record.get("counts_reused") for record in right),
        # A cell that only counts has no merges to prove; its word counts are checked by whoever uses them.
        proved=row.counting_only or all(proof.get("state") in _PROVED for proof in proofs),
    )


def _columns(records: Sequence[Record], key: str) -> dict[str, list[Any]]:
    """The measured values under each name of a mapping that every record holds; null is not a value."""
    columns: dict[str, list[Any]] = {}
    for record in records:
        for name, value in (record.get(key) or {}).items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns


def _phases(record: Record) -> dict[str, float]:
    """The seconds of one record by phase, without those that were not measured."""
    seconds = record.get("seconds") or {}
    return {name: seconds[name] for name in _phases_first(seconds) if name != "total" and seconds[name] is not None}


def _phases_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _median_of(records: Sequence[Record], key: str) -> int | None:
    values = [record[key] for record in records if record.get(key) is not None]
    return statistics.median_low(values) if values else None


def _disputes(shown: Sequence[Row]) -> list[Row]:
    """Mark the rows that answer one question with different merges: records of several runs may be joined."""
    answers: dict[str, set[str]] = {}
    for row in shown:
        if row.status == "ok" and not row.counting_only and row.record.get("tie_break") != OWN:
            answers.setdefault(_key(row.record, _QUESTION), set()).add(row.digest)
    marked = []
    for row in shown:
        asked = row.status == "ok" and row.record.get("tie_break") != OWN
        digests = answers.get(_key(row.record, _QUESTION), set()) if asked else set()
        marked.append(replace(row, disputed=tuple(sorted(digests))) if len(digests) > 1 else row)
    return marked
