"""The words of one part on disk: a shard for each partition of the words, sorted, in one file that is whole or absent.

A word is in the partition that its hash says, so the shards of one partition, of all parts, have every occurrence of
its words. The file is named by what its words depend on, so one that is there need not be made again, whoever made it.
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

from variants.contract import WordCounts
from variants.counting import parts as counting

FORMAT = 1  # of the file and of the hash that partitions words; one of another format is made again
END = struct.Struct("<QQ8s")
"""How many bytes the account before it has, their checksum, and a sign that the file is one of these."""
SIGN = b"bpeshard"
SUFFIX = ".words"
BYTES_AT_ONCE = 1 << 22


class Broken(Exception):
    """A file of shards is not as it was written."""


class Shards(NamedTuple):
    """The file of a part, mapped: where the shards end, and what was written down about them."""

    path: Path
    content: memoryview
    account: dict[str, Any]

    def shard(self, partition: int) -> WordCounts:
        """The words of a partition with their counts, sorted. Raises Broken if they are not as they were written."""
        start, stop = [0, *self.account["stops"]][partition : partition + 2]
        if self.checksum(start, stop) != self.account["checksums"][partition]:
            raise Broken(f"{self.path} is damaged")
        return counting.run_in(self.content[start:stop])

    def checksum(self, start: int, stop: int) -> int:
        """Of the bytes between; their pages are given back, so that many shards can be looked through."""
        found = 0
        for place in range(start, stop, BYTES_AT_ONCE):
            found = zlib.crc32(self.content[place : min(stop, place + BYTES_AT_ONCE)], found)
            first = place // mmap.PAGESIZE * mmap.PAGESIZE
            if isinstance(self.content.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                self.content.obj.madvise(mmap.MADV_DONTNEED, first, min(stop, place + BYTES_AT_ONCE) - first)
        return found


def place_of(folder: Path, key: str) -> Path:
    return folder / f"{key}{SUFFIX}"


def write(folder: Path, key: str, word_counts: WordCounts, partitions: int) -> bool:
    """Leave the words as the file of `key`; returns whether it was not there. Raises OSError if there is no room.

    A process that is killed meanwhile leaves a file with a name of its own, which the next to write this key removes.
    """
    for left in folder.glob(f".{key}-*"):
        left.unlink(missing_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{key}-", dir=folder)
    try:
        with open(descriptor, "w+b") as file:  # noqa: PTH123 - a descriptor, not a path
            stops = counting.write_runs(word_counts, partitions, file)
            write_account(file, stops, word_counts)
        os.link(name, place_of(folder, key))
    except (FileExistsError, FileNotFoundError):
        if not is_whole(folder, key):  # or another has written the same meanwhile
            raise
        return False
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def write_account(file: BinaryIO, stops: list[int], word_counts: WordCounts) -> None:
    """What closes the file; on disk when this returns."""
    starts = [0, *stops]
    with mapped(file) as content:
        checksums = [zlib.crc32(content[start:stop]) for start, stop in zip(starts, stops, strict=False)]
    told = {"stops": stops, "checksums": checksums, "words": len(word_counts), "pre_tokens": sum(word_counts.counts)}
    account = json.dumps(told).encode()
    file.seek(0, os.SEEK_END)
    file.write(account + END.pack(len(account), zlib.crc32(account), SIGN))
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def mapped(file: BinaryIO) -> Iterator[memoryview]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        yield view


def is_whole(folder: Path, key: str) -> bool:
    """Whether the file is there with its account; one that is broken is removed."""
    try:
        read(folder, key)
    except FileNotFoundError:
        return False
    except Broken:
        place_of(folder, key).unlink(missing_ok=True)
        return False
    return True


def read(folder: Path, key: str) -> Shards:
    """The shards of a part, mapped. Raises FileNotFoundError, and Broken if they are not as they were written."""
    path = place_of(folder, key)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= END.size:
            raise Broken(f"{path} is damaged")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    length, checksum, sign = END.unpack(content[-END.size :])
    account = bytes(content[-END.size - length : -END.size]) if length < size else b""
    if sign != SIGN or zlib.crc32(account) != checksum:
        raise Broken(f"{path} is damaged")
    return Shards(path, content, json.loads(account))
