"""Words too long for another trainer: the merges are replayed, and what is wrong still goes before another trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import TEXT

from harness import replayed_claims, run

ONE_WORD = ("pattern=document", "vocab_size=270", "data.path=text", "special_tokens=[]")


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    (tmp_path / "text").write_text(TEXT)


def long_from(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(replayed_claims, "LONG_BYTES", length)


def test_right_merges_of_a_long_word_are_proved_without_another_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    long_from(monkeypatch, len(TEXT.encode()))
    _, trained = run(*ONE_WORD, "variant=heap")
    assert trained["proof"] == {"state": "reference", "by": ["heap", "replay"]}


def test_a_word_that_is_not_long_goes_before_another_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    long_from(monkeypatch, len(TEXT.encode()) + 1)
    _, trained = run(*ONE_WORD, "variant=heap")
    assert trained["proof"]["state"] == "reference"
    assert "replay" not in trained["proof"]["by"]


def test_wrong_merges_of_a_long_word_are_found_whoever_is_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    long_from(monkeypatch, 1)
    Path("text").write_text("aaabaaaaac" * 20 + TEXT)  # a run of odd length has a left and a right end
    _, wrong = run(*ONE_WORD, "variant._target_=sabotaged:right_to_left")
    both = run("-m", *ONE_WORD, "min_count=2", "variant._target_=sabotaged:right_to_left,variants.heap:train")
    assert wrong["status"] == "mismatch"
    assert "replay" not in wrong["proof"]["by"]
    assert [record["status"] for record in both] == ["mismatch", "ok"]
    assert [record["proof"]["by"] for record in both] == [["heap", "replay"]] * 2


def test_a_corpus_without_words_has_no_long_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    _, trained = run(*ONE_WORD, "variant=heap")
    assert trained["status"] == "ok"
