"""`train_new_from_iterator` of transformers for byte-level BPE tokenizers: the same tokenizer.json, trained here."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterable
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.tokenizers.learned import spelled
from harness.tokenizers.pre_tokenizer import pattern_of
from harness.tokenizers.training import count_documents, learn
from variants.contract import Corpus, TieBreak

MODEL_PARTS = ("continuing_subword_prefix", "end_of_word_suffix", "dropout", "byte_fallback")
UNSUPPORTED = ("limit_alphabet", "continuing_subword_prefix", "end_of_word_suffix")


def train_new_from_iterator(
    old: Any, iterator: Iterable[Any], vocab_size: int, *, threads: int = 1, **keywords: Any
) -> Any:
    """A tokenizer of the class and settings of `old`, trained on documents or batches of them.

    `old` is a byte-level BPE tokenizer of transformers or a `tokenizers.Tokenizer`; the keywords are those of
    transformers (`new_special_tokens`, `special_tokens_map`, `min_frequency` and so on). The vocabulary, the merges and
    the special tokens are those that transformers gives.
    Raises Refusal, before anything is read, for a tokenizer or a keyword that it cannot reproduce.
    """
    transformers = with_trainers()
    is_plain = type(old).__module__.partition(".")[0] == "tokenizers"
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=old) if is_plain else old
    if not hasattr(wrapped, "train_new_from_iterator"):
        raise Refusal(f"{type(old).__name__} is not a fast tokenizer of transformers or a tokenizers.Tokenizer")
    pattern = reproducible_pattern(json.loads(wrapped.backend_tokenizer.to_str()), keywords)
    # Trained on nothing, it has everything but the merges: special tokens, the 256 bytes, the class and its settings.
    new = wrapped.train_new_from_iterator([], vocab_size, **keywords)
    content = json.loads(new.backend_tokenizer.to_str())
    vocab, merges = content["model"]["vocab"], content["model"]["merges"]
    words = count_documents(iterator, Corpus("documents", (), pattern), threads)
    if (room := vocab_size - len(vocab)) > 0:
        options: dict[str, Any] = {"min_count": max(1, keywords.get("min_frequency", 0)), "threads": threads}
        if (longest := keywords.get("max_token_length")) is not None:
            options["veto"] = functools.partial(too_long, longest)
        for left, right in learn(words, room, tie_break=TieBreak.HUGGINGFACE, **options):
            token = spelled(left + right)
            if token in vocab:
                raise Refusal(f"a merge makes the special token {token!r}, which transformers numbers differently")
            vocab[token] = len(vocab)
            merges.append([spelled(left), spelled(right)])
    new._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(json.dumps(content))
    return new.backend_tokenizer if is_plain else new


def too_long(longest: int, left: bytes, right: bytes) -> bool:
    """Whether Hugging Face's trainer refuses the pair: all below the length, and two single bytes, may be merged.

    >>> too_long(3, b"a", b"b"), too_long(3, b"ab", b"c"), too_long(1, b"a", b"b")
    (False, True, False)
    """
    return 2 < len(left + right) >= longest


def with_trainers() -> Any:
    """transformers, with a version of tokenizers that has trainers."""
    try:
        importlib.import_module("tokenizers.trainers")
        return importlib.import_module("transformers")
    except ImportError as error:
        raise Refusal(
            "train_new_from_iterator needs transformers and tokenizers<1; run python -m pip install transformers "
            "'tokenizers<1'",
            UNMEASURED,
        ) from error


def reproducible_pattern(content: dict[str, Any], keywords: dict[str, Any]) -> str | None:
    """The pattern of a tokenizer.json. Raises Refusal if it, or a keyword, makes training differ from ours."""
    for name in UNSUPPORTED:
        if keywords.get(name) is not None:
            raise Refusal(f"{name} is not supported here; leave it out, or use transformers' own training")
    model = content["model"]
    if model["type"] != "BPE":
        raise Refusal(f"its model is {model['type']}; only byte-level BPE can be trained here")
    if content.get("normalizer") is not None:
        raise Refusal(f"it has a normalizer ({content['normalizer']['type']}); only tokenizers without one are trained")
    for name in MODEL_PARTS:
        if model.get(name):
            raise Refusal(f"its {name} is {model[name]!r}; only tokenizers without it are trained")
    try:
        return pattern_of(content.get("pre_tokenizer"))
    except ValueError as error:
        raise Refusal(f"it cannot be trained here: {error}") from error
