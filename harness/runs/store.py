"""What is kept beside a corpus between runs: its words; nothing about time, and no merges."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from harness.common import files
from harness.runs.cells import Reading
from harness.worker import word_store

# What reading a kept file raises if it is not as it was written.
DAMAGED = (ValueError, KeyError, TypeError, AttributeError)


def folder_of(reading: Reading) -> Path:
    return files.cache_folder("counts", reading.key)


def words_of(reading: Reading) -> Path | None:
    """The folder of the kept words, None if there are none; a broken one is removed, to be made again."""
    folder = reading.file.path if reading.file.table else folder_of(reading) / "words"
    files.hold(folder)
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
    """Keep freshly counted words, in the place of others that may be there; returns where."""
    kept = folder_of(reading) / "words"
    manifest = manifest_of(counted)
    there = words_of(reading)
    if there is None or manifest_of(there)["sha256"] != manifest["sha256"]:
        files.remove_tree(kept)
        with files.placing(kept) as temporary:
            shutil.copytree(counted, temporary)
        _told[kept] = manifest
    return kept
