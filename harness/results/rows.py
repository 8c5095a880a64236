"""Records to rows: one row for each measured cell, as data that tables, charts and pages read.

A time appears only if its merges were right, what was not measured is absent (never 0), and the
phases of a row add up to its total.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import median, median_low
from typing import Any, NamedTuple

from harness.common import units
from harness.common.comparison import compare, sample_of, spread
from harness.common.errors import Refusal
from harness.proof import BY_DESIGN, IDENTICAL, PROVED, UNPROVED, WRONG
from harness.records.schema import BY_ITSELF, PHASES
from harness.results.fields import DECISIVE, WORK, Record, cell_of, facts_of, together
from harness.worker.calling import OWN
from variants.contract import COUNTING_PHASES, GREATEST_BYTES

MEASURED, ESTIMATED, AT_LEAST, NOTHING = "measured", "estimated", "at least", "nothing"
SIGNS = {ESTIMATED: "~", AT_LEAST: ">"}
# if the ends of an estimate differ by more than this factor, only the lower one is shown
MOST_UNSURE = 1000
NOT_MEASURED, SAMPLED, UNPROVED_MARK, DESIGN_MARK = "-", "~", "?", "*"
"""The last one marks figures of trainers that make other merges, on purpose."""
TALLIES = (
    "pairs_scanned", "pair_updates", "heap_pushes", "heap_pops", "stale_pops", "words_rewritten", "positions_visited",
)  # fmt: skip
"""Those that every variant may have, in the order in which they are shown."""
MEASURES = ("instructions", "peak_rss_bytes", "system_seconds")


class Time(NamedTuple):
    """Seconds with their form, and as they are written everywhere; `low` and `high` bound them if
    they are known.
    """

    form: str = NOTHING
    number: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""


class Row:
    """One cell: its settings, its outcome, and the figures that may be shown, computed once.

    `right` are the records whose medians the figures are: none unless the status is ok. `lost` says
    what became of the other records of the cell.
    """

    lost: Sequence[str] = ()

    def __init__(
        self, record: Record, status: str, reason: str, runs: int, right: Sequence[Record] = ()
    ) -> None:
        self.record, self.status, self.reason = record, status, reason
        self.status_text = status.replace("_", " ")
        self._set_task()
        self._kinds = [_kind_of(each) for each in right]
        self.set_verdict()
        self._set_seconds(right)
        counted = [
            {**record, "instructions": (record.get("instructions") or {}).get("count")}
            for record in right
        ]
        medians = {name: _median([record.get(name) for record in counted]) for name in MEASURES}
        self.instructions: int | None = medians.get("instructions")
        self.peak_rss_bytes: int | None = medians.get("peak_rss_bytes")
        self.system_seconds: float | None = medians.get("system_seconds")
        tallies = [record.get("tallies") or {} for record in right]
        self.tallies = {
            name: _median([own.get(name) for own in tallies])
            for name in dict.fromkeys(chain(*tallies))
        }
        self.memory_is_sampled = any(record.get("memory_is_sampled") for record in right)
        instructed = sum(bool(record.get("instructions")) for record in right)
        self.runs = max(len(self.samples), instructed, 1) if right else runs
        self._written = self._figures(right)
        self.figures = {name: number for name, (number, _) in self._written.items()}
        """Every figure by its name in `--columns` and `--value`; None if it is unknown."""
        memory = self.text("memory")
        self.memory_text = (
            self.missing if memory is None else SAMPLED * self.memory_is_sampled + memory
        )

    def text(self, figure: str) -> str | None:
        """How a figure is written; None if it is unknown."""
        number, text = self._written.get(figure, (None, str))
        return None if number is None else text(number)

    def _set_task(self) -> None:
        """What was to be done."""
        record = self.record
        self.values, self.words = facts_of(record)
        self.values["status"] = self.status
        self.counting_only = self.values["cell"] == "count"
        self.name = str(self.values["variant"])
        params = record.get("params") or {}
        self.params = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in params.items()
        }
        """Those of the trainer or the counter, each as it would be given on the command line."""
        self.configured = (self.name, *sorted(self.params.items()))
        self.corpus: Mapping[str, Any] = record.get("data") or {}
        self.question = (
            self.corpus.get("sha256"),
            *[self.values[field.name] for field in WORK],
            self.counting_only,
        )
        """The task, whichever way ties went: times of one task can be compared."""
        self.threads = int(record.get("threads") or 1)
        size = record.get("vocab_size")
        self.requested_merges = (
            None if size is None else size - 256 - len(record.get("special_tokens") or ())
        )

    def set_verdict(self, disputed: bool = False) -> None:
        """Whether its merges are the defined ones, and what shows it if not; or that other rows of
        its task differ.
        """
        record, is_ok = self.record, self.status == "ok"
        self.disputed = disputed
        self.identity: Mapping[str, Any] = record.get("identity") or {"kind": UNPROVED}
        self.by_design = self.identity.get("kind") == BY_DESIGN
        own_words = str(self.identity.get("of_own_words") or "")
        self.other_merges = self.by_design and not own_words.startswith(IDENTICAL)
        """Whether it differs by design, and not only because its words do."""
        # A cell that only counts has no merges to prove.
        self.proved = is_ok and (self.counting_only or {*self._kinds} <= {*PROVED})
        self.confirmed = self.proved and not self.disputed
        self.doubt = UNPROVED_MARK if is_ok and not self.confirmed and not self.by_design else ""
        self.mark = DESIGN_MARK if is_ok and self.by_design else self.doubt
        self.merges: int | None = record.get("merges") if is_ok else None
        self.exhausted = (
            self.merges is not None
            and self.requested_merges is not None
            and self.merges < self.requested_merges
        )
        """Whether it stopped because no pair was left."""
        self.digest = (record.get("merges_sha256") or "")[:8]
        """Enough of it to distinguish two lists."""
        self.proof = self._proof()
        # A dash means "not measured"; wrong merges were measured, and none of it counts.
        self.missing = "" if self.status == "mismatch" else NOT_MEASURED

    def _proof(self) -> str:
        """
        >>> Row({"identity": {"kind": "wrong", "merge": 12}}, "mismatch", "", 1).proof
        'wrong at merge 12'
        >>> Row({"identity": {"kind": "identical", "tie_break": "raw_bytes"}}, "ok", "", 1).proof
        'identical (raw_bytes)'
        """
        identity = self.identity
        if self.status == "mismatch":
            return (
                f"wrong at merge {units.count_text(identity['merge'])}"
                if identity.get("merge")
                else WRONG
            )
        if self.status != "ok":
            return self.status_text
        if self.disputed:
            return f"{self.digest} {UNPROVED_MARK}"
        if self.by_design:
            return (
                BY_DESIGN.replace("_", " ") if self.other_merges else "identical on its own words"
            )
        if not self.proved:
            return UNPROVED
        kind, tie_break = str(identity["kind"]).replace("_", " "), identity.get("tie_break")
        return kind if tie_break in (None, GREATEST_BYTES.value) else f"{kind} ({tie_break})"

    def _set_seconds(self, right: Sequence[Record]) -> None:
        """The medians over the runs, and the times that may be shown."""
        timed = [
            (sample, record["seconds"])
            for record in right
            if (sample := sample_of(record)) is not None
        ]
        self.samples = tuple(sample for sample, _ in timed)
        spent = [record.get("seconds") or {} for record in right]
        medians = {phase: _median([own.get(phase) for own in spent], median) for phase in PHASES}
        self.seconds: dict[str, float] = {
            phase: known for phase, known in medians.items() if known is not None
        }
        self.total = math.fsum(self.seconds.values()) if self.seconds else None
        """The sum of the phases, so that every row adds up; None if no time may be shown."""
        self.cpu_seconds: float | None = _median(
            [sample.cpu_seconds for sample in self.samples], median
        )
        self.counted = "count" in self.seconds or self.record.get("counting") == BY_ITSELF
        """Whether its total is that of the whole way from the file: a table of words is not
        counted.
        """
        self.extrapolated = (
            (self.record.get("extrapolated") or {}) if self.status == "extrapolated" else {}
        )
        """The estimate for a row that a limit stopped; empty without one."""
        self.time = self._time([_sum_without(spent, ()) for _, spent in timed])
        """The total that may be shown."""

    def _time(self, runs: Sequence[float]) -> Time:
        """A stopped row has its estimate here, and nowhere another one, or the limit."""
        if self.total:
            low, high = (
                (min(*runs, self.total), max(*runs, self.total)) if len(runs) > 1 else (None, None)
            )
            return Time(MEASURED, self.total, low, high, units.seconds_text(self.total))
        if self.status not in ("timeout", "extrapolated"):
            return Time()
        if self.extrapolated.get("total_seconds") is None:
            limit = (self.record.get("limits") or {}).get("wall_seconds")
            return _at_least(limit) if limit else Time()
        total, low, high = (self.extrapolated[f"{end}_seconds"] for end in ("total", "low", "high"))
        if high > MOST_UNSURE * low:
            return _at_least(low)
        return Time(ESTIMATED, total, low, high, SIGNS[ESTIMATED] + units.duration_text(total))

    def _figures(self, right: Sequence[Record]) -> dict[str, tuple[Any, Callable[[Any], str]]]:
        """Every number of the row, None if it is unknown, and how it is written."""
        merging = _sum_without(self.seconds, COUNTING_PHASES) if self.seconds else None
        whole = self.total if self.counted else None
        size, tokens = self.corpus.get("bytes"), self.record.get("tokens")
        return {
            "total": (self.total, units.seconds_text),
            "spread": (spread([sample.wall_seconds for sample in self.samples]), units.share_text),
            "CPU": (self.cpu_seconds, units.seconds_text),
            "system": (self.system_seconds, units.seconds_text),
            **{phase: (self.seconds.get(phase), units.seconds_text) for phase in PHASES},
            "merge": (merging, units.seconds_text),
            "memory": (self.peak_rss_bytes, units.bytes_text),
            "MB/s": (_rate(size and size / 1e6, whole), units.rate_text),
            "pre-tokens/s": (_rate(self.corpus.get("pre_tokens"), whole), units.rate_text),
            "merges/s": (_rate(self.merges, merging), units.rate_text),
            "merges": (self.merges, units.count_text),
            "words": (self.corpus.get("words") if right else None, units.count_text),
            "bytes/token": (size / tokens if tokens and size else None, "{:.2f}".format),
            "instructions": (self.instructions, units.instructions_text),
            **{
                name: (self.tallies.get(name), units.count_text)
                for name in dict.fromkeys([*TALLIES, *self.tallies])
            },
        }


def rows(records: Sequence[Record]) -> list[Row]:
    """One row for each cell, in order of first appearance; cells that only count, if there are no
    others.

    Runs of warm-up are in no row, unless their merges are wrong.
    """
    shown = [record for record in records if not record.get("warm_up") or _is_wrong(record)]
    made = [
        _row(cell) for cell in together([(cell_of(record), record) for record in shown]).values()
    ]
    # Records of several runs may be joined, and then rows of one task contradict each other.
    answers = [
        (tuple([row.values[field.name] for field in DECISIVE]), row)
        for row in made
        if row.status == "ok"
        and not (row.counting_only or row.by_design)
        and row.record.get("tie_break") != OWN
    ]
    for rivals in together(answers).values():
        proved = [row for row in rivals if row.proved]
        for row in rivals:
            # What a proof says stands beside any list without one.
            if len({rival.digest for rival in (proved if row.proved else rivals)}) > 1:
                row.set_verdict(disputed=True)
    return [row for row in made if not row.counting_only] or made


def phases_of(rows: Sequence[Row]) -> list[str]:
    """The phases in which any row spent time."""
    return [phase for phase in PHASES if any(row.seconds.get(phase) for row in rows)]


def is_wrong(rows: Iterable[Row]) -> bool:
    """Whether any merges are wrong, or rows contradict each other."""
    return any(row.disputed or row.status == "mismatch" for row in rows)


def _row(cell: Sequence[Record]) -> Row:
    wrong = [record for record in cell if _is_wrong(record)]
    right = [record for record in cell if record["status"] == "ok"]
    if wrong or not right:
        first = (wrong or cell)[0]
        return Row(
            first,
            "mismatch" if wrong else first["status"],
            first.get("reason") or "",
            len(wrong or cell),
        )
    digests = sorted({str(record.get("merges_sha256"))[:8] for record in right})
    if len(digests) > 1:
        reason = f"its own runs gave different merges ({', '.join(digests)})"
        return Row(right[0], "mismatch", reason, len(right))
    lost = [
        f"{record['status']}: {record.get('reason')}" for record in cell if record["status"] != "ok"
    ]
    # A block that was cut short has some of its cells and not the others, so it compares none of
    # them.
    whole = [record for record in right if record.get("block_whole") is not False]
    lost += ["of a block that was cut short"] if 0 < len(whole) < len(right) else []
    right = whole or right
    row = Row(right[0], "ok", "", len(right), right)
    row.lost = tuple(dict.fromkeys(lost))
    return row


def _is_wrong(record: Record) -> bool:
    return bool(record["status"] == "mismatch" or _kind_of(record) == WRONG)


def _kind_of(record: Record) -> str | None:
    return (record.get("identity") or {}).get("kind")


def _at_least(seconds: float) -> Time:
    text = SIGNS[AT_LEAST] + units.duration_text(seconds, at_least=True)
    return Time(AT_LEAST, seconds, text=text)


def _median(values: Sequence[Any], middle: Callable[[list[Any]], Any] = median_low) -> Any:
    """The median of the known ones."""
    known = [value for value in values if value is not None]
    return middle(known) if known else None


def _sum_without(seconds: Mapping[str, float | None], left_out: Sequence[str]) -> float:
    return math.fsum(
        spent or 0.0 for phase, spent in seconds.items() if phase not in (*left_out, "total")
    )


def _rate(number: float | None, seconds: float | None) -> float | None:
    return number / seconds if number is not None and seconds else None


# How rows compare: every table, chart and page has its ratios from here, so that they agree

# single runs on a quiet machine differ by up to this share in either direction
ONE_RUN_DIFFERS_BY = 0.1


class Ratio(NamedTuple):
    """How many times the baseline's figure a row has; `form` is as in Time. Several blocks may have
    an interval.
    """

    number: float
    form: str = ""
    low: float | None = None
    high: float | None = None


def ratio_of(row: Row, base: Row) -> Ratio | None:
    """How many times the total of `base` a row takes: within blocks if they share several, else by
    their medians.
    """
    if not base.total or row.time.number is None:
        return None
    comparison = compare(row.samples, base.samples) if row is not base else None
    if comparison is not None and comparison.blocks + comparison.left_out > 1:
        return Ratio(comparison.ratio, row.time.form, comparison.low, comparison.high)
    return Ratio(row.time.number / base.total, row.time.form)


def times_of(ratio: Ratio | None, sign: str = "× ", interval: bool = True) -> str:
    """A ratio with its sign and its interval; nothing if there is none.

    >>> times_of(Ratio(180, ESTIMATED)), times_of(Ratio(1.5, "", 1.4, 1.61), "")
    ('~× 180', '1.50 (1.40 to 1.61)')
    """
    if ratio is None:
        return ""
    text = f"{SIGNS.get(ratio.form, '')}{sign}{units.ratio_text(ratio.number)}"
    if ratio.low is None or ratio.high is None or not interval:
        return text
    return f"{text} ({units.ratio_text(ratio.low)} to {units.ratio_text(ratio.high)})"


def is_slower(slower: Row, row: Row) -> bool:
    """Whether the measurements show that the first row takes longer than the second."""
    comparison = compare(slower.samples, row.samples)
    if comparison is not None and comparison.different is not None:
        return comparison.different
    if min(len(row.samples), len(slower.samples)) > 1:
        slowest = max(sample.wall_seconds for sample in row.samples)
        return slowest < min(sample.wall_seconds for sample in slower.samples)
    return (slower.total or 0.0) > (1 + ONE_RUN_DIFFERS_BY) * (row.total or 0.0)


def incomparable(row: Row, base: Row) -> str | None:
    """Return why the times of two rows on one corpus are of different work, or None if they are
    comparable.
    """
    for field in WORK:
        if row.values[field.name] != base.values[field.name]:
            return field.other_work
    if row.doubt or base.doubt:
        return "its merges are not proved" if row.doubt else "the other's merges are not proved"
    if row.by_design or base.by_design:
        others = row.other_merges or base.other_merges
        return (
            ("different by design" if row.by_design else "the other is different by design")
            if others
            else None
        )
    if row.merges == base.merges or None in (row.merges, base.merges):
        return None
    if row.exhausted and base.exhausted:
        return None
    return f"{units.count_text(row.merges or 0)} merges, not {units.count_text(base.merges or 0)}"


class Against(NamedTuple):
    """A row with its baseline; or the name of the baseline of its corpus, and why their times
    cannot be compared.
    """

    row: Row
    base: Row | None = None
    refused: tuple[str, str] | None = None

    def ratio(self, figure: str = "total") -> Ratio | None:
        """How many times the baseline's figure the row has; None if unknown or of other work."""
        if self.base is None:
            return None
        if figure == "total":
            return ratio_of(self.row, self.base)
        ours, theirs = self.row.figures.get(figure), self.base.figures.get(figure)
        return Ratio(ours / theirs) if ours is not None and theirs else None


