"""Charts of rows, one function for each kind: race, phases, ladder, dots and paired."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.common import registry
from harness.common.comparison import MARGIN, Comparison, compare
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text, counted_text, duration_text, ratio_text, seconds_text
from harness.results.chart import (
    FAINT,
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
from harness.results.legend import Legend, doubtful, failures, join_names
from harness.results.ratios import Baseline, factor_text, interval_text, is_slower, ratio_of
from harness.results.rows import (
    AT_LEAST,
    ESTIMATED,
    FINISHED,
    MEASURED,
    SIGNS,
    UNCONFIRMED,
    Row,
    Time,
    measured_phases,
)
from harness.results.selection import corpus_language, grouped, one_task, panel_title

MOST_TIMES_THE_LONGEST = 5
"""A race draws estimates up to so many times the longest measured total."""
_SPOKEN = {"training": "Training", "total": "From the file to the merges", "cpu": "Processor time"}
Groups = Sequence[Sequence[Row]]


class ChartOptions(NamedTuple):
    """What a chart shows apart from its rows: which seconds, and the variant that ratios are of."""

    seconds: str = "training"
    relative_to: str | None = None


def race(rows: Sequence[Row], _: ChartOptions) -> Chart:
    """Total seconds from the fastest down on a linear axis; estimates that are far beyond it are named below."""
    trainers = one_task(rows, "race")
    measured = sorted((row for row in trainers if row.time.form in FINISHED), key=_seconds)
    if not measured:
        raise Refusal("race: no trainer has a total; python -m harness measures some", UNMEASURED)
    ranked = [row for row in measured if not row.doubt] or measured[:1]
    first, longest = ranked[0], MOST_TIMES_THE_LONGEST * (measured[-1].total or 1.0)
    near = [row for row in trainers if row.time.form == ESTIMATED and _seconds(row) <= longest]
    drawn = sorted([*measured, *near], key=_seconds)
    legend, marks = Legend(drawn), list[Mark]()
    best = next((place for place, row in enumerate(drawn) if is_ours(row.name)), None)
    for place, (row, label) in enumerate(zip(drawn, legend.labels, strict=True)):
        factor = "" if row is first else f", {_factor(row, first)}"
        colour, weight = (OURS, "bold") if place == best else (OTHERS, "normal")
        hover = f"{label}: {row.time.text}, {row.proof}"
        marks.append(Bar(place, 0.0, _seconds(row), colour, row.time.form == ESTIMATED, f"value-{place}", hover))
        marks.append(Text(place, f"{_short(row.time)}{factor}{row.mark}", _seconds(row), weight=weight))
    rest = [f"{row.name} {row.time.text}".strip() for row in trainers if row not in drawn]
    notes = [f"Not drawn: {join_names(rest)}."] if rest else []
    notes += ["Dashed: stopped, total estimated."] if near else []
    notes += ["* It makes other merges, on purpose."] if any(row.by_design for row in drawn) else []
    axis = Axis("seconds from the text to the merges", 0, 1.3 * (_seconds(drawn[-1]) or 1.0))
    panel = Panel(axis, legend.labels, marks, bold=[] if best is None else [best])
    return Chart(_race_title(ranked), legend.caption()[-1:], [*notes, *doubtful(legend)], [panel])


def _seconds(row: Row) -> float:
    return row.time.number or 0.0


def _race_title(ranked: Sequence[Row]) -> str:
    """The result as a claim, such as "32,000 tokens from 43 MB of Python: 0.09 s, 5.1 times as fast as the next"."""
    first = ranked[0]
    vocab_size, size, language = first.record.get("vocab_size"), first.corpus.get("bytes"), corpus_language(first)
    task = f"{count_text(vocab_size)} tokens" if vocab_size is not None else "From the file to the merges"
    text = language[:1].upper() + language[1:] or first.corpus.get("name")
    claim = f"{task} from {bytes_text(size)} of {text}" if size else task
    claim += f": {_short(first.time)}"
    if len(ranked) < 2:
        return claim
    if not is_slower(ranked[1], first):
        return f"{claim}, tied with {ranked[1].name}"
    return f"{claim}, {factor_text(ranked[1], first)} times as fast as the next"


def _short(time: Time) -> str:
    """
    >>> [_short(Time(MEASURED, seconds)) for seconds in (0.00912, 0.918, 17.64, 176.2)]
    ['0.0091 s', '0.92 s', '18 s', '3 min']
    """
    seconds = time.number or 0.0
    return f"{SIGNS.get(time.form, '')}{f'{seconds:.2g} s' if seconds < 99.5 else duration_text(seconds)}"


def phases(rows: Sequence[Row], _: ChartOptions) -> Chart:
    """Seconds stacked by phase on a linear axis, the total at each bar; a panel for each task."""
    alone = len({(row.name, *sorted(row.params.items())) for row in rows}) == 1
    groups: Groups = [rows] if alone else grouped(rows)
    legend = Legend(rows)
    spent = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    return Chart(
        (_phases_title(legend) if len(groups) == 1 else "")
        or ("Counting words" if all(row.counting_only for row in rows) else "Where the time goes"),
        legend.caption(len(groups)),
        [*failures(legend), *doubtful(legend)],
        panels_of(groups, _phases_panel),
        [Entry(phase, PHASES.get(phase, OTHER_PHASE)) for phase in spent],
    )


def _phases_title(legend: Legend) -> str:
    """How many times as fast the fastest row is as the slowest; empty if they cannot be compared."""
    timed = timed_rows(legend)
    if len(timed) < 2:
        return ""
    (first, label), (last, other) = timed[0], timed[-1]
    if first.question != last.question or not is_slower(last, first):
        return ""
    return f"{label}: {first.time.text}, {factor_text(last, first)} times as fast as {other}"


def _phases_panel(group: Sequence[Row], number: int, title: str) -> Panel:
    labels, marks = Legend(group).labels, list[Mark]()
    longest = max((row.total for row in group if row.total), default=1.0)
    for place, row in enumerate(group):
        if row.total is None:
            marks.append(Text(place, _outcome_text(row), 0.0, colour=FAINT, style="italic"))
            continue
        start = 0.0
        for part, (phase, seconds) in enumerate(row.seconds.items()):
            if seconds > 0:
                hover = f"{labels[place]}: {phase} {row.texts[phase]} of {row.time.text}"
                name = f"bar-{number}-{place}-{part}" if seconds > longest / 1000 else ""
                colour = PHASES.get(phase, OTHER_PHASE)
                marks.append(Bar(place, start, start + seconds, colour, False, name, hover))
                start += seconds
        marks.append(Text(place, row.time.text + row.doubt, start, weight="bold"))
    return Panel(Axis("seconds", 0, 1.2 * longest), labels, marks, title)


def _outcome_text(row: Row) -> str:
    """What is drawn in place of a time: its estimate, or what happened."""
    if row.status == "ok":
        return f"{row.time.text} with reading and counting"
    return f"{row.time.text} (stopped)" if row.time.text else row.proof


def ladder(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Seconds of every stage in the order in which they were invented, with the gain over the stage before."""
    order = {name: place for place, name in enumerate(registry.variants())}
    stages = [row for row in rows if not row.counting_only and is_ours(row.name)]
    stages.sort(key=lambda row: order.get(row.name, len(order)))
    groups = [
        group
        for group in (grouped(stages) if stages else [])
        if any(row.times[options.seconds].form in FINISHED for row in group)
    ]
    if not groups:
        raise Refusal("ladder: no stage has a time; python -m harness experiment=ladder measures them", UNMEASURED)
    legend = Legend(stages)
    return Chart(
        _ladder_title(groups, options.seconds),
        legend.caption(len(groups)),
        ["N ×: as fast as the stage above.", *failures(legend, stages), *doubtful(legend)],
        panels_of(groups, functools.partial(_ladder_panel, quantity=options.seconds)),
    )


