"""What the commands that read records have in common: where the records are, and which of them are meant."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.results.latest import latest, latest_run
from harness.results.matches import NAMES
from harness.results.rows import told
from harness.runs.fields import Key, cell_of
from harness.runs.record import LeftOut, Record, read_records

DEFAULT_RESULTS = "results/local"
NO_PATHS = (DEFAULT_RESULTS,)
"""What `paths` is where none was given; the same folder given by name is a list."""
IN_NO_PICTURE: LeftOut = {
    **dict.fromkeys(("stderr_tail", "last_phase", "laps", "clock_cost_seconds"), ()),
    "witness": ("wall_seconds", "import_cpu_seconds"),
    "disturbance": ("psi_cpu_seconds", "steal_seconds"),
}
"""What of a record no picture and no page shows."""
IN_NO_TABLE: LeftOut = {**IN_NO_PICTURE, **dict.fromkeys(("curve", "affinity"), ())}
"""What of a record no table shows: half of the memory of 200,000 records."""


def without_curves_of_repetitions() -> Callable[[Record], None]:
    """What takes the curve out of each record, in their order, that cannot be the one which stands for its cell.

    That is the first of its run among those that say most (rows.py), of those that ended alike.
    """
    said: dict[Key, bool] = {}

    def take_out(record: Record) -> None:
        proof = record.get("proof")
        like = tuple(map(record.get, _ENDED)), proof and proof.get("state"), cell_of(record)
        if like not in said or told(record) > said[like]:
            said[like] = told(record)
        else:
            record.pop("curve", None)

    return take_out


_ENDED = ("run_id", "status", "measure", "warm_up", "block_whole")


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


def chosen_records(arguments: argparse.Namespace, without: LeftOut = IN_NO_PICTURE) -> Sequence[Mapping[str, Any]]:
    """The records that the arguments mean; without a path the latest run's. Raises Refusal if there are none.

    Of those of one cell, the curve is left in that which stands for it.
    """
    records = records_of(arguments.paths, arguments.all, without)
    return records if arguments.all or arguments.paths != NO_PATHS else latest_run(records)


def records_of(
    paths: Sequence[str], every: bool = False, without: LeftOut = IN_NO_PICTURE
) -> Sequence[Mapping[str, Any]]:
    """The records in files and folders: all of them, or each cell's latest run. Raises Refusal if there are none."""
    records = read_records(paths, without, without_curves_of_repetitions() if "curve" not in without else None)
    if not records:
        raise Refusal(f"no records in {', '.join(paths)}; python -m harness makes some", UNMEASURED)
    return records if every else latest(records)
