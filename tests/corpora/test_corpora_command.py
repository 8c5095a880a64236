"""The cards, and python -m harness.corpora."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from fetched import CONTENT, END, facts, url
from local_server import Server, refuse
from packaging.licenses import canonicalize_license_expression

from harness.common import registry
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import __main__ as command
from harness.corpora import files
from harness.corpora.cards import FETCHED, YOURS, cards
from harness.corpora.fetch import ORDER

# ---- the cards


def test_cards_are_complete() -> None:
    sources: dict[str, tuple[object, object]] = {}
    for name, card in cards().items():
        source, licence = card["source"], card["licence"]
        assert card["about"], name
        assert card["language"] or source["kind"] in YOURS, name
        if source["kind"] in FETCHED:
            text = (source, card["facts"].get("sha256"))
            assert sources.setdefault(source["file"], text) == text, "cards with one file have one source"
            assert source["file"] == Path(source["file"]).name
            assert licence, name
            assert registry.cards("data")[name]["special_tokens"] == [END]
        if "files" in source:
            assert source.get("order", "archive") in ORDER, name
            assert card["facts"]["sha256"], name
        if re.fullmatch(r"[A-Z][A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", licence):
            assert canonicalize_license_expression(licence) == licence


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "unknown kind of source 'None'; there are: url, hugging_face, "),
        ({"kind": "urls"}, "unknown kind of source 'urls'; did you mean url? there are: "),
        ({"kind": "url", "url": "https://moon.invalid/"}, "a source of kind url needs url, file"),
        ({"kind": "npm", "package": "x"}, "a source of kind npm needs package, version, files, file"),
    ],
)
def test_incomplete_card_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], message: str
) -> None:
    good = registry.cards("data")["stdlib"]
    monkeypatch.setattr(registry, "cards", lambda _: {"mine": {"source": source}, "stdlib": good})
    assert [ran(capsys, name, "stdlib")[0] for name in ("info", "path")] == [OK, OK]
    for arguments in (["list"], ["info", "mine"], ["fetch", "mine"]):
        code, shown, sentence = ran(capsys, *arguments)
        assert (code, shown) == (USAGE, "")
        assert sentence.startswith(f"the card of mine: {message}")


# ---- the command


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = command.main(arguments)
    return code, *capsys.readouterr()


def test_corpus_is_fetched_verified_and_found(
    capsys: pytest.CaptureFixture[str], server: Server, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setattr(command, "card_of", lambda _: url(server))
    place = cache_folder / "corpora" / "known.txt"
    server.script[:] = [refuse(404)]
    assert ran(capsys, "fetch", "known")[0] == UNMEASURED
    assert ran(capsys, "fetch", "known")[0] == OK
    code, shown, _ = ran(capsys, "verify", "known")
    assert code == OK
    assert f"sha256  {facts()['sha256']}  as the card says" in shown
    assert ran(capsys, "path", "known") == (OK, f"{place}\n", "")
    place.write_bytes(CONTENT[::-1])
    os.utime(place, (0, 0))
    code, _, message = ran(capsys, "verify", "known")
    assert code == UNMEASURED
    assert f"its card says {facts()['sha256']}" in message
    assert ran(capsys, "path", "known")[0] == UNMEASURED
    files.remember(place, facts()["sha256"])  # as if the disk had changed it
    code, _, message = ran(capsys, "verify", "known")
    assert (code, "is damaged, though its times are unchanged" in message) == (UNMEASURED, True)
