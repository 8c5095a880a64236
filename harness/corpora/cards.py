"""Data cards: where the file of a card is, or how it is made, and whether it is what the card
describes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.common import cache, registry
from harness.common.cards import Addressed, DataCard, Facts, Generated, Packaged, Yours
from harness.common.errors import UNMEASURED, Refusal
from harness.common.values import one_of
from harness.corpora.files import TEXT, CorpusFile, digest_of
from harness.worker.exchange import file_state

# of stdlib
LEFT_OUT = {
    "test",
    "tests",
    "idle_test",
    "idlelib_test",
    "__pycache__",
    "site-packages",
    "dist-packages",
}


def card_of(name: str) -> DataCard:
    """The card of this name, even if others are invalid. Raises Refusal, with the existing names,
    if it is missing.
    """
    one_of("data set", name, registry.names("data"))
    return msgspec.convert(registry.card("data", name), DataCard)


def fetched_kind(name: str) -> str:
    """The folder of the cache that `fetch` puts the file of a card into; a card of yours cannot
    replace the file of another.
    """
    return "corpora/yours" if registry.is_yours("data", name) else "corpora"


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they
    change.
    """
    root, paths = Path(sysconfig.get_paths()["stdlib"]), []
    for folder, folders, names in os.walk(root):
        folders[:] = set(folders) - LEFT_OUT
        paths += [Path(folder, name) for name in names if name.endswith(".py")]
    paths = sorted(filter(Path.is_file, paths), key=Path.as_posix)

    def make(folder: Path) -> None:
        with (folder / TEXT).open("wb") as file:
            for path in paths:
                with contextlib.suppress(UnicodeDecodeError):
                    file.write(path.read_bytes().decode().encode() + b"<|endoftext|>")

    key = cache.key_of("stdlib", list(map(file_state, paths)))
    return cache.kept("corpora", key, make).path / TEXT


def state(card: DataCard) -> str:
    """Whether the file is here: yes, no, on use (made when a run needs it), or yours."""
    if isinstance(card.source, Addressed | Packaged):
        return "no" if cache.find(fetched_kind(card.name), card.name) is None else "yes"
    return "yours" if isinstance(card.source, Yours) else "on use"


def with_changes_named(card: DataCard) -> DataCard:
    """The card; with overridden generator parameters, a card named by them and without facts."""
    if not isinstance(card.source, Generated) or card.name not in registry.names("data"):
        return card
    original = card_of(card.name).source
    changed = [
        f"{name}={value}"
        for name, value in msgspec.to_builtins(card.source).items()
        if getattr(original, name, value) != value
    ]
    if not changed:
        return card
    return replace(card, name=f"{card.name}({','.join(changed)})", facts=Facts())


def check_facts(path: Path, card: DataCard) -> str:
    """Return the digest of a file. Raises Refusal if its size or digest differs from the card's."""
    digest = digest_of(path)
    if wrong := difference(card.facts, {"bytes": path.stat().st_size, "sha256": digest}):
        advice = "it is another file or damaged; remove it to get it again, or use it as your own file with data=file"
        raise Refusal(f"data={card.name}: {path} {wrong}; {advice}", UNMEASURED)
    return digest


def difference(stated: Facts, facts: Mapping[str, Any]) -> str:
    """The first fact for which a card states another value, in words; empty if there is none.
    None is unknown.
    """
    for fact, value in facts.items():
        expected = getattr(stated, fact, None)
        if None not in (value, expected) and value != expected:
            return f"has {fact} {value}, its card says {expected}"
    return ""


def counted_facts(card: DataCard, special_tokens: Sequence[str]) -> Facts:
    """The facts of the count, if they hold for these special tokens."""
    if list(special_tokens) != card.special_tokens:
        return Facts()
    return replace(card.facts, bytes=None, sha256=None)


def counted_otherwise(
    file: CorpusFile, pattern: str, manifest: Mapping[str, Any], documents: int | None
) -> str | None:
    """A sentence if the counts differ from the card's, which hold for the pattern gpt2; else
    None.
    """
    wrong = difference(file.facts, {**manifest, "documents": documents})
    if pattern != "gpt2" or not wrong:
        return None
    return f"data={file.name} {wrong}; it is another text, or fix the facts of the card"
