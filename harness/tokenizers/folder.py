"""Write a tokenizer into a folder: the files of every form or of one, and a manifest.

vocab.json and merges.txt do not contain the pattern, the special tokens or the training data; the manifest does. It is
written last and holds the digests of the other files, so that an interrupted save is noticed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.tokenizers.forms import (
    MANIFEST,
    MERGES,
    RANKS,
    SCHEMA,
    TOKENIZER_JSON,
    VOCAB,
    ranks_text,
    sha256,
    tokenizer_json,
)
from harness.tokenizers.learned import Learned, json_text, pattern_name, spelled
from harness.tokenizers.merges_file import merge_line, merges_text
from harness.worker.exchange import merges_sha256

FILES = (VOCAB, MERGES, TOKENIZER_JSON, RANKS, MANIFEST)
FILES_OF = {
    "ours": FILES,
    "gpt2": (VOCAB, MERGES),
    "huggingface": (TOKENIZER_JSON,),
    "tiktoken": (RANKS, MANIFEST),
}
"""The files of each form, in the order in which they are written."""


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
    return {
        VOCAB: json_text(dict(sorted(ids.items(), key=lambda entry: entry[1]))),
        MERGES: merges_text(learned.merges),
    }, notes


def manifest(learned: Learned, origin: Mapping[str, Any], contents: Mapping[str, bytes]) -> bytes:
    """What the other files do not contain, and their digests."""
    return json_text(
        {
            "schema": SCHEMA,
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def place(folder: Path, contents: Mapping[str, bytes], names: Sequence[str]) -> None:
    """Write every file under a temporary name first, so that a full disk is met before anything is replaced.

    Files of these names that are not among the contents belonged to another tokenizer and are removed.
    """
    check_writable(folder)
    try:
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
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> Refusal:
    return Refusal(f"cannot write a tokenizer to {folder} ({reason(error)}); choose another folder", UNMEASURED)
