"""`harness.tokenizer train` and `train()` extend as a run does; tests/fixtures/command_rows/others.toml
has what they refuse.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main as harness
from harness.common.errors import OK
from harness.tokenizer import load, main, train


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["train", "--vocab-size", "262", "--save", "saved", "--overwrite", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


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
