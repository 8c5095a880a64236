"""Records for other programs: one row a record, nested keys joined by dots, as Parquet, CSV or JSON.

A column has one type. Numbers, texts and lists of texts stay what they are; what is of several types in one column, or
deeper than that, is JSON text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.corpora.extras import extra
from harness.errors import UNMEASURED, Refusal
from harness.record import Record
from harness.record_keys import CORES, KEYS, MOMENT, NUMBER, SHA256, SIGNED, TEXT, TEXTS, WHOLE, YES_OR_NO
from harness.whole_file import whole_file

FORMATS = ("parquet", "csv", "json")
LARGEST = 2**63 - 1
KINDS = {
    **dict.fromkeys([WHOLE.name], "whole"),
    **dict.fromkeys([NUMBER.name, SIGNED.name], "number"),
    **dict.fromkeys([TEXT.name, SHA256.name, MOMENT.name], "text"),
    YES_OR_NO.name: "true or false",
    TEXTS.name: "texts",
    CORES.name: "cores",
}


def write(records: Sequence[Record], path: Path, form: str) -> None:
    """Write a file, whole or not at all. Raises Refusal if it cannot be written."""
    with whole_file(path, "name another file", UNMEASURED) as part:
        if form == "parquet":
            write_parquet(records, part)
        else:
            part.write_text(as_csv(records) if form == "csv" else as_json(records), errors="backslashreplace")


def format_of(path: Path, said: str | None) -> str:
    """The format that was said, or else the one that the file's name ends with. Raises Refusal if there is neither."""
    form = said or path.suffix.lstrip(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise Refusal(f"cannot tell a format from {path.name}; end it with one of {endings}, or say --format")
    return form


def as_json(records: Sequence[Record]) -> str:
    """The records as they are, in one list."""
    return json.dumps(list(records), ensure_ascii=False, indent=1) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """Nothing for null; lists and what else has parts as JSON text."""
    columns = columns_of(records)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([json_text(value) if isinstance(value, (list, dict, bool)) else value for value in row])
    return written.getvalue()


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """A key of ours has its type even where every value is null, so that files of several runs can be read as one."""
    pa, parquet = extra("pyarrow", "an export as Parquet"), extra("pyarrow.parquet", "an export as Parquet")
    types = {
        "whole": pa.int64(),
        "number": pa.float64(),
        "true or false": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "cores": pa.list_(pa.int64()),
        "text": pa.string(),
        "nothing": pa.null(),
    }
    columns = {name: column(name, values) for name, values in columns_of(records).items()}
    arrays = {name: pa.array(values, types[kind]) for name, (kind, values) in columns.items()}
    parquet.write_table(pa.table(arrays), path)


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Every key of any record, in the order of appearance, with a value for each record; None where it has none.

    >>> columns_of([{"a": {"b": 1}}, {"a": {"c": [2]}}])
    {'a.b': [1, None], 'a.c': [None, [2]]}
    """
    flat = [flattened(record) for record in records]
    names = dict.fromkeys(name for row in flat for name in row)
    # What is null in one record and has parts in another is known by its parts.
    parents = {name.rpartition(".")[0] for name in names}
    return {name: [row.get(name) for row in flat] for name in names if name not in parents}


def flattened(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            row.update(flattened(value, f"{before}{name}."))
        else:
            row[f"{before}{name}"] = value
    return row


def column(name: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The type that a key of ours is described with, if its values keep to it; else the narrowest that holds them."""
    key = KEYS.get(name)
    kind = KINDS.get(key.type.name) if key is not None else "whole" if name.startswith("tallies.") else None
    narrowest, held = typed(values)
    if kind is None or narrowest not in (kind, "nothing", *(["whole"] if kind == "number" else [])):
        return narrowest, held
    return kind, held


def typed(values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The narrowest type that holds all values, and the values as such.

    >>> typed([1, None, 2.5]), typed([1, "a"]), typed([["a"], None])
    (('number', [1.0, None, 2.5]), ('text', ['1', '"a"']), ('texts', [['a'], None]))
    """
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if not kinds:
        return "nothing", list(values)
    if kinds == {bool}:
        return "true or false", list(values)
    if kinds == {str}:
        return "text", [None if value is None else well_formed(value) for value in values]
    if kinds == {int} and max(map(abs, there)) <= LARGEST:
        return "whole", list(values)
    if kinds <= {int, float} and all(abs(value) <= LARGEST for value in there if type(value) is int):
        return "number", [None if value is None else float(value) for value in values]
    if kinds == {list} and all(type(part) is int for value in there for part in value) and any(there):
        return "cores", list(values)
    if kinds == {list} and all(isinstance(part, str) for value in there for part in value):
        return "texts", [None if value is None else [well_formed(part) for part in value] for value in values]
    return "text", [None if value is None else json_text(value) for value in values]


def well_formed(text: str) -> str:
    """Text that is UTF-8: half of a character, as in the name of a file in another encoding, becomes an escape."""
    return text.encode(errors="backslashreplace").decode()


def json_text(value: Any) -> str:
    return well_formed(json.dumps(value, ensure_ascii=False))
