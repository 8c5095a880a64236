"""python -m harness: measure trainers, prove their merges, print the table; or one of the other
commands by name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import harness
from harness.common import registry
from harness.common.command import MAX_COLUMNS, RECORDED, Parser, exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.printing import print_stdout, terminal_text, wrap
from harness.common.units import did_you_mean
from harness.common.values import own_target

if TYPE_CHECKING:
    from harness.records.file import Record

MODULES = (
    "table",
    "plot",
    "report",
    "board",
    "replay",
    "conformance",
    "tokenizer",
    "doctor",
    "new_variant",
    "cs336",
)
PACKAGES = ("corpora", "records", "gate")
COMMANDS = (*MODULES, *PACKAGES)
"""Commands with options of their own: `bpe-harness table` is `python -m harness.table`."""
OF_TOKENIZERS = ("train", "encode", "decode", "convert", "cut", "prune", "stats")
NEXT = """
next: python -m harness variants=naive,heap,flat data.path=FILE    on a text of yours
      python -m harness.plot --output chart.svg                    draws what was measured"""
SHORT, WHOLE = (Path(__file__).with_name(name) for name in ("usage.txt", "usage_all.txt"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code_of(lambda: command(given), RECORDED)


def command(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        module = f"harness.{name}.__main__" if name in PACKAGES else f"harness.{name}"
        return int(importlib.import_module(module).main(arguments[1:]))
    lines = [*COMMANDS, *(f"tokenizer {command}" for command in OF_TOKENIZERS)]
    meant = did_you_mean(name, lines, "bpe-harness ")
    if name.isidentifier() and meant and own_target(name) is None:
        raise Refusal(f"unknown command {name!r};{meant}")

    parser = Parser(prog="python -m harness", add_help=False, allow_abbrev=False)
    registry.folder_option(parser)
    options, arguments = parser.parse_known_args(arguments)
    registry.use_folder(options.config_dir)
    if {"-h", "--help"} & {*arguments}:
        print(usage() if "all" in arguments else SHORT.read_text().rstrip())  # noqa: T201
        return OK
    if "--version" in arguments:
        print(f"bpe-harness {harness.__version__}")  # noqa: T201
        return OK
    from harness.runs.run import run_command  # late: Hydra is slow to import

    if "--cfg" in arguments:
        import msgspec

        from harness.runs.overrides import compose, dated

        overrides = [argument for argument in arguments if argument not in ("--cfg", "job")]
        for config in compose(dated(overrides)):
            values = msgspec.to_builtins(config)
            del values["keys"]
            print(msgspec.yaml.encode(values).decode())  # noqa: T201
        return OK
    code = run_command(arguments, show)
    if not arguments and code == OK:
        print(NEXT)  # noqa: T201
    return code


def show(records: Sequence[Record], notes: Sequence[str]) -> None:
    """Print a table for each task, and the notes."""
    from harness.common.sheet import print_sheets
    from harness.results.rows import rows
    from harness.results.tables import tables

    print_sheets(tables(rows(records)))
    for note in notes:
        print_stdout(terminal_text(note))


def usage() -> str:
    """Every name and setting, with the names that exist now."""
    names = {
        group: registry.names(group)
        for group in ("data", "counting", "pattern", "measure", "experiment")
    }
    names["tags"] = sorted({tag for card in registry.variants().values() for tag in card.tags})
    presets = registry.presets()
    names["variants"] = [name for name in registry.variants() if name not in presets]
    names["variants"].append(f"and {len(presets)} in conf/family")

    joined = {key: ", ".join(values) for key, values in names.items()}
    return wrap(WHOLE.read_text().rstrip().format(**joined), MAX_COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
