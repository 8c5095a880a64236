"""Further views of rows: one figure by two fields, and two sets side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common.comparison import differ
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.records.fields import FIELDS, Difference, Key, Record, differences, value_text
from harness.results.legend import Legend, failures, join_names, notes
from harness.results.rows import NOT_MEASURED, Baseline, Ratio, Row, is_wrong, ratio_of, rows, times_of
from harness.results.tables import NOT_COMPARABLE, memory_text

DIFFERENT = "≠"
SIDES = ("left", "right")
Fields = dict[str, list[Any]]


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str, relative_to: str | None = None) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a column.

    A cell without a figure says why, and a blank has no record. Raises Refusal for an unknown field or figure.
    """
    legend, fields = Legend(rows), fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    baseline = Baseline(rows, relative_to) if relative_to is not None else None
    # Rows of one variant are named by the parameters in which they differ.
    fields["variant"] = legend.names
    keys = list(zip(zip(*(fields[name] for name in down), strict=True), fields[across], strict=True))
    cells = dict(zip(keys, _pivot_texts(rows, value, baseline), strict=True))
    lines = _in_order(line for line, _ in keys)
    columns = [
        Column(name, list(map(value_text, values)), figures=all(map(_is_number, values)))
        for name, values in zip(down, zip(*lines, strict=True), strict=True)
    ]
    for (place,) in _in_order((place,) for _, place in keys):
        heading = f"{across} {value_text(place)}" if _is_number(place) else value_text(place)
        columns.append(Column(heading, [cells.get((line, place), "") for line in lines]))
    heading = value if baseline is None else f"{value} / {baseline.variant}"
    caption = [f"{heading} by {', '.join(down)} and {across}", *legend.caption()]
    refusals = baseline.refusals(legend.labels) if baseline is not None else []
    return Sheet(caption, columns, ["" for _ in lines], [*notes(legend), *refusals])


def fields_of(rows: Sequence[Row]) -> Fields:
    """Everything that rows can differ in, by name."""
    names = [field.name for field in FIELDS if field.name not in ("variant", "params")]
    variants = [(row.name, *sorted(row.params.items())) for row in rows]
    return {"variant": variants, **{name: [row.values[name] for row in rows] for name in (*names, "status")}}


def _layout(rows: Sequence[Row], fields: Fields, named: Sequence[str], value: str) -> tuple[list[str], str]:
    """The fields down, as many as it takes to keep rows apart, and the field across."""
    down, across = named
    figures = dict.fromkeys(name for row in rows for name in row.figures)
    for kind, name, there in (("field", down, fields), ("field", across, fields), ("value", value, figures)):
        if name not in there:
            raise Refusal(unknown(kind, name, there))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")
    chosen = [down]

    def cells(names: Sequence[str]) -> int:
        return len(set(zip(*(fields[name] for name in (*names, across)), strict=True)))

    while cells([*chosen, best := max(fields, key=lambda name: cells([*chosen, name]))]) > cells(chosen):
        chosen.append(best)
    return chosen, across


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Numbers in order if there are only numbers, all else as it first appeared."""
    once = list(dict.fromkeys(keys))
    first = {value: place for place, value in enumerate(dict.fromkeys(value for key in once for value in key))}
    numeric = [all(map(_is_number, column)) for column in zip(*once, strict=True)]
    return sorted(once, key=lambda key: [v if n else first[v] for v, n in zip(key, numeric, strict=True)])


def _is_number(value: Any) -> bool:
    return type(value) is int


def _pivot_texts(rows: Sequence[Row], value: str, baseline: Baseline | None) -> list[str]:
    """The cell of each row: its figure, how many times the baseline's that is, or why there is none."""
    if baseline is None:
        return [_cell(row, row.time.text if value == "total" else row.text(value)) for row in rows]
    texts = [ratio and times_of(ratio._replace(low=None), "") for ratio in baseline.ratios(value)]
    return [
        _cell(row, text) if refusal is None else NOT_COMPARABLE
        for row, text, refusal in zip(rows, texts, baseline.refused, strict=True)
    ]


def _cell(row: Row, text: str | None) -> str:
    """The text with the row's mark, or why there is none."""
    if row.status == "mismatch":
        return DIFFERENT
    if text:
        return text + row.mark
    return NOT_MEASURED if row.status == "ok" else row.status_text


# Two sets side by side


class Match(NamedTuple):
    """A row of each set about one cell, and the circumstances in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...] = ()

    @property
    def merges(self) -> str:
        """The digest that both learned, or both digests; a dash if they cannot be compared."""
        learned = self.left.status == self.right.status == "ok" and not self.left.counting_only
        if not learned or any(difference.field.decides_merges for difference in self.differences):
            return NOT_MEASURED
        left, right = self.left.digest, self.right.digest
        return f"= {left}" if left == right else f"{DIFFERENT} {left}, {right}"

    @property
    def merges_differ(self) -> bool:
        return self.merges.startswith(DIFFERENT)

    @property
    def ratio(self) -> Ratio | None:
        """Right by left; without an interval unless both ran in the same blocks; None if merges differ."""
        return None if self.merges_differ else ratio_of(self.right, self.left)


class SideBySide(NamedTuple):
    """Two sets of rows by their names: the rows that belong together, and those that only one set has."""

    names: Sequence[str]
    matches: Sequence[Match]
    alone: tuple[Sequence[Row], Sequence[Row]]

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any two rows of one task learned different merges."""
        paired = [row for match in self.matches for row in (match.left, match.right)]
        return any(match.merges_differ for match in self.matches) or is_wrong([*paired, *self.alone[0], *self.alone[1]])

    @property
    def unlike(self) -> str:
        """Each circumstance that differs, with both sides; empty if all are alike."""
        return _differences_text([difference for match in self.matches for difference in match.differences])


