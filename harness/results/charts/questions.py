"""Rows by what was asked: which of them a picture may set beside each other, and what it says in words around them."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, share_text
from harness.results.fields import value_of
from harness.results.legend import Legend, failure_text
from harness.results.notes import ONE_RUN_CANNOT_TELL
from harness.results.rows import Row
from harness.runs.fields import DECISIVE, FIELD, FIELDS, Key, key_of

MOST_PANELS = 9
MOST_NAMED = 12
MOST_REASONS = 3
"""With more, those that were skipped or stopped are named together."""

CONDITIONS: dict[str, Callable[[Row], Any]] = {
    **{
        field.name.removeprefix("data."): value_of(field)
        for field in FIELDS
        if field.name not in ("params", "special_tokens")
    },
    "counting": lambda row: row.record.get("counting"),  # of a counter alone as well
    "status": lambda row: row.status,
}
"""What `--where` can be about."""


def chosen(rows: Sequence[Row], conditions: Sequence[str]) -> list[Row]:
    """The rows for which every NAME=VALUE holds; values may have the wildcards of file names, and commas for "or".

    Raises Refusal for a condition that is none, or that nothing meets.
    """
    kept = list(rows)
    for condition in conditions:
        name, equals, values = condition.partition("=")
        if not equals or name not in CONDITIONS:
            raise Refusal(f"--where {condition} is no condition; write NAME=VALUE with one of {', '.join(CONDITIONS)}")
        before, texts = kept, [str(CONDITIONS[name](row)) for row in kept]
        kept = [
            row
            for row, text in zip(before, texts, strict=True)
            if any(fnmatch.fnmatchcase(text, value) for value in values.split(","))
        ]
        if not kept:
            there = dict.fromkeys(texts)
            raise Refusal(f"no row has {condition}; there are: {', '.join(there)}", UNMEASURED)
    return kept


def lacking(sentence: str) -> Refusal:
    """The answer where the rows do not have what it takes for a picture."""
    return Refusal(sentence, UNMEASURED)


def question(row: Row, without: Sequence[str] = ()) -> Key:
    """What the row was asked, on which machine, as a key; `without` are fields in which rows of one key may differ."""
    fields = [field for field in (*DECISIVE, FIELD["cell"], FIELD["host"]) if field.name not in without]
    corpus = base_name(row) if "data.sha256" in without else row.corpus.get("name")
    return corpus, *key_of(row.record, fields)


def questions(rows: Sequence[Row], without: Sequence[str] = ()) -> list[list[Row]]:
    """The rows of each question together, in order of first appearance."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(question(row, without), []).append(row)
    return list(groups.values())


def grouped(rows: Sequence[Row], without: Sequence[str] = ()) -> list[list[Row]]:
    """The rows of each question together. Raises Refusal for more questions than a picture has room for."""
    groups = questions(rows, without)
    if len(groups) > MOST_PANELS:
        corpora = dict.fromkeys(str(row.corpus.get("name")) for row in rows)
        raise Refusal(
            f"these records answer {len(groups)} questions, and a picture has room for {MOST_PANELS}; choose by "
            f"--where, such as --where data={next(iter(corpora))}"
        )
    return groups


def one_question(rows: Sequence[Row], kind: str, without: Sequence[str] = ()) -> list[Row]:
    """The rows, if all were asked the same, but for `without`. Raises Refusal if not."""
    if found := unlike(rows, without):
        choice = " ".join(f"--where {name}={CONDITIONS[name](rows[0])}" for name in found if name in CONDITIONS)
        raise Refusal(
            f"{kind} is drawn of one corpus and one vocabulary on one machine, and these records are unlike in "
            f"{listed(list(found.values()))}; choose, such as {choice or f'--where variant={rows[0].name}'}"
        )
    return list(rows)


def unlike(rows: Sequence[Row], without: Sequence[str] = ()) -> dict[str, str]:
    """In what rows were asked differently, but for `without`: names of conditions, and what each is called."""
    groups = questions(rows, without)
    if len(groups) == 1:
        return {}
    asked = {FIELD["data"]: "corpus", FIELD["data.sha256"]: "corpus", FIELD["cell"]: "kind"}
    asked.update((field, field.title) for field in (*DECISIVE, FIELD["host"]) if field.title)
    values = {
        field: {str(value_of(field)(group[0])) for group in groups} for field in asked if field.name not in without
    }
    found = {field.name.removeprefix("data."): asked[field] for field, told in values.items() if len(told) > 1}
    if "data" in found:
        found.pop("sha256", None)
    return found


