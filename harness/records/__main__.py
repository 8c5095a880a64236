"""Files of records: joined into one, checked line by line, exported for other programs.

    python -m harness.records check results/local
    python -m harness.records merge mine.jsonl yours/ --output ours.jsonl
    python -m harness.records export results/local --output runs.parquet

A line that cannot be read is reported with its number and skipped; it costs only itself.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.common.console import Parser, csv_text, tell, well_formed
from harness.common.errors import OK, UNMEASURED, Refusal, extra, guarded
from harness.common.files import whole_file
from harness.common.units import counted_text
from harness.records.file import (
    FILE_NAME,
    PACKED,
    Joined,
    Record,
    RecordFile,
    files_in,
    read_lines,
    read_records,
    sound_lines,
    unfinished_note,
)
from harness.records.schema import KINDS, Line, Measurement

DEFAULT_RESULTS = "results/local"
FORMATS = ("parquet", "csv", "json")


def check(paths: Sequence[Path]) -> int:
    """Print what is wrong with every line; UNMEASURED if a line is broken, else OK."""
    files, broken, seen = files_below(paths), 0, 0
    for file in files:
        joined = Joined()
        for number, line in read_lines(file):
            seen += 1
            complaint = line if isinstance(line, str) else joined.add(line)
            if complaint is not None:
                broken += 1
                tell(f"{file}, line {number}: {complaint}")
        for run in joined.runs:
            if run not in joined.ended:
                tell(f"{file}: {unfinished_note(run)}")
    wanting = f"{broken} of them broken" if broken else "none broken"
    tell(f"{counted_text(seen, 'line')} in {counted_text(len(files), 'file')}, {wanting}")
    return UNMEASURED if broken else OK


def merge(paths: Sequence[Path], output: Path) -> int:
    """Append to `output` every line that it does not have yet, each once."""
    if output.suffix == ".gz":
        raise Refusal(f"cannot add to {output}, which is packed; pass a .jsonl, and pack it with gzip -n afterwards")
    folder, name = (output, FILE_NAME) if output.is_dir() or not output.suffix else (output.parent, output.name)
    target = folder / name
    existing = [file for file in {*files_in(folder), target} if file.exists() and file.name.startswith(name)]
    already = dict(encoded_lines(existing))
    if not already and target.is_file() and target.stat().st_size:
        raise Refusal(f"{target} exists and has no readable records; pass another file")
    given = list(encoded_lines(files_below(paths)))
    fresh = {encoded: line for encoded, line in given if encoded not in already}
    RecordFile(folder, name).append_lines(list(fresh.values()))
    before, added, read = (
        sum(isinstance(line, Measurement) for line in lines)
        for lines in (already.values(), fresh.values(), [line for _, line in given])
    )
    tell(f"{target}: {counted_text(before, 'record')} before, {added} added, {read - added} there or given twice")
    return OK


def encoded_lines(paths: Iterable[Path]) -> Iterator[tuple[bytes, Line]]:
    """The lines of files, each with its usual spelling; broken ones are reported and skipped."""
    return ((msgspec.json.encode(line), line) for path in paths for _, line in sound_lines(path))


def export(paths: Sequence[Path], output: Path, named: str | None) -> int:
    """Write the records in another format."""
    form = format_of(output, named)
    records = read_records(files_below(paths))
    if not records:
        raise Refusal(f"no records in {', '.join(map(str, paths))}; python -m harness makes some", UNMEASURED)
    write(records, output, form)
    tell(f"{output}: {counted_text(len(records), 'record')}")
    return OK


def files_below(paths: Sequence[Path]) -> list[Path]:
    """The files that `paths` mean: those named, a folder's own, or else all those below it; each once."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
        elif any(file.exists() for file in files_in(path)):
            found += files_in(path)
        else:
            found += sorted(file for name in (FILE_NAME, PACKED) for file in path.rglob(name)) or [path / FILE_NAME]
    return list({os.path.realpath(path): path for path in found}.values())


# Exports: one row a record, nested keys joined by dots. A column has one type. Numbers, texts and lists of texts stay
# what they are; what is of several types in one column, or deeper than that, is JSON text.


def write(records: Sequence[Record], path: Path, form: str) -> None:
    """Write a file, whole or not at all. Raises Refusal if it cannot be written."""
    with whole_file(path, "pass another file", UNMEASURED) as part:
        if form == "parquet":
            write_parquet(records, part)
        else:
            part.write_text(as_csv(records) if form == "csv" else as_json(records), errors="backslashreplace")


