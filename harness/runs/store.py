"""What is kept beside a corpus between runs: its words and its reference merges; nothing about time."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common import cache, files
from harness.runs.cells import Reading
from harness.runs.extension import NOTHING, Extension
from harness.worker import word_store
from harness.worker.merges_bytes import merges_from_bytes, merges_sha256, merges_to_bytes
from variants.contract import Merge

# What reading a kept file raises if it is not as it was written.
DAMAGED = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class Reference:
    """Merges on which trainers of different families agree; `exhausted` if no pair was left after them."""

    merges: list[Merge]
    exhausted: bool
    by: tuple[str, ...]

    def covers(self, num_merges: int) -> bool:
        """Whether it says what the first `num_merges` merges are: fewer merges are a prefix of more."""
        return self.exhausted or len(self.merges) >= num_merges


class OtherWords(Exception):
    """Words just counted are not those that are kept for the same reading: one of two counters is wrong."""


def folder_of(reading: Reading) -> Path:
    return files.cache_folder("counts", reading.key)


def words_of(reading: Reading) -> Path | None:
    """The folder of the kept words, None if there are none; a broken one is removed, to be made again."""
    folder = reading.file.path if reading.file.table else folder_of(reading) / "words"
    cache.hold(folder)
    if not word_store.is_whole(folder):
        return None
    try:
        manifest_of(folder)  # whoever asks later is answered, also when they are gone by then
    except word_store.BrokenWords:
        return None
    return folder


def manifest_of(words: Path) -> dict[str, Any]:
    """How many words and pre-tokens there are, and their digest; remembered, for the cache may go during a run."""
    if words in _told:
        return _told[words]
    told = word_store.read(words)[1]
    if words_are_named_by_content(words):
        _told[words] = told
    return told


def words_are_named_by_content(words: Path) -> bool:
    """Whether a folder of words can never come to hold others: those of the cache."""
    return words.parent.parent == files.cache_folder("counts")


_told: dict[Path, dict[str, Any]] = {}


def keep_words(reading: Reading, counted: Path) -> Path:
    """Keep freshly counted words; returns where. Raises OtherWords, naming the place, if kept ones differ."""
    kept = words_of(reading)
    if kept is None:
        kept = folder_of(reading) / "words"
        _told[kept] = manifest_of(counted)
        with files.placing(kept) as temporary:
            shutil.copytree(counted, temporary)
        return kept
    if manifest_of(kept)["sha256"] != manifest_of(counted)["sha256"]:
        raise OtherWords(kept)
    return kept


def reference(reading: Reading, tie_break: str, min_count: int, extension: Extension = NOTHING) -> Reference | None:
    """The kept reference, if there is one and it is whole."""
    path = _reference(reading, tie_break, min_count, extension)
    try:
        head, _, content = path.read_bytes().partition(b"\n")
        known = json.loads(head)
        merges = merges_from_bytes(content)
        if merges_sha256(merges) != known["merges_sha256"]:
            raise ValueError("other merges than it says")
        return Reference(merges, known["exhausted"], tuple(known["by"]))
    except FileNotFoundError:
        return None
    except DAMAGED:
        path.unlink(missing_ok=True)  # half of one is none; it is made again
        return None


def keep_reference(
    reading: Reading, tie_break: str, min_count: int, made: Reference, extension: Extension = NOTHING
) -> None:
    head = {"merges_sha256": merges_sha256(made.merges), "exhausted": made.exhausted, "by": made.by}
    with files.placing(_reference(reading, tie_break, min_count, extension)) as temporary:
        temporary.write_bytes(json.dumps(head).encode() + b"\n" + merges_to_bytes(made.merges))


def _reference(reading: Reading, tie_break: str, min_count: int, extension: Extension) -> Path:
    asked = [tie_break, str(min_count), *filter(None, [extension.digest()])]
    return folder_of(reading) / f"reference-{'-'.join(asked)}"
