"""What specifications of charts have in common: bands of rows, colours and shapes by name, axes, failures in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Spec = dict[str, Any]

MEASURED = "datum.status == 'ok'"
NAMES = "@key"
"""The key of a chart whose rows have no axis that names them."""
POINT: Spec = {"type": "point", "filled": True, "size": 75, "opacity": 1}


def by_row(layers: Sequence[Spec]) -> Spec:
    """Layers that share a band for each row, from top to bottom in the order of the table."""
    axis = {"title": None, "labelLimit": "@label_limit", "ticks": False, "domain": False}
    place = {"field": "label", "type": "nominal", "scale": {"domain": "@labels"}, "axis": axis}
    return {"height": "@height", "encoding": {"y": place}, "layer": list(layers)}


def failures(condition: str = "true") -> Spec:
    """What has no time says so in its place, in words."""
    return {
        "needs": ["failure"],
        "transform": [
            {"filter": f"datum.status != 'ok' && {condition}"},
            {"calculate": "datum.label + ': ' + datum.failure", "as": "said"},
        ],
        "mark": {"type": "text", "align": "left", "fontStyle": "italic", "limit": "@text_limit"},
        "encoding": {
            "x": {"value": 4},
            "text": {"field": "failure"},
            "color": {"value": "@faint"},
            "tooltip": [told("label", "row"), told("failure", "outcome")],
            "description": {"field": "said"},
        },
    }


def by_name(legend: str | None = None) -> Spec:
    """A name's own colour, the same wherever it is drawn."""
    return {"field": "name", "type": "nominal", "scale": {"domain": "@names", "range": "@colours"}, "legend": legend}


def shapes(legend: str | None = None) -> Spec:
    return {"field": "name", "type": "nominal", "scale": {"domain": "@names", "range": "@shapes"}, "legend": legend}


def logarithmic(title: str, form: str = "~g") -> Spec:
    scale = {"type": "log", "nice": False, "padding": 12}
    return {"type": "quantitative", "scale": scale, "axis": {**axis_of(title, form), "labelOverlap": "greedy"}}


def axis_of(title: str, form: str = "~g") -> Spec:
    return {"title": title, "format": form, "tickCount": "@ticks"}


def told(name: str, title: str) -> Spec:
    return {"field": name, "title": title, "type": "nominal"}
