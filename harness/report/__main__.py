"""python -m harness.report: records as one page of HTML that opens anywhere, without a network.

    python -m harness.report                                     results/local/report.html, the latest runs there
    python -m harness.report a.jsonl b --output report.html      joined, from a file and a folder
    python -m harness.report --compare LEFT RIGHT                two sets side by side

The page holds everything: a table to filter and sort, charts to point at, the command that measures each row again,
proofs, licences, machines. It is a function of the records: the same records give the same page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import Refusal
from harness.record_arguments import DEFAULT_RESULTS, add_record_arguments, chosen_records
from harness.report.library import library
from harness.report.page import page
from harness.table import exit_code
from harness.whole_file import write_whole


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m harness.report",
        description="Make one page of HTML about records: table, charts, commands, proofs. It opens without a network.",
        epilog="exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    try:
        if arguments.output.suffix.lower() not in (".html", ".htm"):
            raise Refusal(f"cannot write a page into {arguments.output}; name a file that ends in .html")
        records = chosen_records(arguments)
        sets: Mapping[str, Sequence[Mapping[str, Any]]] = {"": records}
        content = page(sets, library(), relative_to=arguments.relative_to)
        # A name that is no text, such as a file's in another encoding, is told by escapes.
        write_whole(arguments.output, content.encode(errors="backslashreplace"))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    print(f"wrote {arguments.output}")  # noqa: T201
    return exit_code(records)


if __name__ == "__main__":
    sys.exit(main())
