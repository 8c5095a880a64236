"""Cards for what a local server has, and a fetch that does not wait long."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from local_server import Server

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import fetch
from harness.corpora.cards import card_of

END = "<|endoftext|>"
CONTENT = f"one{END}two 二{END}".encode() * 3000


def impatient(seconds_without_a_byte: float = 0.3) -> Any:
    """Patch the fetcher not to wait long."""
    names: dict[str, Any] = {
        "SECONDS_WITHOUT_A_BYTE": seconds_without_a_byte,
        "FRUITLESS_ATTEMPTS": 3,
        "SECONDS_BETWEEN_ATTEMPTS": 0,
    }
    return mock.patch.multiple(fetch, **names)


def facts(content: bytes = CONTENT) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def card(source: dict[str, Any], **further: Any) -> dict[str, Any]:
    known = {"name": "known", "facts": facts(), "source": {"file": "known.txt", **source}}
    return {**card_of("file"), **known, **further}


def url(server: Server, name: str = "known.txt", **further: Any) -> dict[str, Any]:
    return card({"kind": "url", "url": f"{server.address}/{name}"}, **further)


def get(data: dict[str, Any]) -> tuple[Path, list[str]]:
    messages: list[str] = []
    with impatient(), mock.patch.object(fetch, "say", messages.append):
        return fetch.fetch(data), messages


def refusal_of(data: dict[str, Any], cache_folder: Path) -> str:
    with pytest.raises(Refusal) as refused:
        get(data)
    assert refused.value.exit_code == UNMEASURED
    assert "\n" not in str(refused.value)
    assert not any((cache_folder / "corpora").iterdir())
    return str(refused.value)


def left(cache_folder: Path) -> list[str]:
    """The files of a fetch except its lock and its result."""
    return [path.name for path in (cache_folder / "downloads").rglob("*") if path.suffix != ".lock"]