def panel_title(group: Sequence[Row], groups: Sequence[Sequence[Row]], sizes: bool = True) -> str:
    """The corpus with its language, and whatever else sets this group apart from the others."""
    first = group[0]
    name = str(first.corpus.get("name")) if sizes else base_name(first)
    parts = [spoken(name)]
    if sizes and first.corpus.get("bytes") is not None:
        parts.append(bytes_text(first.corpus["bytes"]))
    for field in (*DECISIVE, FIELD["host"]):
        told = {row.words.get(field.name) for row in group}
        if len(told) == 1 and field.name in differing(groups) and (words := told.pop()):
            parts.append(f"host {words.text}" if field.name == "host" else words.said)
    return ", ".join(filter(None, parts))


def differing(groups: Sequence[Sequence[Row]]) -> set[str]:
    """The fields in which groups are unlike; asked for by every group of the same in turn, so the last is kept."""
    if _differing[0] is not groups:
        known = [group[0].words for group in groups]
        names = [field.name for field in (*DECISIVE, FIELD["host"])]
        _differing[:] = groups, {name for name in names if len({words.get(name) for words in known}) > 1}
    found: set[str] = _differing[1]
    return found


_differing: list[Any] = [None, set()]


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
    kept = [part for part in generated[2].split(", ") if part.partition("=")[0] not in ("bytes", "words", "documents")]
    return f"{generated[1]}({', '.join(kept)})" if kept else generated[1]


def spoken(corpus: str) -> str:
    """A corpus with its language, where it has a card that says one."""
    language = _language(corpus.partition("(")[0])
    return f"{corpus} ({language})" if language and language != "generated" else corpus


@functools.cache
def _language(name: str) -> str | None:
    return registry.cards("data").get(name, {}).get("language")


def caption(rows: Sequence[Row]) -> list[str]:
    """What was measured, on what, when; of many slices of one corpus, from which size to which."""
    lines = Legend(rows).caption()
    if any(row.record.get("concurrent") for row in rows):
        lines[-1] += ", while other runs were timed on the machine"
    corpora = {str(row.corpus.get("sha256")): row.corpus for row in rows if row.corpus}
    names = {_without_size(str(corpus.get("name"))) for corpus in corpora.values()}
    if len(corpora) <= 4 and len(names) == len(corpora):
        return lines
    sizes: dict[str, set[int]] = {}
    for corpus in corpora.values():
        sizes.setdefault(spoken(_without_size(str(corpus.get("name")))), set()).add(corpus.get("bytes") or 0)
    slices = [f"{name} {_range(own)}" for name, own in sizes.items()]
    return ["; ".join(slices), *lines[len(corpora) :]]


def _range(sizes: set[int]) -> str:
    if len(sizes) == 1:
        return bytes_text(*sizes)
    return f"{bytes_text(min(sizes))} to {bytes_text(max(sizes))} in {len(sizes)} sizes"


def failures(rows: Sequence[Row], drawn: Sequence[Row] = ()) -> list[str]:
    """A sentence for each way in which rows came to nothing, with the names of those that did; none of those drawn."""
    reasons: dict[str, list[tuple[str, str, str]]] = {}
    for row, label in zip(rows, Legend(rows).short_labels(), strict=True):
        if row.status != "ok" and (row.status == "mismatch" or row not in drawn):
            reasons.setdefault(failure_text(row), []).append((row.status, row.name, label))
    sentences = []
    for statuses, verdict in _FOLDED.items():
        folded = {reason: failed for reason, failed in reasons.items() if failed[0][0] in statuses}
        if len(folded) > MOST_REASONS:
            names = dict.fromkeys(name for failed in folded.values() for _, name, _ in failed)
            sentences.append(f"{verdict}: {listed([*names])}; the table says why.")
            reasons = {reason: failed for reason, failed in reasons.items() if reason not in folded}
    for reason, failed in reasons.items():
        names = dict.fromkeys(name for _, name, _ in failed)
        labels = [label for *_, label in failed] if len(failed) <= MOST_REASONS else [*names]
        sentences.append(f"{listed(labels)}: {reason}.")
    return sentences


_FOLDED = {("timeout", "extrapolated"): "Stopped at the limit", ("skipped",): "Skipped"}
"""What is told of all of a kind together where there are many."""


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a", "b"]), listed([str(number) for number in range(16)])
    ('a; b', '0; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; and 4 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)


def bars_explained(rows: Sequence[Row]) -> list[str]:
    """What the bars at the markers are."""
    runs = {min(len(row.samples), 2) for row in rows if row.status == "ok"}
    sentences = []
    if 2 in runs:
        sentences.append("Bars: from the shortest of several runs to the longest; the marker is their median.")
    if runs & {0, 1}:
        share = share_text(ONE_RUN_CANNOT_TELL)
        sentences.append(f"Faint bars: one run; another may differ by {share} even on a quiet machine.")
    return sentences
