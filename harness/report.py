"""python -m harness.report: records as one page of HTML that opens anywhere, without a network.

    python -m harness.report                                     results/local/report.html, of the latest run there
    python -m harness.report a.jsonl b --output report.html      joined, from a file and a folder
    python -m harness.report --compare LEFT RIGHT                two sets side by side

The page holds everything: a table to filter and sort, charts to point at, the command that measures each row again,
proofs, licences, machines. It is a function of the records: the same records give the same page.
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
from harness.results.page.page import library, page
from harness.results.page.page_rows import rows_of_page
from harness.table import exit_code_of


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: table, charts, commands, proofs. It opens without a network.",
        epilog="exit code: 0; 2 if two sets are unlike; 21 if merges are wrong or rows contradict each other;\n"
        "22 if there is nothing to show.",
    )
    add_record_arguments(made)
    made.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(DEFAULT_RESULTS, "report.html"),
        help="an .html file (default: %(default)s)",
    )
    made.add_argument("--relative-to", metavar="VARIANT", help="a column: how many times the total of that variant")
    add_compare_arguments(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    return guarded(lambda: command(arguments), UNCHANGED)


def command(arguments: argparse.Namespace) -> int:
    if arguments.output.suffix.lower() not in (".html", ".htm"):
        raise Refusal(f"cannot write a page into {arguments.output}; name a file that ends in .html")
    content, code = compared(arguments) if arguments.compare is not None else alone(arguments)
    # A name that is no text, such as a file's in another encoding, is told by escapes.
    write_whole(arguments.output, content.encode(errors="backslashreplace"))
    tell(f"wrote {arguments.output}")
    return code


def alone(arguments: argparse.Namespace) -> tuple[str, int]:
    """The page about one set of records, and the exit code."""
    if arguments.unlike is not None:
        raise Refusal("--unlike goes with --compare LEFT RIGHT")
    sets = {"": chosen_records(arguments)}
    shown = rows_of_page(sets)
    return page(sets, library(), page_rows=shown, relative_to=arguments.relative_to), exit_code_of(shown.rows)


def compared(arguments: argparse.Namespace) -> tuple[str, int]:
    """The page about two sets side by side. Raises Refusal where they are unlike in what is not allowed."""
    if arguments.paths != NO_PATHS:
        raise Refusal("--compare takes the two sets itself: --compare LEFT RIGHT")
    if arguments.relative_to is not None:
        raise Refusal("--relative-to does not go with --compare, which has its own ratios")
    left, right = names = tuple(arguments.compare)
    if left == right:
        raise Refusal(f"--compare is given {left} twice; name two sets")
    sets = {path: records_of([path], arguments.all) for path in names}
    beside = side_by_side(sets[left], sets[right], (left, right), arguments.unlike)
    return page(sets, library(), compared=beside), MISMATCH if beside.wrong else OK


if __name__ == "__main__":
    sys.exit(main())
