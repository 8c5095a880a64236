"""One start of a run: the machine for it alone, its log, its words, and what it finds out once."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from harness.common import registry
from harness.common.files import copy_tree, remove_tree
from harness.common.progress import Display
from harness.measure.machine import environment, host, machine, python
from harness.measure.quiet import timing
from harness.records.file import RunLog
from harness.records.schema import Run
from harness.runs.cells import Block, Manifest, Plan, Reading, Settings, Task, digest
from harness.runs.jobs import Lines
from harness.runs.resume import ImportedFiles, open_log
from harness.runs.saving import Outputs, check_free_outputs, outputs_of
from harness.worker import exchange
from variants.contract import WordCounts

if TYPE_CHECKING:
    from harness.proof.prove import Identity

UNTIMED: dict[str, Any] = {
    **dict.fromkeys(("cpu_seconds", "system_seconds", "cpu_wait_seconds", "cpu_wait_unknown")),
    "seconds": {},
}
"""What records hold where no times are measured."""


@dataclass
class Session:
    """One start of a run: the log that it continues, a folder for its processes, and what is found
    out once.
    """

    settings: Settings
    log: RunLog
    folder: Path
    outputs: Outputs = field(default_factory=lambda: Outputs({}, {}))
    notes: list[str] = field(default_factory=list)
    display: Display = field(default_factory=Display)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    """Of the processes; threads may share it."""
    right_words: dict[str, Manifest] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    """By the key of a reading, the manifest of its words, kept here where no trainer can reach it."""
    judged: dict[tuple[Any, ...], tuple[Identity, int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.timed = self.settings.kind == "time"
        # a resumed run has written some of its outputs
        self.overwrite = self.settings.overwrite or self.log.attempt > 1
        run = self.log.run
        can_resume = self.log.store is not None and run.question is None
        self.imported = ImportedFiles(digest([run.run, run.plan]) if can_resume else None)

    @functools.cached_property
    def run(self) -> Run:
        """The line of the run; read for the first record, because looking at every module takes a
        while.
        """
        return structs.replace(
            self.log.run,
            repeat=self.settings.repeat,
            measure=self.settings.measure,
            host=host(machine()),
            environment=environment(),
        )

    def next_folder(self) -> Path:
        return self.folder / str(next(self.numbers))

    def words_folder(self, reading: Reading) -> Path:
        """Where trainers get the words of a reading: in the run's own folder, not in the cache."""
        return self.folder / "words" / reading.key

    def take_words(self, reading: Reading, counted: Path, manifest: Manifest) -> None:
        """Copy words to where trainers get them, unless those there still have their seal."""
        if self.words(reading) is None:
            folder = self.words_folder(reading)
            remove_tree(folder)
            copy_tree(counted, folder)
            self.manifests[reading.key] = manifest

    def give(self, reading: Reading) -> None:
        """Count the words of a reading once, by the counter that is the definition."""
        if reading.key in self.manifests or reading.file.table:
            return
        counted = self.next_folder()
        manifest = exchange.write_words(counted, registry.definition_counter()(reading.corpus))
        reading.file.check_unchanged()
        self.take_words(reading, counted, manifest)

    def words(self, reading: Reading) -> WordCounts | None:
        """The words of a reading as they were counted; None if they have been changed or removed
        since.
        """
        manifest = self.manifests.get(reading.key, {"seal": ""})
        return exchange.sealed(self.words_folder(reading), manifest["seal"])

    def add(self, lines: Lines, task: Task, closes: Block | None = None) -> None:
        """Put lines on disk."""
        self.log.run = self.run
        cell = structs.replace(lines.cell, task=task.number)
        untimed = {} if self.timed else UNTIMED
        measurement = structs.replace(lines.measurement, **untimed)
        self.log.add(cell, measurement, lines.proof, closes)


@contextlib.contextmanager
def session_of(plan: Plan, folder: Path) -> Iterator[Session]:
    """The machine for this run alone, and its log. Raises Refusal if its results cannot be
    written.
    """
    settings, outputs = plan.settings, outputs_of(plan)
    with contextlib.ExitStack() as opened:
        if settings.kind == "time" and not settings.concurrent:
            opened.enter_context(timing())
        log = open_log(plan, f"{host(machine())} {python()}", now(), opened)
        session = Session(settings, log, folder, outputs)
        check_free_outputs(outputs, session.overwrite)
        yield session


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
