"""What `harness.tokenizer train` says when it cannot go on: a reason that is true, and advice that it
takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.__main__ import main as harness
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.tokenizer import load, main, train


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["train", "--vocab-size", "262", "--save", "saved", "--overwrite", *arguments])
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
    assert code == UNMEASURED  # as of python -m harness
    assert "the pattern leaves out" in sentence
    assert "pattern.partial" not in sentence


def test_least_count_is_the_reason_why_training_stops(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.txt").write_text("low low lower newest widest\n" * 20)
    assert "no pair occurs 61 times" in trained(capsys, "t.txt", "--min-count", "61")[1]
    assert "no pair is left" in trained(capsys, "t.txt", "--set", "data.bytes=8")[1]
    arguments = ["variant=heap", "data.path=t.txt", "vocab_size=300", "results=results"]
    assert harness([*arguments, "min_count=61"]) == OK
    assert "No pair occurs 61 times after " in capsys.readouterr().out


def test_command_and_function_extend_as_a_run_does(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.txt").write_text("of the one: of the two; by the way of the world, one two.\n" * 9)
    Path("seeds").write_text('" the"\n" of"\n')
    assert trained(capsys, "t.txt", "--vocab-size", "270", "--pattern", "line")[0] == OK
    Path("saved").rename("first")

    cases: list[dict[str, Any]] = [
        {"extend": "first", "veto": "superbpe"},
        {"extend": "first/merges.txt", "inherited": "met"},
        {"seeds": "seeds", "protected": "[' the',o]"},
    ]
    for how in cases:
        overrides = [f"{name}={value}" for name, value in how.items()]
        run = ["variant=naive_extending", "data.path=t.txt", "vocab_size=290", "save=run"]
        assert harness([*run, "overwrite=true", "measure=proof", *overrides]) == OK
        options = [f"--{name}={value}" for name, value in how.items()]
        code, printed = trained(capsys, "t.txt", "--vocab-size", "290", *options)
        assert code == OK, printed
        wanted = load("run")
        assert load("saved").learned == wanted.learned
        inherited = [load(name).origin.get("inherited_merges") for name in ("saved", "run")]
        assert inherited[0] == inherited[1]
        assert train(Path("t.txt"), 290, **how).learned == wanted.learned


def test_tokens_are_a_list_in_python() -> None:
    assert train({"mov": 1}, 262, seeds=["mov"]).merges[:2] == [(b"o", b"v"), (b"m", b"ov")]
    assert train({"ab": 5}, 262, protected=["a"]).merges == []
    with pytest.raises(TypeError, match="bytes"):
        train({"mov": 1}, 262, seeds=cast(Any, [b"mov"]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--extend", "first"], "pass --special-token for each of '[\"<|e|>\"]'"),
        (
            ["--extend", "first/merges.txt", "--vocab-size", "258"],
            "leaves room for 1; pass --vocab-size 261 or more",
        ),
        (["--seeds", "[the]", "--extend", "first"], "leave out --extend and --inherited met"),
        (["--seeds", "nowhere"], "cannot read --seeds nowhere (No such file or directory)"),
        (["--veto", "no_such:veto"], "--veto no_such:veto: No module named 'no_such'"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_the_words_of_the_command(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train({"lower": 3, "low": 2}, 300, special_tokens=["<|e|>"]).save("first")
    Path("t.txt").write_text("the way")
    code, printed = trained(capsys, "t.txt", *options)
    assert (code in (USAGE, UNMEASURED), printed.count("\n")) == (True, 1)
    assert sentence in printed
    assert not Path("saved").exists()
