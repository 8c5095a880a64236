"""A chart is decided once: matplotlib and a page's Vega-Lite have the same marks at the same places."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.text
import numpy as np
import pytest
from matplotlib.patches import Rectangle
from measured import Record, measured, stopped

from harness.common.errors import Refusal
from harness.results.charts.chart import Bar, Chart, Panel, Point, Request, Text
from harness.results.charts.kinds import KINDS
from harness.results.charts.layout import figure_of
from harness.results.charts.values import ESTIMATED, PROVED
from harness.results.charts.vega import view_of
from harness.results.colours import DARK, LIGHT
from harness.results.rows import Row, rows

OF_KIND: dict[str, dict[str, Any]] = {
    "size": {"size": 2_000_000},
    "vocabulary": {"vocab_size": 500},
    "threads": {"threads": 2},
}


def records(kind: str) -> list[Record]:
    """Two programs in two blocks, and what else this kind needs."""
    more = {"tallies": {"pair_updates": 10}, "peak_rss_bytes": 30_000_000}
    made = [
        {**measured(name, {"count": 0.5, "max": seconds, "update": seconds}), **more, "block": block}
        for name, seconds in (("naive", 40.0), ("heap", 0.3))
        for block in range(2)
    ]
    return made + ([measured("naive", 2.0, **OF_KIND[kind])] if kind in OF_KIND else [])


def described(kind: str) -> tuple[list[Row], Chart]:
    shown = rows(records(kind))
    return shown, KINDS[kind].describe(shown, Request())


def marks_of_page(panel: Panel, shown: list[Row], shape: str) -> list[dict[str, Any]]:
    """The marks of a shape as a page gets them, by the names of their values."""
    view = view_of([panel], {id(row): place for place, row in enumerate(shown)})
    view = json.loads(json.dumps(view))
    return [
        dict(zip(layer["fields"], mark, strict=True))
        for layer in view["layers"]
        if layer["spec"]["mark"]["type"] == shape
        for mark in layer["marks"]
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "race"])
def test_a_picture_and_a_page_have_each_figure_at_the_same_place(kind: str) -> None:
    shown, chart = described(kind)
    figure = figure_of(chart)
    drawn = {artist.get_gid(): artist for axes in figure.axes for artist in axes.lines}
    compared = 0
    for panel in chart.panels:
        points = marks_of_page(panel, shown, "point")
        mine = [mark for mark in panel.marks if isinstance(mark, Point) and mark.name]
        assert {mark.form for mark in mine} <= {*PROVED, ESTIMATED}
        for mark, point in zip(mine, points, strict=True):
            artist = drawn[f"value-{mark.name}"]
            assert point["x"] == pytest.approx(np.asarray(artist.get_xdata())[0])
            assert shown[point["of"]] is mark.row
            if "y" in point:
                assert point["y"] == pytest.approx(np.asarray(artist.get_ydata())[0])
            compared += 1
    for panel in chart.panels:
        for bar in marks_of_page(panel, shown, "bar"):
            assert bar["x2"] - bar["x"] <= 1 + 1e-9 or panel.view == "seconds"
            compared += 1
    assert compared >= 1


def test_bars_of_a_page_are_those_of_the_picture() -> None:
    shown, chart = described("phases")
    panel, axes = chart.panels[-1], figure_of(chart).axes[-1]
    drawn = sorted((patch.get_x(), patch.get_width()) for patch in axes.patches if isinstance(patch, Rectangle))
    bars = sorted((bar["x"], bar["x2"] - bar["x"]) for bar in marks_of_page(panel, shown, "bar"))
    assert len(drawn) == len(bars) == 6
    assert [number for bar in bars for number in bar] == pytest.approx([number for bar in drawn for number in bar])


def test_a_race_is_sorted_and_its_bars_are_the_totals() -> None:
    _, chart = described("race")
    (panel,) = chart.panels
    assert panel.y == ["heap", "naive"]
    assert [mark.end for mark in panel.marks if isinstance(mark, Bar)] == pytest.approx([1.1, 80.5])
    assert [mark.text for mark in panel.marks if isinstance(mark, Text)] == ["1.1 s", "80 s  ×73.2"]
    (axes,) = figure_of(chart).axes
    ends = [patch.get_x() + patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert ends == pytest.approx([1.1, 80.5])


def test_a_race_of_records_that_say_little_of_themselves_has_a_caption() -> None:
    bare = {**measured("heap", {"count": 0.1, "update": 1.0}), "started": None, "environment": {}, "vocab_size": None}
    chart = KINDS["race"].describe(rows([bare]), Request())
    assert chart.caption
    assert figure_of(chart).axes


@pytest.mark.parametrize(
    "kind",
    ["race", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "race")],
)
def test_long_names_leave_room_for_everything_on_the_page(kind: str) -> None:
    longest = "a_laboratory_of_ours.training_algorithms.from_words:train_from_weighted_words"
    made = [record | ({"variant": longest} if record["variant"] == "naive" else {}) for record in records(kind)]
    figure = figure_of(KINDS[kind].describe(rows(made), Request()))
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]
    boxes = {text.get_text(): text.get_window_extent() for text in texts}
    assert [text for text, box in boxes.items() if box.x0 < -1 or box.x1 > figure.bbox.width + 1] == []


def test_what_was_asked_different_things_is_no_race() -> None:
    shown = rows([*records("race"), measured("heap", 2.0, vocab_size=500)])
    with pytest.raises(
        Refusal, match=r"one corpus and one vocabulary.* unlike in vocab size; .* --where vocab_size=\d+$"
    ):
        KINDS["race"].describe(shown, Request())
    asked_otherwise: list[tuple[str, dict[str, Any]]] = [
        ("host", {"host": "another"}),
        ("special tokens", {"special_tokens": ["<|end|>"]}),
    ]
    for name, change in asked_otherwise:
        with pytest.raises(Refusal, match=f"unlike in {name}; choose, such as --where "):
            KINDS["race"].describe(rows([*records("race"), measured("heap", 2.0, **change)]), Request())


def test_dots_explain_the_marks_that_they_have() -> None:
    told = {"total_seconds": 180.0, "low_seconds": 120.0, "high_seconds": 300.0}
    marks = {
        "A ring on a broken line": stopped("late", 60.0, extrapolated=told),
        "An arrow": stopped("later", 60.0),
    }
    for asked, late in marks.items():
        notes = KINDS["dots"].describe(rows([measured("heap", 2.0), late]), Request()).notes
        assert [mark for mark in marks if any(note.startswith(mark) for note in notes)] == [asked]


def test_what_a_page_says_of_a_mark_names_its_own_figures() -> None:
    """Words are templates: a name that no figure has would be read out as nothing."""
    for kind in KINDS:
        _, chart = described(kind)
        for panel in chart.panels:
            for mark in panel.marks:
                mark.words.replace("{x}", "").replace("{y}", "").format(**dict.fromkeys(mark.figures, ""))


def test_a_description_knows_no_theme_and_what_failed_is_named_in_its_line() -> None:
    _, chart = described("ladder")
    light, dark = (figure_of(chart, theme) for theme in (LIGHT, DARK))
    assert light.get_facecolor() != dark.get_facecolor()
    skipped = measured("gone", {}, status="skipped", reason="it is away", seconds={}, merges=None)
    shown = rows([*records("phases"), skipped])
    chart = KINDS["phases"].describe(shown, Request())
    (text,) = [mark for mark in chart.panels[-1].marks if isinstance(mark, Text) and mark.outcome]
    (outcome,) = marks_of_page(chart.panels[-1], shown, "text")
    assert text.text == outcome["outcome"] == "skipped: it is away"
    assert shown[outcome["of"]].name == "gone"
