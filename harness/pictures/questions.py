"""Rows by what was asked: which of them a picture may set beside each other, and what each panel is called."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness import registry
from harness.errors import UNMEASURED, Refusal
from harness.legend import Legend, failure_text
from harness.rows import Row
from harness.units import bytes_text, count_text

MOST_PANELS = 9
MOST_NAMED = 12
MOST_REASONS = 3
"""With more, those that were skipped or stopped are named together."""

FIELDS: Mapping[str, Callable[[Row], Any]] = {
    "data": lambda row: row.corpus.get("name"),
    "bytes": lambda row: row.corpus.get("bytes"),
    **{
        name: (lambda row, name=name: row.record.get(name))  # type: ignore[misc]
        for name in (
            *("variant", "counting", "vocab_size", "threads", "tie_break", "pattern", "min_count", "family", "status"),
            *("interpreter", "host", "measure"),
        )
    },
}
"""What `--where` can be about."""


def chosen(shown: Sequence[Row], conditions: Sequence[str]) -> list[Row]:
    """The rows for which every NAME=VALUE holds; values may have the wildcards of file names, and commas for "or".

    Raises Refusal for a condition that is none, or that nothing meets.
    """
    kept = list(shown)
    for condition in conditions:
        name, equals, values = condition.partition("=")
        if not equals or name not in FIELDS:
            raise Refusal(f"--where {condition} is no condition; write NAME=VALUE with one of {', '.join(FIELDS)}")
        before = kept
        kept = [
            row
            for row in kept
            if any(fnmatch.fnmatchcase(str(FIELDS[name](row)), value) for value in values.split(","))
        ]
        if not kept:
            there = dict.fromkeys(str(FIELDS[name](row)) for row in before)
            raise Refusal(f"no row has {condition}; there are: {', '.join(there)}", UNMEASURED)
    return kept


def lacking(sentence: str) -> Refusal:
    """The answer where the rows do not have what it takes for a picture."""
    return Refusal(sentence, UNMEASURED)


def question(row: Row, without: Sequence[str] = ()) -> str:
    """What the row was asked, as a key; `without` are the parts on which rows of one key may differ."""
    parts = {
        "sha256": row.corpus.get("sha256"),
        "data": base_name(row) if "sha256" in without else row.corpus.get("name"),
        **{
            name: row.record.get(name)
            for name in ("cell", "vocab_size", "pattern", "special_tokens", "errors", "tie_break", "min_count", "host")
        },
    }
    return json.dumps({name: part for name, part in parts.items() if name not in without})


def grouped(shown: Sequence[Row], without: Sequence[str] = ()) -> list[list[Row]]:
    """The rows of each question together, in order of first appearance. Raises Refusal for too many questions."""
    groups: dict[str, list[Row]] = {}
    for row in shown:
        groups.setdefault(question(row, without), []).append(row)
    if len(groups) > MOST_PANELS:
        corpora = dict.fromkeys(str(row.corpus.get("name")) for row in shown)
        raise Refusal(
            f"these records answer {len(groups)} questions, and a picture has room for {MOST_PANELS}; choose by "
            f"--where, such as --where data={next(iter(corpora))}"
        )
    return list(groups.values())


def one_question(shown: Sequence[Row], kind: str) -> list[Row]:
    """The rows, if all were asked the same. Raises Refusal if not."""
    groups: dict[str, Row] = {}
    for row in shown:
        groups.setdefault(question(row), row)
    if len(groups) > 1:
        first, *_ = groups.values()
        choice = f"--where data={first.corpus.get('name')} --where vocab_size={first.record.get('vocab_size')}"
        raise Refusal(
            f"{kind} is drawn of one corpus and one vocabulary, and these records have {len(groups)}; choose, such as "
            f"{choice}"
        )
    return list(shown)


def panel_title(group: Sequence[Row], groups: Sequence[Sequence[Row]], sizes: bool = True) -> str:
    """The corpus with its language, and whatever else sets this group apart from the others."""
    first = group[0]
    name = str(first.corpus.get("name")) if sizes else base_name(first)
    parts = [spoken(name)]
    if sizes and first.corpus.get("bytes") is not None:
        parts.append(bytes_text(first.corpus["bytes"]))
    for name, told in (
        ("vocab_size", lambda value: f"vocabulary {count_text(value)}"),
        ("pattern", lambda value: f"pattern {value}"),
        ("tie_break", lambda value: f"ties {value}"),
        ("host", lambda value: f"host {value}"),
    ):
        values = [each[0].record.get(name) for each in groups]
        if len({row.record.get(name) for row in group}) == 1 and len(set(map(str, values))) > 1:
            parts.append(told(first.record.get(name)))  # type: ignore[no-untyped-call]
    return ", ".join(parts)


def base_name(row: Row) -> str:
    """The name of the row's corpus, of any size."""
    return _without_size(str(row.corpus.get("name")))


