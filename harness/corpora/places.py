"""Where the data sets that are fetched are kept: one file each in the cache, and a folder while one is on its way."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import cache

Card = Mapping[str, Any]


def kept(card: Card) -> Path:
    """Where the file of a card is, or will be."""
    return cache.folder("corpora").joinpath(card["source"]["file"])


def on_its_way(card: Card) -> Path:
    """The folder that keeps what has come of a corpus until it is whole."""
    return cache.folder("downloads", card["name"])


@contextlib.contextmanager
def alone(card: Card, say: Callable[[str], None]) -> Iterator[None]:
    """Only one process at a time fetches a corpus; a second one waits here. A lock ends with its process."""
    lock = cache.folder("downloads") / f"{card['name']}.lock"
    try:
        file = lock.open("w")
    except OSError as error:
        raise cache.unusable(lock, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching {card['name']}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
