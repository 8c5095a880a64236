"""How rows are written, the same in tables, charts and pages: figures and outcomes, names and
captions.

A field that all rows share is in the caption; one in which they differ is a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common import registry
from harness.common.sheet import Column
from harness.common.units import (
    bytes_text,
    count_text,
    counted_text,
    instructions_text,
    one_line,
    rate_text,
    ratio_text,
    seconds_text,
    share_text,
)
from harness.proof import BY_DESIGN, UNPROVED, WRONG
from harness.records.schema import PHASES
from harness.results.fields import COLUMNS, FIELD, together
from harness.results.ratios import TASK, Ratio, base_name, unlike
from harness.results.rows import Row, Time
from variants.contract import GREATEST_BYTES

NOT_MEASURED, SAMPLED, UNPROVED_MARK, DESIGN_MARK = "-", "~", "?", "*"
"""The last one marks figures of trainers that make other merges, on purpose."""
DIFFERENT = "≠"  # in place of a figure: merges differ
MOST_NAMED = 4

FIGURES: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("wall", "CPU", "system", "merge", *PHASES), seconds_text),
    **dict.fromkeys(("MB/s", "pre-tokens/s", "merges/s"), rate_text),
    "spread": share_text,
    "memory": bytes_text,
    "bytes/token": "{:.2f}".format,
    "instructions": instructions_text,
}
"""How each figure is written; all others are counts."""


def figure_text(row: Row, figure: str) -> str | None:
    """A figure as it is written everywhere, or None if it is unknown."""
    if figure == "total":
        return time_text(row.time) or None
    number = row.figures.get(figure)
    if number is None:
        return None
    text = FIGURES.get(figure, count_text)(number)
    return SAMPLED + text if figure == "memory" and row.memory_is_sampled else text


def marked(row: Row, text: str | None) -> str:
    """The text of a figure with the mark of the row's merges; without one, why it is missing."""
    return text + mark_of(row) if text else missing(row)


def mark_of(row: Row) -> str:
    """Return the mark of the row's figures: its merges differ on purpose, or are not proved."""
    if row.status == "ok" and row.by_design:
        return DESIGN_MARK
    return UNPROVED_MARK if row.doubtful else ""


def missing(row: Row) -> str:
    """What is written for a figure that there is not.

    A dash means "not measured"; wrong merges were measured, and none of it counts.
    """
    return "" if row.status == "mismatch" else NOT_MEASURED


def outcome_text(row: Row, text: str | None) -> str:
    """The text of a figure with the mark of the row's merges; without one, how the row ended."""
    if row.status == "mismatch":
        return DIFFERENT
    if text:
        return text + mark_of(row)
    return NOT_MEASURED if row.status == "ok" else status_text(row)


def time_text(time: Time, number_text: Callable[[float], str] = ratio_text) -> str:
    """A time, or the limit that it exceeded, as it was set; empty if there is none.

    >>> time_text(Time(2.0)), time_text(Time(3600.0, is_limit=True)), time_text(Time())
    ('2.00 s', '> 3,600 s', '')
    """
    if time.number is None:
        return ""
    if time.is_limit:
        return f"> {number_tick(time.number)} s"
    return seconds_text(time.number, number_text)


def number_tick(number: float) -> str:
    """A number at an axis.

    >>> [number_tick(number) for number in (0.5, 2.0, 1500.0)]
    ['0.5', '2', '1,500']
    """
    return f"{number:,.10f}".rstrip("0").rstrip(".")


def digits_text(number: float) -> str:
    """Two digits, or a whole number, where a table with three is near.

    >>> [digits_text(number) for number in (0.4883, 5.43, 12.9, 129.2, 1550.3)]
    ['0.49', '5.4', '13', '129', '1,550']
    """
    return number_tick(float(f"{number:.2g}") if number < 100 else round(number))


def time_tick(seconds: float) -> str:
    """A time at an axis.

    >>> [time_tick(seconds) for seconds in (0.00002, 0.05, 2.5, 10_000.0)]
    ['20 µs', '50 ms', '2.5 s', '10,000 s']
    """
    is_long = seconds >= 999.5
    return f"{number_tick(seconds)} s" if is_long else seconds_text(seconds, number_tick)


def bytes_tick(size: float) -> str:
    """
    >>> bytes_tick(250_000), bytes_tick(2e9)
    ('250 kB', '2 GB')
    """
    text, unit = bytes_text(round(size)).split(" ")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


class Value(NamedTuple):
    """What a chart shows of each row, as a time whatever it is: its title, and the text at a tick."""

    name: str
    title: str
    tick: Callable[[float], str]
    of: Callable[[Row], Time]


