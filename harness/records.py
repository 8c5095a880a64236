"""Files of records: joined into one, checked line by line, exported for other programs.

    python -m harness.records check results/local
    python -m harness.records merge mine.jsonl yours/ --output ours.jsonl
    python -m harness.records export results/local --output runs.parquet

A line that cannot be read is reported with its number and skipped; it costs only itself.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import record_export
from harness.__main__ import guarded
from harness.errors import OK, UNMEASURED, Refusal
from harness.record import FILE_NAME, PACKED, Line, Record, RecordFile, files_of, lines_of, report
from harness.record_arguments import DEFAULT_RESULTS
from harness.record_keys import complaints, unknown_keys


def check(paths: Sequence[Path]) -> int:
    """Say what is wrong with every line; UNMEASURED if there is such a line, OK if there is none."""
    broken, seen = 0, 0
    unknown: collections.Counter[str] = collections.Counter()
    for line in lines_in(paths):
        seen += 1
        wrong = [line.complaint] if line.record is None else list(complaints(line.record))
        broken += bool(wrong)
        for complaint in wrong:
            say(f"{line.path}, line {line.number}: {complaint}")
        unknown.update(unknown_keys(line.record) if line.record is not None else ())
    for name, times in unknown.items():
        say(f"{name} is not described in this version; let be in {numbered(times, 'record')}")
    wanting = f"{broken} of them broken" if broken else "none broken"
    say(f"{numbered(seen, 'line')} in {numbered(len(files_in(paths)), 'file')}, {wanting}")
    return UNMEASURED if broken else OK


def merge(paths: Sequence[Path], output: Path) -> int:
    """Add to `output` every record that is not there yet, each once."""
    if output.suffix == ".gz":
        raise Refusal(f"cannot add to {output}, which is packed; name a .jsonl, and pack it with gzip -n afterwards")
    folder, name = (output, FILE_NAME) if output.is_dir() or not output.suffix else (output.parent, output.name)
    for path in given_again(paths):
        say(f"{path} is given more than once, and read once")
    found = readable(paths)
    target = folder / name
    already = readable([file for file in {*files_of(folder), target} if file.exists() and file.name.startswith(name)])
    known = {canonical(record) for record in already}
    fresh = []
    for record in found:
        text = canonical(record)
        if text not in known:
            known.add(text)
            fresh.append(record)
    RecordFile(folder, name).append(fresh)
    twice = len(found) - len(fresh)
    say(f"{target}: {numbered(len(already), 'record')} before, {len(fresh)} added, {twice} there or given twice")
    return OK


def export(paths: Sequence[Path], output: Path, said: str | None) -> int:
    """Write the records in another format."""
    form = record_export.format_of(output, said)
    records = readable(paths)
    if not records:
        raise Refusal(f"no records in {', '.join(map(str, paths))}; python -m harness makes some", UNMEASURED)
    record_export.write(records, output, form)
    say(f"{output}: {numbered(len(records), 'record')}")
    return OK


def readable(paths: Sequence[Path]) -> list[Record]:
    """The records, in order; lines that are none are reported."""
    records = []
    for line in lines_in(paths):
        if line.record is None:
            report(line)
        else:
            records.append(line.record)
    return records


def lines_in(paths: Sequence[Path]) -> list[Line]:
    return [line for path in files_in(paths) for line in lines_of(path)]


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
    return list({path.resolve(): path for path in found}.values())


def given_again(paths: Sequence[Path]) -> list[Path]:
    """The files and folders that stand among `paths` a second time, under whichever name."""
    seen: set[Path] = set()
    again = []
    for path in paths:
        place = path.resolve()
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


def say(sentence: str) -> None:
    print(sentence)  # noqa: T201


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m harness.records",
        description="Join, check and export files of records.",
        epilog="A folder stands for its records.jsonl (or .jsonl.gz), or, if it has none, for all of those below it.\n"
        "exit code: 0; 2 for a usage error; 22 if a line is broken (check) or there is nothing to read.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
            formats = record_export.FORMATS
            command.add_argument("--format", choices=formats, help="(default: what the name of the output ends with)")
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
