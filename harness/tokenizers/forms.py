"""Read a tokenizer of any form from a folder, a file or tiktoken's package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, TypeVar

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.tokenizers import huggingface, tiktoken
from harness.tokenizers.folder import MANIFEST, MERGES, SCHEMA, VOCAB, sha256
from harness.tokenizers.learned import Learned, check_special_tokens, checked_ids, put_together, read_json
from harness.tokenizers.merges_file import read_merges, read_ranks
from harness.tokenizers.model import Tokenizer

ORIGIN = ("vocab_size_asked", "tie_break", "min_count", "variant", "data", "inherited_merges", "cut_from")
"""The keys of a manifest that tell where a tokenizer comes from."""
OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
Pattern = str | EllipsisType | None
SpecialTokens = Sequence[str] | Mapping[str, int] | None
Value = TypeVar("Value")


def load(path: Path | str, *, pattern: Pattern = ..., special_tokens: SpecialTokens = None) -> Tokenizer:
    """The tokenizer in a folder or a file: saved here, a tokenizer.json, vocab.json with merges.txt, tiktoken's ranks.

    `tiktoken:NAME` is an encoding of the tiktoken package. vocab.json with merges.txt, and ranks, lack their pattern
    and special tokens; pass `pattern` (a regular expression, or None for raw bytes) and, if there are any,
    `special_tokens`: their texts, or for ranks a mapping from text to id. Of several forms in a folder the most
    complete is read: what the manifest describes, tokenizer.json, vocab.json with merges.txt.
    Raises Refusal, with what to do, for a file that is missing, damaged, of no form, or does not fit the others.
    """
    of_package = str(path).startswith(OF_TIKTOKEN)
    file = Path(path) if of_package else _file_of(Path(path))
    lacking = not of_package and (file.name == VOCAB or file.suffix == RANKS_ENDING)
    if not lacking and (pattern is not ... or special_tokens is not None):
        raise Refusal(f"{file} contains the pattern and the special tokens; leave them out")
    if of_package:
        return Tokenizer(tiktoken.of_package(str(path).removeprefix(OF_TIKTOKEN)))
    content_of(file)  # a file that is missing is reported as such
    if lacking and pattern is ...:
        advice = "python -m harness.tokenizer convert --to ours takes --pattern and --special-token (so does load)"
        raise Refusal(f"{file} lacks its pattern; {advice}")
    if file.name == VOCAB:
        return Tokenizer(_of_gpt2(file.parent, pattern, special_tokens))
    if file.suffix == RANKS_ENDING:
        return Tokenizer(_of_ranks(file, pattern, special_tokens))
    if file.name == MANIFEST:
        return _described(file)
    if file.suffix == ".json":
        return Tokenizer(parse(file, huggingface.read_tokenizer_json))
    raise Refusal(
        f"{file} is not a tokenizer; pass a folder with {VOCAB} and {MERGES}, a {huggingface.FILE}, or a file of ranks "
        f"that ends with {RANKS_ENDING}"
    )


def _file_of(path: Path) -> Path:
    """The file itself, or the most complete one in a folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in (MANIFEST, huggingface.FILE) if (path / name).is_file()), path / VOCAB)


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
    return parse(path, lambda content: tiktoken.of_ranks(read_ranks(content), special_ids, pattern))


def _described(path: Path) -> Tokenizer:
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
    has_gpt2 = VOCAB in digests or tiktoken.FILE not in digests
    for name in (VOCAB, MERGES) if has_gpt2 else (tiktoken.FILE,):
        if sha256(content_of(folder / name)) != digests.get(name):
            raise unusable(folder / name, f"it is not the file that {MANIFEST} describes")
    if has_gpt2:
        options = {"ignore_merges": content.get("ignore_merges", False) is True, "others": True}
        learned = _of_gpt2(folder, pattern, special_tokens, **options)
    else:
        learned = _of_ranks(folder / tiktoken.FILE, pattern, special_tokens)
    return Tokenizer(learned, {key: value for key, value in content.items() if key in ORIGIN})


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
