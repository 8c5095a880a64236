"""Files wherever they lie: on this machine, or behind a URL that fsspec opens (s3, gs, hf, https and others)."""

from __future__ import annotations

import datetime
import io
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.registry import split_list
from harness.corpora.files import check_readable
from harness.corpora.formats import READERS
from harness.corpora.local import is_list, members_of

GROUP = "distributed"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
WEB = ("http", "https")
OF_THE_CONTENT = ("ETag", "etag", "md5Hash", "blob_id", "sha256", "generation")
OF_THE_TIME = ("LastModified", "last_modified", "updated", "mtime", "created")
"""What the services say of a file that changes when its content does; each says some of it."""


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and URL.match(text) is not None


class Size(NamedTuple):
    st_size: int


@dataclass(frozen=True)
class Remote:
    """A file behind a URL, as much of a `pathlib.Path` as reading takes."""

    url: str
    size: int

    def __str__(self) -> str:
        return self.url

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(urlsplit(self.url).path if self.url.startswith(WEB) else self.url)

    @property
    def name(self) -> str:
        return self._path.name

    @property
    def stem(self) -> str:
        return self._path.stem

    @property
    def suffix(self) -> str:
        return self._path.suffix

    def stat(self) -> Size:
        return Size(self.size)

    def open(self, _: str = "rb") -> BinaryIO:
        return self._opened(self.suffix.lower() in READERS)

    def open_at(self, start: int) -> BinaryIO:
        """The file from a byte on."""
        file = self._opened(not start)
        if start:
            file.seek(start)
        return file

    def _opened(self, from_its_front: bool) -> BinaryIO:
        """The file; with `from_its_front` one of the web is asked for as a whole: not every server sends ranges."""
        system, path = filesystem(self.url)
        whole = {"block_size": 0} if from_its_front and self.url.startswith(WEB) else {}
        return io.BufferedReader(system.open(path, "rb", **whole), 1 << 20)

    def read_range(self, start: int, length: int) -> bytes:
        system, path = filesystem(self.url)
        stop = min(self.size, start + length)
        content: bytes = system.cat_file(path, start=start, end=stop)
        if len(content) != stop - start:
            raise OSError(
                f"of bytes {start} to {stop} it sends {len(content)}; set counting.params.part above the file's size"
            )
        return content


@dataclass(frozen=True)
class Member:
    """A file of a corpus: where it lies, its size in bytes, and what changes when it does."""

    place: str
    size: int
    state: str

    def path(self) -> Any:
        """The file, for whoever reads it: a `Path`, or what is enough of one."""
        return Remote(self.place, self.size) if is_url(self.place) else Path(self.place)

    def is_unchanged(self) -> bool:
        """Whether the file still is what it was when it was listed; asks the service again."""
        if is_url(self.place):
            return state_behind(self.place) == self.state
        return local_state(Path(self.place)) == self.state


def filesystem(url: str) -> tuple[Any, str]:
    """The file system behind a URL, and the path in it. Raises Refusal if it needs what is not installed."""
    fsspec = extra("fsspec", url, GROUP)
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        what = f"run python -m pip install 'bpe-harness[{GROUP}]'" if url.startswith("s3") else "install what it names"
        raise Refusal(f"{url} cannot be read yet ({one_line(error)}); {what}", UNMEASURED) from error
    except ValueError as error:
        raise Refusal(f"{url} is of no kind that is known here ({one_line(error)})", UNMEASURED) from error
    return system, path


def members(path: Any) -> list[Member]:
    """The files that data.path names, in order: of a list, a folder, a pattern, on this machine or behind URLs.

    Raises Refusal, with one sentence, for what is not there or may not be read.
    """
    if isinstance(path, str) and is_list(path):
        path = split_list(path, "data.path")
    if isinstance(path, list):
        return [member for each in path for member in members(each)]
    if is_url(path):
        return behind(path)
    found = []
    for each in members_of(path):
        check_readable(each)
        found.append(Member(str(each.absolute()), each.stat().st_size, local_state(each)))
    return found


def local_state(path: Path) -> str:
    """Without what names the machine: workers see the same file by way of another."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def behind(url: str) -> list[Member]:
    """The files that a URL names: itself, those below a folder, those that match a pattern."""
    system, path = filesystem(url)
    try:
        if has_pattern(url):
            found = system.glob(path, detail=True)
        else:
            told = system.info(path)
            found = {path: told} if told["type"] != "directory" else system.find(path, detail=True)
    except Exception as error:  # whatever the libraries of all the services raise
        raise Refusal(unreadable(url, error), UNMEASURED) from error
    listed = []
    for name, told in sorted(found.items()):
        if told["type"] == "file" and not hidden(name, path):
            if told.get("size") is None:
                raise Refusal(f"{url} does not say how large it is; fetch it and set data.path=FILE", UNMEASURED)
            listed.append(Member(system.unstrip_protocol(name), told["size"], identity(told)))
    if not listed:
        raise Refusal(f"there is no file at {url}; set data.path=URL with one that exists", UNMEASURED)
    return listed


def has_pattern(url: str) -> bool:
    """Whether a URL is a pattern of names; a question mark in an address of the web is none.

    >>> has_pattern("s3://bucket/*.txt"), has_pattern("https://example.org/a?b=c"), has_pattern("s3://bucket/a.txt")
    (True, False, False)
    """
    return re.search(r"[*[]" if url.startswith(WEB) else r"[*?[]", url) is not None


def hidden(name: str, folder: str) -> bool:
    below = name.removeprefix(folder).strip("/")
    return name != folder and any(part.startswith(".") for part in below.split("/"))


def identity(told: Mapping[str, Any]) -> str:
    """What a service says of a file, the content's own signs before its times, which listings may tell otherwise.

    >>> identity({"size": 3, "ETag": '"a"', "LastModified": "yesterday"}), identity({"size": 3, "created": 1.5})
    ('3 ETag="a"', '3 created=1.5')
    """
    for signs in (OF_THE_CONTENT, OF_THE_TIME):
        known = [f"{sign}={plain(told[sign])}" for sign in signs if told.get(sign) is not None]
        if known:
            return " ".join([str(told["size"]), *known])
    return str(told["size"])


def plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime.datetime) else value


def state_behind(url: str) -> str:
    system, path = filesystem(url)
    system.invalidate_cache()
    return identity(system.info(path))


def unreadable(place: str, error: BaseException) -> str:
    """One sentence on why a file cannot be read, whoever says so."""
    kind = type(error).__name__
    if is_url(place) and "range requests" in str(error):
        return f"{place} cannot be read in parts, as its server sends no ranges; fetch it and set data.path=FILE"
    if isinstance(error, FileNotFoundError):
        where = "" if is_url(place) else f" on {socket.gethostname()}"
        return f"there is nothing at {place}{where}; set data.path to what exists, where all who count see it"
    if isinstance(error, PermissionError) or "Credential" in kind:
        return (
            f"{place} may not be read with these credentials ({kind}: {one_line(error)}); set others, or ask for access"
        )
    return f"cannot read {place} ({kind}: {one_line(error)})"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
