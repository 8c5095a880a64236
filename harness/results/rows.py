"""Records to rows: one row for each measured cell, as figures and a verdict that tables, charts and
pages read.

A time is in a row only if its merges were right, what was not measured is None (never 0), and the
phases of a row add up to its total.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median, median_low
from typing import Any, NamedTuple

from msgspec import structs

from harness.common.comparison import NET, Sample, spread
from harness.common.units import counted_text
from harness.proof import BY_DESIGN, IDENTICAL, PROVED, UNPROVED, WRONG, Identity
from harness.records.file import Record
from harness.records.schema import BY_ITSELF, PHASES, Data
from harness.results.fields import COLUMNS, DECISIVE, WORK, cell_of, together, values_of
from harness.worker.calling import OWN
from variants.contract import COUNTING_PHASES

TALLIES = (
    "pairs_scanned", "pair_updates", "heap_pushes", "heap_pops", "stale_pops", "words_rewritten", "positions_visited",
)  # fmt: skip
"""Those that every variant may have, in the order in which they are shown."""


class Time(NamedTuple):
    """Seconds if there are any, and whether they are the limit that was exceeded; the seconds of the
    runs lie between `low` and `high`.
    """

    number: float | None = None
    is_limit: bool = False
    low: float | None = None
    high: float | None = None


UNTIMED = Time()
UNKNOWN = Identity(UNPROVED)
"""Of merges that nobody has looked at."""


@dataclass(frozen=True, eq=False)
class Row:
    """One cell: what was to be done, its figures, and the verdict on its merges.

    The figures are medians over the runs that count; a row whose status is not ok has none. `record`
    is the first of these runs. `reason` says why a row has no figures, or in which of its blocks it
    failed.
    """

    record: Record
    status: str
    reason: str
    runs: int
    values: Mapping[str, Any]
    """The value of every field by its name, the row's status included."""
    proved: bool = False
    """Whether its merges are the defined ones; a cell that only counts has none to prove."""
    disputed: bool = False
    """Whether other rows of its task learned other merges."""
    samples: tuple[Sample, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase."""
    time: Time = UNTIMED
    """The total that may be shown, or the limit that stopped the row."""
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    system_seconds: float | None = None
    instructions: int | None = None
    peak_rss_bytes: int | None = None
    memory_is_sampled: bool = False
    tallies: Mapping[str, int] = field(default_factory=dict)

    # What was to be done

    @property
    def name(self) -> str:
        return str(self.values["variant"])

    @property
    def counting_only(self) -> bool:
        return not self.record.trains

    @property
    def corpus(self) -> Data:
        return self.record.cell.data

    @property
    def threads(self) -> int:
        return self.record.cell.threads or 1

    @cached_property
    def texts(self) -> Mapping[str, str | None]:
        """The fields that may be a column, as they are written; None where one is unknown."""
        return {known.name: known.text(self.record) for known in COLUMNS}

    @cached_property
    def params(self) -> Mapping[str, str]:
        """Those of the trainer or the counter, each as it would be given on the command line."""
        texts = {}
        for name, value in self.record.cell.params.items():
            texts[name] = value if isinstance(value, str) else json.dumps(value)
        return texts

    @cached_property
    def configured(self) -> tuple[Any, ...]:
        """The variant with its parameters."""
        return (self.name, *sorted(self.params.items()))

    @cached_property
    def question(self) -> tuple[Any, ...]:
        """The task, whichever way ties went: times of one task can be compared."""
        work = [self.values[decisive.name] for decisive in WORK]
        return (self.corpus.name, self.corpus.sha256, *work)

    @property
    def requested_merges(self) -> int | None:
        size = self.record.cell.vocab_size
        return None if size is None else size - 256 - len(self.record.cell.special_tokens)

    # The verdict

    @property
    def identity(self) -> Identity:
        """The proof's verdict on its merges."""
        return self.record.identity or UNKNOWN

    @property
    def by_design(self) -> bool:
        """Whether its merges differ from the defined ones on purpose."""
        return self.identity.kind == BY_DESIGN

    @property
    def other_merges(self) -> bool:
        """Whether they differ on purpose, and not only because its words do."""
        on_own_words = self.identity.of_own_words or ""
        return self.by_design and not on_own_words.startswith(IDENTICAL)

    @property
    def confirmed(self) -> bool:
        return self.proved and not self.disputed

    @property
    def doubtful(self) -> bool:
        """Whether it was measured, and nobody knows that its merges are right."""
        return self.status == "ok" and not self.confirmed and not self.by_design

    @property
    def is_right_on_its_words(self) -> bool:
        """Whether its merges differ only because it cuts words by its own rules."""
        return self.by_design and not self.other_merges

    @property
    def is_ranked(self) -> bool:
        """Whether it has a time and proved merges, of the defined kind or of its own words."""
        return self.total is not None and (self.confirmed or self.is_right_on_its_words)

    @property
    def order(self) -> tuple[bool, bool, float]:
        """By time: ranked rows first, then other and unproved merges, then rows without a time."""
        return self.total is None, not self.is_ranked, self.time.number or math.inf

    @property
    def digest(self) -> str:
        """Enough of the digest of its merges to distinguish two lists."""
        return (self.record.measurement.merges_sha256 or "")[:8]

    @property
    def merges(self) -> int | None:
        return self.record.measurement.merges if self.status == "ok" else None

    @property
    def exhausted(self) -> bool:
        """Whether it stopped because no pair was left."""
        requested = self.requested_merges
        return self.merges is not None and requested is not None and self.merges < requested

    # Figures

    @property
    def total(self) -> float | None:
        """The sum of the phases, so that every row adds up; None if no time may be shown.

        Waiting for a CPU is not in it, as far as that is known.
        """
        return math.fsum(self.seconds.values()) if self.seconds else None

    @property
    def has_cost(self) -> bool:
        """Whether it has a total or a number of instructions, by which rows can be compared."""
        return self.total is not None or self.instructions is not None

    @property
    def idle(self) -> float | None:
        """The share of its time in which it waited for something other than a CPU."""
        idle: float | None = _median(self.samples, "idle")
        return idle

    @property
    def wall_limit(self) -> float | None:
        """The seconds that each process was allowed; None without a limit."""
        return (self.record.cell.limits or {}).get("wall_seconds")

    @cached_property
    def figures(self) -> Mapping[str, Any]:
        """Every figure by its name in `--columns` and `--value`; None if it is unknown."""
        merging_seconds = [
            self.seconds[phase] for phase in self.seconds if phase not in COUNTING_PHASES
        ]
        merging = math.fsum(merging_seconds) if self.seconds else None
        # the total of the whole way from the file: a table of words is not counted
        counted = "count" in self.seconds or self.record.cell.counting == BY_ITSELF
        whole = self.total if counted else None
        proof, size = self.record.proof, self.corpus.bytes
        tokens = None if proof is None else proof.tokens

        figures: dict[str, Any] = {
            "total": self.total,
            "spread": spread([sample.seconds for sample in self.samples]),
            "wall": self.wall_seconds,
            "CPU": self.cpu_seconds,
            "system": self.system_seconds,
        }
        for phase in PHASES:
            figures[phase] = self.seconds.get(phase)
        figures |= {
            "merge": merging,
            "memory": self.peak_rss_bytes,
            "MB/s": _rate(size and size / 1e6, whole),
            "pre-tokens/s": _rate(self.corpus.pre_tokens, whole),
            "merges/s": _rate(self.merges, merging),
            "merges": self.merges,
            "words": self.corpus.words if self.status == "ok" else None,
            "bytes/token": size / tokens if tokens and size else None,
            "instructions": self.instructions,
        }
        return {**figures, **dict.fromkeys(TALLIES), **self.tallies}


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no
    others.

    Runs of warm-up are in no row, unless their merges are wrong.
    """
    shown = [record for record in records if not record.measurement.warm_up or _is_wrong(record)]
    shown = list(_on_one_text(shown))
    cells = together(zip(map(cell_of, shown), shown, strict=True))

    found = _with_disputes(list(map(_row_of, cells.values())))
    return [row for row in found if not row.counting_only] or found


def _on_one_text(records: Sequence[Record]) -> Iterator[Record]:
    """The records; a table that was counted from a text where it is, whose digest nobody knows, has
    the facts of the text with the same words.
    """
    texts = {}
    for record in records:
        cell = record.cell
        if cell.words_sha256 != cell.data.sha256:
            texts[cell.words_sha256, cell.data.bytes] = cell.data

    for record in records:
        data = record.cell.data
        text = texts.get((data.sha256, data.bytes)) if data.sha256 else None
        yield replace(record, cell=structs.replace(record.cell, data=text)) if text else record


def figures_of(rows: Iterable[Row]) -> dict[str, None]:
    """The names of the figures of all rows."""
    return dict.fromkeys(name for row in rows for name in row.figures)


def is_one_variant(rows: Iterable[Row]) -> bool:
    """Return whether the rows are of one variant with the same parameters."""
    return len({row.configured for row in rows}) == 1


def is_wrong(rows: Iterable[Row]) -> bool:
    """Return whether any merges are wrong, or rows contradict each other."""
    return any(row.disputed or row.status == "mismatch" for row in rows)


def _row_of(cell: Sequence[Record]) -> Row:
    """The row of all records of a cell; one record of wrong merges makes all of it wrong."""
    wrong = list(filter(_is_wrong, cell))
    right = [record for record in cell if record.status == "ok"]
    if wrong:
        return _row(wrong[0], "mismatch", wrong[0].measurement.reason, len(wrong))
    if not right:
        return _row(cell[0], cell[0].status, cell[0].measurement.reason, len(cell))

    digests = {record.measurement.merges_sha256 or "" for record in right}
    if len(digests) > 1:
        beginnings = sorted(digest[:8] for digest in digests)
        reason = f"its own runs gave different merges ({', '.join(beginnings)})"
        return _row(right[0], "mismatch", reason, len(right))

    # a block that was cut short has some of its cells and not the others, so it compares none
    whole = [record for record in right if record.block_whole is not False]
    return replace(_measured_row(whole or right), reason=_failures_of(cell))


def _failures_of(cell: Sequence[Record]) -> str:
    """In which of its blocks a cell failed, and why; empty if in none."""
    failed = [record.measurement for record in cell if record.status != "ok"]
    if not failed:
        return ""
    blocks, reasons = set(), dict[str, None]()
    for measurement in failed:
        blocks.add(1 + measurement.block)
        reasons[f"{measurement.status}: {measurement.reason}"] = None
    noun = "block" if len(blocks) == 1 else "blocks"
    numbers = f"{noun} {', '.join(map(str, sorted(blocks)))}"
    share = f"{len(failed)} of {counted_text(len(cell), 'block')}"
    return f"failed in {share} ({numbers}): {'; '.join(reasons)}"


def _row(record: Record, status: str, reason: str | None, runs: int) -> Row:
    """A row without figures, except the limit of one that was stopped."""
    row = Row(record, status, reason or "", runs, {**values_of(record), "status": status})
    if status == "timeout" and row.wall_limit:
        return replace(row, time=Time(row.wall_limit, is_limit=True))
    return row


def _measured_row(right: Sequence[Record]) -> Row:
    """The row of records whose merges are right, with their medians."""
    samples = [record.sample for record in right if record.sample is not None]
    measurements, instructions = [], []
    for record in right:
        measurements.append(record.measurement)
        if record.measurement.instructions:
            instructions.append(record.measurement.instructions["count"])
    proofs = {(record.identity or UNKNOWN).kind for record in right}

    medians = _medians_by_name(measurements, "seconds")
    seconds = {phase: medians[phase] for phase in PHASES if phase in medians}
    total = math.fsum(seconds.values())
    net = [sample.seconds for sample in samples if sample.clock == NET]
    if net and total:
        # nobody knows in which phase a run waited for a CPU, so every phase bears its share
        share = median(net) / total
        seconds = {phase: share * took for phase, took in seconds.items()}
        total = math.fsum(seconds.values())
    totals = [total, *(sample.seconds for sample in samples)]
    time = Time(total, low=min(totals), high=max(totals)) if total else UNTIMED

    row = _row(right[0], "ok", "", max(len(samples), len(instructions), 1))
    return replace(
        row,
        proved=row.counting_only or proofs <= {*PROVED},
        samples=tuple(samples),
        seconds=seconds,
        time=time,
        wall_seconds=_median(samples, "wall_seconds"),
        cpu_seconds=_median(samples, "cpu_seconds"),
        system_seconds=_median(measurements, "system_seconds"),
        instructions=_middle(instructions),
        peak_rss_bytes=_median(measurements, "peak_rss_bytes"),
        memory_is_sampled=any(one.memory_is_sampled for one in measurements),
        tallies=_medians_by_name(measurements, "tallies"),
    )


def _with_disputes(found: Sequence[Row]) -> list[Row]:
    """Mark the rows of one task whose merges contradict each other: records of several runs may be
    joined.
    """
    keyed = []
    for row in found:
        has_defined_merges = row.status == "ok" and not (row.counting_only or row.by_design)
        if has_defined_merges and row.record.cell.tie_break != OWN:
            keyed.append((tuple(row.values[known.name] for known in DECISIVE), row))

    disputed = set()
    for task in together(keyed).values():
        digests = {row.digest for row in task}
        proved = {row.digest for row in task if row.proved}
        for row in task:
            # what a proof says stands beside any list without one
            if len(proved if row.proved else digests) > 1:
                disputed.add(row)
    return [replace(row, disputed=True) if row in disputed else row for row in found]


def _is_wrong(record: Record) -> bool:
    return record.status == "mismatch" or (record.identity or UNKNOWN).kind == WRONG


def _medians_by_name(measurements: Sequence[Any], attribute: str) -> dict[str, Any]:
    """The median of each value in a mapping over the measurements that have it."""
    values: dict[str, list[Any]] = {}
    for measurement in measurements:
        for name, value in (getattr(measurement, attribute) or {}).items():
            values.setdefault(name, []).append(value)
    return {name: _middle(known) for name, known in values.items()}


def _median(items: Sequence[Any], attribute: str) -> Any:
    """The median of an attribute over the items in which it is known."""
    values = [getattr(item, attribute) for item in items]
    return _middle([value for value in values if value is not None])


def _middle(values: Sequence[Any]) -> Any:
    """The median, None of nothing; of counts the lower middle one, which is a count as well."""
    if not values:
        return None
    return median_low(values) if isinstance(values[0], int) else median(values)


def _rate(number: float | None, seconds: float | None) -> float | None:
    return number / seconds if number is not None and seconds else None
