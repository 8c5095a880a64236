"""Sheets from rows: a narrow table for each task, one figure laid out by two fields, and two sets
side by side.

Beside a table: counts of work, and what each outside trainer was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common.comparison import differ
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.common.units import count_text
from harness.results.fields import (
    FIELDS,
    Difference,
    Key,
    Record,
    differences,
    together,
    value_text,
)
from harness.results.legend import Legend, failures, is_outside_table, join_names, notes
from harness.results.rows import (
    NOT_MEASURED,
    TALLIES,
    Against,
    Ratio,
    Row,
    against,
    is_wrong,
    phases_of,
    ratio_of,
    refusals,
    rows,
    times_of,
)

NOT_COMPARABLE = "not comparable"
RATIO = "ratio"
DIFFERENT = "≠"
Fields = dict[str, list[Any]]


class TableOptions(NamedTuple):
    """What a table shows: columns by name, all phases, the work, all notes; `relative_to` names the
    baseline.
    """

    columns: Sequence[str] = ()
    phases: bool = False
    work: bool = False
    notes: bool = False
    relative_to: str | None = None


def tables(rows: Sequence[Row], options: TableOptions | None = None) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no task has the baseline
    that was named.
    """
    options = options or TableOptions()
    if options.relative_to is not None:
        against(rows, options.relative_to)  # refuses a name that no row has
    sheets: list[Sheet] = []
    for task in by_task(rows):
        measured = {
            row.name for row in task if row.total is not None or row.instructions is not None
        }
        known = options.relative_to if options.relative_to in measured else None
        sheets.append(table_of(task, options._replace(relative_to=known), rows))
        sheets += [work_sheet(task)] if options.work else []
    if options.notes and is_outside_table(rows):
        sheets.append(given_sheet(rows))
    above: set[str] = set()  # the lines of captions that a table above shows
    for place, sheet in enumerate(sheets):
        sheets[place] = sheet._replace(
            caption=[line for line in sheet.caption if line not in above]
        )
        above.update(sheet.caption)
    return sheets


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each task together; rows of one variant alone stay in one table."""
    if len({row.configured for row in rows}) < 2:
        return [list(rows)]
    return list(together([(row.question, row) for row in rows]).values())


def table_of(task: Sequence[Row], options: TableOptions, among: Sequence[Row] = ()) -> Sheet:
    """The table of some rows; `among` are all that the command shows. Raises Refusal for an unknown
    column.
    """
    legend, compared = Legend(task, among), against(task, options.relative_to)
    first = Column(
        "counter" if all(row.counting_only for row in task) else "variant",
        legend.names,
        figures=False,
    )
    names = options.columns or [
        first.heading,
        *legend.titles(),
        *_default_columns(task, legend, options),
    ]
    below = [
        *notes(legend, options.notes),
        *(refusals(compared, legend.labels) if options.notes else []),
    ]
    special = _special(legend, first, compared, options.relative_to)
    known = dict.fromkeys(
        [*special, *(name for row in task for name in row.figures), *legend.columns]
    )
    if missing := [name for name in names if name not in known]:
        raise Refusal(f"the table has no column {missing[0]!r}; it has {', '.join(known)}")
    made = {**special, **legend.columns}
    columns = [
        made.get(name) or Column(name, [_marked(row, row.text(name)) for row in task])
        for name in names
    ]
    return Sheet(legend.caption(), columns, [_style(row) for row in task], below)


def _default_columns(rows: Sequence[Row], legend: Legend, options: TableOptions) -> list[str]:
    """The columns of a table if none are named; they follow from the settings, not from what was
    measured.
    """
    if all(row.counting_only for row in rows):
        threads = [] if "threads" in legend.columns else ["threads"]
        status = ["status"] if any(row.status != "ok" for row in rows) else []
        return [*threads, "total", RATIO, "MB/s", "words", "memory", *status]
    counted = ["instructions"] if any(row.instructions is not None for row in rows) else []
    if counted and not any(row.seconds for row in rows):
        return [*counted, "instructions ratio", "proof"]
    usual = (
        phases_of(rows) if options.phases else [] if is_outside_table(rows) else ["max", "update"]
    )
    several = len({row.merges for row in rows if row.merges is not None}) > 1
    merges = ["merges"] if several and "vocab size" not in legend.columns else []
    clocks = ["spread", "CPU"] if options.phases else []
    tokens = ["bytes/token"] if any(row.record.get("tokens") is not None for row in rows) else []
    return [*merges, "total", RATIO, *clocks, *usual, *tokens, "memory", *counted, "proof"]


def _special(
    legend: Legend, first: Column, compared: Sequence[Against], base: str | None
) -> dict[str, Column]:
    """The columns that are no figures of the rows, or are written in their own way."""
    rows, counted = legend.rows, any(row.instructions is not None for row in legend.rows)
    return {
        first.heading: first,
        "total": Column("total", [_marked(row, row.time.text) for row in rows]),
        RATIO: _ratio_column(compared, base),
        "memory": Column("memory", [row.memory_text for row in rows]),
        "threads": Column("threads", [f"{row.threads:,}" for row in rows]),
        "data": Column("data", [str(row.corpus.get("name")) for row in rows], figures=False),
        "status": Column("status", [row.status_text for row in rows], figures=False),
        "proof": Column("proof", [row.proof for row in rows], figures=False),
        **(
            {"instructions ratio": _ratio_column(compared, base, "instructions")} if counted else {}
        ),
    }


def _marked(row: Row, text: str | None) -> str:
    return text + row.mark if text else row.missing


def _ratio_column(compared: Sequence[Against], base: str | None, figure: str = "total") -> Column:
    """How many times the baseline's figure each row has, with the interval if there are enough
    blocks.
    """
    texts = [
        _marked(each.row, times_of(each.ratio(figure), "" if base else "× "))
        if each.refused is None or figure != "total"
        else NOT_COMPARABLE
        for each in compared
    ]
    return Column(f"{figure} / {base}" if base else RATIO, texts)


def _style(*rows: Row) -> str:
    if any(row.status == "mismatch" for row in rows):
        return "red"
    if any(row.status != "ok" for row in rows):
        return "dim"
    return "" if all(row.confirmed for row in rows) else "yellow"


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """How many times each row did what: the same on every machine, so it explains why one is faster
    than another.
    """
    counted = [row for row in rows if row.status == "ok"]
    made = {name for row in counted for name in row.tallies}
    if not made:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *legend.columns.values()]
    for name in [*(name for name in TALLIES if name in made), *sorted(made - {*TALLIES})]:
        texts = [
            count_text(row.tallies[name]) if name in row.tallies else NOT_MEASURED
            for row in counted
        ]
        columns.append(Column(name.replace("_", " "), texts))
    return Sheet([], columns, ["" for _ in counted], [])


def given_sheet(rows: Sequence[Row]) -> Sheet:
    """What each trainer that reports it was given, and how: a row for each way, whatever the
    corpora were.
    """
    headings = ("program", "way in", "pre-tokens", "special tokens", "ties")
    keys = [heading.replace(" ", "_").replace("-", "_") for heading in headings]
    fed = [(row.name, feeding) for row in rows if (feeding := row.record.get("feeding"))]
    ways = dict.fromkeys(
        (name, *(str(feeding.get(key) or NOT_MEASURED) for key in keys)) for name, feeding in fed
    )
    columns = [
        Column(heading, [way[place] for way in ways], figures=False)
        for place, heading in enumerate(("trainer", *headings))
    ]
    return Sheet([], columns, ["" for _ in ways], [])


# One figure by two fields


def pivot_sheet(
    rows: Sequence[Row], named: Sequence[str], value: str, relative_to: str | None = None
) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and a blank has no record. Raises Refusal for an unknown field
    or figure.
    """
    legend, fields = Legend(rows), fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    compared = against(rows, relative_to) if relative_to is not None else []
    # Rows of one variant are named by the parameters in which they differ.
    fields["variant"] = legend.names
    keys = list(
        zip(zip(*(fields[name] for name in down), strict=True), fields[across], strict=True)
    )
    if relative_to is None:
        texts = [_cell(row, row.time.text if value == "total" else row.text(value)) for row in rows]
    else:
        ratios = [times_of(each.ratio(value), "", interval=False) for each in compared]
        known = zip(compared, ratios, strict=True)
        texts = [
            NOT_COMPARABLE if each.refused else _cell(each.row, ratio) for each, ratio in known
        ]
    cells = dict(zip(keys, texts, strict=True))
    lines = _in_order(line for line, _ in keys)
    columns = [
        Column(name, list(map(value_text, values)), figures=all(map(_is_number, values)))
        for name, values in zip(down, zip(*lines, strict=True), strict=True)
    ]
    for (place,) in _in_order((place,) for _, place in keys):
        heading = f"{across} {value_text(place)}" if _is_number(place) else value_text(place)
        columns.append(Column(heading, [cells.get((line, place), "") for line in lines]))
    heading = value if relative_to is None else f"{value} / {relative_to}"
    caption = [f"{heading} by {', '.join(down)} and {across}", *legend.caption()]
    below = [*notes(legend), *(refusals(compared, legend.labels) if compared else [])]
    return Sheet(caption, columns, ["" for _ in lines], below)


