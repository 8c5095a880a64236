"""A tokenizer in a folder: the files of every form beside each other, and a manifest.

vocab.json and merges.txt cannot say which pattern and which special tokens belong to them, or what they were learned
from; the manifest can. It is written last and holds the digests of the others, so that a folder in which saving was
cut short is told from a whole one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.common.files import read_whole
from harness.common.units import count_text
from harness.tokenizers import huggingface, ranks
from harness.tokenizers.gpt2_form import json_text, merge_line, merges_text, read_ids, read_json, read_merges, spelled
from harness.tokenizers.learned import Learned, check_special_tokens, extended_by, first_unmade, put_together, trained
from harness.worker.merges_bytes import merges_sha256
from variants.contract import Merge, TieBreak

SCHEMA = 1
VOCAB, MERGES, MANIFEST = "vocab.json", "merges.txt", "manifest.json"
FILES = (VOCAB, MERGES, huggingface.FILE, ranks.FILE, MANIFEST)
Read = TypeVar("Read")


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
    """Write a tokenizer in every form, whole or not at all; where one is `extended`, its ids stay what they are.

    Returns a sentence for each thing that a form cannot express, so that other libraries will not see it; a form that
    would give other ids is left out.
    Raises Refusal if a tokenizer stands there and `overwrite` is false, if the folder cannot be written, or if the
    merges make no tokenizer that could be loaded again.
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
    }
    return write(Path(folder), learned, pattern_name, origin)


def write(folder: Path, learned: Learned, pattern_name: str | None, origin: Mapping[str, Any]) -> list[str]:
    """Write a tokenizer in every form, in place of any that stands there; returns what there is to say about it.

    `origin` is what the manifest says besides what is in `learned`. Raises Refusal as `save` does.
    """
    contents, said = gpt2_contents(learned)
    for form, make in ((huggingface, huggingface.tokenizer_json), (ranks, ranks.ranks_text)):
        try:
            contents[form.FILE] = make(learned)
        except ValueError as error:
            said.append(f"{form.FILE} was left out: {error}")
    place(folder, {**contents, MANIFEST: manifest(learned, pattern_name, origin, contents)})
    return said


def gpt2_contents(learned: Learned) -> tuple[dict[str, bytes], list[str]]:
    """vocab.json and merges.txt, and what there is to say about them."""
    ids = {spelled(token): number for token, number in learned.token_ids().items()}
    # Where both spell the same, the learned token has it.
    hidden = [text for text in learned.special_tokens if text in ids]
    ids = {**learned.special_tokens, **ids}
    said = [
        f"special token {text!r} is spelled like another token, so it stands in {MANIFEST} only, not in {VOCAB}"
        for text in hidden
    ]
    if taken := next((merge for merge in learned.merges if merge[0].startswith(b"#version")), None):
        said.append(f"some libraries take the merge {merge_line(taken)!r} in {MERGES} for a header and leave it out")
    return {
        VOCAB: json_text(dict(sorted(ids.items(), key=lambda entry: entry[1]))),
        MERGES: merges_text(learned.merges),
    }, said


def manifest(
    learned: Learned, pattern_name: str | None, origin: Mapping[str, Any], contents: Mapping[str, bytes]
) -> bytes:
    """What the other files cannot say, and their digests."""
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
    """Refuse a folder in which a tokenizer stands, saying which, unless it may be overwritten."""
    try:
        lying = [name for name in names if Path(folder, name).exists()]
    except OSError as error:  # a folder above that may not be read, a name that is too long
        raise _unwritable(Path(folder), error) from error
    if lying and not overwrite:
        raise Refusal(
            f"{folder} holds a tokenizer already ({_told(Path(folder))}{', '.join(lying)}); use {how} to replace it, "
            "or choose another folder",
            USAGE,
        )


