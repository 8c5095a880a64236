"""Several files, compressed ones, or texts in a column as one plain file in the cache; which part came from where."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.common import cache, files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.progress import bar
from harness.corpora.compressed import READERS, blocks_of
from harness.corpora.files import Part, hold_or_refuse, state_of
from harness.corpora.tables import WHOLE, Between, kind_of, texts_of

TEXT, PARTS = "text", "parts.json"


@dataclass(frozen=True)
class Recipe:
    """What decides an assembled corpus, beside what the files hold."""

    members: tuple[Path, ...]
    separator: str
    column: str

    def key(self) -> str:
        states = [[str(member), state_of(member)] for member in self.members]
        listed = json.dumps([states, self.separator, self.column])
        return hashlib.sha256(listed.encode()).hexdigest()[:32]


def assemble(recipe: Recipe, name: str) -> tuple[Path, tuple[Part, ...]]:
    """The one file of a recipe and the parts it is made of; made again when a member has changed.

    Raises Refusal if a member cannot be read or changes meanwhile, or if there is no room; nothing half is left.
    """
    folder = files.cache_folder("assembled") / recipe.key()
    if not folder.exists():
        sizes = [member.stat().st_size for member in recipe.members]
        # Compressed files will need more; how much they do not say reliably.
        check_room(folder.parent, sum(sizes), name)
        with files.placing(folder) as temporary, bar(f"reading {name}", sum(sizes), "bytes") as show:
            temporary.mkdir()
            parts = write(recipe, temporary / TEXT, show)
            (temporary / PARTS).write_text(json.dumps(parts))
        cache.tell_of_copy(folder, name)
    hold_or_refuse(folder, name)
    return folder / TEXT, tuple(Part(*part) for part in json.loads((folder / PARTS).read_text()))


def write(recipe: Recipe, place: Path, show: Callable[[int], None]) -> list[Part]:
    parts: list[Part] = []
    end, before = recipe.separator.encode(), 0
    with place.open("wb") as text:
        for member in recipe.members:
            state = state_of(member)
            parts.append(Part(text.tell(), str(member), 0, made_of(member)))
            for document in documents_in(member, recipe.column, lambda read: show(before + read)):  # noqa: B023
                append(text, document, end)
            if state_of(member) != state:
                raise Refusal(f"{member} was changed while it was read; run the same again", UNMEASURED)
            before += member.stat().st_size
    return parts


def documents_in(
    member: Path, column: str, show: Callable[[int], None], between: Between = WHOLE
) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or those between two bytes, or all of it."""
    if kind_of(member):
        yield from (iter([text.encode()]) for text in texts_of(member, column, show, between))
    else:
        yield blocks_of(member, show)


def append(text: BinaryIO, document: Iterator[bytes], end: bytes) -> None:
    """Write a document, and the separator behind it unless it ends with it or is empty."""
    tail = b""
    for block in document:
        text.write(block)
        tail = (tail + block)[-len(end) :] if end else b""
    if tail and tail != end:
        text.write(end)


def made_of(member: Path) -> str:
    """What an offset in this member's part is an offset of, where it is not the file as it lies there."""
    if kind_of(member):
        return " of the texts in it"
    return " of what is unpacked" if member.suffix.lower() in READERS else ""
