"""The cards, and python -m harness.corpora."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fetched import CONTENT, END, facts, url
from local_server import Server, refuse
from packaging.licenses import canonicalize_license_expression

from harness.common import registry
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import __main__ as command
from harness.corpora.cards import FETCHED, YOURS, card_of, cards
from harness.corpora.packages import ORDER

# ---- the cards


@pytest.mark.parametrize("name", sorted(cards()))
def test_card_is_complete(name: str) -> None:
    known = cards()[name]
    source = known["source"]
    assert known["about"]
    assert known["language"] or source["kind"] in YOURS
    if source["kind"] in FETCHED:
        assert known["licence"]
        assert source["file"] == Path(source["file"]).name
        assert registry.cards("data")[name]["special_tokens"] == [END]
    if "files" in source:
        assert source.get("order", "archive") in ORDER
        assert source.get("take", "sequence") == "sequence"
        assert known["facts"]["sha256"]
    if re.fullmatch(r"[A-Z][A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", known["licence"]):
        assert canonicalize_license_expression(known["licence"]) == known["licence"]


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
    monkeypatch.setattr(registry, "cards", lambda _: {"mine": {"source": source}})
    for arguments in (["list"], ["info", "mine"], ["fetch", "mine"]):
        code, shown, sentence = ran(capsys, *arguments)
        assert (code, shown) == (USAGE, "")
        assert sentence.startswith(f"the card of mine: {message}")


def test_broken_card_breaks_no_other(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    good = registry.cards("data")["stdlib"]
    monkeypatch.setattr(registry, "cards", lambda _: {"mine": {"source": {}}, "stdlib": good})
    assert [ran(capsys, name, "stdlib")[0] for name in ("info", "path")] == [OK, OK]
    assert ran(capsys, "list")[0] == USAGE


def test_cards_with_one_file_have_one_source() -> None:
    kept: dict[str, tuple[object, object]] = {}
    for known in cards().values():
        if known["source"]["kind"] in FETCHED:
            text = (known["source"], known.get("facts", {}).get("sha256"))
            assert kept.setdefault(known["source"]["file"], text) == text


# ---- the command


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = command.main(arguments)
    return code, *capsys.readouterr()


def test_the_list_names_every_card(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = ran(capsys, "list")
    assert code == OK
    assert {line.split()[0] for line in shown.splitlines()[2:]} == set(cards())
    assert re.search(r"big_txt +English +6.49 MB +no ", shown)


def test_info_prints_the_whole_card(capsys: pytest.CaptureFixture[str], cache_folder: Path) -> None:
    code, shown, _ = ran(capsys, "info", "big_txt")
    assert code == OK
    assert yaml.safe_load(shown).items() >= registry.cards("data")["big_txt"].items()
    assert f"{cache_folder}/corpora/big.txt, after python -m harness.corpora fetch big_txt" in shown


@pytest.mark.parametrize("subcommand", ["info", "fetch", "verify", "path"])
def test_unknown_name_is_answered_with_existing_ones(capsys: pytest.CaptureFixture[str], subcommand: str) -> None:
    code, _, message = ran(capsys, subcommand, "tinystory")
    assert code == USAGE
    assert message.startswith("unknown data set 'tinystory'; did you mean tinystories? there are: ansible_py, ")


def place_big_txt(cache_folder: Path, content: bytes) -> Path:
    place = cache_folder / "corpora" / "big.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


@pytest.mark.parametrize("subcommand", ["verify", "path"])
def test_missing_file_is_answered_with_the_command_that_fetches_it(
    capsys: pytest.CaptureFixture[str], subcommand: str
) -> None:
    code, shown, message = ran(capsys, subcommand, "big_txt")
    assert (code, shown) == (UNMEASURED, "")
    assert "python -m harness.corpora fetch big_txt" in message


def test_verify_names_what_differs(capsys: pytest.CaptureFixture[str], cache_folder: Path) -> None:
    place_big_txt(cache_folder, b"short")
    code, shown, _ = ran(capsys, "verify", "big_txt")
    assert code == UNMEASURED
    assert "bytes   5  the card says 6488666" in shown
    assert "the card says fa066c7d" in shown


def test_verify_and_path_of_what_is_here(
    capsys: pytest.CaptureFixture[str], cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_big_txt(cache_folder, CONTENT)
    known = {**card_of("big_txt"), "facts": {**facts(), "words": 3}}
    monkeypatch.setattr(command, "card_of", lambda _: known)
    code, shown, _ = ran(capsys, "verify", "big_txt")
    assert code == OK
    assert f"sha256  {facts()['sha256']}  as the card says" in shown
    assert ran(capsys, "path", "big_txt") == (OK, f"{place}\n", "")
    place.write_bytes(CONTENT[::-1])
    os.utime(place, (0, 0))
    assert ran(capsys, "verify", "big_txt")[0] == UNMEASURED
    assert ran(capsys, "path", "big_txt")[0] == UNMEASURED


@pytest.mark.parametrize("name", ["file", "stdlib", "ties"])
def test_only_fetched_sets_are_fetched(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, _, message = ran(capsys, "fetch", name)
    assert code == USAGE
    assert message.startswith(f"nothing is fetched for {name}, which is ")


def test_generated_set_has_a_path_and_no_facts_to_differ_from(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ran(capsys, "path", "stdlib")[1]
    assert Path(shown.strip()).is_file()
    code, shown, _ = ran(capsys, "verify", "stdlib")
    assert code == OK
    assert "not on the card" in shown
    assert ran(capsys, "verify", "file")[0] == USAGE


def test_a_fetch_by_name(
    capsys: pytest.CaptureFixture[str], server: Server, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setattr(command, "card_of", lambda _: url(server))
    assert ran(capsys, "fetch", "known")[0] == OK
    assert (cache_folder / "corpora" / "known.txt").read_bytes() == CONTENT
    server.script[:] = [refuse(404)]
    (cache_folder / "corpora" / "known.txt").unlink()
    code, _, message = ran(capsys, "fetch", "known")
    assert code == UNMEASURED
    assert "answers 404 Not Found; put its new address on the card" in message
