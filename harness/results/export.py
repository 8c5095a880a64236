"""Rows for other programs: the JSON of hyperfine, which its scripts and Bencher read, and tables of
LaTeX for papers.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.common.printing import terminal_text
from harness.common.sheet import Sheet
from harness.results.fields import COLUMNS
from harness.results.rows import Row

NAMED = ("data", "vocab_size", "threads", "interpreter", "host")
"""Fields that have their own part in a name, or only if names would be equal."""


def hyperfine(rows: Sequence[Row]) -> str:
    """The rows whose time may be shown, each as a result; seconds are totals of its runs."""
    timed = [row for row in rows if row.total is not None]
    names = names_of_benchmarks(timed)
    results = [_result(row, name) for row, name in zip(timed, names, strict=True)]
    return json.dumps({"results": results}, indent=1) + "\n"


def _result(row: Row, name: str) -> dict[str, Any]:
    times = [sample.seconds for sample in row.samples]
    cpu, system = row.cpu_seconds, row.system_seconds

    return {
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


def names_of_benchmarks(rows: Sequence[Row]) -> list[str]:
    """A name for each row, the same in every export, so that a tracker finds it again: whatever is
    not the default is in it. Machines and bytes are named only if names would be equal.
    """
    names = list(map(_name, rows))
    number = Counter(names)
    for index, row in enumerate(rows):
        if number[names[index]] > 1:
            names[index] += (
                f", {row.texts['interpreter']}, {row.texts['host']}, {row.corpus.sha256}"
            )
    return names


def _name(row: Row) -> str:
    cell = row.record.cell
    params = " ".join(f"{name}={value}" for name, value in row.params.items())
    parts = [f"{row.name} {params}".strip(), str(row.corpus.name)]
    parts += [f"vocabulary {cell.vocab_size}", f"threads {row.threads}"]
    for field in COLUMNS:
        if field.name not in NAMED and not field.is_default(row.record):
            parts.append(field.phrase(row.record))
    return ", ".join(filter(None, parts))


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
    head, *rows = map(_latex_row, table)
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
    lines += [*rows, r"\bottomrule", r"\end{tabular}"]
    for note in sheet.notes:
        lines.append(rf"\par\footnotesize {_latex_text(note)}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(_latex_text, cells))} \\"


def _latex_text(text: str) -> str:
    return terminal_text(text).translate(_SPECIAL)
