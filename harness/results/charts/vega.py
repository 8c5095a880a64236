"""A chart as Vega-Lite for a page, on which a reader filters and sorts the rows.

In a specification a text that begins with `@` is put in by the page: `@labels` are the labels of the rows that are
left, `@ink` a colour of the page's light or dark dress. The page adds to each mark what its row is called, and leaves
out the marks of rows that are filtered away, so scales follow what is left. Of texts only those of a row are drawn;
lines between rows would mean nothing in another order.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.results.charts.chart import Axis, Band, Bar, Dots, Label, Line, Mark, Panel, Point, Rule, Text
from harness.results.charts.drawing import apart
from harness.results.charts.values import ESTIMATED, MEASURED, PROVED, UNITS

Spec = dict[str, Any]

_FEW = 6
"""So many numbers have a tick each: there is no third of a thread."""
MOST_APART = 300
"""There is no room to move more names of a panel apart, and each that is added would be held against all others."""
PANEL_HEIGHT = 340
"""Pixels of a panel whose rows have no line each."""
_ABOVE = 8.0
_NAME_STEP, _NEAR, _TURNED = 0.05, 0.16, 0.72
"""In shares of a panel: from one name to the next above it, how near along x two names touch, and from where on a name
stands at the left of its point."""
_SOLID = {MEASURED: 1.0, ESTIMATED: 0.0}
"""How filled the marker of a form is; between the two where nobody has confirmed the merges."""


def view_of(panels: Sequence[Panel], places: Mapping[int, int]) -> Spec:
    """The panels as one, for any of their rows: a specification of what its layers share, and each with its marks.

    A layer's `marks` are lists of values by its `fields`, of which `of` is the place of the row; its `words` say what a
    mark is, with fields in braces. `places` are those of the rows by their `id`. Of an axis the numbers are left to
    Vega.
    """
    first, marks = panels[0], [mark for panel in panels for mark in panel.marks]
    by_row = not isinstance(first.y, Axis)
    layers = [
        *_background(marks),
        *([] if by_row else [*_lines(marks), *_stairs(marks)]),
        *_intervals(marks, by_row),
        *_bars(marks),
        *_dots(marks),
        *_points(marks, by_row),
        *_texts(marks),
        *_names(panels),
        *_outcomes(marks),
    ]
    sizes = sorted({size for panel in panels for size in panel.x.measured})
    along = _scaled(first.x, "x", sizes)
    if any(isinstance(mark, Label) and mark.end is not None for mark in marks):
        along["scale"]["range"] = [0, {"expr": "width - @name_room"}]
    encoding: Spec = {"x": {"field": "x", **along}}
    if isinstance(first.y, Axis):
        spec: Spec = {"height": PANEL_HEIGHT, "encoding": encoding | {"y": {"field": "y", **_scaled(first.y, "y")}}}
    else:
        names = {"title": None, "labelLimit": "@label_limit", "ticks": False, "domain": False}
        line = {"field": "label", "type": "nominal", "scale": {"domain": "@labels"}, "axis": names}
        spec = {"height": "@height", "encoding": encoding | {"y": line}}
    return {"spec": spec, "layers": [_packed(layer, places) for layer in layers]}


def _packed(layer: Spec, places: Mapping[int, int]) -> Spec:
    """A layer whose marks do not repeat what all of them have: there may be thousands."""
    marks = [mark | {"of": places[id(mark["of"])]} for mark in layer["marks"]]
    words = {mark.get("words") for mark in marks}
    shared = {"words": words.pop()} if len(words) == 1 else {}
    fields = [name for name in dict.fromkeys(name for mark in marks for name in mark) if name not in shared]
    return {
        **layer,
        **shared,
        "fields": fields,
        "marks": [[_short(mark.get(name)) for name in fields] for mark in marks],
    }


def _short(value: Any) -> Any:
    """
    >>> _short(0.0019686234344561374), _short("text")
    (0.001968623434, 'text')
    """
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _scaled(axis: Axis, side: str, sizes: Sequence[float] = ()) -> Spec:
    ticks = {"values": sizes} if 0 < len(sizes) <= _FEW else {"tickCount": "@ticks"}
    described = {"format": UNITS[axis.unit].d3, "labelOverlap": "greedy", **ticks}
    if not axis.log:
        return {"type": "quantitative", "scale": {"nice": False}, "axis": {"title": axis.title, **described}}
    scale = {"type": "log", "nice": False, "padding": 12}
    # The page names round numbers within what is left, unless the sizes themselves are ticks.
    described = {"values": f"@{side}_ticks", **described}
    if axis.unit == "bytes":
        described = {**described, "labelExpr": "format(datum.value, '.3~s') + 'B'"}
    return {"type": "quantitative", "scale": scale, "axis": {"title": f"{axis.title} (log scale)", **described}}


def _by_name(value: str, legend: str | None) -> Spec:
    """A name's own colour or shape, the same wherever it is drawn."""
    return {"field": "name", "type": "nominal", "scale": {"domain": "@names", "range": value}, "legend": legend}


