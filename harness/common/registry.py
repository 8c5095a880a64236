"""The registry: the cards of conf/ and of the folder that --config-dir names, plain YAML each, and
what other packages announce.

`conf/variant/NAME.yaml` is one variant, `conf/family/NAME.yaml` many that share a card and differ
in a line each. A package announces a trainer by an entry point in the group `harness.variants`
whose value is `package.module:function`.
"""

from __future__ import annotations

import argparse
import copy
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec.structs import force_setattr

from harness.common.cards import (
    PLAIN,
    DataCard,
    Experiment,
    MeasureCard,
    PatternCard,
    fitted,
)
from harness.common.errors import Refusal, reason
from harness.common.units import one_line
from harness.common.values import check_target, not_importable, unknown_text
from harness.worker import calling

ENTRY_POINTS = "harness.variants"
TARGET = "_target_"
OUTSIDE = "peer"  # the tag of other people's trainers
EXTERNAL = "external"  # the tag of trainers that the harness does not have
PROGRAM = "yours"  # the tag of variants whose parameters are a program
EXTENDS = "extends"  # the tag of variants that can go on from merges
COMPILED = "compiled"  # the tag of the default counter


class CounterCard(msgspec.Struct, frozen=True):
    """A word counter and its keyword parameters with their defaults."""

    name: str
    target: str = msgspec.field(name=TARGET)
    about: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any] = {}


class CountingCard(CounterCard, frozen=True, forbid_unknown_fields=True):
    """A choice of a word counter; without a target the one that the variant names.

    `memory` limits a table of words, which is then spilled to disk. The workers of an `engine`
    count before anything is measured.
    """

    target: str = msgspec.field(default="", name=TARGET)
    engine: str | None = None
    memory: int | str | None = None


Card = TypeVar("Card", bound=CounterCard)
GIVEN = CounterCard("given", "", "the words came with their counts")
"""Stands for the counter where the corpus is a table of words."""


class VariantCard(CounterCard, frozen=True):
    """A trainer, with a counter of its own if it needs one.

    `rank` orders variants of one part of the series, or of none: those that come later build on
    those before.
    """

    part: int | None = None
    rank: int = 0
    family: str = ""
    counting: str = ""
    by_design: str = ""
    """Why its merges, with these parameters, are meant to be others; only a card can say so."""
    own_words: str = ""
    """The pattern that finds the words that it counts, special tokens taken for text, if it has its
    own.
    """

    def __post_init__(self) -> None:
        if not self.family:
            # Functions of one module may share a fault, so they are not two witnesses.
            force_setattr(self, "family", self.target.partition(":")[0])


class OurVariantCard(VariantCard, frozen=True, forbid_unknown_fields=True):
    """A card of this version, not of another checkout, which may have other keys."""


KINDS: dict[str, type[msgspec.Struct]] = {
    "variant": OurVariantCard,
    "data": DataCard,
    "counting": CountingCard,
    "pattern": PatternCard,
    "measure": MeasureCard,
    "experiment": Experiment,
}
"""The groups of conf/ that a run is composed of, and what a card of each may hold."""


@functools.cache
def conf_folder() -> Path:
    """The configuration: inside an installed package, or beside the packages in a checkout."""
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "conf", here.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise Refusal(
        f"no configuration at {here / 'conf'} or {here.parent / 'conf'}; install the package again"
    )


CARDS = "add the cards in this folder, laid out as conf/"


class Folder:
    """The folder of your own cards, if --config-dir names one."""

    path: Path | None = None


def folder_option(command: argparse.ArgumentParser) -> None:
    """Give a command the option for `use_folder`."""
    command.add_argument("--config-dir", metavar="FOLDER", type=Path, help=CARDS)


def use_folder(path: Path | None) -> None:
    """Add the cards of a folder that is laid out as conf/, or of none. Raises Refusal if it has
    none.
    """
    if path is not None and not any((path / group).is_dir() for group in KINDS):
        folders = ", ".join(KINDS)
        raise Refusal(
            f"--config-dir {path}: no folder of cards in it; make one or more of {folders}"
        )
    Folder.path = path
    variants.cache_clear()
    counters.cache_clear()


