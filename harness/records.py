"""Files of records: joined into one, checked line by line, exported for other programs.

    python -m harness.records check results/local
    python -m harness.records merge mine.jsonl yours/ --output ours.jsonl
    python -m harness.records export results/local --output runs.parquet

A line that cannot be read is reported with its number and skipped; it costs only itself.
"""

from __future__ import annotations

import argparse
import collections
import csv
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common.console import Parser, csv_text, tell, well_formed
from harness.common.errors import OK, UNMEASURED, Refusal, extra, guarded
from harness.common.files import whole_file
from harness.results.chosen import DEFAULT_RESULTS
from harness.runs.record import FILE_NAME, PACKED, Line, Record, RecordFile, files_of, lines_of, read_records
from harness.runs.record_keys import (
    CORES,
    KEYS,
    MOMENT,
    NUMBER,
    SHA256,
    SIGNED,
    TEXT,
    TEXTS,
    WHOLE,
    YES_OR_NO,
    unknown_keys,
)


def check(paths: Sequence[Path]) -> int:
    """Say what is wrong with every line; UNMEASURED if there is such a line, OK if there is none."""
    broken, seen = 0, 0
    unknown: collections.Counter[str] = collections.Counter()
    for line in lines_in(paths):
        seen += 1
        broken += line.record is None
        for complaint in line.complaints:
            tell(f"{line.path}, line {line.number}: {complaint}")
        unknown.update(unknown_keys(line.record) if line.record is not None else ())
    for name, times in unknown.items():
        tell(f"{name} is not described in this version; let be in {numbered(times, 'record')}")
    wanting = f"{broken} of them broken" if broken else "none broken"
    tell(f"{numbered(seen, 'line')} in {numbered(len(files_in(paths)), 'file')}, {wanting}")
    return UNMEASURED if broken else OK


def merge(paths: Sequence[Path], output: Path) -> int:
    """Add to `output` every record that is not there yet, each once."""
    if output.suffix == ".gz":
        raise Refusal(f"cannot add to {output}, which is packed; name a .jsonl, and pack it with gzip -n afterwards")
    folder, name = (output, FILE_NAME) if output.is_dir() or not output.suffix else (output.parent, output.name)
    for path in given_again(paths):
        tell(f"{path} is given more than once, and read once")
    found = read_records(files_in(paths))
    target = folder / name
    already = read_records(
        [file for file in {*files_of(folder), target} if file.exists() and file.name.startswith(name)]
    )
    if not already and target.is_file() and target.stat().st_size:
        raise Refusal(f"{target} is there and has no records that can be read; name another file")
    known = {canonical(record) for record in already}
    fresh = []
    for record in found:
        text = canonical(record)
        if text not in known:
            known.add(text)
            fresh.append(record)
    RecordFile(folder, name).append(fresh)
    twice = len(found) - len(fresh)
    tell(f"{target}: {numbered(len(already), 'record')} before, {len(fresh)} added, {twice} there or given twice")
    return OK


def export(paths: Sequence[Path], output: Path, named: str | None) -> int:
    """Write the records in another format."""
    form = format_of(output, named)
    records = read_records(files_in(paths))
    if not records:
        raise Refusal(f"no records in {', '.join(map(str, paths))}; python -m harness makes some", UNMEASURED)
    write(records, output, form)
    tell(f"{output}: {numbered(len(records), 'record')}")
    return OK


def lines_in(paths: Sequence[Path]) -> Iterator[Line]:
    for path in files_in(paths):
        yield from lines_of(path)


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The files that are meant: those named, a folder's own, or else all those below it; each once."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
        elif any(file.exists() for file in files_of(path)):
            found += files_of(path)
        else:
            found += sorted(file for name in (FILE_NAME, PACKED) for file in path.rglob(name)) or [path / FILE_NAME]
    return list({place_of(path): path for path in found}.values())


def place_of(path: Path) -> str:
    """Where a name leads, as far as it leads anywhere: a link to itself is told when it is read."""
    return os.path.realpath(path)


def given_again(paths: Sequence[Path]) -> list[Path]:
    """The files and folders that stand among `paths` a second time, under whichever name."""
    seen: set[str] = set()
    again = []
    for path in paths:
        place = place_of(path)
        if place in seen:
            again.append(path)
        seen.add(place)
    return again


