"""From what was said to what is measured: one composed configuration becomes one cell for each variant in it.

Everything that can be refused is refused here, before anything is measured.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import regex

from harness import corpora
from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import CounterCard, VariantCard, at_least, check_type, one_of
from harness.common.units import parse_bytes
from harness.corpora import CorpusFile
from harness.corpora.cards import is_table
from harness.measure.environment import memory_bytes
from harness.measure.process import Answer, Limits
from harness.measure.sandbox import COLD, WARM
from harness.runs.extension import NOTHING, Extension, extension_of, refuse_those_that_cannot
from harness.runs.settings import affinity_of, threads_of
from harness.worker.calling import OWN
from harness.worker.merges_bytes import unpacked
from variants.contract import Corpus, Merge, TieBreak

SHARE_OF_FREE_MEMORY = 0.8
# A table of words that is spilled when it is smaller would make more files than a process may have open.
SMALLEST_TABLE_BYTES = 16_000_000
# What stands where the counter does when the corpus is a table of words.
GIVEN = CounterCard("given", "", "the words came with their counts")


@dataclass(frozen=True)
class Reading:
    """How a file becomes words: what decides a table of word counts, whoever counts.

    Of a word table nothing but the table decides; the pattern only goes into a tokenizer that is saved.
    """

    file: CorpusFile
    pattern_name: str
    corpus: Corpus
    """The file as counters and trainers are given it, from here to the measured process."""

    @functools.cached_property
    def key(self) -> str:
        """Names the table of word counts: equal for equal bytes read the same way by the same `regex`."""
        parts: list[Any] = [self.file.sha256]
        if not self.file.table:
            how = self.corpus
            parts += [how.pattern, how.special_tokens, how.errors, how.partial, regex.__version__]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class CountCell:
    """One word counter on one corpus, at one width."""

    reading: Reading
    counter: CounterCard
    threads: int
    limits: Limits
    affinity: tuple[int, ...] | None = None
    """The cores that it is kept to, in order; None for all that this process may use."""
    page_cache: str = WARM

    def key(self) -> str:
        """Names the measurement: the counter, its parameters and its width."""
        parts = [self.counter.name, self.counter.target, dict(self.counter.params), self.threads]
        parts += [] if self.page_cache == WARM else [self.page_cache]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def count_key(cell: CountCell) -> tuple[str, str]:
    """Names a counter's measurement on its corpus."""
    return cell.reading.key, cell.key()


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
    memory_said: str | None = None
    """limits.memory as it was said: without it the limit follows what is free, and is no choice."""
    extension: Extension = NOTHING

    @property
    def threads(self) -> int:
        return self.count.threads

    @property
    def reading(self) -> Reading:
        return self.count.reading

    @property
    def limits(self) -> Limits:
        return self.count.limits

    @property
    def num_merges(self) -> int:
        return self.vocab_size - 256 - len(self.reading.corpus.special_tokens)

    def key(self) -> str:
        """Names the measurement, so that two records of the same work can be found."""
        return self._key

    @functools.cached_property
    def _key(self) -> str:
        limits = [self.limits.wall_seconds, self.limits.memory_bytes]
        work = [self.vocab_size, self.tie_break, self.min_count, self.interpreter, *self.extension.key()]
        variant = [self.variant.name, self.variant.target, dict(self.variant.params)]
        parts = [variant, self.reading.key, self.count.key(), work, limits[:1]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def task_key(cell: TrainCell) -> str:
    """Names the task of a cell: cells of one task are measured in the same blocks and compared with each other."""
    asked = [cell.vocab_size, cell.tie_break, cell.min_count, *cell.extension.key()]
    return hashlib.sha256(json.dumps([cell.reading.key, *asked]).encode()).hexdigest()[:16]


def distinct(cells: Iterable[TrainCell]) -> list[TrainCell]:
    return list({cell.key(): cell for cell in cells}.values())


def tasks_of(cells: Iterable[TrainCell]) -> list[list[TrainCell]]:
    """The cells of each task, in the order of their first appearance."""
    tasks: dict[str, list[TrainCell]] = {}
    for cell in distinct(cells):
        tasks.setdefault(task_key(cell), []).append(cell)
    return list(tasks.values())


def cells_of(config: Mapping[str, Any], keys: Sequence[str]) -> list[TrainCell]:
    """The cells of one composed configuration; `keys` are the keys that the command line set.

    Raises Refusal for what cannot be meant: an impossible size, an unknown name, a file that is not there.
    """
    threads = threads_of(config["threads"])
    at_least("min_count", config["min_count"])
    one_of("tie_break", config["tie_break"], [*(tie_break.value for tie_break in TieBreak), OWN])
    one_of("errors", config["errors"], ["strict", "replace"])
    one_of("page_cache", config["page_cache"], [WARM, COLD])
    special_tokens = checked_special_tokens(of_card_unless_said(config, "special_tokens"))
    vocab_size = of_card_unless_said(config, "vocab_size")
    vocab_size = min(vocab_size, config["vocab_size_at_most"].get(config["data"]["name"], vocab_size))
    smallest = 256 + len(special_tokens)
    if vocab_size < smallest:
        raise Refusal(
            f"vocab_size={vocab_size} is too small: the 256 bytes and the special tokens alone are {smallest}"
        )
    pattern_name, pattern = pattern_of(config["pattern"])
    variants = variants_of(config, keys)
    extension = extension_of(config, vocab_size - smallest, special_tokens, pattern)
    refuse_those_that_cannot(variants, extension)
    limits = limits_of(config["limits"])
    corpus = Corpus("", special_tokens, pattern, config["errors"], config["pattern"]["partial"])
    if config["counting"].get("engine") is not None:
        file = counted_by_an_engine(config, corpus, pattern_name)
    else:
        file = corpora.prepare(config["data"], special_tokens)
        if file.table:
            refuse_what_counting_takes(file.name, config, keys)
    corpus = replace(corpus, path=str(file.path))
    reading, affinity = Reading(file, pattern_name, corpus), affinity_of(config["affinity"])
    chosen, usual = config["counting"]["_target_"] is not None, registry.default_counter().name
    cells = []
    for variant in variants:
        counter = GIVEN if file.table else counter_of(config["counting"], None if chosen else variant.counting or usual)
        count = CountCell(reading, counter, threads, limits, affinity, config["page_cache"])
        cells.append(
            TrainCell(
                variant,
                count,
                chosen,
                vocab_size,
                config["tie_break"],
                config["min_count"],
                config["interpreter"],
                config["limits"]["memory"],
                extension,
            )
        )
    return cells


def counted_by_an_engine(config: Mapping[str, Any], reading: Corpus, pattern_name: str) -> CorpusFile:
    """The table of a text's words, counted in parts where the text is: what is measured then begins with it."""
    from harness.corpora.dask import counted_table, settings_of  # late: arrays of NumPy are slow to import

    counting, card = config["counting"], config["data"]
    known = registry.cards("counting")[counting["name"]]["params"]
    for name in counting["params"]:
        if name not in known:
            raise Refusal(f"counting={counting['name']} takes no parameter {name!r}; there are: {', '.join(known)}")
    memory = None if counting["memory"] is None else table_bytes(counting["memory"])
    settings = settings_of(counting["params"], memory)
    sliced = any(card[slicing] is not None for slicing in ("bytes", "skip", "documents"))
    file = None
    if card["path"] is None or sliced or is_table(card):
        file = corpora.prepare(card, reading.special_tokens)
        if file.table:
            raise Refusal(f"data={file.name} is a table of words, so nothing is counted; leave out counting")
    return counted_table(card, reading, pattern_name, settings, file, config["plan"])


def of_card_unless_said(config: Mapping[str, Any], key: str) -> Any:
    """What the command says, else what the data set's card says."""
    return config["data"][key] if config[key] is None else config[key]


def refuse_what_counting_takes(name: str, config: Mapping[str, Any], keys: Sequence[str]) -> None:
    """A word table is counted already: what decides how text is counted would be silently ignored."""
    chosen = config["counting"]["_target_"] is not None
    of_counting = [key for key in keys if key.partition(".")[0] in ("counting", "errors")]
    if not chosen and "counting" in of_counting:
        of_counting.remove("counting")  # counting=own takes back what an experiment chose
    if chosen or of_counting:
        raise Refusal(
            f"data={name} is a table of words, so nothing is counted; leave out {(*of_counting, 'counting')[0]}"
        )
    of_pattern = [key for key in keys if key.partition(".")[0] == "pattern"]
    if of_pattern and config["save"] is None:
        raise Refusal(
            f"data={name} is a table of words, so nothing is split; leave out {of_pattern[0]}, which says how a "
            "tokenizer splits only together with save=FOLDER"
        )


def variants_of(config: Mapping[str, Any], keys: Sequence[str]) -> list[VariantCard]:
    """The variants a configuration selects, each with those of the given parameters that it takes."""
    composed, names = config["variant"], config["variants"]
    listed = registry.variant(composed["name"])
    if listed is None:
        raise Refusal(registry.unknown("variant", composed["name"], registry.variants()))
    given = {
        name: value
        for name, value in composed["params"].items()
        if any(f"{key}.".startswith(f"variant.params.{name}.") for key in keys)
        or listed.params.get(name, not value) != value
    }
    if composed["_target_"] != listed.target and names is None:
        return [VariantCard(composed["_target_"], composed["_target_"], about="named by its target", params=given)]
    selected = [listed] if names is None else registry.select(names_in(names))
    for name, value in given.items():
        takers = [card for card in selected if name in card.params]
        if not takers and not any("external" in card.tags for card in selected):
            known = sorted({parameter for card in selected for parameter in card.params})
            raise Refusal(
                f"{'variant ' + listed.name if names is None else 'none of these variants'} takes no parameter "
                f"{name!r}; there are: {', '.join(known) or 'none'}"
            )
        for card in takers:
            check_type(f"variant.params.{name}", value, card.params[name])
    return [
        replace(card, params={**card.params, **{name: given[name] for name in given if name in card.params}})
        if "external" not in card.tags
        else replace(card, params=given)
        for card in selected
    ]


def names_in(variants: Any) -> list[str]:
    """The names that `variants` holds, which may be one or a list of them."""
    names = variants if isinstance(variants, list) else [variants]
    if not names or not all(isinstance(name, str) for name in names):
        raise Refusal(f"variants={variants} names none; it is a list of names, all, or a tag")
    return names


def counter_of(composed: Mapping[str, Any], own: str | None) -> CounterCard:
    """The counter chosen with counting=NAME or by counting._target_, else `own`, the one that the variant names."""
    counters = registry.counters()
    if own is not None and own not in counters:
        raise Refusal(registry.unknown("counting", own, counters))
    listed = counters.get(composed["name"] if own is None else own)
    given = dict(composed["params"])
    if composed.get("memory") is not None:
        given["memory"] = composed["memory"]
        if listed is not None and "memory" not in listed.params:
            spilling = ", ".join(name for name, card in counters.items() if "memory" in card.params)
            raise Refusal(f"counting={listed.name} keeps its words in memory; counting.memory is for: {spilling}")
    if given.get("memory") is not None:
        given["memory"] = table_bytes(given["memory"])
    if listed is None or (own is None and listed.target != composed["_target_"]):
        return CounterCard(composed["_target_"], composed["_target_"], params=given)
    for name, value in given.items():
        if name not in listed.params:
            known = ", ".join(listed.params) or "none"
            raise Refusal(f"counting={listed.name} takes no parameter {name!r}; there are: {known}")
        check_type(f"counting.params.{name}", value, listed.params[name])
    return replace(listed, params={**listed.params, **given})


def table_bytes(size: str | int) -> int:
    number = parse_bytes(size, "counting.memory")
    if number < SMALLEST_TABLE_BYTES:
        raise Refusal(f"counting.memory={size} is too small; the least is 16MB")
    return number


def pattern_of(composed: Mapping[str, Any]) -> tuple[str, str | None]:
    """The pattern's name and expression; one of the user's own is its own name."""
    name, expression = composed["name"], composed["regex"]
    if expression is not None:
        check_expression(expression)
    listed = registry.cards("pattern")
    card = listed.get(name)
    if card is not None and card["regex"] != expression:
        name = next((name for name, other in listed.items() if other["regex"] == expression), expression)
    return name, expression


def check_expression(expression: str) -> None:
    if expression == "":
        raise Refusal("pattern.regex is empty; an expression that matches nothing makes no pre-tokens")
    try:
        expression.encode()
        regex.compile(expression)
    except UnicodeEncodeError as error:
        raise Refusal(f"pattern.regex={expression!r} is not UTF-8; write it in a UTF-8 terminal") from error
    except (regex.error, ValueError, RecursionError) as error:
        raise Refusal(f"pattern.regex={expression!r} is not a regular expression: {error}") from error


def limits_of(composed: Mapping[str, Any]) -> Limits:
    wall, memory = composed["wall"], composed["memory"]
    if wall is not None and not 0 < wall < math.inf:
        raise Refusal(f"limits.wall={wall:g} is not a time; it is in seconds, above 0")
    if memory is not None:
        return Limits(wall, parse_bytes(memory, "limits.memory"))
    free = memory_bytes("MemAvailable")
    # Rounded, so that runs of one afternoon have equal limits in their records.
    return Limits(wall, int(free * SHARE_OF_FREE_MEMORY) // 10**9 * 10**9 or None if free is not None else None)


def checked_special_tokens(tokens: Sequence[str]) -> tuple[str, ...]:
    for number, token in enumerate(tokens):
        if not token:
            raise Refusal("special_tokens holds an empty token; leave it out, or set special_tokens=[] for none")
        if token in tokens[:number]:
            raise Refusal(f"special_tokens holds {token!r} twice; name each once")
        try:
            token.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"special token {token!r} is not UTF-8; write it in a UTF-8 terminal") from error
    return tuple(tokens)


def count_job(cell: CountCell) -> dict[str, Any]:
    """What the process that counts is told."""
    return _job("count", cell.counter, cell)


def train_job(
    cell: TrainCell, variant: VariantCard, num_merges: int, words: Path, interpreter: str | None
) -> dict[str, Any]:
    """What the process that trains is told: where the words with their counts are, and what is wanted."""
    return {
        **_job("train", variant, cell.count),
        "interpreter": interpreter,
        "words": str(words),
        "num_merges": num_merges,
        "tie_break": cell.tie_break,
        "min_count": cell.min_count,
        "extending": cell.extension.job(),
    }


def _job(kind: str, card: CounterCard | VariantCard, cell: CountCell) -> dict[str, Any]:
    """The corpus is for whoever reads by himself; there is none where the words came with their counts."""
    return {
        "kind": kind,
        "target": card.target,
        "params": dict(card.params),
        "threads": cell.threads,
        "affinity": None if cell.affinity is None else list(cell.affinity),
        "page_cache": cell.page_cache,
        "corpus": None if cell.reading.file.table else asdict(cell.reading.corpus),
    }


def read_merges(output: Path, answer: Answer) -> Sequence[Merge] | None:
    """The merges that a process left; without an answer that names them, half of them may be there, which are none."""
    return unpacked((output / "merges").read_bytes()) if "merges_done" in answer else None
