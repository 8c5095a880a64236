"""Charts of rows, one function for each kind: race, phases, ladder, dots, paired, and tokenizers side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import registry
from harness.common.comparison import MARGIN, Comparison, compare
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text, counted_text, duration_text, ratio_text, seconds_text
from harness.results.chart import (
    FAINT,
    HUES,
    INK,
    OTHER_PHASE,
    OTHERS,
    OURS,
    PHASES,
    Axis,
    Bar,
    Chart,
    Dots,
    Entry,
    Look,
    Mark,
    Panel,
    Point,
    Text,
    look_of,
)
from harness.results.fields import AT_LEAST, ESTIMATED, FINISHED, MEASURED, SIGNS, UNCONFIRMED, Time, time_of
from harness.results.legend import Legend, doubtful, failures, is_slower, join_names
from harness.results.rows import Row, measured_phases
from harness.results.selection import corpus_language, grouped, one_task, panel_title
from harness.results.tables import doubt_of, interval_text, mark_of, proof_text, ratio_of, threads_of, times_text
from harness.tokenizers.statistics import Figures

MOST_TIMES_THE_LONGEST = 5
"""A race draws estimates up to so many times the longest measured total."""
_SPOKEN = {"training": "Training", "total": "From the file to the merges", "cpu": "Processor time"}


@dataclass(frozen=True)
class ChartOptions:
    """What a chart shows besides its rows: a title, which seconds, and the variant that ratios are of."""

    title: str | None = None
    seconds: str = "training"
    relative_to: str | None = None


def race(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Total seconds from the fastest down on a linear axis; estimates that are far beyond it are named below."""
    trainers = one_task(rows, "race")
    timed = [(row, time_of(row)) for row in trainers]
    measured = sorted((pair for pair in timed if pair[1].form in FINISHED), key=_seconds_first)
    if not measured:
        raise Refusal("race: no trainer has a total; python -m harness measures some", UNMEASURED)
    ranked = [row for row, _ in measured if not doubt_of(row)] or [measured[0][0]]
    first, longest = ranked[0], MOST_TIMES_THE_LONGEST * (measured[-1][0].total or 1.0)
    near = [pair for pair in timed if pair[1].form == ESTIMATED and (pair[1].number or 0.0) <= longest]
    drawn = sorted([*measured, *near], key=_seconds_first)
    best = next((place for place, (row, _) in enumerate(drawn) if is_ours(row.name)), None)
    labels, marks = _names_with_threads([row for row, _ in drawn]), list[Mark]()
    for place, ((row, time), label) in enumerate(zip(drawn, labels, strict=True)):
        seconds, factor = time.number or 0.0, "" if row is first else f", {_factor(row, first)}"
        hover = f"{label}: {time.text}, {proof_text(row)}"
        colour, weight = (OURS, "bold") if place == best else (OTHERS, "normal")
        marks.append(Bar(place, 0.0, seconds, colour, time.form == ESTIMATED, f"value-{place}", hover))
        marks.append(Text(place, f"{_short(time)}{factor}{mark_of(row)}", seconds, weight=weight))
    shown = [row for row, _ in drawn]
    rest = [f"{row.name} {time.text}".strip() for row, time in timed if row not in shown]
    notes = [f"Not drawn: {join_names(rest)}."] if rest else []
    notes += ["Dashed: stopped, total estimated."] if near else []
    notes += ["* It makes other merges, on purpose."] if any(row.by_design for row in shown) else []
    notes += doubtful(shown, labels)
    axis = Axis("seconds from the text to the merges", 0, 1.3 * (drawn[-1][1].number or 1.0))
    panel = Panel(axis, labels, marks, bold=[] if best is None else [best])
    return Chart(options.title or _race_title(ranked), Legend(shown).caption()[-1:], notes, [panel])


def _seconds_first(pair: tuple[Row, Time]) -> float:
    return pair[1].number or 0.0


