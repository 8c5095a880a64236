"""The forms of a tokenizer: tokenizer.json, tiktoken's ranks and what a folder holds, read, written and opened.

A form that is written gives our ids, and one that is read means the same here; anything else is refused by name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import EllipsisType
from typing import Any, TypeVar

from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.units import token_text
from harness.tokenizers.learned import (
    BYTES,
    Learned,
    check_special_tokens,
    checked_ids,
    json_text,
    last_merges,
    merges_behind,
    put_together,
    read_json,
    spelled,
)
from harness.tokenizers.merges_file import check_model, from_tokenizer_json, read_merges, read_ranks
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT, own_spellings, pattern_of, to_ruby, type_of

SCHEMA = 1
VOCAB, MERGES, MANIFEST = "vocab.json", "merges.txt", "manifest.json"
TOKENIZER_JSON, RANKS = "tokenizer.json", "ranks.tiktoken"
ORIGIN = ("vocab_size_asked", "tie_break", "min_count", "variant", "data", "inherited_merges", "cut_from")
"""The keys of a manifest that tell where a tokenizer comes from."""
OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
Pattern = str | EllipsisType | None
SpecialTokens = Sequence[str] | Mapping[str, int] | None
Origin = dict[str, Any]
Value = TypeVar("Value")
ANYTHING = "(?s:.+)"
"""Stands for no pattern, because tiktoken must have one."""

# tokenizer.json, Hugging Face's form.
#
# Four things must be right, or the file loads and silently encodes otherwise: the pattern is an isolated Split by a
# Regex before a ByteLevel without its own pattern; merges are pairs, so that blanks in tokens survive; special tokens
# are in the vocabulary as well as in added_tokens, which are otherwise renumbered; `ignore_merges` is false.
# tokenizers 1.0 compiles only the patterns that it knows by their text.


def tokenizer_json(learned: Learned) -> bytes:
    """The content of tokenizer.json. Raises Refusal for a tokenizer that the form cannot hold."""
    spellings = {spelled(token) for token in learned.token_ids()}
    if hidden := [text for text in learned.special_tokens if text in spellings]:
        why = f"special token {hidden[0]!r} is spelled like another token, and a spelling has one id there"
        raise Refusal(f"{TOKENIZER_JSON} cannot hold this tokenizer: {why}")
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


def load_tokenizers(path: Path) -> Any:
    """The `tokenizers.Tokenizer` of a file, of whichever version is installed; raises whatever that raises."""
    tokenizer = extra("tokenizers", TOKENIZER_JSON, "engines").Tokenizer.from_file(str(path))
    tokenizer.encode("a")  # 1.0 compiles a pattern when it first meets a text
    return tokenizer


def as_tokenizers(learned: Learned) -> Any:
    """The `tokenizers.Tokenizer` of a tokenizer. Raises Refusal if tokenizers is missing or does not load it."""
    content = tokenizer_json(learned)
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        Path(folder, TOKENIZER_JSON).write_bytes(content)  # tokenizers 1.0 loads from files only
        try:
            return load_tokenizers(Path(folder, TOKENIZER_JSON))
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


# tiktoken's ranks: a line for each token, in base64, with its rank, which is its id; the pattern is elsewhere.
#
# tiktoken joins two neighbours by the rank of their result, whichever two they are, and takes a whole pre-token that is
# a token at once. We and Hugging Face make the merge that was learned. Both agree on every text if and only if ids are
# in the order of merges and the bytes of each token alone become that token: what is between two boundaries of a text
# merges as it does alone, so no other two parts of a token are ever neighbours there.


def why_not(learned: Learned) -> str | None:
    """Why tiktoken would not give the same ids; None if it gives them on every text."""
    ids = learned.token_ids()
    by_rank = [ids[left + right] for left, right in learned.merges]
    if any(later < earlier for earlier, later in pairwise(by_rank)):
        return "the ids of its tokens are not in the order of its merges, and tiktoken merges in the order of ids"
    last = last_merges(learned.merges, sorted((token for token in ids if len(token) > 1), key=ids.__getitem__))
    if learned.ignore_merges:
        same = [*last.values()] == merges_behind(ids)
        return None if same else "its merges make other tokens than its ids' order does"
    if dead := [token for token in ids if len(token) > 1 and token not in last]:
        return (
            "tiktoken merges by the rank of the result, not of the two tokens, and would use tokens that its merges "
            f"never make, such as {token_text(dead[0], 60)}"
        )
    return None


def ranks_text(learned: Learned) -> bytes:
    """The content of the file of ranks. Raises Refusal for a tokenizer with which tiktoken gives other ids."""
    if (why := why_not(learned)) is not None:
        raise Refusal(f"{RANKS} cannot hold this tokenizer: {why}")
    by_id = sorted(learned.token_ids().items(), key=lambda entry: entry[1])
    return b"".join(base64.b64encode(token) + f" {number}\n".encode() for token, number in by_id)


def as_tiktoken(learned: Learned) -> Any:
    """The `tiktoken.Encoding` of a tokenizer. Raises Refusal if tiktoken is missing or would give other ids."""
    ranks_text(learned)
    return tiktoken_encoding(learned.token_ids(), learned.special_tokens, learned.pattern)


def tiktoken_encoding(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Any:
    """tiktoken's own object. Raises Refusal if tiktoken is missing."""
    return extra("tiktoken", RANKS, "engines").Encoding(
        "ours",
        pat_str=ANYTHING if pattern is None else pattern,
        mergeable_ranks=dict(ranks),
        special_tokens=dict(special_tokens),
    )


