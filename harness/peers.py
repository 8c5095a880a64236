"""python -m harness.peers: the outside trainers, which of them are installed, and which have a newer release.

    python -m harness.peers list                     what is installed here
    python -m harness.peers outdated                 installed, newest in the package index, used by results/board
    python -m harness.peers outdated --names         only those that the board has not seen the newest release of

The index is asked through pip, wherever pip is told to look.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from harness.common import registry
from harness.common.errors import OK, UNMEASURED, Refusal, guarded
from harness.common.sheet import Column, Sheet, print_sheet
from harness.common.streams import Parser, say, tell
from harness.runs.record import FILE_NAME, PACKED, read_records
from variants.contract import Corpus

BOARD = Path("results/board")
UNKNOWN = "-"
NOT_INSTALLED = "not installed"
PATIENCE_SECONDS = 60

Newest = Callable[[str], str]


class Release(NamedTuple):
    """A package whose trainer is a variant, and the version that is installed, if one is."""

    variant: str
    package: str
    installed: str | None


def releases() -> list[Release]:
    """Every outside trainer that is a package, as its adapter tells it: `feeding` names it with its version."""
    found = []
    for card in registry.select([registry.OUTSIDE]):
        module = sys.modules[registry.resolve(card.target).__module__]
        package, _, version = module.feeding(Corpus(__file__), **card.params).program.partition(" ")
        found.append(Release(card.name, package, version or None))
    return found


def newest_in_index(package: str) -> str:
    """The newest release that pip finds. Raises Refusal, with what pip says, where it finds none or cannot ask."""
    command = [sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, "--retries", "1", "--timeout", "10"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Refusal(f"pip has found no release of {package} in {PATIENCE_SECONDS} s", UNMEASURED) from None
    found = re.match(rf"{re.escape(package)} \((\S+)\)", done.stdout, re.IGNORECASE)
    if done.returncode or found is None:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or ["it does not say why"]
        raise Refusal(f"pip finds no release of {package} ({said[-1].removeprefix('ERROR:').strip()})", UNMEASURED)
    return found[1]


def used_by(board: Path) -> dict[str, str]:
    """The version of each package in the latest records of a board; nothing where there is no board yet."""
    if not any((board / name).exists() for name in (FILE_NAME, PACKED)):
        return {}
    used: dict[str, tuple[str, str]] = {}
    for record in read_records([board]):
        package, _, version = str((record.get("feeding") or {}).get("program")).partition(" ")
        if version:
            used[package] = max(used.get(package, ("", "")), (str(record["started"]), version))
    return {package: version for package, (_, version) in used.items()}


def is_unseen(newest: str, used: str | None) -> bool:
    """Whether the board lacks a release; what cannot be known is none that it lacks."""
    return newest not in (UNKNOWN, used)


def sheet_of(listed: Sequence[Release], newest: Mapping[str, str], used: Mapping[str, str]) -> Sheet:
    """A row for each trainer."""
    states = [state_of(each, newest.get(each.package, UNKNOWN), used.get(each.package)) for each in listed]
    columns = [
        Column("trainer", [each.variant for each in listed], figures=False),
        Column("package", [each.package for each in listed], figures=False),
        Column("installed", [each.installed or NOT_INSTALLED for each in listed], figures=False),
    ]
    if newest or used:
        columns += [
            Column("newest", [newest.get(each.package, UNKNOWN) for each in listed], figures=False),
            Column("on the board", [used.get(each.package, UNKNOWN) for each in listed], figures=False),
            Column("what to do", states, figures=False),
        ]
    return Sheet([], columns, ["" for _ in listed], [])


def state_of(release: Release, newest: str, used: str | None) -> str:
    if newest == UNKNOWN:
        return UNKNOWN
    if release.installed != newest:
        return f"python -m pip install {release.package}=={newest}"
    return "run the board again" if is_unseen(newest, used) else "nothing"


def ask_index(listed: Sequence[Release], newest: Newest) -> tuple[dict[str, str], list[str]]:
    """The newest release of each package, and what could not be had, a sentence each.

    Who cannot reach the index for the first package cannot for the others, so they are not waited for.
    """
    found: dict[str, str] = {}
    complaints: list[str] = []
    for each in listed:
        try:
            found[each.package] = newest(each.package)
        except Refusal as refusal:
            complaints.append(str(refusal))
            if not found:
                return {}, [f"the package index cannot be asked: {refusal}; what is newest is not known"]
    return found, complaints


def outdated(board: Path, only_names: bool, newest: Newest) -> int:
    """Show or name what is new; UNMEASURED where the index could not be asked."""
    listed = releases()
    found, complaints = ask_index(listed, newest)
    used = used_by(board)
    if only_names:
        for each in listed:
            if is_unseen(found.get(each.package, UNKNOWN), used.get(each.package)):
                tell(each.variant)
    else:
        print_sheet(sheet_of(listed, found or dict.fromkeys(used, UNKNOWN), used), Console())
    for complaint in complaints:
        say(complaint)
    return UNMEASURED if complaints else OK


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.peers",
        description="The outside trainers: which are installed, and which have a release that the board has not seen.",
        epilog="exit code: 0; 22 if the package index could not be asked for all of them.",
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="list|outdated")
    commands.add_parser("list", help="what is installed here")
    newer = commands.add_parser("outdated", help="installed, newest, and what the board used")
    newer.add_argument("--board", type=Path, default=BOARD, help="the board's folder (default: %(default)s)")
    newer.add_argument("--names", action="store_true", help="only the trainers with a release that the board lacks")
    return made


def main(argv: Sequence[str] | None = None, newest: Newest = newest_in_index) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)

    def do() -> int:
        if arguments.command == "outdated":
            return outdated(arguments.board, arguments.names, newest)
        print_sheet(sheet_of(releases(), {}, {}), Console())
        return OK

    return guarded(do)


if __name__ == "__main__":
    sys.exit(main())
