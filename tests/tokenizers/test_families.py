"""Every byte-level class of transformers is trained, loaded, converted, cut and encoded as there, or
refused in a sentence.

`families.txt` beside this file has the results; docs/how-to/huggingface.md shows them. Write it
again with `python tests/tokenizers/test_families.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from harness.common.errors import Refusal
from harness.tokenizer import load, train_new_from_iterator

pytestmark = pytest.mark.xdist_group("transformers")
STORED = Path(__file__).with_name("families.txt")
SPECIALS = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[SEP]", "[PAD]", "[UNK]")
TEXTS = [
    "The cat's mat, it'll DON'T  cafe\u0301 café 12345 naïve\n\n  def f(x):\n\treturn x",
    " a space first",
    "\na line end first",
    "",
    "e\u0301te\u0301 \ufb01 ½ ² Ⅷ ٣ \u212b 가 \u1112\u1161\u11ab 一二三 \u3000x\u200c\u200dy नमस्ते 👩\u200d👩",
    "low lower lowest <|endoftext|> </s> [SEP] newest " * 3,
]


def classes() -> dict[str, Any]:
    """The byte-level classes of the installed transformers by name, found by building each one."""
    pytest.importorskip(
        "tokenizers.trainers", reason="it needs trainers; pip install 'tokenizers<1'"
    )
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    found = {}
    for name in dir(transformers):
        if not name.endswith("Tokenizer"):
            continue
        made = getattr(transformers, name)
        if not is_fast(made, transformers.PreTrainedTokenizerFast):
            continue
        if "ByteLevel" in Path(module_file(made)).read_text(encoding="utf-8"):
            found[made.__name__] = made
    return found


def is_fast(made: Any, base: type) -> bool:
    return isinstance(made, type) and issubclass(made, base)


def module_file(made: Any) -> str:
    import sys

    return str(sys.modules[made.__module__].__file__)


def built(made: Any) -> Any:
    """A tokenizer of the class with all bytes, special tokens, and no merges."""
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = [*SPECIALS, *sorted(ByteLevel.alphabet())]
    vocab = {token: number for number, token in enumerate(tokens)}
    more = {"tags_dict": {"div": 0}} if "Markup" in made.__name__ else {}
    return made(vocab=vocab, merges=[], **more)


def result_of_training(old: Any) -> tuple[str, Any]:
    """`equal` if the same file is trained here, or why it is refused; and what transformers
    trains.
    """
    theirs = old.train_new_from_iterator(TEXTS, 400, show_progress=False)
    try:
        ours = train_new_from_iterator(old, TEXTS, 400)
    except Refusal as refusal:
        return str(refusal), theirs
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()
    return "equal", theirs


def result_of_loading(old: Any, theirs: Any, folder: Path) -> str:
    """`equal` if load, convert, cut and encode give what transformers gives, or why the file is
    refused.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    theirs.backend_tokenizer.save(str(path))
    try:
        tokenizer = load(path)
    except Refusal as refusal:
        return str(refusal).removeprefix(f"{path} cannot be used: ").partition(";")[0]

    tokenizer.save(folder / "saved")
    saved = Tokenizer.from_file(str(folder / "saved" / "tokenizer.json"))
    original = Tokenizer.from_file(str(path))
    smaller = tokenizer.cut(350)
    trained = old.train_new_from_iterator(TEXTS, 350, show_progress=False).backend_tokenizer
    assert load(folder / "saved").learned == tokenizer.learned
    for text in TEXTS:
        expected = original.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text) == expected
        assert tokenizer.huggingface().encode(text).ids == original.encode(text).ids
        assert saved.encode(text).ids == original.encode(text).ids
        assert smaller.huggingface().encode(text).ids == trained.encode(text).ids
    assert (
        json.loads(saved.to_str())["post_processor"]
        == json.loads(path.read_text())["post_processor"]
    )
    return "equal"


def models_of(name: str) -> str:
    """The first models that use a class, as transformers lists them."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    models = defaultdict(list)
    for model, class_name in TOKENIZER_MAPPING_NAMES.items():
        models[class_name].append(model)
    return ", ".join(models[name][:5])


def row_of(name: str, made: Any, folder: Path) -> list[str]:
    old = built(made)
    trained, theirs = result_of_training(old)
    return [name, models_of(name), trained, result_of_loading(old, theirs, folder)]


def stored() -> dict[str, list[str]]:
    lines = STORED.read_text(encoding="utf-8").splitlines()
    return {line.split("\t")[0]: line.split("\t") for line in lines}


@pytest.mark.parametrize("name", stored())
def test_a_class_of_transformers_is_reproduced_or_refused(tmp_path: Path, name: str) -> None:
    assert row_of(name, classes()[name], tmp_path) == stored()[name]


def test_no_byte_level_class_is_left_out() -> None:
    assert set(classes()) == set(stored())


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder, STORED.open("w", encoding="utf-8") as file:
        for number, (name, made) in enumerate(classes().items()):
            (path := Path(folder, str(number))).mkdir()
            print("\t".join(row_of(name, made, path)), file=file)
