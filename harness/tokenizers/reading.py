"""A tokenizer in any form, from a folder, a file, or tiktoken's package: told apart by what lies there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.tokenizers import huggingface, ranks
from harness.tokenizers.folder import (
    MANIFEST,
    MERGES,
    VOCAB,
    content_of,
    manifest_in,
    of_one_piece,
    read_described,
    understood,
)
from harness.tokenizers.gpt2_form import read_ids
from harness.tokenizers.learned import Learned, check_special_tokens

OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
SpecialTokens = Sequence[str] | Mapping[str, int] | None


class Found(NamedTuple):
    """A tokenizer and the form that it was read from."""

    learned: Learned
    form: str


def read_tokenizer(
    path: Path | str, pattern: str | EllipsisType | None = ..., special_tokens: SpecialTokens = None
) -> Found:
    """The tokenizer in a folder or a file, or, as `tiktoken:NAME`, one of the tiktoken package.

    `pattern` (a regular expression, or None for raw bytes) and `special_tokens` (texts, of ranks also their ids) are
    for what does not say them: vocab.json with merges.txt, and ranks. Of the forms in a folder the one that says most
    is taken: what the manifest describes, tokenizer.json, vocab.json with merges.txt, ranks.
    Raises Refusal, with what to do, for a file that is missing, damaged, of no form, or not of one piece with others.
    """
    if str(path).startswith(OF_TIKTOKEN):
        _leave_out(str(path), pattern, special_tokens)
        return Found(_of_tiktoken(str(path).removeprefix(OF_TIKTOKEN)), f"an encoding of {OF_TIKTOKEN[:-1]}")
    path = Path(path)
    return _in_folder(path, pattern, special_tokens) if path.is_dir() else _in_file(path, pattern, special_tokens)


def _in_folder(folder: Path, pattern: str | EllipsisType | None, special_tokens: SpecialTokens) -> Found:
    if (told := manifest_in(folder)) is not None:
        _leave_out(str(folder / MANIFEST), pattern, special_tokens)
        return Found(read_described(told), f"what {MANIFEST} describes")
    files = [folder / name for name in (VOCAB, MERGES)]
    from_gpt2 = any(file.is_file() for file in files)
    said = pattern is not ... or special_tokens is not None
    if (folder / huggingface.FILE).is_file() and not (said and from_gpt2):
        return _in_file(folder / huggingface.FILE, pattern, special_tokens)
    rank_files = sorted(folder.glob(f"*{RANKS_ENDING}"))
    if not from_gpt2 and len(rank_files) == 1:
        return _in_file(rank_files[0], pattern, special_tokens)
    if not from_gpt2 and rank_files:
        raise Refusal(f"{folder} holds {len(rank_files)} files of ranks; name one of them")
    contents = {file.name: content_of(file) for file in files}
    if pattern is ...:
        raise Refusal(f"{folder} has no {MANIFEST}; give the pattern and the special tokens that it was made with")
    ids = understood(folder / VOCAB, read_ids, contents[VOCAB])
    for text in special_tokens or ():
        if text not in ids:
            raise Refusal(f"{folder / VOCAB} has no special token {text!r}; name those that it has")
    special_ids = {text: ids[text] for text in special_tokens or ()}
    return Found(of_one_piece(folder, contents, special_ids, pattern), f"{VOCAB} and {MERGES}")


def _in_file(path: Path, pattern: str | EllipsisType | None, special_tokens: SpecialTokens) -> Found:
    content = content_of(path)
    if path.suffix == RANKS_ENDING:
        return Found(_from_ranks(path, content, pattern, special_tokens), "ranks")
    if path.suffix == ".json" and path.name not in (VOCAB, MANIFEST):
        _leave_out(str(path), pattern, special_tokens)
        learned = understood(path, huggingface.read_tokenizer_json, content)
        return Found(learned, huggingface.FILE)
    raise Refusal(
        f"{path} is no tokenizer; name a folder with {VOCAB} and {MERGES}, a {huggingface.FILE}, or a file of ranks "
        f"that ends with {RANKS_ENDING}"
    )


def _from_ranks(
    path: Path, content: bytes, pattern: str | EllipsisType | None, special_tokens: SpecialTokens
) -> Learned:
    if pattern is ...:
        raise Refusal(f"{path} does not say its pattern; give the pattern and the special tokens that it was made with")
    check_special_tokens(special_tokens or ())
    if isinstance(special_tokens, Mapping):
        special_ids = dict(special_tokens)
    elif special_tokens:
        raise Refusal(f"{path} does not say the ids of special tokens; give each as {special_tokens[0]}=ID")
    else:
        special_ids = {}
    return understood(path, lambda ranked: ranks.read_ranks_text(ranked, special_ids, pattern), content)


def _leave_out(what: str, pattern: str | EllipsisType | None, special_tokens: SpecialTokens) -> None:
    if pattern is not ... or special_tokens is not None:
        raise Refusal(f"{what} says the pattern and the special tokens; leave them out")


def _of_tiktoken(name: str) -> Learned:
    """An encoding as tiktoken's package has it; its ranks may have to be in that package's own cache."""
    try:
        import tiktoken
    except ImportError as error:
        raise Refusal(
            f"{OF_TIKTOKEN}{name} needs tiktoken, which is not installed; run python -m pip install tiktoken",
            UNMEASURED,
        ) from error
    if name not in tiktoken.list_encoding_names():
        raise Refusal(f"tiktoken has no encoding {name!r}; there are: {', '.join(tiktoken.list_encoding_names())}")
    try:
        encoding: Any = tiktoken.get_encoding(name)
    except Exception as error:  # whatever its way to the network raises
        raise Refusal(
            f"tiktoken cannot get the ranks of {name} here ({type(error).__name__}); set TIKTOKEN_CACHE_DIR to a "
            "folder that has them, or name a file of ranks",
            UNMEASURED,
        ) from error
    try:
        return ranks.of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)
    except ValueError as error:
        raise Refusal(f"tiktoken's {name} cannot be used: {error}") from error