def _key(by_row: bool) -> str | None:
    """The key of a chart whose rows have no axis that names them."""
    return None if by_row else "@key"


def _layer(mark: Spec, encoding: Spec, marks: Sequence[Spec], figures: Mapping[str, str] | None = None) -> Spec:
    """A layer; with `figures`, the titles of fields, its marks are told of in words and in figures."""
    if figures is not None:
        tooltip = [{"field": name, "title": title, "type": "nominal"} for name, title in figures.items()]
        named = {"field": "series", "title": "row", "type": "nominal"}
        encoding = encoding | {"tooltip": [named, *tooltip], "description": {"field": "said"}}
    return {"spec": {"mark": mark, "encoding": encoding}, "marks": [*marks]}


def _titles(marks: Sequence[Mark]) -> dict[str, str]:
    return {name: name for name in marks[0].figures}


def _spoken(mark: Mark, **places: Any) -> Spec:
    """A mark that is told of; the page says of whom it is, unless it has a `series`."""
    series = {"series": mark.series} if mark.series else {}
    words = {"words": mark.words} if mark.words else {}
    return {"of": mark.row, **places, **series, **words, **mark.figures}


def _background(marks: Sequence[Mark]) -> Iterator[Spec]:
    """What stands there whatever rows are left."""
    for x, dotted in dict.fromkeys((mark.x, mark.dotted) for mark in marks if isinstance(mark, Rule)):
        drawn: Spec = {"type": "rule", "color": "@faint", "strokeDash": [3, 3] if dotted else [1, 0]}
        yield _layer(drawn, {"x": {"datum": x}, "y": None}, [])
    for low, high in dict.fromkeys((mark.low, mark.high) for mark in marks if isinstance(mark, Band)):
        drawn = {"type": "rect", "color": "@faint", "opacity": 0.15}
        yield _layer(drawn, {"x": {"datum": low}, "x2": {"datum": high}, "y": None}, [])


def _lines(marks: Sequence[Mark]) -> Iterator[Spec]:
    """Lines by the way they are dashed."""
    lines = [mark for mark in marks if isinstance(mark, Line) and mark.row and not mark.steps]
    for dash, lengths in (("solid", [1, 0]), ("dashed", [5, 3]), ("dotted", [1, 3])):
        own = [line for line in lines if line.dash == dash]
        corners = [
            _spoken(line, x=x, y=float(f"{y:.4g}"), line=number)
            for number, line in enumerate(own)
            for x, y in line.points
        ]
        if corners:
            drawn: Spec = {"type": "line", "strokeWidth": 1.5, "opacity": 0.75, "strokeDash": lengths}
            encoding = {"color": _by_name("@colours", "@key"), "detail": {"field": "line"}}
            yield _layer(drawn, encoding, corners)


