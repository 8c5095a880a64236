"""python -m harness: measure trainers, prove their merges, print the table; or one of the other commands by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from harness.common.errors import OK, Refusal, guarded
from harness.common.registry import did_you_mean

Record = dict[str, Any]
COMMANDS = {
    name: f"harness.{name}"
    for name in ("table", "plot", "report", "board", "replay", "conformance", "tokenizer", "parity", "doctor")
} | {
    "corpora": "harness.corpora.__main__",
    "records": "harness.records.__main__",
    "gate": "harness.gate.__main__",
    "new_variant": "harness.new_variant",
}
"""Commands with options of their own: `bpe-harness table` is `python -m harness.table`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: command(arguments))


def command(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        return int(importlib.import_module(COMMANDS[arguments[0]]).main(arguments[1:]))
    if arguments and arguments[0].isidentifier() and (meant := did_you_mean(arguments[0], COMMANDS, "bpe-harness ")):
        raise Refusal(f"unknown command {arguments[0]!r};{meant}")
    if any(argument in ("-h", "--help") for argument in arguments):
        from harness.runs.usage import SHORT, usage

        print(usage() if "all" in arguments else SHORT)  # noqa: T201
        return OK
    if "--version" in arguments:
        import harness

        print(f"bpe-harness {harness.__version__}")  # noqa: T201
        return OK
    from harness.runs.compose import compose

    configs = compose(arguments)
    if configs is None:
        return OK
    from harness.common.console import terminal_text
    from harness.common.files import temporary_folder
    from harness.common.sheet import PatientConsole
    from harness.runs.run import run_command

    console = PatientConsole()

    def show(records: Sequence[Record], notes: Sequence[str]) -> None:
        from harness.table import render

        render(records, console)
        for note in notes:
            console.print(terminal_text(note), soft_wrap=True, markup=False, highlight=False)

    with temporary_folder() as folder:
        return run_command(arguments, configs, folder, show, console)


if __name__ == "__main__":
    sys.exit(main())
