"""Where the data sets that are fetched are kept: one file each in the cache, and a folder while one is on its way."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.common import files, registry
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import generated, python_files

Card = Mapping[str, Any]


def place_of(card: Card) -> Path:
    """Where the file of a card is, or will be."""
    return files.cache_folder("corpora").joinpath(card["source"]["file"])


def on_its_way(card: Card) -> Path:
    """The folder that keeps what has come of a corpus until it is whole."""
    return files.cache_folder("downloads", card["name"])


@contextlib.contextmanager
def fetching_alone(card: Card, say: Callable[[str], None]) -> Iterator[None]:
    """Only one process at a time fetches a corpus; a second one waits here. A lock ends with its process."""
    lock = files.cache_folder("downloads") / f"{card['name']}.lock"
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise files.cache_unusable(lock, error) from error
    with open(descriptor, "w") as file:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(f"{lock} is no plain file, so it cannot be locked; remove it", UNMEASURED)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching {card['name']}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# Where corpora come from: for every kind of source that a card may name, the function that finds or makes its file.


def fetched(card: Card) -> Path:
    """The file that `python -m harness.corpora fetch` has put where it is kept."""
    check_source(card)
    path, name = place_of(card), card["name"]
    if not path.exists():
        raise Refusal(
            f"data={name}: no file at {path}; get it with python -m harness.corpora fetch {name}, or set "
            "data.path=FILE where you have it",
            UNMEASURED,
        )
    return path


def check_source(card: Card) -> None:
    """Raises Refusal for a card that does not say enough of its source."""
    source = card["source"]
    if not isinstance(source, Mapping):
        raise Refusal(f"the card of {card['name']}: source is {source!r}; it is a mapping that begins with its kind")
    kind, kinds = source.get("kind"), [*FIND, *YOURS]
    if kind not in kinds:
        raise Refusal(f"the card of {card['name']}: {registry.unknown('kind of source', str(kind), kinds)}")
    for key, named in (("file", source.get("file")), ("name", card["name"])) if kind in NEEDED else ():
        if named is not None and (Path(str(named)).name != str(named) or named in (".", "..")):
            raise Refusal(
                f"the card of {card['name']}: {key} is {named!r}; it is a plain name, for the cache's own folder"
            )
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
