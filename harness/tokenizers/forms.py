"""Read a tokenizer of any form from a folder, a file or tiktoken's package, and write it in any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

from harness.common.errors import Refusal
from harness.common.units import count_text, token_text
from harness.tokenizers import huggingface, tiktoken
from harness.tokenizers.folder import (
    FILES,
    MANIFEST,
    MERGES,
    VOCAB,
    check_free,
    content_of,
    gpt2_contents,
    manifest,
    manifest_in,
    of_gpt2_files,
    parse,
    place,
    read_ids,
    write,
)
from harness.tokenizers.learned import Learned, check_special_tokens
from harness.tokenizers.merges_file import read_ranks
from harness.tokenizers.model import pattern_name

FORMS = {
    "ours": "ours: every file that save=FOLDER writes",
    "gpt2": "gpt2: vocab.json and merges.txt",
    "huggingface": "huggingface: tokenizer.json",
    "tiktoken": "tiktoken: ranks.tiktoken, with pattern and special tokens in manifest.json",
}
FILES_OF = {
    "ours": FILES,
    "gpt2": (VOCAB, MERGES),
    "huggingface": (huggingface.FILE,),
    "tiktoken": (tiktoken.FILE, MANIFEST),
}
OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
Pattern = str | EllipsisType | None
SpecialTokens = Sequence[str] | Mapping[str, int] | None


class TokenizerFile(NamedTuple):
    """A tokenizer, the form it was read from, and what its manifest says about the training."""

    learned: Learned
    form: str
    origin: Mapping[str, Any] = {}


def read_tokenizer(path: Path | str, pattern: Pattern = ..., special_tokens: SpecialTokens = None) -> TokenizerFile:
    """The tokenizer in a folder or a file, or, as `tiktoken:NAME`, one of the tiktoken package.

    `pattern` (a regular expression, or None for raw bytes) and `special_tokens` (texts, for ranks with ids) are for
    forms that lack them: vocab.json with merges.txt, and ranks. Of several forms in a folder the most complete is read:
    what the manifest describes, tokenizer.json, vocab.json with merges.txt, ranks.
    Raises Refusal, with what to do, for a file that is missing, damaged, of no form, or does not fit the others.
    """
    options = pattern is not ... or special_tokens is not None
    if str(path).startswith(OF_TIKTOKEN):
        _refuse_if(options, str(path))
        return TokenizerFile(tiktoken.of_package(str(path).removeprefix(OF_TIKTOKEN)), "an encoding of tiktoken")
    path = Path(path)
    if path.is_dir():
        if (described := manifest_in(path)) is not None:
            _refuse_if(options, str(path / MANIFEST))
            return TokenizerFile(described.learned(), f"what {MANIFEST} describes", described.origin)
        path = _best_form(path, options)
    if path.is_dir():
        return _of_gpt2(path, pattern, special_tokens)
    if path.suffix == RANKS_ENDING:
        return TokenizerFile(_of_ranks(path, pattern, special_tokens), "ranks")
    if path.suffix == ".json" and path.name not in (VOCAB, MANIFEST):
        _refuse_if(options, str(path))
        return TokenizerFile(parse(path, huggingface.read_tokenizer_json), huggingface.FILE)
    content_of(path)  # a file that is missing is reported as such
    raise Refusal(
        f"{path} is not a tokenizer; name a folder with {VOCAB} and {MERGES}, a {huggingface.FILE}, or a file of ranks "
        f"that ends with {RANKS_ENDING}"
    )


def _best_form(folder: Path, options: bool) -> Path:
    """A file in the folder, or the folder itself if vocab.json and merges.txt are the best it has."""
    has_gpt2 = any((folder / name).is_file() for name in (VOCAB, MERGES))
    if (folder / huggingface.FILE).is_file() and not (options and has_gpt2):
        return folder / huggingface.FILE
    rank_files = sorted(folder.glob(f"*{RANKS_ENDING}"))
    if has_gpt2 or not rank_files:
        return folder
    if len(rank_files) > 1:
        raise Refusal(f"{folder} has {len(rank_files)} files of ranks; name one of them")
    return rank_files[0]


def _refuse_if(options: bool, what: str) -> None:
    if options:
        raise Refusal(f"{what} contains the pattern and the special tokens; leave them out")


def _of_gpt2(folder: Path, pattern: Pattern, special_tokens: SpecialTokens) -> TokenizerFile:
    ids = parse(folder / VOCAB, read_ids)
    if pattern is ...:
        raise Refusal(f"{folder} has no {MANIFEST}; give the pattern and the special tokens that it was made with")
    for text in special_tokens or ():
        if text not in ids:
            raise Refusal(f"{folder / VOCAB} has no special token {text!r}; name those that it has")
    special_ids = {text: ids[text] for text in special_tokens or ()}
    return TokenizerFile(of_gpt2_files(folder, special_ids, pattern), f"{VOCAB} and {MERGES}")


def _of_ranks(path: Path, pattern: Pattern, special_tokens: SpecialTokens) -> Learned:
    if pattern is ...:
        raise Refusal(f"{path} lacks its pattern; give the pattern and the special tokens that it was made with")
    check_special_tokens(special_tokens or ())
    if special_tokens and not isinstance(special_tokens, Mapping):
        raise Refusal(f"{path} lacks the ids of special tokens; give each as {special_tokens[0]}=ID")
    special_ids = dict(special_tokens) if isinstance(special_tokens, Mapping) else {}
    return parse(path, lambda content: tiktoken.of_ranks(read_ranks(content), special_ids, pattern))


def convert(source: TokenizerFile, form: str, folder: Path, overwrite: bool) -> list[str]:
    """Write a tokenizer in a form; returns the names of the files and notes about them.

    A manifest that describes the same tokenizer stays as it is. Raises Refusal, before anything is written, if the form
    cannot hold the tokenizer or if a file is in its place.
    """
    learned, files, name = source.learned, FILES_OF[form], pattern_name(source.learned.pattern)
    if form == "tiktoken" and (described := manifest_in(folder)) is not None and described.learned() == learned:
        files = (tiktoken.FILE,)
    check_free(folder, overwrite, files, how="--overwrite")
    if form == "ours":
        origin = {"data": {"name": None, "sha256": None}, "read_from": source.form}
        notes = write(folder, learned, name, origin)
    else:
        contents, notes = _contents(learned, form)
        if MANIFEST in files:
            contents[MANIFEST] = manifest(learned, name, {"read_from": source.form}, contents)
        place(folder, contents, ())
    written = ", ".join(name for name in files if (folder / name).exists())
    return [f"wrote {folder}: {written} ({count_text(len(learned.vocab))} tokens)", *notes]


def _contents(learned: Learned, form: str) -> tuple[dict[str, bytes], list[str]]:
    try:
        if form == "huggingface":
            return {huggingface.FILE: huggingface.tokenizer_json(learned)}, []
        if form == "tiktoken":
            return {tiktoken.FILE: tiktoken.ranks_text(learned)}, []
    except ValueError as error:
        raise Refusal(f"{form} cannot hold this tokenizer: {error}") from error
    if learned.ignore_merges:
        made = {left + right for left, right in learned.merges}
        unmade = next((token for token in learned.token_ids() if len(token) > 1 and token not in made), None)
        example = f", such as {token_text(unmade)}" if unmade is not None else ""
        raise Refusal(f"gpt2 cannot hold this tokenizer: it takes whole pre-tokens that no merges make{example}")
    contents, notes = gpt2_contents(learned)
    return contents, [
        *notes,
        f"no file of this form contains the pattern and the special tokens: the pattern is {learned.pattern!r}",
    ]
