"""Every kind of picture: the figures are read back from where they were drawn, and equal those of the records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from drawn import Drawing
from measured import Record, measured, stopped, wrong
from workbench import first_fast

from harness.common.errors import Refusal
from harness.plot import draw
from harness.records.load import read_records
from harness.results.charts.chart import Request
from harness.results.charts.files import save
from harness.results.charts.kinds import KINDS

CHECKOUT = Path(__file__).resolve().parent.parent
CLOSE = 0.003
"""A log axis of six decades on half a page, drawn to a thousandth of a point, is read this well with ease."""


def drawn(records: list[Record], kind: str, folder: Path, **asked: Any) -> Drawing:
    path = folder / f"{kind}.svg"
    save(draw(records, kind, Request(**asked)), path)
    return Drawing(path)


def phases(count: float, largest: float, update: float) -> dict[str, float]:
    return {"read": 0.001, "count": count, "max": largest, "update": update}


LADDER = [
    measured("naive", phases(0.5, 2.0, 40.0)),
    measured("incremental", phases(0.5, 2.0, 0.8)),
    measured("heap", phases(0.5, 0.01, 0.8)),
    measured("flat", phases(0.5, 0.001, 0.004)),
]


# phases


def test_the_parts_of_a_bar_are_as_long_as_the_phases(tmp_path: Path) -> None:
    records = LADDER[1:3]
    panel = drawn(records, "phases", tmp_path).panels["phases"]
    for place, record in enumerate(records):
        start = 0.0
        for phase in ("read", "count", "max", "update"):
            seconds = record["seconds"][phase]
            if seconds >= 3.3 / 1000:  # shorter ones could not be seen
                assert panel.along_x(f"bar-{place}-{phase}") == pytest.approx((start, start + seconds), abs=0.002)
            start += seconds
    assert len(panel.names("bar-")) == 6


def test_far_apart_totals_stand_on_a_log_axis_beside_their_shares(tmp_path: Path) -> None:
    picture = drawn(LADDER, "phases", tmp_path)
    totals = [picture.values()[str(place)][0] for place in range(4)]
    assert totals == pytest.approx([record["seconds"]["total"] for record in LADDER], rel=CLOSE)
    low, high = picture.panels["phases"].along_x("bar-0-update")
    assert high - low == pytest.approx(40 / 42.501, abs=0.002)


def test_estimates_bounds_and_wrong_merges_are_no_plain_totals(tmp_path: Path) -> None:
    estimate = {"total_seconds": 300.0, "low_seconds": 200.0, "high_seconds": 500.0}
    records = [LADDER[1], stopped("naive", 20, extrapolated=estimate), stopped("slow", 20), wrong("bad")]
    picture = drawn(records, "phases", tmp_path, log=True)
    assert [*picture.values()] == ["0"]
    assert picture.values("estimated-")["1"][0] == pytest.approx(300, rel=CLOSE)
    assert picture.panels["totals"].along_x("interval-1") == pytest.approx((200, 500), rel=CLOSE)
    assert picture.values("at-least-")["2"][0] == pytest.approx(20, rel=CLOSE)
    assert "3" in picture.values("wrong-")
    assert {
        "stopped at the limit: extrapolated, with its interval",
        "stopped at the limit: at least this",
        "wrong merges: no time is shown",
    } <= set(picture.texts)


def test_every_task_has_axes_of_its_own(tmp_path: Path) -> None:
    small = [{**record, "data": measured("x", 1, size=1000)["data"]} for record in LADDER]
    picture = drawn(LADDER + small, "phases", tmp_path)
    assert [*picture.panels] == ["totals-0", "phases-0", "totals-1", "phases-1"]
    assert {"1.00 MB", "1.00 kB"} <= {text.rpartition(", ")[2] for text in picture.texts}
    assert [*drawn([LADDER[0], small[0]], "phases", tmp_path).panels] == ["phases"]  # one variant alone


# ladder


def test_a_ladder_has_the_seconds_of_training_and_each_gain(tmp_path: Path) -> None:
    picture = drawn(LADDER, "ladder", tmp_path)
    training = [42.0, 2.8, 0.81, 0.005]
    assert [picture.values()[f"0-{place}"][0] for place in range(4)] == pytest.approx(training, rel=CLOSE)
    assert [text for text in picture.texts if text.startswith("×")][:3] == ["×15.0", "×3.46", "×162"]
    assert "The ladder: training seconds, and each rung's gain over the one before" in picture.texts


def test_a_ladder_of_totals_counts_the_counting(tmp_path: Path) -> None:
    picture = drawn(LADDER, "ladder", tmp_path, seconds="total")
    totals = [record["seconds"]["total"] for record in LADDER]
    assert [picture.values()[f"0-{place}"][0] for place in range(4)] == pytest.approx(totals, rel=CLOSE)


def test_a_rung_that_was_stopped_is_no_step_for_the_next(tmp_path: Path) -> None:
    estimate = {"total_seconds": 100.5, "low_seconds": 50.5, "high_seconds": 200.5}
    records = [LADDER[1], stopped("naive", 20, extrapolated=estimate), stopped("slow", 20), LADDER[2], wrong("bad")]
    picture = drawn(records, "ladder", tmp_path)
    assert picture.values("estimated-")["0-0"][0] == pytest.approx(100, rel=CLOSE)
    assert picture.panels["0"].along_x("interval-0-0") == pytest.approx((50, 200), rel=CLOSE)
    assert picture.values("at-least-")["0-3"][0] == pytest.approx(20, rel=CLOSE)
    assert {"×~35.7", "×3.46", "÷24.7 or more"} <= set(picture.texts)
    assert "1" in drawn([LADDER[0], stopped("slow", 1)], "ladder", tmp_path).values("at-least-0-")  # of no known gain
    assert any(text.startswith("bad: its merges are wrong") for text in picture.texts)


def test_one_run_and_several_show_how_far_they_can_be_trusted(tmp_path: Path) -> None:
    several = [measured("heap", phases(0.5, 0.1, update), block=block) for block, update in enumerate((0.9, 1.1, 1.5))]
    picture = drawn([LADDER[1], *several], "ladder", tmp_path)
    assert picture.panels["0"].along_x("interval-0-0") == pytest.approx((2.8 / 1.1, 2.8 * 1.1), rel=CLOSE)
    assert picture.panels["0"].along_x("interval-0-1") == pytest.approx((1.0, 1.6), rel=CLOSE)
    assert picture.values()["0-1"][0] == pytest.approx(1.2, rel=CLOSE)
    assert any("Faint bars: one run" in text for text in picture.texts)


def test_what_does_not_tell_training_from_counting_has_no_rung_but_a_name(tmp_path: Path) -> None:
    records = [*LADDER, measured("flat_file", 0.3, counting="itself")]
    picture = drawn(records, "ladder", tmp_path)
    assert len(picture.values()) == 4
    assert "Not drawn, because they do not separate training from counting: flat_file." in picture.texts
    assert len(drawn(records, "ladder", tmp_path, seconds="total").values()) == 5


def test_every_question_has_a_panel_of_its_own(tmp_path: Path) -> None:
    records = LADDER + [{**record, "data": measured("x", 1, data="one_word")["data"]} for record in LADDER]
    picture = drawn(records, "ladder", tmp_path)
    assert [*picture.panels] == ["0", "1"]
    assert "stdlib (Python), 1.00 MB" in picture.texts
    many = [measured("heap", 1, size=size) for size in range(1000, 11000, 1000)]
    with pytest.raises(Refusal, match="10 questions, and a picture has room for 9; choose by --where"):
        draw(many, "ladder")


def test_rungs_stand_in_the_order_of_the_ladder_whatever_that_of_the_records(tmp_path: Path) -> None:
    records = [measured("own", 3.0), LADDER[3], measured("seg_status", 0.1), *LADDER[:3]]
    picture = drawn(records, "ladder", tmp_path)
    seconds = [picture.values()[f"0-{place}"][0] for place in range(6)]
    assert seconds == pytest.approx([42.0, 2.8, 0.81, 0.1, 0.005, 3.0], rel=CLOSE)


# size, vocabulary, threads


def test_points_stand_at_their_size_and_lines_have_the_fitted_power(tmp_path: Path) -> None:
    sizes = (1_000_000, 2_000_000, 4_000_000)
    records = [measured("naive", 2e-9 * size**1.5, size=size) for size in sizes]
    records += [
        measured("flat", 1e-6 * size * wobble, size=size) for size, wobble in zip(sizes, (1, 1.1, 1), strict=True)
    ]
    picture = drawn(records, "size", tmp_path)
    for number, size in enumerate(sizes):
        assert picture.values()[f"0-0-{number}"] == pytest.approx((size, 2e-9 * size**1.5), rel=CLOSE)
    (x0, y0), (x1, y1) = picture.panels["0"].line("fit-0-0")
    assert math.log(y1 / y0) / math.log(x1 / x0) == pytest.approx(1.5, abs=0.01)
    assert "naive  n^1.50 ±0.00" in picture.texts
    assert any(text.startswith("flat  n^1.00 ±0.") for text in picture.texts)


def test_sizes_of_a_generated_corpus_are_one_corpus(tmp_path: Path) -> None:
    records = [measured("heap", size / 1e4, data=f"one_word(bytes={size})", size=size) for size in (5000, 10000, 20000)]
    picture = drawn(records, "size", tmp_path)
    assert len(picture.values()) == 3
    assert "one_word" in picture.texts


def test_sizes_that_go_on_from_merges_of_their_own_are_one_line_and_processor_seconds_are_drawn(tmp_path: Path) -> None:
    """The first of two stages is trained on each size, so the second goes on from other merges at each."""
    records = [
        measured("flat", size / 1e4, size=size, cpu_seconds=size / 1e5, extend=f"{size:064}", extend_merges=100)
        for size in (5000, 10000, 20000)
    ]
    picture = drawn(records, "size", tmp_path, seconds="cpu")
    seconds = [picture.values()[f"0-0-{number}"][1] for number in range(3)]
    assert seconds == pytest.approx([0.05, 0.1, 0.2], rel=CLOSE)
    assert any(text.startswith("Processor seconds are those of all threads") for text in picture.texts)


def test_an_estimate_is_drawn_apart_and_not_fitted(tmp_path: Path) -> None:
    estimate = {"total_seconds": 900.5, "low_seconds": 700.5, "high_seconds": 1000.5}
    records = [measured("naive", float(size) / 1e6, size=size) for size in (1_000_000, 2_000_000)]
    records.append(stopped("naive", 20, size=4_000_000, extrapolated=estimate))
    picture = drawn(records, "size", tmp_path)
    assert picture.values("estimated-")["0-0-2"] == pytest.approx((4e6, 900), rel=CLOSE)
    assert "naive  n^1.00" in picture.texts
    assert any(text.startswith("Two points lie on a line") for text in picture.texts)


def test_vocabularies_are_an_axis(tmp_path: Path) -> None:
    records = [measured("heap", vocab_size / 500, vocab_size=vocab_size) for vocab_size in (500, 1000, 2000)]
    picture = drawn(records, "vocabulary", tmp_path)
    assert [picture.values()[f"0-0-{number}"] for number in range(3)] == [
        pytest.approx((vocab_size, vocab_size / 500), rel=CLOSE) for vocab_size in (500, 1000, 2000)
    ]
    assert "heap  v^1.00 ±0.00" in picture.texts


def test_threads_are_an_axis_and_counters_have_them_too(tmp_path: Path) -> None:
    seconds = {1: 8.0, 2: 5.0, 4: 7.0}
    records = [measured("flat", took, threads=threads) for threads, took in seconds.items()]
    picture = drawn(records, "threads", tmp_path)
    assert picture.values()["0-0-2"] == pytest.approx((4, 7.0), rel=CLOSE)
    # From point to point as they were measured: no line is fitted where threads help and then do not.
    joined = picture.panels["0"].line("joined-0-0")
    assert [number for corner in joined for number in corner] == pytest.approx([1, 8, 2, 5, 4, 7], rel=CLOSE)
    ideal = picture.panels["0"].line("ideal-0-0")
    assert [number for corner in ideal for number in corner] == pytest.approx([1, 8, 2, 4], rel=CLOSE)
    assert "flat  1.60x with 2" in picture.texts
    assert any("The machine has 2 cores" in text for text in picture.texts)
    counted = [measured("x", 8 / threads, threads=threads, cell="count", counting="native") for threads in (1, 2)]
    assert drawn(counted, "threads", tmp_path).values()["0-0-1"] == pytest.approx((2, 4.0), rel=CLOSE)


@pytest.mark.parametrize(("kind", "said"), [("size", "1 MB"), ("vocabulary", "1,000"), ("threads", "1;")])
def test_one_size_is_no_line(kind: str, said: str) -> None:
    with pytest.raises(Refusal, match=rf"no variant was measured at two, only at {said}.* python -m harness -m"):
        draw(LADDER, kind)


# memory


def test_time_and_memory_are_the_axes_and_the_front_is_a_stair(tmp_path: Path) -> None:
    memory = (30_000_000, 40_000_000, 50_000_000, 35_000_000)
    records = [{**record, "peak_rss_bytes": size} for record, size in zip(LADDER, memory, strict=True)]
    picture = drawn(records, "memory", tmp_path)
    for place, (seconds, size) in enumerate(zip((42.0, 2.8, 0.81, 0.005), memory, strict=True)):
        assert picture.values()[f"0-{place}"] == pytest.approx((seconds, size), rel=CLOSE)
    stair = picture.panels["0"].line("front-0")
    for point in ((0.005, 35e6), (42.0, 35e6), (42.0, 30e6)):
        assert any(corner == pytest.approx(point, rel=CLOSE) for corner in stair)
    assert not any(corner[1] == pytest.approx(40e6, rel=CLOSE) for corner in stair)


def test_memory_needs_two_rows(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="it takes two rows with a time and a peak of memory"):
        draw([LADDER[0]], "memory")
    assert not [*tmp_path.iterdir()]


# paired


def blocks(variant: str, seconds: list[float]) -> list[Record]:
    return [measured(variant, spent, block=block) for block, spent in enumerate(seconds)]


def test_ratios_within_blocks_are_dots_with_their_median_and_interval(tmp_path: Path) -> None:
    base = [1.0, 1.1, 0.9, 1.0, 1.2, 1.0]
    factors = [1.5, 1.4, 1.6, 1.55, 1.45, 1.5]
    records = [*blocks("flat", base), *blocks("heap", [a * b for a, b in zip(base, factors, strict=True)])]
    picture = drawn(records, "paired", tmp_path)
    panel = picture.panels["0"]
    assert picture.values()["0-0"][0] == pytest.approx(1.5, rel=CLOSE)
    assert panel.along_x("interval-0-0") == pytest.approx((1.4, 1.6), rel=CLOSE)
    assert panel.x is not None
    assert sorted(panel.x(x) for x, _ in panel.points("blocks-0-0")) == pytest.approx(sorted(factors), rel=CLOSE)
    assert "1.50 (1.40 to 1.60)" in picture.texts
    other = drawn(records, "paired", tmp_path, relative_to="heap")
    assert other.values()["0-0"][0] == pytest.approx(1 / 1.5, rel=CLOSE)


def test_few_blocks_have_no_interval_and_one_block_no_picture(tmp_path: Path) -> None:
    picture = drawn([*blocks("flat", [1.0, 1.0]), *blocks("heap", [2.0, 2.0])], "paired", tmp_path)
    assert picture.values()["0-0"][0] == pytest.approx(2.0, rel=CLOSE)
    assert picture.panels["0"].names("interval-") == []
    assert any("fewer than 6 blocks" in text for text in picture.texts)
    with pytest.raises(Refusal, match="measure=paired makes ten"):
        draw(LADDER, "paired")
    with pytest.raises(Refusal, match="no time of 'nobody' to compare with; there are: naive"):
        draw(LADDER, "paired", Request(relative_to="nobody"))


# all


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_says_what_was_measured_on_what_and_when(kind: str, tmp_path: Path) -> None:
    along: dict[str, Any] = {"size": {"size": 10}, "vocabulary": {"vocab_size": 500}, "threads": {"threads": 2}}
    records = [{**record, "block": block} for record in LADDER for block in range(2)]
    records += [measured("naive", 1.0, **along[kind])] if kind in along else []
    texts = drawn(records, kind, tmp_path).texts
    assert any("2026-11-21" in text and "AMD EPYC (2 cores)" in text for text in texts)
    assert any(text.startswith("stdlib") for text in texts)


@pytest.mark.parametrize("name", first_fast(["forms", "repeats", "counting", "sweep"], fast=2))
def test_whatever_the_records_are_there_is_a_picture_or_a_sentence(name: str) -> None:
    records = read_records([CHECKOUT / "tests/records" / f"{name}.jsonl"])
    told = {}
    for kind in KINDS:
        try:
            draw(records, kind)
        except Refusal as refusal:
            told[kind] = str(refusal)
    assert "phases" not in told
    assert [kind for kind, said in told.items() if kind not in said and not said.startswith("the size of")] == []


def test_many_reasons_for_skipping_are_told_in_one_sentence(tmp_path: Path) -> None:
    skipped = [
        measured(f"peer_{number}", {}, status="skipped", reason=f"lacks {number}", seconds={}, merges=None)
        for number in range(5)
    ]
    texts = drawn([*LADDER, *skipped[:3]], "ladder", tmp_path).texts
    assert {"peer_0: skipped: lacks 0.", "peer_2: skipped: lacks 2."} <= set(texts)
    texts = drawn([*LADDER, *skipped], "ladder", tmp_path).texts
    assert "Skipped: peer_0; peer_1; peer_2; peer_3; peer_4; the table says why." in texts


def test_a_picture_says_when_the_machine_was_shared(tmp_path: Path) -> None:
    alone = drawn(LADDER, "memory", tmp_path).texts
    shared = drawn([{**record, "concurrent": True} for record in LADDER], "memory", tmp_path).texts
    assert not any("while other runs were timed" in text for text in alone)
    assert any(text.endswith("2026-11-21, while other runs were timed on the machine") for text in shared)
