"""What a tokenizer.json does around a text is carried through every door, with the ids of a cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import SPECIALS, TEXT, changed, learned

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer, load, main
from harness.tokenizers.post_processor import Around

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.skipif(
    not hasattr(tokenizers, "processors"), reason="tokenizers 1.0 has no post-processors"
)

WRITTEN = json.loads(Path(__file__).with_name("around.json").read_text(encoding="utf-8"))
PARTS: dict[str, dict[str, Any]] = WRITTEN["carried"]
"""Parts of a tokenizer.json by what they are."""


def ids_of(path: Path) -> list[list[int]]:
    opened = tokenizers.Tokenizer.from_file(str(path))
    return [opened.encode(TEXT).ids, opened.encode("the cat", "a mat").ids, opened.encode("").ids]


@pytest.mark.parametrize("name", PARTS)
def test_what_is_around_a_text_is_carried(tmp_path: Path, name: str) -> None:
    path = changed(tmp_path, **PARTS[name])
    original = json.loads(path.read_text())
    load(path).huggingface().save(str(tmp_path / "huggingface.json"))
    assert json.loads((tmp_path / "huggingface.json").read_text()) == original

    folder = tmp_path / "saved"
    for form in ("ours", "huggingface"):
        options = ["--to", form, "--output", str(folder), "--overwrite"]
        assert main(["convert", str(path), *options]) == 0
        assert ids_of(folder / "tokenizer.json") == ids_of(path)
    assert load(folder).learned == load(path).learned  # from the manifest
    assert load(path).encode(TEXT) == load(changed(tmp_path)).encode(TEXT)


@pytest.mark.parametrize("name", PARTS)
def test_a_cut_moves_the_ids_around_a_text(tmp_path: Path, name: str) -> None:
    """The special tokens are the last ids of this tokenizer, so that every cut moves them."""
    plain = learned("gpt2", SPECIALS)
    order = [number for number in plain.vocab if number not in (256, 257, 258)]
    new_ids = {old: new for new, old in enumerate([*order, 256, 257, 258])}
    last = plain._replace(
        vocab={number: plain.vocab[old] for old, number in new_ids.items()},
        special_tokens={text: new_ids[old] for text, old in plain.special_tokens.items()},
    )
    around = load(changed(tmp_path, **PARTS[name])).learned.around
    tokenizer = Tokenizer(last._replace(around=around.moved(new_ids)))

    size = len(tokenizer) - 100
    cut, trained_so = tokenizer.cut(size).huggingface(), load(changed(tmp_path)).cut(size)
    shorter = trained_so.learned._replace(around=around)
    expected = Tokenizer(shorter).huggingface()
    for texts in ((TEXT,), ("the cat", "a mat"), ("",)):
        assert cut.encode(*texts).tokens == expected.encode(*texts).tokens


@pytest.mark.parametrize(("changes", "answer"), WRITTEN["refused"])
def test_what_cannot_be_carried_is_refused(
    tmp_path: Path, changes: dict[str, Any], answer: str
) -> None:
    with pytest.raises(Refusal, match=answer):
        load(changed(tmp_path, **{**PARTS["all"], **changes}))


def test_a_cut_that_leaves_out_what_is_added_is_refused(tmp_path: Path) -> None:
    tokenizer = load(changed(tmp_path, **PARTS["padding"], padding__pad_id=300))
    assert tokenizer.cut(302).learned.around.padding is not None
    with pytest.raises(Refusal, match="padding adds the token of id 300, which the cut leaves out"):
        tokenizer.cut(280)


def test_a_note_says_which_files_lack_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = changed(tmp_path, **PARTS["all"])
    note = "only tokenizer.json applies its post_processor, truncation, padding"
    for form in ("ours", "gpt2", "tiktoken"):
        folder = str(tmp_path / form)
        assert main(["convert", str(path), "--to", form, "--output", folder, "--overwrite"]) == 0
        assert note in capsys.readouterr().out
    assert main(["check", str(path), "--size", "1kB"]) == 0
    assert note in capsys.readouterr().out
    assert Around() == load(changed(tmp_path)).learned.around
