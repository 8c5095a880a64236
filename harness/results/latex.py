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
    }
)


def sheet_to_latex(sheet: Sheet) -> str:
    """The table; what stands above and below it is in comments, for the text around it."""
    lines = [f"% {terminal_text(line)}" for line in sheet.caption]
    if sheet.columns:
        alignment = "".join("r" if column.figures else "l" for column in sheet.columns)
        lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
        lines += [_latex_row([column.heading for column in sheet.columns]), r"\midrule"]
        lines += map(_latex_row, zip(*(column.cells for column in sheet.columns), strict=True))
        lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [f"% {terminal_text(note)}" for note in sheet.notes]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    texts = [terminal_text(cell).translate(_SPECIAL) for cell in cells]
    return rf"{' & '.join(texts)} \\"
