"""Charts of rows, one function for each kind: race, phases, ladder, dots, paired, and tokenizers side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import registry
from harness.common.comparison import MARGIN, Comparison, compare
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text, counted_text, duration_text, ratio_text, seconds_text
from harness.results.chart import Axis, Band, Bar, Chart, Dots, Entry, Mark, Panel, Point, Text
from harness.results.colours import FAINT, HUES, INK, OTHERS, OURS, Look, counter_look, look_of, phase_colour
from harness.results.fields import AT_LEAST, ESTIMATED, MEASURED, PROVED, SIGNS, UNCONFIRMED, Time, time_of
from harness.results.legend import Legend, failures, is_slower, join_names, threads_of
from harness.results.rows import Row, measured_phases
from harness.results.tables import interval_text, proof_text, ratio_of, times_text
from harness.results.where import corpus_language, grouped, one_task, panel_title
from harness.tokenizers.statistics import Figures

MOST_PANELS = 9
ONE, MORE = "circle", "diamond"


@dataclass(frozen=True)
class ChartOptions:
    """What a chart shows besides its rows: a title, which seconds, and the variant that ratios are of."""

    title: str | None = None
    seconds: str = "training"
    relative_to: str | None = None


def race(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Total seconds from the fastest down on a linear axis; estimates that are far beyond it are named below."""
    trainers = one_task([row for row in rows if not row.counting_only], "race")
    times = {id(row): time_of(row) for row in trainers}
    measured = [row for row in trainers if times[id(row)].form in PROVED]
    if not measured:
        raise Refusal("race: no trainer has a total; python -m harness measures some", UNMEASURED)
    measured.sort(key=lambda row: row.total or 0.0)
    first, longest = measured[0], MOST_TIMES_THE_LONGEST * (measured[-1].total or 1.0)
    near = [row for row in trainers if times[id(row)].form == ESTIMATED and (times[id(row)].number or 0.0) <= longest]
    drawn = sorted([*measured, *near], key=lambda row: times[id(row)].number or 0.0)
    best = next((row for row in drawn if is_ours(row)), None)
    labels, marks = label_of(drawn), list[Mark]()
    for place, row in enumerate(drawn):
        time = times[id(row)]
        text = f"{_short(time)}{'' if row is first else f'  {_factor(row, first)}'}{'*' if row.by_design else ''}"
        hover = f"{labels[place]}: {time.text}, {proof_text(row)}"
        bar: dict[str, Any] = {"name": f"value-{place}", "hover": hover, "open": time.form == ESTIMATED}
        marks.append(Bar(place, 0.0, time.number or 0.0, OURS if row is best else OTHERS, **bar))
        marks.append(Text(place, text, time.number or 0.0, bold=row is best))
    rest = [f"{row.name} {times[id(row)].text}".strip() for row in trainers if row not in drawn]
    notes = [f"Not drawn: {join_names(rest)}."] if rest else []
    notes += ["Dashed: stopped, total estimated."] if near else []
    notes += ["* It makes other merges, on purpose."] if any(row.by_design for row in drawn) else []
    axis = Axis("seconds from the text to the merges", 0, 1.3 * (times[id(drawn[-1])].number or 1.0))
    panel = Panel(axis, labels, marks, bold=[place for place, row in enumerate(drawn) if row is best])
    return Chart(options.title or race_title(measured), _machine(drawn), notes, [panel])


MOST_TIMES_THE_LONGEST = 5
"""Estimates up to so many times the longest measured total are drawn."""


def race_title(ranked: Sequence[Row]) -> str:
    """The result as a claim, such as "32,000 tokens from 43 MB of Python: 0.09 s, 5.1 times as fast as the next"."""
    first = ranked[0]
    vocab_size, size = first.record.get("vocab_size"), first.corpus.get("bytes")
    name = str(first.corpus.get("name"))
    what = corpus_language(name.partition("(")[0]) or name
    task = f"{count_text(vocab_size)} tokens" if vocab_size is not None else "From the file to the merges"
    task += f" from {bytes_text(size)} of {what[0].upper() + what[1:] if what != name else name}" if size else ""
    text = f"{task}: {_short(time_of(first))}"
    if len(ranked) < 2:
        return text
    if not is_slower(ranked[1], first):
        return f"{text}, tied with {ranked[1].name}"
    return f"{text}, {times_text(ranked[1], first)} times as fast as the next"


