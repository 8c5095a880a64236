"""From configurations to a plan: the cells that a command measures, and its settings.

Whatever can be refused is refused here, before anything is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import regex
from msgspec import structs

from harness import corpora
from harness.common import registry
from harness.common.cards import PatternCard
from harness.common.errors import Refusal
from harness.common.files import files_at
from harness.common.printing import print_stdout, terminal_text
from harness.common.registry import (
    EXTENDS,
    EXTERNAL,
    GIVEN,
    PROGRAM,
    Card,
    CounterCard,
    VariantCard,
)
from harness.common.units import counted_text
from harness.common.values import (
    at_least,
    check_target,
    one_of,
    parse_bytes,
    special_texts,
)
from harness.corpora.files import is_slice
from harness.measure.machine import (
    WorkerLimits,
    available_memory,
    interpreter,
    takes,
    usable_cores,
)
from harness.runs.cells import (
    CountCell,
    Plan,
    Reading,
    TrainCell,
    make_tasks,
    with_distinct_names,
    without_idle_threads,
)
from harness.runs.overrides import Config, LimitsConfig, Settings, compose, dated
from harness.worker.calling import OWN
from variants.contract import Corpus, TieBreak

if TYPE_CHECKING:
    from harness.tokenizers.extension import Extension

WHOLE_COMMAND = (
    "results, save, certificate, repeat, measure, seed, plan, profile, rerun, overwrite, concurrent"
)
SHARE_OF_FREE_MEMORY = 0.8
# A smaller table would be spilled into more files than a process may have open.
SMALLEST_TABLE_BYTES = 16_000_000


def make_plan(configs: Sequence[Config], overrides: Sequence[str]) -> Plan:
    """The plan of these configurations. Raises Refusal for what cannot be meant."""
    settings = {settings_of(config) for config in configs}
    if len(settings) > 1:
        raise Refusal(f"{WHOLE_COMMAND} hold for the whole command; give each one value")

    cells = []
    inputs = []
    for config in configs:
        cells += cells_of(config)
        inputs += corpora.inputs_of(config.data)
        inputs += files_at(config.extend, config.seeds, config.protected)
    return Plan(
        make_tasks(without_idle_threads(with_distinct_names(cells))),
        settings.pop(),
        tuple(dict.fromkeys(inputs)),
        overrides,
    )


def planned(overrides: Sequence[str]) -> Plan:
    """The plan of what `python -m harness` would measure with these overrides. Raises Refusal as
    make_plan does.
    """
    overrides = dated(overrides)
    return make_plan(compose(overrides), overrides)


def plan_of_words(data: str | None, overrides: Sequence[str]) -> Plan:
    """The plan that other commands take their words from; `data` is a card's name, or else a file.

    Raises Refusal for overrides that read several corpora.
    """
    # no variant is run, so any that takes all overrides will do
    named = [f"variant={registry.tagged(registry.variants(), EXTENDS)[0].name}"]
    if data is not None:
        named.append(f"data={data}" if corpora.is_name(data) else f"data.path={data}")
    plan = planned([*named, *overrides])
    if len({cell.reading.key for cell in plan.cells}) != 1:
        raise Refusal("pass one data set at a time, read in one way")
    return plan


def settings_of(config: Config) -> Settings:
    """The command's settings. Raises Refusal for impossible ones."""
    measure = config.measure
    repeat = measure.repeat if config.repeat is None else config.repeat
    at_least("repeat", repeat)
    one_of("profile", config.profile, ("none", "cprofile"))
    if measure.precision is not None:
        from harness.common.comparison import FEWEST_BLOCKS  # late, as few runs are to be precise

        repeat = max(FEWEST_BLOCKS, repeat)
        at_least("measure.max_blocks", measure.max_blocks, repeat)
    for name, kind in (("results", "FOLDER"), ("save", "FOLDER"), ("certificate", "FILE")):
        if getattr(config, name) == "":
            raise Refusal(f"{name} is empty; set {name}={kind}")

    settings = msgspec.convert(config, Settings, from_attributes=True)
    return structs.replace(settings, measure=structs.replace(measure, repeat=repeat))


