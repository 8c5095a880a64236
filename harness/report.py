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
from harness.results.page import page, page_of_two
from harness.results.selection import (
    DEFAULT_RESULTS,
    NO_PATHS,
    add_compare_arguments,
    add_record_arguments,
    chosen_rows,
)
from harness.table import exit_code_of, two_sets


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: the result, bars, a table, the environment.",
        epilog="exit code: 0; 2 if two sets are unlike; 21 if merges are wrong or rows contradict each other;\n"
        "22 if there is nothing to show.",
    )
    add_record_arguments(parser)
    place = Path(DEFAULT_RESULTS, "report.html")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, default=place, help="an .html file (default: %(default)s)"
    )
    parser.add_argument("--relative-to", metavar="VARIANT", help="ratios to this variant (default: the first row)")
    add_compare_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: _command(arguments), UNCHANGED)


def _command(arguments: argparse.Namespace) -> int:
    if arguments.output.suffix.lower() not in (".html", ".htm"):
        raise Refusal(f"cannot write a page into {arguments.output}; name a file that ends in .html")
    if arguments.compare is not None:
        _require_two_sets_alone(arguments)
        sets = two_sets(arguments)
        content, code = page_of_two(sets), MISMATCH if sets.wrong else OK
    elif arguments.unlike is not None:
        raise Refusal("--unlike goes with --compare LEFT RIGHT")
    else:
        shown = chosen_rows(arguments)
        content, code = page(shown, arguments.relative_to), exit_code_of(shown)
    write_whole(arguments.output, content.encode())
    tell(f"wrote {arguments.output}")
    return code


def _require_two_sets_alone(arguments: argparse.Namespace) -> None:
    left, right = arguments.compare
    if arguments.paths != NO_PATHS:
        raise Refusal("--compare takes the two sets itself: --compare LEFT RIGHT")
    if arguments.relative_to is not None or arguments.where:
        raise Refusal("--relative-to and --where do not go with --compare, which has its own ratios")
    if left == right:
        raise Refusal(f"--compare is given {left} twice; name two sets")


if __name__ == "__main__":
    sys.exit(main())
