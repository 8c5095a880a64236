"""A sheet as a table of LaTeX for a paper, which needs the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.common.escape import terminal_text
from harness.common.sheet import Sheet

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
    """The table with its caption, and its notes below it."""
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}"]
    if sheet.caption:
        lines.append(rf"\caption{{{_latex_text('; '.join(sheet.caption))}}}")
    alignment = "".join("r" if column.figures else "l" for column in sheet.columns)
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    lines += [_latex_row([column.heading for column in sheet.columns]), r"\midrule"]
    lines += map(_latex_row, zip(*(column.cells for column in sheet.columns), strict=True))
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_latex_text(note)}" for note in sheet.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(_latex_text, cells))} \\"


def _latex_text(text: str) -> str:
    return terminal_text(text).translate(_SPECIAL)
