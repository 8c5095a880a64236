"""What a tokenizer.json does around a text is carried through every door, with the ids of a cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import TEXT, changed

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer, load
from harness.tokenizers.folder import save

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.skipif(
    not hasattr(tokenizers, "processors"), reason="tokenizers 1.0 has no post-processors"
)

WRITTEN = json.loads(Path(__file__).with_name("around.json").read_text(encoding="utf-8"))
PARTS: dict[str, dict[str, Any]] = WRITTEN["carried"]
"""Parts of a tokenizer.json by what they are."""


@pytest.mark.parametrize("name", PARTS)
def test_what_is_around_a_text_is_carried(tmp_path: Path, name: str) -> None:
    path = changed(tmp_path, **PARTS[name])
    original = json.loads(path.read_text())
    tokenizer = load(path)
    tokenizer.save(tmp_path / "saved")
    tokenizer.huggingface().save(str(tmp_path / "opened.json"))
    assert json.loads((tmp_path / "saved/tokenizer.json").read_text()) == original
    assert json.loads((tmp_path / "opened.json").read_text()) == original

    assert load(tmp_path / "saved").learned == tokenizer.learned  # from the manifest
    assert tokenizer.encode(TEXT) == load(changed(tmp_path)).encode(TEXT)


@pytest.mark.parametrize("name", PARTS)
def test_a_cut_moves_the_ids_around_a_text(tmp_path: Path, name: str) -> None:
    """Special tokens with the last ids get others by a cut, unlike those before the merges."""
    plain = load(changed(tmp_path, **PARTS[name])).learned
    far = {number: number for number in plain.vocab}
    for number in plain.special_tokens.values():
        far[number] += 5000
    moved = plain._replace(
        vocab={far[number]: token for number, token in plain.vocab.items()},
        special_tokens={text: far[number] for text, number in plain.special_tokens.items()},
        around=plain.around.moved(far),
    )

    cut = Tokenizer(moved).cut(359).huggingface()
    expected = Tokenizer(plain).cut(359).huggingface()
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


@pytest.mark.parametrize("form", ["ours", "gpt2", "tiktoken"])
def test_a_note_says_which_files_lack_it(tmp_path: Path, form: str) -> None:
    one = load(changed(tmp_path, **PARTS["all"])).learned
    notes = save(tmp_path / "saved", one, {}, form=form)
    assert notes[0].startswith(
        "only tokenizer.json applies its post_processor, truncation, padding;"
    )
