"""What is measured: a corpus as it is read, a counter on it, a trainer with that counter and what
it continues from.

The words of a corpus are kept in the cache from one run to the next. Nothing about time is kept,
and no merges.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import regex

from harness.common import cache, files
from harness.common.cards import MeasureCard
from harness.common.printing import print_stderr
from harness.common.registry import CounterCard, VariantCard
from harness.corpora import CorpusFile
from harness.measure.machine import WorkerLimits, takes
from harness.runs.overrides import Settings
from harness.worker import exchange
from variants.contract import Corpus

if TYPE_CHECKING:
    from harness.tokenizers.extension import Extension

Manifest = dict[str, Any]  # the manifest of a table of words: its digest, and how many there are


@dataclass(frozen=True)
class Reading:
    """How a file becomes words: everything that decides a table of word counts, whichever counter
    makes it.

    A given table of words is decided by the table alone; its pattern only goes into a tokenizer
    that is saved.
    """

    file: CorpusFile
    pattern_name: str
    corpus: Corpus
    """The file as counters and trainers are given it, from here to the measured process."""

    @functools.cached_property
    def key(self) -> str:
        """Names the table of word counts: equal for equal bytes read the same way by the same
        `regex`.
        """
        words, how = [exchange.FORMAT, self.file.sha256], self.corpus
        if self.file.table:
            return cache.key_of(*words)
        rules = (how.pattern, how.special_tokens, how.errors, how.partial, regex.__version__)
        return cache.key_of(*words, *rules)

    @functools.cached_property
    def folder(self) -> Path:
        """The folder of its words: a given table, or a place in the cache."""
        return self.file.path if self.file.table else cache.place("counts", self.key)

    def words(self) -> Manifest | None:
        """The manifest of the words in that folder; None if they are missing or broken."""
        entry = cache.read_entry(self.folder)
        return None if entry is None else entry.facts

    def keep(self, counted: Path, manifest: Manifest) -> None:
        """Copy freshly counted words into the cache, unless it has the same."""

        def copy(folder: Path) -> Manifest:
            files.copy_tree(counted, folder)
            return manifest

        cached = self.words()
        if cached is None or cached["sha256"] != manifest["sha256"]:
            cache.put("counts", self.key, copy)


@dataclass(frozen=True)
class CountCell:
    """One word counter on one corpus, with one number of threads."""

    reading: Reading
    counter: CounterCard
    threads: int
    limits: WorkerLimits

    @property
    def label(self) -> str:
        return f"counting {self.reading.file.name} ({self.counter.name})"

    @functools.cached_property
    def key(self) -> str:
        """Names the measurement on whichever corpus: the counter, its parameters and its
        threads.
        """
        counter = self.counter
        return cache.key_of(counter.name, counter.target, dict(counter.params), self.threads)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: `described` is for people, `import_folders` are where Python
    looks, a folder of links to packages first.
    """

    name: str
    described: str
    import_folders: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """What its processes find in their environment."""
    commit: str = ""
    forbidden: str = ""
    """Of the base: the working tree, in which no file that its processes import may lie."""
    changed: tuple[str, ...] = ()
    """Of the base: the files that differ in the working tree, documents aside. A trainer may import
    or read any of them.
    """


@dataclass(frozen=True)
class TrainCell:
    """One trainer on one corpus, with the counter whose time is added to its own."""

    variant: VariantCard
    count: CountCell
    counting_chosen: bool
    vocab_size: int
    tie_break: str
    min_count: int
    interpreter: str | None = None
    extension: Extension | None = None
    """The merges that it continues from, and those that it may not make; None for training from
    bytes alone.
    """
    side: Side | None = None
    """Where the trainer is imported from; None for here."""
    gate: tuple[tuple[str, str], ...] = ()
    """Of a gate: what a record says of the question that it is measured for."""

    @property
    def reading(self) -> Reading:
        return self.count.reading

    @property
    def num_merges(self) -> int:
        return self.vocab_size - 256 - len(self.reading.corpus.special_tokens)

    @property
    def label(self) -> str:
        return f"{self.variant.name} on {self.reading.file.name}"

    @functools.cached_property
    def key(self) -> str:
        """Names the measurement, so that two records of the same work can be found."""
        variant, count = self.variant, self.count
        trainer = [variant.name, variant.target, dict(variant.params), self.interpreter]
        limit = count.limits.wall_seconds
        return cache.key_of(self.task_key, trainer, count.key, limit, self.gate)

    @functools.cached_property
    def task_key(self) -> str:
        """Names the task: cells of one task must make the same merges. Equal texts under two names
        are two.
        """
        text = [self.reading.file.name, self.reading.key]
        question = [self.vocab_size, self.tie_break, self.min_count]
        extension = self.extension
        if extension is None:
            return cache.key_of(text, question)
        how = [extension.sha256, extension.inheriting, extension.veto]
        return cache.key_of(text, question, how)

    def extending(self) -> dict[str, Any]:
        """The keyword arguments that a replay of its merges needs."""
        return {} if self.extension is None else self.extension.keywords()