def of_ranks(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The tokenizer of ranks, special tokens and a pattern. Raises ValueError if they do not fit each other.

    A token that merging by rank never makes is met only as a whole pre-token; then `ignore_merges` is true.
    """
    numbered = {number: token for token, number in ranks.items()}
    if taken := [text for text, number in special_tokens.items() if number in numbered]:
        number = special_tokens[taken[0]]
        raise ValueError(f"special token {taken[0]!r} has the id {number} of {token_text(numbered[number])}")
    vocab = {**numbered, **{number: text.encode() for text, number in special_tokens.items()}}
    if len(vocab) < len(numbered) + len(special_tokens):
        raise ValueError("two special tokens have the same id")
    merges = merges_behind(ranks)
    unmade = len(merges) < len(ranks) - len(BYTES)
    return Learned(dict(sorted(vocab.items())), merges, dict(special_tokens), pattern, unmade)


def of_tiktoken(name: str) -> Learned:
    """An encoding of the tiktoken package, whose ranks may have to be in that package's own cache."""
    tiktoken = extra("tiktoken", f"tiktoken:{name}", "engines")
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise Refusal(f"tiktoken has no encoding {name!r}; there are: {', '.join(names)}")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # whatever its way to the network raises
        raise Refusal(
            f"tiktoken cannot get the ranks of {name} here ({type(error).__name__}); set TIKTOKEN_CACHE_DIR to a "
            "folder that has them, or pass a file of ranks",
            UNMEASURED,
        ) from error
    return of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)


# A folder or a file


def read_tokenizer(path: Path | str, pattern: Pattern, special_tokens: SpecialTokens) -> tuple[Learned, Origin]:
    """The tokenizer that `model.load` gives, and what its manifest says about the training."""
    options = pattern is not ... or special_tokens is not None
    if str(path).startswith(OF_TIKTOKEN) and not options:
        return of_tiktoken(str(path).removeprefix(OF_TIKTOKEN)), {}
    file = _file_of(Path(path))
    lacking = file.name == VOCAB or file.suffix == RANKS_ENDING
    if options and not lacking:
        raise Refusal(f"{file} contains the pattern and the special tokens; leave them out")
    content_of(file)  # a file that is missing is reported as such
    if lacking and pattern is ...:
        advice = "python -m harness.tokenizer convert --to ours takes --pattern and --special-token (so does load)"
        raise Refusal(f"{file} lacks its pattern; {advice}")
    if file.name == VOCAB:
        return _of_gpt2(file.parent, pattern, special_tokens), {}
    if file.suffix == RANKS_ENDING:
        return _of_ranks(file, pattern, special_tokens), {}
    if file.name == MANIFEST:
        return _described(file)
    if file.suffix == ".json":
        return parse(file, read_tokenizer_json), {}
    raise Refusal(
        f"{file} is not a tokenizer; pass a folder with {VOCAB} and {MERGES}, a {TOKENIZER_JSON}, or a file of ranks "
        f"that ends with {RANKS_ENDING}"
    )


