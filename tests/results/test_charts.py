"""Charts say what their records say: which mark is where, in what colour, and what is written beside
it.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text
from measured import RECORDS, measured, records_of, stopped
from rows import rows_beside

from harness.common import registry
from harness.common.errors import Refusal
from harness.plot import draw
from harness.records.file import read_records
from harness.results.canvas import look_of, save_figure, svg_of
from harness.results.charts import KINDS, PHASE_COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {**{name: look_of(name).colour for name in registry.variants()}, **PHASE_COLOURS}
LONG = "a name of two hundred letters " * 7


def facts_of(figure: Figure) -> str:
    """What a reader sees, one fact a line: words, names, each mark with its place, and keys."""
    facts = ["\n".join(text.get_text() for text in figure.texts)]

    for axes in figure.axes:
        facts.append(f"-- {axes.get_title(loc='left')}")
        facts.append(f"x {axes.get_xscale()}: {axes.get_xlabel()}")
        facts.append(f"y {axes.get_yscale()}: {axes.get_ylabel()}")
        for label in axes.get_yticklabels() if axes.get_yscale() == "linear" else []:
            facts.append(f"{label.get_text()}, {label.get_fontweight()}")
        for mark in (*axes.patches, *axes.lines):
            if mark.get_gid():
                facts.append(f"{mark.get_gid()} at {place_of(mark)}{colour_of(mark)}")
        facts += [f"beside: {text.get_text()}" for text in axes.texts if text.get_text()]
        for legend in (axes.get_legend(), *figure.legends):
            for entry in [] if legend is None else legend.get_texts():
                facts.append(f"key: {entry.get_text()}")
    return "".join(f"{fact.rstrip()}\n" for fact in facts)


def place_of(mark: Any) -> str:
    """The points of a line, or where a bar begins and ends."""
    if isinstance(mark, Line2D):
        points = np.asarray(mark.get_xydata())
        return "; ".join(f"{x:.4g}, {y:.4g}" for x, y in points)
    return f"{mark.get_x():.4g} to {mark.get_x() + mark.get_width():.4g}"


def colour_of(mark: Any) -> str:
    """The trainer or the phase whose colour a mark has that names it."""
    if isinstance(mark, Line2D):
        colour = mark.get_color()
    else:
        colour = mark.get_facecolor() if mark.get_fill() else mark.get_edgecolor()
    for name, of_name in COLOURS.items():
        if of_name == to_hex(colour) and re.search(rf"\b{name}\b", mark.get_gid()):
            return f", in the colour of {name}"
    return ""


@pytest.mark.parametrize("row", rows_beside(__file__, "charts.toml"))
def test_chart_shows_the_facts_of_its_row(row: dict[str, Any]) -> None:
    figure = draw(records_of(row["mine"]), row["kind"], value=row.get("value", "total"))
    assert facts_of(figure) == row["shows"]


def test_no_two_variants_look_alike() -> None:
    names = list(registry.variants())
    assert len({look_of(name) for name in names}) == len(names)


# Whatever the records

GROWN: dict[str, list[dict[str, int]]] = {
    "size": [{"size": 1000}, {"size": 4000}],
    "vocabulary": [{"vocab_size": 1000}, {"vocab_size": 4000}],
    "threads": [{"threads": 1}, {"threads": 2}],
}


def texts_of(figure: Figure) -> list[Text]:
    """Every text that is to be seen."""
    texts: list[Text] = list(figure.texts)
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for legend in (axes.get_legend(), *figure.legends):
            texts += [] if legend is None else legend.get_texts()
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high:
                    texts.append(tick.label1)
    return [text for text in dict.fromkeys(texts) if text.get_text()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_covers_another_or_leaves_the_chart(kind: str) -> None:
    """Whatever the names: 200 letters once ended in an exception of matplotlib."""
    records = []
    names = [LONG, "flat", "x" * 200, *(f"trainer{number}" for number in range(12))]
    for seconds, name in enumerate(names, 1):
        for grown in GROWN.get(kind, [{}]):
            records.append(measured(name, 3.0 * seconds, **{"data": LONG, **grown}))
    figure = draw(records, kind)
    figure.draw_without_rendering()

    boxes = [text.get_window_extent() for text in texts_of(figure)]
    assert len(boxes) > 5
    for box in boxes:
        assert figure.bbox.contains(*box.min)
        assert figure.bbox.contains(*box.max)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-2).overlaps(other.padded(-2))


@pytest.mark.parametrize("kind", KINDS)
def test_any_records_make_a_chart_or_a_sentence(kind: str) -> None:
    for name in ("forms", "counting"):
        try:
            svg = svg_of(draw(read_records([RECORDS / f"{name}.jsonl"]), kind))
        except Refusal:
            continue
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r"<text.*?</text>|<title>.*?</title>", "", svg)


@pytest.mark.parametrize("kind", ["phases", "race", "dots"])
def test_hostile_names_are_text(kind: str) -> None:
    bad = "a\x1b[2J\u202e</text><script>$x^2$&\x00"
    records = [
        measured(bad, {"max": 1.0, "update": 2.0}, data=bad),
        measured("heap", 2.0, data=bad),
        stopped("naive", 3.0, data=bad, reason=bad),
    ]
    svg = svg_of(draw(records, kind))
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert "\\x1b[2J\\u202e</text><script>$x^2$&\\x00" in text
    assert not {"\x1b", "\u202e", "\x00"} & set(svg)


# Files


def test_svg_has_every_word_of_a_chart() -> None:
    figure = draw([measured("naive", 10.0), measured("heap", 1.0)], "race")
    root, name = ElementTree.fromstring(svg_of(figure)), "{http://www.w3.org/2000/svg}"
    words = [text.text or "" for text in root.iter(f"{name}text")]
    written = facts_of(figure).partition("\n--")[0].splitlines()
    expected = {*written, "naive", "heap", "1.00 s", "10.0 s, × 10.0"}
    assert expected - {""} <= set(words)
    assert {"naive: 10.0 s", "heap: 1.00 s"} <= {title.text for title in root.iter(f"{name}title")}


@pytest.mark.slow
def test_equal_charts_are_equal_files_without_a_date(tmp_path: Path) -> None:
    def saved(name: str) -> bytes:
        save_figure(draw([measured("heap", 1.0)]), tmp_path / name)
        return (tmp_path / name).read_bytes()

    svg = saved("a.svg")
    assert svg == saved("b.svg")
    assert b"<dc:date>" not in svg
    assert b"prefers-color-scheme: dark" in svg
    assert b'width="432pt"' in svg, "six inches: letters can be read on a phone"

    assert saved("c.PNG").startswith(b"\x89PNG")
    assert saved("d.pdf") == saved("e.pdf")
    assert saved("d.pdf").startswith(b"%PDF")


def test_no_backend_or_setting_of_matplotlib_changes_a_chart(tmp_path: Path) -> None:
    settings = tmp_path / "matplotlibrc"
    settings.write_text(
        "text.usetex: True\naxes.grid: True\nfont.size: 30\nfigure.facecolor: red\n"
    )
    theirs = {"MPLBACKEND": "module://no_such_backend", "MATPLOTLIBRC": str(settings)}
    charts = []
    for name, variables in (("plain.svg", {}), ("theirs.svg", theirs)):
        command: list[str | Path] = [sys.executable, "-m", "harness.plot", RECORDS / "sweep.jsonl"]
        command += ["--output", tmp_path / name]
        subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True)
        charts.append((tmp_path / name).read_text())
    assert charts[0] == charts[1]
