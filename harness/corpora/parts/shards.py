"""The words of one part on disk: a shard for each partition of the words, sorted, in one file that is whole or absent.

A word is in the partition that its hash says, so the shards of one partition, of all parts, have every occurrence of
its words. The file is named by what its words depend on, so one that is there need not be made again, whoever made it.
What a crash of the machine leaves half-written is told by checksums, so nobody waits for the disk.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.corpora.parts.scratch import Bucket
from variants.contract import WordCounts
from variants.counting import parts as counting
from variants.counting.parts import spill_folder

FORMAT = 2  # of the file and of the hash that partitions words; one of another format is made again
END = struct.Struct("<QQ8s")
"""How many bytes the account before it has, their checksum, and a sign that the file is one of these."""
SIGN = b"bpeshard"
SUFFIX = ".words"
BYTES_AT_ONCE = 1 << 22
MOST_OF_AN_END = 1 << 20
"""Bytes that are fetched of a file for its account, which takes some thirty for each partition."""


class Broken(Exception):
    """A file of shards is not as it was written."""

    def __init__(self, path: Any) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


class Shards(NamedTuple):
    """The file of a part: where the shards end, and what was written down about them; mapped, if it is on disk."""

    path: Any
    content: memoryview | None
    account: dict[str, Any]

    def shard(self, partition: int) -> WordCounts:
        """The words of a partition with their counts, sorted. Raises Broken if they are not as they were written."""
        start, stop = [0, *self.account["stops"]][partition : partition + 2]
        content = self.content
        if content is None:
            content, start, stop = self.path.fetched(start, stop), 0, stop - start
        if checksum(content, start, stop) != self.account["checksums"][partition]:
            raise Broken(self.path)
        return counting.run_in(content[start:stop])


def checksum(content: memoryview, start: int, stop: int) -> int:
    """Of the bytes between; their pages are given back, so that many shards can be looked through."""
    found = 0
    for place in range(start, stop, BYTES_AT_ONCE):
        found = zlib.crc32(content[place : min(stop, place + BYTES_AT_ONCE)], found)
        first = place // mmap.PAGESIZE * mmap.PAGESIZE
        if isinstance(content.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            content.obj.madvise(mmap.MADV_DONTNEED, first, min(stop, place + BYTES_AT_ONCE) - first)
    return found


def place_of(folder: Any, key: str) -> Any:
    return folder / f"{key}{SUFFIX}"


def write(folder: Any, key: str, word_counts: WordCounts, partitions: int) -> bool:
    """Leave the words as the file of `key`; returns whether it was not there. Raises OSError if there is no room.

    A process that is killed meanwhile leaves a file with a name of its own, which the next to write this key removes.
    """
    if isinstance(folder, Bucket):
        with tempfile.NamedTemporaryFile("w+b", dir=spill_folder()) as file:
            write_account(file, counting.write_runs(word_counts, partitions, file))  # type: ignore[arg-type]
            place_of(folder, key).put(Path(file.name))
        return True
    for left in folder.glob(f".{key}-*"):
        left.unlink(missing_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{key}-", dir=folder)
    try:
        with open(descriptor, "w+b") as file:  # noqa: PTH123 - a descriptor, not a path
            stops = counting.write_runs(word_counts, partitions, file)
            write_account(file, stops)
        os.link(name, place_of(folder, key))
    except (FileExistsError, FileNotFoundError):
        if not is_whole(folder, key):  # or another has written the same meanwhile
            raise
        return False
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def write_account(file: BinaryIO, stops: list[int]) -> None:
    """What closes the file."""
    starts = [0, *stops]
    with mapped(file) as content:
        checksums = [zlib.crc32(content[start:stop]) for start, stop in zip(starts, stops, strict=False)]
    account = json.dumps({"stops": stops, "checksums": checksums}).encode()
    file.seek(0, os.SEEK_END)
    file.write(account + END.pack(len(account), zlib.crc32(account), SIGN))
    file.flush()


@contextlib.contextmanager
def mapped(file: BinaryIO) -> Iterator[memoryview]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        yield view


def is_whole(folder: Any, key: str) -> bool:
    """Whether the file is there with its account; one that is broken is removed."""
    try:
        read(folder, key)
    except FileNotFoundError:
        return False
    except Broken:
        place_of(folder, key).unlink(missing_ok=True)
        return False
    return True


def read(folder: Any, key: str) -> Shards:
    """The shards of a part. Raises FileNotFoundError, and Broken if they are not as they were written."""
    path = place_of(folder, key)
    if isinstance(path, Bucket):
        size = path.size()
        end = memoryview(path.read(max(0, size - MOST_OF_AN_END), size))
        return Shards(path, None, account_in(path, end))
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise Broken(path)
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return Shards(path, content, account_in(path, content))


def account_in(path: Any, content: memoryview) -> dict[str, Any]:
    """What closes a file, of which this is the end. Raises Broken if it does not."""
    if len(content) <= END.size:
        raise Broken(path)
    length, checksum, sign = END.unpack(content[-END.size :])
    account = bytes(content[-END.size - length : -END.size]) if length < len(content) else b""
    if sign != SIGN or zlib.crc32(account) != checksum:
        raise Broken(path)
    return json.loads(account)  # type: ignore[no-any-return]
