"""Every field in which cells can differ, once: its name, its key in a record, its title and text,
and what it decides.

Rows, tables, captions, comparisons, pivots and charts read this table; a field that is not here is
in none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from harness.common.units import count_text, counted_text
from harness.records.file import Record
from variants.contract import GREATEST_BYTES

Key = tuple[Any, ...]
Item = TypeVar("Item")

MAX_LIST = 56  # characters


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
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, eq=False)
class Field:
    """One thing in which cells can differ; equal to itself alone.

    `name` is that of its override or key, and `read` reads it from a record; one without a value
    has the `usual` one. No caption says that, nor the `default` of the configuration. `title` heads
    its column if rows differ in it, `written` formats it, and `sentence` is its text for rows that
    share it. Cells with equal values of all that `decides_merges` must have equal merges;
    fields with `names_cell` distinguish cells.
    """

    name: str
    read: Callable[[Record], Any]
    title: str = ""
    sentence: str | Callable[[Record], str] = "{}"
    written: Callable[[Record], str] | None = None
    usual: Any = None
    default: Any = None
    figure: bool = False
    decides_merges: bool = False
    names_cell: bool = True

    def value(self, record: Record) -> Any:
        """The value; None if it is unknown."""
        value = self.read(record)
        return self.usual if value is None else value

    def is_default(self, record: Record) -> bool:
        """Whether the value is the one that nobody has to choose."""
        if self.name == "counting":
            return not record.cell.counting_chosen
        return self.default is not None and self.value(record) == self.default

    def text(self, record: Record) -> str | None:
        """The value as a table writes it; None if it is unknown."""
        value = self.value(record)
        if value is None:
            return None
        if self.written is None or value == self.usual:
            return value_text(value)
        return self.written(record)

    def phrase(self, record: Record) -> str:
        """The value with the name of the field; empty where none is needed."""
        text = self.text(record)
        if text is None or self.value(record) == self.usual:
            return ""
        return self.sentence(record) if callable(self.sentence) else self.sentence.format(text)


def _extended(record: Record) -> str:
    """Its name, or the first letters of its digest, and its number of merges."""
    cell = record.cell
    number = "" if cell.extend_merges is None else f", {count_text(cell.extend_merges)} merges"
    return f"{cell.extend_name or str(cell.extend)[:8]}{number}"


def _shortened(text: str | None) -> str:
    """A list of seeds, or a veto with the tokens that it protects, which may be long."""
    text = text or ""
    return text if len(text) <= MAX_LIST else f"{text[:MAX_LIST]} ..."


def _machine(record: Record) -> str:
    environment = record.run.environment
    cpu, cores = environment.get("cpu"), environment.get("cores")
    if not cpu:
        return f"host {record.run.host}"
    return f"{cpu} ({cores} CPUs)" if cores else str(cpu)


def _field(name: str, path: str = "", **what: Any) -> Field:
    """A field that is an attribute of the record, unless named otherwise one of its cell."""
    return Field(name, attrgetter(path or f"cell.{name}"), **what)


def _decisive(name: str, **what: Any) -> Field:
    """A field other than the corpus that decides the merges."""
    options = {"title": name, "sentence": f"{what.get('title', name)} {{}}", **what}
    return _field(name, decides_merges=True, **options)


FIELDS: tuple[Field, ...] = (
    _field("cell", "cell.role"),
    Field("variant", lambda record: record.cell.variant if record.trains else record.cell.counting),
    _field("family", names_cell=False),
    _field("data", "cell.data.name", title="data"),
    _field("data.sha256", decides_merges=True, usual="not recorded"),
    *(_field(f"data.{name}", names_cell=False) for name in ("bytes", "documents", "pre_tokens", "words")),
    _decisive("vocab_size", title="vocab size", sentence="vocabulary {}", figure=True),
    _decisive(
        "pattern", default="gpt2",
        written=lambda record: str(record.cell.pattern) + " (leaves text out)" * bool(record.cell.pattern_partial),
    ),
    _decisive("special_tokens", title="special tokens", default=["<|endoftext|>"]),
    _decisive("errors", usual="strict"),
    _decisive("tie_break", title="tie-break", default=GREATEST_BYTES.value),
    _decisive("min_count", figure=True, default=1),
    _decisive("extend", title="extends", usual="none", written=_extended),
    _decisive("inherited", usual="kept"),
    _decisive(
        "seeds", usual="none",
        written=lambda record: _shortened(record.cell.seeds),
    ),
    _decisive(
        "veto", usual="none",
        written=lambda record: _shortened(record.cell.veto),
    ),
    Field(
        "counting", lambda record: record.cell.counting if record.trains else None,
        title="counting", sentence="counting {}",
        written=lambda record: record.cell.counting + " (chosen)" * record.cell.counting_chosen,
    ),
    _field(
        "threads", title="threads", figure=True,
        sentence=lambda record: counted_text(record.cell.threads or 1, "thread"),
    ),
    _field("params"),
    _field("interpreter", title="interpreter"),
    _field(
        "host", "run.host", title="host", sentence=_machine, usual="not recorded",
    ),
    Field("cpu", lambda record: record.run.environment.get("cpu"), names_cell=False),
    Field("commit", lambda record: record.run.environment.get("commit"), names_cell=False),
    _field("measure", "run.measure", names_cell=False),
    Field(
        "gate.side", lambda record: record.cell.gate and record.cell.gate["side"],
        title="side", sentence="", usual="none",
    ),
    Field("gate.tier", lambda record: record.cell.gate and record.cell.gate["tier"]),
)  # fmt: skip
"""In the order of columns and captions."""

FIELD: Mapping[str, Field] = {field.name: field for field in FIELDS}
# what may be a column, or a part of a caption
COLUMNS = tuple(field for field in FIELDS if field.title)
# what decides which merges are right
DECISIVE = tuple(field for field in FIELDS if field.decides_merges)
WORK = tuple(field for field in DECISIVE if field.name not in ("data.sha256", "tie_break"))
"""Everything except the corpus that decides how much there is to do: only times of the same work
can be compared.
"""
_CELL = tuple(field for field in FIELDS if field.names_cell)


def values_of(record: Record) -> dict[str, Any]:
    """The value of every field by its name, to be looked up by."""
    return {field.name: fixed(field.value(record)) for field in FIELDS}


def cell_of(record: Record) -> Key:
    """Return the key of a record's cell: equal for two records of one cell, and for no others."""
    return tuple(fixed(field.value(record)) for field in _CELL)


def together(pairs: Iterable[tuple[Any, Item]]) -> dict[Any, list[Item]]:
    """The items of each key, in order of first appearance."""
    groups: dict[Any, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def fixed(value: Any) -> Any:
    """A value that can be looked up by."""
    if isinstance(value, list):
        return tuple(map(fixed, value))
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
