"""Where corpora come from: for every kind of source that a card may name, the function that finds or makes its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness import cache
from harness.corpora import generated, python_files
from harness.errors import UNMEASURED, Refusal

Card = Mapping[str, Any]


def downloaded(card: Card) -> Path:
    """The file that was put where the card expects it."""
    path = cache.folder("corpora").joinpath(card["source"]["file"])
    if not path.exists():
        raise Refusal(
            f"data={card['name']}: no file at {path}; {card['source']['how']}, or say data.path=FILE", UNMEASURED
        )
    return path


def standard_library(_: Card) -> Path:
    return python_files.standard_library()


FIND: dict[str, Callable[[Card], Path]] = {
    "stdlib": standard_library,
    "url": downloaded,
    generated.KIND: generated.text_of,
}
