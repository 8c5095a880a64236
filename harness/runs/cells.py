"""What is measured: a corpus as it is read, a counter on it, a trainer with that counter; and a command's settings.

The words of a corpus are kept in the cache from one run to the next. Nothing about time is kept, and no merges.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import regex

from harness.common import files
from harness.common.comparison import FEWEST_BLOCKS
from harness.common.registry import CounterCard, VariantCard
from harness.corpora import CorpusFile
from harness.measure.process import Limits
from harness.measure.sandbox import WARM
from harness.runs.extension import NOTHING, Extension
from harness.worker import word_store
from variants.contract import Corpus


def digest(parts: Any, length: int = 16) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:length]


@dataclass(frozen=True)
class Reading:
    """How a file becomes words: everything that decides a table of word counts, whichever counter makes it.

    A given table of words is decided by the table alone; its pattern only goes into a tokenizer that is saved.
    """

    file: CorpusFile
    pattern_name: str
    corpus: Corpus
    """The file as counters and trainers are given it, from here to the measured process."""

    @functools.cached_property
    def key(self) -> str:
        """Names the table of word counts: equal for equal bytes read the same way by the same `regex`."""
        how = self.corpus
        parts = [] if self.file.table else [how.pattern, how.special_tokens, how.errors, how.partial, regex.__version__]
        return digest([self.file.sha256, *parts], 64)

    @functools.cached_property
    def folder(self) -> Path:
        """The folder of its words: a given table, or a place in the cache."""
        return self.file.path if self.file.table else files.cache_folder("counts", self.key) / "words"

    def words(self) -> Words | None:
        """The words in that folder; None if there are none. Broken ones are removed, to be counted again."""
        if not word_store.is_whole(self.folder):
            return None
        try:
            return Words(self.folder, word_store.read(self.folder)[1])
        except word_store.BrokenWords:
            return None

    def keep(self, counted: Words) -> Words:
        """Copy freshly counted words into the cache, unless it has the same; returns those in the cache."""
        cached = self.words()
        if cached is None or cached.sha256 != counted.sha256:
            files.remove_tree(self.folder)
            files.cache_folder("counts", self.key)  # made again, should the cache have been emptied
            with files.placing(self.folder) as temporary:
                shutil.copytree(counted.folder, temporary)
        return counted._replace(folder=self.folder)


class Words(NamedTuple):
    """A folder of words, and what its manifest says, which outlives a cache that is emptied during the run."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def sha256(self) -> str:
        return str(self.manifest["sha256"])


@dataclass(frozen=True)
class CountCell:
    """One word counter on one corpus, with one number of threads."""

    reading: Reading
    counter: CounterCard
    threads: int
    limits: Limits
    affinity: tuple[int, ...] | None = None
    """The cores that it is kept to, in order; None for all that this process may use."""
    page_cache: str = WARM

    @functools.cached_property
    def key(self) -> str:
        """Names the measurement on whichever corpus: the counter, its parameters and its threads."""
        parts = [self.counter.name, self.counter.target, dict(self.counter.params), self.threads]
        return digest(parts + ([] if self.page_cache == WARM else [self.page_cache]))


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
    memory_limit: str | None = None
    """limits.memory as it was given; otherwise the limit follows from what is free, and is not part of the plan."""
    extension: Extension = NOTHING

    @property
    def reading(self) -> Reading:
        return self.count.reading

    @property
    def limits(self) -> Limits:
        return self.count.limits

    @property
    def threads(self) -> int:
        return self.count.threads

    @functools.cached_property
    def num_merges(self) -> int:
        return self.vocab_size - 256 - len(self.count.reading.corpus.special_tokens)

    @functools.cached_property
    def key(self) -> str:
        """Names the measurement, so that two records of the same work can be found."""
        work = [self.vocab_size, self.tie_break, self.min_count, self.interpreter, *self.extension.key()]
        variant = [self.variant.name, self.variant.target, dict(self.variant.params)]
        return digest([variant, self.reading.key, self.count.key, work, [self.limits.wall_seconds]])


