"""Charts say what their records say: which mark is where, in what colour, and what is written beside
it.
"""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text
from measured import measured, stopped, wrong
from shown import RECORDS, SWEEP, expected

from harness.common import registry
from harness.common.errors import Refusal
from harness.plot import draw
from harness.records.file import Record, read_records
from harness.results.canvas import look_of, save, svg_of
from harness.results.charts import KINDS, PHASE_COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEER = "peer_huggingface"
LONG = "a name of two hundred letters " * 7


def colours_of(figure: Figure, name: str) -> set[str]:
    """The colours of all marks of a trainer, known by what a reader sees who points at one."""
    found = set()
    for axes in figure.axes:
        lines = [(line.get_gid(), line.get_color()) for line in axes.lines]
        bars = [(bar.get_gid(), bar.get_facecolor()) for bar in axes.patches]
        for text, colour in (*lines, *bars):
            if re.search(rf"\b{name}\b", str(text)):
                found.add(to_hex(colour))
    return found


def words_of(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def facts_of(figure: Figure) -> str:
    """What a reader sees, one fact a line: words, names, each mark with its place, and keys."""
    facts = [words_of(figure)]
    for axes in figure.axes:
        facts.append(f"-- {axes.get_title(loc='left')}")
        facts.append(f"x {axes.get_xscale()}: {axes.get_xlabel()}")
        facts.append(f"y {axes.get_yscale()}: {axes.get_ylabel()}")
        for label in axes.get_yticklabels() if axes.get_yscale() == "linear" else []:
            facts.append(f"{label.get_text()}, {label.get_fontweight()}")
        for mark in (*axes.patches, *axes.lines):
            if mark.get_gid():
                facts.append(f"{mark.get_gid()} at {place_of(mark)}")
        facts += [f"beside: {text.get_text()}" for text in axes.texts if text.get_text()]
        for legend in (axes.get_legend(), *figure.legends):
            for entry in [] if legend is None else legend.get_texts():
                facts.append(f"key: {entry.get_text()}")
    return "".join(f"{fact.rstrip()}\n" for fact in facts)


def place_of(mark: Any) -> str:
    """The place of a marker, or where a bar begins and ends."""
    if isinstance(mark, Line2D):
        x, y = np.asarray(mark.get_xydata())[0]
        return f"{x:g}, {y:g}"
    place = f"{mark.get_x():.4g} to {mark.get_x() + mark.get_width():.4g}"
    for phase, colour in PHASE_COLOURS.items():
        if to_hex(mark.get_facecolor()) == colour:
            place += f", in the colour of {phase}"
    return place


# What each kind shows

ESTIMATE = {"total_seconds": 29.0, "low_seconds": 20.0, "high_seconds": 40.0}
TEXTS = ("tale", "novel", "poem")
TRAINERS = ("naive", "incremental", "heap", "flat")
SIZES = (1000, 2000, 4000, 8000)
JUMPS = [measured("heap", (1.0, 9.0)[index % 2], size=size) for index, size in enumerate(SIZES)]
PHASES = measured("naive", {"max": 1.0, "update": 9.0})
MEMORY = [measured("heap", 1.0, size=size, peak_rss_bytes=1000 * size) for size in SIZES[:2]]
SLOW = stopped("naive", 60.0)
STOPPED = stopped("naive", 5.0, extrapolated=ESTIMATE)
CASES: dict[str, tuple[str, list[Record]]] = {
    "phases": (
        "phases",
        [PHASES, measured("heap", {"max": 0.1, "update": 0.9}), stopped("slow", 60.0)],
    ),
    "phases_far_apart": ("phases", [PHASES, measured("flat", {"max": 0.05, "update": 0.05})]),
    "phases_of_tasks": (
        "phases",
        [measured(name, 1.0, size=size) for size in SIZES[:2] for name in ("a", "b")],
    ),
    "race": ("race", [measured(PEER, 10.0), measured("flat", 2.0), SLOW, wrong("heap")]),
    "race_of_bars": ("race", [measured("flat", 1.0), measured("heap", 10.0), STOPPED]),
    "race_too_far_for_bars": ("race", [measured("flat", 0.9), measured("heap", 10.0), STOPPED]),
    "dots_by_threads": (
        "dots",
        [measured(PEER, 10.0), measured("flat", 2.0), measured("flat", 1.0, threads=2), SLOW],
    ),
    "dots_by_text": (
        "dots",
        [measured(name, 1.0, data=text) for text in TEXTS for name in TRAINERS[2:]],
    ),
    "dots_by_trainer": (
        "dots",
        [measured(name, 1.0, data=text) for text in TEXTS for name in TRAINERS],
    ),
    "sizes_with_a_law": (
        "size",
        [
            *(measured("naive", (size / 1000) ** 2, size=size) for size in SIZES),
            *JUMPS,
            stopped("naive", 60.0, size=16000, extrapolated={**ESTIMATE, "total_seconds": 300.0}),
        ],
    ),
    "sizes_without_a_law": ("size", JUMPS),
    "threads_with_their_gain": (
        "threads",
        [measured("heap", 4.0 / width, threads=width) for width in (1, 2, 4)],
    ),
    "memory_of_sizes": ("size", MEMORY),
    "memory_of_texts": ("dots", MEMORY),
}


@pytest.mark.parametrize("name", CASES)
def test_a_chart_shows_the_facts_in_its_file(name: str) -> None:
    kind, records = CASES[name]
    value = "memory" if name.startswith("memory") else "total"
    assert facts_of(draw(records, kind, value=value)) == expected(f"chart_{name}")


# What all kinds share


def test_a_trainer_has_one_colour_in_every_chart() -> None:
    apart = [measured("flat", 1.0), measured("naive", 100.0)]
    close = [measured("flat", 1.0), measured("naive", 2.0)]
    texts = [measured(name, 1.0, data=text) for text in TEXTS for name in ("flat", "heap")]
    sizes = [measured("flat", float(size), size=size) for size in (1, 2)]
    figures = [draw(records, kind) for records in (apart, close) for kind in ("race", "profile")]
    figures += [draw(close, "dots"), draw(texts, "dots"), draw(sizes, "size"), draw(apart)]
    for figure in figures:
        assert colours_of(figure, "flat") - {*PHASE_COLOURS.values()} == {look_of("flat").colour}


def test_no_two_variants_look_alike() -> None:
    names = list(registry.variants())
    assert len({look_of(name) for name in names}) == len(names)
    assert look_of("nobody knows") == look_of("nobody knows")


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
    for seconds, name in enumerate((LONG, "flat", "x" * 200), 1):
        for grown in GROWN.get(kind, [{}]):
            records.append(measured(name, 3.0 * seconds, **{"data": LONG, **grown}))
    figure = draw(records, kind)
    figure.draw_without_rendering()

    boxes = [text.get_window_extent() for text in texts_of(figure)]
    assert len(boxes) > 5
    for box in boxes:
        assert box.x0 >= figure.bbox.x0
        assert box.x1 <= figure.bbox.x1
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-2).overlaps(other.padded(-2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["forms", "counting"])
def test_whatever_the_records_are_there_is_a_chart_or_a_sentence(kind: str, name: str) -> None:
    try:
        svg = svg_of(draw(read_records([RECORDS / f"{name}.jsonl"]), kind))
    except Refusal:
        return
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


def test_every_word_of_a_chart_is_in_its_svg() -> None:
    figure = draw([measured("naive", 10.0), measured("heap", 1.0)], "race")
    root, name = ElementTree.fromstring(svg_of(figure)), "{http://www.w3.org/2000/svg}"
    words = [text.text or "" for text in root.iter(f"{name}text")]
    expected = {*words_of(figure).splitlines(), "naive", "heap", "1.00 s", "10.0 s, × 10.0"}
    assert expected - {""} <= set(words)
    assert {"naive: 10.0 s", "heap: 1.00 s"} <= {title.text for title in root.iter(f"{name}title")}


def test_files_are_the_same_bytes_follow_the_readers_theme_and_have_no_date(tmp_path: Path) -> None:
    def saved(name: str) -> bytes:
        save(draw(SWEEP), tmp_path / name)
        return (tmp_path / name).read_bytes()

    svg = saved("a.svg")
    assert svg == saved("b.svg")
    assert b"<dc:date>" not in svg
    assert b"prefers-color-scheme: dark" in svg
    assert saved("c.PNG").startswith(b"\x89PNG")
    assert saved("d.pdf") == saved("e.pdf")
    assert saved("d.pdf").startswith(b"%PDF")
    assert b'width="432pt"' in svg  # six inches: letters can be read on a phone