def side_by_side(left: Sequence[Record], right: Sequence[Record], names: Sequence[str], unlike: bool) -> SideBySide:
    """Match the rows of two sets. Raises Refusal if they have no cell in common, or differ and may not be `unlike`."""
    sets = matched(rows(left), rows(right), names)
    between = " and ".join(names)
    if not sets.matches:
        first, second = sets.alone[0][0], sets.alone[1][0]
        why = _differences_text(differences(first.record, second.record)) or f"{first.name} and {second.name}"
        raise Refusal(f"{between} have no cell in common to compare: their first rows differ in {why}", UNMEASURED)
    if sets.unlike and not unlike:
        raise Refusal(f"{between} differ in {sets.unlike}; --unlike compares them all the same")
    return sets


def matched(left: Sequence[Row], right: Sequence[Row], names: Sequence[str] = SIDES) -> SideBySide:
    """Put rows that differ in nothing but circumstances side by side."""
    others: dict[Key, list[Row]] = {}
    for row in right:
        others.setdefault(_cell_of(row), []).append(row)
    matches, alone = list[Match](), list[Row]()
    for row in left:
        if own := others.get(_cell_of(row)):
            other = own.pop(0)
            matches.append(Match(row, other, differences(row.record, other.record)))
        else:
            alone.append(row)
    return SideBySide(names, matches, (alone, [row for own in others.values() for row in own]))


def _cell_of(row: Row) -> Key:
    """What names its cell and is no circumstance, with the name of the corpus in place of its digest."""
    fields = [field.name for field in FIELDS if field.names_cell and not field.circumstance]
    return tuple(row.values["data" if name == "data.sha256" else name] for name in fields)


def _differences_text(unlike: Sequence[Difference]) -> str:
    """Each condition with both sides; the first few of one that differs in many ways."""
    sides: dict[str, dict[str, None]] = {}
    for each in unlike:
        sides.setdefault(each.field.unlike, {})[f"{each.left} / {each.right}"] = None
    return " and in ".join(f"{condition} ({join_names(list(pairs))})" for condition, pairs in sides.items())


def comparison_sheet(sets: SideBySide) -> Sheet:
    """A line for each match; below it what only one set has, and in what the two are unlike."""
    matches = sets.matches
    sides = {"left": [match.left for match in matches], "right": [match.right for match in matches]}
    legends = {side: Legend(own) for side, own in sides.items()}
    ratios = [DIFFERENT if each.merges_differ else each.ratio and times_of(each.ratio, "") for each in matches]
    columns = [
        Column("counter" if matches[0].left.counting_only else "variant", legends["left"].names, figures=False),
        *legends["left"].columns.values(),
        *(Column(f"total {side}", [_cell(row, row.time.text) for row in own]) for side, own in sides.items()),
        Column("right / left", [text or NOT_MEASURED for text in ratios]),
        *(Column(f"memory {side}", [memory_text(row) or NOT_MEASURED for row in own]) for side, own in sides.items()),
        Column("merges", [match.merges for match in matches], figures=False),
    ]
    named = zip(legends.items(), sets.names, strict=True)
    caption = [f"{side}: {name}: {'; '.join(legend.caption())}" for (side, legend), name in named]
    return Sheet(caption, columns, list(map(_style, matches)), list(_notes_of_two(sets, legends)))


def _style(match: Match) -> str:
    if match.merges_differ or "mismatch" in (match.left.status, match.right.status):
        return "red"
    if match.ratio is None:
        return "dim"
    return "" if match.left.confirmed and match.right.confirmed else "yellow"


def _notes_of_two(sets: SideBySide, legends: Mapping[str, Legend]) -> Iterator[str]:
    labelled = list(zip(sets.matches, legends["left"].labels, strict=True))
    if wrong := [label for match, label in labelled if match.merges_differ]:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, legend in legends.items():
        yield from (f"{side}: {note}" for note in failures(legend))
    if sets.unlike:
        yield f"Compared although they differ in {sets.unlike}."
    compared = [(label, ratio.low, ratio.high) for match, label in labelled if (ratio := match.ratio) is not None]
    if same := [label for label, low, high in compared if low and high and not differ(low, high)]:
        yield f"No difference: {join_names(same)}."
    if unsure := [label for label, low, _ in compared if low is None]:
        yield f"Not measured in the same blocks, or in too few, so without an interval: {join_names(unsure)}."
    for side, alone in zip(legends, sets.alone, strict=True):
        if alone:
            yield f"Only {side}: {join_names(Legend(alone).labels)}."
