"""Where corpora come from: for every kind of source that a card may name, the function that finds or makes its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.corpora import generated, python_files
from harness.corpora.places import kept
from harness.errors import UNMEASURED, Refusal

Card = Mapping[str, Any]


def fetched(card: Card) -> Path:
    """The file that `python -m harness.corpora fetch` has put where it is kept."""
    path, name = kept(card), card["name"]
    if not path.exists():
        raise Refusal(
            f"data={name}: no file at {path}; get it with python -m harness.corpora fetch {name}, or say "
            "data.path=FILE where you have it",
            UNMEASURED,
        )
    return path


FETCHED = ("url", "hugging_face", "package_index", "debian", "npm")
"""The kinds that come from elsewhere: harness.corpora.fetching gets them."""

FIND: dict[str, Callable[[Card], Path]] = {
    **dict.fromkeys(FETCHED, fetched),
    "stdlib": lambda _: python_files.standard_library(),
    "site_packages": lambda _: python_files.site_packages(),
    generated.KIND: generated.text_of,
}