def cells_of(config: Config) -> list[TrainCell]:
    """The cells of one composed configuration.

    Raises Refusal for what cannot be meant: an impossible size, an unknown name, a file that is not
    there.
    """
    threads = threads_of(config.threads)
    at_least("min_count", config.min_count)
    one_of("tie_break", config.tie_break, [*(tie_break.value for tie_break in TieBreak), OWN])
    one_of("errors", config.errors, ["strict", "replace"])
    special_tokens = special_texts(card_default(config, "special_tokens"))
    vocab_size = vocab_size_of(config, special_tokens)

    pattern_name, pattern = name_and_expression(config.pattern)
    variants = variants_of(config)
    num_merges = vocab_size - 256 - len(special_tokens)
    corpus = Corpus("", special_tokens, pattern, config.errors, config.pattern.partial)
    extension = extension_for(config, corpus, num_merges, variants)
    limits = worker_limits(config.limits)
    interpreter(config.interpreter)  # raises Refusal for what is not a Python

    chosen = config.counting.target != ""
    cells = []
    for file in corpus_files(config, corpus):
        reading = Reading(file, pattern_name, replace(corpus, path=str(file.path)))
        for variant in variants:
            counter = GIVEN if file.table else counter_for(config, variant)
            cells.append(
                TrainCell(
                    variant,
                    CountCell(reading, counter, threads, limits),
                    chosen,
                    vocab_size,
                    config.tie_break,
                    config.min_count,
                    config.interpreter,
                    extension,
                )
            )
    return cells


# The variants and the counters that a configuration selects, each with its parameters


def variants_of(config: Config) -> list[VariantCard]:
    """The variants that a configuration selects, each with those of the given parameters that it
    takes.
    """
    composed, names = config.variant, config.variants
    card = registry.variants()[composed.name]
    set_here = {key.split(".")[2] for key in config.keys if key.startswith("variant.params.")}
    params = {}
    for name, value in composed.params.items():
        # an experiment gives what differs from the card
        if name in set_here or (name, value) not in card.params.items():
            params[name] = value
    shown = {*params} if "variant.params" in config.keys else set_here

    if names is None and composed.target != card.target:
        check_target(composed.target)
        names = [composed.target]
    selected = [card] if names is None else registry.select(names)
    variants = [with_given(each, params, shown, config.interpreter) for each in selected]
    taken = {name for variant in variants for name in variant.params}
    taker = f"variant {variants[0].name}" if len(variants) == 1 else "these variants"
    check_parameters(taker, params, sorted(taken))
    return variants


def with_given(
    card: VariantCard, params: Mapping[str, Any], shown: Set[str], interpreter: str | None
) -> VariantCard:
    """The variant with those of the given parameters that it takes; of a trainer of yours its
    function decides. Raises Refusal for one that is a part of a program, unless the command line
    has `shown` it.
    """
    is_yours = EXTERNAL in card.tags
    taken = {}
    for name, value in params.items():
        if name in card.params or (is_yours and takes(name, card.target, interpreter)):
            taken[name] = value
    if PROGRAM in card.tags and (hidden := sorted(taken.keys() - shown)):
        what = f"the experiment gives {card.name} a program to run"
        raise Refusal(f"{what}; set variant.params.{hidden[0]} on the command line")

    changed = with_params(card, "variant.params", taken)
    # only with its own parameters the card says why its merges differ
    return card if changed == card else structs.replace(changed, by_design="")


def check_parameters(taker: str, params: Iterable[str], existing: Sequence[str]) -> None:
    """Refuse parameters that the counter or variant does not take."""
    for name in params:
        one_of(f"parameter of {taker}", name, existing)


