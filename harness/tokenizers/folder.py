"""A tokenizer in a folder: the files of every form, and a manifest.

vocab.json and merges.txt do not contain the pattern, the special tokens or the training data; the manifest does. It is
written last and holds the digests of the other files, so that an interrupted save is noticed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import read_whole
from harness.tokenizers import huggingface, tiktoken
from harness.tokenizers.learned import (
    Learned,
    check_special_tokens,
    checked_ids,
    extended_by,
    first_unmade,
    json_text,
    put_together,
    read_json,
    spelled,
    trained,
)
from harness.tokenizers.merges_file import merge_line, merges_text, read_merges, read_ranks
from harness.worker.merges_bytes import merges_sha256
from variants.contract import Merge, TieBreak

SCHEMA = 1
VOCAB, MERGES, MANIFEST = "vocab.json", "merges.txt", "manifest.json"
FILES = (VOCAB, MERGES, huggingface.FILE, tiktoken.FILE, MANIFEST)
ORIGIN = ("vocab_size_asked", "tie_break", "min_count", "variant", "data", "inherited_merges", "cut_from", "read_from")
"""The keys of a manifest that tell where a tokenizer comes from."""
Value = TypeVar("Value")


def save(
    folder: Path | str,
    merges: Sequence[Merge],
    special_tokens: Sequence[str],
    pattern_name: str,
    pattern_regex: str | None,
    *,
    overwrite: bool = False,
    tie_break: str = TieBreak.GREATEST_BYTES.value,
    min_count: int = 1,
    data_name: str | None = None,
    data_sha256: str | None = None,
    variant: str | None = None,
    vocab_size_asked: int | None = None,
    extended: Learned | None = None,
) -> list[str]:
    """Write a trained tokenizer in every form, whole or not at all; ids of an `extended` tokenizer stay the same.

    Returns a sentence for each thing that a form cannot express; a form that would give other ids is left out.
    Raises Refusal if the folder already has a tokenizer and `overwrite` is false, if it cannot be written, or if the
    merges do not make a tokenizer.
    """
    learned = trained(merges, special_tokens, pattern_regex)
    learned = learned if extended is None else extended_by(extended, learned)
    check_free(folder, overwrite)
    origin = {
        "vocab_size_asked": vocab_size_asked,
        "tie_break": tie_break,
        "min_count": min_count,
        "variant": variant,
        "data": {"name": data_name, "sha256": data_sha256},
        **({} if extended is None else {"inherited_merges": len(extended.merges)}),
    }
    return write(Path(folder), learned, pattern_name, origin)


def write(folder: Path, learned: Learned, pattern_name: str | None, origin: Mapping[str, Any]) -> list[str]:
    """Write a tokenizer in every form, replacing any that is there; returns notes as `save` does.

    `origin` goes into the manifest as it is. Raises Refusal as `save` does.
    """
    contents, notes = gpt2_contents(learned)
    for form, make in ((huggingface, huggingface.tokenizer_json), (tiktoken, tiktoken.ranks_text)):
        try:
            contents[form.FILE] = make(learned)
        except ValueError as error:
            notes.append(f"{form.FILE} was left out: {error}")
    place(folder, {**contents, MANIFEST: manifest(learned, pattern_name, origin, contents)})
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
    return {
        VOCAB: json_text(dict(sorted(ids.items(), key=lambda entry: entry[1]))),
        MERGES: merges_text(learned.merges),
    }, notes


def manifest(
    learned: Learned, pattern_name: str | None, origin: Mapping[str, Any], contents: Mapping[str, bytes]
) -> bytes:
    """What the other files do not contain, and their digests."""
    return json_text(
        {
            "schema": SCHEMA,
            "vocab_size": len(learned.vocab),
            "merges": len(learned.merges),
            "merges_sha256": merges_sha256(learned.merges),
            "special_tokens": [{"text": text, "id": number} for text, number in learned.special_tokens.items()],
            "pattern": {"name": pattern_name, "regex": learned.pattern},
            **({"ignore_merges": True} if learned.ignore_merges else {}),
            **origin,
            "files": {name: _sha256(content) for name, content in contents.items()},
        }
    )


def check_free(folder: Path | str, overwrite: bool, names: Sequence[str] = FILES, how: str = "overwrite=true") -> None:
    """Refuse a folder that has a tokenizer, naming it, unless it may be overwritten."""
    try:
        present = [name for name in names if Path(folder, name).exists()]
    except OSError as error:  # a folder above that may not be read, a name that is too long
        raise _unwritable(Path(folder), error) from error
    if present and not overwrite:
        raise Refusal(
            f"{folder} has a tokenizer already ({', '.join(present)}); use {how} to replace it, or another folder"
        )


def check_writable(folder: Path | str) -> None:
    """Make the folder if needed and prove that it can be written. Raises Refusal if not."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(Path(folder), error) from error
    for name in FILES:
        if Path(folder, name).is_dir():
            raise Refusal(f"{Path(folder, name)} is a folder; choose another place for the tokenizer", UNMEASURED)


