"""Records to rows: one row for each measured cell, with the figures that may be shown and no others.

Everything that looks at results starts here, so the rules stand once: a time appears only if its merges were right,
what was not measured is absent (never 0), and the phases of a row add up to its total.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from harness.common.comparison import Sample, sample_of, spread
from harness.common.units import decimals_for
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG
from harness.records.schema import BY_ITSELF, PHASES
from harness.runs.fields import (
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
)
from harness.worker.calling import OWN
from variants.contract import COUNTING_PHASES

_PROVED = (IDENTICAL, UP_TO_TIES)


@dataclass(frozen=True)
class Row:
    """One cell: what was asked (in `record`), what came of it, and the figures that may be shown.

    The figures are there only when the status is ok; each is the median over `runs` records, of which `samples` are
    those that were timed and `phases` what each of them spent. `lost` says what became of the other records of the
    cell. `disputed` holds the digests where rows that answer the same question differ.
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
    phases: tuple[Mapping[str, float | None], ...] = ()
    instructions: int | None = None
    proved: bool = False
    lost: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """What the row is about: its variant, or its counter where only counting was measured."""
        return str(self.record["counting"] if self.counting_only else self.record["variant"])

    @cached_property
    def counting_only(self) -> bool:
        return counts_only(self.record)

    @cached_property
    def words(self) -> Mapping[str, InWords]:
        """What was asked, as it is written and said: by name the fields that are known."""
        return in_words(self.record)

    @cached_property
    def params(self) -> Mapping[str, str]:
        """The trainer's parameters, or the counter's, each as it would be given on the command line."""
        params = self.record.get("params") or {}
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}

    @cached_property
    def asked(self) -> Key:
        """Everything that decides which merges are right: rows of which it is equal have to come to the same."""
        return asked_of(self.record)

    @cached_property
    def work(self) -> Key:
        """What, besides the corpus, decides how much there was to do."""
        return key_of(self.record, WORK)

    @cached_property
    def corpus(self) -> Mapping[str, Any]:
        return self.record.get("data") or {}

    @cached_property
    def total(self) -> float | None:
        """The sum of the phases, so that every row adds up; None where no time may be shown."""
        return math.fsum(self.seconds.values()) if self.seconds else None

    @property
    def each(self) -> tuple[Mapping[str, float], ...]:
        """The phases of each sample, in their order, without what was not measured."""
        return tuple(map(_phases, self.phases))

    @cached_property
    def cpu_seconds(self) -> float | None:
        """The median CPU time of the counter and the trainer together."""
        known = [sample.cpu_seconds for sample in self.samples if sample.cpu_seconds is not None]
        return statistics.median(known) if known else None

    @cached_property
    def spread(self) -> float | None:
        """The longest of the totals less the shortest, by their median; None where there is but one."""
        return spread([sample.wall_seconds for sample in self.samples])

    @cached_property
    def counted(self) -> bool:
        """Whether its total is that of the whole way from the file: a table of words is not counted."""
        return "count" in self.seconds or self.record.get("counting") == BY_ITSELF

    @cached_property
    def extrapolated(self) -> Mapping[str, Any]:
        """What the whole would have taken, where a limit ended it early; empty where none did or nobody can say."""
        return (self.record.get("extrapolated") or {}) if self.status == "extrapolated" else {}

    @cached_property
    def question(self) -> Key:
        """What was to be done, whichever way ties went: the times of rows that did the same are to be compared."""
        return (self.corpus.get("sha256"), *self.work, self.counting_only)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Whether its merges are the defined ones, and what shows it if not."""
        return identity_of(self.record)

    @cached_property
    def by_design(self) -> bool:
        """Whether it is meant to make other merges, so that its time is that of other work."""
        return self.identity.get("kind") == BY_DESIGN

    @cached_property
    def exhausted(self) -> bool:
        """Whether it ended because no pair was left."""
        made, asked = self.merges, self.requested_merges
        return made is not None and asked is not None and made < asked

    @cached_property
    def confirmed(self) -> bool:
        """Whether its merges are proved, and no other row contradicts them."""
        return self.proved and not self.disputed

    @cached_property
    def merges(self) -> int | None:
        return self.record.get("merges") if self.status == "ok" else None

    @cached_property
    def digest(self) -> str:
        """The first eight digits of the digest of the merges, enough to tell two lists apart."""
        return (self.record.get("merges_sha256") or "")[:8]

    @cached_property
    def requested_merges(self) -> int | None:
        """How many merges the vocabulary asked for has room for."""
        vocab_size = self.record.get("vocab_size")
        return None if vocab_size is None else vocab_size - 256 - len(self.record.get("special_tokens") or ())

    def per_second(self, number: int | None, phases: Iterable[str]) -> float | None:
        """`number` divided by the seconds of `phases`; None where either is unknown."""
        seconds = math.fsum(self.seconds.get(phase, 0.0) for phase in phases)
        return number / seconds if number is not None and seconds > 0 else None

    @cached_property
    def merges_per_second(self) -> float | None:
        """Merges per second of training, that is of everything but reading and counting."""
        return self.per_second(self.merges, self.seconds.keys() - {*COUNTING_PHASES})


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no others.

    Runs of warm-up are in no row, unless their merges are wrong.
    """
    records = [record for record in records if not record.get("warm_up") or _differs(record)]
    trained = [record for record in records if not counts_only(record)]
    return _disputes([_row(cell) for cell in together(trained or records, cell_of)])


