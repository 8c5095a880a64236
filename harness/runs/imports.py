"""The code that was measured: the files that the processes of a run say they have imported.

Their digest is part of each record. If one of them changes, times would be of two programs: the run
ends, and an interrupted run is not resumed. For that their states are kept in the cache until the
run is complete.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.common import cache
from harness.common.errors import UNMEASURED, Refusal
from harness.measure.process import PACKAGES
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
        why = f"{path} was changed after this run had imported it"
        super().__init__(f"{why}, so its times would be of two programs", "run the same again")


class ImportedFiles:
    """The imported files of a run by path, with their states; kept in the cache by a `key` if the
    run can be resumed.
    """

    def __init__(self, key: str | None) -> None:
        self.key = key
        entry = None if key is None else cache.find("imported", key)
        self.states: dict[str, State] = {} if entry is None else entry.facts
        self.digests: dict[str, str] = {}

    def changed(self) -> list[str]:
        """Return those that have changed."""
        return [path for path, state in self.states.items() if import_state(path) != state]

    def check(self) -> None:
        """Raise FileChanged if one of them has changed."""
        for path in self.changed():
            raise FileChanged(path)

    def add(
        self, imported: Mapping[str, State], params: Mapping[str, Any], side: Side | None = None
    ) -> str | None:
        """Add what a process of a side has imported, and the programs that parameters name; return
        the digest of all these files, None without one.

        Raises FileChanged if one was changed since, or differs from what another process has
        imported, and WrongCode for a file that the side may not import.
        """
        if side is not None and side.forbidden:
            check_side(imported, side)

        before = len(self.states)
        programs = {path: file_state(path) or [] for path in programs_in(params)}
        found = set()
        for path, whole_state in {**imported, **programs}.items():
            now, state = import_state(path), whole_state[:WITHOUT_LINKS]
            if now is None and path not in self.states:
                continue  # of a folder that was the process's own, and is gone with it
            if self.states.setdefault(path, state) != state or now != state:
                raise FileChanged(path)
            if path not in self.digests:
                self.digests[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found.add(self.digests[path])

        if self.key is not None and len(self.states) > before:
            cache.put("imported", self.key, lambda _: self.states)
        return digest(sorted(found), 64) if found else None

    def forget(self) -> None:
        """Remove what is kept: the run is complete."""
        if self.key is not None:
            cache.remove("imported", self.key)


def programs_in(params: Mapping[str, Any]) -> list[str]:
    """Return the files that parameters name, as a command does: by a path, or by a name with a
    suffix.
    """
    named: list[str] = []
    for value in params.values():
        try:
            named += shlex.split(value) if isinstance(value, str) else []
        except ValueError:  # a quotation that does not end
            continue
    return [word for word in named if ("/" in word or "." in word) and Path(word).is_file()]


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
