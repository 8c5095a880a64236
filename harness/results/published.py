"""The published figures beside ours, and what they claim held against records: `harness.table --against published`.

`python -m harness.results.published` prints which variant each published program is, as Markdown.

`results/published/series.yaml` maps every program of the series to a variant and carries its figures, `claims.yaml`
says which of two programs must be faster in what, and by which factor at least. Seconds of two machines and two corpora
cannot be compared, ratios can: a claim holds if ours reaches the factor, whatever theirs was.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness.common import registry
from harness.common.errors import OK, REGRESSION, UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import rate_text
from harness.results.legend import NOT_MEASURED
from harness.results.rows import Row, rows

FOLDER = Path(__file__).resolve().parent.parent.parent / "results" / "published"
NEEDED = {
    "programs": {"program", "part", "variant"},
    "claims": {"says", "quantity", "slow", "fast", "factor", "because"},
}
SHOWN = ("merge", "max", "update")


@dataclass(frozen=True)
class Program:
    """A published program, the variant that it is here, and its figures: rows of seconds under named conditions."""

    name: str
    part: int
    variant: str
    params: Mapping[str, Any]
    figures: Sequence[Mapping[str, Any]]
    counting: str = ""
    note: str = ""
    merges_only: bool = False
    """Whether it does nothing but merge, so that its total is what others call merge."""

    def is_measured_by(self, row: Row) -> bool:
        """Whether a row shows this program: its variant with its parameters, those it does not name at their defaults.

        Where it ran in several threads or processes, any number of them above 1 will do: it had 64 processors.
        """
        if row.record.get("variant") != self.variant:
            return False
        card = registry.variants().get(self.variant)
        expected = {**(card.params if card is not None else {}), **self.params}
        return all(
            expected.get(name, value) == value or (name in self.params and _several(expected[name]) and _several(value))
            for name, value in (row.record.get("params") or {}).items()
        )

    def seconds(self, quantity: str, data: str) -> float | None:
        """The median of the first figures on that data that have the quantity, or what it can be told from."""
        for row in self.figures:
            runs = row.get(quantity)
            if quantity == "merge" and runs is None and "total" in row:
                counted = [0] * len(row["total"]) if self.merges_only else row.get("count", [])
                runs = [total - count for total, count in zip(row["total"], counted, strict=False)]
            if row["data"] == data and runs:
                return float(statistics.median(runs))
        return None

    @property
    def data(self) -> tuple[str, ...]:
        """The corpora that there are figures of."""
        return tuple(dict.fromkeys(row["data"] for row in self.figures))


@dataclass(frozen=True)
class Claim:
    """One program takes at least `factor` times as long in some quantity as another, there or in `fast_quantity`."""

    says: str
    quantity: str
    fast_quantity: str
    slow: Program
    fast: Program
    factor: float
    because: str

    @property
    def published(self) -> float | None:
        """The published ratio on the largest corpus that both have figures of, None where there is none."""
        ratios = (
            ratio(self.slow.seconds(self.quantity, data), self.fast.seconds(self.fast_quantity, data))
            for data in reversed(self.slow.data)  # they went from the small to the large
        )
        return next((found for found in ratios if found is not None), None)


@dataclass(frozen=True)
class Judgement:
    """A claim, and the two rows it was judged by; without rows it is not measured."""

    claim: Claim
    slow: Row | None = None
    fast: Row | None = None

    @property
    def ours(self) -> float | None:
        if self.slow is None or self.fast is None:
            return None
        return ratio(seconds_of(self.slow, self.claim.quantity), seconds_of(self.fast, self.claim.fast_quantity))

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return "not measured"
        return "held" if self.ours >= self.claim.factor else "refuted"


def _several(value: Any) -> bool:
    return type(value) is int and value > 1


def ratio(slow: float | None, fast: float | None) -> float | None:
    return slow / fast if slow is not None and fast else None


def seconds_of(row: Row, quantity: str) -> float | None:
    """A row's seconds of a quantity; `merge` is everything but reading and counting."""
    if not row.seconds or (quantity == "total" and row.counts_reused):
        return None
    if quantity == "total":
        return row.total
    if quantity == "merge":
        return sum(spent for phase, spent in row.seconds.items() if phase not in ("read", "count"))
    return row.seconds.get(quantity)


def programs() -> dict[str, Program]:
    """Every published program by name. Raises Refusal where the file is missing or an entry cannot be understood."""
    return {
        said["program"]: Program(
            *(said["program"], said["part"], said["variant"], said.get("params", {}), said.get("figures", [])),
            *(said.get("counting", ""), said.get("note", ""), said.get("merges_only", False)),
        )
        for said in _entries("series.yaml", "programs")
    }


def claims(known: Mapping[str, Program]) -> list[Claim]:
    """The claims, in order. Raises Refusal for one that names a program that is not there."""
    found = []
    for said in _entries("claims.yaml", "claims"):
        if not {said["slow"], said["fast"]} <= known.keys():
            raise Refusal(f"{FOLDER / 'claims.yaml'}: {said['says']!r} names a program that series.yaml does not have")
        slow, fast = known[said["slow"]], known[said["fast"]]
        if "slow_variant" in said:
            slow = replace(slow, variant=said["slow_variant"], params={})
        because = " ".join(said["because"].split())
        quantities = said["quantity"], said.get("fast_quantity", said["quantity"])
        found.append(Claim(said["says"], *quantities, slow, fast, float(said["factor"]), because))
    return found


