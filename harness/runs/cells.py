"""What is measured: a corpus as it is read, a counter on it, a trainer with that counter and what
it continues from.

The words of a corpus are kept in the cache from one run to the next. Nothing about time is kept,
and no merges.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import regex

from harness.common import files, registry
from harness.common.errors import Refusal
from harness.common.registry import EXTENDS, CounterCard, VariantCard, split_list
from harness.common.units import count_text
from harness.corpora import CorpusFile
from harness.measure.process import Limits
from harness.worker import exchange
from harness.worker.calling import OWN
from harness.worker.exchange import merges_sha256, packed
from variants import vetoes
from variants.contract import Corpus, Merge, TieBreak
from variants.extending import check_inherited

if TYPE_CHECKING:
    from harness.tokenizers.learned import Learned


Manifest = dict[str, Any]  # the manifest of a table of words: its digest, and how many there are


def digest(parts: Any, length: int = 16) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:length]


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
        how = self.corpus
        parts = (
            []
            if self.file.table
            else [how.pattern, how.special_tokens, how.errors, how.partial, regex.__version__]
        )
        return digest([self.file.sha256, *parts], 64)

    @functools.cached_property
    def folder(self) -> Path:
        """The folder of its words: a given table, or a place in the cache."""
        return (
            self.file.path if self.file.table else files.cache_folder("counts", self.key) / "words"
        )

    def words(self) -> Manifest | None:
        """The manifest of the words in that folder; None if there are none. Broken ones are
        removed.
        """
        return exchange.whole(self.folder)

    def keep(self, counted: Path, manifest: Manifest) -> None:
        """Copy freshly counted words into the cache, unless it has the same."""
        cached = self.words()
        if cached is None or cached["sha256"] != manifest["sha256"]:
            files.remove_tree(self.folder)
            with files.placing(self.folder) as temporary:
                files.copy_tree(counted, temporary)


@dataclass(frozen=True)
class CountCell:
    """One word counter on one corpus, with one number of threads."""

    reading: Reading
    counter: CounterCard
    threads: int
    limits: Limits

    @functools.cached_property
    def label(self) -> str:
        return f"counting {self.reading.file.name} ({self.counter.name})"

    @functools.cached_property
    def key(self) -> str:
        """Names the measurement on whichever corpus: the counter, its parameters and its
        threads.
        """
        return digest(
            [self.counter.name, self.counter.target, dict(self.counter.params), self.threads]
        )


@dataclass(frozen=True)
class Extension:
    """The merges that are inherited, in their order, how, and the veto by its name."""

    name: str | None = None
    merges: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = "none"
    learned: Learned | None = field(default=None, compare=False, repr=False)
    """The tokenizer that is extended, where its ids are to stay and the file says them."""
    seeds: str | None = None  # the tokens that the merges are made of, as a list or a file's name

    @property
    def sha256(self) -> str | None:
        return None if self.name is None else merges_sha256(self.merges)

    def job(self) -> dict[str, Any]:
        """What a measured process gets: where the merges are, and the rest by name."""
        path = files.cache_folder("inherited") / f"{merges_sha256(self.merges)}.packed"
        if not path.exists():
            with files.placing(path) as temporary:
                temporary.write_bytes(packed(list(self.merges)))
        return {"merges": str(path.absolute()), "inheriting": self.inheriting, "veto": self.veto}

    def record(self) -> dict[str, Any]:
        """What a record says of it."""
        veto = {} if self.veto == "none" else {"veto": self.veto}
        if self.name is None:
            return veto
        merges = {
            "extend": self.sha256,
            "extend_name": self.name,
            "extend_merges": len(self.merges),
        }
        return {**merges, "inherited": self.inheriting, "seeds": self.seeds, **veto}


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
    reading: Reading = field(init=False)
    num_merges: int = field(init=False)
    label: str = field(init=False)
    # names the measurement, so that two records of the same work can be found
    key: str = field(init=False)
    task_key: str = field(init=False)  # names the task: cells of one task must make the same merges

    def __post_init__(self) -> None:
        count, variant, own = self.count, self.variant, self.extension
        reading, trainer = count.reading, [variant.name, variant.target, dict(variant.params)]
        task = [self.vocab_size, self.tie_break, self.min_count]
        extending = [] if own is None else [own.sha256, own.inheriting, own.veto]
        work = [*task, self.interpreter, *extending]
        vars(self).update(
            reading=reading,
            label=f"{variant.name} on {reading.file.name}",
            num_merges=self.vocab_size - 256 - len(reading.corpus.special_tokens),
            key=digest([trainer, reading.key, count.key, work, [count.limits.wall_seconds]]),
            task_key=digest([reading.key, *task, *extending]),
        )

    def extending(self) -> dict[str, Any]:
        """The keyword arguments that a replay of its merges needs."""
        own = self.extension
        if own is None:
            return {}
        return {
            "inherited": own.merges,
            "inheriting": own.inheriting,
            "veto": vetoes.named(own.veto),
        }


def counters_of(cells: Iterable[TrainCell]) -> list[CountCell]:
    """The counters that cells of a task need, each once."""
    return list({cell.count.key: cell.count for cell in cells}.values())


class Settings(NamedTuple):
    """The settings that all cells of a command share; those of conf/measure/NAME.yaml are among
    them.
    """

    results: Path
    save: Path | None = None
    repeat: int = 1
    seed: int = 0
    measure: str = "quick"
    kind: str = "time"
    warm_up: int = 0
    precision: float | None = None
    """The wanted precision of ratios, as a share of them: there are from `repeat` to `most` blocks
    then.
    """
    most: int = 20
    plan: bool = False
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False
    tokens: bool = False  # whether to count the tokens that are left of the text
    # the command's overrides as typed; of a path only the last name
    overrides: tuple[str, ...] = ()

    def blocks(self) -> list[Block]:
        """The blocks of a task in their order, warm-up first; with a precision as many as there may
        be.
        """
        warm_up = [Block(number, warm_up=True) for number in range(self.warm_up)]
        return warm_up + [
            Block(number) for number in range(self.repeat if self.precision is None else self.most)
        ]


class Block(NamedTuple):
    """A pass over the cells of a task."""

    number: int
    warm_up: bool = False


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

    @property
    def cells(self) -> list[TrainCell]:
        return [cell for task in self.tasks for cell in task.cells]


def make_tasks(cells: Iterable[TrainCell]) -> list[Task]:
    """The cells, each once, as tasks in the order of their first cells."""
    tasks: dict[str, dict[str, TrainCell]] = {}
    for cell in cells:
        tasks.setdefault(cell.task_key, {})[cell.key] = cell
    return [Task(number, list(cells.values())) for number, cells in enumerate(tasks.values())]


# What a trainer continues from and may not merge: `extend=`, `inherited=`, `seeds=`, `veto=`,
# `protected=`.


def extension_of(
    config: Mapping[str, Any],
    variants: Sequence[VariantCard],
    num_merges: int,
    special_tokens: Sequence[str],
    pattern: str | None,
) -> Extension:
    """What a configuration wants. Raises Refusal for what cannot be inherited."""
    veto, seeds, path = veto_of(config), config["seeds"], config["extend"]
    if seeds != "none" and (path is not None or config["inherited"] != "kept"):
        raise Refusal(
            "seeds= are kept and stand first; leave out extend= and inherited=met, or seeds="
        )
    if seeds != "none":
        what, name = f"seeds={seeds}", seeds if seeds.startswith("[") else Path(seeds).name
        extension = Extension("seeds", seed_merges(config, pattern), "kept", veto, seeds=name)
    elif path is not None:
        what, extension = (
            f"extend={path}",
            extended(Path(path), config["inherited"], special_tokens, veto),
        )
    else:
        what, extension = f"veto={veto}", Extension(veto=veto)
    if num_merges < (number := len(extension.merges)):
        least = 256 + len(special_tokens) + number
        why = (
            f"{count_text(number)} merges, and vocab_size leaves room for {count_text(num_merges)}"
        )
        raise Refusal(f"{what}: {why}; set vocab_size={least} or more")
    try:
        check_inherited(extension.merges, extension.inheriting, num_merges)
    except ValueError as error:
        raise Refusal(f"{what}: {error}") from error
    cards = registry.variants()
    if unable := [
        card.name for card in variants if card.name in cards and EXTENDS not in card.tags
    ]:
        able = ", ".join(name for name, card in cards.items() if EXTENDS in card.tags)
        raise Refusal(
            f"variant={unable[0]} does not support {what.partition('=')[0]}=; these do: {able}"
        )
    return extension


def extended(path: Path, inheriting: str, special_tokens: Sequence[str], veto: str) -> Extension:
    """The merges of a file or folder; with their ids if it says them and all are kept."""
    from harness.tokenizers.forms import read_merges_file
    from harness.tokenizers.model import load  # late, as few runs extend

    with_ids = path.suffix == ".json" or any(
        (path / name).is_file() for name in ("manifest.json", "tokenizer.json")
    )
    if inheriting != "kept" or not with_ids:
        return Extension(path.name, tuple(read_merges_file(path).merges), inheriting, veto)
    learned = load(path).learned
    if set(learned.special_tokens) != set(special_tokens):
        tokens = json.dumps([*learned.special_tokens], ensure_ascii=False, separators=(",", ":"))
        setting = shlex.quote(f"special_tokens={tokens}")
        raise Refusal(
            f"extend={path} has other special tokens, and every id is to stay; set {setting}"
        )
    return Extension(path.name, tuple(learned.merges), inheriting, veto, learned)


def veto_of(config: Mapping[str, Any]) -> str:
    """The name of the veto, protected tokens included."""
    name = config["veto"]
    names = [part.strip() for part in name.strip("[]").split(",")]
    try:
        if config["protected"] != "none":
            tokens = vetoes.protected(tokens_in("protected", config["protected"])).protected
            names.append("protected:" + ".".join(map(bytes.hex, tokens)))
        names = [each for each in names if each not in ("", "none", "protected:")]
        name = f"[{','.join(names)}]" if len(names) > 1 else "".join(names) or "none"
        vetoes.named(name)
    except (ValueError, ImportError, AttributeError) as error:
        raise Refusal(
            f"{error}" if isinstance(error, ValueError) else f"veto={name}: {error}"
        ) from error
    return name


def tokens_in(setting: str, value: str) -> list[bytes]:
    """The tokens in `[a,"\\n"]`, or in a file that has a JSON string on each line."""
    if value.startswith("["):
        place = f"{setting}="
        written = [
            '"' + re.sub(r'(?<!\\)"', r'\\"', token) + '"' for token in split_list(value, setting)
        ]
    else:
        place = f"{setting}={value}: "
        try:
            written = Path(value).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise Refusal(
                f"cannot read {setting}={value} ({why}); pass a file or write a list [A,B]"
            ) from error
    tokens = []
    for line in filter(str.strip, written):
        try:
            tokens.append(json.loads(line, strict=False).encode())
        except (ValueError, AttributeError, RecursionError) as error:
            raise Refusal(
                f'{place}{line[:80]} is not a JSON string such as "mov"; write \\\\ for a backslash'
            ) from error
    return tokens


def seed_merges(config: Mapping[str, Any], pattern: str | None) -> tuple[Merge, ...]:
    """The merges of the seeds. Raises Refusal for a seed that no text can give."""
    from variants.seeds import seeds  # late, as few runs have some

    value, name = config["seeds"], config["pattern"]["name"]
    if config["tie_break"] == OWN:
        raise Refusal(f"seeds= need a tie-break; set tie_break={next(iter(TieBreak)).value}")
    tokens = tokens_in("seeds", value)
    for seed in map(bytes.decode, tokens):
        pieces = (
            [seed]
            if pattern is None
            else [match.group() for match in regex.finditer(pattern, seed)]
        )
        if seed and pieces != [seed]:
            parts = ", ".join(map(repr, pieces)) or "nothing"
            raise Refusal(
                f"the seed {seed!r} is cut by pattern={name} ({parts}), so no text gives it; leave it out"
            )
    try:
        return tuple(seeds(tokens, TieBreak(config["tie_break"])))
    except ValueError as error:
        raise Refusal(f"seeds={value}: {error}") from error
