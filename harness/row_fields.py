"""What rows can be told apart by, under the names of overrides and of keys of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.rows import Row

Field = Callable[[Row], Any]


def fields_of(rows: Sequence[Row]) -> dict[str, Field]:
    """Everything that was asked or given, by name; the parameters are those that any of the rows has."""
    params = dict.fromkeys(name for row in rows for name in row.record.get("params") or {})
    return {
        "variant": lambda row: row.name,
        **{f"params.{name}": _within("params", name) for name in params},
        **{name: _recorded(name) for name in ("family", "counting", "threads", "interpreter")},
        "data": _within("data", "name"),
        **{f"data.{name}": _within("data", name) for name in ("sha256", "bytes", "documents", "pre_tokens", "words")},
        **{name: _recorded(name) for name in ("pattern", "special_tokens", "errors", "vocab_size")},
        **{name: _recorded(name) for name in ("tie_break", "min_count", "measure", "host")},
        **{name: _within("environment", name) for name in ("cpu", "commit")},
        "status": lambda row: row.status,
    }


def field_text(value: Any) -> str:
    """As it is written in a table; a dash where it is not known.

    >>> field_text(32_000), field_text(("<s>", "</s>")), field_text(()), field_text(True), field_text(None)
    ('32,000', '<s> </s>', 'none', 'true', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _recorded(name: str) -> Field:
    return lambda row: _fixed(row.record.get(name))


def _within(around: str, name: str) -> Field:
    return lambda row: _fixed((row.record.get(around) or {}).get(name))


def _fixed(value: Any) -> Any:
    """A value that can be looked up by."""
    return tuple(value) if isinstance(value, list) else str(value) if isinstance(value, dict) else value
