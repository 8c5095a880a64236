"""A chart as plain data: panels with marks, and the words around them; nothing here knows what draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.results.colours import BAND, INK, Colour, Look
from harness.results.fields import MEASURED


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high`, in one of UNITS."""

    title: str
    low: float
    high: float
    log: bool = False
    unit: str = "number"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something drawn; with a name it can be found in the SVG, and shows `hover` when pointed at."""

    name: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Bar(Mark):
    """Part of a bar on line `y`; an `open` one has an outline only: its length was not measured."""

    y: float
    start: float
    end: float
    colour: Colour
    open: bool = False


@dataclass(frozen=True)
class Point(Mark):
    """A figure as sure as its `form` says, with a line from `low` to `high`, along y if `upright`."""

    x: float
    y: float
    look: Look
    form: str = MEASURED
    low: float | None = None
    high: float | None = None
    upright: bool = False
    size: float = 7.0
    hollow: bool = False


@dataclass(frozen=True)
class Dots(Mark):
    """Single measurements on one line."""

    xs: Sequence[float]
    y: float
    colour: Colour


@dataclass(frozen=True)
class Line(Mark):
    """Straight from point to point, or in `steps`."""

    points: Sequence[tuple[float, float]]
    colour: Colour
    dash: str = "solid"
    steps: bool = False


@dataclass(frozen=True)
class Text(Mark):
    """A text on a line, `offset` points to the right of x, or at the right of the panel in the `margin`."""

    y: float
    text: str
    x: float = 0.0
    offset: float = 5.0
    colour: Colour = INK
    bold: bool = False
    margin: bool = False
    italic: bool = False


@dataclass(frozen=True)
class Label(Mark):
    """The name of a point, beside it; or with a `line` colour the name of a series, at the right of the panel."""

    x: float
    y: float
    text: str
    line: Colour | None = None


@dataclass(frozen=True)
class Band(Mark):
    """Everything between two places along x."""

    low: float
    high: float
    colour: Colour = BAND


@dataclass(frozen=True)
class Panel:
    """Axes with marks; `y` is an axis, or the names of lines from above, of which some are `bold`."""

    x: Axis
    y: Axis | Sequence[str]
    marks: Sequence[Mark]
    title: str = ""
    bold: Sequence[int] = ()


@dataclass(frozen=True)
class Entry:
    """A line of the key: a marker, or an area if there is no look."""

    text: str
    colour: Colour
    look: Look | None = None
    form: str = MEASURED


@dataclass(frozen=True)
class Chart:
    """Panels below a title, a caption and a key, above notes; `step` is the inches of a line, `margin` at the right."""

    title: str
    caption: Sequence[str]
    notes: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[Entry] = ()
    step: float = 0.31
    height: float = 3.4
    margin: float = 0.1
