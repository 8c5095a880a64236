"""What a card's addresses have: a file over HTTP, or the files of a data set of Hugging Face.

While data arrives, the size on the card is the limit.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harness.common import cache
from harness.common.cards import HuggingFace
from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.progress import Advance
from harness.common.units import one_line
from harness.corpora.files import BLOCK_BYTES, Damaged

HINTS = {
    401: "it needs a login; for Hugging Face run hf auth login, or set HF_TOKEN",
    404: "put its new address on the card",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), cache.ANOTHER),
}
"""What to do, by the code of an answer or of a system call."""
AGAIN = "run the same command again, or get it elsewhere and set data.path=FILE"
SECONDS_WITHOUT_A_BYTE = 30.0


def download(url: str, path: Path, limit: int, show: Advance) -> None:
    """Fetch one file over HTTP. Raises Refusal if that fails, and Damaged if more than `limit`
    bytes arrive (0 for no limit).
    """
    part = path.with_name(f"{path.name}.part")
    request = urllib.request.Request(url, headers={"User-Agent": "bpe-harness"})

    try:
        with (
            opener().open(request, timeout=SECONDS_WITHOUT_A_BYTE) as response,
            part.open("wb") as file,
        ):
            total = response.length
            while block := response.read1(BLOCK_BYTES):
                file.write(block)
                check_length(url, file.tell(), limit)
                show(file.tell(), total)
            if response.length:
                raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise refusal(url, error) from error
    part.replace(path)


@functools.cache
def opener() -> urllib.request.OpenerDirector:
    """What opens http and https alone, redirects included; urllib's own opens files and FTP, too."""
    made = urllib.request.OpenerDirector()
    for name in ["Proxy", "HTTP", "HTTPS", "HTTPDefaultError", "HTTPRedirect", "Unknown"]:
        made.add_handler(getattr(urllib.request, f"{name}Handler")())
    made.add_handler(urllib.request.HTTPErrorProcessor())
    return made


def check_length(name: str, length: int, limit: int) -> None:
    """Raise Damaged if more bytes have arrived than the card says."""
    if limit and length > limit:
        why = f"is longer than its card says ({limit} bytes at most), and was discarded"
        raise Damaged(f"{name} {why}; correct bytes or download on the card", UNMEASURED)


def refusal(url: str, error: Exception) -> Refusal:
    """One sentence on why a file cannot be fetched."""
    cause = getattr(error, "reason", error)
    why = reason(cause) if isinstance(cause, OSError) else str(cause)
    code = getattr(error, "code", 0) or getattr(getattr(error, "response", 0), "status_code", 0)
    hint = HINTS.get(code or getattr(error, "errno", 0), AGAIN)
    what = one_line(f"{code or ''} {why}")[:300] or type(error).__name__
    return Refusal(f"{url} cannot be fetched ({what}); {hint}", UNMEASURED)


# Hugging Face


def from_hub(source: HuggingFace, folder: Path, limit: int, show: Advance) -> list[Path]:
    """The files of a data set of Hugging Face, as its own client fetches them. Raises as `download`
    does.
    """
    hub = extra("huggingface_hub", "a data set of Hugging Face")
    paths: list[Path] = []
    for name in source.paths:
        before = sum(path.stat().st_size for path in paths)
        where = {"revision": source.revision, "repo_type": "dataset", "local_dir": folder}

        try:
            path = hub.hf_hub_download(
                source.repository,
                name,
                **where,
                endpoint=os.environ.get("HF_ENDPOINT"),
                tqdm_class=arrival(name, before, limit, show),
            )
        except Refusal:
            raise
        except Exception as error:  # of whichever library its client opens addresses by
            raise refusal(f"{source.repository}/{name}", error) from error
        paths.append(Path(path))
    return paths


def arrival(name: str, before: int, limit: int, show: Advance) -> type:
    """What the client of Hugging Face tells how much has arrived, in place of a bar of tqdm."""

    class Arrival(contextlib.AbstractContextManager[Any]):
        def __init__(self, *_: Any, initial: int = 0, **__: Any) -> None:
            self.length = before + initial

        def update(self, number: float = 1) -> None:
            self.length += int(number)
            check_length(name, self.length, limit)
            show(self.length)

        def close(self, *_: Any) -> None:
            """Nothing is open."""

        __exit__ = close

    return Arrival
