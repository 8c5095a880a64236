"""The cards of data sets, whole: what a card leaves out has the value that a run would give it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from harness import registry
from harness.configuration import DataConfig
from harness.corpora.sources import check_source
from harness.errors import Refusal

Card = Mapping[str, Any]


def cards() -> dict[str, Card]:
    """Every data set's card, by name. Raises Refusal for one that does not say where its file comes from."""
    defaults = dataclasses.asdict(DataConfig())
    known: dict[str, Card] = {name: {**defaults, "name": name, **card} for name, card in registry.cards("data").items()}
    for card in known.values():
        check_source(card)
    return known


def card_of(name: str) -> Card:
    """The card of this name. Raises Refusal, with those that there are, if there is none."""
    known = cards()
    if name not in known:
        raise Refusal(registry.unknown("data set", name, known))
    return known[name]
