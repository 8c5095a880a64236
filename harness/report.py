"""python -m harness.report: records as one page of HTML that opens anywhere, without a network.

python -m harness.report                                     results/local/report.html, of the latest run there
python -m harness.report a.jsonl b --output report.html      joined, from a file and a folder
python -m harness.report --compare LEFT RIGHT                two sets side by side
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.common.console import Parser, tell
from harness.common.errors import MISMATCH, OK, UNCHANGED, Refusal, guarded
from harness.common.files import write_whole
from harness.results.chosen import (
    DEFAULT_RESULTS,
    NO_PATHS,
    add_compare_arguments,
    add_record_arguments,
    chosen_records,
    records_of,
)
from harness.results.matches import side_by_side
from harness.results.page import page, page_of_two
from harness.results.rows import rows
from harness.results.where import add_where_argument, rows_where
from harness.table import exit_code_of


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: the result, bars, a table, the environment.",
        epilog="exit code: 0; 2 if two sets are unlike; 21 if merges are wrong or rows contradict each other;\n"
        "22 if there is nothing to show.",
    )
    add_record_arguments(made)
    add_where_argument(made)
    made.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(DEFAULT_RESULTS, "report.html"),
        help="an .html file (default: %(default)s)",
    )
    made.add_argument("--relative-to", metavar="VARIANT", help="ratios to this variant (default: the first row)")
    add_compare_arguments(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    return guarded(lambda: command(arguments), UNCHANGED)


def command(arguments: argparse.Namespace) -> int:
    if arguments.output.suffix.lower() not in (".html", ".htm"):
        raise Refusal(f"cannot write a page into {arguments.output}; name a file that ends in .html")
    content, code = _of_two(arguments) if arguments.compare is not None else _of_one(arguments)
    write_whole(arguments.output, content.encode())
    tell(f"wrote {arguments.output}")
    return code


def _of_one(arguments: argparse.Namespace) -> tuple[str, int]:
    if arguments.unlike is not None:
        raise Refusal("--unlike goes with --compare LEFT RIGHT")
    shown = rows_where(rows(chosen_records(arguments)), arguments.where)
    return page(shown, arguments.relative_to), exit_code_of(shown)


def _of_two(arguments: argparse.Namespace) -> tuple[str, int]:
    if arguments.paths != NO_PATHS:
        raise Refusal("--compare takes the two sets itself: --compare LEFT RIGHT")
    if arguments.relative_to is not None or arguments.where:
        raise Refusal("--relative-to and --where do not go with --compare, which has its own ratios")
    left, right = arguments.compare
    if left == right:
        raise Refusal(f"--compare is given {left} twice; name two sets")
    sets = side_by_side(
        records_of([left], arguments.all), records_of([right], arguments.all), (left, right), arguments.unlike
    )
    return page_of_two(sets), MISMATCH if sets.wrong else OK


if __name__ == "__main__":
    sys.exit(main())
