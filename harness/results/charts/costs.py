"""What seconds are spent on and what they are paid with: work, memory, and the bytes that are counted in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.common.units import bytes_text, count_text, decimals_for, rate_text
from harness.results.charts.chart import (
    Axis,
    Chart,
    Entry,
    Label,
    Line,
    Mark,
    Panel,
    Point,
    Request,
    Text,
    form_key,
    point_of,
    row_look,
)
from harness.results.charts.questions import (
    bars_explained,
    caption,
    failures,
    grouped,
    lacking,
    one_question,
    panel_title,
    spoken,
)
from harness.results.charts.values import (
    EXPLAINED,
    MANY,
    MEASURED,
    NOTHING,
    PROVED,
    SPOKEN,
    Value,
    log_range,
    seconds_of,
    value_of,
)
from harness.results.colours import INK, Look
from harness.results.frame import WORK
from harness.results.legend import SAMPLED, Legend
from harness.results.rows import Row, on_one_footing

MOST_NAMED = 14
"""So many names find room beside a panel; of more rows only those of the front are named there."""


def memory(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each question: seconds to the right, memory upwards, the front as a stair from corner to corner."""
    groups = [with_both(group, request) for group in grouped(rows, ("tie_break",))]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        raise lacking(
            "memory: it takes two rows with a time and a peak of memory on the same corpus, to the same vocabulary"
        )
    drawn = [row for group in groups for row in group]
    few = len({row.name for row in drawn}) <= MOST_NAMED
    families = {str(row.record.get("family")): row_look(row).colour for row in reversed(drawn)}
    notes = [
        "The stair is the front: no confirmed row is both faster and smaller than a row on it. "
        "Memory is the peak of the training process.",
        *([] if few else ["Named are the rows of the front; the colours of the others are those of their families."]),
        *([f"{SAMPLED} several processes together, sampled while they ran."] if _sampled(drawn) else []),
    ]
    key = [] if few else [Entry(*family) for family in reversed(families.items())]
    return Chart(
        request.title or f"{SPOKEN[request.seconds]} against memory",
        caption(drawn),
        [*notes, *bars_explained(drawn), EXPLAINED[request.seconds], *failures(rows, drawn)],
        [memory_panel(str(place), group, groups, request) for place, group in enumerate(groups)],
        key + form_key(value_of(row, request.seconds) for row in drawn),
        widths=(1.0,) if len(groups) == 1 else (1.0, 1.0),
        height=3.6 if len(groups) == 1 else 2.9,
        margin=0.25,
    )


def _sampled(rows: Sequence[Row]) -> bool:
    return any(row.memory_is_sampled for row in rows)


def with_both(group: Sequence[Row], request: Request) -> list[Row]:
    """The rows of a group that have a time and a peak of memory."""
    footed = on_one_footing(group) if request.seconds == "total" else group
    return [row for row in footed if value_of(row, request.seconds).form in PROVED and row.peak_rss_bytes]


def memory_panel(name: str, group: Sequence[Row], groups: Sequence[Sequence[Row]], request: Request) -> Panel:
    values = [value_of(row, request.seconds) for row in group]
    low, high = log_range([number for value in values for number in value.numbers])
    least, most = log_range([row.peak_rss_bytes or 0 for row in group], 1.1, 1.1, 1.6)
    stair, marks = front(group, request), list[Mark]()
    decimals = decimals_for(value.number for value in values if value.number)
    for number, (row, value, label) in enumerate(zip(group, values, Legend(group).short_labels(), strict=True)):
        size, best = row.peak_rss_bytes or 0, any(row is other for other in stair)
        figures = {f"{request.seconds}, s": f"{value.number or 0:,.{decimals}f}", "memory": bytes_text(size)}
        words = f"{{{request.seconds}, s}} s, {{memory}}"
        place = (value.number or 0.0, size)
        radius = 6.5 if best else 5.0
        marks.append(point_of(row, value, f"{name}-{number}", *place, size=radius, words=words, figures=figures))
        if best or len(group) <= MOST_NAMED:
            marks.append(Label(*place, f"{SAMPLED if row.memory_is_sampled else ''}{label}", row=row))
    if stair:
        corners = [(seconds_of(row, request.seconds) or 0.0, float(row.peak_rss_bytes or 0)) for row in stair]
        stairs = [(corners[0][0], most), *corners, (high, corners[-1][1])]
        marks.append(Line(stairs, INK, 0.9, opacity=0.7, steps=True, name=f"front-{name}", row=stair[0]))
    axes = Axis(f"{request.seconds}, seconds", low, high), Axis("peak memory", least, most, unit="bytes")
    return Panel(name, panel_title(group, groups), *axes, marks)


def front(group: Sequence[Row], request: Request) -> list[Row]:
    """The confirmed rows that no other beats in both, from the fastest to the smallest; other work is no rival."""
    fair = [row for row in group if row.confirmed and not row.by_design]
    kept: list[Row] = []
    for row in sorted(fair, key=lambda row: (seconds_of(row, request.seconds) or 0.0, row.peak_rss_bytes or 0)):
        if not kept or (row.peak_rss_bytes or 0) < (kept[-1].peak_rss_bytes or 0):
            kept.append(row)
    return kept


