"""What transformers trains on an iterator is trained here with the same files; what would differ is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer, train_new_from_iterator
from variants.contract import GPT2_PATTERN

pytest.importorskip("tokenizers.trainers", reason="it needs trainers; pip install transformers 'tokenizers<1'")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; pip install transformers")

OLD = {"GPT-2": GPT2_PATTERN, "Llama 3": PATTERNS["llama3"], "Qwen 2": PATTERNS["qwen2"]}


def old_tokenizer(name: str) -> Any:
    from tokenizers.processors import TemplateProcessing

    plain = Tokenizer(learned("gpt2", SPECIALS)._replace(pattern=OLD[name])).huggingface()
    if name == "Llama 3":
        special_tokens = [("<|e|>", plain.token_to_id("<|e|>"))]
        plain.post_processor = TemplateProcessing(single="<|e|> $A", special_tokens=special_tokens)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|endoftext|>", bos_token="<|e|>")


@pytest.mark.parametrize("name", OLD)
def test_all_files_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    old = old_tokenizer(name)
    theirs = old.train_new_from_iterator([TEXT], 300, show_progress=False)
    ours = train_new_from_iterator(old, [TEXT], 300, show_progress=False)
    assert type(ours) is type(theirs)
    for name, tokenizer in (("ours", ours), ("theirs", theirs)):
        tokenizer.save_pretrained(tmp_path / name)
    mine, other = ({path.name: path.read_text() for path in (tmp_path / name).iterdir()} for name in ("ours", "theirs"))
    assert mine == other


LETTERS = ["ab ", "abcé ", "abcdefgh 12'\n", TEXT]
KEYWORDS: dict[str, list[Any]] = {
    "max_token_length": [0, 1, 2, 3, 4, 5, 8, 16],
    "min_frequency": [0, 1, 2, 4],
    "initial_alphabet": [["a", "é"], list("xyz")],
    "new_special_tokens": [["<x>"]],
    "special_tokens_map": [{"<|endoftext|>": "<eot>"}],
}


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 12)) for seed in range(210)])
def test_random_corpora_give_the_same_file(seed: int) -> None:
    chance = random.Random(seed)
    old = old_tokenizer(chance.choice(list(OLD)))
    letters = chance.choice(LETTERS)
    texts = ["".join(chance.choices(letters, k=chance.randint(0, 200))) for _ in range(chance.randint(1, 30))]
    source: list[Any] = chance.choice((texts, [texts[:5], texts[5:]]))
    keywords = {name: chance.choice(values) for name, values in KEYWORDS.items() if chance.random() < 0.4}
    size = chance.choice([100, 259, 280, 300, 400, 600])
    theirs = old.train_new_from_iterator(iter(source), size, show_progress=False, **keywords)
    ours = train_new_from_iterator(old, iter(source), size, **keywords)
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()


def unread() -> Any:
    pytest.fail("it was read")
    yield ""


@pytest.mark.parametrize(
    ("changes", "keywords", "answer"),
    [
        ({"normalizer": {"type": "NFC"}}, {}, r"it changes the text first \(normalizer NFC\)"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, {}, "its pre-tokenizer is Whitespace"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, {}, "its pre-tokenizer is UnicodeScripts"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}, {}, "its model is WordLevel"),
        ({}, {"limit_alphabet": 40}, "limit_alphabet is not supported here"),
    ],
)
def test_what_would_differ_is_refused_before_anything_is_read(
    changes: dict[str, Any], keywords: dict[str, Any], answer: str
) -> None:
    import tokenizers

    content = {**json.loads(old_tokenizer("GPT-2").backend_tokenizer.to_str()), "added_tokens": [], **changes}
    with pytest.raises(Refusal, match=answer):
        train_new_from_iterator(tokenizers.Tokenizer.from_str(json.dumps(content)), unread(), 300, **keywords)


def test_a_tokenizer_of_tokenizers_gives_one_of_tokenizers() -> None:
    old = old_tokenizer("GPT-2").backend_tokenizer
    new = train_new_from_iterator(old, [TEXT], 300)
    assert (type(new), new.get_vocab_size()) == (type(old), 300)
    with pytest.raises(Refusal, match="Tokenizer is not a fast tokenizer of transformers"):
        train_new_from_iterator(Tokenizer(learned()), unread(), 300)
