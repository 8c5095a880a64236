"""python -m harness.peers: what is installed, newest and on the board, and one sentence where nobody can be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measured import measured

from harness import peers
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.peers import Release, ask_index, main, sheet_of, used_by

LISTED = [Release("peer_one", "one", "1.0"), Release("peer_two", "two", None), Release("peer_three", "three", "3.1")]


def test_what_to_do_is_told_for_each_trainer() -> None:
    newest = {"one": "1.0", "two": "2.0", "three": "3.1"}
    sheet = sheet_of(LISTED, newest, {"one": "1.0", "three": "3.0"})
    assert sheet.columns[-1].cells == ["nothing", "python -m pip install two==2.0", "run the board again"]


def test_each_adapter_names_its_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == OK
    shown = capsys.readouterr().out
    assert "peer_huggingface" in shown
    assert "tokenizers" in shown
    assert "Hugging Face tokenizers" not in shown


def board_of(folder: Path, version: str, started: str) -> None:
    record = measured("peer_one", 1.0, feeding={"program": f"one {version}"}, started=started)
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_only_what_the_board_has_not_seen_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    board_of(tmp_path, "1.0", "2026-11-22T10:00:00+00:00")
    board_of(tmp_path, "0.9", "2026-11-20T10:00:00+00:00")
    assert used_by(tmp_path) == {"one": "1.0"}
    monkeypatch.setattr(peers, "releases", lambda: LISTED)
    asked = {"one": "1.0", "two": "2.0", "three": "3.1"}
    assert main(["outdated", "--board", str(tmp_path), "--names"], asked.__getitem__) == OK
    assert capsys.readouterr().out.split() == ["peer_two", "peer_three"]


def test_an_index_out_of_reach_costs_one_sentence_and_not_the_rest() -> None:
    asked: list[str] = []

    def newest(package: str) -> str:
        asked.append(package)
        raise Refusal(f"pip finds no release of {package} (no route to host)", UNMEASURED)

    assert ask_index(LISTED, newest)[0] == {}
    assert asked == ["one"]
    (sentence,) = ask_index(LISTED, newest)[1]
    assert sentence.startswith("the package index cannot be asked: pip finds no release of one")


def test_a_package_that_is_gone_from_the_index_does_not_hide_the_others() -> None:
    def newest(package: str) -> str:
        if package == "two":
            raise Refusal("pip finds no release of two (No matching distribution found for two)", UNMEASURED)
        return "9"

    found, complaints = ask_index(LISTED, newest)
    assert (found, len(complaints)) == ({"one": "9", "three": "9"}, 1)
