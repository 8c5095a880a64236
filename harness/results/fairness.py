"""What outside trainers were given, how far their merges are those that are defined, who may be ranked with whom.

A ratio of two times means something only where both did the same work. Where they did not there is no ratio, but the
reason why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.common.sheet import Column, Sheet
from harness.common.units import count_text, counted_text, one_line, token_text
from harness.proof import BY_DESIGN, IDENTICAL, UP_TO_TIES, WRONG
from harness.results.legend import NOT_MEASURED, Legend
from harness.results.rows import Row
from harness.runs.fields import WORK

NOT_COMPARABLE = "not comparable"
LONGEST_TOKEN = 20

EXPLAINED = {
    IDENTICAL: "each merge is the defined one; the tie-break is in parentheses unless it is greatest_bytes",
    UP_TO_TIES: "each merge was one of the most frequent pairs at its moment, by a replay against the true counts, but "
    "none of our tie-breaks chooses all of them",
    BY_DESIGN: "other merges, on purpose",
    WRONG: "not the defined merges, by a replay against the true counts",
}


def outside(rows: Sequence[Row]) -> bool:
    """Whether any row is of a trainer that says how it was fed."""
    return any(row.record.get("feeding") for row in rows)


def incomparable(row: Row, base: Row) -> str | None:
    """Why the times of two rows on one corpus are not of the same work; None if they are."""
    if row.work != base.work:
        return next(
            field.other_work for field, ours, theirs in zip(WORK, row.work, base.work, strict=True) if ours != theirs
        )
    if row.by_design or base.by_design:
        return "different by design" if row.by_design else "the other is different by design"
    if row.merges != base.merges and None not in (row.merges, base.merges) and not (row.exhausted and base.exhausted):
        return f"{count_text(row.merges or 0)} merges, not {count_text(base.merges or 0)}"
    return None


def identity_notes(legend: Legend) -> list[str]:
    """What the classes in sight mean, and what shows those that are not plain."""
    kinds = {row.identity["kind"] for row in legend.rows if row.status in ("ok", "mismatch") and not row.counting_only}
    told = EXPLAINED if kinds & {UP_TO_TIES, BY_DESIGN} or outside(legend.rows) else {}
    notes = [f"{kind.replace('_', ' ')}: {text}." for kind, text in told.items() if kind in kinds]
    for row, label in zip(legend.rows, legend.short_labels(), strict=True):
        if row.identity.get("reason") and row.identity["kind"] in (UP_TO_TIES, BY_DESIGN):
            notes.append(f"{label}, {row.identity['kind'].replace('_', ' ')}: {shown_by(row)}.")
    return notes


def shown_by(row: Row) -> str:
    identity = row.identity
    told = one_line(identity["reason"])
    if identity["kind"] == UP_TO_TIES and identity.get("want"):
        got, want = (merge_text(identity[side]) for side in ("got", "want"))
        told += (
            f"; merge {identity['merge']} is {got} where another is {want}, {count_text(identity['got_count'])} each"
        )
    return told


def merge_text(merge: Sequence[str]) -> str:
    return "+".join(token_text(bytes.fromhex(token), LONGEST_TOKEN) for token in merge)


def given_sheet(legend: Legend) -> Sheet:
    """What each trainer was given, and in which way: a row for each way, however many corpora and widths there were."""
    ways: dict[tuple[str, ...], set[int | None]] = {}
    fed = {row.name for row in legend.rows if row.record.get("feeding")}
    for row in legend.rows:
        if row.name in fed and not row.record.get("feeding"):
            continue  # it was ended before it could tell, and another row of it has told
        told = row.record.get("feeding") or {}
        way = row.name, *(told.get(what) or NOT_MEASURED for what in _GIVEN.values())
        ways.setdefault(way, set()).add(threads_of(row))
    named = [", ".join([way[0], *threads_text(threads)]) for way, threads in ways.items()]
    columns = [Column("given to", named, figures=False)]
    for number, heading in enumerate(_GIVEN, 1):
        columns.append(Column(heading, [way[number] for way in ways], figures=False))
    return Sheet([], columns, ["" for _ in named], [])


_GIVEN = {
    "program": "program",
    "way in": "way_in",
    "pre-tokens": "pre_tokens",
    "special tokens": "special_tokens",
    "ties": "ties",
}
"""The headings, and the keys of `feeding`."""


def threads_text(widths: Iterable[int | None]) -> list[str]:
    """
    >>> threads_text({2, 1, None}), threads_text([1]), threads_text([None])
    (['1 and 2 threads'], ['1 thread'], [])
    """
    known = sorted(width for width in widths if width is not None)
    return [" and ".join([*map(count_text, known[:-1]), counted_text(known[-1], "thread")])] if known else []


def threads_of(row: Row) -> int | None:
    """How many threads it could use of those of the run."""
    takes = row.record.get("takes_threads")
    threads = row.record.get("threads")
    return None if takes is None or threads is None else (threads if takes else 1)
