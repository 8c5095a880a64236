"""python -m harness.report: records as one page of HTML that opens anywhere, without a network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, Refusal
from harness.common.files import check_output, write_output
from harness.common.printing import print_stdout
from harness.records.file import files_read
from harness.results.page import page
from harness.results.rows import is_wrong
from harness.results.selection import DEFAULT_RESULTS, add_record_arguments, chosen_rows


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: the result, bars, a table, the environment.",
        epilog="exit code: 0; 2 for a usage error; 21 if merges are wrong or rows contradict each other;\n"
        "22 if there is nothing to show.",
    )
    add_record_arguments(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(DEFAULT_RESULTS, "report.html"),
        help="write to this .html file (default: %(default)s)",
    )
    arguments = parser.parse_args(argv)

    def command() -> int:
        if arguments.output.suffix != ".html":
            raise Refusal(
                f"cannot write a page into {arguments.output}; pass a file that ends in .html"
            )
        check_output(arguments.output, files_read(arguments.paths))
        shown = chosen_rows(arguments)
        write_output(arguments.output, page(shown).encode())
        print_stdout(f"wrote {arguments.output}")
        return MISMATCH if is_wrong(shown) else OK

    return exit_code_of(command)


if __name__ == "__main__":
    sys.exit(main())