def _short(time: Time) -> str:
    """
    >>> [_short(Time(MEASURED, seconds)) for seconds in (0.00912, 0.918, 17.64, 176.2)]
    ['0.0091 s', '0.92 s', '18 s', '3 min']
    """
    seconds = time.number or 0.0
    return f"{SIGNS.get(time.form, '')}{f'{seconds:.2g} s' if seconds < 99.5 else duration_text(seconds)}"


def phases(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Seconds stacked by phase on a linear axis, the total at each bar; a panel for each task."""
    alone = len({(row.name, *sorted(row.params.items())) for row in rows}) == 1
    groups = [list(rows)] if alone else grouped(rows)
    spent = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    panels = [_phases_panel(group, groups, number) for number, group in enumerate(groups)]
    subject = "Counting words" if all(row.counting_only for row in rows) else "Where the time goes"
    labels = Legend(rows).short_labels()
    return Chart(
        options.title or (_compared_title(rows) if len(groups) == 1 else "") or subject,
        Legend(rows).caption() if len(groups) == 1 else _machine(rows),
        failures(rows, labels),
        panels,
        [Entry(phase, phase_colour(phase)) for phase in spent],
    )


def _compared_title(rows: Sequence[Row]) -> str:
    """How many times as fast the fastest row is as the slowest; empty if they cannot be compared."""
    timed = sorted((row for row in rows if row.total and not row.by_design), key=lambda row: row.total or 0.0)
    if len(timed) < 2 or timed[0].question != timed[-1].question or not is_slower(timed[-1], timed[0]):
        return ""
    first, last = timed[0], timed[-1]
    times = times_text(last, first)
    names = dict(zip(map(id, rows), Legend(rows).short_labels(), strict=True))
    return f"{names[id(first)]}: {seconds_text(first.total or 0.0)}, {times} times as fast as {names[id(last)]}"


def _phases_panel(group: Sequence[Row], groups: Sequence[Sequence[Row]], number: int) -> Panel:
    labels, marks = Legend(group).short_labels(), list[Mark]()
    longest = max((row.total for row in group if row.total), default=1.0)
    for place, row in enumerate(group):
        if row.total is None:
            marks.append(Text(place, outcome_text(row), 0.0, colour=FAINT, italic=True))
            continue
        start = 0.0
        for part, (phase, seconds) in enumerate(row.seconds.items()):
            if seconds <= 0:
                continue
            hover = f"{labels[place]}: {phase} {seconds_text(seconds)} of {seconds_text(row.total)}"
            named = f"bar-{number}-{place}-{part}" if seconds > longest / 1000 else ""
            marks.append(Bar(place, start, start + seconds, phase_colour(phase), name=named, hover=hover))
            start += seconds
        marks.append(Text(place, time_of(row).text, start, bold=True))
    title = panel_title(group, groups) if len(groups) > 1 else ""
    return Panel(Axis("seconds", 0, 1.2 * longest), labels, marks, title)


def outcome_text(row: Row) -> str:
    """What stands in place of a time: its estimate, or what happened."""
    text = time_of(row).text
    return (
        f"{text} (stopped)" if text else proof_text(row) if row.status == "mismatch" else row.status.replace("_", " ")
    )


def ladder(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Seconds of every stage in the order in which they were invented, with the gain over the stage before."""
    order = {name: place for place, name in enumerate(registry.variants())}
    stages = [row for row in rows if not row.counting_only and is_ours(row)]
    stages.sort(key=lambda row: order.get(row.name, len(order)))
    times = {id(row): time_of(row, options.seconds) for row in stages}
    groups = [
        group for group in (grouped(stages) if stages else []) if any(times[id(row)].form in PROVED for row in group)
    ]
    if not groups:
        raise Refusal("ladder: no stage has a time; python -m harness experiment=ladder measures them", UNMEASURED)
    legend = Legend(stages)
    return Chart(
        options.title or _ladder_title(groups, times, options.seconds),
        legend.caption() if len(groups) == 1 else legend.caption()[-1:],
        ["N ×: as fast as the stage above.", *failures(stages, legend.short_labels(), stages)],
        [_ladder_panel(group, groups, times, number) for number, group in enumerate(groups)],
    )


_SPOKEN = {"training": "Training", "total": "From the file to the merges", "cpu": "Processor time"}


def _ladder_title(groups: Sequence[Sequence[Row]], times: Mapping[int, Time], quantity: str) -> str:
    timed = [times[id(row)] for row in groups[0] if times[id(row)].form in PROVED and not row.by_design]
    seconds = sorted(time.number or 0.0 for time in timed)
    if len(groups) > 1 or len(seconds) < 2:
        return f"{_SPOKEN[quantity]} seconds of every stage"
    gain = f"{ratio_text(seconds[-1] / seconds[0])} times as fast"
    return f"{_SPOKEN[quantity]}: from {seconds_text(seconds[-1])} to {seconds_text(seconds[0])}, {gain}"


def _ladder_panel(
    stages: Sequence[Row], groups: Sequence[Sequence[Row]], times: Mapping[int, Time], number: int
) -> Panel:
    longest = max(time.number or 0.0 for row in stages if (time := times[id(row)]).form in PROVED)
    labels, marks = Legend(stages).short_labels(), list[Mark]()
    before: Time | None = None
    for place, row in enumerate(stages):
        time = times[id(row)]
        if time.number is None:
            marks.append(Text(place, outcome_text(row), 0.0, colour=FAINT, italic=True))
        else:
            gain = f"  {ratio_text(before.number / time.number)} ×" if before is not None and before.number else ""
            text, end = time.text, min(time.number, 1.12 * longest)
            bar: dict[str, Any] = {"name": f"value-{number}-{place}", "hover": f"{labels[place]}: {text}"}
            marks.append(Bar(place, 0.0, end, OURS, time.form not in PROVED, **bar))
            marks.append(Text(place, f"{text}{gain}", end))
        before = time
    title = panel_title(stages, groups) if len(groups) > 1 else ""
    return Panel(Axis("seconds", 0, 1.45 * longest), labels, marks, title)


def dots(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Total seconds of each trainer as dots on a log axis, from the fastest down, times the fastest of ours."""
    trainers = one_task([row for row in rows if not row.counting_only], "dots", without=("tie_break", "counting"))
    drawn = [(row, time) for row in trainers if (time := time_of(row)).number is not None]
    if not drawn:
        raise Refusal("dots: no trainer has a total; python -m harness measures some", UNMEASURED)
    best: dict[str, float] = {}
    first: dict[str, Row] = {}
    for row, time in sorted(drawn, key=lambda each: each[0].record.get("threads") or 1):
        best[row.name] = min(best.get(row.name, math.inf), time.number or math.inf)
        first.setdefault(row.name, row)
    ranked = sorted(best, key=lambda name: best[name])
    ours = [name for name in ranked if is_ours_name(name)]
    base = first[ours[0] if ours else ranked[0]]
    marks: list[Mark] = []
    for number, (row, time) in enumerate(drawn):
        place = ranked.index(row.name)
        look = Look(OURS if is_ours(row) else FAINT, ONE if (row.record.get("threads") or 1) == 1 else MORE)
        threads = counted_text(row.record.get("threads") or 1, "thread")
        hover = f"{row.name}, {threads}: {time.text}, {proof_text(row)}"
        marks.append(point_of(time, f"value-{number}", hover, time.number or 0.0, place, look))
    for place, name in enumerate(ranked):
        far = max(number for row, time in drawn if row.name == name for number in time.numbers)
        text = time_of(base).text if first[name] is base else _factor(first[name], base)
        marks.append(Text(place, text, far, 8, bold=name in ours))
    vocab_size = drawn[0][0].record.get("vocab_size")
    tokens = f", {count_text(vocab_size)} tokens" if vocab_size is not None else ""
    low, high = log_range([number for _, time in drawn for number in time.numbers], 1.3, 1.1)
    widths = sorted({int(row.record.get("threads") or 1) for row, _ in drawn})
    looks = [Look(INK, ONE if width == 1 else MORE) for width in widths if widths[1:]]
    others = [name for name in ranked if any(row.by_design for row, _ in drawn if row.name == name)]
    notes = [f"Makes other merges, on purpose: {join_names(others)}."] if others else []
    if any(time.form in (ESTIMATED, AT_LEAST) for _, time in drawn):
        notes.append("Ring: stopped, total estimated. Arrow: it takes longer.")
    return Chart(
        options.title or f"{panel_title(trainers, [trainers])}{tokens}",
        _machine([row for row, _ in drawn]),
        [*notes, *failures(trainers, Legend(trainers).short_labels(), [row for row, _ in drawn])],
        [Panel(Axis("seconds", low, high, log=True), ranked, marks, bold=[ranked.index(name) for name in ours])],
        [Entry(counted_text(width, "thread"), INK, look) for width, look in zip(widths, looks, strict=False)],
        step=0.28,
        margin=0.75,
    )


def _factor(row: Row, base: Row) -> str:
    ratio = ratio_of(row, base)
    return "" if ratio is None else f"{SIGNS.get(ratio.form, '')}× {ratio_text(ratio.number)}"


def paired(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """The time of each row divided by a baseline's, block by block, with the interval of the median."""
    panels: list[Panel] = []
    names, without = dict[str, None](), list[str]()
    groups = grouped([row for row in rows if row.samples])
    for group in groups:
        usable = [row for row in group if row.total and options.relative_to in (None, row.name)]
        base = min(usable, key=lambda row: row.total or 0.0, default=None)
        lines = _compared(group, base) if base is not None else []
        if base is not None and lines:
            names[base.name] = None
            without += [label for label, _, comparison in lines if comparison.low is None]
            panels.append(
                ratios_panel(lines, base.name, len(panels), panel_title(group, groups) if len(groups) > 1 else "")
            )
    if not panels:
        raise _no_pairs(rows, options.relative_to)
    notes = [
        "Dots: blocks. Bar: 95 % interval of the median. Grey band: less than 1 % apart.",
        *([f"Too few blocks for an interval: {join_names(without)}."] if without else []),
    ]
    title = options.title or f"How many times the time of {' or '.join(names)}"
    return Chart(title, Legend(rows).caption() if len(groups) == 1 else _machine(rows), notes, panels)


def _compared(group: Sequence[Row], base: Row) -> list[tuple[str, Row, Comparison]]:
    """Every other row that shared two blocks or more with the baseline, the slowest first."""
    lines = []
    for row, label in zip(group, Legend(group).short_labels(), strict=True):
        comparison = compare(row.samples, base.samples) if row is not base and row.total is not None else None
        if comparison is not None and comparison.blocks > 1:
            lines.append((label, row, comparison))
    return sorted(lines, key=lambda line: -line[2].ratio)


def ratios_panel(lines: Sequence[tuple[str, Row, Comparison]], base: str, number: int = 0, title: str = "") -> Panel:
    """A line for each row with its ratio to `base`; a ratio that may be 1 is hollow."""
    marks: list[Mark] = [Band(1 / (1 + MARGIN), 1 + MARGIN)]
    reached = [1.0]
    for place, (label, row, comparison) in enumerate(lines):
        text = f"{ratio_text(comparison.ratio)}{interval_text(comparison)}"
        reached += [*comparison.ratios, comparison.low or 1.0, comparison.high or 1.0, comparison.ratio]
        colour = row_look(row)
        form = MEASURED if row.confirmed else UNCONFIRMED
        if len(comparison.ratios) > 1:
            marks.append(Dots(comparison.ratios, place, colour.colour, name=f"blocks-{number}-{place}"))
        point: dict[str, Any] = {"name": f"value-{number}-{place}", "hover": f"{label}: {text} times {base}"}
        hollow = not comparison.different
        marks.append(
            Point(comparison.ratio, place, colour, form, comparison.low, comparison.high, hollow=hollow, **point)
        )
        marks.append(Text(place, text, margin=True))
    axis = Axis(f"times {base}", *log_range(reached, 1.04, 1.04), log=True)
    return Panel(axis, [label for label, *_ in lines], marks, title)


def _no_pairs(rows: Sequence[Row], base: str | None) -> Refusal:
    names = dict.fromkeys(row.name for row in rows if row.samples)
    if base is not None and base not in names:
        return Refusal(f"no time of {base!r} to compare with; there are: {', '.join(names) or 'none'}", UNMEASURED)
    return Refusal(
        "paired: no two rows ran together in two blocks or more; set measure=paired to measure ten", UNMEASURED
    )


def tokenizers(figures: Sequence[Figures]) -> Chart:
    """Tokenizers side by side: a panel for each figure, a group of bars for each text, the number at each bar."""
    names = list(dict.fromkeys(one.tokenizer for one in figures))
    texts = list(dict.fromkeys(one.text for one in figures))
    order = (3, 6, 2, 5, 8, 7, 1, 0)  # blue, orange, green, violet: neighbours differ most
    colours = {name: HUES[order[place % len(order)]] for place, name in enumerate(names)}
    lines = [text if place == 0 else "" for text in texts for place in range(len(names))]
    kinds: Sequence[tuple[str, Callable[[Figures], float | None], str]] = (
        ("bytes per token (higher is better)", lambda one: one.bytes_per_token, "{:.2f}"),
        ("tokens per word (lower is better)", lambda one: one.tokens_per_word, "{:.2f}"),
        ("share of the vocabulary used", lambda one: one.share_used, "{:.0%}"),
    )
    panels = []
    for number, (title, value_of, form) in enumerate(kinds):
        longest = max((value_of(one) or 0.0 for one in figures), default=0.0) or 1.0
        marks: list[Mark] = []
        for one in figures:
            value, line = value_of(one), texts.index(one.text) * len(names) + names.index(one.tokenizer)
            if value is not None:
                text = form.format(value)
                hover = f"{one.tokenizer} on {one.text}: {text}"
                marks.append(Bar(line, 0.0, value, colours[one.tokenizer], name=f"bar-{number}-{line}", hover=hover))
                marks.append(Text(line, text, value))
        unit = "share" if "%" in form else "number"
        panels.append(Panel(Axis("", 0.0, 1.2 * longest, unit=unit), lines, marks, title))
    key = [Entry(name, colour) for name, colour in colours.items()]
    return Chart("Tokenizers on the same texts", [], [], panels, key, step=0.24)


# What rows have in common


def is_ours_name(name: str) -> bool:
    card = registry.variants().get(name)
    return card is None or registry.OUTSIDE not in card.tags


def is_ours(row: Row) -> bool:
    """Whether a row is of a trainer of this project, or of its user, and not of an outside one."""
    return is_ours_name(row.name)


def label_of(rows: Sequence[Row]) -> list[str]:
    """Names of rows; if several have one name, with how many threads they used."""
    names = [row.name for row in rows]
    widths = [threads_of(row) or row.record.get("threads") or 1 for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    return [
        f"{name}, {counted_text(width, 'thread')}" if name in twice else name
        for name, width in zip(names, widths, strict=True)
    ]


def row_look(row: Row) -> Look:
    return counter_look(row.name) if row.counting_only else look_of(row.name)


def point_of(time: Time, name: str, hover: str, x: float, y: float, look: Look, upright: bool = False) -> Point:
    """The mark of a time."""
    return Point(x, y, look, time.form, time.low, time.high, upright, name=name, hover=hover)


def log_range(
    values: Sequence[float], left: float = 1.3, right: float = 1.3, least: float = 2.0
) -> tuple[float, float]:
    """From a little below the smallest value to a little above the largest; at least a factor of `least`."""
    known = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = min(known) / left, max(known) * right
    if high < least * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(least), middle * math.sqrt(least)
    return low, high


def _machine(rows: Sequence[Row]) -> list[str]:
    """Where and when rows were measured."""
    lines = Legend(rows).caption()
    return lines[-1:]
