"""Where corpora come from: for every kind of source that a card may name, the function that finds or makes its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness import registry
from harness.corpora import generated, python_files
from harness.corpora.places import kept
from harness.errors import UNMEASURED, Refusal

Card = Mapping[str, Any]


def fetched(card: Card) -> Path:
    """The file that `python -m harness.corpora fetch` has put where it is kept."""
    check_source(card)
    path, name = kept(card), card["name"]
    if not path.exists():
        raise Refusal(
            f"data={name}: no file at {path}; get it with python -m harness.corpora fetch {name}, or say "
            "data.path=FILE where you have it",
            UNMEASURED,
        )
    return path


def check_source(card: Card) -> None:
    """Raises Refusal for a card that does not say enough of its source."""
    source = card["source"]
    kind, kinds = source.get("kind"), [*FIND, *YOURS]
    if kind not in kinds:
        raise Refusal(f"the card of {card['name']}: {registry.unknown('kind of source', str(kind), kinds)}")
    missing = [key for key in NEEDED.get(kind, ()) if key not in source]
    if missing:
        raise Refusal(f"the card of {card['name']}: a source of kind {kind} needs {', '.join(NEEDED[kind])}")


YOURS = ("path", "words")
"""The kinds that stand for a file of the user's own."""

NEEDED = {
    "url": ("url", "file"),
    "hugging_face": ("repository", "revision", "paths", "file"),
    "package_index": ("package", "version", "files", "file"),
    "debian": ("packages", "version", "files", "file"),
    "npm": ("package", "version", "files", "file"),
}
"""What a card must say of each kind that comes from elsewhere; harness.corpora.fetching gets it."""

FETCHED = tuple(NEEDED)

FIND: dict[str, Callable[[Card], Path]] = {
    **dict.fromkeys(NEEDED, fetched),
    "stdlib": lambda _: python_files.standard_library(),
    "site_packages": lambda _: python_files.site_packages(),
    generated.KIND: generated.text_of,
}
