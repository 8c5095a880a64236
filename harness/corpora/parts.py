"""Files on this machine or behind a URL that fsspec opens, and the parts that they are divided into."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, BinaryIO

import regex

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.registry import split_list
from harness.common.units import one_line
from harness.corpora import local
from harness.corpora.files import check_readable
from harness.corpora.local import is_url
from variants.contract import Corpus

GROUP = "distributed"
FORMAT = 5  # of a shard and of the hash that partitions words; a shard of another format is not read
SUFFIX = ".words"
STATES = ("ETag", "etag", "md5Hash", "blob_id", "sha256", "generation", "LastModified", "updated", "mtime", "created")
"""What services report of a file that changes when its content does; each reports some of it."""


@dataclass(frozen=True)
class Member:
    """A file of a corpus, here or behind a URL, as much of a `Path` as reading needs.

    `state` changes when the file does.
    """

    place: str
    size: int
    state: str

    def __str__(self) -> str:
        return self.place

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2]

    def stat(self) -> Any:
        return SimpleNamespace(st_size=self.size)

    def open(self, _: str = "rb") -> BinaryIO:
        system, path = storage(self.place)
        return io.BufferedReader(system.open(path, "rb"), 1 << 20)

    def is_unchanged(self) -> bool:
        system, path = storage(self.place)
        return state_of(system.info(path)) == self.state


def state_of(info: Mapping[str, Any]) -> str:
    """Size and tag, or time, of a file; without its inode: workers see it through another mount."""
    value = next((info[key] for key in STATES if info.get(key) is not None), None)
    return f"{info['size']} {value.timestamp() if isinstance(value, datetime.datetime) else value}"


def storage(place: str) -> tuple[Any, str]:
    """The file system of a path or URL, its cache emptied, and the path in it. Raises Refusal if it is unsupported."""
    fsspec = extra("fsspec", "counting=dask", GROUP)
    if not is_url(place):
        return fsspec.filesystem("file", auto_mkdir=True), place
    try:
        system, path = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise Refusal(f"{place} cannot be opened ({line_of(error)}); install what it needs", UNMEASURED) from error
    system.invalidate_cache()
    return system, path


def members_of(path: Any) -> list[Member]:
    """The files that data.path names, in order: of a list, a folder, a pattern, on this machine or behind URLs.

    Raises Refusal, with one sentence, for what does not exist or cannot be read.
    """
    if isinstance(path, str) and local.is_list(path):
        path = split_list(path, "data.path")
    if isinstance(path, list):
        return [member for each in path for member in members_of(each)]
    if is_url(path):
        return members_behind(path)
    paths = local.members_of(path)
    for file in paths:
        check_readable(file)
    system = storage(str(path))[0]
    places = [str(file.absolute()) for file in paths]
    return [Member(place, info["size"], state_of(info)) for place in places for info in [system.info(place)]]


def members_behind(url: str) -> list[Member]:
    """The files that a URL names: itself, those in a folder, those that match a pattern."""
    system, path = storage(url)
    special = r"[*[]" if url.startswith("http") else r"[*?[]"  # ? starts a query on the web
    try:
        if re.search(special, url):
            infos = system.glob(path, detail=True)
        else:
            info = system.info(path)
            infos = {path: info} if info["type"] != "directory" else system.find(path, detail=True)
    except Exception as error:  # whatever the libraries of all the services raise
        raise Refusal(unreadable(url, error), UNMEASURED) from error
    visible = {name: info for name, info in sorted(infos.items()) if "/." not in f"/{name.removeprefix(path)}"}
    plain = {system.unstrip_protocol(name): info for name, info in visible.items() if info["type"] == "file"}
    if not plain or any(info.get("size") is None for info in plain.values()):
        raise Refusal(f"{url} not found, or its size is unknown; fetch it and set data.path=FILE", UNMEASURED)
    return [Member(place, info["size"], state_of(info)) for place, info in plain.items()]


def unreadable(place: str, error: BaseException) -> str:
    """One sentence on why a file cannot be read."""
    if "range requests" in str(error):
        return f"{place} cannot be read in parts: its server sends no ranges; fetch it and set data.path=FILE"
    if isinstance(error, FileNotFoundError):
        return f"{place} not found; set data.path to what exists on every worker"
    advice = "; check the address and your credentials" if is_url(place) else ""
    return f"cannot read {place} ({type(error).__name__}: {line_of(error)}){advice}"


def line_of(error: BaseException) -> str:
    return one_line(str(error))[:300] or type(error).__name__


@dataclass(frozen=True)
class Reading:
    """What decides the words of a file."""

    corpus: Corpus
    separator: str
    column: str | None


@dataclass(frozen=True)
class Part:
    """A file, or a range of it: from the first safe place at `first` or later to that at `last` or later.

    In a file with rows a safe place is where a line, or a group of rows, starts.
    """

    member: Any  # a Member, which the readers of files take as a Path
    first: int
    last: int
    reading: Reading

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are the text."""
        return local.kind_of(self.member, self.reading.column) is None and not local.is_compressed(self.member)

    @property
    def is_whole(self) -> bool:
        return bool(self.size == self.member.size)

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def shard(self) -> str:
        """The name of its shard: a digest of all that the words depend on."""
        how, corpus = self.reading, self.reading.corpus
        text = [tuple(corpus.special_tokens), corpus.pattern, corpus.errors, corpus.partial, regex.__version__]
        rows = [] if self.is_plain else [how.separator, how.column]
        key = [FORMAT, self.member.place, self.member.state, self.first, self.last, text, rows]
        return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32] + SUFFIX

    def __str__(self) -> str:
        return str(self.member) + ("" if self.is_whole else f", bytes {self.first} to {self.last}")


def divide(members: Sequence[Member], reading: Reading, part_bytes: int) -> list[Part]:
    """The parts of these files, none much larger than `part_bytes` if a file can be divided; the largest first."""
    parts = []
    for member in members:
        kind = local.kind_of(member, reading.column)
        divisible = not local.is_compressed(member) and kind != ".csv"
        number = max(1, -(-member.size // part_bytes)) if divisible else 1
        bounds = [member.size * place // number for place in range(number + 1)]
        parts += [Part(member, first, last, reading) for first, last in zip(bounds, bounds[1:], strict=False)]
    return sorted(parts, key=lambda part: -part.size)
