"""Charts show the figures of their records: one test of marks for each kind; words, colours and
files of all.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from measured import measured, stopped, wrong
from shown import RECORDS, SWEEP

from harness.common import registry
from harness.common.errors import Refusal
from harness.records.file import read_records
from harness.results.charts import PHASES, Bar, Chart, Label, Line, Point, Text, is_ours, look_of
from harness.results.drawing import save, svg_of
from harness.results.rows import rows
from harness.results.scaling import KINDS

Kind = TypeVar("Kind", Bar, Label, Line, Point, Text)
PEER = next(name for name in ("peer_huggingface", "peer_tiktoken") if not is_ours(name))


def drawn(records: Sequence[Any], kind: str) -> Chart:
    return KINDS[kind][1](rows(list(records)))


def marks(made: Chart, kind: type[Kind], panel: int = 0) -> list[Kind]:
    return [mark for mark in made.panels[panel].marks if isinstance(mark, kind)]


def test_phases_are_stacked_in_seconds_with_the_total_at_each_bar() -> None:
    records = [
        measured("naive", {"max": 1.0, "update": 9.0}),
        measured("heap", {"max": 0.1, "update": 0.9}),
    ]
    made = drawn([*records, stopped("slow", 60.0)], "phases")
    assert [(bar.y, bar.start, bar.end, bar.colour) for bar in marks(made, Bar)] == [
        (0, 0.0, 1.0, PHASES["max"]),
        (0, 1.0, 10.0, PHASES["update"]),
        (1, 0.0, 0.1, PHASES["max"]),
        (1, 0.1, 1.0, PHASES["update"]),
    ]
    assert [text.text for text in marks(made, Text)] == ["10.0 s", "1.00 s", ">60 s (stopped)"]
    assert made.title == "heap: 1.00 s, 10.0 times as fast as naive"
    assert not made.panels[0].x.log
    two = drawn(
        [measured(name, 1.0, size=size) for size in (1000, 2000) for name in ("a", "b")], "phases"
    )
    assert [panel.title for panel in two.panels] == [
        "stdlib (Python), 1.00 kB",
        "stdlib (Python), 2.00 kB",
    ]


def test_a_ladder_is_in_the_order_of_the_ladder_on_one_panel_with_each_gain() -> None:
    made = drawn(
        [
            measured("heap", 1.0),
            stopped("incremental", 60.0),
            measured("naive", 10.0),
            wrong("flat"),
        ],
        "ladder",
    )
    (panel,) = made.panels
    assert panel.y == ["naive", "incremental", "heap", "flat"]
    assert [(bar.y, bar.end, bar.open) for bar in marks(made, Bar)][::2] == [
        (0, 10.0, False),
        (2, 1.0, False),
    ]
    assert marks(made, Bar)[1].open
    assert [text.text for text in marks(made, Text)][::3] == ["10.0 s", "wrong at merge 12"]
    assert made.title == "Seconds of each stage"
    total = drawn(
        [measured("heap", {"count": 1.0, "update": 2.0}), measured("naive", 9.0)], "ladder"
    )
    assert [bar.end for bar in marks(total, Bar)] == [9.0, 3.0]


def test_a_race_is_a_linear_bar_chart_with_our_bar_in_colour_and_a_claim_as_its_title() -> None:
    made = drawn(
        [measured(PEER, 10.0), measured("flat", 2.0), stopped("naive", 60.0), wrong("heap")], "race"
    )
    assert made.panels[0].y == ["flat", PEER, "naive"]
    assert [(bar.end, bar.open) for bar in marks(made, Bar)] == [
        (2.0, False),
        (10.0, False),
        (pytest.approx(11.2), True),
    ]
    assert len({bar.colour for bar in marks(made, Bar)}) == 2
    assert made.panels[0].bold == [0]
    assert [text.text for text in marks(made, Text)] == [
        "2.00 s",
        "10.0 s, × 5.00",
        ">60 s, >× 30.0",
    ]
    assert made.title == f"flat: 2.00 s, 5.00 times as fast as {PEER}"
    assert made.notes[0] == "> or arrow: it takes longer."
    assert made.notes[1].startswith("heap: wrong merges")
    assert made.title == drawn([measured(PEER, 10.0), measured("flat", 2.0)], "dots").title
    assert "tied with" in drawn([measured("flat", 2.0), measured(PEER, 2.01)], "race").title


def test_a_board_is_dots_with_our_row_marked_and_the_factor_at_each() -> None:
    records = [
        measured(PEER, 10.0),
        measured("flat", 2.0),
        measured("flat", 1.0, threads=2),
        stopped("naive", 60.0),
    ]
    made = drawn(records, "dots")
    assert made.panels[0].y == ["flat", PEER, "naive"]
    assert sorted((point.y, point.x) for point in marks(made, Point)) == [
        (0, 1.0),
        (0, 2.0),
        (1, 10.0),
        (2, 60.0),
    ]
    assert [text.text for text in marks(made, Text)] == ["2.00 s", "× 5.00", ">× 30.0"]
    assert 0 in made.panels[0].bold
    assert 1 not in made.panels[0].bold
    assert made.panels[0].x.high < 60 * 1.2
    assert [entry.text for entry in made.key] == ["1 thread", "2 threads"]


def test_sizes_have_a_line_only_if_their_points_follow_a_power_law() -> None:
    sizes = (1000, 2000, 4000, 8000)
    square = [measured("naive", (size / 1000) ** 2, size=size) for size in sizes]
    odd = [
        measured("heap", seconds, size=size)
        for size, seconds in zip(sizes, (1.0, 9.0, 1.0, 9.0), strict=True)
    ]
    estimate = {"total_seconds": 300.0, "low_seconds": 200.0, "high_seconds": 400.0}
    made = drawn([*square, *odd, stopped("naive", 60.0, size=16000, extrapolated=estimate)], "size")
    (line,) = marks(made, Line)
    assert [y for _, y in line.points] == pytest.approx([1.0, 256.0])
    assert sorted(label.text for label in marks(made, Label)) == ["heap", "naive n^2.00"]
    assert {(point.x, point.y) for point in marks(made, Point)} >= {
        (8000, 64.0),
        (16000, 300.0),
        (2000, 9.0),
    }
    two = drawn([measured("heap", float(size), size=size) for size in (1, 2)], "size")
    assert marks(two, Line) == []


def test_vocabularies_and_threads_are_axes() -> None:
    made = drawn(
        [measured("heap", size / 1000, vocab_size=size) for size in (1000, 2000, 4000)],
        "vocabulary",
    )
    assert [point.x for point in marks(made, Point)] == [1000, 2000, 4000]
    assert marks(made, Label)[0].text == "heap v^1.00"
    threads = drawn(
        [measured("heap", 4.0 / width, threads=width) for width in (1, 2, 4)], "threads"
    )
    assert marks(threads, Label)[0].text == "heap 4.00 × with 4"


def test_memory_is_against_time_with_the_best_trade_offs() -> None:
    points = (("a", 1.0, 3e7), ("b", 2.0, 2e7), ("c", 3.0, 2.5e7))
    made = drawn(
        [measured(name, seconds, peak_rss_bytes=int(size)) for name, seconds, size in points],
        "memory",
    )
    assert [(point.x, point.y) for point in marks(made, Point)] == [each[1:] for each in points]
    (line,) = marks(made, Line)
    assert list(line.points)[1:3] == [(1.0, 3e7), (2.0, 2e7)]
    with pytest.raises(Refusal, match="memory: it takes two rows"):
        drawn([measured("a", 1.0)], "memory")


def test_no_two_variants_look_alike() -> None:
    names = list(registry.variants())
    assert len({look_of(name) for name in names}) == len(names)
    assert look_of("nobody knows") == ("#7018ac", "d")  # by its digest, so in every process


def test_rows_of_several_tasks_are_refused_with_a_choice() -> None:
    records = [measured("a", 1.0, size=size) for size in (1000, 2000)]
    with pytest.raises(Refusal, match="differ in sha256; choose, such as --where sha256="):
        drawn(records, "race")


def test_bars_are_as_long_as_their_seconds_and_every_word_of_the_chart_is_in_its_svg() -> None:
    made = drawn([measured("naive", 10.0), measured("heap", 1.0)], "ladder")
    svg = svg_of(made)
    root, name = ElementTree.fromstring(svg), "{http://www.w3.org/2000/svg}"
    paths = [
        path for path in root.iter(f"{name}path") if "fill: #267141" in (path.get("style") or "")
    ]
    ends = [
        [float(x) for x in re.findall(r"[ML] ([\d.]+) ", path.get("d") or "")] for path in paths
    ]
    assert (max(ends[0]) - min(ends[0])) / (max(ends[1]) - min(ends[1])) == pytest.approx(
        10.0, rel=0.01
    )
    words = [text.text or "" for text in root.iter(f"{name}text")]
    assert {made.title, *made.notes, "naive", "heap", "10.0 s", "1.00 s, 10.0 ×"} <= set(words)
    assert {"naive: 10.0 s", "heap: 1.00 s"} <= {title.text for title in root.iter(f"{name}title")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["forms", "counting"])
def test_whatever_the_records_are_there_is_a_chart_or_a_sentence(kind: str, name: str) -> None:
    try:
        svg = svg_of(drawn(read_records([RECORDS / f"{name}.jsonl"]), kind))
    except Refusal:
        return
    ElementTree.fromstring(svg)
    assert "nan" not in re.sub(r"<text.*?</text>|<title>.*?</title>", "", svg)


@pytest.mark.parametrize("kind", ["phases", "race", "ladder", "dots", "memory"])
def test_hostile_names_are_text(kind: str) -> None:
    bad = "a\x1b[2J\u202e</text><script>$x^2$&\x00"
    phases = {bad: 1.0, "update": 2.0}
    records = [
        measured(bad, phases, data=bad),
        measured("heap", 2.0, data=bad),
        stopped("naive", 3.0, data=bad, reason=bad),
    ]
    svg = svg_of(drawn(records, kind))
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert "\\x1b[2J\\u202e</text><script>$x^2$&\\x00" in text
    assert not {"\x1b", "\u202e", "\x00"} & set(svg)


def test_files_are_the_same_bytes_follow_the_readers_theme_and_have_no_date(tmp_path: Path) -> None:
    made = drawn(SWEEP, "phases")
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    save(made, first)
    save(made, second)
    svg = first.read_text()
    assert first.read_bytes() == second.read_bytes()
    assert "<dc:date>" not in svg
    assert "prefers-color-scheme: dark" in svg
    save(made, tmp_path / "c.PNG")
    assert (tmp_path / "c.PNG").read_bytes().startswith(b"\x89PNG")
    width = float(re.findall(r'width="([\d.]+)pt"', svg)[0])
    assert width == 432.0  # six inches: letters can be read on a phone