class Manifest:
    """The manifest of a folder, checked as far as it is used. Raises Refusal for a damaged one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content = parse(folder / MANIFEST, read_json)
        if self.content.get("schema") != SCHEMA:
            why = f"its schema is {self.content.get('schema')}, this program reads {SCHEMA}"
            raise unusable(folder / MANIFEST, why)
        try:
            self.digests = {str(name): str(digest) for name, digest in self.content["files"].items()}
            self.special_tokens = {str(token["text"]): int(token["id"]) for token in self.content["special_tokens"]}
            self.pattern = self.content["pattern"]["regex"]
            if not isinstance(self.pattern, str | None):
                raise TypeError(self.pattern)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unusable(folder / MANIFEST, "it lacks digests, special tokens or a pattern") from error
        self.origin = {key: value for key, value in self.content.items() if key in ORIGIN}

    def learned(self) -> Learned:
        """The tokenizer that the manifest describes. Raises Refusal if a file is not the one that it describes."""
        names = (VOCAB, MERGES) if VOCAB in self.digests or tiktoken.FILE not in self.digests else (tiktoken.FILE,)
        for name in names:
            if _sha256(content_of(self.folder / name)) != self.digests.get(name):
                raise unusable(self.folder / name, f"it is not the file that {MANIFEST} describes")
        if names == (tiktoken.FILE,):
            path = self.folder / tiktoken.FILE
            return parse(path, lambda ranks: tiktoken.of_ranks(read_ranks(ranks), self.special_tokens, self.pattern))
        options = {"ignore_merges": self.content.get("ignore_merges", False) is True, "others": True}
        return of_gpt2_files(self.folder, self.special_tokens, self.pattern, **options)


def manifest_in(folder: Path) -> Manifest | None:
    return Manifest(folder) if (folder / MANIFEST).is_file() else None


def of_gpt2_files(folder: Path, special_tokens: Mapping[str, int], pattern: str | None, **options: bool) -> Learned:
    """The tokenizer that vocab.json and merges.txt make with pattern and special tokens; options of `put_together`."""
    check_special_tokens(special_tokens)
    ids, merges = parse(folder / VOCAB, read_ids), parse(folder / MERGES, read_merges)
    if (unmade := first_unmade(merges)) is not None:
        raise unusable(folder / MERGES, unmade)
    try:
        return put_together(ids, merges, special_tokens, pattern, **options)
    except ValueError as error:
        raise unusable(folder / VOCAB, str(error)) from error


def read_ids(content: bytes) -> dict[str, int]:
    """The ids that vocab.json gives to spelled tokens. Raises ValueError for anything else."""
    return checked_ids(read_json(content))


def content_of(path: Path) -> bytes:
    try:
        return read_whole(path)
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


def place(folder: Path, contents: Mapping[str, bytes], replaced: Sequence[str] = FILES) -> None:
    """Write every file under a temporary name first, so that a full disk is met before anything is replaced.

    Files in `replaced` that are not among the contents belonged to another tokenizer and are removed.
    """
    check_writable(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as temporary:
            for name, content in contents.items():
                with Path(temporary, name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for name in set(replaced) - contents.keys():
                (folder / name).unlink(missing_ok=True)
            for name in contents:
                Path(temporary, name).replace(folder / name)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unusable(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} cannot be used: {why}; save the tokenizer again", UNMEASURED)


def _unwritable(folder: Path, error: OSError) -> Refusal:
    return Refusal(f"cannot write a tokenizer to {folder} ({reason(error)}); choose another folder", UNMEASURED)
