"""A tokenizer in a folder: the files of every form or of one, and a manifest, written and read.

vocab.json and merges.txt do not contain the pattern, the special tokens or the training data; the manifest does. It is
written last and holds the digests of the other files, so that an interrupted save is noticed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal

import msgspec

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.tokenizers.forms import (
    MANIFEST,
    MERGES,
    RANKS,
    TOKENIZER_JSON,
    VOCAB,
    Id,
    Value,
    json_text,
    merge_line,
    merges_text,
    of_ranks,
    of_tiktoken,
    ranks_text,
    read_merges,
    read_ranks,
    read_tokenizer_json,
    tokenizer_json,
)
from harness.tokenizers.learned import Learned, check_special_tokens, pattern_name, put_together, spelled
from harness.worker.exchange import merges_sha256

FILES = (VOCAB, MERGES, TOKENIZER_JSON, RANKS, MANIFEST)
FILES_OF = {
    "ours": FILES,
    "gpt2": (VOCAB, MERGES),
    "huggingface": (TOKENIZER_JSON,),
    "tiktoken": (RANKS, MANIFEST),
}
"""The files of each form, in the order in which they are written."""
ORIGIN = ("vocab_size_asked", "tie_break", "min_count", "variant", "data", "inherited_merges", "cut_from")
"""The keys of a manifest that tell where a tokenizer comes from."""
OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
Pattern = str | EllipsisType | None
SpecialTokens = Sequence[str] | Mapping[str, int] | None
Origin = dict[str, Any]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Writing


def save(
    folder: Path,
    learned: Learned,
    origin: Mapping[str, Any],
    *,
    overwrite: bool = False,
    how: str = "overwrite=true",
    form: str = "ours",
) -> list[str]:
    """Write a tokenizer in every form or in one, whole or not at all; `origin` goes into the manifest as it is.

    Returns a sentence for each thing that a form cannot express; of all forms one that would give other ids is left
    out. Raises Refusal if the one form cannot hold the tokenizer, if the folder cannot be written, or has these files
    and `overwrite` is false; `how` says how to set it.
    """
    names = FILES_OF[form]
    check_free(folder, overwrite, names, how)
    contents, notes = gpt2_contents(learned) if VOCAB in names else ({}, [])
    for name, make in ((TOKENIZER_JSON, tokenizer_json), (RANKS, ranks_text)):
        try:
            if name in names:
                contents[name] = make(learned)
        except Refusal as error:
            if form != "ours":
                raise
            notes.append(str(error))
    if form == "gpt2":
        if learned.ignore_merges:
            raise Refusal(f"{VOCAB} cannot hold this tokenizer: it takes whole pre-tokens that no merges make")
        notes.append(f"these files lack the pattern and the special tokens: the pattern is {learned.pattern!r}")
    if MANIFEST in names:
        contents[MANIFEST] = manifest(learned, origin, contents)
    place(folder, contents, names)
    return notes


def gpt2_contents(learned: Learned) -> tuple[dict[str, bytes], list[str]]:
    """vocab.json and merges.txt, and notes about them."""
    ids = {spelled(token): number for token, number in learned.token_ids().items()}
    notes = [
        f"special token {text!r} is spelled like another token, so it is in {MANIFEST} only, not in {VOCAB}"
        for text in learned.special_tokens
        if text in ids
    ]
    ids = {**learned.special_tokens, **ids}
    if header := next((merge for merge in learned.merges if merge[0].startswith(b"#version")), None):
        notes.append(f"some libraries take the merge {merge_line(header)!r} in {MERGES} for a header and drop it")
    vocab = dict(sorted(ids.items(), key=lambda entry: entry[1]))
    return {VOCAB: json_text(vocab), MERGES: merges_text(learned.merges)}, notes


def manifest(learned: Learned, origin: Mapping[str, Any], contents: Mapping[str, bytes]) -> bytes:
    """What the other files do not contain, and their digests."""
    return json_text(
        {
            "schema": 1,
            "vocab_size": len(learned.vocab),
            "merges": len(learned.merges),
            "merges_sha256": merges_sha256(learned.merges),
            "special_tokens": [{"text": text, "id": number} for text, number in learned.special_tokens.items()],
            "pattern": {"name": pattern_name(learned.pattern), "regex": learned.pattern},
            **({"ignore_merges": True} if learned.ignore_merges else {}),
            **origin,
            "files": {name: sha256(content) for name, content in contents.items()},
        }
    )


def check_free(folder: Path, overwrite: bool, names: Sequence[str] = FILES, how: str = "overwrite=true") -> None:
    """Refuse a folder that has a tokenizer, naming it, unless it may be overwritten."""
    present = [name for name in names if (folder / name).exists()]
    if present and not overwrite:
        raise Refusal(
            f"{folder} has a tokenizer already ({', '.join(present)}); use {how} to replace it, or another folder"
        )


def check_writable(folder: Path) -> None:
    """Make the folder if needed and prove that it can be written. Raises Refusal if not."""
    place(folder, {}, ())


def place(folder: Path, contents: Mapping[str, bytes], names: Sequence[str]) -> None:
    """Write every file under a temporary name first, so that a full disk is met before anything is replaced.

    Files of these names that are not among the contents belonged to another tokenizer and are removed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as temporary:
            for name, content in contents.items():
                with Path(temporary, name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for name in set(names) - contents.keys():
                (folder / name).unlink(missing_ok=True)
            for name in contents:
                Path(temporary, name).replace(folder / name)
    except OSError as error:
        why = f"cannot write a tokenizer to {folder} ({reason(error)})"
        raise Refusal(f"{why}; choose another folder", UNMEASURED) from error


# Reading


class _SpecialToken(msgspec.Struct):
    text: str
    id: Id


class _Pattern(msgspec.Struct):
    regex: str | None


class _Manifest(msgspec.Struct):
    schema: Literal[1]
    files: dict[str, str]
    special_tokens: list[_SpecialToken]
    pattern: _Pattern
    ignore_merges: bool = False


def read_tokenizer(path: Path | str, pattern: Pattern, special_tokens: SpecialTokens) -> tuple[Learned, Origin]:
    """The tokenizer that `model.load` gives, and what its manifest says about the training."""
    options = pattern is not ... or special_tokens is not None
    if str(path).startswith(OF_TIKTOKEN) and not options:
        return of_tiktoken(str(path).removeprefix(OF_TIKTOKEN)), {}
    file = Path(path)
    if file.is_dir():  # the most complete form
        file /= next((name for name in (MANIFEST, TOKENIZER_JSON) if (file / name).is_file()), VOCAB)
    lacking = file.name == VOCAB or file.suffix == RANKS_ENDING
    if options and not lacking:
        raise Refusal(f"{file} contains the pattern and the special tokens; leave them out")
    content_of(file)  # a file that is missing is reported as such
    if lacking and pattern is ...:
        advice = "python -m harness.tokenizer convert --to ours takes --pattern and --special-token (so does load)"
        raise Refusal(f"{file} lacks its pattern; {advice}")
    if lacking:
        return (_of_gpt2 if file.name == VOCAB else _of_ranks)(file, pattern, special_tokens), {}
    if file.name == MANIFEST:
        return _described(file)
    if file.suffix == ".json":
        return parse(file, read_tokenizer_json), {}
    raise Refusal(
        f"{file} is not a tokenizer; pass a folder with {VOCAB} and {MERGES}, a {TOKENIZER_JSON}, or a file of ranks "
        f"that ends with {RANKS_ENDING}"
    )


def _of_gpt2(path: Path, pattern: Any, special_tokens: SpecialTokens, **options: bool) -> Learned:
    """The tokenizer that vocab.json and merges.txt make with pattern and special tokens; options of `put_together`."""
    ids = parse(path, msgspec.json.Decoder(dict[str, Id]).decode)
    merges = parse(path.parent / MERGES, read_merges)
    check_special_tokens(special_tokens or ())
    if not isinstance(special_tokens, Mapping):
        if missing := [text for text in special_tokens or () if text not in ids]:
            raise Refusal(f"{path} has no special token {missing[0]!r}; pass those that it has")
        special_tokens = {text: ids[text] for text in special_tokens or ()}
    return parse(path, lambda _: put_together(ids, merges, special_tokens, pattern, **options))


def _of_ranks(path: Path, pattern: Any, special_tokens: SpecialTokens) -> Learned:
    check_special_tokens(special_tokens or ())
    if special_tokens and not isinstance(special_tokens, Mapping):
        raise Refusal(f"{path} lacks the ids of special tokens; give each as {special_tokens[0]}=ID")
    special_ids = special_tokens if isinstance(special_tokens, Mapping) else {}
    return parse(path, lambda content: of_ranks(read_ranks(content), special_ids, pattern))


def _described(path: Path) -> tuple[Learned, Origin]:
    """What a manifest describes. Raises Refusal if it is damaged, or a file is not the one that it describes."""
    about = parse(path, msgspec.json.Decoder(_Manifest).decode)
    has_gpt2 = VOCAB in about.files or RANKS not in about.files

    def check_digest(content: bytes) -> None:
        if sha256(content) != about.files.get(name):
            raise ValueError(f"it is not the file that {MANIFEST} describes")

    for name in (VOCAB, MERGES) if has_gpt2 else (RANKS,):
        parse(path.parent / name, check_digest)
    special_tokens = {token.text: token.id for token in about.special_tokens}
    if has_gpt2:
        options = {"ignore_merges": about.ignore_merges, "others": True}
        learned = _of_gpt2(path.parent / VOCAB, about.pattern.regex, special_tokens, **options)
    else:
        learned = _of_ranks(path.parent / RANKS, about.pattern.regex, special_tokens)
    origin = parse(path, msgspec.json.Decoder(dict[str, Any]).decode)
    return learned, {key: value for key, value in origin.items() if key in ORIGIN}


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
        raise Refusal(f"{path} cannot be used: {error}; save the tokenizer again", UNMEASURED) from error
