"""Tokenizers that are extended: their ids stay, whoever made them, and two stages are one command."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from workbench import TEXT

from harness.__main__ import main
from harness.common import errors
from harness.records.file import read_records
from harness.runs import run
from harness.tokenizer import load

pytestmark = pytest.mark.usefixtures("measured_once")


@pytest.fixture
def first(here: Path) -> Path:
    """A folder with a text and the tokenizer `first` of its words."""
    Path("text.txt").write_text(TEXT)
    assert (
        main(["data.path=text.txt", "measure=proof", "vocab_size=268", "save=first"]) == errors.OK
    )
    return here / "first"


def extended(*overrides: str) -> Any:
    """The tokenizer that goes on from others across words."""
    command = ["variant=flat", "data.path=text.txt", "pattern=superbpe", "save=longer"]
    assert main([*command, *overrides]) == errors.OK
    return load("longer")


@pytest.mark.parametrize("end", [256, 267])
def test_the_old_tokens_keep_their_ids_and_hugging_face_encodes_alike(
    first: Path, end: int
) -> None:
    """The special token comes before the merges, or behind them as GPT-2 has it."""
    tokenizers = pytest.importorskip("tokenizers")
    saved = first / "tokenizer.json"
    content = json.loads(saved.read_text(encoding="utf-8"))
    texts = [text for text in content["model"]["vocab"] if text != "<|endoftext|>"]
    texts.insert(end, "<|endoftext|>")
    content["model"]["vocab"] = {text: number for number, text in enumerate(texts)}
    content["added_tokens"][0]["id"] = end
    saved.write_text(json.dumps(content), encoding="utf-8")

    longer = extended(f"extend={saved}", "veto=superbpe", "vocab_size=290")
    old, new = load(saved).learned.vocab, longer.learned.vocab
    assert old.items() <= new.items()
    assert b"cat sat on the " in [new[number] for number in new.keys() - old.keys()]
    assert longer.learned.special_tokens == {"<|endoftext|>": end}
    assert sorted(new) == list(range(290))

    theirs = tokenizers.Tokenizer.from_file("longer/tokenizer.json")
    for text in (TEXT, "the cat sat on: the 12345 worlds  and\r\n\r\nmore!!\n", "x"):
        assert theirs.encode(text, add_special_tokens=False).ids == longer.encode(text)


@pytest.mark.slow
@pytest.mark.usefixtures("first")
def test_two_stages_continue_after_an_interruption_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["experiment=superbpe", "data.path=text.txt", "measure=proof", "save=saved"]
    sizes = ["vocab_size=280", "first_stage.vocab_size=268"]
    stages, run_plan = itertools.count(), run.run_plan

    def interrupted(*arguments: Any) -> int:
        if next(stages):
            raise KeyboardInterrupt
        return run_plan(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(run, "run_plan", interrupted)
        assert main([*command, *sizes]) == errors.INTERRUPTED
    assert main([*command, *sizes]) == errors.OK
    *_, before, after = (record for record in read_records(["results/local"]) if record.trains)
    assert after["extend"] == before["merges_sha256"]
    assert before["extend"] is None
