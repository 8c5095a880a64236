"""A chart as plain data: what stands where, in which order, colour and shape, and the words around it.

A colour is a pair for light and dark pages and a place is a number of an axis, or the number of a line of names, so
that a description knows nothing of what draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.results.charts.values import AT_LEAST, ESTIMATED, MEASURED, PROVED, UNCONFIRMED, WRONG, Value
from harness.results.colours import FAINT, INK, LIGHT, Colour, Look, Theme, counter_look, look_of
from harness.results.rows import Row


@dataclass(frozen=True)
class Request:
    """What is asked of a chart besides its rows.

    `seconds` is one of values.QUANTITIES; `relative_to` the variant that ratios are of; `log` asks for totals on a log
    axis however near they are to each other. `programs` has names for rows that were stopped before they told theirs.
    """

    theme: Theme = LIGHT
    title: str | None = None
    seconds: str = "training"
    relative_to: str | None = None
    log: bool = False
    programs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high`, in one of values.UNITS.

    `measured` are the only numbers at which anything was measured, where they are worth a tick each.
    """

    title: str
    low: float
    high: float
    log: bool = True
    unit: str = "number"
    measured: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something drawn: its id, whose it is, and what a page says of it in figures by their names, and in words.

    `words` have names of figures (or x and y) in braces. `series` names it on a page instead of its row's label.
    """

    name: str = ""
    row: Row | None = None
    series: str = ""
    words: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point(Mark):
    """A figure that is as sure as its `form` (one of values.FORMS) says, and how far it may be off.

    `low` and `high` bound it along its axis, which is y where it is `upright`; `single` says that one run was made. Of
    a `hollow` point nothing follows.
    """

    x: float
    y: float
    look: Look
    form: str = MEASURED
    low: float | None = None
    high: float | None = None
    upright: bool = False
    single: bool = False
    size: float = 6.0
    hollow: bool = False


@dataclass(frozen=True)
class Dots(Mark):
    """Single measurements of one line of names."""

    xs: Sequence[float]
    y: float
    colour: Colour


@dataclass(frozen=True)
class Bar(Mark):
    """Part of a bar in a line of names: what `part` took, from `start` to `end`."""

    y: float
    start: float
    end: float
    part: str
    colour: Colour


@dataclass(frozen=True)
class Line(Mark):
    """Straight from point to point, or in `steps`; `dash` is solid, dashed or dotted."""

    points: Sequence[tuple[float, float]]
    colour: Colour
    width: float = 1.0
    dash: str = "solid"
    opacity: float = 1.0
    steps: bool = False


@dataclass(frozen=True)
class Text(Mark):
    """A text in a line of names: `offset` points to the right of x, or around it where it is `centred`.

    An `outcome` says what became of a row that has no figure. A text in the `margin` stands at the right of the panel.
    """

    y: float
    text: str
    x: float = 0.0
    offset: float = 0.0
    size: float = 8.0
    colour: Colour = INK
    centred: bool = False
    outcome: bool = False
    margin: bool = False


@dataclass(frozen=True)
class Label(Mark):
    """The name of a place: beside a point where it hides nothing, or at the panel's edge, with a line to its `end`."""

    x: float
    y: float
    text: str
    end: Colour | None = None


@dataclass(frozen=True)
class Rule(Mark):
    """A line across the panel at x."""

    x: float
    colour: Colour = FAINT
    dotted: bool = False


@dataclass(frozen=True)
class Band(Mark):
    """Everything between two places along x."""

    low: float
    high: float
    colour: Colour


@dataclass(frozen=True)
class Panel:
    """Axes with what stands in them. `y` is an axis or the names of lines, from above.

    `named` says whether the names stand there, or only at the panel beside. By its `view` a page offers it for choice:
    panels of one view are the same for different rows.
    """

    name: str
    title: str
    x: Axis
    y: Axis | Sequence[str]
    marks: Sequence[Mark]
    named: bool = True
    view: str = ""


@dataclass(frozen=True)
class Entry:
    """A line of the key: a marker, or an area where there is no shape."""

    text: str
    colour: Colour
    look: Look | None = None
    form: str = MEASURED


@dataclass(frozen=True)
class Chart:
    """Panels in columns, under a title and a caption, above notes.

    `widths` are the columns' shares of the page; `step` the inches of a line of names, `height` those of a panel that
    has none; `margin` the inches that texts need at the right of each panel; `width` the inches of the page.
    """

    title: str
    caption: Sequence[str]
    notes: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[Entry] = ()
    widths: Sequence[float] = (1.0,)
    step: float = 0.27
    height: float = 3.4
    margin: float = 0.1
    width: float = 9.6


FORMS_EXPLAINED = {
    UNCONFIRMED: "nobody of another family has confirmed the merges",
    ESTIMATED: "stopped at the limit: extrapolated, with its interval",
    AT_LEAST: "stopped at the limit: at least this",
    WRONG: "wrong merges: no time is shown",
}


def row_look(row: Row) -> Look:
    return counter_look(row.name) if row.counting_only else look_of(row.name)


def point_of(row: Row, value: Value, name: str, x: float, y: float, look: Look | None = None, **more: Any) -> Point:
    """The mark of a row's figure, in the row's look if no other is given; `more` is as in Point."""
    return Point(
        x,
        y,
        look or row_look(row),
        value.form,
        low=value.low,
        high=value.high,
        single=value.form in PROVED and len(row.samples) < 2,
        name=name,
        row=row,
        **more,
    )


def form_key(values: Iterable[Value]) -> list[Entry]:
    """What the markers mean, for those forms that there are beside plain ones."""
    forms = {value.form for value in values}
    grey = Look(FAINT, "circle")
    return [Entry(text, FAINT, grey, form) for form, text in FORMS_EXPLAINED.items() if form in forms]