def _stairs(marks: Sequence[Mark]) -> Iterator[Spec]:
    """Through the corners that lie at rows: a stair has no ends where scales follow the rows that are left."""
    row_at = {(mark.x, mark.y): mark.row for mark in marks if isinstance(mark, Point)}
    for line in (mark for mark in marks if isinstance(mark, Line) and mark.steps):
        corners = [{"of": row_at[corner], "x": corner[0], "y": corner[1]} for corner in line.points[1:-1]]
        drawn = {"type": "line", "interpolate": "step-after", "strokeDash": [3, 3], "color": "@faint"}
        yield _layer(drawn, {}, corners)


def _intervals(marks: Sequence[Mark], by_row: bool) -> Iterator[Spec]:
    for upright in (False, True):
        intervals = [
            {
                "of": point.row,
                **({"x": point.x, "y": point.low, "y2": point.high} if upright else {"x": point.low, "x2": point.high}),
                **({"y": point.y} if not upright and not by_row else {}),
                "opacity": 0.3 if point.single else 0.8,
                "dashed": point.form == ESTIMATED,
            }
            for point in _figures(marks)
            if point.low is not None and point.upright == upright
        ]
        if intervals:
            dashed = {"condition": {"test": "datum.dashed", "value": [4, 3]}, "value": [1, 0]}
            encoding = {
                "y2" if upright else "x2": {"field": "y2" if upright else "x2"},
                "color": _by_name("@colours", _key(by_row)),
                "opacity": {"field": "opacity", "type": "quantitative", "scale": None},
                "strokeDash": dashed,
            }
            yield _layer({"type": "rule", "strokeWidth": 2}, encoding, intervals)


def _figures(marks: Sequence[Mark]) -> list[Point]:
    """The points that have a figure, of which a page says more than a marker."""
    return [mark for mark in marks if isinstance(mark, Point) and mark.name and mark.form in (*PROVED, ESTIMATED)]


def _points(marks: Sequence[Mark], by_row: bool) -> Iterator[Spec]:
    points = [
        _spoken(point, x=point.x, solid=0.0 if point.hollow else _SOLID.get(point.form, 0.45))
        | ({} if by_row else {"y": point.y})
        for point in _figures(marks)
    ]
    if points:
        encoding = {
            "color": _by_name("@colours", _key(by_row)),
            "stroke": _by_name("@colours", _key(by_row)),
            "shape": _by_name("@shapes", _key(by_row)),
            "fillOpacity": {"field": "solid", "type": "quantitative", "scale": None},
        }
        drawn: Spec = {"type": "point", "filled": True, "size": 70, "opacity": 1, "strokeWidth": 1.2}
        yield _layer(drawn, encoding, points, _titles(_figures(marks)))


def _bars(marks: Sequence[Mark]) -> Iterator[Spec]:
    """Bars in parts, which a key names; and whole bars, each in its row's colour."""
    bars = [mark for mark in marks if isinstance(mark, Bar)]
    parts = [bar for bar in bars if bar.part]
    if parts:
        legend = {"orient": "top", "title": None, "columns": "@legend_columns"}
        scale = {"domain": "@phases", "range": "@phase_colours"}
        colour = {"field": "part", "type": "nominal", "scale": scale, "legend": legend}
        drawn: Spec = {"type": "bar", "stroke": "@page", "strokeWidth": 0.5}
        spoken = [_spoken(bar, x=bar.start, x2=bar.end, part=bar.part) for bar in parts]
        yield _layer(drawn, {"x2": {"field": "x2"}, "color": colour}, spoken, _titles(parts))
    whole = [{"of": bar.row, "x": bar.start, "x2": bar.end} for bar in bars if not bar.part]
    if whole:
        drawn = {"type": "bar", "opacity": 0.4, "size": 14, "tooltip": None}
        yield _layer(drawn, {"x2": {"field": "x2"}, "color": _by_name("@colours", None)}, whole)


