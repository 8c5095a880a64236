"""The words around rows: what distinguishes each, what they share, and in what they differ.

A field that all rows share is in the caption; one in which they differ is a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.common.sheet import Column
from harness.common.units import bytes_text, count_text, counted_text
from harness.results.fields import COLUMNS, FIELD, Field, together
from harness.results.rows import Row
from harness.results.writing import NOT_MEASURED

# only between namesakes: the proof names the rule of ties, and every table the words
MINOR = (FIELD["tie_break"].title, FIELD["counting"].title)


def names_of(rows: Sequence[Row]) -> list[str]:
    """Each row's variant, with the parameters that distinguish it from most rows of that name, such
    as `heap(push=grown)`.
    """
    namesakes = together([(row.name, row.configured) for row in rows])
    names = []
    for row in rows:
        configurations = set(namesakes[row.name])
        odd = []
        for item in row.params.items():
            sharing = sum(item in configuration for configuration in configurations)
            if sharing <= len(configurations) / 2:
                odd.append("=".join(item))
        names.append(f"{row.name}({', '.join(odd)})" if odd else row.name)
    return names


def differing_columns(rows: Sequence[Row]) -> dict[str, Column]:
    """A column for each field in which the rows differ, by its title."""
    columns = {}
    for field in COLUMNS:
        texts = _texts(rows, field)
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
    namesakes = together([(name, index) for index, name in enumerate(labels)])
    for indices in namesakes.values():
        distinct: dict[int, tuple[str, ...]] = dict.fromkeys(indices, ())
        for column in columns.values():
            finer = {index: (*distinct[index], column.cells[index]) for index in indices}
            if len({*finer.values()}) == len({*distinct.values()}):
                continue  # it distinguishes no more than the columns before it
            distinct = finer
            for index in indices:
                if column.cells[index] != NOT_MEASURED:
                    labels[index] += f", {column.heading} {column.cells[index]}"
    return labels


def labelled(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    return list(zip(rows, labels_of(rows), strict=True))


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
    vocabulary, others = list[str](), list[str]()
    for field in COLUMNS:
        if field.name != "data" and len({*_texts(rows, field)} - {None}) == 1:
            phrases = vocabulary if field.name == "vocab_size" else others
            phrases.append(_phrase(rows, field, among))
    days = sorted(row.record.measurement.started[:10] for row in rows)
    if days:
        others.append(" to ".join(dict.fromkeys([days[0], days[-1]])))

    lines = _corpora_lines(rows)
    if len(lines) == 1:
        lines = [_joined([*lines, *vocabulary]), _joined(others)]
    else:
        lines.append(_joined([*vocabulary, *others]))
    lines = list(filter(None, lines))
    return lines if panels == 1 else lines[-1:]


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(filter(None, parts))


def _texts(rows: Sequence[Row], field: Field) -> list[str | None]:
    """The field of each row as it is written; None where it is unknown."""
    if field.name == "data":
        return _corpus_names(rows)
    return [row.texts[field.name] for row in rows]


def _corpus_names(rows: Sequence[Row]) -> list[str | None]:
    """Each row's corpus; if several have one name also its size, or its digest if their sizes do
    not differ.
    """
    sizes: dict[Any, dict[Any, str]] = {}
    for row in rows:
        corpus = row.corpus
        size = bytes_text(corpus.bytes or 0)
        sizes.setdefault(corpus.name, {})[corpus.sha256] = size

    names: list[str | None] = []
    for row in rows:
        name, digest = row.corpus.name, row.corpus.sha256
        namesakes = sizes[name]
        if name is None or len(namesakes) == 1:
            names.append(name)
            continue
        size_is_unique = list(namesakes.values()).count(namesakes[digest]) == 1
        names.append(f"{name} {namesakes[digest] if size_is_unique else str(digest)[:8]}")
    return names


def _corpora_lines(rows: Sequence[Row]) -> list[str]:
    """A line for each corpus, with the facts on which its rows agree: its words depend on the
    pattern as well.
    """
    named: dict[str, tuple[str | None, list[Row]]] = {}
    for row, name in zip(rows, _corpus_names(rows), strict=True):
        if row.corpus.sha256:
            named.setdefault(row.corpus.sha256, (name, []))[1].append(row)

    lines = []
    for name, corpus_rows in named.values():
        facts = []
        for fact in ("bytes", "words"):
            numbers: set[Any] = {getattr(row.corpus, fact) for row in corpus_rows} - {None}
            if len(numbers) == 1:
                facts.append(counted_text(numbers.pop(), fact.removesuffix("s")))
        lines.append(f"{name}: {', '.join(facts)}")
    return lines


def _phrase(rows: Sequence[Row], field: Field, among: Sequence[Row]) -> str:
    """Return a field that the rows share in words; empty if it is the default of every table."""
    record = next(row.record for row in rows if row.texts[field.name] is not None)
    everywhere = {row.texts[field.name] for row in among} - {None}
    if len(everywhere) < 2:
        if field.name == "counting" and not record.cell.counting_chosen:
            return ""
        if field.default is not None and field.value(record) == field.default:
            return ""
    merges = _merge_counts(rows) if field.name == "vocab_size" else ""
    return field.phrase(record) + merges


def _merge_counts(rows: Sequence[Row]) -> str:
    """Return how many merges all rows learned, or were to learn; empty if they differ."""
    learned = {row.merges for row in rows} - {None}
    numbers = learned or {row.requested_merges for row in rows} - {None}
    merges = numbers.pop() if len(numbers) == 1 else None
    return "" if merges is None else f" ({count_text(merges)} merges)"
