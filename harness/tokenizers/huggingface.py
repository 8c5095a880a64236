"""tokenizer.json, Hugging Face's form of a tokenizer: written so that it gives our ids, read if it means the same.

Four things must be right, or the file loads and silently encodes otherwise: the pattern is an isolated Split by a Regex
before a ByteLevel without a pattern of its own; merges are pairs, so that blanks in tokens survive; special tokens are
in the vocabulary as well as in added_tokens, which are otherwise renumbered; `ignore_merges` is false.

tokenizers 1.0 compiles only the patterns that it knows by their text. `_STEPS` has the equal spellings that it loads.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.tokenizers.learned import Learned, checked_ids, json_text, put_together, read_json, spelled
from harness.tokenizers.merges_file import from_tokenizer_json
from variants.contract import GPT2_PATTERN

FILE = "tokenizer.json"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
SPLIT_LIKE_OURS = ({"behavior": "Isolated", "invert": False}, {"behavior": "Removed", "invert": True})
LLAMA_3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Matches what GPT-4's does, at every place."""


@functools.cache
def _steps() -> dict[str, dict[str, Any]]:
    """The pre-tokenizers of patterns whose own text not every engine loads."""
    cards = registry.cards("pattern")
    return {
        GPT2_PATTERN: {**BYTE_LEVEL, "use_regex": True},
        cards["gpt4"]["regex"]: {**SPLIT, "pattern": {"Regex": LLAMA_3_PATTERN}},
        cards["line"]["regex"]: {**SPLIT, "pattern": {"String": "\n"}, "behavior": "MergedWithPrevious"},
    }


def tokenizer_json(learned: Learned) -> bytes:
    """The content of tokenizer.json. Raises ValueError for a tokenizer that the form cannot hold."""
    spellings = {spelled(token) for token in learned.token_ids()}
    if hidden := [text for text in learned.special_tokens if text in spellings]:
        raise ValueError(
            f"special token {hidden[0]!r} is spelled like another token, and {FILE} gives one spelling one id"
        )
    special = {number: text for text, number in learned.special_tokens.items()}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return json_text(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": number, "content": text, **flags} for number, text in sorted(special.items())],
            "normalizer": None,
            "pre_tokenizer": _pre_tokenizer(learned.pattern),
            "post_processor": None,
            "decoder": BYTE_LEVEL,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": learned.ignore_merges,
                "vocab": {special.get(id) or spelled(token): id for id, token in sorted(learned.vocab.items())},
                "merges": [[spelled(left), spelled(right)] for left, right in learned.merges],
            },
        }
    )


def _pre_tokenizer(pattern: str | None) -> dict[str, Any]:
    if pattern is None:
        return {"type": "Sequence", "pretokenizers": [BYTE_LEVEL]}
    step = _steps().get(pattern) or {**SPLIT, "pattern": {"Regex": to_ruby(pattern)}}
    return step if step["type"] == "ByteLevel" else {"type": "Sequence", "pretokenizers": [step, BYTE_LEVEL]}


def opened(learned: Learned) -> Any:
    """The `tokenizers.Tokenizer` of a tokenizer. Raises Refusal if tokenizers is missing or does not load it."""
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError as error:
        raise Refusal("tokenizers is not installed; run python -m pip install tokenizers", UNMEASURED) from error
    try:
        content = tokenizer_json(learned)
    except ValueError as error:
        raise Refusal(f"{FILE} cannot hold this tokenizer: {error}") from error
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        Path(folder, FILE).write_bytes(content)  # tokenizers 1.0 loads from files only
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(Path(folder, FILE)))
            tokenizer.encode("a")  # 1.0 compiles a pattern when it first meets a text
        except Exception as error:  # whatever the engine raises
            raise Refusal(f"tokenizers {tokenizers.__version__} does not load it: {error}", UNMEASURED) from error
    return tokenizer