def card_files(group: str) -> dict[str, Path]:
    """The files of a group by the name of their cards. Raises Refusal for a name that is invalid or
    is taken by a card of the harness.
    """
    found = files_in(conf_folder() / group)
    if Folder.path is None:
        return found

    taken = {*found, *without_file(group)}
    for name, file in files_in(Folder.path / group).items():
        if re.fullmatch(PLAIN, name) is None:
            raise Refusal(f"{file}: name the file in letters, digits, _ - and dots")
        if name in taken:
            raise Refusal(f"{file}: the harness has a card {group}={name}; rename the file")
        found[name] = file
    return found


def is_yours(group: str, name: str) -> bool:
    """Whether a card comes from the folder of --config-dir."""
    return Folder.path is not None and name in files_in(Folder.path / group)


def files_in(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in sorted(folder.glob("*.yaml")) if file.is_file()}


def names(group: str) -> list[str]:
    """Every card of a group, read or not."""
    return [*card_files(group), *without_file(group)]


def without_file(group: str) -> dict[str, dict[str, Any]]:
    """The cards of a group that have no file: presets, and what other packages announce."""
    return {**announced(), **presets()} if group == "variant" else {}


def card(group: str, name: str) -> dict[str, Any]:
    """A card with the defaults of what it omits. Raises Refusal, which names the file and the key,
    if it is invalid.
    """
    file = card_files(group).get(name)
    content = without_file(group)[name] if file is None else checked_card(group, file)
    if group == "experiment":  # its keys are settings of the command
        return content
    return {**msgspec.to_builtins(msgspec.convert(content, KINDS[group])), **content}


def checked_card(group: str, file: Path) -> dict[str, Any]:
    """A card as it is written. Raises Refusal if it is not one of this group, or not the file's."""
    content = read_card(file)
    if group != "experiment":
        content = {"name": file.stem, **content}
    fitted(content, KINDS[group], f"{file}: ", "fix this card")

    if content.get("name", file.stem) != file.stem:
        raise Refusal(f"{file}: name: {content['name']!r} is not the file's; write {file.stem}")
    if group == "data" and content.get("path") is not None:
        raise Refusal(f"{file}: path: set data.path on the command line; a card names no file")
    if group == "variant" and is_yours(group, file.stem):
        if content.get("by_design"):
            raise Refusal(f"{file}: by_design: only cards of the harness can have it; leave it out")
        content["tags"] = [*content.get("tags", []), EXTERNAL]
    return content


def cards(group: str) -> dict[str, dict[str, Any]]:
    """The cards of a group by name, as they are written."""
    found = {name: checked_card(group, file) for name, file in card_files(group).items()}
    return without_file(group) | found


def patterns() -> dict[str, str | None]:
    """The regular expression of every pattern by name; None means raw bytes."""
    return {name: card["regex"] for name, card in cards("pattern").items()}


def presets(conf: Path | None = None) -> dict[str, dict[str, Any]]:
    """The cards of all families of variants, by name; keys that a preset omits are its family's
    `defaults`.
    """
    cards: dict[str, dict[str, Any]] = {}
    for file in sorted(((conf or conf_folder()) / "family").glob("*.yaml")):
        family = read_card(file)
        for name, preset in family["presets"].items():
            params = {**family["defaults"]["params"], **preset.get("params", {})}
            cards[name] = {"name": name, **family["defaults"], **preset, "params": params}
    return cards


@functools.cache
def announced() -> dict[str, dict[str, Any]]:
    """Cards of the trainers that other packages announce by an entry point, by name: what every
    installed package says of itself is read once.
    """
    # a tenth of the time of a command that only prints its help
    from importlib.metadata import entry_points

    return {
        entry.name: {
            "name": entry.name,
            "about": f"from {entry.value}",
            TARGET: entry.value,
            "tags": [EXTERNAL],
        }
        for entry in entry_points(group=ENTRY_POINTS)
    }


@functools.cache
def variants() -> dict[str, VariantCard]:
    """Every variant by name, in the order of the ladder, outside trainers and other packages'
    last.
    """
    found = [_variant(name, card) for name, card in cards("variant").items()]
    return {card.name: card for card in sorted(found, key=_rung)}


