"""Rows by what was measured: chosen by `--where NAME=VALUE`, and put together by task."""

from __future__ import annotations

import argparse
import fnmatch
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text
from harness.results.fields import reader_of
from harness.results.legend import join_names
from harness.results.rows import Row
from harness.runs.fields import DECISIVE, FIELD, FIELDS, Key, key_of

MOST_PANELS = 9
CONDITIONS: dict[str, Callable[[Row], Any]] = {
    **{
        field.name.removeprefix("data."): reader_of(field)
        for field in FIELDS
        if field.name not in ("params", "special_tokens")
    },
    "counting": lambda row: row.record.get("counting"),  # of a counter alone as well
    "status": lambda row: row.status,
}
"""What a condition can be about."""


def add_where_argument(parser: argparse.ArgumentParser) -> None:
    """Let a command take conditions on rows."""
    parser.add_argument(
        "--where",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="only such rows, such as variant=heap,flat*; repeatable",
    )


def rows_where(rows: Sequence[Row], conditions: Sequence[str]) -> list[Row]:
    """The rows for which every NAME=VALUE holds; values may have wildcards, and commas for "or".

    Raises Refusal for an unknown name, or if no row is left.
    """
    chosen = list(rows)
    for condition in conditions:
        name, equals, values = condition.partition("=")
        if not equals or name not in CONDITIONS:
            raise Refusal(f"--where {condition}: write NAME=VALUE with one of {', '.join(CONDITIONS)}")
        texts = [str(CONDITIONS[name](row)) for row in chosen]
        patterns = values.split(",")
        chosen = [
            row
            for row, text in zip(chosen, texts, strict=True)
            if any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
        ]
        if not chosen:
            raise Refusal(f"no row has {condition}; there are: {', '.join(dict.fromkeys(texts))}", UNMEASURED)
    return chosen


def tasks_of(rows: Sequence[Row], without: Sequence[str] = ()) -> list[list[Row]]:
    """The rows of each task on each machine; `without` are fields in which rows of one task may differ."""
    groups: dict[Key, list[Row]] = {}
    fields = [field for field in (*DECISIVE, FIELD["cell"], FIELD["host"]) if field.name not in without]
    for row in rows:
        corpus = base_name(row) if "data.sha256" in without else row.corpus.get("name")
        groups.setdefault((corpus, *key_of(row.record, fields)), []).append(row)
    return list(groups.values())


def grouped(rows: Sequence[Row], without: Sequence[str] = ("tie_break",)) -> list[list[Row]]:
    """The rows of each task. Raises Refusal for more tasks than a chart has room for."""
    groups = tasks_of(rows, without)
    if len(groups) > MOST_PANELS:
        name = next(str(row.corpus.get("name")) for row in rows)
        raise Refusal(
            f"these records answer {len(groups)} questions, and a chart has room for {MOST_PANELS}; choose by --where, "
            f"such as --where data={name}"
        )
    return groups


def one_task(rows: Sequence[Row], kind: str, without: Sequence[str] = ("tie_break",)) -> list[Row]:
    """The rows, if all are of one task on one machine. Raises Refusal if not."""
    if not rows:
        raise Refusal(f"{kind}: no trainer was measured; python -m harness measures some", UNMEASURED)
    if found := unlike(rows, without):
        choice = " ".join(f"--where {name}={CONDITIONS[name](rows[0])}" for name in found if name in CONDITIONS)
        raise Refusal(
            f"{kind} is drawn of one corpus and one vocabulary on one machine, and these records are unlike in "
            f"{join_names(list(found.values()))}; choose, such as {choice or f'--where variant={rows[0].name}'}"
        )
    return list(rows)


def unlike(rows: Sequence[Row], without: Sequence[str] = ()) -> dict[str, str]:
    """In what the tasks of rows differ: names of conditions, and what each is called."""
    groups = tasks_of(rows, without)
    if len(groups) == 1:
        return {}
    titles = {FIELD["data"]: "corpus", FIELD["data.sha256"]: "corpus", FIELD["cell"]: "kind"}
    titles.update((field, field.title) for field in (*DECISIVE, FIELD["host"]) if field.title)
    found = {
        field.name.removeprefix("data."): title
        for field, title in titles.items()
        if field.name not in without and len({str(reader_of(field)(group[0])) for group in groups}) > 1
    }
    if "data" in found:
        found.pop("sha256", None)
    return found


def panel_title(group: Sequence[Row], groups: Sequence[Sequence[Row]], sizes: bool = True) -> str:
    """The corpus with its language, and whatever distinguishes this group from the others."""
    first = group[0]
    name = str(first.corpus.get("name")) if sizes else base_name(first)
    language = corpus_language(name.partition("(")[0])
    parts = [f"{name} ({language})" if language else name]
    if sizes and first.corpus.get("bytes") is not None:
        parts.append(bytes_text(first.corpus["bytes"]))
    for field in (*DECISIVE, FIELD["host"]):
        texts = {own[0].words.get(field.name) for own in groups}
        if len(texts) > 1 and len({row.words.get(field.name) for row in group}) == 1:
            words = first.words.get(field.name)
            parts += [f"host {words.text}" if field.name == "host" else words.said] if words else []
    return ", ".join(filter(None, parts))


def base_name(row: Row) -> str:
    """The name of the row's corpus, of any size."""
    return _without_size(str(row.corpus.get("name")))


def _without_size(name: str) -> str:
    """
    >>> _without_size("one_word(bytes=5000)"), _without_size("one_word(bytes=5000, seed=2)"), _without_size("a(b).txt")
    ('one_word', 'one_word(seed=2)', 'a(b).txt')
    """
    generated = re.fullmatch(r"(\w+)\((\w+=[^()]*)\)", name)
    if generated is None:
        return name
    others = [
        part for part in generated[2].split(", ") if part.partition("=")[0] not in ("bytes", "words", "documents")
    ]
    return f"{generated[1]}({', '.join(others)})" if others else generated[1]


@functools.cache
def corpus_language(name: str) -> str:
    language = registry.cards("data").get(name, {}).get("language") or ""
    return "" if language == "generated" else str(language)
