"""One file over HTTP, however often the connection breaks.

What has come is kept beside the place of the whole, with the mark (ETag or date) of the version that it is part of. The
next attempt, of this call or of a later one, asks for the rest of that same version; a server that has another one, or
knows no ranges, sends everything again. Python's own client does the talking: redirects, proxies, certificates.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.units import one_line

BLOCK = 1 << 18
WEB = ("http", "https")
LATER = {408, 425, 429, 500, 502, 503, 504}
"""Answers that may be another one the next time."""

Show = Callable[[int, int | None], None]
"""Is told how many bytes have come, and of how many, where that is known."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a byte, and how many attempts in a row may bring nothing."""

    seconds_without_a_byte: float = 30.0
    fruitless_attempts: int = 5
    seconds_between: float = 2.0


PATIENCE = Patience()


@dataclass(frozen=True)
class Address:
    """What to ask for; `headers` go to the host of the address only, not to where it redirects."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc.rpartition("@")[2]


class Broken(Exception):
    """The connection ended before the file did; `reached` says whether a server answered at all."""

    def __init__(self, why: str, reached: bool = True) -> None:
        super().__init__(why)
        self.reached = reached


@dataclass(frozen=True)
class Begun:
    """The part of a file that has come, and which version of the file it belongs to."""

    part: Path
    mark: Path

    @classmethod
    def of(cls, path: Path) -> Begun:
        return cls(path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json"))

    @property
    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def version(self, url: str) -> str | None:
        """The mark of the version that the part is of, if more of that can be asked for."""
        try:
            said = json.loads(self.mark.read_text())
        except (OSError, ValueError):
            return None
        return said["version"] if isinstance(said, dict) and said.get("url") == url else None

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def begin(self, url: str, version: str | None) -> None:
        """Forget what there is before its mark is replaced: a mark must never stand beside bytes of another version."""
        self.forget()
        with files.placing(self.mark) as temporary:
            temporary.write_text(json.dumps({"url": url, "version": version}))


class OverTheWebOnly(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to anything but http and https: the client would take a file by FTP as well."""

    def redirect_request(self, *request: Any) -> urllib.request.Request | None:
        to = request[-1]
        if urllib.parse.urlsplit(to).scheme not in WEB:
            request[1].close()
            raise Refusal(f"{request[0].full_url} redirects to {one_line(to)}, which is not fetched", UNMEASURED)
        return super().redirect_request(*request)


def download(
    address: Address,
    path: Path,
    show: Show,
    *,
    reserve: int = 0,
    patience: Patience = PATIENCE,
    longest: int | None = None,
) -> None:
    """Fetch the file at `address` to `path`, going on where an earlier call was interrupted.

    `reserve` is the room that will be needed beside it. Raises Refusal, keeping what has come, if it cannot be had, and
    keeping nothing if it has more than `longest` bytes, whatever the server says of its length.
    """
    begun = Begun.of(path)
    before = most = begun.length
    fruitless = 0
    while True:
        try:
            attempt(address, begun, show, reserve, patience.seconds_without_a_byte, longest)
            break
        except Broken as broken:
            fruitless = 0 if begun.length > most else fruitless + 1
            most = max(most, begun.length)
            if not broken.reached and most == before:
                raise Refusal(
                    f"cannot reach {address.host} ({broken}); if this machine is offline, get {address.url} where "
                    "there is a network and set data.path=FILE",
                    UNMEASURED,
                ) from broken
            if fruitless >= patience.fruitless_attempts:
                raise Refusal(
                    f"{address.url} cannot be had whole ({broken}); {begun.length} bytes of it are kept, the same "
                    "command goes on from there",
                    UNMEASURED,
                ) from broken
            time.sleep(patience.seconds_between * fruitless)
    begun.part.replace(path)
    begun.mark.unlink(missing_ok=True)