def format_of(path: Path, named: str | None) -> str:
    """The format that was named, or else the one that the file's name ends with. Raises Refusal if there is neither."""
    form = named or path.suffix.lstrip(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{form}" for form in FORMATS)
        raise Refusal(f"cannot tell a format from {path.name}; end it with one of {endings}, or use --format")
    return form


def as_json(records: Sequence[Record]) -> str:
    """The records as they are, in one list."""
    return json.dumps(list(records), ensure_ascii=False, indent=1) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """Nothing for null; lists and what else has parts as JSON text."""
    columns = columns_of(records)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow(map(_csv_value, row))
    return text.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, (list, dict, bool)):
        return csv_text(json_text(value))
    return csv_text(value) if isinstance(value, str) else value


def write_parquet(records: Sequence[Record], path: Path) -> None:
    pa, parquet = extra("pyarrow", "an export as Parquet"), extra("pyarrow.parquet", "an export as Parquet")
    described = dict(described_types(pa))
    arrays = {
        name: array_of(pa, values, pa.int64() if name.startswith("tallies.") else described.get(name))
        for name, values in columns_of(records).items()
    }
    parquet.write_table(pa.table(arrays), path)


def described_types(pa: Any) -> Iterator[tuple[str, Any]]:
    """The Arrow type of each key of a line, its name joined by dots to those around it; none if it has parts."""
    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    kinds, parts = msgspec.json.schema_components(KINDS)
    waiting = [("", parts[kind["$ref"].rpartition("/")[2]]) for kind in kinds]
    while waiting:
        before, described = waiting.pop()
        for key, value in described.get("properties", {}).items():
            plain = next((one for one in value.get("anyOf", ()) if one.get("type") != "null"), value)
            if "$ref" in plain:
                waiting.append((f"{before}{key}.", parts[plain["$ref"].rpartition("/")[2]]))
            elif plain.get("type") == "array":
                item = types.get(plain["items"].get("type"))
                if item is not None:
                    yield f"{before}{key}", pa.list_(item)
            elif plain.get("type") != "object":
                yield f"{before}{key}", types.get(plain.get("type"), pa.string())


def array_of(pa: Any, values: Sequence[Any], described: Any) -> Any:
    """An Arrow array of one type: the described one, else what holds all values, else JSON text.

    A key has its type even if every value is null, so that the files of several runs can be read as one.
    """
    deep = any(isinstance(part, (list, dict)) for value in values if isinstance(value, list) for part in value)
    mixed = bool in (kinds := {type(value) for value in values if value is not None}) and len(kinds) > 1
    try:
        array = None if deep or mixed else pa.array(list(map(encodable, values)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        array = None
    if array is None:
        return pa.array([None if value is None else json_text(value) for value in values], pa.string())
    # If a column or its lists are empty, or if all its numbers happen to be whole, the key decides.
    undecided = array.type in (pa.null(), pa.list_(pa.null())) or (array.type, described) == (pa.int64(), pa.float64())
    return array.cast(described) if described is not None and undecided else array


def encodable(value: Any) -> Any:
    """The value with texts that can be written as UTF-8."""
    if isinstance(value, list):
        return list(map(encodable, value))
    return well_formed(value) if isinstance(value, str) else value


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Every key of any record, in the order of appearance, with a value for each record; None where it has none.

    >>> columns_of([{"a": {"b": 1}}, {"a": {"c": [2]}}])
    {'a.b': [1, None], 'a.c': [None, [2]]}
    """
    flat = [flattened(record) for record in records]
    names = dict.fromkeys(name for row in flat for name in row)
    # A key that is null in one record and has parts in another is known by its parts.
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


def json_text(value: Any) -> str:
    return well_formed(json.dumps(value, ensure_ascii=False))


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.records",
        description="Join, check and export files of records.",
        epilog="A folder means its records.jsonl (or .jsonl.gz) or, without one, all those below it."
        "\n\nexit code: 0; 2 for a usage error; 22 if a line is broken (check) or there is nothing to read.",
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in (
        ("merge", "add the lines of files and folders to one file, none of them twice"),
        ("check", "check every line against the schema; exit code 22 if one is broken"),
        ("export", "write Parquet, CSV or JSON: a row a record, nested keys joined by dots"),
    ):
        command = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        command.add_argument(
            "paths",
            metavar="FILE or DIR",
            nargs="*",
            type=Path,
            default=[Path(DEFAULT_RESULTS)],
            help=f"records, or folders of them (default: {DEFAULT_RESULTS})",
        )
        if name != "check":
            written = "what is written" if name == "export" else "what is added to: a file, or a folder's records.jsonl"
            command.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help=written)
        if name == "export":
            command.add_argument("--format", choices=FORMATS, help="(default: what the name of the output ends with)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    if arguments.command == "check":
        return guarded(lambda: check(arguments.paths))
    if arguments.command == "merge":
        return guarded(lambda: merge(arguments.paths, arguments.output))
    return guarded(lambda: export(arguments.paths, arguments.output, arguments.format))


if __name__ == "__main__":
    sys.exit(main())
