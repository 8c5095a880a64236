"""Every field in which cells can differ, once: its name, its key in a record, its title and text, and what it decides.

Rows, tables, captions, comparisons, pivots and charts read this table; a field that is not here is in none of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.common.units import count_text, counted_text

Record = Mapping[str, Any]
Key = tuple[Any, ...]

NOT_RECORDED = "not recorded"
PROTECTED = re.compile(r"protected:[0-9a-f.]+")


def value_at(key: str) -> Callable[[Record], Any]:
    """What reads one key of a record; a dot leads into a mapping, and where there is none there is no value."""
    outer, _, inner = key.partition(".")
    if not inner:
        return lambda record: record.get(outer)
    return lambda record: (record.get(outer) or {}).get(inner)


def value_text(value: Any) -> str:
    """A field's value as it is written in a table; a dash where it is not known.

    >>> value_text(32_000), value_text(["<s>", "</s>"]), value_text([]), value_text(True), value_text(None)
    ('32,000', '<s> </s>', 'none', 'true', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return count_text(value) if isinstance(value, int) else str(value)


class InWords(NamedTuple):
    """A field's value as a table writes it, and the phrase that names the field too; empty where none is needed."""

    text: str
    phrase: str


@dataclass(frozen=True, eq=False)
class Field:
    """One thing in which cells can differ; equal to itself alone.

    `name` is that of its override or key, `value` reads it from a record (None if unknown). `title` heads its column if
    rows differ in it, `written` formats it there, and `sentence` is its text for rows that share it. Cells with equal
    values of all that `decides_merges` must have equal merges; `other_work` is the note on times that differ in it;
    fields with `names_cell` distinguish cells. `unlike` is its name in a comparison of two sets, where
    `described` is its text and a lacking value is `missing`; rows that differ only in a `circumstance` are one cell.
    """

    name: str
    value: Callable[[Record], Any]
    title: str = ""
    sentence: str | Callable[[Record], str] = "{}"
    written: Callable[[Record], str] | None = None
    figure: bool = False
    decides_merges: bool = False
    other_work: str = ""
    names_cell: bool = False
    unlike: str = ""
    missing: Any = None
    circumstance: bool = False
    described: Callable[[Record], str] | None = None

    def in_words(self, record: Record) -> InWords | None:
        """The value as text and as a phrase; None where it is unknown."""
        value = self.value(record)
        if value is None:
            return None
        text = value_text(value) if self.written is None else self.written(record)
        return InWords(text, self.sentence(record) if callable(self.sentence) else self.sentence.format(text))

    def text_of(self, record: Record) -> str:
        """The value in a comparison of two sets."""
        value = self.value(record)
        if value is None:
            return value_text(self.missing)
        return value_text(value) if self.described is None else self.described(record)


def _corpus(record: Record) -> str:
    data = record.get("data") or {}
    size = [] if data.get("bytes") is None else [f"{count_text(data['bytes'])} bytes"]
    return ", ".join([str(data.get("name")), *size, f"sha256 {(data.get('sha256') or NOT_RECORDED)[:8]}"])


def _params(record: Record) -> str:
    return ", ".join(f"{name}={value}" for name, value in (record.get("params") or {}).items()) or "without"


def _extended(record: Record) -> str:
    """Its name, or the first letters of its digest, and its number of merges."""
    merges = record.get("extend_merges")
    number = "" if merges is None else f", {count_text(merges)} merges"
    return f"{record.get('extend_name') or str(record['extend'])[:8]}{number}"


def _machine(record: Record) -> str:
    environment = record.get("environment") or {}
    cpu, cores = environment.get("cpu"), environment.get("cores")
    if not cpu:
        return f"host {record['host']}"
    return f"{cpu} ({cores} cores)" if cores else str(cpu)


def _host(record: Record) -> str:
    """The digest too: machines of one model may differ in memory or kernel."""
    return f"{_machine(record)}, {record['host']}" if record.get("environment") else str(record["host"])


def _pattern_text(record: Record) -> str:
    left_out = " (leaves text out)" if record.get("pattern_partial") else ""
    return f"pattern {record['pattern']}{left_out}"


def _errors_text(record: Record) -> str:
    return "" if record["errors"] == "strict" else f"errors {record['errors']}"


def shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:56]} ..."


def counts_only(record: Record) -> bool:
    """Whether a word counter alone was measured."""
    return record.get("cell") == "count"


_NAME = value_at("data.name")


def _field(name: str, key: str = "", **what: Any) -> Field:
    return Field(name, value_at(key or name), **what)


def _decisive(name: str, title: str, **what: Any) -> Field:
    """A field other than the corpus that decides the merges."""
    options = {"sentence": f"{title} {{}}", **what}
    return _field(name, title=title, decides_merges=True, names_cell=True, unlike=name, **options)


def _optional(name: str, title: str, usual: str, text: Callable[[Record], str], **what: Any) -> Field:
    """A field that decides the merges and is seldom set: without it a record has the usual value, unshown."""
    return Field(
        name,
        lambda record: record.get(name) or usual,
        title,
        lambda record: "" if record.get(name) is None else f"{title} {text(record)}",
        lambda record: usual if record.get(name) is None else text(record),
        decides_merges=True,
        names_cell=True,
        unlike=name,
        **what,
    )


