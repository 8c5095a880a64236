"""Charts say what their records say: which mark is where, in what colour, and what is written beside
it.
"""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from measured import RECORDS, measured, records_of, stopped
from rows import Row, abridged, each_row
from workbench import ran

from harness.common.errors import Refusal
from harness.plot import KINDS, draw
from harness.records.file import read_records
from harness.results.charts import ACCENT, GREY, save_figure, svg_of

COLOURS = {ACCENT: "accented", GREY: "grey"}
LONG = "a name of two hundred letters " * 7


def facts_of(figure: Figure) -> str:
    """What a reader sees, one fact a line: words, names, each mark with its place, and keys."""
    facts = [text.get_text() for text in figure.texts if text.get_text()]

    for axes in figure.axes:
        facts.append(f"-- {axes.get_title(loc='left')}")
        facts.append(f"x {axes.get_xlabel()}")
        facts.append(f"y {axes.get_ylabel()}")
        facts += marks_of(axes)
        for text in axes.texts:
            strong = "strong" if text.get_fontweight() == "bold" else "plain"
            facts.append(f"beside: {text.get_text()}, {strong}")
        legend = axes.get_legend()
        for entry in [] if legend is None else legend.get_texts():
            facts.append(f"key: {entry.get_text()}")
    return "".join(f"{fact.rstrip()}\n" for fact in facts)


def marks_of(axes: Axes) -> list[str]:
    """Each circle or arrow with its place, each line with its points, the shares of each bar."""
    facts, points, caps, bars = list[str](), list[Line2D](), list[Line2D](), list[str]()
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            points.append(container[0])
            caps += container[1]
        else:
            shares = ", ".join(f"{bar.get_width():.3g}" for bar in container)
            bars.append(f"{container.get_label()}: {shares}")

    for line in axes.lines:
        colour = COLOURS.get(str(line.get_color()), "of its own colour")
        place = "; ".join(f"{x:.4g}, {y:.4g}" for x, y in np.asarray(line.get_xydata()))
        kind = "line"
        if line in points:
            kind = "arrow" if line.get_marker() == "" else "circle"
        if line not in caps:
            facts.append(f"{kind} at {place}, {colour}")
    facts += bars
    if axes.get_yscale() == "linear" and not axes.get_ylabel():
        names = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
        facts.append(f"names: {'; '.join(filter(None, names))}")
    return facts


@each_row(__file__, "charts.toml")
def test_chart_shows_the_facts_of_its_row(row: Row) -> None:
    figure = draw(records_of(row["mine"]), row["kind"], value=row.get("value", "total"))
    assert abridged(facts_of(figure), row["shows"]) == row["shows"]


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
        titles = [child for child in axes.get_children() if isinstance(child, Text)]
        texts += [*titles, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        legend = axes.get_legend()
        texts += [] if legend is None else legend.get_texts()
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high and tick.label1.get_visible():
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
    if kind == "phases":  # panels of one row and of two far apart beside those of many
        records += [measured("flat", 1.0, data="tale"), measured("naive", 900.0, data="tale")]
        records.append(measured("flat", 1e-4, data="novel"))
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


@pytest.mark.parametrize("kind", ["phases", "dots"])
def test_hostile_names_are_text(kind: str) -> None:
    bad = "a\x1b[\u202e</text>$x$&\x00"
    records = [
        measured(bad, {"max": 1.0, "update": 2.0}, data=bad),
        measured("heap", 2.0, data=bad),
        stopped("naive", 3.0, data=bad, reason=bad),
    ]
    svg = svg_of(draw(records, kind))
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert "a\\x1b[\\u202e</text>$x$&\\x00" in text
    assert not {"\x1b", "\u202e", "\x00"} & set(svg)


# Files


def test_svg_has_every_word_of_a_chart() -> None:
    figure = draw([measured("naive", 10.0), measured("heap", 1.0)], "dots")
    root, name = ElementTree.fromstring(svg_of(figure)), "{http://www.w3.org/2000/svg}"
    words = {text.text for text in root.iter(f"{name}text")}
    title = "heap: 1 s, 10 times as fast as naive"
    assert {title, "naive", "heap", "1 s", "10 s, × 10"} <= words
    assert root[0].text == title, "readers who see nothing hear it"


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


def test_no_backend_or_setting_of_matplotlib_changes_a_chart(tmp_path: Path) -> None:
    """And a chart leaves the environment as it was: what a program starts later draws with its own
    backend.
    """
    settings = tmp_path / "matplotlibrc"
    settings.write_text(
        "text.usetex: True\naxes.grid: True\nfont.size: 30\nfigure.facecolor: red\n"
    )
    theirs = {"MPLBACKEND": "module://no_such_backend", "MATPLOTLIBRC": str(settings)}
    code = (
        "import os, sys; from harness.plot import main; before = dict(os.environ)\n"
        "assert main(sys.argv[1:]) == 0 and dict(os.environ) == before"
    )
    charts = []
    for name, variables in (("plain.svg", {}), ("theirs.svg", theirs)):
        line = [str(RECORDS / "sweep.jsonl"), "--output", name]
        ran(tmp_path, "-c", code, *line, variables=variables, check=True)
        charts.append((tmp_path / name).read_text())
    assert charts[0] == charts[1]
