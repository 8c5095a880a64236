"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes;
then it is renamed into place. So a file in place is complete, an interrupted fetch resumes, and a
wrong file is never put there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import urllib.parse
from pathlib import Path

from harness.common import files
from harness.common.cards import inside
from harness.common.errors import UNMEASURED, Refusal
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.corpora.cards import FETCHED, Card, check_facts, difference, fetched_place
from harness.corpora.download import Download
from harness.corpora.files import Damaged, fresh_digest_of, remember
from harness.corpora.packages import ADVICE, Source, from_packages
from harness.corpora.rows import Form, RowReading, documents_in, form_of


def fetch(card: Card) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs
    from the card.
    """
    name, kind = card["name"], card["source"]["kind"]
    if kind not in FETCHED:
        raise Refusal(
            f"nothing is fetched for {name}; python -m harness.corpora path {name} prints its place"
        )
    place = fetched_place(card)
    with files.cache_lock(inside(files.cache_folder("downloads"), f"{name}.lock")) as lock:
        # one process at a time fetches it; the lock ends with its process
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            fetch_into(place, card)
        facts = {"sha256": check_facts(name, place, card), "bytes": place.stat().st_size}
    missing = ", ".join(
        f"{fact} {value}" for fact, value in facts.items() if fact not in card["facts"]
    )
    print_stderr(
        f"{name} is at {place}"
        + (f"; its card does not say: {missing}" if missing else ", as its card says")
    )
    return place


def fetch_into(place: Path, card: Card) -> None:
    """Fetch a file, verify it, put it at `place`."""
    folder = inside(files.cache_folder("downloads"), card["name"])
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        files.check_room(
            folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"]
        )
    try:
        made = (
            from_packages(card, folder)
            if card["source"]["kind"] in ADVICE
            else from_addresses(card, folder)
        )
        print_stderr(f"checking {made.name}")
        digest = fresh_digest_of(made)
        if wrong := difference(card, {"bytes": made.stat().st_size, "sha256": digest}):
            advice = "it was discarded, and if the next fetch ends so too, its source has changed"
            raise Damaged(f"what was fetched for {card['name']} {wrong}; {advice}", UNMEASURED)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise
    made.replace(place)
    remember(place, digest)
    shutil.rmtree(folder)


def from_addresses(card: Card, folder: Path) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they
    have rows.
    """
    source = card["source"]
    urls, headers = addresses_of(source)
    paths = [
        folder / f"{number:03}-{Path(urllib.parse.urlsplit(url).path).name}"
        for number, url in enumerate(urls)
    ]
    for url, path, digest in zip(
        urls, paths, source.get("sha256") or [None] * len(paths), strict=True
    ):
        if path.exists():
            continue
        print_stderr(f"fetching {url}")
        with bar(path.name, 0, "bytes") as show:
            Download(url, path, show, headers).run()
        if digest is not None and (actual := fresh_digest_of(path)) != digest:
            path.unlink()
            raise Refusal(
                f"{url} has sha256 {actual}, not {digest} as on its card; it was discarded",
                UNMEASURED,
            )
    forms = list(map(form_of, paths))
    if "column" not in source:
        forms = [Form(form.packed) for form in forms]
        if forms[0].is_plain:
            return paths[0]
    whole, separator = inside(folder, source["file"]), source.get("separator", "").encode()
    print_stderr(f"unpacking {whole.name}")
    with whole.open("wb") as text, bar(whole.name, card["facts"].get("bytes", 0), "bytes") as show:
        reading = RowReading(source.get("column"))
        for path, form in zip(paths, forms, strict=True):
            with path.open("rb") as file:
                for document in documents_in(path, file, reading, form):
                    for block in document:
                        text.write(block)
                        show(text.tell())
                    text.write(separator)
    return whole


def addresses_of(source: Source) -> tuple[list[str], dict[str, str]]:
    """The addresses of a source, its `url` or files of a dataset of Hugging Face, and headers for
    their host.
    """
    if source["kind"] == "url":
        return [source["url"]], {}
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [f"{base}/{path}" for path in source["paths"]], {
        "Authorization": f"Bearer {token}"
    } if token else {}