def with_params(card: Card, key: str, params: Mapping[str, Any]) -> Card:
    """The card with the given parameters; refuses other types than the defaults', but an int will
    do for a float.
    """
    for name, value in params.items():
        default = card.params.get(name)
        types = type(default), type(value)
        if default is not None and types[0] is not types[1] and types != (float, int):
            what = f"{key}.{name}={value!r} is {types[1].__name__}"
            raise Refusal(f"{what}; it takes {types[0].__name__}, by default {default!r}")
    return structs.replace(card, params={**card.params, **params})


def counter_for(config: Config, variant: VariantCard) -> CounterCard:
    """The counter chosen with counting=NAME or by counting._target_; else the one that the variant
    names, or the default one.
    """
    chosen = config.counting
    params = dict(chosen.params)
    memory = chosen.memory or params.get("memory")
    if memory is not None:
        params["memory"] = parse_bytes(memory, "counting.memory")
        at_least("counting.memory", params["memory"], SMALLEST_TABLE_BYTES)

    name, existing = chosen.name, registry.counters()
    if not chosen.target:
        name = variant.counting or registry.default_counter().name
        one_of("counting", name, list(existing))
    elif name not in existing or existing[name].target != chosen.target:
        check_target(chosen.target)
        return CounterCard(chosen.target, chosen.target, params=params)

    card = existing[name]
    check_parameters(f"counting={name}", params, [*card.params])
    return with_params(card, "counting.params", params)


def threads_of(threads: Any) -> int:
    if threads == "all":
        return usable_cores()
    if type(threads) is not int:
        raise Refusal(f"threads={threads} must be a whole number, or all")
    at_least("threads", threads)
    return threads


def extension_for(
    config: Config, corpus: Corpus, num_merges: int, variants: Sequence[VariantCard]
) -> Extension | None:
    """What training continues from and may not merge; None for nothing of the kind. Raises Refusal
    if a variant of the registry cannot go on from merges.
    """
    asked = (config.extend, config.inherited, config.seeds, config.veto, config.protected)
    if asked == (None, "kept", "none", "none", "none"):
        return None

    from harness.tokenizers.extension import ExtensionSettings, extension_of

    settings = ExtensionSettings(*asked)
    extension = extension_of(settings, corpus, num_merges, config.tie_break)
    existing = registry.variants()
    able = [card.name for card in registry.tagged(existing, EXTENDS)]
    for variant in variants if extension is not None else ():
        if variant.name in existing and variant.name not in able:
            what = f"variant={variant.name} does not support {settings.setting}="
            raise Refusal(f"{what}; these do: {', '.join(able)}")
    return extension


def vocab_size_of(config: Config, special_tokens: Sequence[str]) -> int:
    """The final size, special tokens included, and limited for this data set if a card says so."""
    size = int(card_default(config, "vocab_size"))
    size = min(size, config.vocab_size_at_most.get(config.data.name, size))
    smallest = 256 + len(special_tokens)
    if size < smallest:
        raise Refusal(
            f"vocab_size={size} is too small: bytes and special tokens alone are {smallest}"
        )
    return size


def card_default(config: Config, key: str) -> Any:
    """The command's value, or else that of the data set's card."""
    value = getattr(config, key)
    return getattr(config.data, key) if value is None else value


def name_and_expression(pattern: PatternCard) -> tuple[str, str | None]:
    """The pattern's name and expression; one of the user's own is its own name."""
    name, expression = pattern.name, pattern.regex
    existing = registry.patterns()
    named = {known: known_name for known_name, known in existing.items()}
    if expression == "":
        raise Refusal(
            "pattern.regex is empty; an expression that matches nothing makes no pre-tokens"
        )
    if expression is not None and expression not in named:
        try:
            regex.compile(expression)
        except (regex.error, ValueError, RecursionError) as error:
            raise Refusal(
                f"pattern.regex={expression!r} is not a regular expression: {error}"
            ) from error

    if existing.get(name, expression) != expression:
        name = named.get(expression, str(expression))
    return name, expression