def fields_of(rows: Sequence[Row]) -> Fields:
    """Everything that rows can differ in, by name."""
    names = [field.name for field in FIELDS if field.name not in ("variant", "params")]
    return {
        "variant": [row.configured for row in rows],
        **{name: [row.values[name] for row in rows] for name in (*names, "status")},
    }


def _layout(
    rows: Sequence[Row], fields: Fields, named: Sequence[str], value: str
) -> tuple[list[str], str]:
    """The fields down, as many as it takes to keep rows apart, and the field across."""
    down, across = named
    figures = dict.fromkeys(name for row in rows for name in row.figures)
    for kind, name, there in (
        ("field", down, fields),
        ("field", across, fields),
        ("value", value, figures),
    ):
        if name not in there:
            raise Refusal(unknown(kind, name, there))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")
    chosen = [down]

    def cells(names: Sequence[str]) -> int:
        return len(set(zip(*(fields[name] for name in (*names, across)), strict=True)))

    while cells([*chosen, best := max(fields, key=lambda name: cells([*chosen, name]))]) > cells(
        chosen
    ):
        chosen.append(best)
    return chosen, across


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Numbers in order if there are only numbers, all else as it first appeared."""
    once = list(dict.fromkeys(keys))
    first = {
        value: place
        for place, value in enumerate(dict.fromkeys(value for key in once for value in key))
    }
    numeric = [all(map(_is_number, column)) for column in zip(*once, strict=True)]
    return sorted(
        once, key=lambda key: [v if n else first[v] for v, n in zip(key, numeric, strict=True)]
    )


def _is_number(value: Any) -> bool:
    return type(value) is int


def _cell(row: Row, text: str | None) -> str:
    """The text with the row's mark, or why there is none."""
    if row.status == "mismatch":
        return DIFFERENT
    if text:
        return text + row.mark
    return NOT_MEASURED if row.status == "ok" else row.status_text


