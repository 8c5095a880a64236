"""The published programs as a table, or their figures and claims beside records of ours, in
Markdown.

python results/published/published.py                            which variant each program is here
python results/published/published.py FOLDER...                  which claims hold
python results/published/published.py FOLDER... --part 8         theirs beside ours, and that part's claims;
                                                                 why those came out so that did not hold
python results/published/published.py FOLDER... --on owt         theirs beside ours on one of their corpora

The exit code is 0 if no verdict contradicts claims.yaml, 20 if one does, 22 if no claim was
measured.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec import structs

from harness.common.comparison import FEWEST_BLOCKS
from harness.common.errors import OK, REGRESSION, UNMEASURED, Refusal
from harness.common.units import ratio_text, seconds_text
from harness.records.file import Record
from harness.records.schema import PHASES
from harness.results.notes import notes
from harness.results.ratios import Against, Ratio
from harness.results.rows import Row, rows
from harness.results.selection import records_of
from harness.results.writing import figure_text, marked, time_text, times_text
from variants.contract import COUNTING_PHASES

FOLDER = Path(__file__).resolve().parent
COUNTED_ALONE = "merges_only"
SHOWN = ("total", "count", "copy", "merge", "max", "update")
MERGING = ("copy", "merge", "max", "update")
TIMED = ("total", "merge", *PHASES)
"""What has an interval; other quantities are counts, and exact."""
PARAMETERS = ("schedule", "chunk")
"""Conditions of published figures that are parameters of our variants, and change few times."""
CONDITIONS = {
    "vocab_size": "vocabulary {:,}",
    "threads": "{} threads",
    "parallel_max": "maximum by {}",
    "schedule": "{}",
    "chunk": "chunk {:,}",
    "chunk_bytes": "chunks of {:,} bytes",
}
HELD, REFUTED, CLOSE, UNSURE = "held", "refuted", "too close", "no interval"
KNOWN, MISSING = "refuted here", "not measured"
"""KNOWN is the verdict on a claim that fails here for a reason that claims.yaml states."""

Entry = dict[str, Any]


class Judgement(NamedTuple):
    """A claim with both ratios and the rows of ours that it was judged by; none if there are no
    records.
    """

    claim: Entry
    theirs: float | None
    names: tuple[str, str]
    verdict: str = MISSING
    ours: Ratio | None = None
    rows: tuple[Row, ...] = ()

    @property
    def contradicts(self) -> bool:
        """Whether claims.yaml says otherwise."""
        return self.verdict == (HELD if "refuted" in self.claim else REFUTED)


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", metavar="FOLDER")
    parser.add_argument("--part")
    parser.add_argument("--on", metavar="CORPUS")
    options = parser.parse_args(arguments)

    programs = {entry["program"]: entry for entry in read("series.yaml")["programs"]}
    if not options.paths:
        print_table(*programs_table(programs))
        return OK

    try:
        records = training_records(options.paths)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exit_code

    claims = read("claims.yaml")["claims"]
    if options.part or options.on:
        claims = [claim for claim in claims if part_of(claim, programs) == options.part]
        shown = [one for one in programs.values() if options.part in (None, str(one["part"]))]
        print_figures(shown, rows(records), options.on)

    judged = [judge(claim, programs, records) for claim in claims]
    if judged:
        print_table(*claims_table(judged))
    explained = [one for one in judged if not options.part or one.verdict != HELD]
    sys.stdout.writelines(f"- {explain(judgement)}\n" for judgement in explained)
    if any(judgement.contradicts for judgement in judged):
        return REGRESSION
    return UNMEASURED if judged and {one.verdict for one in judged} == {MISSING} else OK


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def training_records(paths: Sequence[str]) -> list[Record]:
    """Return what each folder shows: a cell of one does not replace the same cell of another."""
    records: list[Record] = []
    for path in paths:
        records += [record for record in records_of([path]) if record.trains]
    return records


# What the author published


def corpora(program: Entry) -> list[str]:
    """Return the corpora that the author measured on, from the small to the large."""
    return list(dict.fromkeys(figures["data"] for figures in program.get("figures", [])))


def published(program: Entry, quantity: str, data: str) -> float | None:
    """Return the median of the first figures on that corpus that have the quantity."""
    for figures in program.get("figures", []):
        seconds = published_in(program, figures, quantity)
        if figures["data"] == data and seconds is not None:
            return seconds
    return None


def published_in(program: Entry, figures: Entry, quantity: str) -> float | None:
    """Return the median of a quantity in one line of figures, or of what it follows from."""
    runs = figures.get(quantity)
    if quantity == "merge" and runs is None and "total" in figures:
        alone = [0] * len(figures["total"])
        counted = alone if program.get(COUNTED_ALONE) else figures.get("count", [])
        runs = [total - count for total, count in zip(figures["total"], counted, strict=False)]
    if quantity == "total" and program.get(COUNTED_ALONE):
        return None
    return float(statistics.median(runs)) if runs else None


def conditions(figures: Entry) -> str:
    """Return the corpus of published figures, and under which of several conditions they are."""
    texts = [text.format(figures[name]) for name, text in CONDITIONS.items() if name in figures]
    return ", ".join([figures["data"], *texts])


# Ours


def is_measured_by(program: Entry, record: Record) -> bool:
    """Return whether the record shows the program: its variant with its parameters.

    Any number of threads or processes above 1 will do; the author's machine had 64 CPUs.
    """
    cell = record.cell
    asked = dict(program.get("params", {}))
    found = {**cell.params, "threads": cell.threads or 1}
    if "threads" in program:
        asked["threads"] = program["threads"]

    is_pypy = "PyPy" in (cell.interpreter or "")
    is_program = cell.variant == program["variant"] and is_pypy == ("PyPy" in program["program"])
    return is_program and all(alike(value, found.get(name)) for name, value in asked.items())


def alike(one: Any, other: Any) -> bool:
    return bool(one == other or (several(one) and several(other)))


def several(value: Any) -> bool:
    return type(value) is int and value > 1


def narrowed(record: Record, quantity: str) -> Record | None:
    """Return the record as if the process had done nothing but this, so that its total, samples and
    ratios are those of the quantity.

    Nobody knows in which phase a process waited for a CPU, so each bears its share. A process that
    was stopped has no phases, and what stopped it was its merging.
    """
    seconds = record.measurement.seconds
    if quantity == "total" or (quantity == "merge" and "total" not in seconds):
        return record
    if quantity == "merge":
        chosen = {name: spent for name, spent in seconds.items() if name not in COUNTING_PHASES}
        chosen.pop("total")
    else:
        chosen = {name: seconds[name] for name in [quantity] if name in seconds}
    spent = sum(chosen.values())
    if not spent:
        return None

    share = spent / seconds["total"]
    cpu, wait = record.measurement.cpu_seconds, record.measurement.cpu_wait_seconds
    measurement = structs.replace(
        record.measurement,
        seconds={**chosen, "total": spent},
        cpu_seconds=None if cpu is None else share * cpu,
        cpu_wait_seconds=None if wait is None else share * wait,
    )
    return replace(record, measurement=measurement)


def rows_of(program: Entry, quantity: str, records: Sequence[Record]) -> list[Row]:
    """Return our rows of a program with nothing but this quantity, those of most words first."""
    found = [record for record in records if is_measured_by(program, record)]
    if quantity in TIMED:
        found = [one for record in found if (one := narrowed(record, quantity))]
    return sorted(
        rows(found), key=lambda row: (-(row.corpus.words or 0), -row.values["vocab_size"])
    )


# Claims


def part_of(claim: Entry, programs: dict[str, Entry]) -> str:
    """Return the part whose idea the claim is about: that of the later program."""
    if "part" in claim:
        return str(claim["part"])
    return str(max(programs[claim[side]]["part"] for side in ("slow", "fast")))


def judge(claim: Entry, programs: dict[str, Entry], records: Sequence[Record]) -> Judgement:
    """Return the verdict by the largest table of words on which our ratio has an interval; without
    one by the largest.
    """
    quantity = claim["quantity"]
    fast_quantity = claim.get("fast_quantity", quantity)
    slow, fast = (
        programs.get(claim[side], {"program": "", "variant": claim[side]})
        for side in ("slow", "fast")
    )
    if "slow_variant" in claim:
        slow = {**slow, "variant": claim["slow_variant"], "params": {}}
    theirs = published_ratio(slow, fast, quantity, fast_quantity)
    judged = Judgement(claim, theirs, (slow["variant"], fast["variant"]))

    ours = claim.get("here", quantity), claim.get("here", fast_quantity)
    found = []
    for pair in pairs(rows_of(slow, ours[0], records), rows_of(fast, ours[1], records)):
        ratio = Against(*pair).ratio("total" if ours[0] in TIMED else ours[0])
        if ratio is not None:
            found.append(
                judged._replace(verdict=verdict(ratio, pair, claim), ours=ratio, rows=pair)
            )
    certain = [one for one in found if one.verdict != UNSURE]
    return next(iter([*certain, *found]), judged)


def published_ratio(slow: Entry, fast: Entry, quantity: str, fast_quantity: str) -> float | None:
    """Return the author's ratio on the largest corpus that has both figures."""
    for data in reversed(corpora(slow)):
        numerator, divisor = published(slow, quantity, data), published(fast, fast_quantity, data)
        if numerator is not None and divisor:
            return numerator / divisor
    return None