def _entries(name: str, key: str) -> list[Any]:
    """The list under `key` in a file of the published figures, each entry with all that it must have."""
    path = FOLDER / name
    try:
        entries = yaml.safe_load(path.read_text())[key]
        for entry in entries:
            missing = NEEDED[key] - entry.keys()
            if missing:
                raise ValueError(f"{entry} lacks {', '.join(sorted(missing))}")
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror}); the published figures are part of a checkout") from error
    except (KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise Refusal(f"{path} cannot be understood: {' '.join(str(error).split())}") from error
    return list(entries)


def judge(claim: Claim, rows: Sequence[Row]) -> Judgement:
    """Hold a claim against the first two rows that show its programs on the same corpus to the same vocabulary."""
    for slow in rows:
        if not claim.slow.is_measured_by(slow) or seconds_of(slow, claim.quantity) is None:
            continue
        for fast in rows:
            alike = slow.question == fast.question and slow.record.get("host") == fast.record.get("host")
            if alike and claim.fast.is_measured_by(fast) and seconds_of(fast, claim.fast_quantity):
                return Judgement(claim, slow, fast)
    return Judgement(claim)


def sheets(records: Sequence[Mapping[str, Any]]) -> tuple[list[Sheet], int]:
    """The programs that were measured, theirs beside ours, then the claims; and the exit code.

    0 if every claim that could be judged held, REGRESSION if one is refuted, UNMEASURED if none could be judged.
    """
    known = programs()
    measured = [row for row in rows(records) if row.status == "ok" and not row.counting_only]
    judged = [judge(claim, measured) for claim in claims(known)]
    verdicts = {judgement.verdict for judgement in judged}
    code = REGRESSION if "refuted" in verdicts else OK if "held" in verdicts else UNMEASURED
    return [_programs_sheet(known, measured), _claims_sheet(judged)], code


def _programs_sheet(known: Mapping[str, Program], rows: Sequence[Row]) -> Sheet:
    pairs = [
        (program, data, row)
        for program in known.values()
        for data in program.data
        for row in rows
        if program.is_measured_by(row) and any(program.seconds(quantity, data) is not None for quantity in SHOWN)
    ]
    columns = [
        Column("program", [program.name for program, _, _ in pairs], figures=False),
        Column("variant", [row.name for _, _, row in pairs], figures=False),
        Column("theirs on", [data for _, data, _ in pairs], figures=False),
    ]
    for quantity in SHOWN:
        theirs = [program.seconds(quantity, data) for program, data, _ in pairs]
        columns.append(Column(f"{quantity}, theirs", [_text_of(seconds) for seconds in theirs]))
        columns.append(Column(f"{quantity}, ours", [_text_of(seconds_of(row, quantity)) for _, _, row in pairs]))
    caption = ["Seconds, theirs on their corpora and machine, ours on ours: compare the ratios down a column."]
    return Sheet(caption, columns if pairs else [], ["" for _ in pairs], [] if pairs else ["No program was measured."])


def _claims_sheet(judged: Sequence[Judgement]) -> Sheet:
    columns = [
        Column("claim", [judgement.claim.says for judgement in judged], figures=False),
        Column("in", [judgement.claim.quantity for judgement in judged], figures=False),
        Column("theirs", [_factor(judgement.claim.published) for judgement in judged]),
        Column("ours", [_factor(judgement.ours) for judgement in judged]),
        Column("at least", [_factor(judgement.claim.factor) for judgement in judged]),
        Column("verdict", [judgement.verdict for judgement in judged], figures=False),
    ]
    styles = {"held": "", "refuted": "red", "not measured": "dim"}
    return Sheet(
        ["How many times slower the first is, theirs and ours"],
        columns,
        [styles[judgement.verdict] for judgement in judged],
        [_explanation(judgement) for judgement in judged],
    )


def _explanation(judgement: Judgement) -> str:
    """Why it should be so, and which records show whether it is."""
    claim = judgement.claim
    if judgement.slow is None or judgement.fast is None:
        missing = f"no records of both {claim.slow.variant} and {claim.fast.variant} on one corpus"
        return f"{claim.says}: {judgement.verdict}, {missing}."
    shown = ", ".join(
        f"{row.name} {_text_of(seconds_of(row, quantity))} s of {quantity} "
        f"(record {row.record['run_key']}, {row.record['started']})"
        for row, quantity in ((judgement.slow, claim.quantity), (judgement.fast, claim.fast_quantity))
    )
    return f"{claim.says}: {judgement.verdict} by {shown}. {claim.because}"


def _text_of(seconds: float | None) -> str:
    return NOT_MEASURED if seconds is None else f"{seconds:.3g}" if seconds < 100 else f"{seconds:,.0f}"


def _factor(value: float | None) -> str:
    return NOT_MEASURED if value is None else rate_text(value)


def mapping() -> Sheet:
    """Every published program with the variant it is here, and the medians of its first figures on each corpus."""
    known = list(programs().values())
    columns = [
        Column("program", [program.name for program in known], figures=False),
        Column("part", [str(program.part) for program in known]),
        Column("variant", [program.variant for program in known], figures=False),
        Column("parameters", [_parameters(program) for program in known], figures=False),
        Column("published seconds", [_figures(program) for program in known], figures=False),
        Column("differences", [" ".join(program.note.split()) for program in known], figures=False),
    ]
    return Sheet([], columns, ["" for _ in known], [])


def _parameters(program: Program) -> str:
    named = dict(program.params) | ({"counting": program.counting} if program.counting else {})
    return ", ".join(f"{name}={value}" for name, value in named.items())


def _figures(program: Program) -> str:
    shown = []
    for data in program.data:
        quantities = ("merge", "copy", "max", "update") if program.merges_only else ("total", *SHOWN)
        found = ((quantity, program.seconds(quantity, data)) for quantity in quantities)
        told = ", ".join(f"{quantity} {_text_of(seconds)}" for quantity, seconds in found if seconds is not None)
        if told:
            shown.append(f"{data}: {told}")
    return "; ".join(shown)