# Two sets side by side


class Match(NamedTuple):
    """A row of each set about one cell, the circumstances in which they are unlike, and how they
    compare.

    `merges` has the digest that both learned, or both digests; a dash if they cannot be compared.
    `ratio` is right by left, without an interval unless both ran in the same blocks; None if merges
    differ.
    """

    left: Row
    right: Row
    differences: tuple[Difference, ...]
    merges: str
    ratio: Ratio | None

    @property
    def merges_differ(self) -> bool:
        return self.merges.startswith(DIFFERENT)


def _match(left: Row, right: Row) -> Match:
    unlike = differences(left.record, right.record)
    merges = (
        f"= {left.digest}"
        if left.digest == right.digest
        else f"{DIFFERENT} {left.digest}, {right.digest}"
    )
    learned = left.status == right.status == "ok" and not left.counting_only
    if not learned or any(difference.field.decides_merges for difference in unlike):
        merges = NOT_MEASURED
    return Match(
        left, right, unlike, merges, None if merges.startswith(DIFFERENT) else ratio_of(right, left)
    )


def compared(
    left: Sequence[Record], right: Sequence[Record], names: Sequence[str], unlike: bool = False
) -> tuple[Sheet, bool]:
    """Rows of two sets that differ in nothing but circumstances, side by side; and whether any
    merges are wrong.

    Below them is what only one set has. Raises Refusal if no cell is in both, or if they are unlike
    and may not be.
    """
    both, between = (rows(left), rows(right)), " and ".join(names)
    matches, alone = _matched(*both)
    if not matches:
        first, second = alone[0][0], alone[1][0]
        why = (
            _differences_text(differences(first.record, second.record))
            or f"{first.name} and {second.name}"
        )
        raise Refusal(
            f"{between} have no cell in common to compare: their first rows differ in {why}",
            UNMEASURED,
        )
    differing = _differences_text([each for match in matches for each in match.differences])
    if differing and not unlike:
        raise Refusal(f"{between} differ in {differing}; --unlike compares them all the same")
    sides = {"left": [match.left for match in matches], "right": [match.right for match in matches]}
    legends = {side: Legend(own) for side, own in sides.items()}
    ratios = [DIFFERENT if match.merges_differ else times_of(match.ratio, "") for match in matches]
    columns = [
        Column(
            "counter" if matches[0].left.counting_only else "variant",
            legends["left"].names,
            figures=False,
        ),
        *legends["left"].columns.values(),
        *(
            Column(f"total {side}", [_cell(row, row.time.text) for row in own])
            for side, own in sides.items()
        ),
        Column("right / left", [text or NOT_MEASURED for text in ratios]),
        *(
            Column(f"memory {side}", [row.memory_text or NOT_MEASURED for row in own])
            for side, own in sides.items()
        ),
        Column("merges", [match.merges for match in matches], figures=False),
    ]
    named = zip(legends.items(), names, strict=True)
    caption = [f"{side}: {name}: {'; '.join(legend.caption())}" for (side, legend), name in named]
    styles = [
        "red" if match.merges_differ else _style(match.left, match.right) for match in matches
    ]
    notes = [*_notes_of_two(matches, legends, differing)]
    both_alone = zip(legends, alone, strict=True)
    notes += [f"Only {side}: {join_names(Legend(own).labels)}." for side, own in both_alone if own]
    is_bad = any(match.merges_differ for match in matches) or is_wrong([*both[0], *both[1]])
    return Sheet(caption, columns, styles, notes), is_bad