def counters_of(cells: Iterable[TrainCell]) -> list[CountCell]:
    """The counters that cells of a task need, each once."""
    return list({cell.count.key: cell.count for cell in cells}.values())


def with_distinct_names(cells: Sequence[TrainCell]) -> list[TrainCell]:
    """The cells; different files of one name are named by their paths below a common folder."""
    paths_of_name: dict[str, set[str]] = {}
    for cell in cells:
        file = cell.reading.file
        if file.whole_path:
            paths_of_name.setdefault(file.name, set()).add(file.whole_path)

    renamed = []
    for cell in cells:
        reading, file = cell.reading, cell.reading.file
        paths = paths_of_name.get(file.name, ())
        if len(paths) > 1 and file.whole_path:
            name = os.path.relpath(file.whole_path, os.path.commonpath(paths))
            reading = replace(reading, file=replace(file, name=name))
            cell = replace(cell, count=replace(cell.count, reading=reading))
        renamed.append(cell)
    return renamed


def without_idle_threads(cells: Sequence[TrainCell]) -> list[TrainCell]:
    """The cells, of those that differ in threads alone only the first, unless the trainer can use
    several, or a counter that was chosen or belongs to it, or that cannot be found out.
    """
    firsts: dict[str, TrainCell] = {}
    kept = []
    for cell in cells:
        with_one = replace(cell, count=replace(cell.count, threads=1))
        first = firsts.setdefault(with_one.key, cell)
        targets = [(cell.variant.target, cell.interpreter)]
        if not cell.reading.file.table and (cell.counting_chosen or cell.variant.counting):
            targets.append((cell.count.counter.target, None))
        is_first = first.count.threads == cell.count.threads
        if is_first or any(takes("threads", *target) for target in targets):
            kept.append(cell)
        else:
            print_stderr(
                f"{cell.variant.name} takes no threads: not measured again with threads={cell.count.threads}"
            )
    return kept


class Block(NamedTuple):
    """A pass over the cells of a task."""

    number: int
    warm_up: bool = False


def blocks_of(measure: MeasureCard) -> list[Block]:
    """The blocks of a task in their order, warm-up first; with a precision as many as there may
    be.
    """
    warm_up = [Block(number, warm_up=True) for number in range(measure.warm_up)]
    number = measure.repeat if measure.precision is None else measure.max_blocks
    return [*warm_up, *map(Block, range(number))]


class Task(NamedTuple):
    """Cells that are measured in the same blocks and compared with each other."""

    number: int
    cells: list[TrainCell]


class Plan(NamedTuple):
    """What one command measures: its cells, each once and by task, and the settings that they
    share.
    """

    tasks: list[Task]
    settings: Settings
    inputs: Sequence[Path] = ()
    """The files and whole folders of the user that it reads."""
    overrides: Sequence[str] = ()
    """The command's overrides as typed."""

    @property
    def cells(self) -> list[TrainCell]:
        return [cell for task in self.tasks for cell in task.cells]


def make_tasks(cells: Iterable[TrainCell]) -> list[Task]:
    """The cells, each once, as tasks in the order of their first cells."""
    tasks: dict[str, dict[str, TrainCell]] = {}
    for cell in cells:
        tasks.setdefault(cell.task_key, {})[cell.key] = cell
    return [Task(number, list(cells.values())) for number, cells in enumerate(tasks.values())]
