"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes; then it is renamed
into place. So a file in place is complete, an interrupted fetch resumes, and a wrong file is never put there.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import check_room
from harness.common.progress import Advance, bar
from harness.common.units import one_line
from harness.corpora.cards import FETCHED, Card, check_facts, difference, facts_of, fetched_place, place_text
from harness.corpora.files import Damaged, check_readable, fresh_digest_of, remember
from harness.corpora.local import READERS, blocks_of, documents_in, suffix_of
from harness.corpora.packages import CLIENTS, from_packages

BLOCK = 1 << 18
SLACK_BYTES = 1 << 20
"""How much longer than its text a compressed file may be, if the text does not compress."""
TEMPORARY = {408, 416, 425, 429, 500, 502, 503, 504}
"""Status codes after which another attempt may succeed."""
HINTS = {401: "it needs a login; for Hugging Face set HF_TOKEN", 404: "put its new address on the card"}
SECONDS_WITHOUT_A_BYTE = 30.0
FRUITLESS_ATTEMPTS = 5
"""How many attempts in a row may bring no byte."""
SECONDS_BETWEEN_ATTEMPTS = 2.0


def fetch(card: Card) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs from the card."""
    name, kind = card["name"], card["source"]["kind"]
    if kind not in FETCHED:
        raise Refusal(f"nothing is fetched for {name}, which is {place_text(card)}")
    place = fetched_place(card)
    with (files.cache_folder("downloads") / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time fetches it; the lock ends with its process
        if place.exists():
            check_readable(place)
            check_facts(name, place, card)
            say(f"{name} is there, as its card says: {place}")
            return place
        facts = fetch_into(place, card)
    missing = ", ".join(f"{fact} {value}" for fact, value in facts.items() if fact not in card["facts"])
    say(f"{name} is at {place}" + (f"; its card does not say: {missing}" if missing else ""))
    return place


def fetch_into(place: Path, card: Card) -> dict[str, int | str]:
    """Fetch a file, verify it, put it at `place`; returns its facts."""
    folder = files.cache_folder("downloads", card["name"])
    if not any(folder.iterdir()):
        check_room(folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"])
    try:
        made = from_packages(card, folder) if card["source"]["kind"] in CLIENTS else from_addresses(card, folder)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise
    say(f"checking {made.name}")
    facts = facts_of(made)
    if wrong := difference(card, facts):
        shutil.rmtree(folder)
        raise Refusal(
            f"what was fetched for {card['name']} {wrong}; it was discarded, and if the next fetch ends so too, its "
            "source has changed",
            UNMEASURED,
        )
    with made.open("rb") as file:
        os.fsync(file.fileno())
    made.replace(place)
    remember(place, str(facts["sha256"]))
    shutil.rmtree(folder)
    return facts


def from_addresses(card: Card, folder: Path) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they have rows."""
    source, size = card["source"], card["facts"].get("bytes")
    urls, headers = addresses_of(source)
    names = [Path(urllib.parse.urlsplit(url).path).name for url in urls]
    paths = [folder / f"{number:03}-{name}" for number, name in enumerate(names)]
    plain = suffix_of(paths[0]) not in READERS and "column" not in source
    longest = size if size is None or plain else max(size, source.get("download", 0)) + SLACK_BYTES
    for url, path, digest in zip(urls, paths, source.get("sha256") or [None] * len(paths), strict=True):
        if path.exists():
            continue
        say(f"fetching {url}")
        with bar(path.name, 0, "bytes") as show:
            Download(url, path, show, headers, longest).run()
        if digest is not None and (actual := fresh_digest_of(path)) != digest:
            path.unlink()
            raise Refusal(f"{url} has sha256 {actual}, not {digest} as on its card; it was discarded", UNMEASURED)
    if plain:
        return paths[0]
    whole = folder.joinpath(source["file"])
    with files.placing(whole) as temporary, temporary.open("wb") as file:
        for path in paths:
            say(f"unpacking {path.name}")
            with bar(path.name, path.stat().st_size, "bytes") as show:
                file.writelines(unpacked(source, path, show))
    return whole