def _file_of(path: Path) -> Path:
    """The file itself, or the most complete one in a folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in (MANIFEST, TOKENIZER_JSON) if (path / name).is_file()), path / VOCAB)


def _of_gpt2(folder: Path, pattern: Any, special_tokens: SpecialTokens, **options: bool) -> Learned:
    """The tokenizer that vocab.json and merges.txt make with pattern and special tokens; options of `put_together`."""
    ids = parse(folder / VOCAB, lambda content: checked_ids(read_json(content)))
    merges = parse(folder / MERGES, read_merges)
    check_special_tokens(special_tokens or ())
    if not isinstance(special_tokens, Mapping):
        if missing := [text for text in special_tokens or () if text not in ids]:
            raise Refusal(f"{folder / VOCAB} has no special token {missing[0]!r}; pass those that it has")
        special_tokens = {text: ids[text] for text in special_tokens or ()}
    try:
        return put_together(ids, merges, special_tokens, pattern, **options)
    except ValueError as error:
        raise unusable(folder / VOCAB, str(error)) from error


def _of_ranks(path: Path, pattern: Any, special_tokens: SpecialTokens) -> Learned:
    check_special_tokens(special_tokens or ())
    if special_tokens and not isinstance(special_tokens, Mapping):
        raise Refusal(f"{path} lacks the ids of special tokens; give each as {special_tokens[0]}=ID")
    special_ids = special_tokens if isinstance(special_tokens, Mapping) else {}
    return parse(path, lambda content: of_ranks(read_ranks(content), special_ids, pattern))


def _described(path: Path) -> tuple[Learned, Origin]:
    """What a manifest describes. Raises Refusal if it is damaged, or a file is not the one that it describes."""
    folder, content = path.parent, parse(path, read_json)
    if content.get("schema") != SCHEMA:
        raise unusable(path, f"its schema is {content.get('schema')}, this program reads {SCHEMA}")
    try:
        digests = dict(content["files"])
        special_tokens = checked_ids({str(token["text"]): token["id"] for token in content["special_tokens"]})
        pattern = content["pattern"]["regex"]
    except (KeyError, TypeError, ValueError) as error:
        raise unusable(path, "it lacks digests, special tokens or a pattern") from error
    has_gpt2 = VOCAB in digests or RANKS not in digests
    for name in (VOCAB, MERGES) if has_gpt2 else (RANKS,):
        if sha256(content_of(folder / name)) != digests.get(name):
            raise unusable(folder / name, f"it is not the file that {MANIFEST} describes")
    if has_gpt2:
        options = {"ignore_merges": content.get("ignore_merges", False) is True, "others": True}
        learned = _of_gpt2(folder, pattern, special_tokens, **options)
    else:
        learned = _of_ranks(folder / RANKS, pattern, special_tokens)
    return learned, {key: value for key, value in content.items() if key in ORIGIN}


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        advice = "python -m harness.tokenizer train or save=FOLDER writes a tokenizer"
        raise Refusal(f"cannot read {path} ({reason(error)}); {advice}", UNMEASURED) from error


def parse(path: Path, reader: Callable[[bytes], Value]) -> Value:
    """What a reader makes of a file. Raises Refusal, with the reader's reason, if it cannot be used."""
    content = content_of(path)
    try:
        return reader(content)
    except ValueError as error:
        raise unusable(path, str(error)) from error


def unusable(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} cannot be used: {why}; save the tokenizer again", UNMEASURED)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
