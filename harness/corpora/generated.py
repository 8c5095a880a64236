"""Data sets that a generator makes: made when they are first asked for, kept whole, held against the card's digest."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import cache, registry
from harness.corpora import generators
from harness.corpora.files import digest_of
from harness.corpora.room import check_room
from harness.errors import UNMEASURED, Refusal
from harness.progress import bar

Card = Mapping[str, Any]
KIND = "generator"
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


def place_of(card: Card) -> Path:
    """The folder where what the card's generator makes is kept."""
    key = json.dumps([generators.VERSION, dict(card["source"])], sort_keys=True)
    return cache.folder("generated") / hashlib.sha256(key.encode()).hexdigest()


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
    blocks = generators.made(card["source"])
    check_room_at(place, card)
    hasher, done = hashlib.sha256(), 0
    with cache.placing(place) as temporary, bar(f"making {card['name']}", *generators.size_of(card["source"])) as show:
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
    number, unit = generators.size_of(card["source"])
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