def identity_of(record: Record) -> Mapping[str, Any]:
    """The identity of a record's merges; unproved if they were not judged."""
    return record.get("identity") or _NOT_JUDGED


_NOT_JUDGED: Mapping[str, Any] = {"kind": UNPROVED}
_NOTHING: Mapping[str, Any] = {}


def decimals_of(shown: Iterable[Row]) -> int:
    """How many decimals the seconds of these rows are written with."""
    return decimals_for([row.total for row in shown if row.total is not None])


def measured_phases(shown: Iterable[Row]) -> list[str]:
    """The phases that any row has, in their usual order; any others come after."""
    measured = {phase: None for row in shown for phase in row.seconds}
    return [phase for phase in PHASES if phase in measured] + [phase for phase in measured if phase not in PHASES]


def _row(cell: Sequence[Record]) -> Row:
    wrong = [record for record in cell if _differs(record)]
    right = [] if wrong else [record for record in cell if record["status"] == "ok"]
    if wrong or not right:
        first = (wrong or cell)[0]
        status = "mismatch" if wrong else first["status"]
        return Row(first, status, first.get("reason") or "", len(wrong or cell))
    digests = sorted({str(record.get("merges_sha256"))[:8] for record in right})
    if len(digests) > 1:
        reason = f"its own runs gave different merges ({', '.join(digests)})"
        return Row(right[0], "mismatch", reason, len(right))
    lost = [f"{record['status']}: {record.get('reason')}" for record in cell if record["status"] != "ok"]
    # A block that was cut short has some of its cells and not the others, so it compares none of them.
    whole = [record for record in right if record.get("block_whole") is not False]
    lost += ["of a block that was cut short"] if 0 < len(whole) < len(right) else []
    return _medians(whole or right, tuple(dict.fromkeys(lost)))


def _differs(record: Record) -> bool:
    return bool(record["status"] == "mismatch" or identity_of(record)["kind"] == WRONG)


def _medians(right: Sequence[Record], lost: tuple[str, ...]) -> Row:
    """The row of records whose merges are right."""
    first = right[0]
    samples, timed, untimed = list[Sample](), list[Mapping[str, Any]](), list[Mapping[str, Any]]()
    for record in right:
        if (sample := sample_of(record)) is not None:
            samples.append(sample)
            timed.append(record["seconds"])
        else:
            untimed.append(record.get("seconds") or _NOTHING)
    instructions = [record["instructions"]["count"] for record in right if record.get("instructions")]
    seconds = _columns([*timed, *untimed])
    tallies = _columns([record.get("tallies") or _NOTHING for record in right])
    proved = all(identity_of(record)["kind"] in _PROVED for record in right)
    return Row(
        first,
        "ok",
        "",
        max(len(timed), len(instructions), 1),
        lost=lost,
        samples=tuple(samples),
        phases=tuple(timed),
        instructions=statistics.median_low(instructions) if instructions else None,
        seconds={name: statistics.median(seconds[name]) for name in _phases_first(seconds) if name != "total"},
        peak_rss_bytes=_median_of(right, "peak_rss_bytes"),
        peak_private_bytes=_median_of(right, "peak_private_bytes"),
        memory_is_sampled=any(record.get("memory_is_sampled") for record in right),
        tallies={name: statistics.median_low(column) for name, column in tallies.items()},
        # A cell that only counts has no merges to prove; its word counts are checked by whoever uses them.
        proved=proved or counts_only(first),
    )


def _columns(mappings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The measured values of mappings by their names; null is not a value."""
    columns = {
        name: [value for values in mappings if (value := values.get(name)) is not None]
        for name in dict.fromkeys(itertools.chain.from_iterable(mappings))
    }
    return {name: column for name, column in columns.items() if column}


def _phases(seconds: Mapping[str, float | None]) -> dict[str, float]:
    """The seconds of one record by phase, without those that were not measured."""
    measured = {name: seconds[name] for name in _phases_first(seconds) if name != "total"}
    return {name: spent for name, spent in measured.items() if spent is not None}


def _phases_first(names: Iterable[str]) -> Sequence[str]:
    return _ordered(tuple(names))


@functools.lru_cache(maxsize=256)
def _ordered(names: tuple[str, ...]) -> Sequence[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _median_of(records: Sequence[Record], key: str) -> int | None:
    values = [record[key] for record in records if record.get(key) is not None]
    return statistics.median_low(values) if values else None


def _disputes(shown: Sequence[Row]) -> list[Row]:
    """Mark the rows that answer one question with different merges: records of several runs may be joined."""
    answers: dict[Key, set[str]] = {}
    held = {place: row.asked for place, row in enumerate(shown) if _held_to_others(row)}
    for place, question in held.items():
        if not shown[place].counting_only:
            answers.setdefault(question, set()).add(shown[place].digest)
    marked = list(shown)
    for place, question in held.items():
        if len(digests := answers.get(question, ())) > 1:
            marked[place] = replace(shown[place], disputed=tuple(sorted(digests)))
    return marked


def _held_to_others(row: Row) -> bool:
    """Whether others that were asked the same have to come to the same."""
    return row.status == "ok" and row.record.get("tie_break") != OWN