TOTAL = Value("total", "Time", time_tick, lambda row: row.time)
MEMORY = Value("memory", "Peak memory", bytes_tick, lambda row: Time(row.peak_rss_bytes))
VALUES = {value.name: value for value in (TOTAL, MEMORY)}


def times_text(ratio: Ratio | None, sign: str = "× ", *, brief: bool = False) -> str:
    """A ratio with its sign and, unless it is to be brief, its interval, or that of a limit; empty
    if there is none.

    >>> times_text(Ratio(180)), times_text(Ratio(400, is_limit=True)), times_text(Ratio(1.5, low=1.4, high=1.61), "")
    ('× 180', '> 400', '1.50 (1.40 to 1.61)')
    """
    if ratio is None:
        return ""
    number = digits_text(ratio.number) if brief else ratio_text(ratio.number)
    text = f"> {number}" if ratio.is_limit else sign + number
    if ratio.low is None or ratio.high is None or brief:
        return text
    return f"{text} ({ratio_text(ratio.low)} to {ratio_text(ratio.high)})"


def status_text(row: Row) -> str:
    return row.status.replace("_", " ")


def proof_text(row: Row) -> str:
    """The verdict on its merges, or how it ended.

    "wrong at merge 12", "identical (raw_bytes)", "unproved", "timeout"
    """
    identity = row.identity
    if row.status == "mismatch":
        merge = identity.merge
        return f"wrong at merge {count_text(merge)}" if merge else WRONG
    if row.status != "ok":
        return status_text(row)
    if row.disputed:
        return f"{row.digest} {UNPROVED_MARK}"

    if row.by_design:
        differs = BY_DESIGN.replace("_", " ")
        return differs if row.other_merges else "identical on its own words"
    if not row.proved:
        return UNPROVED
    kind, tie_break = str(identity.kind).replace("_", " "), identity.tie_break
    return kind if tie_break in (None, GREATEST_BYTES.value) else f"{kind} ({tie_break})"


def failure_text(row: Row) -> str:
    """What happened to a row that has no times, or in which of its blocks it failed.

    "timeout: over limits.wall=20 s, after 311 of 743 merges"
    """
    if row.status == "mismatch":
        reason = row.identity.reason if row.identity.kind == WRONG else row.reason
        return f"wrong merges, so no time is shown: {one_line(reason or '')}"

    if row.status == "ok":
        return one_line(row.reason)
    text = status_text(row)
    if row.reason:
        text += f": {one_line(row.reason)}"
    done, requested = row.record.measurement.merges_done, row.requested_merges
    if done and requested is not None and done < requested:
        text += f", after {count_text(done)} of {count_text(requested)} merges"
    return text