def _race_title(ranked: Sequence[Row]) -> str:
    """The result as a claim, such as "32,000 tokens from 43 MB of Python: 0.09 s, 5.1 times as fast as the next"."""
    first = ranked[0]
    vocab_size, size = first.record.get("vocab_size"), first.corpus.get("bytes")
    name = str(first.corpus.get("name"))
    language = corpus_language(name.partition("(")[0])
    task = f"{count_text(vocab_size)} tokens" if vocab_size is not None else "From the file to the merges"
    task += f" from {bytes_text(size)} of {language[0].upper() + language[1:] if language else name}" if size else ""
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
    legend = Legend(rows)
    labels, caption = legend.short_labels(), legend.caption()
    spent = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    return Chart(
        options.title
        or (_phases_title(rows, labels) if len(groups) == 1 else "")
        or ("Counting words" if all(row.counting_only for row in rows) else "Where the time goes"),
        caption if len(groups) == 1 else caption[-1:],
        [*failures(rows, labels), *doubtful(rows, labels)],
        [_phases_panel(group, groups, number) for number, group in enumerate(groups)],
        [Entry(phase, PHASES.get(phase, OTHER_PHASE)) for phase in spent],
    )


def _phases_title(rows: Sequence[Row], labels: Sequence[str]) -> str:
    """How many times as fast the fastest row is as the slowest; empty if they cannot be compared."""
    pairs = [(row.total, row, label) for row, label in zip(rows, labels, strict=True) if row.total]
    timed = sorted((pair for pair in pairs if not pair[1].by_design), key=lambda pair: pair[0])
    if len(timed) < 2:
        return ""
    (seconds, first, label), (_, last, other) = timed[0], timed[-1]
    if first.question != last.question or not is_slower(last, first):
        return ""
    return f"{label}: {seconds_text(seconds)}, {times_text(last, first)} times as fast as {other}"


def _phases_panel(group: Sequence[Row], groups: Sequence[Sequence[Row]], number: int) -> Panel:
    labels, marks = Legend(group).short_labels(), list[Mark]()
    longest = max((row.total for row in group if row.total), default=1.0)
    for place, row in enumerate(group):
        if row.total is None:
            marks.append(Text(place, _outcome_text(row), 0.0, colour=FAINT, style="italic"))
            continue
        start, total = 0.0, time_of(row).text
        for part, (phase, seconds) in enumerate(row.seconds.items()):
            if seconds > 0:
                hover = f"{labels[place]}: {phase} {seconds_text(seconds)} of {total}"
                name = f"bar-{number}-{place}-{part}" if seconds > longest / 1000 else ""
                colour = PHASES.get(phase, OTHER_PHASE)
                marks.append(Bar(place, start, start + seconds, colour, False, name, hover))
                start += seconds
        marks.append(Text(place, total + doubt_of(row), start, weight="bold"))
    title = panel_title(group, groups) if len(groups) > 1 else ""
    return Panel(Axis("seconds", 0, 1.2 * longest), labels, marks, title)


def _outcome_text(row: Row) -> str:
    """What is drawn in place of a time: its estimate, or what happened."""
    text = time_of(row).text
    if row.status == "ok":
        return f"{text} with reading and counting"
    return f"{text} (stopped)" if text else proof_text(row)