def against(rows: Sequence[Row], variant: str | None = None) -> list[Against]:
    """Each row with the first row of its task, or with that of `variant`. Raises Refusal if
    `variant` has no figure.
    """
    measured = [row for row in rows if row.total is not None or row.instructions is not None]
    chosen = [row for row in measured if variant is None or row.name == variant]
    if not chosen and variant is not None:
        names = ", ".join(dict.fromkeys(row.name for row in measured)) or "none"
        raise Refusal(f"no time of {variant!r} to compare with; there are: {names}")
    firsts = {row.question: row for row in reversed(chosen)}.values()
    bases = together([(row.corpus.get("sha256"), row) for row in firsts])
    return [_against(row, bases.get(row.corpus.get("sha256"), [])) for row in rows]


def _against(row: Row, rivals: Sequence[Row]) -> Against:
    reasons = [incomparable(row, base) for base in rivals]
    if None in reasons:
        return Against(row, rivals[reasons.index(None)])
    return Against(
        row, refused=(rivals[0].name, str(reasons[0])) if rivals and row.total is not None else None
    )


def refusals(compared: Sequence[Against], labels: Sequence[str]) -> list[str]:
    """Why rows have no ratio; rows with the same reason are named together."""
    pairs = [
        (each.refused, label)
        for each, label in zip(compared, labels, strict=True)
        if each.refused is not None
    ]
    named = together(pairs).items()
    return [
        f"Not comparable with {base} ({why}): {'; '.join(dict.fromkeys(own))}."
        for (base, why), own in named
    ]
