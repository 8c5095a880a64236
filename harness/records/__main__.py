"""Files of records: joined into one, checked line by line, exported for other programs.

    python -m harness.records check results/local
    python -m harness.records merge mine.jsonl yours/ --output ours.jsonl
    python -m harness.records export results/local --output runs.parquet

A line that cannot be read is reported with its number and skipped; it costs only itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common.command import Parser, exit_code_of
from harness.common.errors import OK, UNMEASURED, Refusal, extra
from harness.common.files import check_output, output_file
from harness.common.printing import frame_to_csv, print_stdout
from harness.common.units import count_text, counted_text
from harness.records.file import Joined, files_read, key_of_line, read_records, unfinished_note
from harness.records.lines import FILE_NAME, RecordFile, append_whole
from harness.records.schema import Cell, Line, Proof, Run

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_RESULTS = "results/local"
FORMATS = (".parquet", ".csv", ".json")
BELOW = "**/"  # of a folder all files of records in it


def check_records(paths: Sequence[Path]) -> int:
    """Print whether lines are broken, then what is wrong with each; UNMEASURED if any is, else OK.

    Of a file without a single sound line only the first is printed.
    """
    files = files_read(paths, BELOW)
    seen = broken = 0
    details: list[str] = []
    for file in files:
        joined = Joined()
        lines = list(joined.read(file))
        complaints = [f"{place}: {line}" for place, _, line in lines if isinstance(line, str)]
        seen += len(lines)
        broken += len(complaints)

        if 1 < len(lines) == len(complaints):
            complaints[1:] = [f"{file}: none of its {counted_text(len(lines), 'line')} is a record"]
        details += complaints
        details += [f"{file}: {unfinished_note(run)}" for run in joined.unfinished()]

    found = f"{count_text(broken)} of them broken" if broken else "none broken"
    print_stdout(f"{counted_text(seen, 'line')} in {counted_text(len(files), 'file')}, {found}")
    for line in details:
        print_stdout(line)
    return UNMEASURED if broken else OK


def merge_files(paths: Sequence[Path], output: Path) -> int:
    """Append to `output` every line that it does not have yet, as it is, each once."""
    target = output if output.suffix else output / FILE_NAME
    if target.suffix != ".jsonl":
        raise Refusal(
            f"cannot add records to {output}; pass a folder or a file that ends in .jsonl"
        )

    # One after another, so that each file's lines follow those that they belong to.
    sources = [Joined().read_sound(path) for path in files_read(paths, BELOW)]
    store = RecordFile(target.parent, target.name, "pass another file with --output")
    with store.locked() as file:
        present, beside, packed = Joined(), Joined(), Path(f"{target}.gz")
        present.read_sound(target)
        before = len(present.measured)
        if packed.exists():
            beside.read_sound(packed)
            present.others |= beside.others
        added = [
            text.rstrip(b"\r\n") + b"\n" for lines in sources for text in lacking(lines, present)
        ]
        append_whole(file, b"".join(added))
    print_stdout(
        f"{target}: {counted_text(before, 'record')} before, {len(present.measured) - before} added"
    )
    return OK


def lacking(lines: Iterable[tuple[Line, bytes]], present: Joined) -> Iterator[bytes]:
    """Join the lines of a file that `present` lacks, and yield their texts.

    What measurements share goes again before a measurement for which it differs: a run that was
    resumed on two machines in turns keeps the environment of each measurement.
    """
    shared: dict[tuple[Any, ...], tuple[Line, bytes]] = {}
    for line, text in lines:
        name = key_of_line(line)
        if isinstance(line, Run | Cell | Proof):
            shared[name] = line, text
        elif line not in present:
            needed = [shared[name[:length]] for length in (1, 2, 3) if name[:length] in shared]
            for needed_line, needed_text in [*needed, (line, text)]:
                if needed_line not in present:
                    present.join(needed_line)
                    yield needed_text


def export(paths: Sequence[Path], output: Path) -> int:
    """Write the records in the format that the output's name ends with."""
    if output.suffix not in FORMATS:
        raise Refusal(
            f"cannot tell a format from {output.name}; end it with one of {', '.join(FORMATS)}"
        )
    files = files_read(paths, BELOW)
    check_output(output, files)
    records = read_records(files)
    if not records:
        folders = ", ".join(map(str, paths))
        raise Refusal(f"no records in {folders}; python -m harness makes some", UNMEASURED)

    with output_file(output, files, instead="pass another file") as part:
        if output.suffix == ".json":
            plain = [dict(record) for record in records]
            part.write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n")
        elif output.suffix == ".csv":
            part.write_text(frame_to_csv(frame_of_records(records)))
        else:
            extra("pyarrow", "an export as Parquet")
            frame_of_records(records).to_parquet(part, index=False)
    print_stdout(f"{output}: {counted_text(len(records), 'record')}")
    return OK


def frame_of_records(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row a record, nested keys joined by dots. Lists, and values of several types in a column,
    are JSON text.
    """
    import pandas as pd  # late: it costs half a second

    frame = pd.json_normalize([dict(record) for record in records]).convert_dtypes()
    # A key that is null in one record and has parts in another is known by its parts.
    outer = {str(name).rpartition(".")[0] for name in frame}
    frame = frame.drop(columns=list(outer), errors="ignore")
    deep = frame.select_dtypes("object").map(
        lambda value: json.dumps(value, ensure_ascii=False), "ignore"
    )
    frame[deep.columns] = deep.astype("string")
    return frame


COMMANDS = {
    "merge": (
        merge_files,
        "add the lines of files and folders to one file, none of them twice",
        "write to this file or folder of records",
    ),
    "check": (
        check_records,
        "check every line against the schema; exit code 22 if one is broken",
        "",
    ),
    "export": (
        export,
        "write .parquet, .csv or .json: a row for each record, nested keys joined by dots",
        "write to this file",
    ),
}
"""What each command runs, what it does, and what `--output` is if it writes anything."""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.records",
        description="Join, check and export files of records.",
        epilog="A folder means every records.jsonl (or .jsonl.gz) below it."
        "\n\nexit code: 0; 2 for a usage error; 22 if a line is broken (check) or there is nothing to read.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    for name, (run, about, written) in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=f"{about.capitalize()}.")
        command.set_defaults(run=run)
        command.add_argument(
            "paths",
            metavar="FILE or FOLDER",
            nargs="*",
            type=Path,
            default=[Path(DEFAULT_RESULTS)],
            help=f"records, or folders of them (default: {DEFAULT_RESULTS})",
        )
        if written:
            command.add_argument(
                "-o", "--output", metavar="FILE", type=Path, required=True, help=written
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = vars(_parser().parse_args(argv))
    run = arguments.pop("run")
    return exit_code_of(lambda: int(run(**arguments)))


if __name__ == "__main__":
    sys.exit(main())
