"""A tokenizer in a folder: vocab.json and merges.txt in GPT-2's form, and a manifest.

GPT-2's form cannot say which pattern and which special tokens belong to it, or what it was learned from; the manifest
can. It is written last and holds the digests of the other two, so that a folder in which saving was cut short is told
from a whole one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple, TypeVar

from harness.errors import UNMEASURED, Refusal
from harness.gpt2_form import json_text, merge_line, merges_text, read_ids, read_json, read_merges, spelled
from harness.record import merges_sha256
from variants.contract import Merge, TieBreak, vocab_of

SCHEMA = 1
VOCAB, MERGES, MANIFEST = "vocab.json", "merges.txt", "manifest.json"
Read = TypeVar("Read")


class Learned(NamedTuple):
    """What a tokenizer is made of; `vocab` numbers the tokens, `special_tokens` says which of them are special."""

    vocab: dict[int, bytes]
    merges: list[Merge]
    special_tokens: dict[str, int]
    pattern: str | None


def save(
    folder: Path | str,
    merges: Sequence[Merge],
    special_tokens: Sequence[str],
    pattern_name: str,
    pattern_regex: str | None,
    *,
    tie_break: str = TieBreak.GREATEST_BYTES.value,
    min_count: int = 1,
    data_name: str | None = None,
    data_sha256: str | None = None,
    variant: str | None = None,
    vocab_size_asked: int | None = None,
) -> list[str]:
    """Write a tokenizer, whole or not at all; one that stood in the folder is replaced.

    Returns a sentence for each thing that GPT-2's form cannot express, so that other libraries will not see it.
    Raises Refusal if the folder cannot be written, or if the merges make no tokenizer that could be loaded again.
    """
    _check_special_tokens(special_tokens)
    special_ids = {text: number for number, text in enumerate(special_tokens, 256)}
    vocab = vocab_of(merges, special_tokens)
    learned = {number: token for number, token in vocab.items() if not 256 <= number < 256 + len(special_ids)}
    ids = {spelled(token): number for number, token in learned.items()}
    if len(ids) < len(learned):
        raise Refusal("two merges make the same token, which can have one id only; train with a variant that conforms")
    hidden = [text for text in special_tokens if text in ids]
    ids = {**special_ids, **ids}  # where both spell the same, the learned token has it
    contents = {
        VOCAB: json_text(dict(sorted(ids.items(), key=lambda entry: entry[1]))),
        MERGES: merges_text(merges),
    }
    manifest = {
        "schema": SCHEMA,
        "vocab_size": len(vocab),
        "vocab_size_asked": vocab_size_asked,
        "merges": len(merges),
        "merges_sha256": merges_sha256(merges),
        "special_tokens": [{"text": text, "id": number} for text, number in special_ids.items()],
        "pattern": {"name": pattern_name, "regex": pattern_regex},
        "tie_break": tie_break,
        "min_count": min_count,
        "variant": variant,
        "data": {"name": data_name, "sha256": data_sha256},
        "files": {name: _sha256(content) for name, content in contents.items()},
    }
    _described(Path(folder), contents, manifest)  # what could not be loaded again is not written
    _place(Path(folder), {**contents, MANIFEST: json_text(manifest)})
    return _unsaid(hidden, merges)


def check_writable(folder: Path | str) -> None:
    """Make the folder if need be and prove that a tokenizer can be written there. Raises Refusal if not."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(Path(folder), error) from error
    for name in (VOCAB, MERGES, MANIFEST):
        if Path(folder, name).is_dir():
            raise Refusal(f"{Path(folder, name)} is a folder; choose another place with save=FOLDER", UNMEASURED)


def read(folder: Path, pattern: str | EllipsisType | None, special_tokens: Sequence[str] | None) -> Learned:
    """The tokenizer in a folder; `pattern` and `special_tokens` are for one without a manifest, and only for that.

    Raises Refusal if a file is missing, damaged, or not of one piece with the others.
    """
    contents = {name: _content(folder / name) for name in (VOCAB, MERGES)}
    if (manifest := _manifest(folder / MANIFEST)) is not None:
        if pattern is not ... or special_tokens is not None:
            raise Refusal(f"{folder / MANIFEST} says the pattern and the special tokens; leave them out")
        return _described(folder, contents, manifest)
    if pattern is ...:
        raise Refusal(f"{folder} has no {MANIFEST}; say the pattern and the special tokens that it was made with")
    ids = _read(folder / VOCAB, read_ids, contents[VOCAB])
    for text in special_tokens or ():
        if text not in ids:
            raise Refusal(f"{folder / VOCAB} has no special token {text!r}; name those that it has")
    return _of_one_piece(folder, contents, {text: ids[text] for text in special_tokens or ()}, pattern)