def _texts(marks: Sequence[Mark]) -> Iterator[Spec]:
    """Figures at the ends of bars."""
    texts = [
        {"of": mark.row, "x": mark.x, "text": mark.text}
        for mark in marks
        if isinstance(mark, Text) and mark.row and not mark.outcome
    ]
    if texts:
        drawn = {"type": "text", "align": "left", "dx": 9, "color": "@ink", "aria": False}
        yield _layer(drawn, {"text": {"field": "text"}}, texts)


def _names(panels: Sequence[Panel]) -> Iterator[Spec]:
    """The names of points and of the ends of lines, moved up or down where they would hide each other."""
    named = []
    for panel in panels:
        labels = [mark for mark in panel.marks if isinstance(mark, Label) and mark.row]
        if not isinstance(panel.y, Axis) or not labels:
            continue
        places = [(_share(panel.x, label.x), _share(panel.y, label.y)) for label in labels]
        ups = _apart_from_each_other(places)
        for label, (across, up), moved in zip(labels, places, ups, strict=True):
            left = across > _TURNED and label.end is None
            # A point's name stands above the bar that says how far it may be off.
            above = _ABOVE if label.end is None else 0.0
            move = {"up": round((up - moved) * PANEL_HEIGHT - above, 1), "left": left}
            named.append({"of": label.row, "x": label.x, "y": label.y, "text": label.text, **move})
    for left in (False, True):
        drawn: Spec = {"type": "text", "align": "right" if left else "left", "dx": -8 if left else 8}
        drawn |= {"dy": {"expr": "datum.up"}, "fontSize": 10.5, "color": "@ink", "aria": False}
        own = [
            {name: value for name, value in each.items() if name != "left"} for each in named if each["left"] == left
        ]
        if own:
            yield _layer(drawn, {"text": {"field": "text"}}, own)


def _share(axis: Axis, number: float) -> float:
    """How far along the axis a number lies, from 0 to 1; in its middle where it has no length."""
    places = (axis.low, axis.high, max(number, axis.low))
    low, high, at = (math.log(max(place, sys.float_info.min)) for place in places) if axis.log else places
    return (at - low) / (high - low) if high > low else 0.5


def _apart_from_each_other(places: Sequence[tuple[float, float]]) -> list[float]:
    """How far up each name stands, those near each other along x a line apart.

    >>> _apart_from_each_other([(0.1, 0.5), (0.1, 0.5), (0.9, 0.5)])
    [0.475, 0.525, 0.5]
    """
    ups = [up for _, up in places]
    if len(places) > MOST_APART:
        return ups
    for x in sorted({across for across, _ in places}):
        near = [place for place, (across, _) in enumerate(places) if abs(across - x) < _NEAR]
        for place, up in zip(near, apart([ups[place] for place in near], _NAME_STEP, 0.0, 1.0), strict=True):
            ups[place] = up
    return ups


def _dots(marks: Sequence[Mark]) -> Iterator[Spec]:
    dots = [{"of": mark.row, "x": x} for mark in marks if isinstance(mark, Dots) for x in mark.xs]
    if dots:
        drawn = {"type": "tick", "thickness": 1.5, "size": 9, "opacity": 0.75}
        yield _layer(drawn, {"color": _by_name("@colours", None)}, dots)


def _outcomes(marks: Sequence[Mark]) -> Iterator[Spec]:
    """What has no time says so in its place, in words."""
    outcomes = [_spoken(mark) for mark in marks if isinstance(mark, Text) and mark.outcome]
    if outcomes:
        drawn = {"type": "text", "align": "left", "fontStyle": "italic", "limit": "@text_limit"}
        encoding = {"x": {"value": 4}, "text": {"field": "outcome"}, "color": {"value": "@faint"}}
        yield _layer(drawn, encoding, outcomes, {"outcome": "outcome"})
