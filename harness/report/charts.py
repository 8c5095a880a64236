"""The charts of a page, each as it is said in Vega-Lite: everything but the rows, which the page's script puts in.

In a specification a text that begins with `@` is put in by the page: `@labels` are the labels of the rows that are
shown, `@ink` a colour of the page's light or dark dress, others what a control of the chart says. A part that `needs`
something is left out where no row that is shown has it: the path to it in a row's figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.encodings import (
    MEASURED,
    NAMES,
    POINT,
    Spec,
    axis_of,
    by_name,
    by_row,
    failures,
    logarithmic,
    shapes,
    told,
)
from harness.report.figures import AXES, Figures

_FEW_SIZES = 6


@dataclass(frozen=True)
class Control:
    """Something that a reader may choose in a chart: for each option its label, and what it puts into which places."""

    label: str
    options: Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Chart:
    """A chart: what it is called and shows, in Vega-Lite; `of_task` if it has one task's rows and not those of all."""

    name: str
    title: str
    about: str
    spec: Spec
    of_task: bool = True
    controls: Sequence[Control] = ()


def charts_of(figures: Figures) -> list[Chart]:
    """Those charts for which the rows have something to show."""
    drawn = [_phases(figures), _totals()]
    if any(figure["ratio"] is not None for figure in figures.rows):
        drawn.insert(0, _ratios())
    if figures.counting_only:
        drawn.append(_throughput())
    elif any(figure["in_both"] for figure in figures.rows):
        drawn.append(_memory())
    if figures.axes:
        drawn.append(_growth(figures))
    if any(figure["curve_merges"] for figure in figures.rows):
        drawn.append(_merging())
    if figures.tallies:
        drawn.append(_work(figures))
    return drawn


def _phases(figures: Figures) -> Chart:
    bars = {
        "needs": ["seconds", 0],
        "transform": [
            {"filter": MEASURED},
            {"flatten": ["phases", "seconds", "texts", "places"]},
            {"calculate": "datum.label + ': ' + datum.phases + ' ' + datum.texts + ' s'", "as": "said"},
        ],
        "mark": {"type": "bar", "stroke": "@page", "strokeWidth": 0.5},
        "encoding": {
            "x": {"field": "seconds", "type": "quantitative", "stack": "@stack", "axis": "@phase_axis"},
            "color": {
                "field": "phases",
                "type": "nominal",
                "scale": {"domain": "@phases", "range": "@phase_colours"},
                "legend": {"orient": "top", "title": None, "columns": "@legend_columns"},
            },
            "order": {"field": "places", "type": "quantitative"},
            "tooltip": [told("label", "row"), told("phases", "phase"), told("texts", "seconds"),
                        told("total_text", "total")],
            "description": {"field": "said"},
        },
    }  # fmt: skip
    shares = ("shares of the total", {"@stack": "normalize", "@phase_axis": axis_of("share of the total", "%")})
    seconds = ("seconds", {"@stack": "zero", "@phase_axis": axis_of("seconds")})
    return Chart(
        "phases",
        "Where the time went",
        "Each row's total by phase. Seconds are what the table says; shares show what short rows are made of.",
        by_row([bars, failures()]),
        controls=[Control("Bars show", [shares, seconds] if figures.far_apart else [seconds, shares])],
    )


def _totals() -> Chart:
    seconds = logarithmic("seconds (log scale)")
    spread = {
        "needs": ["runs", 0],
        "transform": [{"filter": f"{MEASURED} && datum.most > datum.least"}],
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
        "encoding": {
            "x": {"field": "least", **seconds},
            "x2": {"field": "most"},
            "color": by_name(),
        },
    }
    runs = {
        "needs": ["runs", 0],
        "transform": [{"filter": f"{MEASURED} && datum.most > datum.least"}, {"flatten": ["runs"]}],
        "mark": {"type": "tick", "thickness": 1.5, "size": 9, "opacity": 0.75},
        "encoding": {"x": {"field": "runs", **seconds}, "color": by_name()},
    }
    points = {
        "needs": ["total"],
        "transform": [
            {"filter": f"{MEASURED} && isValid(datum.total)"},
            {"calculate": "datum.label + ': total ' + datum.total_text + ' s'", "as": "said"},
        ],
        "mark": POINT,
        "encoding": {
            "x": {"field": "total", **seconds},
            "color": by_name(),
            "shape": shapes(),
            "tooltip": [told("label", "row"), told("total_text", "total, s"), told("range_text", "runs, s"),
                        told("spread_text", "spread"), told("proof", "proof")],
            "description": {"field": "said"},
        },
    }  # fmt: skip
    expected = {
        "needs": ["low"],
        "transform": [
            {"filter": "isValid(datum.low)"},
            {"calculate": "datum.label + ': ' + datum.failure", "as": "said"},
        ],
        "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [4, 3]},
        "encoding": {
            "x": {"field": "low", **seconds},
            "x2": {"field": "high"},
            "color": {"value": "@faint"},
            "tooltip": [told("label", "row"), told("failure", "extrapolated")],
            "description": {"field": "said"},
        },
    }
    about = "The median of each row; ticks are single runs. A dashed line is where an extrapolated total should lie."
    return Chart("totals", "Totals", about, by_row([spread, runs, points, expected, failures("!isValid(datum.low)")]))


