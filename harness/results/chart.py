"""A chart as plain data: panels with marks, the words around them, and the colours; matplotlib draws it elsewhere."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from harness.common import registry
from harness.results.rows import MEASURED, Time

CARD, INK, FAINT, LINE = "#ffffff", "#1f2328", "#59636e", "#d8dee4"
OURS, OTHERS = "#267141", "#aab2bb"
PHASES = {
    "read": "#cc79a7",
    "count": "#56b4e9",
    "convert": "#f0e442",
    "init": "#009e73",
    "copy": "#e69f00",
    "max": "#d55e00",
    "update": "#0072b2",
    "other": "#444444",
}
"""Okabe and Ito's and a dark grey, which differ with any colour vision; a phase of no such name is of `OTHER_PHASE`."""
OTHER_PHASE = "#24292f"
HUES = (
    *("#5c6470", "#582700", "#349c78", "#5e88e9", OURS, "#7018ac"),  # grey, brown, green, blue, dark green, violet
    *("#e2420e", "#fb31b4", "#7d8112", "#681127", "#890483", "#6c68fc"),  # orange, pink, olive, wine, purple, indigo
)
"""Chosen by search: any two are far apart for every kind of colour vision."""
MARKERS = "os^DvP*<>phd8"
"""matplotlib's, in the order in which they are taken. No slanting cross: it would look like a mistake."""


class Look(NamedTuple):
    """The colour and the marker of a variant or a counter."""

    colour: str
    marker: str = "o"


def look_of(name: str) -> Look:
    """The same look in every chart: by the place in the registry, or else by the digest of the name."""
    place = _places().get(name)
    if place is None:
        place = int(hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12], 16)
    return Look(HUES[place % len(HUES)], MARKERS[(place // len(HUES) + place % len(HUES)) % len(MARKERS)])


@functools.cache
def _places() -> dict[str, int]:
    counters = {name: 3 + place for place, name in enumerate(registry.counters())}
    return {**counters, **{name: place for place, name in enumerate(registry.variants())}}


class Axis(NamedTuple):
    """Numbers from `low` to `high`, which may be bytes."""

    title: str
    low: float
    high: float
    log: bool = False
    bytes: bool = False


class Bar(NamedTuple):
    """Part of a bar on line `y`; an `open` one has an outline only: its length was not measured."""

    y: float
    start: float
    end: float
    colour: str
    open: bool = False


class Point(NamedTuple):
    """A figure as sure as its `form` says, with a line from `low` to `high`, along y if `upright`."""

    x: float
    y: float
    look: Look
    form: str = MEASURED
    low: float | None = None
    high: float | None = None
    upright: bool = False


def point_of(time: Time, x: float, y: float, look: Look, upright: bool = False) -> Point:
    return Point(x, y, look, time.form, time.low, time.high, upright)


class Line(NamedTuple):
    """Straight from point to point, or in `steps`; the dash is one of matplotlib's."""

    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = "-"
    steps: bool = False


class Text(NamedTuple):
    """A text on a line, `offset` points to the right of x."""

    y: float
    text: str
    x: float
    offset: float = 5.0
    colour: str = INK
    style: str = "normal"
    weight: str = "normal"


class Label(NamedTuple):
    """The name of a point, beside it, or of a `series`, at the right of the panel."""

    x: float
    y: float
    text: str
    series: bool = False
    colour: str = FAINT


Mark = Bar | Point | Line | Text | Label


class Panel(NamedTuple):
    """Axes with marks; `y` is an axis, or the names of lines from above, some of them `bold`."""

    x: Axis
    y: Axis | Sequence[str]
    marks: Sequence[Mark]
    title: str = ""
    bold: Sequence[int] = ()


class Entry(NamedTuple):
    """A line of the key: a marker, or an area without one."""

    text: str
    colour: str
    marker: str | None = None


class Chart(NamedTuple):
    """Panels below a title, a caption and a key, above notes; `step` is the inches of a line, `margin` at the right."""

    title: str
    caption: Sequence[str]
    notes: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[Entry] = ()
    step: float = 0.31
    height: float = 3.4
    margin: float = 0.1
