"""Rows for programs: a pandas data frame of every field and figure, the list that `harness.run`
returns, the JSON of hyperfine, which its scripts and Bencher read, and tables of LaTeX for papers.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harness.common.printing import terminal_text
from harness.common.sheet import Sheet, sheet_to_text, sheets_to_html_part
from harness.proof import UNPROVED, WRONG
from harness.records.file import Record
from harness.records.schema import PHASES
from harness.results.fields import COLUMNS
from harness.results.rows import TALLIES, Row, rows
from harness.results.tables import tables

if TYPE_CHECKING:
    import pandas as pd


KINDS: Any = ("string", "Int64", "float64", "bool")
"""The types of columns, in their order; counts are Int64, so that one missing value does not make
them floats.
"""


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each row, seconds in full precision; what may not be shown is missing here
    too.
    """
    # only here: it costs half a second, and a table for the eye needs none of it
    import pandas as pd

    lines, parts = list(map(_columns, rows)), []
    for kind in KINDS:
        part = pd.DataFrame([line[kind] for line in lines], dtype="object")
        parts.append(part.astype(kind))
    return pd.concat(parts, axis="columns")


def _columns(row: Row) -> dict[str, dict[str, Any]]:
    """The columns of a row by their type."""
    run, cell, measurement = row.record.run, row.record.cell, row.record.measurement
    identity, data = row.identity, row.corpus

    texts = {
        "cell": cell.role,
        "variant": cell.variant,
        "params": json.dumps(cell.params, sort_keys=True),
        "counting": cell.counting,
        "status": row.status,
        "reason": row.reason or None,
        "proof": _proof(row),
        "proof_tie_break": identity.tie_break,
        "wrong_merge": identity.merge,
        "got": _json(identity.got),
        "want": _json(identity.want),
        "data": data.name,
        "data_sha256": data.sha256,
        "special_tokens": _json(cell.special_tokens),
        "pattern": cell.pattern,
        "errors": cell.errors,
        "tie_break": cell.tie_break,
        "interpreter": cell.interpreter,
        "host": run.host,
        "started": measurement.started,
        "merges_sha256": measurement.merges_sha256,
        "cpu": run.environment.get("cpu"),
    }
    counts = {
        "bytes": data.bytes,
        "documents": data.documents,
        "pre_tokens": data.pre_tokens,
        "words": data.words,
        "threads": cell.threads,
        "vocab_size": cell.vocab_size,
        "min_count": cell.min_count,
        "merges_done": measurement.merges_done,
        "merges": row.merges,
        "runs": row.runs,
        "instructions": row.instructions,
        "peak_rss_bytes": row.peak_rss_bytes,
        **dict.fromkeys(TALLIES),
        **row.tallies,
    }
    seconds = {
        "total_seconds": row.total,
        "wall_seconds": row.wall_seconds,
        "cpu_seconds": row.cpu_seconds,
        **{f"{phase}_seconds": row.seconds.get(phase) for phase in PHASES},
        "merges_per_second": row.figures["merges/s"],
        "limit_seconds": row.wall_limit,
    }
    flags = {"memory_is_sampled": row.memory_is_sampled}
    return dict(zip(KINDS, (texts, counts, seconds, flags), strict=True))


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _proof(row: Row) -> str | None:
    """The weakest verdict on the merges of its runs; None if there are none."""
    if row.counting_only or row.status not in ("ok", "mismatch"):
        return None
    if row.status == "mismatch":
        return WRONG
    return row.identity.kind if row.proved or row.by_design else UNPROVED