def read_tokenizer_json(content: bytes) -> Learned:
    """The tokenizer in a tokenizer.json. Raises ValueError if it does what ours cannot."""
    merges = from_tokenizer_json(content)
    file = read_json(content)
    model = file["model"]
    if file.get("normalizer") is not None:
        raise ValueError(f"it changes the text first (normalizer {_type(file['normalizer'])}); ours never does")
    for key in ("byte_fallback", "dropout"):
        if model.get(key):
            raise ValueError(f"its {key} is {json.dumps(model[key])}; ours has none")
    ids = checked_ids(model.get("vocab"))
    special_tokens = _special_tokens(file.get("added_tokens") or [])
    if clash := [text for text, number in special_tokens.items() if ids.get(text, number) != number]:
        raise ValueError(f"it gives two ids to {clash[0]!r}")
    return put_together(
        {**ids, **special_tokens},  # a special token may be in added_tokens alone
        merges,
        special_tokens,
        pattern_of(file.get("pre_tokenizer")),
        ignore_merges=bool(model.get("ignore_merges")),
        others=True,
    )


def _special_tokens(added: Any) -> dict[str, int]:
    try:
        tokens = {str(token["content"]): int(token["id"]) for token in added}
        particular = [
            (token["content"], key) for token in added for key in ("lstrip", "rstrip", "single_word") if token.get(key)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("its added_tokens lack content or id") from error
    if particular:
        raise ValueError("its added token {!r} has {}, which ours cannot have".format(*particular[0]))
    return tokens


def pattern_of(pre_tokenizer: Any) -> str | None:
    """The one pattern that splits the text; None if nothing does."""
    steps = _flat(pre_tokenizer)
    last = steps[-1] if steps else None
    if last is None or _type(last) != "ByteLevel":
        raise ValueError(f"its pre-tokenizer is {_type(last)}; the last one must be ByteLevel")
    if last.get("add_prefix_space", True):
        raise ValueError("it puts a blank before the text (add_prefix_space); ours never does")
    patterns = [_split(step) for step in steps[:-1]]
    if last.get("use_regex", True):
        patterns.append(GPT2_PATTERN)
    if len(patterns) > 1:
        raise ValueError(f"it splits by {len(patterns)} patterns one after another; ours has one")
    return patterns[0] if patterns else None


def _flat(pre_tokenizer: Any) -> list[Any]:
    if isinstance(pre_tokenizer, Mapping) and pre_tokenizer.get("type") == "Sequence":
        return [step for each in pre_tokenizer.get("pretokenizers") or [] for step in _flat(each)]
    return [] if pre_tokenizer is None else [pre_tokenizer]


def _split(step: Any) -> str:
    if (known := next((pattern for pattern, spelling in _steps().items() if step == spelling), None)) is not None:
        return known
    pattern = step.get("pattern") if _type(step) == "Split" else None
    if not isinstance(pattern, Mapping) or not isinstance(pattern.get("Regex"), str):
        raise ValueError(f"its pre-tokenizer {_type(step)} is not a Split by a Regex")
    how = {key: step.get(key, False) for key in ("behavior", "invert")}
    if how not in SPLIT_LIKE_OURS:
        raise ValueError(f"its Split is {json.dumps(how)}; ours keeps every match as a pre-token")
    return from_ruby(pattern["Regex"])


def _type(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, Mapping) else json.dumps(part)


# Dialects: our patterns are written for Python's `regex`, tokenizers 0.x compiles them with Oniguruma's Ruby.
# What only one of them knows goes through unchanged; `check` compares the ids.

_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?[a-z]+(?:-[a-z]+)?[:)]|[$^]|.", re.DOTALL)
"""An escape, a class, a group with flags, an anchor, or any other character of a pattern."""

_TO_RUBY = {"$": r"\Z", "^": r"\A", r"\Z": r"\z"}
_FROM_RUBY = {"$": "(?m:$)", "^": "(?m:^)", r"\Z": "$", r"\z": r"\Z", r"\h": "[0-9a-fA-F]"}


def to_ruby(pattern: str) -> str:
    r"""The pattern for Oniguruma: there the dot that matches a line's end is (?m:.), and $ ends any line.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$"))
    (?m:.+)\Z|[$^]\$
    """
    return _rewritten(pattern, _TO_RUBY, {"s": "m"})


def from_ruby(pattern: str) -> str:
    r"""The reverse.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|$)"))
    (?s:.+)\Z|(?i:'s|(?m:$))
    """
    return _rewritten(pattern, _FROM_RUBY, {"m": "s"})


def _rewritten(pattern: str, signs: Mapping[str, str], flags: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith("(?"):
            return "".join(flags.get(letter, letter) for letter in text)
        return signs.get(text, text)

    return _PART.sub(part, pattern)
