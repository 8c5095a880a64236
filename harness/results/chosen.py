"""What the commands that read records have in common: where the records are, and which of them are meant."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.records.load import read_records
from harness.results.latest import latest, latest_run
from harness.results.matches import NAMES

DEFAULT_RESULTS = "results/local"
NO_PATHS = (DEFAULT_RESULTS,)
"""What `paths` is where none was given; the same folder given by name is a list."""
IN_NO_PICTURE: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("stderr_tail", "last_phase", "laps", "clock_cost_seconds", "curve"), ()),
    "witness": ("wall_seconds", "import_cpu_seconds"),
    "disturbance": ("psi_cpu_seconds", "steal_seconds"),
}
"""What of a record no picture and no page shows."""


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command take files and folders of records, and `--all`."""
    parser.add_argument(
        "paths",
        metavar="FILE or DIR",
        nargs="*",
        default=NO_PATHS,
        help="records, or folders that hold records.jsonl, of which each cell's latest run is taken (default: the one "
        f"latest run in {DEFAULT_RESULTS})",
    )
    parser.add_argument("--all", action="store_true", help="every record there is")


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command set two sets of records side by side."""
    parser.add_argument("--compare", nargs=2, metavar=("LEFT", "RIGHT"), help="two sets of records side by side")
    parser.add_argument(
        "--unlike",
        nargs="*",
        metavar="WHAT",
        help=f"compare although the sets are unlike in this, or in anything: {', '.join(NAMES)}",
    )


def chosen_records(arguments: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    """The records that the arguments mean; without a path the latest run's. Raises Refusal if there are none."""
    records = records_of(arguments.paths, arguments.all)
    return records if arguments.all or arguments.paths != NO_PATHS else latest_run(records)


def records_of(paths: Sequence[str], every: bool = False) -> Sequence[Mapping[str, Any]]:
    """The records in files and folders: all of them, or each cell's latest run. Raises Refusal if there are none."""
    records = read_records(paths)
    if not records:
        raise Refusal(f"no records in {', '.join(paths)}; python -m harness makes some", UNMEASURED)
    return records if every else latest(records)