def canonical(record: Record) -> str:
    """The same text for the same record, whatever the order of its keys."""
    return json.dumps(record, sort_keys=True)


def numbered(number: int, name: str) -> str:
    """
    >>> numbered(1, "record"), numbered(0, "line")
    ('1 record', '0 lines')
    """
    return f"{number} {name}{'' if number == 1 else 's'}"


# Exports: one row a record, nested keys joined by dots. A column has one type. Numbers, texts and lists of texts stay
# what they are; what is of several types in one column, or deeper than that, is JSON text.

FORMATS = ("parquet", "csv", "json")


def write(records: Sequence[Record], path: Path, form: str) -> None:
    """Write a file, whole or not at all. Raises Refusal if it cannot be written."""
    with whole_file(path, "name another file", UNMEASURED) as part:
        if form == "parquet":
            write_parquet(records, part)
        else:
            part.write_text(as_csv(records) if form == "csv" else as_json(records), errors="backslashreplace")


def format_of(path: Path, named: str | None) -> str:
    """The format that was named, or else the one that the file's name ends with. Raises Refusal if there is neither."""
    form = named or path.suffix.lstrip(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise Refusal(f"cannot tell a format from {path.name}; end it with one of {endings}, or use --format")
    return form


def as_json(records: Sequence[Record]) -> str:
    """The records as they are, in one list."""
    return json.dumps(list(records), ensure_ascii=False, indent=1) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """Nothing for null; lists and what else has parts as JSON text."""
    columns = columns_of(records)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow(map(_csv_value, row))
    return written.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, (list, dict, bool)):
        return csv_text(json_text(value))
    return csv_text(value) if isinstance(value, str) else value


def write_parquet(records: Sequence[Record], path: Path) -> None:
    pa, parquet = extra("pyarrow", "an export as Parquet"), extra("pyarrow.parquet", "an export as Parquet")
    columns = columns_of(records)
    parquet.write_table(pa.table({name: array_of(pa, name, values) for name, values in columns.items()}), path)


def array_of(pa: Any, name: str, values: Sequence[Any]) -> Any:
    """An Arrow array of one type: what a key of ours is described with, else what holds all values, else JSON text.

    A key of ours has its type even where every value is null, so that files of several runs can be read as one.
    """
    whole, number, text = pa.int64(), pa.float64(), pa.string()
    types = {
        **dict.fromkeys([NUMBER.name, SIGNED.name], number),
        **dict.fromkeys([TEXT.name, SHA256.name, MOMENT.name], text),
        WHOLE.name: whole,
        YES_OR_NO.name: pa.bool_(),
        TEXTS.name: pa.list_(text),
        CORES.name: pa.list_(whole),
    }
    key = KEYS.get(name)
    described = types.get(key.type.name) if key is not None else whole if name.startswith("tallies.") else None
    deep = any(isinstance(part, (list, dict)) for value in values if isinstance(value, list) for part in value)
    mixed = bool in (kinds := {type(value) for value in values if value is not None}) and len(kinds) > 1
    try:
        found = None if deep or mixed else pa.array(list(map(encodable, values)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        found = None
    if found is None:
        return pa.array([None if value is None else json_text(value) for value in values], text)
    # Where nothing stands, in a column or in its lists, and where all numbers happen to be whole, the key decides.
    open_to_all = found.type in (pa.null(), pa.list_(pa.null())) or (found.type, described) == (whole, number)
    return found.cast(described) if described is not None and open_to_all else found


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


def json_text(value: Any) -> str:
    return well_formed(json.dumps(value, ensure_ascii=False))


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.records",
        description="Join, check and export files of records.",
        epilog="A folder stands for its records.jsonl (or .jsonl.gz), or, if it has none, for all of those below it."
        "\n\nexit code: 0; 2 for a usage error; 22 if a line is broken (check) or there is nothing to read.",
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, described in (
        ("merge", "add the records of files and folders to one file, none of them twice"),
        ("check", "check every line against the schema; exit code 22 if one is broken"),
        ("export", "write Parquet, CSV or JSON: a row a record, nested keys joined by dots"),
    ):
        command = commands.add_parser(name, help=described, description=f"{described[0].upper()}{described[1:]}.")
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
