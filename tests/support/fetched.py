"""Corpora of cards: of what is in a file, and of what a local server has, fetched without waiting
long.
"""

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pyarrow
import pytest
from local_server import Server

from harness.common import cache
from harness.common.cards import DataCard
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import CorpusFile, card_of, fetch, prepare

END = "<|endoftext|>"
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: bytes(pyarrow.compress(content, "zstd", asbytes=True)),
}
CONTENT = f"one{END}two 二{END}".encode() * 3000


def prepared(
    path: Any, special_tokens: Sequence[str] = (END,), of: str = "file", **further: Any
) -> CorpusFile:
    """The corpus of the card `of` for a file of one's own."""
    path = path if path is None or isinstance(path, list) else str(path)
    return prepare(card_with(of, path=path, **further), special_tokens)


def card_with(of: str, **keys: Any) -> DataCard:
    """The card `of` with other values."""
    return msgspec.convert({**msgspec.to_builtins(card_of(of)), **keys}, DataCard)


def cached() -> list[Path]:
    """The files of the cache but digests."""
    files = (path for path in cache.root().rglob("*") if path.is_file())
    return sorted(path for path in files if "digests" not in path.parts)


def refusal(path: Any, special_tokens: Sequence[str] = (END,), **further: Any) -> str:
    """Why there is no such corpus; nothing is left of the attempt."""

    before = cached()
    with pytest.raises(Refusal) as refused:
        prepared(path, special_tokens, **further)
    assert "\n" not in str(refused.value)
    assert cached() == before, "something half-written was left"
    return str(refused.value)


def facts(content: bytes = CONTENT) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def card(source: dict[str, Any], **further: Any) -> DataCard:
    known = {"name": "known", "facts": facts(), "source": {"file": "known.txt", **source}}
    return card_with("file", **{**known, **further})


def url(
    server: Server, name: str = "known.txt", source: Mapping[str, Any] | None = None, **further: Any
) -> DataCard:
    return card({"kind": "url", "url": f"{server.address}/{name}", **(source or {})}, **further)


def get(data: DataCard) -> tuple[Path, list[str]]:
    """Fetch, without waiting long."""
    messages = list[str]()
    with mock.patch.multiple(fetch, SECONDS_WITHOUT_A_BYTE=0.3, print_stderr=messages.append):
        return fetch.fetch(data), messages


def refusal_of(data: DataCard, cache_folder: Path) -> str:
    with pytest.raises(Refusal) as refused:
        get(data)
    assert refused.value.exit_code == UNMEASURED
    assert "\n" not in str(refused.value)
    assert not any((cache_folder / "corpora").rglob("known.txt"))
    return str(refused.value)


def left(cache_folder: Path) -> list[str]:
    """The files of a fetch except its lock and its result."""
    return [path.name for path in (cache_folder / "downloads").rglob("*") if path.suffix != ".lock"]