def _ladder_title(groups: Groups, quantity: str) -> str:
    times = [row.times[quantity] for row in groups[0] if not row.by_design]
    timed = [time.number or 0.0 for time in times if time.form in FINISHED]
    if len(groups) > 1 or len(timed) < 2:
        return f"{_SPOKEN[quantity]} seconds of every stage"
    least, most = min(timed), max(timed)
    return (
        f"{_SPOKEN[quantity]}: from {seconds_text(most)} to {seconds_text(least)}, "
        f"{ratio_text(most / least)} times as fast"
    )


def _ladder_panel(stages: Sequence[Row], number: int, title: str, quantity: str) -> Panel:
    times = [row.times[quantity] for row in stages]
    longest = max(time.number or 0.0 for time in times if time.form in FINISHED)
    labels, marks = Legend(stages).labels, list[Mark]()
    before: float | None = None
    for place, (row, time) in enumerate(zip(stages, times, strict=True)):
        if time.number is None:
            marks.append(Text(place, _outcome_text(row), 0.0, colour=FAINT, style="italic"))
        else:
            gain = f", {ratio_text(before / time.number)} ×" if before else ""
            end, hover = min(time.number, 1.12 * longest), f"{labels[place]}: {time.text}"
            marks.append(Bar(place, 0.0, end, OURS, time.form not in FINISHED, f"value-{number}-{place}", hover))
            marks.append(Text(place, f"{time.text}{row.doubt}{gain}", end))
        before = time.number
    return Panel(Axis("seconds", 0, 1.45 * longest), labels, marks, title)


