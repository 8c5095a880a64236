"""What `harness.tokenizer train` says when it cannot go on: a reason that is true, and advice that it
takes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.__main__ import main as harness
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.tokenizer import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["train", *arguments, "--vocab-size", "262", "--save", "saved", "--overwrite"])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_advice_about_a_column_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.jsonl").write_text('{"content": "low low"}\n')
    assert "pass --set data.column=NAME" in trained(capsys, "c.jsonl")[1]
    assert trained(capsys, "c.jsonl", "--set", "data.column=content")[0] == OK


def test_advice_about_bytes_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.txt").write_bytes(b"caf\xe9 caf\xe9\n")
    code, sentence = trained(capsys, "w.txt")
    assert code == UNMEASURED  # as of python -m harness
    assert "or pass --errors replace" in sentence
    assert trained(capsys, "w.txt", "--errors", "replace")[0] == OK


def test_misspelt_name_of_a_pattern_is_no_expression(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.txt").write_text("low low")
    code, sentence = trained(capsys, "t.txt", "--pattern", "cl100k-base")
    assert code == USAGE
    assert "unknown pattern 'cl100k-base'" in sentence
    code, sentence = trained(capsys, "t.txt", "--pattern", "[a-k]+")
    assert code == USAGE
    assert "the pattern leaves out" in sentence
    assert "pattern.partial" not in sentence


def test_least_count_is_the_reason_why_training_stops(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.txt").write_text("low low lower newest widest\n" * 20)
    assert "no pair occurs 61 times" in trained(capsys, "t.txt", "--min-count", "61")[1]
    assert "no pair is left" in trained(capsys, "t.txt", "--set", "data.bytes=8")[1]
    arguments = ["variant=heap", "data.path=t.txt", "vocab_size=300", "results=results"]
    assert harness([*arguments, "min_count=61"]) == OK
    assert "No pair occurs 61 times after " in capsys.readouterr().out
