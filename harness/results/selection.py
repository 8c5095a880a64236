"""Which records and rows are shown: paths, the latest run, `--where NAME=VALUE`, and the rows of
one task together.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Sequence

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, did_you_mean
from harness.records.file import Record, read_records
from harness.results.fields import DECISIVE, FIELD, Key, cell_of, together
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
TASK = ("cell", *(field.name for field in DECISIVE), "host")


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
        newest = max(map(_run, records))
        records = [record for record in records if _run(record) == newest]
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
    cells = [(_measured_cell(record), record) for record in records]
    newest: dict[Key, str] = {}
    for cell, record in sorted(cells, key=lambda pair: pair[1].measurement.started):
        newest[cell] = _run(record)
    return [record for cell, record in cells if newest[cell] == _run(record)]


def _measured_cell(record: Record) -> Key:
    """The cell, and whether only its merges or its instructions were measured."""
    measure = record.run.measure
    return (cell_of(record), measure if measure in ("proof", "instructions") else None)


def _run(record: Record) -> str:
    return record.run.run


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

        there = dict.fromkeys(_condition(row, name) for row in chosen)
        chosen = [row for row in chosen if _matches(_condition(row, name), values)]
        if not chosen:
            raise Refusal(f"no row has {condition}; there are: {', '.join(there)}", UNMEASURED)
    return chosen


def _matches(text: str, values: str) -> bool:
    return any(fnmatch.fnmatchcase(text, value) for value in values.split(","))


def _condition(row: Row, name: str) -> str:
    return str(row.values[CONDITIONS[name]])


# Rows by task


def tasks_of(rows: Sequence[Row], without: Sequence[str] = ("tie_break",)) -> list[list[Row]]:
    """The rows of each task on each machine; `without` are fields in which rows of one task may
    differ.
    """
    fields = [name for name in TASK if name not in without]
    keyed = []
    for row in rows:
        corpus = base_name(row) if "data.sha256" in without else row.corpus.name
        keyed.append(((corpus, *[row.values[name] for name in fields]), row))
    return list(together(keyed).values())


def unlike(rows: Sequence[Row], without: Sequence[str]) -> list[str]:
    """In what the tasks of rows differ, by the names of conditions."""
    unequal = []
    for name in ("data", *TASK):
        if name not in without and len({row.values[name] for row in rows}) > 1:
            unequal.append(name)
    if "data" in unequal and "data.sha256" in unequal:
        unequal.remove("data.sha256")  # other names say it
    return [name.removeprefix("data.") for name in unequal]


def panel_title(group: Sequence[Row], groups: Sequence[Sequence[Row]], sizes: bool = True) -> str:
    """The corpus with its language, and whatever distinguishes this group from the others."""
    first, base = group[0], base_name(group[0])
    title = str(first.corpus.name) if sizes else base
    language = registry.cards("data").get(base, {}).get("language", "generated")
    if language != "generated":
        title += f" ({language})"
    parts = [title]
    if sizes and first.corpus.bytes is not None:
        parts.append(bytes_text(first.corpus.bytes))

    for field in (*DECISIVE, FIELD["host"]):
        texts = {row.texts.get(field.name) for row in group}
        firsts = {other[0].texts.get(field.name) for other in groups}
        is_default = field.value(first.record) == field.default
        if len(texts) == 1 and len(firsts) > 1 and None not in texts and not is_default:
            phrase = field.phrase(first.record)
            parts.append(f"host {texts.pop()}" if field.name == "host" else phrase)
    return ", ".join(filter(None, parts))


def base_name(row: Row) -> str:
    """The name of the row's corpus, of any size: one_word of one_word(bytes=5000)."""
    return str(row.corpus.name).partition("(")[0]
