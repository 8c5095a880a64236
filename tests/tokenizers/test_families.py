"""Every byte-level class of transformers is trained, loaded, converted, cut and encoded as there, or
refused in a sentence.

`families.txt` beside this file has the results; docs/how-to/huggingface.md shows them.
"""

import functools
import inspect
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from harness.common.errors import Refusal
from harness.tokenizer import load, train_new_from_iterator

pytestmark = pytest.mark.xdist_group("transformers")
SPECIALS = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[SEP]", "[PAD]", "[UNK]")
TEXTS = [
    "The cat's mat, it'll DON'T  cafe\u0301 café 12345 naïve\n\n  def f(x):\n\treturn x",
    " a space first",
    "\na line end first",
    "",
    "e\u0301te\u0301 \ufb01 ½ ² Ⅷ ٣ \u212b 가 \u1112\u1161\u11ab 一二三 \u3000x\u200c\u200dy नमस्ते 👩\u200d👩",
    "low lower lowest <|endoftext|> </s> [SEP] newest " * 3,
]
LINES = Path(__file__).with_name("families.txt").read_text(encoding="utf-8").splitlines()
STORED = {line.partition("\t")[0]: line for line in LINES}


@functools.cache
def classes() -> dict[str, Any]:
    """The byte-level classes of the installed transformers by name."""
    transformers = pytest.importorskip("transformers")
    found = {}
    for name in dir(transformers):
        made = getattr(transformers, name) if name.endswith("Tokenizer") else None
        if not inspect.isclass(made) or not issubclass(made, transformers.PreTrainedTokenizerFast):
            continue
        if "ByteLevel" in Path(inspect.getfile(made)).read_text(encoding="utf-8"):
            found[made.__name__] = made
    return found


def built(made: Any) -> Any:
    """A tokenizer of the class with all bytes, special tokens, and no merges."""
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = [*SPECIALS, *sorted(ByteLevel.alphabet())]
    vocab = {token: number for number, token in enumerate(tokens)}
    more = {"tags_dict": {"div": 0}} if "Markup" in made.__name__ else {}
    return made(vocab=vocab, merges=[], **more)


def result_of_training(old: Any, theirs: Any) -> str:
    """`equal` if the same file is trained here, or why it is refused."""
    try:
        ours = train_new_from_iterator(old, TEXTS, 400)
    except Refusal as refusal:
        return str(refusal)
    assert ours.backend_tokenizer.to_str() == theirs.to_str()
    return "equal"


def result_of_loading(old: Any, theirs: Any, folder: Path) -> str:
    """`equal` if load, convert, cut and encode give what transformers gives, or why the file is
    refused.
    """
    path = folder / "tokenizer.json"
    theirs.save(str(path))
    try:
        tokenizer = load(path)
    except Refusal as refusal:
        return str(refusal).removeprefix(f"{path} cannot be used: ").partition(";")[0]

    tokenizer.save(folder / "saved")
    saved = load(folder / "saved")
    assert saved.learned == tokenizer.learned
    opened = saved.huggingface()
    post_processor = json.loads(opened.to_str())["post_processor"]
    assert post_processor == json.loads(path.read_text())["post_processor"]

    smaller = tokenizer.cut(350).huggingface()
    trained = old.train_new_from_iterator(TEXTS, 350, show_progress=False).backend_tokenizer
    for text in TEXTS:
        assert tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False).ids
        assert opened.encode(text).ids == theirs.encode(text).ids
        assert smaller.encode(text).ids == trained.encode(text).ids
    return "equal"


def models_of(name: str) -> str:
    """The first models that use a class, as transformers lists them."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    models = defaultdict(list)
    for model, class_name in TOKENIZER_MAPPING_NAMES.items():
        models[class_name].append(model)
    return ", ".join(models[name][:5])


@pytest.mark.parametrize("name", STORED)
def test_a_class_of_transformers_is_reproduced_or_refused(tmp_path: Path, name: str) -> None:
    old = built(classes()[name])
    theirs = old.train_new_from_iterator(TEXTS, 400, show_progress=False).backend_tokenizer
    trained = result_of_training(old, theirs)
    loaded = result_of_loading(old, theirs, tmp_path)
    assert STORED[name] == f"{name}\t{models_of(name)}\t{trained}\t{loaded}"


def test_no_byte_level_class_is_left_out() -> None:
    assert set(classes()) == set(STORED)