def attempt(address: Address, begun: Begun, show: Show, reserve: int, timeout: float, most: int | None = None) -> None:
    """One connection. Raises Broken if it ends too early."""
    length, version = begun.length, begun.version(address.url)
    resuming = bool(length and version)
    if urllib.parse.urlsplit(address.url).scheme not in WEB:  # the client would open local files, too
        raise Refusal(f"{address.url} is no address that can be fetched; it begins with https://", UNMEASURED)
    request = urllib.request.Request(address.url, headers={"User-Agent": "bpe-harness", "Accept-Encoding": "identity"})
    for name, value in address.headers.items():
        request.add_unredirected_header(name, value)
    if resuming and version is not None:
        request.add_header("Range", f"bytes={length}-")
        request.add_header("If-Range", version)
    try:
        response = urllib.request.build_opener(OverTheWebOnly).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and resuming:
                if total_of(error.headers.get("Content-Range")) == length:
                    return  # all of it had come before
                begun.forget()
                raise Broken("the server has another version now") from error
            refuse(address, error)
            raise Broken(f"it answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise unreachable(address, error) from error
    with response:
        receive(response, address, begun, resuming, show, reserve, most)


def refuse(address: Address, error: urllib.error.HTTPError) -> None:
    """Answer what another attempt would not change."""
    if error.code in LATER:
        return
    hint = {
        401: "it wants to know who asks; for Hugging Face set HF_TOKEN",
        403: "it may not be had from here, or not without a token (HF_TOKEN for Hugging Face)",
        404: "it is no longer there; look for its new address and change the card, or set data.path=FILE",
        410: "it is no longer there; look for its new address and change the card, or set data.path=FILE",
    }.get(error.code, "get it another way and set data.path=FILE")
    reason = one_line(error.reason)  # of a circle of redirects, several lines
    raise Refusal(f"{address.url} answers {error.code} {reason}; {hint}", UNMEASURED) from error


def unreachable(address: Address, error: Exception) -> Broken:
    """Why no server answered. Raises Refusal where asking again is no use: an untrusted certificate, no address."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        raise Refusal(
            f"the certificate of {address.host} is not trusted here ({reason.verify_message}); set SSL_CERT_FILE to "
            "the certificates of your network",
            UNMEASURED,
        ) from error
    if isinstance(error, (ValueError, http.client.InvalidURL)):
        raise Refusal(f"{address.url} is no address that can be fetched ({error})", UNMEASURED) from error
    return Broken(said(reason), reached=not isinstance(error, urllib.error.URLError))


def receive(
    response: http.client.HTTPResponse,
    address: Address,
    begun: Begun,
    resuming: bool,
    show: Show,
    reserve: int,
    most: int | None = None,
) -> None:
    """Write what the server sends behind what is there, or in its place."""
    start = begun.length
    if response.status == 206:
        if not resuming or start_of(response.headers.get("Content-Range")) != start:
            begun.forget()
            raise Broken("the server sent another range than it was asked for")
    else:
        begun.begin(address.url, version_of(response))
        start = 0
    announced = response.headers.get("Content-Length")
    total = start + int(announced) if announced is not None and announced.isdigit() else None
    refuse_more(address, begun, total, most)
    if total is not None:
        check_room(begun.part.parent, total - start + reserve, address.url)
    length = start
    show(length, total)
    with begun.part.open("ab") as part:
        while block := next_block(response):
            try:
                part.write(block)
                part.flush()
            except OSError as error:
                raise files.cache_unusable(begun.part, error) from error
            length += len(block)
            show(length, total)
            refuse_more(address, begun, length, most)
    if total is not None and length != total:
        raise Broken(f"the connection ended after {length} of {total} bytes")


def refuse_more(address: Address, begun: Begun, length: int | None, most: int | None) -> None:
    """Raise Refusal, keeping nothing, for a file that is longer than its card allows."""
    if length is not None and most is not None and length > most:
        begun.forget()
        raise Refusal(
            f"{address.url} has more than the {most} bytes that its card allows; its source has changed, and nothing "
            "was kept",
            UNMEASURED,
        )


def next_block(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise Broken(said(error)) from error


def version_of(response: http.client.HTTPResponse) -> str | None:
    """What names this version of the file for sure: a strong ETag, else its date."""
    tag: str | None = response.headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    date: str | None = response.headers.get("Last-Modified")
    return date


def start_of(content_range: str | None) -> int | None:
    """Where the range that a server sends begins.

    >>> start_of("bytes 100-199/500"), start_of(None)
    (100, None)
    """
    found = re.match(r"bytes (\d+)-", content_range or "")
    return int(found[1]) if found else None


def total_of(content_range: str | None) -> int | None:
    found = re.search(r"/(\d+)$", content_range or "")
    return int(found[1]) if found else None


def said(error: BaseException | str) -> str:
    """What went wrong, in a few words."""
    if isinstance(error, TimeoutError):
        return "no byte came for too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