def variant_at(conf: Path, name: str) -> VariantCard | None:
    """A variant of another checkout's configuration, which may have keys of its own, or None."""
    file = conf / "variant" / f"{name}.yaml"
    card = read_card(file) if file.is_file() else presets(conf).get(name)
    return None if card is None else _variant(name, card)


def _variant(name: str, card: dict[str, Any]) -> VariantCard:
    return fitted(card, VariantCard, f"the card of {name}: ", "fix this card")


def _rung(card: VariantCard) -> tuple[Any, ...]:
    """Where a card is on the ladder; the parts of the series follow each other within a
    language.
    """
    language = "cpp" in card.tags, "cython" in card.tags
    outside = EXTERNAL in card.tags, OUTSIDE in card.tags
    return *outside, card.part is None, *language, card.part or 0, card.rank, card.name


@functools.cache
def counters() -> dict[str, CounterCard]:
    """Every word counter by name."""
    found = cards("counting").items()
    return {name: msgspec.convert(card, CounterCard) for name, card in found if card.get(TARGET)}


def definition(*, extending: bool = False) -> Callable[..., Any]:
    """The trainer that is the definition written as a program; with `extending`, that of extending
    and vetoes.
    """
    found = tagged(variants(), "definition")
    return resolve(next(card.target for card in found if (EXTENDS in card.tags) == extending))


def definition_counter() -> Callable[..., Any]:
    """The word counter that is the definition written as a program."""
    return resolve(tagged(counters(), "definition")[0].target)


def default_counter() -> CounterCard:
    """The counter of variants whose card names none."""
    return tagged(counters(), COMPILED)[0]


def tagged(existing: Mapping[str, Card], tag: str) -> list[Card]:
    return [card for card in existing.values() if tag in card.tags]


def select(names: Iterable[str]) -> list[VariantCard]:
    """The variants of these names, tags, targets (`package.module:function`), or `all`, each once.

    Raises Refusal for a name that is none of these, with what exists.
    """
    existing = variants()
    chosen: dict[str, VariantCard] = {}
    for name in map(str, names):  # an override may hold a list in the list
        if name == "all":
            matching = existing
        elif name in existing:
            matching = {name: existing[name]}
        elif ":" in name:
            check_target(name)
            matching = {name: named_by_target(name)}
        else:
            matching = {card.name: card for card in tagged(existing, name)}

        if not matching:
            tags = sorted({tag for card in existing.values() for tag in card.tags})
            raise Refusal(unknown_text("variant", name, [*existing, "all", *tags]))
        chosen.update(matching)
    return list(chosen.values())


def named_by_target(target: str) -> VariantCard:
    return VariantCard(target, target, "named by its target", tags=(EXTERNAL,))


def resolve(target: str) -> Callable[..., Any]:
    """The function `package.module:function`. Raises Refusal if it does not exist."""
    try:
        function = calling.resolve(target)
    except Exception as error:  # a module that is being imported may raise anything
        raise not_importable(target, f"{type(error).__name__}: {error}") from error
    if not callable(function):
        raise Refusal(f"{target!r} is {type(function).__name__}, not a function")
    return function


def read_card(file: Path) -> dict[str, Any]:
    """A card from a file. Raises Refusal if it is not plain YAML."""
    return copy.deepcopy(_card(file, file.stat().st_mtime_ns))


@functools.cache
def _card(file: Path, _written: int) -> dict[str, Any]:
    """One file, read once for each time that it was written."""
    try:
        text = file.read_bytes()
        # a few aliases of aliases are billions of values
        for event in yaml.parse(text, yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise Refusal(f"{file}: *{event.anchor} is an alias; write its value instead")
        content = msgspec.yaml.decode(text, type=dict[str, Any])
    except OSError as error:
        raise Refusal(f"cannot read {file} ({reason(error)}); make it readable") from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        why = one_line(str(error))
        raise Refusal(f"{file} is not a mapping in YAML: {why}; fix this card") from error
    if "${" in str(content):
        raise Refusal(f"{file}: ${{ is not replaced in a card; write its value instead")
    return content