FIELDS: tuple[Field, ...] = (
    _field("cell", names_cell=True),
    Field("variant", lambda record: record.get("counting" if counts_only(record) else "variant"), names_cell=True),
    _field("family"),
    Field("data", _NAME, "data"),
    _field(
        "data.sha256",
        decides_merges=True,
        names_cell=True,
        unlike="corpus",
        missing=NOT_RECORDED,
        described=_corpus,
    ),
    *(_field(f"data.{name}") for name in ("bytes", "documents", "pre_tokens", "words")),
    _decisive("vocab_size", "vocab size", sentence="vocabulary {}", figure=True, other_work="another vocabulary"),
    _decisive("pattern", "pattern", sentence=_pattern_text, other_work="another pattern"),
    _decisive("special_tokens", "special tokens", other_work="other special tokens"),
    _decisive("errors", "errors", sentence=_errors_text, other_work="errors treated otherwise"),
    _decisive("tie_break", "tie-break"),
    _decisive("min_count", "min_count", figure=True, other_work="another min_count"),
    _optional("extend", "extends", "none", _extended, other_work="other merges inherited"),
    _optional(
        "inherited",
        "inherited",
        "kept",
        lambda record: str(record["inherited"]),
        other_work="merges inherited otherwise",
    ),
    _optional("seeds", "seeds", "none", lambda record: shortened(str(record["seeds"])), other_work="other seeds"),
    _optional(
        "veto",
        "veto",
        "none",
        lambda record: PROTECTED.sub(lambda tokens: f"{tokens[0].count('.') + 1} protected", str(record["veto"])),
        other_work="another veto",
    ),
    Field(
        "counting",
        lambda record: None if counts_only(record) else record.get("counting"),
        "counting",
        "counting {}",
        lambda record: f"{record['counting']} (chosen)" if record.get("counting_chosen") else str(record["counting"]),
        names_cell=True,
        unlike="counting",
    ),
    _field(
        "threads",
        title="threads",
        sentence=lambda record: counted_text(record["threads"], "thread"),
        figure=True,
        names_cell=True,
        unlike="threads",
    ),
    Field(
        "page_cache",
        lambda record: record.get("page_cache") or "warm",
        "page cache",
        lambda record: "page cache cold" if record.get("page_cache") == "cold" else "",
        names_cell=True,
        unlike="page_cache",
    ),
    _field("params", names_cell=True, unlike="params", described=_params),
    _field("interpreter", title="interpreter", names_cell=True, unlike="python", circumstance=True),
    _field(
        "host",
        title="host",
        sentence=_machine,
        names_cell=True,
        unlike="host",
        missing=NOT_RECORDED,
        circumstance=True,
        described=_host,
    ),
    _field("cpu", "environment.cpu"),
    _field("commit", "environment.commit"),
    _field("measure"),
    _field("limits.wall", "limits.wall_seconds", unlike="limits.wall", missing="none", circumstance=True),
    _field("concurrent", unlike="concurrent", missing=False, circumstance=True),
)
"""In the order of columns and captions."""

FIELD: Mapping[str, Field] = {field.name: field for field in FIELDS}
COLUMNS = tuple(field for field in FIELDS if field.title)
"""What may be a column, or a part of a caption."""
DECISIVE = tuple(field for field in FIELDS if field.decides_merges)
"""What decides which merges are right."""
WORK = tuple(field for field in FIELDS if field.other_work)
"""Everything except the corpus that decides how much there is to do: only times of the same work can be compared."""
COMPARED = (FIELD["host"], *(field for field in FIELDS if field.unlike and field.name != "host"))
"""In what two sets of records can be unlike, the machine first."""
_CELL = tuple(field for field in FIELDS if field.names_cell)


def facts_of(record: Record) -> tuple[dict[str, Any], dict[str, InWords]]:
    """The value of every field by its name, to be looked up by, and in words those that may be in a table."""
    words = [(field.name, field.in_words(record)) for field in COLUMNS]
    values = {field.name: fixed(field.value(record)) for field in FIELDS}
    return values, {name: known for name, known in words if known is not None}


def cell_of(record: Record) -> Key:
    """What is equal in two records of one cell, and in no others."""
    return tuple(fixed(field.value(record)) for field in _CELL)


def together(records: Sequence[Record], key_of_record: Callable[[Record], Key]) -> list[list[Record]]:
    """The records of each key, in order of first appearance."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key_of_record(record), []).append(record)
    return list(groups.values())


def fixed(value: Any) -> Any:
    """A value that can be looked up by."""
    if isinstance(value, list):
        return tuple(map(fixed, value))
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value


class Difference(NamedTuple):
    """A field in which two records are unlike, and how it is on either side."""

    field: Field
    left: str
    right: str
    circumstance: bool


def differences(left: Record, right: Record) -> tuple[Difference, ...]:
    """Everything in which two records are unlike: what is known of both, and not the same."""
    unlike = []
    for field in COMPARED:
        ours, theirs = (field.missing if value is None else value for value in map(field.value, (left, right)))
        if ours is not None and theirs is not None and ours != theirs:
            sides = field.text_of(left), field.text_of(right)
            same_name = field.name == "data.sha256" and _NAME(left) == _NAME(right)
            unlike.append(Difference(field, *sides, field.circumstance or same_name))
    return tuple(unlike)
