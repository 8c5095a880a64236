"""python -m harness.published: which variant each program of the series is here, as a table in Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.common.errors import OK, UNCHANGED, guarded
from harness.common.sheet import sheet_to_markdown
from harness.common.streams import Parser
from harness.results.published import mapping


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    description = "Which variant each program of the series is here, as a table in Markdown."
    Parser(prog="python -m harness.published", description=description).parse_args(argv)
    return guarded(command, UNCHANGED)


def command() -> int:
    sys.stdout.write(sheet_to_markdown(mapping()))
    return OK


if __name__ == "__main__":
    sys.exit(main())