def work(rows: Sequence[Row], request: Request) -> Chart:
    """One line for each row that counted its work, one panel for each count that any of them has, after the seconds.

    All rows are of one task: to more text there is more to do.
    """
    rows = one_question(rows, "work", without=("tie_break",))
    rows = on_one_footing(rows) if request.seconds == "total" else rows
    drawn = [
        row for row in rows if row.status == "ok" and row.tallies and value_of(row, request.seconds).form != NOTHING
    ]
    names = [name for name in WORK if any(row.tallies.get(name) for row in drawn)]
    if not names:
        raise lacking(f"work: no row counted {', '.join(name.replace('_', ' ') for name in WORK)}")
    labels = Legend(drawn).short_labels()
    values = [value_of(row, request.seconds) for row in drawn]
    low, high = log_range([number for value in values for number in value.numbers])
    marks = [
        point_of(row, value, str(place), value.number or 0.0, place, size=5)
        for place, (row, value) in enumerate(zip(drawn, values, strict=True))
    ]
    seconds = Panel("seconds", request.seconds, Axis("seconds", low, high), labels, marks)
    return Chart(
        request.title or f"{SPOKEN[request.seconds]}, and the work that they were spent on",
        caption(drawn),
        [
            "Counts are the same on every machine. A row without a dot did none of this, or does not count it.",
            *bars_explained(drawn),
            EXPLAINED[request.seconds],
            *failures(rows),
        ],
        [seconds, *(tally_panel(name, drawn, labels) for name in names)],
        form_key(values),
        # The first panel, of seconds, is half as wide again as the others.
        widths=(1.5, *(1.0 for _ in names)),
        step=0.24 if len(drawn) < MANY else 0.165,
    )


def tally_panel(name: str, rows: Sequence[Row], labels: Sequence[str]) -> Panel:
    """How often every row did one thing."""
    low, high = log_range([row.tallies[name] for row in rows if row.tallies.get(name)], 2, 2, 25)
    spoken_name, marks = name.replace("_", " "), list[Mark]()
    for place, row in enumerate(rows):
        if number := row.tallies.get(name):
            colour, figures = row_look(row).colour, {"times": count_text(number)}
            marks.append(Line([(low, place), (number, place)], colour, 2.4, opacity=0.55, name=f"stem-{name}-{place}"))
            look = Look(colour, "circle")
            dot = Point(
                number,
                place,
                look,
                size=3.6,
                prefix="work",
                name=f"{name}-{place}",
                row=row,
                words="{times}",
                figures=figures,
            )
            marks.append(dot)
    return Panel(
        name, spoken_name, Axis("times", low, high, unit="times"), labels, marks, named=False, view=spoken_name
    )


def counting(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each corpus, a line for each counter and number of threads, all on one scale."""
    drawn = [row for row in rows if row.counting_only and row.total and row.corpus.get("bytes")]
    if not drawn:
        raise lacking("counting: no record is of counting alone; python -m harness.counting_benchmark FILE makes some")
    return Chart(
        request.title or "Counting words: megabytes a second, by language",
        caption(drawn),
        [
            "Megabytes of text by wall seconds of the whole way from the file to the words; to the right is faster.",
            *bars_explained(drawn),
            *failures(rows),
        ],
        counting_panels(drawn),
        margin=0.75,
    )


def counting_panels(drawn: Sequence[Row]) -> list[Panel]:
    """A panel for each corpus of rows that have a time."""
    several = len({row.record.get("threads") for row in drawn}) > 1
    low, high = log_range([number for row in drawn for number in speed_of(row).numbers], 1.6, 1.35)
    corpora: dict[str, list[Row]] = {}
    for row in drawn:
        corpora.setdefault(str(row.corpus.get("sha256")), []).append(row)
    described = []
    for place, group in enumerate(corpora.values()):
        corpus, last = group[0].corpus, place == len(corpora) - 1
        title = f"{spoken(str(corpus.get('name')))}, {bytes_text(corpus['bytes'])}"
        marks = [mark for line, row in enumerate(group) for mark in _speed(row, line, f"{place}-{line}", low)]
        labels = [_counter(row, several) for row in group]
        described.append(Panel(str(place), title, Axis("MB/s", low, high, bare=not last), labels, marks))
    return described


def speed_of(row: Row) -> Value:
    """Megabytes a second; the fastest run is the shortest one."""
    seconds, size = value_of(row, "total"), row.corpus["bytes"] / 1e6
    assert seconds.number is not None
    assert seconds.low is not None
    assert seconds.high is not None
    return Value(MEASURED, size / seconds.number, size / seconds.high, size / seconds.low)


def _counter(row: Row, several: bool) -> str:
    threads = row.record.get("threads")
    runs = f" x{row.runs}" if row.runs > 1 else ""
    return f"{row.name}, {threads} thread{'' if threads == 1 else 's'}{runs}" if several else f"{row.name}{runs}"


def _speed(row: Row, line: int, name: str, low: float) -> Iterator[Mark]:
    """A line from the edge to the speed; on a log axis its length means nothing, so it is thin."""
    speed = speed_of(row)
    assert speed.number is not None
    text = f"{rate_text(speed.number)} MB/s"
    total = f"{row.total or 0:,.{decimals_for([row.total or 0])}f}"
    figures = {"MB/s": rate_text(speed.number), "total, s": total}
    yield Line([(low, line), (speed.number, line)], row_look(row).colour, 1.0, opacity=0.45)
    yield point_of(row, speed, name, speed.number, line, size=7, words="{MB/s} MB/s", figures=figures)
    yield Text(line, text, speed.high or speed.number, 7)