class Records(list[Record]):
    """The records of a run's trainers, one for each measured run, in order; it shows itself as the
    table.

    `counters` holds the records of the word counters, which were measured separately: what a
    trainer's record says of reading and counting comes from there. `everything` is both, as they
    are stored.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.everything = list(records)
        super().__init__(record for record in self.everything if record.trains)
        self.counters = [record for record in self.everything if not record.trains]

    def frame(self) -> pd.DataFrame:
        """A tidy pandas data frame: one line for each measured run of a trainer, one column for
        each figure.

        Settings are text, seconds are floats in full precision, bytes and counts of work are Int64;
        what was not measured, or may not be shown because the merges were wrong, is missing.
        `block` and `repeat` say which of how many runs it is. docs/reference/records.md says what
        each column holds.
        """
        lines = []
        for record in self:
            lines += rows([record])

        frame = frame_of(lines).drop(columns=["cell", "runs"])
        frame.insert(1, "block", [row.record.measurement.block for row in lines])
        frame.insert(2, "repeat", [row.record.run.repeat for row in lines])
        return frame.astype({"block": "Int64", "repeat": "Int64"})

    def __str__(self) -> str:
        """The table that the command prints, as text at full width; `list(records)` shows the
        records themselves.
        """
        return "\n".join(map(sheet_to_text, tables(rows(self.everything)))) or "no records"

    def _repr_html_(self) -> str:
        """The table that the command prints, for a notebook."""
        sheets = tables(rows(self.everything))
        return sheets_to_html_part(sheets, "Records") if sheets else "<p>no records</p>"


# For other programs

NAMED = ("data", "vocab_size", "threads", "interpreter", "host")
"""Fields that have their own part in a name, or only if names would be equal."""


def hyperfine(rows: Sequence[Row]) -> str:
    """The rows whose time may be shown, each as a result; seconds are totals of its runs."""
    timed = [row for row in rows if row.total is not None]
    results = []
    for row, name in zip(timed, names_of_benchmarks(timed), strict=True):
        times = [sample.seconds for sample in row.samples]
        cpu, system = row.cpu_seconds, row.system_seconds
        result = {
            "command": name,
            "mean": statistics.fmean(times),
            "stddev": statistics.stdev(times) if len(times) > 1 else None,
            "median": statistics.median(times),
            "user": None if cpu is None or system is None else cpu - system,
            "system": system,
            "min": min(times),
            "max": max(times),
            "times": times,
            "memory_usage_byte": row.peak_rss_bytes,
            "exit_codes": [0] * len(times),
        }
        results.append(result)
    return json.dumps({"results": results}, indent=1) + "\n"


def names_of_benchmarks(rows: Sequence[Row]) -> list[str]:
    """A name for each row, the same in every export, so that a tracker finds it again: whatever is
    not the default is in it. Machines and bytes are named only if names would be equal.
    """
    names = []
    for row in rows:
        cell = row.record.cell
        params = " ".join(f"{name}={value}" for name, value in row.params.items())
        parts = [f"{row.name} {params}".strip(), str(row.corpus.name)]
        parts += [f"vocabulary {cell.vocab_size}", f"threads {row.threads}"]
        for field in COLUMNS:
            if field.name not in NAMED and not field.is_default(row.record):
                parts.append(field.phrase(row.record))
        names.append(", ".join(filter(None, parts)))

    number = Counter(names)
    for index, row in enumerate(rows):
        if number[names[index]] > 1:
            names[index] += (
                f", {row.texts['interpreter']}, {row.texts['host']}, {row.corpus.sha256}"
            )
    return names


# LaTeX

_SPECIAL = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "×": r"$\times$",
        "≠": r"$\neq$",
        "µ": r"$\mu$",
    }
)


def sheet_to_latex(sheet: Sheet) -> str:
    """The table with its caption, and its notes below it; it needs the package booktabs."""
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}"]
    if sheet.caption:
        lines.append(rf"\caption{{{_latex_text('; '.join(sheet.caption))}}}")
    alignment = "".join("r" if column.figures else "l" for column in sheet.columns)
    table = zip(*([heading, *cells] for heading, cells, _ in sheet.columns), strict=True)
    head, *rows = [rf"{' & '.join(map(_latex_text, cells))} \\" for cells in table]
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
    lines += [*rows, r"\bottomrule", r"\end{tabular}"]
    for note in sheet.notes:
        lines.append(rf"\par\footnotesize {_latex_text(note)}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_text(text: str) -> str:
    return terminal_text(text).translate(_SPECIAL)