def ladder(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Seconds of every stage in the order in which they were invented, with the gain over the stage before."""
    order = {name: place for place, name in enumerate(registry.variants())}
    stages = [row for row in rows if not row.counting_only and is_ours(row.name)]
    stages.sort(key=lambda row: order.get(row.name, len(order)))
    groups = [[(row, time_of(row, options.seconds)) for row in group] for group in grouped(stages)] if stages else []
    groups = [group for group in groups if any(time.form in FINISHED for _, time in group)]
    if not groups:
        raise Refusal("ladder: no stage has a time; python -m harness experiment=ladder measures them", UNMEASURED)
    legend = Legend(stages)
    labels, caption = legend.short_labels(), legend.caption()
    titles = [panel_title([row for row, _ in group], [[row for row, _ in own] for own in groups]) for group in groups]
    return Chart(
        options.title or _ladder_title(groups, options.seconds),
        caption if len(groups) == 1 else caption[-1:],
        ["N ×: as fast as the stage above.", *failures(stages, labels, stages), *doubtful(stages, labels)],
        [
            _ladder_panel(group, number, title if len(groups) > 1 else "")
            for number, (group, title) in enumerate(zip(groups, titles, strict=True))
        ],
    )


def _ladder_title(groups: Sequence[Sequence[tuple[Row, Time]]], quantity: str) -> str:
    timed = [time.number or 0.0 for row, time in groups[0] if time.form in FINISHED and not row.by_design]
    if len(groups) > 1 or len(timed) < 2:
        return f"{_SPOKEN[quantity]} seconds of every stage"
    least, most = min(timed), max(timed)
    return (
        f"{_SPOKEN[quantity]}: from {seconds_text(most)} to {seconds_text(least)}, "
        f"{ratio_text(most / least)} times as fast"
    )


def _ladder_panel(stages: Sequence[tuple[Row, Time]], number: int, title: str) -> Panel:
    longest = max(time.number or 0.0 for _, time in stages if time.form in FINISHED)
    labels, marks = Legend([row for row, _ in stages]).short_labels(), list[Mark]()
    before: float | None = None
    for place, (row, time) in enumerate(stages):
        if time.number is None:
            marks.append(Text(place, _outcome_text(row), 0.0, colour=FAINT, style="italic"))
        else:
            gain = f", {ratio_text(before / time.number)} ×" if before else ""
            text, end = time.text, min(time.number, 1.12 * longest)
            hover = f"{labels[place]}: {text}"
            marks.append(Bar(place, 0.0, end, OURS, time.form not in FINISHED, f"value-{number}-{place}", hover))
            marks.append(Text(place, f"{text}{doubt_of(row)}{gain}", end))
        before = time.number
    return Panel(Axis("seconds", 0, 1.45 * longest), labels, marks, title)


def dots(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Total seconds of each trainer as dots on a log axis, from the fastest down, times the fastest of ours."""
    trainers = one_task(rows, "dots", without=("tie_break", "counting"))
    drawn = [(row, time) for row in trainers if (time := time_of(row)).number is not None]
    if not drawn:
        raise Refusal("dots: no trainer has a total; python -m harness measures some", UNMEASURED)
    by_name: dict[str, list[tuple[Row, Time]]] = {}
    for row, time in sorted(drawn, key=lambda pair: pair[0].threads):
        by_name.setdefault(row.name, []).append((row, time))
    least = {name: min(time.number or math.inf for _, time in own) for name, own in by_name.items()}
    ranked = sorted(least, key=lambda name: (bool(doubt_of(by_name[name][0][0])), least[name]))
    ours = [name for name in ranked if is_ours(name)]
    base, base_time = by_name[(ours or ranked)[0]][0]
    places = {name: place for place, name in enumerate(ranked)}
    marks: list[Mark] = []
    for number, (row, time) in enumerate(drawn):
        look = Look(OURS if row.name in ours else FAINT, "o" if row.threads == 1 else "D")
        hover = f"{row.name}, {counted_text(row.threads, 'thread')}: {time.text}, {proof_text(row)}"
        marks.append(point_of(time, f"value-{number}", hover, time.number or 0.0, places[row.name], look))
    for name, place in places.items():
        first = by_name[name][0][0]
        far = max(number for _, time in by_name[name] for number in time.numbers)
        text = base_time.text if first is base else _factor(first, base)
        marks.append(Text(place, text + mark_of(first), far, 8, weight="bold" if name in ours else "normal"))
    low, high = log_range([number for _, time in drawn for number in time.numbers], 1.3, 1.1)
    widths = sorted({row.threads for row, _ in drawn})
    vocab_size = base.record.get("vocab_size")
    tokens = f", {count_text(vocab_size)} tokens" if vocab_size is not None else ""
    rivals = [own[0][0] for name, own in by_name.items() if name != base.name and not doubt_of(own[0][0])]
    claim = f": {base.name} {base_time.text}"
    if ratios := [ratio.number for row in rivals if (ratio := ratio_of(row, base)) is not None]:
        claim += f", {ratio_text(min(ratios))} times as fast as the next" if min(ratios) > 1 else ""
    return Chart(
        options.title or f"{panel_title(trainers, [trainers])}{tokens}{claim}",
        Legend([row for row, _ in drawn]).caption()[-1:],
        _dots_notes(trainers, [row for row, _ in drawn], {time.form for _, time in drawn}),
        [Panel(Axis("seconds", low, high, log=True), ranked, marks, bold=[places[name] for name in ours])],
        [Entry(counted_text(width, "thread"), INK, "o" if width == 1 else "D") for width in widths if widths[1:]],
        step=0.28,
        margin=0.75,
    )


def _dots_notes(rows: Sequence[Row], drawn: Sequence[Row], forms: set[str]) -> list[str]:
    """What the marks mean, of those that are drawn, and what happened to the other rows."""
    labels = Legend(rows).short_labels()
    others = dict.fromkeys(row.name for row in drawn if row.by_design)
    meanings = {ESTIMATED: "Ring: stopped, total estimated.", AT_LEAST: "Arrow: it takes longer."}
    stopped = " ".join(text for form, text in meanings.items() if form in forms)
    return [
        *([f"* Makes other merges, on purpose: {join_names(list(others))}."] if others else []),
        *([stopped] if stopped else []),
        *doubtful(rows, labels),
        *failures(rows, labels, drawn),
    ]


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
            title = panel_title(group, groups) if len(groups) > 1 else ""
            panels.append(ratios_panel(lines, base.name, len(panels), title))
    if not panels:
        raise _no_pairs(rows, options.relative_to)
    notes = ["Dots: blocks. Bar: 95 % interval of the median. Grey band: less than 1 % apart."]
    notes += [f"Too few blocks for an interval: {join_names(without)}."] if without else []
    caption = Legend(rows).caption()
    title = options.title or f"How many times the time of {' or '.join(names)}"
    return Chart(title, caption if len(groups) == 1 else caption[-1:], notes, panels)


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
    marks, reached = list[Mark](), [1.0]
    for place, (label, row, comparison) in enumerate(lines):
        ratio, low, high = comparison.ratio, comparison.low, comparison.high
        text = f"{ratio_text(ratio)}{interval_text(comparison)}"
        reached += [*comparison.ratios, low or 1.0, high or 1.0, ratio]
        look, form = look_of(row.name), MEASURED if row.confirmed else UNCONFIRMED
        if len(comparison.ratios) > 1:
            marks.append(Dots(comparison.ratios, place, look.colour, f"blocks-{number}-{place}"))
        name, hover = f"value-{number}-{place}", f"{label}: {text} times {base}"
        marks.append(Point(ratio, place, look, form, low, high, False, not comparison.different, name, hover))
        marks.append(Text(place, text))
    axis = Axis(f"times {base}", *log_range(reached, 1.04, 1.04), log=True)
    return Panel(axis, [label for label, *_ in lines], marks, title, band=(1 / (1 + MARGIN), 1 + MARGIN))


def _no_pairs(rows: Sequence[Row], base: str | None) -> Refusal:
    names = dict.fromkeys(row.name for row in rows if row.samples)
    if base is not None and base not in names:
        return Refusal(f"no time of {base!r} to compare with; there are: {', '.join(names) or 'none'}", UNMEASURED)
    text = "paired: no two rows ran together in two blocks or more; set measure=paired to measure ten"
    return Refusal(text, UNMEASURED)


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
        marks: list[Mark] = []
        for one in figures:
            value, line = value_of(one), texts.index(one.text) * len(names) + names.index(one.tokenizer)
            if value is not None:
                text = form.format(value)
                named: Any = {"name": f"bar-{number}-{line}", "hover": f"{one.tokenizer} on {one.text}: {text}"}
                marks += [Bar(line, 0.0, value, colours[one.tokenizer], **named), Text(line, text, value)]
        longest = max((value_of(one) or 0.0 for one in figures), default=0.0) or 1.0
        axis = Axis("", 0.0, 1.2 * longest, unit="share" if "%" in form else "number")
        panels.append(Panel(axis, lines, marks, title))
    key = [Entry(name, colour) for name, colour in colours.items()]
    return Chart("Tokenizers on the same texts", [], [], panels, key, step=0.24)


# What the kinds have in common


def is_ours(name: str) -> bool:
    """Whether a trainer is of this project, or of its user, and not an outside one."""
    card = registry.variants().get(name)
    return card is None or registry.OUTSIDE not in card.tags


def _names_with_threads(rows: Sequence[Row]) -> list[str]:
    """Names of rows; if several have one name, with how many threads they used."""
    names = [row.name for row in rows]
    widths = [f", {counted_text(threads_of(row) or row.threads, 'thread')}" for row in rows]
    return [name + width * (names.count(name) > 1) for name, width in zip(names, widths, strict=True)]


def point_of(time: Time, name: str, hover: str, x: float, y: float, look: Look, upright: bool = False) -> Point:
    """The mark of a time."""
    return Point(x, y, look, time.form, time.low, time.high, upright, name=name, hover=hover)


def log_range(
    values: Sequence[float], left: float = 1.3, right: float = 1.3, least: float = 2.0
) -> tuple[float, float]:
    """From a little below the smallest value to a little above the largest; at least a factor of `least`."""
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = min(positive) / left, max(positive) * right
    middle = math.sqrt(low * high)
    return (low, high) if high >= least * low else (middle / math.sqrt(least), middle * math.sqrt(least))
