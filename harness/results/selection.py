"""Which records and rows are shown: paths, the latest run, `--where NAME=VALUE`."""

from __future__ import annotations

import argparse
import fnmatch
import re
from collections.abc import Sequence

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import did_you_mean
from harness.records.file import Record, read_records
from harness.results.fields import FIELD, Key, cell_of
from harness.results.rows import Row, rows

DEFAULT_RESULTS = "results/local"
# what `paths` is if none was given; the same folder given by name is a list
NO_PATHS = (DEFAULT_RESULTS,)
CONDITIONS = {
    **{
        name.removeprefix("data."): name
        for name in FIELD
        if name not in ("params", "special_tokens")
    },
    "status": "status",
}
"""What `--where` can be about, with the name of its value in a row."""


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command take files and folders of records, `--all` and `--where`."""
    add = parser.add_argument
    add(
        "paths",
        metavar="FILE or FOLDER",
        nargs="*",
        default=NO_PATHS,
        help="records, or folders with a records.jsonl, where only the latest run of each cell counts (default: the "
        f"one latest run in {DEFAULT_RESULTS})",
    )
    add("--all", action="store_true", help="show every record")
    where = "show only such rows, as 'variant=heap,flat*'; repeatable"
    add("--where", metavar="NAME=VALUE", action="append", default=[], help=where)


def chosen_rows(arguments: argparse.Namespace) -> list[Row]:
    """The rows that the arguments mean; without a path those of the latest run. Raises Refusal if
    there are none.
    """
    records = records_of(arguments.paths, arguments.all)
    if not arguments.all and arguments.paths == NO_PATHS:
        newest = max(record.run.run for record in records)
        records = [record for record in records if record.run.run == newest]
    return rows_where(rows(records), arguments.where)


def records_of(paths: Sequence[str], every: bool = False) -> Sequence[Record]:
    """The records in files and folders: all of them, or each cell's latest run. Raises Refusal if
    there are none.
    """
    records = read_records(paths)
    if not records:
        raise Refusal(f"no records in {', '.join(paths)}; python -m harness makes some", UNMEASURED)
    return records if every else latest(records)


def latest(records: Sequence[Record]) -> list[Record]:
    """The records of each cell's latest run; of times, proofs and instructions the latest of
    each.
    """

    def key(record: Record) -> tuple[Key, str | None]:
        measure = record.run.measure
        return cell_of(record), measure if measure in ("proof", "instructions") else None

    newest = {}
    for record in sorted(records, key=lambda record: record.measurement.started):
        newest[key(record)] = record.run.run
    return [record for record in records if newest[key(record)] == record.run.run]


def rows_where(rows: Sequence[Row], conditions: Sequence[str]) -> list[Row]:
    """The rows for which every NAME=VALUE holds; values may have wildcards, and commas for "or".

    Raises Refusal for an unknown name, or if no row is left.
    """
    chosen = list(rows)
    for condition in conditions:
        name, equals, values = condition.partition("=")
        if not equals or name not in CONDITIONS:
            names = ", ".join(CONDITIONS)
            meant = did_you_mean(name, CONDITIONS)
            raise Refusal(f"--where {condition}:{meant} write NAME=VALUE with one of {names}")

        texts = [str(row.values[CONDITIONS[name]]) for row in chosen]
        patterns = "|".join(map(fnmatch.translate, values.split(",")))
        chosen = [row for row, text in zip(chosen, texts, strict=True) if re.match(patterns, text)]
        if not chosen:
            there = ", ".join(dict.fromkeys(texts))
            raise Refusal(f"no row has {condition}; there are: {there}", UNMEASURED)
    return chosen
