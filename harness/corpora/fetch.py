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
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.console import Advance, bar, say
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import check_room
from harness.common.units import one_line
from harness.corpora.cards import FETCHED, Card, check_facts, difference, fetched_place
from harness.corpora.files import Damaged, check_readable, fresh_digest_of, remember
from harness.corpora.local import blocks_of, documents_in, is_compressed
from harness.corpora.packages import CLIENTS, from_packages

BLOCK = 1 << 18
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
        raise Refusal(f"nothing is fetched for {name}; python -m harness.corpora path {name} prints its place")
    place = fetched_place(card)
    with (files.cache_folder("downloads") / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time fetches it; the lock ends with its process
        if not place.exists():
            fetch_into(place, card)
        check_readable(place)
        facts = {"sha256": check_facts(name, place, card), "bytes": place.stat().st_size}
    missing = ", ".join(f"{fact} {value}" for fact, value in facts.items() if fact not in card["facts"])
    say(f"{name} is at {place}" + (f"; its card does not say: {missing}" if missing else ", as its card says"))
    return place


def fetch_into(place: Path, card: Card) -> None:
    """Fetch a file, verify it, put it at `place`."""
    folder = files.cache_folder("downloads", card["name"])
    if not any(folder.iterdir()):
        check_room(folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"])
    try:
        made = from_packages(card, folder) if card["source"]["kind"] in CLIENTS else from_addresses(card, folder)
        say(f"checking {made.name}")
        digest = fresh_digest_of(made)
        if wrong := difference(card, {"bytes": made.stat().st_size, "sha256": digest}):
            advice = "it was discarded, and if the next fetch ends so too, its source has changed"
            raise Damaged(f"what was fetched for {card['name']} {wrong}; {advice}")
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise
    made.replace(place)
    remember(place, digest)
    shutil.rmtree(folder)


def from_addresses(card: Card, folder: Path) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they have rows."""
    source = card["source"]
    urls, headers = addresses_of(source)
    paths = [folder / f"{number:03}-{Path(urllib.parse.urlsplit(url).path).name}" for number, url in enumerate(urls)]
    for url, path, digest in zip(urls, paths, source.get("sha256") or [None] * len(paths), strict=True):
        if path.exists():
            continue
        say(f"fetching {url}")
        with bar(path.name, 0, "bytes") as show:
            Download(url, path, show, headers).run()
        if digest is not None and (actual := fresh_digest_of(path)) != digest:
            path.unlink()
            raise Refusal(f"{url} has sha256 {actual}, not {digest} as on its card; it was discarded", UNMEASURED)
    if "column" not in source and not is_compressed(paths[0]):
        return paths[0]
    whole = folder.joinpath(source["file"])
    say(f"unpacking {whole.name}")
    with whole.open("wb") as file, bar(whole.name, card["facts"].get("bytes", 0), "bytes") as show:
        for path in paths:
            for block in texts_in(source, path):
                file.write(block)
                show(file.tell())
    return whole


def addresses_of(source: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The addresses of a source, its `url` or files of a dataset of Hugging Face, and headers for their host."""
    if source["kind"] == "url":
        return [source["url"]], {}
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [f"{base}/{path}" for path in source["paths"]], {"Authorization": f"Bearer {token}"} if token else {}


def texts_in(source: Mapping[str, Any], path: Path) -> Iterator[bytes]:
    """A file unpacked; or of a table the texts in the card's column, each with the card's separator."""
    with path.open("rb") as file:
        if "column" not in source:
            yield from blocks_of(path, file)
            return
        for document in documents_in(path, file, source["column"]):
            yield b"".join(document) + source.get("separator", "").encode()


# One file over HTTP, resumed as many times as the connection breaks


@dataclass
class Download:
    """One file, to be fetched to `path`; what has arrived lies beside it, with the mark (ETag or date) of its version.

    `headers` go to the host of the address only, not to where it redirects.
    """

    url: str
    path: Path
    show: Advance
    headers: Mapping[str, str]

    def __post_init__(self) -> None:
        self.part, self.mark = (self.path.with_name(f"{self.path.name}.{end}") for end in ("part", "version"))

    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def run(self) -> None:
        """Fetch the file, resuming an interrupted call. Raises Refusal, keeping what has arrived, if that fails."""
        most, fruitless = self.length(), 0
        while True:
            try:
                self.attempt()
                break
            except (OSError, http.client.HTTPException) as error:
                fruitless = 0 if self.length() > most else fruitless + 1
                most = max(most, self.length())
                if fruitless >= FRUITLESS_ATTEMPTS or is_final(error, most):
                    raise self.refusal(error) from error
                time.sleep(SECONDS_BETWEEN_ATTEMPTS * fruitless)
        self.part.replace(self.path)
        self.mark.unlink(missing_ok=True)

    def attempt(self) -> None:
        """Fetch the rest of the file, or all of it. Raises OSError or HTTPException if it does not arrive."""
        if not self.url.startswith(("http://", "https://")):  # urllib would open local files, too
            raise http.client.InvalidURL("an address starts with https://")
        request = urllib.request.Request(self.url, headers={"User-Agent": "bpe-harness"})
        for name, value in self.headers.items():
            request.add_unredirected_header(name, value)
        if self.length() and self.mark.exists():
            request.add_header("Range", f"bytes={self.length()}-")
            request.add_header("If-Range", self.mark.read_text())
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_A_BYTE) as response:
                self.receive(response)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # there are not so many bytes
                self.discard()
            raise

    def refusal(self, error: Exception) -> Refusal:
        """One sentence on why the file cannot be fetched."""
        code, cause = getattr(error, "code", 0), getattr(error, "reason", error)
        why = reason(cause) if isinstance(cause, OSError) else one_line(str(cause)) or type(cause).__name__
        hint = HINTS.get(code, "run the same command again to resume, or get it elsewhere and set data.path=FILE")
        return Refusal(f"{self.url} cannot be fetched ({f'{code} ' if code else ''}{why}); {hint}", UNMEASURED)

    def receive(self, response: Any) -> None:
        """Append what the server sends to the part, or replace it. Raises ConnectionError if it ends early."""
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
            raise ConnectionError("the server sent another range than was requested")
        rest = response.headers.get("Content-Length")
        total = length + int(rest) if rest is not None else None
        with self.part.open("ab") as part:
            while block := response.read1(BLOCK):
                length += len(block)
                try:
                    part.write(block)
                    part.flush()
                except OSError as error:
                    raise files.cache_unusable(self.part, error) from error
                self.show(length, total)
        if total is not None and length != total:
            raise ConnectionError(f"the connection ended after {length} of {total} bytes")


def is_final(error: Exception, arrived: int) -> bool:
    """Whether another attempt would end in the same way; a server that has sent something will be there again."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code not in TEMPORARY
    return isinstance(error, http.client.InvalidURL) or (isinstance(error, urllib.error.URLError) and not arrived)
