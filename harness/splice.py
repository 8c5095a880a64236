"""python -m harness.splice README.md: fill in the tables that a page shows, from records, by the commands it names.

A block stands between `<!-- BEGIN NAME: python -m harness.table ... -->` and `<!-- END NAME -->`; harness.published and
harness.gate are the other commands that may stand there. With --check nothing is written and the exit code is 21 if the
page is not what its commands print.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import published, table
from harness.errors import MISMATCH, OK, Refusal
from harness.gate import __main__ as gate

BLOCK = re.compile(
    r"(<!-- BEGIN (?P<name>\w+): python -m harness\.(?P<command>table|published|gate)(?P<arguments>.*?) -->\n)"
    r".*?(<!-- END (?P=name) -->)",
    re.S,
)

COMMANDS = {"table": table.main, "published": published.main, "gate": gate.main}


def spliced(page: str) -> str:
    """The page with every block filled in anew. Raises Refusal if a block's command fails."""
    return BLOCK.sub(
        lambda block: block[1] + "\n" + printed(block["command"], block["arguments"]) + "\n" + block[5], page
    )


def printed(command: str, arguments: str) -> str:
    """What a command of COMMANDS prints for these arguments."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = COMMANDS[command](shlex.split(arguments))
    if code != OK:
        raise Refusal(f"python -m harness.{command}{arguments} ended with {code}", code)
    return output.getvalue()


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.splice", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path, help="a Markdown file")
    parser.add_argument("--check", action="store_true", help="write nothing; 21 if the page is stale")
    arguments = parser.parse_args(argv)
    try:
        before = arguments.page.read_text()
        after = spliced(before)
    except OSError as error:
        print(f"cannot read {arguments.page} ({error.strerror})", file=sys.stderr)  # noqa: T201
        return 2
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    if before == after:
        return OK
    if arguments.check:
        print(f"{arguments.page} is stale; python -m harness.splice {arguments.page} mends it", file=sys.stderr)  # noqa: T201
        return MISMATCH
    arguments.page.write_text(after)
    return OK


if __name__ == "__main__":
    sys.exit(main())