def dots(rows: Sequence[Row], _: ChartOptions) -> Chart:
    """Total seconds of each trainer as dots on a log axis, from the fastest down, times the fastest of ours."""
    trainers = one_task(rows, "dots", without=("tie_break", "counting"))
    drawn = [row for row in trainers if row.time.number is not None]
    if not drawn:
        raise Refusal("dots: no trainer has a total; python -m harness measures some", UNMEASURED)
    by_name: dict[str, list[Row]] = {}
    for row in sorted(drawn, key=lambda row: row.threads):
        by_name.setdefault(row.name, []).append(row)
    ranked = sorted(by_name, key=lambda name: (bool(by_name[name][0].doubt), min(map(_seconds, by_name[name]))))
    ours = [name for name in ranked if is_ours(name)]
    base = by_name[(ours or ranked)[0]][0]
    places = {name: place for place, name in enumerate(ranked)}
    marks: list[Mark] = []
    for number, row in enumerate(drawn):
        look = Look(OURS if row.name in ours else FAINT, "o" if row.threads == 1 else "D")
        hover = f"{row.name}, {counted_text(row.threads, 'thread')}: {row.time.text}, {row.proof}"
        marks.append(point_of(row.time, f"value-{number}", hover, _seconds(row), places[row.name], look))
    for name, place in places.items():
        first = by_name[name][0]
        far = max(number for row in by_name[name] for number in row.time[1:4] if number is not None)
        text = base.time.text if first is base else _factor(first, base)
        marks.append(Text(place, text + first.mark, far, 8, weight="bold" if name in ours else "normal"))
    low, high = log_range([number for row in drawn for number in row.time[1:4]], 1.3, 1.1)
    widths = sorted({row.threads for row in drawn})
    vocab_size = base.record.get("vocab_size")
    tokens = f", {count_text(vocab_size)} tokens" if vocab_size is not None else ""
    rivals = [own[0] for name, own in by_name.items() if name != base.name and not own[0].doubt]
    claim = f": {base.name} {base.time.text}"
    if ratios := [ratio.number for row in rivals if (ratio := ratio_of(row, base)) is not None]:
        claim += f", {ratio_text(min(ratios))} times as fast as the next" if min(ratios) > 1 else ""
    return Chart(
        f"{panel_title(trainers, [trainers])}{tokens}{claim}",
        Legend(drawn).caption()[-1:],
        _dots_notes(Legend(trainers), drawn),
        [Panel(Axis("seconds", low, high, log=True), ranked, marks, bold=[places[name] for name in ours])],
        [Entry(counted_text(width, "thread"), INK, "o" if width == 1 else "D") for width in widths if widths[1:]],
        step=0.28,
        margin=0.75,
    )


def _dots_notes(legend: Legend, drawn: Sequence[Row]) -> list[str]:
    """What the marks mean, of those that are drawn, and what happened to the other rows."""
    others, forms = dict.fromkeys(row.name for row in drawn if row.by_design), {row.time.form for row in drawn}
    meanings = {ESTIMATED: "Ring: stopped, total estimated.", AT_LEAST: "Arrow: it takes longer."}
    stopped = " ".join(text for form, text in meanings.items() if form in forms)
    return [
        *([f"* Makes other merges, on purpose: {join_names(list(others))}."] if others else []),
        *([stopped] if stopped else []),
        *doubtful(legend),
        *failures(legend, drawn),
    ]


def _factor(row: Row, base: Row) -> str:
    ratio = ratio_of(row, base)
    return "" if ratio is None else f"{SIGNS.get(ratio.form, '')}× {ratio_text(ratio.number)}"


