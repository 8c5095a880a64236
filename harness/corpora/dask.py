"""Counting a text where it is: in parts, by workers of Dask on this machine or of a cluster.

A worker counts a part and returns its words as a sorted run, which stays in the cache until all
parts are counted; a part whose run is there is not counted again. Then this process merges the runs
into one table. Files are on this machine or behind a URL that fsspec opens.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import regex

from harness.common import cache
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.registry import at_least, parse_bytes
from harness.common.units import bytes_text, count_text, counted_text
from harness.corpora import local
from harness.corpora.cluster import GROUP, line_of, workers
from harness.corpora.files import BLOCK_BYTES, CorpusFile
from harness.corpora.formats import Form, documents_in, form_of, is_url
from harness.corpora.local import Documents
from harness.corpora.rows import RowReading
from harness.worker import exchange
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import parts as counting

Params = Mapping[str, Any]
RUN = "run"  # the file of a part's words in its entry of the cache
FORMAT = 8  # of a run in the cache; one of another format is not read
SMALLEST_PART = 1 << 16
SECONDS_BETWEEN_CHECKS = 0.1
AGAIN = "run the same command again"
STATES = (
    "ETag",
    "etag",
    "md5Hash",
    "blob_id",
    "sha256",
    "generation",
    "LastModified",
    "updated",
    "mtime",
    "created",
)
"""What services report of a file that changes when its content does; each reports some of it."""


def counted_table(
    card: Mapping[str, Any],
    corpus: Corpus,
    params: Params,
    memory: int | None,
    file: CorpusFile | None,
    plan: bool,
) -> CorpusFile:
    """The table of a text's words, from the cache or counted now; `file` is the text if it is one
    local file.
    """
    at_least("counting.params.workers", 1 if params["workers"] is None else params["workers"])
    part_bytes = max(SMALLEST_PART, parse_bytes(params["part"], "counting.params.part"))
    text = text_of(card, corpus, file)
    parts = divide(text, corpus, part_bytes)
    label = f"{text.name}: {bytes_text(sum(part.size for part in parts))} in {counted_text(len(parts), 'part')}"
    key = cache.key_of(exchange.FORMAT, sorted(part.key for part in parts))
    if plan and cache.find("counts", key) is None:
        raise Refusal(
            f"the words of {label} are not counted yet, and a plan counts nothing; omit plan=true"
        )

    def make(folder: Path) -> dict[str, Any]:
        runs = f"parts/{key}"
        facts = merge_parts(count(label, parts, params, memory, runs), folder)
        shutil.rmtree(cache.folder(runs))
        return facts

    table = cache.kept("counts", key, make)
    text.reading.skipped = table.facts["skipped"]
    text.reading.report()
    bytes, sha256 = table.facts["bytes"], table.facts["sha256"]
    return CorpusFile(text.name, table.path, bytes, sha256, table=True, of_text=True)


def count(
    label: str, parts: Sequence[Chunk], params: Params, memory: int | None, runs: str
) -> list[cache.Entry]:
    """Have the parts counted that have none of the entries `runs`; returns all of them. Raises Refusal
    if a part cannot be read.
    """
    entries = [entry for part in parts if (entry := cache.find(runs, part.key)) is not None]
    counted = {entry.path.name for entry in entries}
    todo = [part for part in parts if part.key not in counted]
    total, left = (sum(part.size for part in some) for some in (parts, todo))
    print_stderr(f"counting {label}, {count_text(len(entries))} of them counted before")
    with workers(params) as (client, replace_dead), bar("counting", total, "bytes") as show:
        for part, result in run_tasks(client, replace_dead, todo, memory):
            entries.append(cache.put(runs, part.key, result.write))
            left -= part.size
            show(total - left)
    return entries


def merge_parts(entries: Sequence[cache.Entry], folder: Path) -> dict[str, Any]:
    """Merge the runs of all parts into one word store; the memory does not grow with them. Returns
    the facts of words and text.
    """
    tables = [counting.run_in(exchange.map_column(entry.path / RUN, "B")) for entry in entries]
    with contextlib.ExitStack() as opened:
        counting.merge_runs(
            tables,
            *(opened.enter_context((folder / name).open("w+b")) for name, _ in exchange.COLUMNS),
        )
    totals = {name: sum(entry.facts[name] for entry in entries) for name in ("bytes", "skipped")}
    return {**exchange.finish(folder), **totals}


def text_of(card: Mapping[str, Any], corpus: Corpus, file: CorpusFile | None) -> Documents:
    """What is to be counted. Raises Refusal if its documents cannot be counted separately."""
    if file is not None:
        members = members_anywhere(str(file.path))
        return Documents(file.name, members, [Form()], RowReading())
    text = local.documents_of(card, corpus.special_tokens, corpus.errors, members_anywhere)
    separator = text.separator
    if separator and not counting.ends_a_part(separator, corpus.special_tokens):
        needed = "counting them separately needs a special token there that no other can overlap"
        raise Refusal(
            f"{separator!r} is between the files, and {needed}; put such a token first in special_tokens"
        )
    return text


@dataclass(frozen=True)
class Member:
    """A file of a corpus, here or behind a URL, as much of a `Path` as reading needs."""

    address: str
    size: int
    state: str  # changes when the file does

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    def open(self, _: str = "rb") -> BinaryIO:
        system, path = storage(self.address)
        return io.BufferedReader(system.open(path, "rb"), 1 << 20)

    def is_unchanged(self) -> bool:
        system, path = storage(self.address)
        return member_at(self.address, system.info(path)) == self


def member_at(address: str, info: Mapping[str, Any]) -> Member:
    """A file with its size and tag, or time; without its inode: workers see it through another
    mount.
    """
    value: Any = next((info[key] for key in STATES if info.get(key) is not None), None)
    return Member(
        address, info["size"], str(value.timestamp() if hasattr(value, "timestamp") else value)
    )


def storage(address: str) -> tuple[Any, str]:
    """The file system of a path or URL, its cache emptied, and the path in it."""
    fsspec = extra("fsspec", "counting=dask", GROUP)
    if not is_url(address):
        return fsspec.filesystem("file"), address
    system, path = fsspec.core.url_to_fs(address)
    system.invalidate_cache()
    return system, path


def members_anywhere(path: Any) -> list[Member]:
    """The files that data.path names, in order: of a list, a folder, a pattern, on this machine or
    behind URLs.
    """
    members = []
    for file in local.members_of(path, members_behind):
        if isinstance(file, Path):
            address = str(file.absolute())
            file = member_at(address, storage(address)[0].info(address))
        members.append(file)
    return members


def members_behind(url: str) -> list[Member]:
    """The files that a URL names: itself, those in a folder, those that match a pattern."""
    special = r"[*[]" if url.startswith("http") else r"[*?[]"  # ? starts a query on the web
    try:
        system, path = storage(url)
        if re.search(special, url):
            infos = system.glob(path, detail=True)
        else:
            info = system.info(path)
            infos = {path: info} if info["type"] != "directory" else system.find(path, detail=True)
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(url, error) from error

    names = [name for name in sorted(infos) if "/." not in f"/{name.removeprefix(path)}"]
    plain = {
        system.unstrip_protocol(name): infos[name]
        for name in (local.without_markers(names) if len(names) > 1 else names)
        if infos[name]["type"] == "file"
    }
    if not plain or any(info.get("size") is None for info in plain.values()):
        raise Refusal(
            f"{url} not found, or its size is unknown; fetch it and set data.path=FILE", UNMEASURED
        )
    return [member_at(address, info) for address, info in plain.items()]


def unreadable(address: str, error: Exception) -> Refusal:
    """One sentence on why a file cannot be read."""
    if isinstance(error, (Refusal, Unavailable)):
        return Refusal(str(error), UNMEASURED)
    why = f"{type(error).__name__}: {line_of(error)}"
    return Refusal(
        f"cannot read {address} ({why}); check its place and your credentials", UNMEASURED
    )


@dataclass(frozen=True)
class Chunk:
    """A file, or a range of a plain text: from the first safe place at `first` or later to that at
    `last` or later.
    """

    member: Member
    remark: str  # nothing if the bytes of the file are the text; such a file can be divided
    first: int
    last: int
    corpus: Corpus  # how to read it
    separator: str
    reading: RowReading

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def key(self) -> str:
        """A digest of all that its words depend on."""
        everything = f"{FORMAT} {regex.__version__} {self!r}"
        return hashlib.sha256(everything.encode(errors="surrogateescape")).hexdigest()


def divide(text: Documents, corpus: Corpus, part_bytes: int) -> list[Chunk]:
    """The parts of a text, the largest first; those of plain files are not much larger than
    `part_bytes`.
    """
    parts = []
    for member, form in zip(text.members, text.forms, strict=True):
        number = max(1, -(-member.size // part_bytes)) if form.is_plain else 1
        bounds = [member.size * index // number for index in range(number + 1)]
        for first, last in pairwise(bounds):
            how = corpus, text.separator, text.reading
            parts.append(Chunk(member, form.remark, first, last, *how))
    return sorted(parts, key=lambda part: -part.size)


# What workers do. It may run any number of times, anywhere, and may be killed at any moment.


@dataclass(frozen=True)
class CountedPart:
    """The words of a part as a sorted run, and facts of its text."""

    run: bytes
    facts: dict[str, int]

    def write(self, folder: Path) -> dict[str, int]:
        (folder / RUN).write_bytes(self.run)
        return self.facts


def count_part(part: Chunk, memory: int | None) -> CountedPart:
    """Count a part. Raises Refusal, which names the part, if it cannot be read."""
    try:
        word_counts, facts = count_words(part, memory)
        if not part.member.is_unchanged():
            raise Refusal(f"{part.member} was changed while it was counted; {AGAIN}", UNMEASURED)
    except (InvalidText, LeftOut) as error:
        error.path = f"{part.member}{part.remark}"
        raise Refusal(str(error), UNMEASURED) from error
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(part.member.address, error) from error
    try:
        return CountedPart(counting.sorted_run(word_counts), facts)
    except OSError as error:
        raise Refusal(f"{line_of(error)}; then {AGAIN}", UNMEASURED) from error


def count_words(part: Chunk, memory: int | None) -> tuple[WordCounts, dict[str, int]]:
    """The words of a part, the bytes of its text and the rows that were left out. Raises what a
    counter raises, and what reading the file raises.
    """
    corpus, member, reading = part.corpus, part.member, replace(part.reading)
    form = form_of(member, reading.name) if part.remark else Form()
    start = size = 0
    with member.open() as file:
        if part.remark:
            documents = documents_in(member, file, reading, form)
            end = part.separator
        else:
            places = part.first, part.last
            start, stop = (counting.safe_place(corpus, file, member.size, at) for at in places)
            documents = iter([blocks_between(file, start, stop)])
            end = part.separator if stop == member.size else ""

        def write(text: BinaryIO) -> None:
            nonlocal size
            for document in documents:
                size += local.append(text, document, end.encode())

        try:
            word_counts = counting.count_stream(corpus, write, memory)
        except (InvalidText, LeftOut) as error:
            error.offset += start
            raise
    return word_counts, {"bytes": size, "skipped": reading.skipped}


def blocks_between(file: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    """The bytes of a range. Of a file that became shorter, which has changed, what is left."""
    file.seek(start)
    while start < stop and (block := file.read(min(stop - start, BLOCK_BYTES))):
        yield block
        start += len(block)


def run_tasks(
    client: Any, replace_dead: Callable[[], None], parts: Sequence[Chunk], memory: int | None
) -> Iterator[tuple[Chunk, CountedPart]]:
    """Yield the parts with the results of `count_part`, in the order of finishing.

    Raises Refusal if the scheduler is lost, a task raises it, or no worker can run a task.
    """
    as_completed = extra("distributed", "counting=dask", GROUP).as_completed
    futures = {client.submit(count_part, part, memory, pure=False): part for part in parts}
    results = as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
    try:
        while futures:
            for future, result in results.next_batch(block=False):
                # Not the status: it changes when the worker dies after its result has arrived.
                if isinstance(result, CountedPart):
                    yield futures.pop(future), result
                elif isinstance(result, tuple) and isinstance(result[1], Refusal):
                    raise Refusal(str(result[1]), UNMEASURED)
                elif isinstance(result, tuple):
                    why = f"a worker cannot do its task ({type(result[1]).__name__}: {line_of(result[1])})"
                    advice = "workers need this version of bpe-harness and memory for a part"
                    raise Refusal(f"{why}; {advice}, see counting.params.part", UNMEASURED)
            if client.status not in ("running", "connecting"):
                raise Refusal(
                    f"the scheduler was lost; the words of counted parts are kept, {AGAIN}",
                    UNMEASURED,
                )
            replace_dead()
            time.sleep(SECONDS_BETWEEN_CHECKS)
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel(list(futures), force=True)