def unique(cells: Iterable[TrainCell]) -> list[TrainCell]:
    return list({cell.key: cell for cell in cells}.values())


def counters_of(cells: Iterable[TrainCell]) -> list[CountCell]:
    """The counters that cells of a task need, each once."""
    return list({cell.count.key: cell.count for cell in cells}.values())


def folder_names(cells: Sequence[TrainCell]) -> dict[str, str]:
    """A folder's name for each cell: the variant and what distinguishes it from the others, or else its key."""
    facts: tuple[Callable[[TrainCell], str], ...] = (
        lambda cell: cell.reading.file.name,
        lambda cell: str(cell.vocab_size),
        lambda cell: f"threads{cell.threads}",
        lambda cell: cell.tie_break,
    )
    differing = [fact for fact in facts if len(set(map(fact, cells))) > 1]
    names = {
        cell.key: folder_name("-".join([cell.variant.name, *(fact(cell) for fact in differing)])) for cell in cells
    }
    taken = list(names.values())
    return {key: name if taken.count(name) == 1 else f"{name}-{key[:8]}" for key, name in names.items()}


def folder_name(text: str) -> str:
    """The name of one folder: names of variants and corpora may hold anything.

    >>> folder_name("my.package:train-owt"), folder_name("../../etc"), folder_name("..")
    ('my.package.train-owt', '.._.._etc', '_')
    """
    name = re.sub(r"[/\\\x00-\x1f\x7f]", "_", text.replace(":", "."))
    return name if name.strip(".") else "_"


@dataclass(frozen=True)
class Rule:
    """The wanted precision of ratios, as a share of them, and the minimum and maximum number of blocks."""

    within: float
    fewest: int = FEWEST_BLOCKS
    most: int = 20


@dataclass(frozen=True)
class Preset:
    """A way to measure, conf/measure/NAME.yaml: what is measured, and how carefully."""

    name: str
    kind: str = "time"
    warm_up: int = 0
    quiet_seconds: float = 0.0
    """The longest wait for a quiet machine before each cell."""
    precision: Rule | None = None
    """None: a fixed number of blocks."""

    @property
    def timed(self) -> bool:
        return self.kind == "time"


@dataclass(frozen=True)
class Settings:
    """The settings that all cells of a command share."""

    results: Path
    save: Path | None
    repeat: int
    seed: int
    plan_only: bool
    measure: Preset
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False
    affinity: tuple[int, ...] | None = None
    tokens: bool = False
    """Whether to count the tokens that are left of the text."""
    overrides: tuple[str, ...] = ()
    """The command's overrides as typed; of a path only the last name."""

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The blocks of a task in their order, warm-up first; with a precision as many as there may be."""
        rule = self.measure.precision
        warm_up = [Block(number, warm_up=True) for number in range(self.measure.warm_up)]
        return warm_up + [Block(number) for number in range(self.repeat if rule is None else rule.most)]


class Block(NamedTuple):
    """A pass over the cells of a task."""

    number: int
    warm_up: bool = False


class Task(NamedTuple):
    """Cells that are measured in the same blocks and compared with each other."""

    number: int
    cells: list[TrainCell]


@dataclass(frozen=True)
class Plan:
    """What one command measures: its cells, each once, and the settings that they share."""

    cells: list[TrainCell]
    settings: Settings

    @functools.cached_property
    def tasks(self) -> list[Task]:
        """The tasks in the order of their first cells: cells of one task have to come to the same merges."""
        tasks: dict[str, list[TrainCell]] = {}
        for cell in self.cells:
            work = [cell.vocab_size, cell.tie_break, cell.min_count, *cell.extension.key()]
            tasks.setdefault(digest([cell.reading.key, *work]), []).append(cell)
        return [Task(number, cells) for number, cells in enumerate(tasks.values())]
