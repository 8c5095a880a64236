"""What passes between processes: a job as JSON, words as three mapped columns, merges as bytes, and
the digests of both.

Standard library only, and Python 3.9's: it runs in the measured process too. Columns are raw
little-endian arrays, with a manifest written last. Reading maps the files, so a worker has the words
in no time, several share them, and they may be larger than memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
import mmap
import os
import struct
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain, islice
from pathlib import Path
from typing import Any

from harness.worker.calling import OWN
from variants.contract import Corpus, Merge, Merges, WordCounts

COUNT, TRAIN = "count", "train"
MANIFEST = "manifest.json"
COLUMNS = (("data", "B"), ("offsets", "q"), ("counts", "Q"))
FORMAT = 4  # of the manifest and the digest in it; another number is counted again
WORDS_AT_ONCE = 1 << 16
UNREADABLE = (OSError, ValueError, KeyError, TypeError)
MARSHALLED = 2
"""The last version of marshal's format in which equal merges are equal bytes, whichever objects
they share.
"""
HEAD = struct.Struct("<cI")
"""What precedes each value in that format: its kind, and its number of parts or bytes."""
LIST, TUPLE, BYTES = b"[", b"(", b"s"
# what precedes the ids of Merges, which are handed over as they are and spelled by the reader
IDS = b"I"
LENGTH = struct.Struct("<Q")
LONGEST_TOKEN, MOST_SPELLED = 1 << 30, 1 << 36
"""The most bytes of one token of Merges, and of all together: a few ids can spell without end."""


class BrokenWords(OSError):
    """The folder does not hold word counts, or not all of them: as a file that cannot be read."""


def write_words(folder: Path, word_counts: WordCounts) -> dict[str, Any]:
    """Write the columns into a new folder; return the manifest."""
    write_columns(folder, word_counts)
    return finish(folder)


def write_columns(folder: Path, word_counts: WordCounts) -> None:
    """Write the columns alone: a folder without a manifest does not hold words yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for column, _ in COLUMNS:
        (folder / column).write_bytes(getattr(word_counts, column))


def finish(folder: Path) -> dict[str, Any]:
    """Write the manifest for columns that are there; return it."""
    word_counts = mapped(folder)
    manifest = {"format": FORMAT, **facts(word_counts), "seal": seal(word_counts)}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return manifest


def mapped(folder: Path) -> WordCounts:
    """Return the columns of a folder, whatever they are."""
    return WordCounts(*(map_column(folder / column, format) for column, format in COLUMNS))


def facts(word_counts: WordCounts) -> dict[str, Any]:
    """Return what the manifest says of the words."""
    return {
        "words": len(word_counts),
        "pre_tokens": sum(word_counts.counts),
        "sha256": words_digest(word_counts),
    }


def read_words(folder: Path) -> tuple[WordCounts, dict[str, Any]]:
    """Map the columns of a folder. Raises BrokenWords if they are not whole."""
    try:
        manifest, word_counts = json.loads((folder / MANIFEST).read_text()), mapped(folder)
        if manifest["format"] != FORMAT:
            raise ValueError(f"its format is {manifest['format']}, not {FORMAT}")
        if (len(word_counts), len(word_counts.data)) != (
            manifest["words"],
            word_counts.offsets[-1],
        ):
            raise ValueError("the columns do not belong together")
        return word_counts, manifest
    except UNREADABLE as error:
        raise BrokenWords(f"{folder}: {error}") from error


def file_state(path: str | Path) -> list[int] | None:
    """Return what identifies a file and its content: device, inode, size and times; None without
    one.
    """
    with contextlib.suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - a job names its files by strings
        times = [status.st_mtime_ns, status.st_ctime_ns]
        return [status.st_dev, status.st_ino, status.st_size, *times]
    return None


def map_column(path: Path, format: str) -> memoryview:
    with path.open("rb") as file:
        mapped = (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if os.fstat(file.fileno()).st_size
            else b""
        )
    return memoryview(mapped).cast("B").cast(format)  # type: ignore[call-overload,no-any-return]


def seal(word_counts: WordCounts) -> str:
    """Return a digest of the columns as they are, at the speed of reading them: the order of the
    words counts.
    """
    found = hashlib.sha256()
    for column, _ in COLUMNS:
        values = getattr(word_counts, column)
        found.update(b"%d " % values.nbytes)
        found.update(values)
    return found.hexdigest()


def words_digest(word_counts: WordCounts) -> str:
    """Return a digest of the words and their counts, whatever their order.

    It is the sum modulo 2**256 of the sha256 of each word's line: its length, its count, its bytes.
    A sum needs neither sorting nor memory.

    >>> one, other = [(b"low", 5), (b"er", 2)], [(b"er", 2), (b"low", 5)]
    >>> words_digest(WordCounts.from_items(one)) == words_digest(WordCounts.from_items(other))
    True
    """
    total = 0
    for start in range(0, len(word_counts), WORDS_AT_ONCE):
        bounds = word_counts.offsets[start : start + WORDS_AT_ONCE + 1].tolist()
        counts = word_counts.counts[start : start + WORDS_AT_ONCE]
        data = bytes(word_counts.data[bounds[0] : bounds[-1]])

        position = 0
        for begins, ends, count in zip(bounds, bounds[1:], counts):
            length = ends - begins
            if length < 0:
                raise ValueError("its offsets fall")
            line = b"%d %d %b" % (length, count, data[position : position + length])
            total += int.from_bytes(hashlib.sha256(line).digest(), "little")
            position += length
    return (total % (1 << 256)).to_bytes(32, "big").hex()