def join_names(names: Sequence[str]) -> str:
    """
    >>> join_names(["a", "b"]), join_names([str(number) for number in range(20)])
    ('a; b', '0; 1; 2; 3; and 16 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)


# Names and captions

# only between namesakes: the proof names the rule of ties, and every table the words
MINOR = (FIELD["tie_break"].title, FIELD["counting"].title)


def names_of(rows: Sequence[Row]) -> list[str]:
    """Each row's variant, with the parameters that distinguish it from most rows of that name, such
    as `heap(push=grown)`.
    """
    numbers = Counter[Any]()
    for name, *params in {row.configured for row in rows}:
        numbers.update([name, *((name, item) for item in params)])

    names = []
    for row in rows:
        odd = []
        for item in row.params.items():
            if numbers[row.name, item] <= numbers[row.name] / 2:
                odd.append("=".join(item))
        names.append(f"{row.name}({', '.join(odd)})" if odd else row.name)
    return names


def differing_columns(rows: Sequence[Row]) -> dict[str, Column]:
    """A column for each field in which the rows differ, by its title."""
    columns = {}
    for field in COLUMNS:
        is_corpus = field.name == "data"
        texts = _corpus_names(rows) if is_corpus else [row.texts[field.name] for row in rows]
        if len({*texts} - {None}) > 1:
            cells = [text or NOT_MEASURED for text in texts]
            columns[field.title] = Column(field.title, cells, field.figure)
    return columns


def labels_of(rows: Sequence[Row], without: Sequence[str] = ()) -> list[str]:
    """Each row's name, with the fields that distinguish it from other rows of that name, but those
    `without`.
    """
    labels, columns = names_of(rows), differing_columns(rows)
    for name in without:
        columns.pop(FIELD[name].title, None)

    indices_of_name = together((name, index) for index, name in enumerate(labels))
    for column in columns.values():
        finer = []
        for label, cell in zip(labels, column.cells, strict=True):
            finer.append(label if cell == NOT_MEASURED else f"{label}, {column.heading} {cell}")
        for indices in indices_of_name.values():
            # a field that distinguishes no more than those before it is left out
            if len({finer[index] for index in indices}) > len({labels[index] for index in indices}):
                for index in indices:
                    labels[index] = finer[index]
    return labels


def titles_of(rows: Sequence[Row], columns: Mapping[str, Column]) -> list[str]:
    """The titles of the columns that are worth showing."""
    names = names_of(rows)
    titles = []
    for title, column in columns.items():
        distinguishes_namesakes = len({*zip(names, column.cells, strict=True)}) > len({*names})
        if title not in MINOR or distinguishes_namesakes:
            titles.append(title)
    return titles


def caption_of(rows: Sequence[Row], among: Sequence[Row] = (), panels: int = 1) -> list[str]:
    """The corpus with the vocabulary, then what is not the default, the machine and the day.

    `among` are all rows of the command: a default is named if another table has another value. Of
    several panels, which have titles of their own, the last line alone.
    """
    phrases = {}
    for field in COLUMNS[1:]:  # without the corpus
        records = {row.texts[field.name]: row.record for row in reversed(rows)}
        records.pop(None, None)
        if len(records) == 1:
            (record,) = records.values()
            everywhere = {row.texts[field.name] for row in among} - {None}
            if len(everywhere) > 1 or not field.is_default(record):
                phrases[field.name] = field.phrase(record)
    vocabulary = phrases.pop("vocab_size", "")
    if vocabulary:
        vocabulary += _merge_counts(rows)
    days = sorted(row.record.measurement.started[:10] for row in rows)
    period = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))

    corpora, others = _corpora_lines(rows), [*phrases.values(), period]
    if len(corpora) == 1:
        lines = [_joined(*corpora, vocabulary), _joined(*others)]
    else:
        lines = [*corpora, _joined(vocabulary, *others)]
    lines = list(filter(None, lines))
    return lines if panels == 1 else lines[-1:]


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _corpus_names(rows: Sequence[Row]) -> list[str | None]:
    """Each row's corpus; if several have one name also its size, or its digest if their sizes do
    not differ.
    """
    sizes: dict[Any, dict[Any, str]] = {}
    for row in rows:
        corpus = row.corpus
        size = bytes_text(corpus.bytes or 0)
        sizes.setdefault(corpus.name, {})[corpus.sha256] = size

    names = []
    for row in rows:
        name, digest = row.corpus.name, row.corpus.sha256
        namesakes = sizes[name]
        if name is not None and len(namesakes) > 1:
            size = namesakes[digest]
            size_is_unique = list(namesakes.values()).count(size) == 1
            name += f" {size if size_is_unique else str(digest)[:8]}"
        names.append(name)
    return names


def _corpora_lines(rows: Sequence[Row]) -> list[str]:
    """A line for each corpus, with the facts on which its rows agree: its words depend on the
    pattern as well.
    """
    recorded = [row for row in rows if row.corpus.sha256]
    corpora = together(zip(_corpus_names(recorded), recorded, strict=True))

    lines = []
    for name, corpus_rows in corpora.items():
        facts = []
        for fact in ("bytes", "words"):
            numbers: set[Any] = {getattr(row.corpus, fact) for row in corpus_rows} - {None}
            if len(numbers) == 1:
                facts.append(counted_text(numbers.pop(), fact.removesuffix("s")))
        lines.append(f"{name}: {', '.join(facts)}")
    return lines


def _merge_counts(rows: Sequence[Row]) -> str:
    """Return how many merges all rows learned, or were to learn; empty if they differ."""
    learned = {row.merges for row in rows} - {None}
    numbers = learned or {row.requested_merges for row in rows} - {None}
    merges = numbers.pop() if len(numbers) == 1 else None
    return "" if merges is None else f" ({count_text(merges)} merges)"


def panel_title(group: Sequence[Row], groups: Sequence[Sequence[Row]], sizes: bool = True) -> str:
    """The corpus with its language, and whatever distinguishes this group from the others."""
    first, base = group[0], base_name(group[0])
    title = str(first.corpus.name) if sizes else base
    language = registry.cards("data").get(base, {}).get("language", "generated")
    if language != "generated":
        title += f" ({language})"
    parts = [title]
    if sizes and first.corpus.bytes is not None:
        parts.append(bytes_text(first.corpus.bytes))

    for name in unlike([other[0] for other in groups], TASK):
        field = FIELD[name]
        if not unlike(group, [name]) and not field.is_default(first.record):
            host = f"host {first.texts[name]}"
            parts.append(host if name == "host" else field.phrase(first.record))
    return ", ".join(filter(None, parts))