def _described(folder: Path, contents: Mapping[str, bytes], manifest: Mapping[str, Any]) -> Learned:
    """The tokenizer that the manifest describes, once its digests are found to hold."""
    if manifest.get("schema") != SCHEMA:
        raise _unusable(folder / MANIFEST, f"its schema is {manifest.get('schema')}, this program reads {SCHEMA}")
    try:
        digests = {name: manifest["files"][name] for name in (VOCAB, MERGES)}
        special_tokens = {str(token["text"]): int(token["id"]) for token in manifest["special_tokens"]}
        pattern = manifest["pattern"]["regex"]
        if not isinstance(pattern, str | None):
            raise TypeError(pattern)
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(folder / MANIFEST, "it lacks digests, special tokens or a pattern") from error
    for name, digest in digests.items():
        if _sha256(contents[name]) != digest:
            raise _unusable(folder / name, f"it is not the file that {MANIFEST} describes")
    return _of_one_piece(folder, contents, special_tokens, pattern)


def _of_one_piece(
    folder: Path, contents: Mapping[str, bytes], special_tokens: dict[str, int], pattern: str | None
) -> Learned:
    """Give every byte, merge and special token its id; what is left over, missing or numbered twice is damage."""
    _check_special_tokens(special_tokens)
    ids = _read(folder / VOCAB, read_ids, contents[VOCAB])
    merges = _read(folder / MERGES, read_merges, contents[MERGES])
    tokens = dict.fromkeys([*(bytes((byte,)) for byte in range(256)), *(left + right for left, right in merges)])
    for number, merge in enumerate(merges, 1):
        if unmade := [token for token in merge if token not in tokens]:
            raise _unusable(folder / MERGES, f"merge {number} joins {spelled(unmade[0])!r}, which nothing makes")
    for token in tokens:
        if spelled(token) not in ids:
            raise _unusable(folder / VOCAB, f"it gives no id to {spelled(token)!r}")
    vocab = {ids.pop(spelled(token)): token for token in tokens}
    if strange := [spelling for spelling in ids if spelling not in special_tokens]:
        raise _unusable(
            folder / VOCAB, f"{strange[0]!r} is no byte, no merge makes it, and no special token is called so"
        )
    vocab.update({number: text.encode() for text, number in special_tokens.items()})
    if len(vocab) < len(tokens) + len(special_tokens):
        raise _unusable(folder / VOCAB, "it gives one id to two tokens")
    return Learned(dict(sorted(vocab.items())), merges, special_tokens, pattern)


def _check_special_tokens(special_tokens: Iterable[str]) -> None:
    listed = list(special_tokens)
    for number, text in enumerate(listed):
        if not text or text in listed[:number]:
            raise Refusal(f"special tokens {listed} hold an empty one, or one twice; name each once")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"special token {text!r} is not UTF-8; leave it out") from error


def _manifest(path: Path) -> dict[str, Any] | None:
    return _read(path, read_json, _content(path)) if path.is_file() else None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        said = f"cannot read {path} ({error.strerror}); python -m harness save=FOLDER writes a tokenizer"
        raise Refusal(said, UNMEASURED) from error


def _read(path: Path, reader: Callable[[bytes], Read], content: bytes) -> Read:
    try:
        return reader(content)
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def _place(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write every file beside its place first, so that a full disk is met before anything is replaced."""
    check_writable(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as beside:
            for name, content in contents.items():
                with Path(beside, name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for name in contents:
                Path(beside, name).replace(folder / name)
        _sync(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _sync(folder: Path) -> None:
    """Make the new names last through a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unsaid(hidden: Sequence[str], merges: Sequence[Merge]) -> list[str]:
    said = [
        f"special token {text!r} is spelled like another token, so it stands in {MANIFEST} only, not in {VOCAB}"
        for text in hidden
    ]
    if taken := next((merge for merge in merges if merge[0].startswith(b"#version")), None):
        said.append(f"some libraries take the merge {merge_line(taken)!r} in {MERGES} for a header and leave it out")
    return said


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _unusable(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} cannot be used: {why}; save the tokenizer again", UNMEASURED)


def _unwritable(folder: Path, error: OSError) -> Refusal:
    said = error.strerror or str(error)
    return Refusal(f"cannot write a tokenizer to {folder} ({said}); choose another folder with save=FOLDER", UNMEASURED)