# Merges


def merges_sha256(merges: Sequence[Merge]) -> str:
    """Return the digest of the merges in order: of each the length of left, left, the length of
    right, right.

    A length is a little-endian uint64.

    >>> content = bytes.fromhex("0100000000000000" "61" "0200000000000000" "6263")
    >>> merges_sha256([(b"a", b"bc")]) == hashlib.sha256(content).hexdigest()
    True
    """
    digest, tokens = hashlib.sha256(), chain.from_iterable(merges)
    while block := list(islice(tokens, 8192)):
        lengths = [len(token) for token in block]
        spelled = {length: LENGTH.pack(length) for length in set(lengths)}
        digest.update(b"".join(chain.from_iterable(zip(map(spelled.__getitem__, lengths), block))))
    return digest.hexdigest()


def packed(merges: Any) -> bytes:
    """Return a list of merges as it is at this moment, at next to no cost: a trainer's clock runs.

    Raises ValueError for some of what is not a list of merges; nothing that is made of the rest can
    still change.
    """
    if type(merges) is Merges and type(merges.ids) is array:
        return IDS + merges.ids.tobytes()
    return marshal.dumps(merges, MARSHALLED)


def unpacked(content: bytes, most: int | None = None) -> Sequence[Merge]:
    """Read what `packed` made of merges, but not by marshal: the writer is not trusted.

    Raises ValueError if it is something else, is cut short, or has more than `most` merges.

    >>> unpacked(packed([(b"a", b"bc")]))
    [(b'a', b'bc')]
    """
    number = (len(content) - 1) // 8
    try:
        if content[:1] != IDS:
            kind, number = HEAD.unpack_from(content)
            if kind != LIST:
                raise ValueError("something else than merges")
        if most is not None and number > most:
            raise ValueError(f"more than {most} merges")
        return merges_of_ids(content[1:]) if content[:1] == IDS else marshalled(content, number)
    except struct.error:
        raise ValueError("merges end too early") from None


def marshalled(content: bytes, number: int) -> list[Merge]:
    merges, position = [], HEAD.size
    for _ in range(number):
        if HEAD.unpack_from(content, position) not in ((TUPLE, 2), (LIST, 2)):
            raise ValueError("something else than a pair of tokens")
        position += HEAD.size

        pair = []
        for _ in ("left", "right"):
            kind, length = HEAD.unpack_from(content, position)
            if kind != BYTES:
                raise ValueError("something else than a token")
            start, position = position + HEAD.size, position + HEAD.size + length
            pair.append(content[start:position])
        merges.append((pair[0], pair[1]))

    if position != len(content):
        raise ValueError("merges end in the middle of a token, or something is behind them")
    return merges


def merges_of_ids(content: bytes) -> Merges:
    """Return merges from their ids. Raises ValueError for a token that no merge makes before, or
    that is too long.
    """
    if len(content) % 8:
        raise ValueError("merges end between the left and the right token of a merge")
    ids = array("I", content)
    lengths, spelled = [1] * 256, 0
    for number, (left, right) in enumerate(zip(ids[::2], ids[1::2]), 1):
        if max(left, right) >= len(lengths):
            raise ValueError(f"merge {number} is of a token that no merge before it makes")
        lengths.append(lengths[left] + lengths[right])
        spelled += lengths[-1]
        if lengths[-1] > LONGEST_TOKEN or spelled > MOST_SPELLED:
            raise ValueError(f"merge {number} spells more than a text can hold")
    return Merges(ids)


# The job, as the harness writes it and the process reads it


@dataclass(frozen=True)
class Setup:
    """What a process needs before it imports its target; the work is not among it."""

    target: str
    import_from: list[str]
    """The folders that the target may be in, before those of installed packages."""
    folder: str
    """Where the process works."""
    memory_limit: int | None = None
    counts_instructions: bool = False


@dataclass(frozen=True)
class Extending:
    """The packed merges that a trainer goes on from, and how it treats them."""

    merges: str
    inheriting: str
    veto: str


@dataclass(frozen=True)
class Job:
    """One call of a counter or trainer: the target, its input and its options."""

    kind: str
    target: str
    params: dict[str, Any]
    threads: int = 1
    corpus: Corpus | None = None
    """What reads the text gets this; None if the words came with their counts."""
    words: str = ""
    """The folder of the words that a trainer gets."""
    num_merges: int = 0
    tie_break: str = OWN
    min_count: int = 1
    extending: Extending | None = None
    interpreter: str | None = None
    counts_instructions: bool = False
    profile: str | None = None
    """The file for cProfile's statistics of the call."""


def written(part: Setup | Job) -> str:
    return json.dumps(asdict(part))


def read_setup(content: str) -> Setup:
    return Setup(**known(Setup, json.loads(content)))


def read_job(content: str) -> Job:
    values = known(Job, json.loads(content))
    corpus, extending = values["corpus"], values["extending"]
    if corpus is not None:
        special_tokens = tuple(corpus["special_tokens"])
        values["corpus"] = Corpus(**{**corpus, "special_tokens": special_tokens})
    if extending is not None:
        values["extending"] = Extending(**known(Extending, extending))
    return Job(**values)


def known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that exist here: the gate measures a base with the base's own
    worker, which a later harness may hand more.
    """
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in values.items() if name in names}