def addresses_of(source: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The addresses of a source, its `url` or files of a dataset of Hugging Face, and headers for their host."""
    if source["kind"] == "url":
        return [source["url"]], {}
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [f"{base}/{path}" for path in source["paths"]], {"Authorization": f"Bearer {token}"} if token else {}


def unpacked(source: Mapping[str, Any], path: Path, show: Advance) -> Iterator[bytes]:
    """A file unpacked; or of a table the texts in the card's column, each with the card's separator."""
    if "column" not in source:
        yield from blocks_of(path, show)
    else:
        for document in documents_in(path, source["column"], show):
            yield b"".join(document) + source.get("separator", "").encode()


# One file over HTTP, resumed as many times as the connection breaks


class Broken(Exception):
    """The connection ended before the file did, or the server is busy."""


@dataclass(frozen=True)
class Download:
    """One file, to be fetched to `path`; what has arrived lies beside it, with the mark (ETag or date) of its version.

    `headers` go to the host of the address only, not to where it redirects. A file of more than `longest` bytes is
    discarded.
    """

    url: str
    path: Path
    show: Advance
    headers: Mapping[str, str]
    longest: int | None = None

    @property
    def part(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def mark(self) -> Path:
        return self.path.with_name(f"{self.path.name}.version")

    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def run(self) -> None:
        """Fetch the file, resuming an interrupted call. Raises Refusal, keeping what has arrived, if that fails."""
        if not self.url.startswith(("http://", "https://")):  # urllib would open local files, too
            raise Refusal(f"{self.url} cannot be fetched; an address starts with https://", UNMEASURED)
        most, fruitless = self.length(), 0
        while True:
            try:
                self.attempt()
                break
            except Broken as broken:
                fruitless = 0 if self.length() > most else fruitless + 1
                most = max(most, self.length())
                if fruitless >= FRUITLESS_ATTEMPTS:
                    raise Refusal(
                        f"{self.url} did not arrive whole ({broken}); {self.length()} bytes have arrived, run the same "
                        "command again to resume",
                        UNMEASURED,
                    ) from broken
                time.sleep(SECONDS_BETWEEN_ATTEMPTS * fruitless)
        self.part.replace(self.path)
        self.mark.unlink(missing_ok=True)

    def attempt(self) -> None:
        """Fetch the rest of the file, or all of it. Raises Broken if another attempt may succeed, else Refusal."""
        try:
            request = urllib.request.Request(self.url, headers={"User-Agent": "bpe-harness"})
            for name, value in self.headers.items():
                request.add_unredirected_header(name, value)
            if self.length() and self.mark.exists():
                request.add_header("Range", f"bytes={self.length()}-")
                request.add_header("If-Range", self.mark.read_text())
            with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_A_BYTE) as response:
                self.receive(response)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # there are not so many bytes
                self.discard()
            status = f"answers {error.code} {one_line(error.reason)}"
            if error.code in TEMPORARY:
                raise Broken(f"it {status}") from error
            hint = "get it another way and set data.path=FILE"
            raise Refusal(f"{self.url} {status}; {HINTS.get(error.code, hint)}", UNMEASURED) from error
        except (ValueError, http.client.InvalidURL) as error:
            raise Refusal(f"{self.url} cannot be fetched ({error})", UNMEASURED) from error
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)
            why = reason(cause) if isinstance(cause, OSError) else str(cause) or type(cause).__name__
            if self.length() and not isinstance(cause, ssl.SSLCertVerificationError):
                raise Broken(why) from error
            raise Refusal(
                f"cannot reach {self.url} ({why}); if this machine is offline, get it where there is a network "
                "and set data.path=FILE; if a certificate is not trusted, set SSL_CERT_FILE",
                UNMEASURED,
            ) from error

    def receive(self, response: Any) -> None:
        """Append what the server sends to the part, or replace it. Raises Broken if it ends early."""
        length = self.length()
        if response.status != 206:
            self.discard()  # before its mark is replaced: a mark must never be beside bytes of another version
            length, tag = 0, response.headers.get("ETag")
            # A weak tag does not identify a version.
            version = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
            if version is not None:
                files.write_whole(self.mark, version.encode())
        elif not re.match(rf"bytes {length}-", response.headers.get("Content-Range") or ""):
            self.discard()
            raise Broken("the server sent another range than was requested")
        rest = response.headers.get("Content-Length")
        total = length + int(rest) if rest is not None else None
        with self.part.open("ab") as part:
            while block := response.read1(BLOCK):
                length += len(block)
                if self.longest is not None and max(length, total or 0) > self.longest:
                    self.discard()
                    raise Refusal(
                        f"{self.url} has more than the {self.longest} bytes that its card allows; its source has "
                        "changed, and the download was discarded",
                        UNMEASURED,
                    )
                try:
                    part.write(block)
                    part.flush()
                except OSError as error:
                    raise files.cache_unusable(self.part, error) from error
                self.show(length, total)
        if total is not None and length != total:
            raise Broken(f"the connection ended after {length} of {total} bytes")
