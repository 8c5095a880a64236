"""The files that the processes of a run have imported: if one changes, its times would be of two
programs.

Each process says what it has imported. That is kept in the cache until the run is complete, so an
interrupted run notices a change when it is resumed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.common import cache
from harness.common.errors import UNMEASURED, Refusal
from harness.measure.process import PACKAGES
from harness.records.log import RunLog
from harness.runs.cells import Side, digest
from harness.worker.exchange import file_state

State = list[int]
WITHOUT_LINKS = 4  # a new link to a file, as package managers make, changes only its last time


class WrongCode(Refusal):
    """What was measured is not the code that was asked about."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(f"{why}; {advice}", UNMEASURED)


class FileChanged(WrongCode):
    """A file was changed after a process of the run had imported it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was changed after this run had imported it, so its times would be of two "
            "programs",
            "run the same again with rerun=true",
        )


class ImportedFiles:
    """What the processes of a run have imported, by path, each with the state that it had.

    Of a run that can be resumed they are kept.
    """

    def __init__(self, log: RunLog) -> None:
        self.states: dict[str, State] = {}
        self.key: str | None = None
        if log.store is not None and log.run.question is None:
            self.key = digest([log.run.run, log.run.plan])
            entry = cache.find("imported", self.key)
            self.states = {} if entry is None else entry.facts

    def check(self) -> None:
        """Raise FileChanged if one of them has changed."""
        for path, state in self.states.items():
            if import_state(path) != state:
                raise FileChanged(path)

    def add(self, imported: Mapping[str, State], side: Side | None = None) -> None:
        """Add what a process of a side has imported.

        Raises FileChanged if that was changed since, or differs from what another process has
        imported, and WrongCode for a file that the side may not import.
        """
        if side is not None and side.forbidden:
            check_side(imported, side)

        before = len(self.states)
        for path, whole_state in imported.items():
            now, state = import_state(path), whole_state[:WITHOUT_LINKS]
            if now is None and path not in self.states:
                continue  # of a folder that was the process's own, and is gone with it
            if self.states.setdefault(path, state) != state or now != state:
                raise FileChanged(path)

        if self.key is not None and len(self.states) > before:
            cache.put("imported", self.key, lambda _: self.states)

    def forget(self) -> None:
        """Remove what is kept: the run is complete."""
        if self.key is not None:
            cache.remove("imported", self.key)


def check_side(imported: Iterable[str], side: Side) -> None:
    """Raise WrongCode if a file lies in the folder that is forbidden to a side.

    The harness that measures both sides, and what is installed for this interpreter, may.
    """
    made = Path(side.import_folders[0]).parent  # the checkout of the side, wherever that is
    allowed = [path.resolve() for path in (made, Path(PACKAGES, "harness"), Path(sys.prefix))]
    for name in imported:
        path = Path(name).resolve()
        inside = path.is_relative_to(side.forbidden)
        if inside and not any(path.is_relative_to(folder) for folder in allowed):
            raise WrongCode(
                f"{side.name} imported {path}, a file of the working tree",
                "import it from a package that is committed with the trainer",
            )


def import_state(path: str) -> State | None:
    state = file_state(path)
    return None if state is None else state[:WITHOUT_LINKS]
