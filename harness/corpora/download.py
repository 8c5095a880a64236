"""One file over HTTP, resumed as many times as the connection breaks."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common import cache, files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.progress import Advance
from harness.common.units import one_line
from harness.corpora.files import BLOCK_BYTES

# status codes after which another attempt may succeed
TEMPORARY = {408, 416, 425, 429, 500, 502, 503, 504}
HINTS = {
    401: "it needs a login; for Hugging Face set HF_TOKEN",
    404: "put its new address on the card",
}
SECONDS_WITHOUT_A_BYTE = 30.0
FRUITLESS_ATTEMPTS = 5  # how many attempts in a row may bring no byte
SECONDS_BETWEEN_ATTEMPTS = 2.0


@dataclass
class Download:
    """One file, fetched to `path`; what has arrived lies beside it, with the mark (ETag or date) of
    its version.
    """

    url: str
    path: Path
    show: Advance
    headers: Mapping[str, str]  # for the host of the address only, not for where it redirects

    def __post_init__(self) -> None:
        self.part, self.mark = (
            self.path.with_name(f"{self.path.name}.{end}") for end in ("part", "version")
        )

    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def run(self) -> None:
        """Fetch the file, resuming an interrupted call. Raises Refusal, keeping what has arrived,
        if that fails.
        """
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
        """Fetch the rest of the file, or all of it. Raises OSError or HTTPException if it does not
        arrive.
        """
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

    def receive(self, response: Any) -> None:
        """Append what the server sends to the part, or replace it. Raises ConnectionError if it
        ends early.
        """
        length = self.length()
        if response.status != 206:
            # before its mark is replaced: a mark must never be beside bytes of another version
            self.discard()
            length, tag = 0, response.headers.get("ETag")
            # A weak tag does not identify a version.
            version = (
                tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
            )
            if version is not None:
                files.write_whole(self.mark, version.encode())
        elif not re.match(rf"bytes {length}-", response.headers.get("Content-Range") or ""):
            self.discard()
            raise ConnectionError("the server sent another range than was requested")
        rest = response.headers.get("Content-Length")
        total = length + int(rest) if rest is not None else None
        with self.part.open("ab") as part:
            while block := response.read1(BLOCK_BYTES):
                length += len(block)
                try:
                    part.write(block)
                    part.flush()
                except OSError as error:
                    raise cache.unusable(self.part, error) from error
                self.show(length, total)
        if total is not None and length != total:
            raise ConnectionError(f"the connection ended after {length} of {total} bytes")

    def refusal(self, error: Exception) -> Refusal:
        """One sentence on why the file cannot be fetched."""
        code, cause = getattr(error, "code", 0), getattr(error, "reason", error)
        why = (
            reason(cause)
            if isinstance(cause, OSError)
            else one_line(str(cause)) or type(cause).__name__
        )
        hint = HINTS.get(
            code, "run the same command again to resume, or get it elsewhere and set data.path=FILE"
        )
        return Refusal(
            f"{self.url} cannot be fetched ({f'{code} ' if code else ''}{why}); {hint}", UNMEASURED
        )


def is_final(error: Exception, arrived: int) -> bool:
    """Whether another attempt would end in the same way; a server that has sent something will be
    there again.
    """
    if isinstance(error, urllib.error.HTTPError):
        return error.code not in TEMPORARY
    return isinstance(error, http.client.InvalidURL) or (
        isinstance(error, urllib.error.URLError) and not arrived
    )
