"""In what two rows about the same variant can be unlike: the circumstances of a measurement, and what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.rows import Row
from harness.units import bytes_text, count_text

NOT_RECORDED = "not recorded"

Value = Callable[[Row], Any]
Told = Callable[[Row, Row], str]
"""How a row's value is said beside that of another: only what differs is of interest."""


def _never(_left: Row, _right: Row) -> bool:
    return False


def _always(_left: Row, _right: Row) -> bool:
    return True


@dataclass(frozen=True)
class Condition:
    """One thing in which two rows can be unlike: they are where its value is known of both and not the same.

    A circumstance is no part of what was asked: rows that differ in nothing else are one cell, measured elsewhere. What
    `decides_merges` has to be alike before merges that differ are a fault.
    """

    name: str
    value: Value
    told: Told
    circumstance: Callable[[Row, Row], bool] = _never
    decides_merges: bool = False


@dataclass(frozen=True)
class Difference:
    """A condition in which two rows are unlike, and how it is on either side."""

    condition: str
    left: str
    right: str
    circumstance: bool
    decides_merges: bool


def differences(left: Row, right: Row) -> tuple[Difference, ...]:
    """Everything in which two rows are unlike."""
    found = []
    for condition in CONDITIONS:
        ours, theirs = condition.value(left), condition.value(right)
        if ours is not None and theirs is not None and ours != theirs:
            told = condition.told(left, right), condition.told(right, left)
            circumstance = condition.circumstance(left, right)
            found.append(Difference(condition.name, *told, circumstance, condition.decides_merges))
    return tuple(found)


def _recorded(name: str) -> Value:
    return lambda row: row.record.get(name)


def _of_training(name: str) -> Value:
    return lambda row: None if row.counting_only else row.record.get(name)


def _plainly(value: Value) -> Told:
    def told(row: Row, _other: Row) -> str:
        own = value(row)
        return count_text(own) if type(own) is int else " ".join(own) or "none" if isinstance(own, list) else str(own)

    return told


def _plain(name: str, value: Value, *, decides_merges: bool = False) -> Condition:
    return Condition(name, value, _plainly(value), decides_merges=decides_merges)


def _host(row: Row) -> Any:
    return row.record.get("host") or NOT_RECORDED


def _host_told(row: Row, other: Row) -> str:
    """The parts of the machine that differ, or its digest where none is known to."""
    ours, theirs = (each.record.get("environment") or {} for each in (row, other))
    parts = [
        text(ours[name])
        for name, text in _HOST_PARTS.items()
        if ours.get(name) is not None and ours[name] != theirs.get(name)
    ]
    return ", ".join(parts) or str(_host(row))


_HOST_PARTS: Mapping[str, Callable[[Any], str]] = {
    "cpu": str,
    "cores": lambda cores: f"{cores} cores",
    "cores_usable": lambda cores: f"{cores} cores usable",
    "memory_bytes": lambda size: f"{bytes_text(size)} of memory",
    "kernel": str,
    "architecture": str,
}
"""What `host` is a digest of, and how each part is said."""


def _corpus(row: Row) -> Any:
    return row.corpus.get("sha256") or NOT_RECORDED


def _corpus_told(row: Row, other: Row) -> str:
    size = row.corpus.get("bytes")
    name = [str(row.corpus.get("name"))] + ([f"{count_text(size)} bytes"] if size is not None else [])
    alike = (row.corpus.get("name"), size) == (other.corpus.get("name"), other.corpus.get("bytes"))
    return ", ".join(name + ([f"sha256 {_corpus(row)[:8]}"] if alike else []))


def _same_name(left: Row, right: Row) -> bool:
    return left.corpus.get("name") == right.corpus.get("name")


def _params_told(row: Row, other: Row) -> str:
    ours, theirs = (each.record.get("params") or {} for each in (row, other))
    own = [f"{name}={value}" for name, value in ours.items() if name not in theirs or theirs[name] != value]
    return ", ".join(own) or "without"


def _wall_limit(row: Row) -> Any:
    return (row.record.get("limits") or {}).get("wall_seconds") or "none"


def _memory_limit(row: Row) -> Any:
    """The limit on memory where it was what ended the row: else it depends on what is free and changes nothing."""
    return (row.record.get("limits") or {}).get("memory_bytes") if row.status == "out_of_memory" else None


CONDITIONS: tuple[Condition, ...] = (
    Condition("host", _host, _host_told, _always),
    Condition("corpus", _corpus, _corpus_told, _same_name, decides_merges=True),
    Condition("python", _recorded("interpreter"), _plainly(_recorded("interpreter")), _always),
    _plain("pattern", _recorded("pattern"), decides_merges=True),
    _plain("special_tokens", _recorded("special_tokens"), decides_merges=True),
    _plain("errors", _recorded("errors"), decides_merges=True),
    _plain("vocab_size", _of_training("vocab_size"), decides_merges=True),
    _plain("tie_break", _of_training("tie_break"), decides_merges=True),
    _plain("min_count", _of_training("min_count"), decides_merges=True),
    _plain("counting", _of_training("counting")),
    _plain("threads", _recorded("threads")),
    Condition("params", _recorded("params"), _params_told),
    Condition("limits.wall", _wall_limit, _plainly(_wall_limit), _always),
    Condition("limits.memory", _memory_limit, _plainly(_memory_limit), _always),
    Condition("concurrent", lambda row: bool(row.record.get("concurrent")), _plainly(_recorded("concurrent")), _always),
)
"""In the order in which they are said; the names are those of overrides and of keys of a record."""

NAMES = tuple(condition.name for condition in CONDITIONS)