def _matched(
    left: Sequence[Row], right: Sequence[Row]
) -> tuple[list[Match], tuple[list[Row], list[Row]]]:
    """The rows of one cell together, and those that are alone in either set."""
    others = together([(_cell_of(row), row) for row in right])
    matches, alone = list[Match](), list[Row]()
    for row in left:
        if own := others.get(_cell_of(row)):
            matches.append(_match(row, own.pop(0)))
        else:
            alone.append(row)
    return matches, (alone, [row for own in others.values() for row in own])


def _cell_of(row: Row) -> Key:
    """What names its cell and is no circumstance, with the name of the corpus in place of its
    digest.
    """
    fields = [field.name for field in FIELDS if field.names_cell and not field.circumstance]
    return tuple(row.values["data" if name == "data.sha256" else name] for name in fields)


def _differences_text(unlike: Sequence[Difference]) -> str:
    """Each condition with both sides; the first few of one that differs in many ways."""
    sides = together([(each.field.unlike, f"{each.left} / {each.right}") for each in unlike])
    return " and in ".join(
        f"{condition} ({join_names([*dict.fromkeys(own)])})" for condition, own in sides.items()
    )


def _notes_of_two(
    matches: Sequence[Match], legends: Mapping[str, Legend], differing: str
) -> Iterator[str]:
    labelled = list(zip(matches, legends["left"].labels, strict=True))
    if wrong := [label for match, label in labelled if match.merges_differ]:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, legend in legends.items():
        yield from (f"{side}: {note}" for note in failures(legend))
    if differing:
        yield f"Compared although they differ in {differing}."
    ratios = [
        (label, ratio.low, ratio.high)
        for match, label in labelled
        if (ratio := match.ratio) is not None
    ]
    if same := [label for label, low, high in ratios if low and high and not differ(low, high)]:
        yield f"No difference: {join_names(same)}."
    if unsure := [label for label, low, _ in ratios if low is None]:
        yield f"Not measured in the same blocks, or in too few, so without an interval: {join_names(unsure)}."
