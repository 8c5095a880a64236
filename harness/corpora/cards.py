"""What a card states of its file, and whether that is so; what only counting shows is compared when it is counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.files import fresh_digest_of
from harness.corpora.sources import check_source

Card = Mapping[str, Any]
OF_THE_FILE = ("bytes", "sha256")
OF_THE_COUNT = ("documents", "pre_tokens", "words")


def check_fact(name: str, path: Path, card: Card, fact: str, value: int | str) -> None:
    """Raises Refusal if the card says otherwise."""
    expected = card["facts"].get(fact)
    if expected is not None and value != expected:
        raise Refusal(
            f"data={name}: {path} has {fact_text(fact, value)}, its card says {expected}; {ADVICE}", UNMEASURED
        )


ADVICE = "it is another file or damaged, get it again, or use it as a file of its own with data=file"


def fact_text(fact: str, value: int | str) -> str:
    return f"{value} bytes" if fact == "bytes" else f"{fact} {value}"


def facts_of(path: Path) -> dict[str, int | str]:
    """What the file is now: every byte of it is read."""
    return {"bytes": path.stat().st_size, "sha256": fresh_digest_of(path)}


def differing(card: Card, facts: Mapping[str, int | str]) -> list[str]:
    """The facts that the card states otherwise."""
    return [fact for fact in OF_THE_FILE if card["facts"].get(fact, facts[fact]) != facts[fact]]


# The cards of data sets, whole: what a card leaves out has the value that a run would give it.


def cards() -> dict[str, Card]:
    """Every data set's card, by name. Raises Refusal for one that does not say where its file comes from."""
    return {name: whole(name, card) for name, card in registry.cards("data").items()}


def card_of(name: str) -> Card:
    """The card of this name, whatever is wrong with others. Raises Refusal, with those there are, if there is none."""
    known = registry.cards("data")
    if name not in known:
        raise Refusal(registry.unknown("data set", name, known))
    return whole(name, known[name])


def whole(name: str, said: Card) -> Card:
    """A card with what it leaves out. Raises Refusal if it does not say where its file comes from."""
    from harness.common.configuration import DataConfig  # late: Hydra is slow to import, and counting needs none

    card = {**dataclasses.asdict(DataConfig()), "name": name, **said}
    check_source(card)
    return card
