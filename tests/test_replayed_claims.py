"""Right merges are proved by replaying them, and what is wrong goes before another trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import TEXT

from harness import run
from harness.proof import compiled_replay
from harness.runs import prove

pytestmark = pytest.mark.usefixtures("measured_once")

ONE_WORD = ("pattern=document", "vocab_size=270", "data.path=text", "special_tokens=[]")


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    (tmp_path / "text").write_text(TEXT)


def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_replay, "_replay", None)


@pytest.mark.parametrize("compiled", [True, False])
def test_right_merges_of_a_long_word_are_proved_without_another_trainer(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    if not compiled:
        not_compiled(monkeypatch)
        monkeypatch.setattr(prove, "LONG_BYTES", len(TEXT.encode()))
    (trained,) = run(*ONE_WORD, "variant=heap")
    assert trained["proof"] == {"state": "reference", "by": ["heap", "replay"]}


@pytest.mark.slow
def test_without_the_compiled_replay_a_word_that_is_not_long_goes_before_another_trainer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    not_compiled(monkeypatch)
    monkeypatch.setattr(prove, "LONG_BYTES", len(TEXT.encode()) + 1)
    (trained,) = run(*ONE_WORD, "variant=heap")
    assert trained["proof"]["state"] == "reference"
    assert "replay" not in trained["proof"]["by"]


def test_wrong_merges_are_found_whoever_is_beside_them() -> None:
    Path("text").write_text("aaabaaaaac" * 20 + TEXT)  # a run of odd length has a left and a right end
    (wrong,) = run(*ONE_WORD, "variant._target_=sabotaged:right_to_left")
    both = run("-m", *ONE_WORD, "min_count=2", "variant._target_=sabotaged:right_to_left,variants.heap:train")
    assert wrong["status"] == "mismatch"
    assert "replay" not in wrong["proof"]["by"]
    assert [record["status"] for record in both] == ["mismatch", "ok"]
    assert [record["proof"]["by"] for record in both] == [["heap", "replay"]] * 2


def test_a_corpus_without_words_has_no_long_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    (trained,) = run(*ONE_WORD, "variant=heap")
    assert trained["status"] == "ok"
