"""python -m harness.plot: records as charts; rows without a time are named below."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, Refusal
from harness.common.files import check_output
from harness.common.printing import print_stdout
from harness.records.file import Record, files_read
from harness.results.charts import METADATA, dots, phases, save_figure
from harness.results.lines import CORPUS, THREADS, VOCABULARY, over, profile
from harness.results.rows import Row, is_wrong, rows
from harness.results.selection import (
    CONDITIONS,
    DEFAULT_RESULTS,
    add_record_arguments,
    chosen_rows,
    rows_where,
)
from harness.results.writing import VALUES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[str, tuple[str, Callable[..., Figure]]] = {
    "phases": ("total times with the shares of their phases, a line for each row", phases),
    "dots": ("a dot for each trainer on each text", dots),
    "size": ("lines over the size of the corpus", partial(over, CORPUS)),
    "vocabulary": ("the same over the size of the vocabulary", partial(over, VOCABULARY)),
    "threads": ("the same over the number of threads", partial(over, THREADS)),
    "profile": ("the share of cells within so many times of the best, for each trainer", profile),
}
"""What each kind of chart shows, and its function."""
OF_VALUES = ("dots", "size", "vocabulary", "threads")
"""The kinds that can show another value than the total."""
PLAIN = "phases"
_EPILOG = f"""\
kinds:
{chr(10).join(f"  {name:<11} {shows}" for name, (shows, _) in KINDS.items())}

example: python -m harness.plot mine.jsonl yours/ --kind dots --where 'variant=naive,heap*' --output both.pdf

--where NAME=VALUE can be about {", ".join(CONDITIONS)}.
A VALUE may have wildcards and commas. An SVG is light or dark like its reader's system; a PNG and a PDF are light.

exit code: 0; 2 for a usage error; 21 if merges are wrong or rows contradict \
each other; 22 if the records lack what the chart needs."""


def draw(
    records: Sequence[Record],
    kind: str = PLAIN,
    where: Sequence[str] = (),
    value: str = "total",
) -> Figure:
    """The chart of one kind of these records as a figure. Raises Refusal if they do not have what
    it takes.
    """
    return _figure(rows_where(rows(records), where), kind, value)


def _figure(shown: Sequence[Row], kind: str, value: str) -> Figure:
    draw_kind = KINDS[kind][1]
    return draw_kind(shown, value=VALUES[value]) if kind in OF_VALUES else draw_kind(shown)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    description = "Draw records. A time is drawn only if the merges were right; rows without a time are named below."
    parser = Parser(prog="python -m harness.plot", description=description, epilog=_EPILOG)
    add = parser.add_argument
    add_record_arguments(parser)
    add(
        "--kind",
        choices=list(KINDS),
        default=PLAIN,
        metavar="KIND",
        help="choose the chart (default: %(default)s)",
    )
    add(
        "--output",
        metavar="FILE",
        type=Path,
        help=f"write to this .svg, .png or .pdf (default: {DEFAULT_RESULTS}/KIND.svg)",
    )
    with_values = f"draw total or memory in {', '.join(OF_VALUES)} (default: %(default)s)"
    add("--value", choices=list(VALUES), default="total", metavar="VALUE", help=with_values)
    arguments = parser.parse_args(argv)
    kind, value = arguments.kind, arguments.value
    if value != "total" and kind not in OF_VALUES:
        parser.error(f"--value {value} goes with --kind {', '.join(OF_VALUES)}")

    def command() -> int:
        path = arguments.output or Path(DEFAULT_RESULTS, f"{kind}.svg")
        if path.suffix.lower() not in METADATA:
            raise Refusal(f"cannot draw into {path}; pass a file that ends in .svg, .png or .pdf")
        check_output(path, files_read(arguments.paths))
        shown = chosen_rows(arguments)
        save_figure(_figure(shown, kind, value), path)
        print_stdout(f"wrote {path}")
        return MISMATCH if is_wrong(shown) else OK

    return exit_code_of(command)


if __name__ == "__main__":
    sys.exit(main())
