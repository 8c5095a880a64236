"""tokenizer.json, Hugging Face's form of a tokenizer: written so that it gives our ids, read where it means the same.

Four things must be as they are here, or the file loads and silently encodes otherwise: the pattern is a Split by a
Regex (a String never matches), isolated, before a ByteLevel without a pattern or a prefix space of its own; merges are
pairs, so that blanks in tokens survive; special tokens stand among the vocabulary as well as in added_tokens, which
are otherwise numbered anew; `ignore_merges` is false.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.tokenizers.dialects import from_ruby, to_ruby
from harness.tokenizers.gpt2_form import json_text, read_json, spelled
from harness.tokenizers.learned import Learned, put_together
from harness.tokenizers.merges_files import from_tokenizer_json
from variants.contract import GPT2_PATTERN

FILE = "tokenizer.json"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT_LIKE_OURS = ({"behavior": "Isolated", "invert": False}, {"behavior": "Removed", "invert": True})


def why_not(learned: Learned) -> str | None:
    """Why the form cannot hold this tokenizer; None if it can."""
    spellings = {spelled(token) for token in learned.token_ids()}
    if hidden := [text for text in learned.special_tokens if text in spellings]:
        return f"special token {hidden[0]!r} is spelled like another token, and {FILE} gives one spelling one id"
    return None


def tokenizer_json(learned: Learned) -> bytes:
    """The content of tokenizer.json. Raises ValueError for a tokenizer that the form cannot hold."""
    if (why := why_not(learned)) is not None:
        raise ValueError(why)
    special = {number: text for text, number in learned.special_tokens.items()}
    vocab = {special.get(number) or spelled(token): number for number, token in sorted(learned.vocab.items())}
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    pre_tokenizers = [BYTE_LEVEL]
    if learned.pattern is not None:
        pre_tokenizers.insert(0, {**split, "pattern": {"Regex": to_ruby(learned.pattern)}})
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return json_text(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": number, "content": text, **flags} for number, text in sorted(special.items())],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers},
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
                "vocab": vocab,
                "merges": [[spelled(left), spelled(right)] for left, right in learned.merges],
            },
        }
    )


def read_tokenizer_json(content: bytes) -> Learned:
    """The tokenizer that a tokenizer.json describes. Raises ValueError where it does what ours cannot."""
    merges = from_tokenizer_json(content)
    file = read_json(content)
    model = file["model"]
    if file.get("normalizer") is not None:
        raise ValueError(f"it changes the text first (normalizer {_type(file['normalizer'])}); ours never does")
    for key in ("byte_fallback", "dropout"):
        if model.get(key):
            raise ValueError(f"its {key} is {json.dumps(model[key])}; ours has none")
    ids = model.get("vocab")
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise ValueError("its model.vocab does not map tokens to ids")
    special_tokens = _special_tokens(file.get("added_tokens") or [])
    # A special token that the vocabulary lacks as well has its id from added_tokens alone.
    listed = {**ids, **special_tokens}
    if clash := [text for text, number in special_tokens.items() if ids.get(text, number) != number]:
        raise ValueError(f"it gives two ids to {clash[0]!r}")
    return put_together(
        listed,
        merges,
        special_tokens,
        _pattern(file.get("pre_tokenizer")),
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


def _pattern(pre_tokenizer: Any) -> str | None:
    """What splits the text, as one pattern of ours; None if nothing does."""
    steps = _steps(pre_tokenizer)
    last = steps[-1] if steps else None
    if last is None or _type(last) != "ByteLevel":
        raise ValueError(f"its pre-tokenizer is {_type(last)}, not ByteLevel in the end")
    if last.get("add_prefix_space", True):
        raise ValueError("it puts a blank before the text (add_prefix_space); ours never does")
    patterns = [_split(step) for step in steps[:-1]]
    if last.get("use_regex", True):
        patterns.append(GPT2_PATTERN)
    if len(patterns) > 1:
        raise ValueError(f"it splits by {len(patterns)} patterns one after another; ours has one")
    return patterns[0] if patterns else None


def _steps(pre_tokenizer: Any) -> list[Any]:
    if isinstance(pre_tokenizer, Mapping) and pre_tokenizer.get("type") == "Sequence":
        return [step for each in pre_tokenizer.get("pretokenizers") or [] for step in _steps(each)]
    return [] if pre_tokenizer is None else [pre_tokenizer]


def _split(step: Any) -> str:
    pattern = step.get("pattern") if _type(step) == "Split" else None
    if not isinstance(pattern, Mapping) or not isinstance(pattern.get("Regex"), str):
        raise ValueError(f"its pre-tokenizer {_type(step)} is no Split by a Regex")
    how = {key: step.get(key, False) for key in ("behavior", "invert")}
    if how not in SPLIT_LIKE_OURS:
        raise ValueError(f"its Split is {json.dumps(how)}; ours keeps every match as a pre-token")
    return from_ruby(pattern["Regex"])


def _type(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, Mapping) else json.dumps(part)