def _ratios() -> Chart:
    across = logarithmic("right / left (log scale); over 1 the right is slower", ".3~g")
    known: Spec = {"filter": "isValid(datum.ratio)"}
    alike = {
        "mark": {"type": "tick", "size": 22, "thickness": 1, "color": "@faint"},
        "encoding": {"x": {"datum": 1, **across}},
    }
    doubt = {
        "needs": ["ratio_low"],
        "transform": [{"filter": "isValid(datum.ratio_low)"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": {"field": "ratio_low", **across}, "x2": {"field": "ratio_high"}, "color": by_name()},
    }
    points = {
        "needs": ["ratio"],
        "transform": [known, {"calculate": "datum.label + ': right / left ' + datum.ratio_text", "as": "said"}],
        "mark": POINT,
        "encoding": {
            "x": {"field": "ratio", **across},
            "color": by_name(),
            "shape": shapes(),
            "tooltip": [told("label", "row"), told("ratio_text", "right / left"), told("interval_text", "interval")],
            "description": {"field": "said"},
        },
    }
    about = "How many times the left set's time the right set takes; a line is the interval that holds the ratio."
    return Chart("ratios", "Right against left", about, {**by_row([alike, doubt, points]), "needs": ["ratio"]})


def _throughput() -> Chart:
    points = {
        "needs": ["megabytes"],
        "transform": [
            {"filter": "isValid(datum.megabytes)"},
            {"calculate": "datum.label + ': ' + datum.megabytes_text + ' MB/s'", "as": "said"},
        ],
        "mark": POINT,
        "encoding": {
            "x": {"field": "megabytes", **logarithmic("MB per second (log scale)")},
            "color": by_name(),
            "shape": shapes(),
            "tooltip": [told("label", "row"), told("megabytes_text", "MB/s"), told("total_text", "total, s")],
            "description": {"field": "said"},
        },
    }
    return Chart(
        "throughput", "Throughput", "Bytes of the corpus by the median of the totals.", by_row([points, failures()])
    )


def _memory() -> Chart:
    across = {"field": "total", **logarithmic("seconds (log scale)")}
    up = {"field": "bytes_of_memory", **logarithmic("peak memory, bytes (log scale)", ".3~s")}
    shown = {"filter": f"{MEASURED} && isValid(datum.total) && isValid(datum.bytes_of_memory)"}
    front = {
        "transform": [shown, {"filter": "datum.front"}],
        "mark": {"type": "line", "interpolate": "step-after", "strokeDash": [3, 3], "color": "@faint"},
        "encoding": {"x": across, "y": up},
    }
    said = "datum.label + ': ' + datum.total_text + ' s, ' + datum.memory_text"
    points = {
        "transform": [shown, {"calculate": said, "as": "said"}],
        "mark": POINT,
        "encoding": {
            "x": across,
            "y": up,
            "color": by_name(NAMES),
            "shape": shapes(NAMES),
            "tooltip": [told("label", "row"), told("total_text", "total, s"), told("memory_text", "memory")],
            "description": {"field": "said"},
        },
    }
    about = "On the dashed line are the confirmed rows that no other of the same machine beats in both."
    return Chart(
        "memory", "Time against memory", about, {"needs": ["in_both"], "height": 340, "layer": [front, points]}
    )


def _growth(figures: Figures) -> Chart:
    options: list[tuple[str, Mapping[str, Any]]] = [
        (AXES[axis].label, {"@axis": axis, "@size_axis": _size_axis(figures, axis), "@size_title": AXES[axis].title})
        for axis in figures.axes
    ]
    shared = [
        {"calculate": "datum.sizes[@axis]", "as": "size"},
        {"calculate": "datum.lines[@axis]", "as": "line"},
        {"calculate": "datum.exponents[@axis]", "as": "exponent"},
        {"filter": f"{MEASURED} && isValid(datum.line) && isValid(datum.total)"},
        {"calculate": "datum.line + ': ' + datum.total_text + ' s at ' + format(datum.size, ',')", "as": "said"},
    ]
    encoding = {
        "x": {"field": "size", **logarithmic("", "~s"), "axis": "@size_axis"},
        "y": {"field": "total", **logarithmic("seconds (log scale)")},
        "color": by_name(NAMES),
        "detail": {"field": "line"},
    }
    line = {"mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.75}, "encoding": encoding}
    points = {
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
        "encoding": {
            **encoding,
            "shape": shapes(NAMES),
            "tooltip": [told("line", "row"), {"field": "size", "title": "@size_title", "format": ","},
                        told("total_text", "total, s"), told("exponent", "exponent")],
            "description": {"field": "said"},
        },
    }  # fmt: skip
    return Chart(
        "growth",
        "Growth",
        "Totals of cells that differ in one size alone; the exponent is the slope of the straight line through them.",
        {"needs": ["lines", "@axis"], "height": 340, "transform": shared, "layer": [line, points]},
        of_task=False,
        controls=[Control("Against", options)],
    )


def _size_axis(figures: Figures, axis: int) -> Spec:
    """With a tick for each size where there are few of them: there is no third of a thread."""
    sizes = sorted({row["sizes"][axis] for row in figures.rows if row["lines"][axis] is not None})
    ticks = {"values": sizes} if len(sizes) <= _FEW_SIZES else {}
    return {**axis_of(f"{AXES[axis].title} (log scale)", ".4~s"), "labelOverlap": "greedy", **ticks}


def _merging() -> Chart:
    curve = {
        "needs": ["curve_merges", 0],
        "height": 340,
        "transform": [
            {"filter": MEASURED},
            {"flatten": ["curve_merges", "curve_seconds"]},
            {"filter": "datum.curve_seconds > 0 && datum.curve_merges > 0"},
            {"calculate": "format(datum.curve_seconds, '.3~g')", "as": "spent"},
            {"calculate": "datum.label + ': ' + datum.spent + ' s after merge ' + format(datum.curve_merges, ',')",
             "as": "said"},
        ],
        "encoding": {
            "x": {"field": "curve_merges", **logarithmic("merges made (log scale)", ",")},
            "y": {"field": "curve_seconds", **logarithmic("seconds of training so far (log scale)")},
            "color": by_name(NAMES),
            "detail": {"field": "label"},
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.75}},
            {
                "mark": {"type": "point", "filled": True, "size": 16, "opacity": 0.9},
                "encoding": {
                    "tooltip": [told("label", "row"), {"field": "curve_merges", "title": "merges", "format": ","},
                                told("spent", "seconds so far")],
                    "description": {"field": "said"},
                },
            },
        ],
    }  # fmt: skip
    about = (
        "Seconds of training, counting left out, after so many merges: a steep end is a stage that pays for each merge."
    )
    return Chart("merging", "While it merges", about, curve)


def _work(figures: Figures) -> Chart:
    options: list[tuple[str, Mapping[str, Any]]] = [
        (name.replace("_", " "), {"@tally": place}) for place, name in enumerate(figures.tallies)
    ]
    points = {
        "needs": ["work", "@tally"],
        "transform": [
            {"calculate": "datum.work[@tally]", "as": "number"},
            {"filter": f"{MEASURED} && datum.number > 0"},
            {"calculate": "datum.label + ': ' + format(datum.number, ',')", "as": "said"},
        ],
        "mark": POINT,
        "encoding": {
            "x": {"field": "number", **logarithmic("how often (log scale)", ".3~s")},
            "color": by_name(),
            "shape": shapes(),
            "tooltip": [told("label", "row"), {"field": "number", "title": "times", "format": ","}],
            "description": {"field": "said"},
        },
    }
    about = "Deterministic counts: equal on every machine, so they say why one row is faster than another."
    return Chart("work", "Work", about, by_row([points]), controls=[Control("Count of", options)])
