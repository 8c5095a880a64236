"""Files on this machine or behind a URL that fsspec opens, the parts they are divided into, and the scratch folder."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import regex

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.registry import split_list
from harness.corpora.files import check_readable
from harness.corpora.formats import READERS, kind_of
from harness.corpora.local import is_list, is_url, members_of
from variants.contract import Corpus
from variants.counting.parts import spill_folder

GROUP = "distributed"
FORMAT = 4  # of a part's file and of the hash that partitions words; a file of another format is not read
SUFFIX = ".words"
WEB = ("http://", "https://")
OF_THE_CONTENT = ("ETag", "etag", "md5Hash", "blob_id", "sha256", "generation")
OF_THE_TIME = ("LastModified", "last_modified", "updated", "mtime", "created")
"""What services report of a file that changes when its content does; each reports some of it."""


@dataclass(frozen=True)
class Member:
    """A file of a corpus, here or behind a URL, as much of a `Path` as reading needs.

    `state` changes when the file does. With `sequential` a web server is asked for the whole file: not every server
    sends ranges.
    """

    place: str
    size: int
    state: str
    sequential: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return self.place

    def __getattr__(self, name: str) -> str:
        if name not in ("name", "stem", "suffix"):
            raise AttributeError(name)
        path = urlsplit(self.place).path if self.place.startswith(WEB) else self.place
        return str(getattr(PurePosixPath(path), name))

    def stat(self) -> Any:
        return SimpleNamespace(st_size=self.size)

    def open(self, _: str = "rb") -> BinaryIO:
        if not is_url(self.place):
            return Path(self.place).open("rb")
        system, path = filesystem(self.place)
        options = {"block_size": 0} if self.sequential and self.place.startswith(WEB) else {}
        return io.BufferedReader(system.open(path, "rb", **options), 1 << 20)

    @property
    def is_compressed(self) -> bool:
        """Whether the file can be read from its start only."""
        return self.suffix.lower() in READERS

    def is_unchanged(self) -> bool:
        if not is_url(self.place):
            return local_state(Path(self.place)) == self.state
        system, path = filesystem(self.place)
        system.invalidate_cache()
        return identity(system.info(path)) == self.state


def local_member(path: Path) -> Member:
    return Member(str(path.absolute()), path.stat().st_size, local_state(path))


def local_state(path: Path) -> str:
    """Size and time, without inode and device: workers see the same file through another mount."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def filesystem(url: str) -> tuple[Any, str]:
    """The file system behind a URL, and the path in it. Raises Refusal if a library for it is missing."""
    fsspec = extra("fsspec", url, GROUP)
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        what = f"run python -m pip install 'bpe-harness[{GROUP}]'" if url.startswith("s3") else "install what it names"
        raise Refusal(f"{url} cannot be read yet ({one_line(error)}); {what}", UNMEASURED) from error
    except ValueError as error:
        raise Refusal(f"{url}: unknown kind of URL ({one_line(error)})", UNMEASURED) from error
    return system, path


def members(path: Any) -> list[Member]:
    """The files that data.path names, in order: of a list, a folder, a pattern, on this machine or behind URLs.

    Raises Refusal, with one sentence, for what does not exist or cannot be read.
    """
    if isinstance(path, str) and is_list(path):
        path = split_list(path, "data.path")
    if isinstance(path, list):
        return [member for each in path for member in members(each)]
    if is_url(path):
        return members_behind(path)
    files = members_of(path)
    for file in files:
        check_readable(file)
    return list(map(local_member, files))


def members_behind(url: str) -> list[Member]:
    """The files that a URL names: itself, those in a folder, those that match a pattern."""
    system, path = filesystem(url)
    pattern = re.search(r"[*[]" if url.startswith(WEB) else r"[*?[]", url)  # ? starts a query on the web
    try:
        if pattern:
            infos = system.glob(path, detail=True)
        else:
            info = system.info(path)
            infos = {path: info} if info["type"] != "directory" else system.find(path, detail=True)
    except Exception as error:  # whatever the libraries of all the services raise
        raise Refusal(unreadable(url, error), UNMEASURED) from error
    listed = []
    for name, info in sorted(infos.items()):
        below = name.removeprefix(path).strip("/") if name != path else ""
        if info["type"] == "file" and not any(part.startswith(".") for part in below.split("/")):
            if info.get("size") is None:
                raise Refusal(f"{url} does not report its size; fetch it and set data.path=FILE", UNMEASURED)
            listed.append(Member(system.unstrip_protocol(name), info["size"], identity(info)))
    if not listed:
        raise Refusal(f"{url} not found; set data.path=URL with one that exists", UNMEASURED)
    return listed


