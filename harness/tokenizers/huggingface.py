"""tokenizer.json, Hugging Face's form of a tokenizer: written so that it gives our ids, read if it means the same.

Four things must be right, or the file loads and silently encodes otherwise: the pattern is an isolated Split by a Regex
before a ByteLevel without its own pattern; merges are pairs, so that blanks in tokens survive; special tokens are
in the vocabulary as well as in added_tokens, which are otherwise renumbered; `ignore_merges` is false.

tokenizers 1.0 compiles only the patterns that it knows by their text. `_STEPS` has the equal spellings that it loads.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.tokenizers.learned import Learned, checked_ids, json_text, put_together, read_json, spelled
from harness.tokenizers.merges_file import check_model, from_tokenizer_json
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT, own_spellings, pattern_of, to_ruby, type_of

FILE = "tokenizer.json"


def tokenizer_json(learned: Learned) -> bytes:
    """The content of tokenizer.json. Raises Refusal for a tokenizer that the form cannot hold."""
    spellings = {spelled(token) for token in learned.token_ids()}
    if hidden := [text for text in learned.special_tokens if text in spellings]:
        why = f"special token {hidden[0]!r} is spelled like another token, and a spelling has one id there"
        raise Refusal(f"{FILE} cannot hold this tokenizer: {why}")
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
    step = own_spellings().get(pattern) or {**SPLIT, "pattern": {"Regex": to_ruby(pattern)}}
    return step if step["type"] == "ByteLevel" else {"type": "Sequence", "pretokenizers": [step, BYTE_LEVEL]}


def load(path: Path) -> Any:
    """The `tokenizers.Tokenizer` of a file, of whichever version is installed; raises whatever that raises."""
    tokenizer = extra("tokenizers", FILE, "engines").Tokenizer.from_file(str(path))
    tokenizer.encode("a")  # 1.0 compiles a pattern when it first meets a text
    return tokenizer


def opened(learned: Learned) -> Any:
    """The `tokenizers.Tokenizer` of a tokenizer. Raises Refusal if tokenizers is missing or does not load it."""
    content = tokenizer_json(learned)
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        Path(folder, FILE).write_bytes(content)  # tokenizers 1.0 loads from files only
        try:
            return load(Path(folder, FILE))
        except Refusal:
            raise
        except Exception as error:  # whatever the engine raises
            raise Refusal(f"tokenizers does not load it: {error}", UNMEASURED) from error


def read_tokenizer_json(content: bytes) -> Learned:
    """The tokenizer in a tokenizer.json. Raises ValueError if it does what ours cannot."""
    merges = from_tokenizer_json(content)
    file = read_json(content)
    pattern, model = split_by(file), file["model"]
    ids = checked_ids(model.get("vocab"))
    special_tokens = _special_tokens(file.get("added_tokens") or [])
    if clash := [text for text, number in special_tokens.items() if ids.get(text, number) != number]:
        raise ValueError(f"it gives two ids to {clash[0]!r}")
    ids |= special_tokens  # which may be in added_tokens alone
    options = {"ignore_merges": bool(model.get("ignore_merges")), "others": True}
    return put_together(ids, merges, special_tokens, pattern, **options)


def split_by(file: Mapping[str, Any]) -> str | None:
    """The pattern by which a tokenizer.json splits a text. Raises ValueError if it does what ours cannot."""
    model = file["model"]
    check_model(model)
    if file.get("normalizer") is not None:
        raise ValueError(f"it changes the text first (normalizer {type_of(file['normalizer'])}); ours never does")
    for key in ("byte_fallback", "dropout"):
        if model.get(key):
            raise ValueError(f"its {key} is {json.dumps(model[key])}; ours has none")
    return pattern_of(file.get("pre_tokenizer"))


def _special_tokens(added: Any) -> dict[str, int]:
    try:
        tokens = checked_ids({str(token["content"]): token["id"] for token in added})
        particular = [
            (token["content"], key) for token in added for key in ("lstrip", "rstrip", "single_word") if token.get(key)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("its added_tokens lack content or id") from error
    if particular:
        raise ValueError("its added token {!r} has {}, which ours cannot have".format(*particular[0]))
    return tokens