def paired(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """The time of each row divided by a baseline's, block by block, with the interval of the median."""
    compared = []
    groups = grouped([row for row in rows if row.samples])
    for group in groups:
        usable = [row for row in group if row.total and options.relative_to in (None, row.name)]
        base = min(usable, key=_seconds, default=None)
        if base is not None and (lines := _compared(group, base)):
            compared.append((lines, base.name, panel_title(group, groups) if len(groups) > 1 else ""))
    if not compared:
        Baseline(rows, options.relative_to)  # refuses a name that no row has
        text = "paired: no two rows ran together in two blocks or more; set measure=paired to measure ten"
        raise Refusal(text, UNMEASURED)
    without = [label for lines, *_ in compared for label, _, comparison in lines if comparison.low is None]
    notes = ["Dots: blocks. Bar: 95 % interval of the median. Grey band: less than 1 % apart."]
    notes += [f"Too few blocks for an interval: {join_names(without)}."] if without else []
    title = f"How many times the time of {' or '.join(dict.fromkeys(base for _, base, _ in compared))}"
    panels = [_ratios_panel(number, *panel) for number, panel in enumerate(compared)]
    return Chart(title, Legend(rows).caption(len(groups)), notes, panels)


Lines = Sequence[tuple[str, Row, Comparison]]


def _compared(group: Sequence[Row], base: Row) -> Lines:
    """Every other row that shared two blocks or more with the baseline, the slowest first."""
    lines = []
    for row, label in zip(group, Legend(group).labels, strict=True):
        comparison = compare(row.samples, base.samples) if row is not base and row.total is not None else None
        if comparison is not None and comparison.blocks > 1:
            lines.append((label, row, comparison))
    return sorted(lines, key=lambda line: -line[2].ratio)


def _ratios_panel(number: int, lines: Lines, base: str, title: str) -> Panel:
    """A line for each row with its ratio to `base`; a ratio that may be 1 is hollow."""
    marks, reached = list[Mark](), [1.0]
    for place, (label, row, comparison) in enumerate(lines):
        ratio, low, high = comparison.ratio, comparison.low, comparison.high
        text = f"{ratio_text(ratio)}{interval_text(comparison)}"
        reached += [*comparison.ratios, low or 1.0, high or 1.0, ratio]
        look, form = look_of(row.name), MEASURED if row.confirmed else UNCONFIRMED
        marks.append(Dots(comparison.ratios, place, look.colour, f"blocks-{number}-{place}"))
        name, hover = f"value-{number}-{place}", f"{label}: {text} times {base}"
        marks.append(Point(ratio, place, look, form, low, high, False, not comparison.different, name, hover))
        marks.append(Text(place, text))
    axis = Axis(f"times {base}", *log_range(reached, 1.04, 1.04), log=True)
    return Panel(axis, [label for label, *_ in lines], marks, title, band=(1 / (1 + MARGIN), 1 + MARGIN))


# What the kinds have in common


def is_ours(name: str) -> bool:
    """Whether a trainer is of this project, or of its user, and not an outside one."""
    card = registry.variants().get(name)
    return card is None or registry.OUTSIDE not in card.tags


def panels_of(groups: Groups, panel_of: Callable[[Sequence[Row], int, str], Panel]) -> list[Panel]:
    """A panel for each group, with a title if there are several."""
    titles = [panel_title(group, groups) if len(groups) > 1 else "" for group in groups]
    return [panel_of(group, number, title) for number, (group, title) in enumerate(zip(groups, titles, strict=True))]


def timed_rows(legend: Legend) -> list[tuple[Row, str]]:
    """The rows whose times can be compared with their labels, from the fastest down."""
    pairs = zip(legend.rows, legend.labels, strict=True)
    timed = [(row, label) for row, label in pairs if row.total and not row.by_design]
    return sorted(timed, key=lambda pair: _seconds(pair[0]))


def point_of(time: Time, name: str, hover: str, x: float, y: float, look: Look, upright: bool = False) -> Point:
    """The mark of a time."""
    return Point(x, y, look, time.form, time.low, time.high, upright, name=name, hover=hover)


def log_range(
    values: Sequence[float | None], left: float = 1.3, right: float = 1.3, least: float = 2.0
) -> tuple[float, float]:
    """From a little below the smallest known value to a little above the largest; at least a factor of `least`."""
    positive = [value for value in values if value is not None and value > 0 and math.isfinite(value)] or [1.0]
    low, high = min(positive) / left, max(positive) * right
    middle = math.sqrt(low * high)
    return (low, high) if high >= least * low else (middle / math.sqrt(least), middle * math.sqrt(least))