def _without_size(name: str) -> str:
    """
    >>> _without_size("one_word(bytes=5000)"), _without_size("one_word(bytes=5000, seed=2)"), _without_size("a(b).txt")
    ('one_word', 'one_word(seed=2)', 'a(b).txt')
    """
    found = re.fullmatch(r"(\w+)\((\w+=[^()]*)\)", name)
    if found is None:
        return name
    kept = [part for part in found[2].split(", ") if part.partition("=")[0] not in ("bytes", "words", "documents")]
    return f"{found[1]}({', '.join(kept)})" if kept else found[1]


def spoken(corpus: str) -> str:
    """A corpus with its language, where it has a card that says one."""
    language = registry.cards("data").get(corpus.partition("(")[0], {}).get("language")
    return f"{corpus} ({language})" if language and language != "generated" else corpus


def caption(shown: Sequence[Row]) -> list[str]:
    """What was measured, on what, when; of many slices of one corpus, from which size to which."""
    lines = Legend(shown).caption()
    if any(row.record.get("concurrent") for row in shown):
        lines[-1] += ", while other runs were timed on the machine"
    corpora = {str(row.corpus.get("sha256")): row.corpus for row in shown if row.corpus}
    names = {_without_size(str(corpus.get("name"))) for corpus in corpora.values()}
    if len(corpora) <= 4 and len(names) == len(corpora):
        return lines
    sizes: dict[str, set[int]] = {}
    for corpus in corpora.values():
        sizes.setdefault(spoken(_without_size(str(corpus.get("name")))), set()).add(corpus.get("bytes") or 0)
    told = [f"{name} {_range(found)}" for name, found in sizes.items()]
    return ["; ".join(told), *lines[len(corpora) :]]


def _range(sizes: set[int]) -> str:
    if len(sizes) == 1:
        return bytes_text(*sizes)
    return f"{bytes_text(min(sizes))} to {bytes_text(max(sizes))} in {len(sizes)} sizes"


def failures(shown: Sequence[Row], drawn: Sequence[Row] = ()) -> list[str]:
    """A sentence for each way in which rows came to nothing, with the names of those that did; none of those drawn."""
    told: dict[str, list[tuple[str, str, str]]] = {}
    for row, label in zip(shown, Legend(shown).short_labels(), strict=True):
        if row.status != "ok" and (row.status == "mismatch" or row not in drawn):
            told.setdefault(failure_text(row), []).append((row.status, row.name, label))
    said = []
    for statuses, verdict in _FOLDED.items():
        found = {text: rows for text, rows in told.items() if rows[0][0] in statuses}
        if len(found) > MOST_REASONS:
            names = dict.fromkeys(name for rows in found.values() for _, name, _ in rows)
            said.append(f"{verdict}: {listed([*names])}; the table says why.")
            told = {text: rows for text, rows in told.items() if text not in found}
    for text, rows in told.items():
        names = dict.fromkeys(name for _, name, _ in rows)
        labels = [label for *_, label in rows] if len(rows) <= MOST_REASONS else [*names]
        said.append(f"{listed(labels)}: {text}.")
    return said


_FOLDED = {("timeout", "extrapolated"): "Stopped at the limit", ("skipped",): "Skipped"}
"""What is told of all of a kind together where there are many."""


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a", "b"]), listed([str(number) for number in range(16)])
    ('a; b', '0; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; and 4 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)