def pairs(slow: Sequence[Row], fast: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of both programs that were measured in one task on one machine, if their
    merges are proved.
    """
    for one in slow:
        for other in fast:
            is_task = one.question == other.question and one.values["host"] == other.values["host"]
            if is_task and other.confirmed and (one.confirmed or one.time.is_limit):
                yield one, other


def verdict(ratio: Ratio, pair: tuple[Row, Row], claim: Entry) -> str:
    """Return on which side of the factor the ratio's interval is; counts are exact, and a limit
    bounds from below.
    """
    factor = claim["factor"]
    low, high = ratio.low, ratio.high
    if claim.get("here", claim["quantity"]) not in TIMED:
        low = high = ratio.number
    elif ratio.is_limit and len(pair[1].samples) >= FEWEST_BLOCKS:
        low = (pair[0].wall_limit or 0) / max(sample.seconds for sample in pair[1].samples)
        return HELD if low >= factor else CLOSE

    if low is None or high is None:
        return UNSURE
    if low >= factor:
        return HELD
    if high >= factor:
        return CLOSE
    return KNOWN if "refuted" in claim else REFUTED


def explain(judged: Judgement) -> str:
    """Say by which records a claim was judged, and why it came out so."""
    claim = judged.claim
    if not judged.rows:
        needs = f"; it needs {claim['needs']}" if "needs" in claim else ""
        return f"{claim['says']}: {MISSING}, no records of {' and '.join(judged.names)} in one task{needs}."

    quantities = claim["quantity"], claim.get("fast_quantity", claim["quantity"])
    texts = []
    for row, quantity in zip(judged.rows, quantities, strict=True):
        here = claim.get("here", quantity)
        figure = time_text(row.time) if here in TIMED else figure_text(row, here)
        texts.append(f"{row.name} {figure} of {here.replace('_', ' ')}")
    first = judged.rows[0]
    where = (
        f"{first.corpus.name}, {first.values['vocab_size']:,} tokens, {first.record.run.run[:10]}"
    )

    is_below = judged.ours is not None and judged.ours.number < claim["factor"]
    why = claim["refuted"] if is_below and "refuted" in claim else claim["because"]
    if judged.verdict == UNSURE:
        why = f"Fewer than {FEWEST_BLOCKS} undisturbed blocks have both, so the ratio has no interval. {why}"
    if judged.verdict == CLOSE:
        why = f"The interval holds the factor. {why}"
    return f"{claim['says']}: {judged.verdict} by {', '.join(texts)} ({where}). {' '.join(why.split())}"


def claims_table(judged: Sequence[Judgement]) -> tuple[list[str], list[list[str]]]:
    """Return each claim: how many times slower the first is, theirs and ours."""
    head = ["claim", "in", "theirs", "ours", "at least", "verdict"]
    lines = []
    for one in judged:
        quantity, here = one.claim["quantity"], one.claim.get("here")
        where = quantity if here is None else f"{quantity}, ours {here.replace('_', ' ')}"
        theirs = "-" if one.theirs is None else ratio_text(one.theirs)
        ours = times_text(one.ours, "") or "-"
        shown = f"{one.verdict}, against claims.yaml" if one.contradicts else one.verdict
        lines.append([one.claim["says"], where, theirs, ours, f"{one.claim['factor']:g}", shown])
    return head, lines


# Figures


def print_figures(programs: Sequence[Entry], measured: Sequence[Row], data: str | None) -> None:
    """Print the published figures, ours behind each, with the notes that every table has."""
    names = SHOWN if data is None else MERGING  # on one corpus ours may be its words alone
    lines, used = [], dict[Row, None]()
    for program in programs:
        found = [row for row in measured if is_measured_by(program, row.record)]
        used |= dict.fromkeys(row for row in found if row.status != "ok")
        found = [row for row in found if row.time.number is not None]  # not only instructions
        for figures in program.get("figures", []):
            theirs = {name: published_in(program, figures, name) for name in names}
            if data in (None, figures["data"]) and any(one is not None for one in theirs.values()):
                for row in fitting(figures, program, found) or [None]:
                    lines.append((program, figures, theirs, row))
                    used |= {} if row is None else {row: None}

    columns = [name for name in names if any(theirs[name] is not None for _, _, theirs, _ in lines)]
    head = ["program", "variant", "theirs on", "ours on", *columns]
    table = []
    for program, figures, theirs, row in lines:
        cells = [program["program"], program["variant"], conditions(figures), ours_on(row, figures)]
        for name in columns:
            known = theirs[name]
            ours = "-" if row is None else ours_of(row, name) or "-"
            cells.append("-" if known is None else f"{seconds_text(known)} / {ours}")
        table.append([*cells, "-" if row is None else figure_text(row, "memory") or "-"])
    if table:
        print_table([*head, "our memory"], table)
    sys.stdout.writelines(f"- {note}\n" for note in notes(list(used)))
    sys.stdout.write("\n" if notes(list(used)) else "")


def fitting(figures: Entry, program: Entry, found: Sequence[Row]) -> list[Row]:
    """Return our rows under the conditions of published figures: at their vocabulary if it is a
    special one, else at our largest on each corpus.
    """
    fits = []
    for row in found:
        params = row.record.cell.params
        same = [figures[name] == params.get(name) for name in PARAMETERS if name in figures]
        processes = figures.get("parallel_max")
        if all(same) and (processes is None or alike(processes, params.get("parallel_max"))):
            fits.append(row)

    special = [one["vocab_size"] for one in program["figures"] if "vocab_size" in one]
    if "vocab_size" in figures:
        return [row for row in fits if row.values["vocab_size"] == figures["vocab_size"]]
    usual = [row for row in fits if row.values["vocab_size"] not in special]
    largest: dict[str | None, int] = {}
    for row in usual:
        largest[row.corpus.name] = max(largest.get(row.corpus.name, 0), row.values["vocab_size"])
    return [row for row in usual if row.values["vocab_size"] == largest[row.corpus.name]]


def ours_on(row: Row | None, figures: Entry) -> str:
    """Return under which conditions a row of ours is; threads only if the published figures name them."""
    if row is None:
        return "not measured here"
    threads = f", {row.threads} threads" if row.threads > 1 and "threads" in figures else ""
    return f"{row.corpus.name}, vocabulary {row.values['vocab_size']:,}{threads}"


def ours_of(row: Row, quantity: str) -> str:
    """Return a row's figure; a limit that stopped it bounds its merging."""
    if quantity == "merge" and row.time.is_limit:
        return time_text(row.time)
    return marked(row, figure_text(row, quantity))


def programs_table(programs: dict[str, Entry]) -> tuple[list[str], list[list[str]]]:
    """Return each program with the variant that it is here and the author's medians."""
    head = ["program", "part", "variant", "parameters", "published times", "differences"]
    lines = []
    for program in programs.values():
        cells = [program["program"], str(program["part"]), program["variant"], parameters(program)]
        lines.append([*cells, medians(program), " ".join(program.get("note", "").split())])
    return head, lines


def parameters(program: Entry) -> str:
    given = dict(program.get("params", {}))
    given |= {name: program[name] for name in ("threads", "counting") if name in program}
    return ", ".join(f"{name}={value}" for name, value in given.items())


def medians(program: Entry) -> str:
    texts = []
    for data in corpora(program):
        seconds = [(quantity, published(program, quantity, data)) for quantity in SHOWN]
        known = [f"{name} {seconds_text(value)}" for name, value in seconds if value is not None]
        texts += [f"{data}: {', '.join(known)}"] if known else []
    return "; ".join(texts)


def print_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    sys.stdout.writelines(
        f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *lines]
    )
    sys.stdout.write("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
