"""Charts say what their records say: which mark is where, in what colour, and what is written beside
it.
"""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation, Text
from measured import measured, stopped, wrong
from shown import RECORDS, SWEEP

from harness.common import registry
from harness.common.errors import Refusal
from harness.plot import draw
from harness.records.file import read_records
from harness.results.canvas import look_of, save, svg_of
from harness.results.charts import KINDS, PHASE_COLOURS
from harness.results.claim import is_ours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PEER = next(name for name in ("peer_huggingface", "peer_tiktoken") if not is_ours(name))
LONG = "a name of two hundred letters " * 7


def names_of(axes: Axes) -> list[str]:
    """The names of the lines, from above."""
    return [label.get_text().replace("\n", "") for label in axes.get_yticklabels()]


def beside(axes: Axes) -> list[str]:
    """What is written at the marks, from above."""
    found = [text for text in axes.texts if isinstance(text, Annotation)]
    return [text.get_text() for text in sorted(found, key=lambda text: text.xy[1])]


def points_of(axes: Axes) -> list[tuple[float, float]]:
    """Where the markers are, x and y."""
    lines = [line for line in axes.lines if line.get_gid()]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines]  # type: ignore[index, arg-type]


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


def key_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def entries_of(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def words_of(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def title_of(figure: Figure) -> str:
    return figure.texts[0].get_text().replace("\n", " ")


# What each kind shows

ESTIMATE = {"total_seconds": 29.0, "low_seconds": 20.0, "high_seconds": 40.0}
TEXTS = ("tale", "novel", "poem")
TRAINERS = ("naive", "incremental", "heap", "flat")
SIZES = (1000, 2000, 4000, 8000)
SQUARE = [measured("naive", (size / 1000) ** 2, size=size) for size in SIZES]
JUMPS = [measured("heap", (1.0, 9.0)[index % 2], size=size) for index, size in enumerate(SIZES)]


def test_phases_are_stacked_in_seconds_with_the_total_at_each_bar() -> None:
    records = [
        measured("naive", {"max": 1.0, "update": 9.0}),
        measured("heap", {"max": 0.1, "update": 0.9}),
        stopped("slow", 60.0),
    ]
    figure = draw(records)
    (axes,) = figure.axes
    bars = [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor())) for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == [
        (0.0, 1.0, PHASE_COLOURS["max"]),
        (1.0, 9.0, PHASE_COLOURS["update"]),
        (0.0, 0.1, PHASE_COLOURS["max"]),
        (0.1, 0.9, PHASE_COLOURS["update"]),
    ]
    assert names_of(axes) == ["naive", "heap", "slow"]
    assert beside(axes) == ["10.0 s", "1.00 s", ">60 s (stopped)"]
    assert title_of(figure) == "heap: 1.00 s, 10.0 times as fast as naive"
    assert axes.get_xscale() == "linear"


def test_times_too_far_apart_for_bars_are_dots_beside_the_shares_of_their_phases() -> None:
    naive = measured("naive", {"max": 10.0, "update": 90.0})
    totals, shares = draw([naive, measured("flat", {"max": 0.5, "update": 0.5})]).axes
    assert totals.get_xscale() == "log"
    assert points_of(totals) == [(100.0, 0.0), (1.0, 1.0)]
    assert beside(totals) == ["100 s", "1.00 s"]
    widths = [bar.get_width() for bar in shares.patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([10.0, 90.0, 50.0, 50.0])


def test_each_task_has_a_panel() -> None:
    records = [measured(name, 1.0, size=size) for size in (1000, 2000) for name in ("a", "b")]
    titles = [axes.get_title(loc="left") for axes in draw(records).axes]
    assert titles == ["stdlib (Python), 1.00 kB", "stdlib (Python), 2.00 kB"]


def test_a_race_is_sorted_with_how_many_times_the_first_ones_time_each_takes() -> None:
    records = [measured(PEER, 10.0), measured("flat", 2.0), stopped("naive", 50.0), wrong("heap")]
    figure = draw(records, "race")
    (axes,) = figure.axes
    assert names_of(axes) == ["flat", PEER, "naive"]
    assert beside(axes) == ["2.00 s", "10.0 s, × 5.00", ">50 s, >× 25.0"]
    assert title_of(figure) == f"flat: 2.00 s, 5.00 times as fast as {PEER}"
    assert ">: stopped; it takes longer." in words_of(figure)
    assert "heap: wrong merges" in words_of(figure)
    weights = [label.get_fontweight() for label in axes.get_yticklabels()]
    assert weights == ["bold", "normal", "bold"]


@pytest.mark.parametrize(("fastest", "scale"), [(1.0, "linear"), (0.9, "log")])
def test_a_bar_is_as_long_as_its_seconds_or_the_axis_is_logarithmic(
    fastest: float, scale: str
) -> None:
    slow = stopped("naive", 5.0, extrapolated=ESTIMATE)
    (axes,) = draw([measured("flat", fastest), measured("heap", 10.0), slow], "race").axes
    assert axes.get_xscale() == scale
    bars = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == ([1.0, 10.0, 29.0] if scale == "linear" else [])
    if scale == "log":
        assert points_of(axes) == [(0.9, 0.0), (10.0, 1.0), (29.0, 2.0)]


def test_dots_of_one_text_are_trainers_with_a_dot_for_each_number_of_threads() -> None:
    flat = [measured("flat", 2.0), measured("flat", 1.0, threads=2)]
    figure = draw([measured(PEER, 10.0), *flat, stopped("naive", 60.0)], "dots")
    (axes,) = figure.axes
    assert names_of(axes) == ["flat", PEER, "naive"]
    assert sorted(points_of(axes)) == [(1.0, 0.0), (2.0, 0.0), (10.0, 1.0), (60.0, 2.0)]
    assert beside(axes) == ["2.00 s", "10.0 s, × 5.00", ">60 s, >× 30.0"]
    assert key_of(figure) == ["1 thread", "2 threads"]


def test_dots_of_several_texts_are_lines_of_what_there_is_more_of() -> None:
    few = draw([measured(name, 1.0, data=text) for text in TEXTS for name in TRAINERS[2:]], "dots")
    assert [name.partition(",")[0] for name in names_of(few.axes[0])] == list(TEXTS)
    assert key_of(few) == ["heap", "flat"]
    many = draw([measured(name, 1.0, data=text) for text in TEXTS for name in TRAINERS], "dots")
    assert names_of(many.axes[0]) == list(TRAINERS)
    assert len(key_of(many)) == len(TEXTS)


def test_sizes_have_a_line_and_a_footnote_only_if_points_follow_a_power_law() -> None:
    slow = stopped("naive", 60.0, size=16000, extrapolated={**ESTIMATE, "total_seconds": 300.0})
    figure = draw([*SQUARE, *JUMPS, slow], "size")
    (axes,) = figure.axes
    assert entries_of(axes) == ["naive n^2.00", "heap"]
    assert {(8000.0, 64.0), (16000.0, 300.0), (2000.0, 9.0)} <= set(points_of(axes))
    assert "n^x and its dashed line: the power law" in words_of(figure)
    assert "power law" not in words_of(draw(JUMPS, "size"))


def test_dots_and_lines_show_memory_as_well() -> None:
    records = [measured("heap", 1.0, size=size, peak_rss_bytes=1000 * size) for size in SIZES[:2]]
    (axes,) = draw(records, "size", value="memory").axes
    assert points_of(axes) == [(1000.0, 1e6), (2000.0, 2e6)]
    assert axes.get_ylabel() == "peak memory (log scale)"
    assert draw(records, "dots", value="memory").axes[0].get_xlabel() == "peak memory (log scale)"


def test_threads_have_their_gain() -> None:
    records = [measured("heap", 4.0 / width, threads=width) for width in (1, 2, 4)]
    assert entries_of(draw(records, "threads").axes[0]) == ["heap 4.00 × with 4"]


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