def _told(folder: Path) -> str:
    """What the manifest says of the tokenizer that stands in a folder, if there is one that can be read."""
    try:
        said = read_json(read_whole(folder / MANIFEST))
        size, by, data = said["vocab_size"], said.get("variant"), (said.get("data") or {}).get("name")
        return f"{count_text(size)} tokens{f' of {data}' if data else ''}{f' by {by}' if by else ''}: "
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def check_writable(folder: Path | str) -> None:
    """Make the folder if need be and prove that a tokenizer can be written there. Raises Refusal if not."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(Path(folder), error) from error
    for name in FILES:
        if Path(folder, name).is_dir():
            raise Refusal(f"{Path(folder, name)} is a folder; choose another place with save=FOLDER", UNMEASURED)


class Manifest:
    """What a manifest says, checked as far as it is used. Raises Refusal for one that is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said = understood(path, read_json, content_of(path))
        if self.said.get("schema") != SCHEMA:
            raise unusable(path, f"its schema is {self.said.get('schema')}, this program reads {SCHEMA}")
        try:
            self.digests = {str(name): str(digest) for name, digest in self.said["files"].items()}
            self.special_tokens = {str(token["text"]): int(token["id"]) for token in self.said["special_tokens"]}
            self.pattern = self.said["pattern"]["regex"]
            self.ignore_merges = self.said.get("ignore_merges", False) is True
            if not isinstance(self.pattern, str | None):
                raise TypeError(self.pattern)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unusable(path, "it lacks digests, special tokens or a pattern") from error

    def content_of(self, name: str) -> bytes:
        """A file beside the manifest, if it is the one that the manifest describes."""
        content = content_of(self.path.parent / name)
        if _sha256(content) != self.digests.get(name):
            raise unusable(self.path.parent / name, f"it is not the file that {self.path.name} describes")
        return content

    def describes(self, *names: str) -> bool:
        return all(name in self.digests for name in names)


def manifest_in(folder: Path) -> Manifest | None:
    return Manifest(folder / MANIFEST) if (folder / MANIFEST).is_file() else None


def read_described(manifest: Manifest) -> Learned:
    """The tokenizer that a manifest describes, once the digests are found to hold."""
    if manifest.describes(ranks.FILE) and not manifest.describes(VOCAB):
        path = manifest.path.parent / ranks.FILE
        return understood(
            path,
            lambda content: ranks.read_ranks_text(content, manifest.special_tokens, manifest.pattern),
            manifest.content_of(ranks.FILE),
        )
    contents = {name: manifest.content_of(name) for name in (VOCAB, MERGES)}
    return of_one_piece(
        manifest.path.parent, contents, manifest.special_tokens, manifest.pattern, manifest.ignore_merges, others=True
    )


def of_one_piece(
    folder: Path,
    contents: Mapping[str, bytes],
    special_tokens: Mapping[str, int],
    pattern: str | None,
    ignore_merges: bool = False,
    *,
    others: bool = False,
) -> Learned:
    """The tokenizer that vocab.json and merges.txt make with what stands elsewhere."""
    check_special_tokens(special_tokens)
    ids = understood(folder / VOCAB, read_ids, contents[VOCAB])
    merges = understood(folder / MERGES, read_merges, contents[MERGES])
    if (unmade := first_unmade(merges)) is not None:
        raise unusable(folder / MERGES, unmade)
    try:
        return put_together(ids, merges, special_tokens, pattern, ignore_merges=ignore_merges, others=others)
    except ValueError as error:
        raise unusable(folder / VOCAB, str(error)) from error


def content_of(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError as error:
        said = f"cannot read {path} ({error.strerror or error}); python -m harness save=FOLDER writes a tokenizer"
        raise Refusal(said, UNMEASURED) from error


def understood(path: Path, reader: Callable[[bytes], Read], content: bytes) -> Read:
    try:
        return reader(content)
    except ValueError as error:
        raise unusable(path, str(error)) from error


def place(folder: Path, contents: Mapping[str, bytes], instead_of: Sequence[str] = FILES) -> None:
    """Write every file beside its place first, so that a full disk is met before anything is replaced.

    What is called as in `instead_of` and is not among the contents belonged to another tokenizer, and goes.
    """
    check_writable(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as beside:
            for name, content in contents.items():
                with Path(beside, name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for name in instead_of:
                if name not in contents:
                    (folder / name).unlink(missing_ok=True)
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


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unusable(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} cannot be used: {why}; save the tokenizer again", UNMEASURED)


def _unwritable(folder: Path, error: OSError) -> Refusal:
    said = error.strerror or str(error)
    return Refusal(f"cannot write a tokenizer to {folder} ({said}); choose another folder", UNMEASURED)