def identity(info: Mapping[str, Any]) -> str:
    """What a service reports of a file: tags of its content, else its times, which listings may report differently.

    >>> identity({"size": 3, "ETag": '"a"', "LastModified": "yesterday"}), identity({"size": 3, "created": 1.5})
    ('3 ETag="a"', '3 created=1.5')
    """
    for keys in (OF_THE_CONTENT, OF_THE_TIME):
        values = {key: info[key] for key in keys if info.get(key) is not None}
        if values:
            break
    plain = {key: value.timestamp() if isinstance(value, datetime.datetime) else value for key, value in values.items()}
    return " ".join([str(info["size"]), *(f"{key}={value}" for key, value in plain.items())])


def unreadable(place: str, error: BaseException) -> str:
    """One sentence on why a file cannot be read."""
    kind = type(error).__name__
    if "range requests" in str(error):
        return f"{place} cannot be read in parts, as its server sends no ranges; fetch it and set data.path=FILE"
    if isinstance(error, FileNotFoundError):
        where = "" if is_url(place) else f" on {socket.gethostname()}"
        return f"{place} not found{where}; set data.path to what exists on every worker"
    if isinstance(error, PermissionError) or "Credential" in kind:
        return f"{place}: access denied ({kind}: {one_line(error)}); set other credentials or ask for access"
    return f"cannot read {place} ({kind}: {one_line(error)})"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


@dataclass(frozen=True)
class Reading:
    """What decides the words of a file."""

    corpus: Corpus
    separator: str
    column: str


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
        return not kind_of(self.member) and not self.member.is_compressed

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.last == self.member.size

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def file(self) -> str:
        """The name of its file of words: a digest of all that they depend on."""
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
        number = 1 if member.is_compressed else max(1, -(-member.size // part_bytes))
        whole = replace(member, sequential=number == 1 and kind_of(member) != ".parquet")  # type: ignore[arg-type]
        bounds = [member.size * place // number for place in range(number + 1)]
        parts += [Part(whole, first, last, reading) for first, last in zip(bounds, bounds[1:], strict=False)]
    return sorted(parts, key=lambda part: -part.size)


@dataclass(frozen=True)
class Scratch:
    """A folder on a disk or behind a URL, in which files appear whole."""

    place: str

    def at(self, name: str = "") -> tuple[Any, str]:
        """The file system, its cache emptied, and the path of a file in the folder."""
        if is_url(self.place):
            system, path = filesystem(self.place)
        else:
            system, path = extra("fsspec", "counting=dask", GROUP).filesystem("file"), self.place
        system.invalidate_cache()
        return system, f"{path.rstrip('/')}/{name}".rstrip("/")

    def names(self) -> set[str]:
        """The names of the files in the folder."""
        system, path = self.at()
        return {name.rstrip("/").rpartition("/")[2] for name in system.ls(path, detail=False)}

    def exists(self, name: str) -> bool:
        system, path = self.at(name)
        return bool(system.exists(path))

    def workspace(self) -> str:
        """A folder for files that `put` then takes; what killed workers left in it goes with the scratch folder."""
        if is_url(self.place):
            return spill_folder()
        Path(self.place).mkdir(parents=True, exist_ok=True)
        return self.place

    def put(self, file: Path, name: str) -> None:
        """Move a file of the workspace into the folder, whole: object stores promise that, and renaming does it."""
        system, path = self.at(name)
        if is_url(self.place):
            system.put_file(str(file), path)
            file.unlink()
        else:
            file.replace(path)

    def get(self, name: str, folder: str) -> Path:
        """The file itself, or its copy in `folder` if the scratch folder is behind a URL."""
        if not is_url(self.place):
            return Path(self.place, name)
        system, path = self.at(name)
        system.get_file(path, str(Path(folder, name)))
        return Path(folder, name)

    def remove(self, name: str = "") -> None:
        """Remove a file, or the whole folder."""
        system, path = self.at(name)
        with contextlib.suppress(FileNotFoundError):
            system.rm(path, recursive=not name)
