"""Data sets that a generator makes: made when they are first asked for, kept whole, held against the card's digest."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.common import files, registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.progress import bar
from harness.corpora.files import digest_of

Card = Mapping[str, Any]
KIND = "generator"
WORDS = "words"
"""The kind of source that is a table of words in a file of one's own."""
BYTES_BESIDE_A_WORD = 16  # in a table: its offset and its count


def as_said(card: Card) -> Card:
    """The card, or, where parameters were changed by hand, one that is named by them and has no facts."""
    source, listed = card["source"], registry.cards("data").get(card["name"], {}).get("source", {})
    changed = [f"{name}={value}" for name, value in source.items() if listed.get(name) != value]
    if source.get("kind") != KIND or not changed:
        return card
    return {**card, "name": f"{card['name']}({','.join(changed)})", "facts": {}}


def parameters_of(card: Card) -> dict[str, Any] | None:
    """What a generated set was made of, for its record; None for any other."""
    return {name: card["source"][name] for name in card["source"] if name != "kind"} if is_generated(card) else None


def is_generated(card: Card) -> bool:
    return bool(card["source"].get("kind") == KIND and card["path"] is None)


def is_table(card: Card) -> bool:
    """Whether a card is about words that are counted already, by a generator or in a file of one's own."""
    kind = card["source"].get("kind")
    return bool(kind == WORDS or (kind == KIND and _generators().is_table(card["source"])))


def _generators() -> ModuleType:
    from harness.corpora import generators  # late: few corpora are generated, and arrays of NumPy are slow to import

    return generators


def place_of(card: Card) -> Path:
    """The folder where what the card's generator makes is kept."""
    key = json.dumps([_generators().VERSION, dict(card["source"])], sort_keys=True)
    return files.cache_folder("generated") / hashlib.sha256(key.encode()).hexdigest()


def text_of(card: Card) -> Path:
    """The generated text of a card, made if it is not there whole. Raises Refusal if it is not what the card says."""
    place = place_of(card)
    text, digest = place / "text.txt", place / "sha256"
    try:
        if digest_of(text) == digest.read_text():
            return text
    except FileNotFoundError:
        pass
    shutil.rmtree(place, ignore_errors=True)  # what is there has been damaged
    blocks = _generators().made(card["source"])
    check_room_at(place, card)
    hasher, done = hashlib.sha256(), 0
    with (
        files.placing(place) as temporary,
        bar(f"making {card['name']}", *_generators().size_of(card["source"])) as show,
    ):
        temporary.mkdir()
        with (temporary / text.name).open("wb") as file:
            for block in blocks:
                file.write(block)
                hasher.update(block)
                show(done := done + len(block))
        (temporary / digest.name).write_text(hasher.hexdigest())
    check(card, hasher.hexdigest())
    return text


def check_room_at(place: Path, card: Card) -> None:
    """Raises Refusal if there is no room there for what the card's generator will make."""
    number, unit = _generators().size_of(card["source"])
    needed = number if unit == "bytes" else card["facts"].get("bytes", 0) + BYTES_BESIDE_A_WORD * number
    check_room(place.parent, needed, card["name"])


def check(card: Card, made: str) -> None:
    """Refuse what was made just now if it is not what stands on the card."""
    expected = card["facts"].get("sha256", made)
    if made != expected:
        raise Refusal(
            f"data={card['name']}: its generator made what has sha256 {made}, its card says {expected}; that is a "
            "fault of the generator on this machine, please report it",
            UNMEASURED,
        )