def worker_limits(limits: LimitsConfig) -> WorkerLimits:
    wall = limits.wall
    if wall is not None and not 0 < wall < math.inf:
        raise Refusal(f"limits.wall={wall:g} must be a number of seconds, more than 0")
    if limits.memory is not None:
        return WorkerLimits(wall, parse_bytes(limits.memory, "limits.memory"))
    # what is free is rounded, so that runs of one afternoon have equal limits in their records
    free = int(available_memory() * SHARE_OF_FREE_MEMORY) // 10**9 * 10**9
    return WorkerLimits(wall, free or None)


def corpus_files(config: Config, corpus: Corpus) -> list[corpora.CorpusFile]:
    """The text or the table of words that a configuration names, or the instances drawn from it; an
    engine counts its table here.
    """
    counting = config.counting
    how = corpus.special_tokens, corpus.errors
    if config.instances != 0:
        if counting.engine is not None:
            what = f"counting={counting.name} counts a whole text"
            raise Refusal(f"{what}; leave out instances= or counting=")
        from harness.corpora.random_text import draw_instances  # late: NumPy is slow to import

        card = config.data
        whole = corpora.prepare(structs.replace(card, bytes=None), *how)
        drawn = config.instances, config.seed
        return draw_instances(whole, corpus.special_tokens, card.bytes, *drawn)
    if counting.engine is not None:
        return [counted_by_an_engine(config, corpus)]

    file = corpora.prepare(config.data, *how)
    if file.table:
        refuse_ignored(file.name, config, config.keys)
    return [file]


def counted_by_an_engine(config: Config, reading: Corpus) -> corpora.CorpusFile:
    """The table of a text's words, counted in parts where the text is, before anything is
    measured.
    """
    from harness.corpora.dask import counted_table  # late: arrays of NumPy are slow to import

    counting, card = config.counting, config.data
    names = registry.card("counting", counting.name)["params"]
    check_parameters(f"counting={counting.name}", counting.params, names)
    memory = None if counting.memory is None else parse_bytes(counting.memory, "counting.memory")

    file = None
    if card.path is None or corpora.is_table(card) or is_slice(card):
        file = corpora.prepare(card, reading.special_tokens)
        if file.table:
            refuse_ignored(file.name, config, ["counting"])
    scheduler = counting.params["scheduler"]
    return counted_table(card, reading, scheduler, memory, file, config.plan)


def refuse_ignored(name: str, config: Config, keys: Sequence[str]) -> None:
    """Refuse settings that a table of words would ignore: it is split and counted already."""
    for key in keys:
        group = key.partition(".")[0]
        if group in ("counting", "errors") or (group == "pattern" and config.save is None):
            what = f"data={name} is a table of words, which is split and counted already"
            raise Refusal(f"{what}; leave out {key}")


def show_plan(plan: Plan) -> None:
    """Print a line for each cell, and one for the whole; nothing is run for it."""
    lines = []
    for cell in plan.cells:
        size = f"{cell.reading.file.bytes:,} bytes"
        how = f"counting={cell.count.counter.name}, threads={cell.count.threads}"
        line = f"{cell.label} ({size}), {cell.num_merges:,} merges, {how}"
        lines.append(terminal_text(line))

    measure = plan.settings.measure
    blocks = counted_text(measure.repeat, "block")
    if measure.precision is not None:
        blocks = f"{measure.repeat} to {measure.max_blocks} blocks"
    if measure.warm_up:
        blocks += f" after {measure.warm_up} of warm-up"
    size = f"{counted_text(len(plan.cells), 'cell')} in {counted_text(len(plan.tasks), 'task')}"
    lines.append(f"{size}, {blocks}; nothing was run (plan=true)")
    print_stdout("\n".join(lines))
