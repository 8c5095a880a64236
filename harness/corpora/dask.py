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
from dataclasses import dataclass
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
from harness.corpora.files import CorpusFile
from harness.corpora.formats import documents_in, form_of, is_url
from harness.corpora.generators import cached_table
from harness.corpora.rows import RowReading
from harness.worker import exchange
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import parts as counting

Params = Mapping[str, Any]
RUN = "run"  # the file of a part's words in its entry of the cache
FORMAT = 7  # of a run in the cache; one of another format is not read
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
    part_bytes = parse_bytes(params["part"], "counting.params.part")
    if part_bytes < SMALLEST_PART:
        raise Refusal(
            f"counting.params.part={params['part']} is too small; the minimum is {bytes_text(SMALLEST_PART)}"
        )
    if card.get("skip_nulls"):
        raise Refusal("counting=dask cannot skip rows; leave out data.skip_nulls or counting=dask")
    name, members, separator = text_in_parts(card, corpus, file)
    parts = divide(members, part_bytes, corpus, separator, card.get("column"))
    label = f"{name}: {bytes_text(sum(part.size for part in parts))} in {counted_text(len(parts), 'part')}"
    key = cache.key_of(exchange.FORMAT, sorted(part.key for part in parts))
    if plan and cache.find("counts", key) is None:
        raise Refusal(
            f"the words of {label} are not counted yet, and a plan counts nothing; omit plan=true"
        )

    def make(folder: Path) -> dict[str, Any]:
        runs = f"parts/{key}"
        count(label, parts, params, memory, runs)
        manifest = merge_parts(parts, runs, folder)
        shutil.rmtree(cache.folder(runs))
        return manifest

    table = cached_table(key, make)
    word_counts, manifest = exchange.read_words(table)
    return CorpusFile(
        name, table, len(word_counts.data), manifest["sha256"], table=True, of_text=True
    )


def count(
    label: str, parts: Sequence[Chunk], params: Params, memory: int | None, runs: str
) -> None:
    """Have the parts counted that have no run among the entries `runs`. Raises Refusal if one cannot be
    read.
    """
    todo = [part for part in parts if cache.find(runs, part.key) is None]
    total, left = (sum(part.size for part in some) for some in (parts, todo))
    print_stderr(f"counting {label}, {count_text(len(parts) - len(todo))} of them counted before")
    with workers(params) as (client, replace_dead), bar("counting", total, "bytes") as show:
        for part, run in run_tasks(client, replace_dead, todo, memory):
            keep_run(runs, part.key, run)
            left -= part.size
            show(total - left)


def keep_run(runs: str, key: str, run: bytes) -> None:
    def write(folder: Path) -> None:
        (folder / RUN).write_bytes(run)

    cache.put(runs, key, write)


def merge_parts(parts: Sequence[Chunk], runs: str, folder: Path) -> dict[str, Any]:
    """Merge the runs of all parts into one word store; the memory does not grow with them."""
    tables = [
        counting.run_in(exchange.map_column(cache.place(runs, part.key) / RUN, "B"))
        for part in parts
    ]
    with contextlib.ExitStack() as opened:
        counting.merge_runs(
            tables,
            *(opened.enter_context((folder / name).open("w+b")) for name, _ in exchange.COLUMNS),
        )
    return exchange.finish(folder)


def text_in_parts(
    card: Mapping[str, Any], corpus: Corpus, file: CorpusFile | None
) -> tuple[str, list[tuple[Member, bool]], str]:
    """Name, files (and whether each is plain), separator. Raises Refusal if documents cannot be counted
    separately.
    """
    if file is not None:
        return file.name, [(member, True) for member in members_anywhere(str(file.path))], ""
    sources = local.sources_of(card, corpus.special_tokens, find=members_anywhere)
    separator = sources.separator
    if separator and not counting.ends_a_part(separator, corpus.special_tokens):
        needed = "counting them separately needs a special token there that no other can overlap"
        raise Refusal(
            f"{separator!r} is between the files, and {needed}; put such a token first in special_tokens"
        )
    is_plain = [form.is_plain for form in sources.forms]
    return sources.name, list(zip(sources.members, is_plain, strict=True)), separator


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
    is_plain: bool  # whether the bytes of the file are the text; such a file can be divided
    first: int
    last: int
    corpus: Corpus  # how to read it
    separator: str
    column: str | None

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def key(self) -> str:
        """A digest of all that its words depend on."""
        everything = f"{FORMAT} {regex.__version__} {self!r}"
        return hashlib.sha256(everything.encode(errors="surrogateescape")).hexdigest()


def divide(members: Sequence[tuple[Member, bool]], part_bytes: int, *how: Any) -> list[Chunk]:
    """The parts of these files, the largest first; those of plain text are not much larger than
    `part_bytes`.
    """
    parts = []
    for member, is_plain in members:
        number = max(1, -(-member.size // part_bytes)) if is_plain else 1
        bounds = [member.size * index // number for index in range(number + 1)]
        parts += [
            Chunk(member, is_plain, first, last, *how)
            for first, last in zip(bounds, bounds[1:], strict=False)
        ]
    return sorted(parts, key=lambda part: -part.size)


# What workers do. It may run any number of times, anywhere, and may be killed at any moment.


def count_part(part: Chunk, memory: int | None) -> bytes:
    """The words of a part as a sorted run. Raises Refusal, which names the part, if it cannot be
    read.
    """
    try:
        word_counts = count_words(part, memory)
        if not part.member.is_unchanged():
            raise Refusal(f"{part.member} was changed while it was counted; {AGAIN}", UNMEASURED)
    except (InvalidText, LeftOut) as error:
        error.path = f"{part.member}{'' if part.is_plain else form_of(part.member).remark}"
        raise Refusal(str(error), UNMEASURED) from error
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(part.member.address, error) from error
    try:
        return counting.sorted_run(word_counts)
    except OSError as error:
        raise Refusal(f"{line_of(error)}; then {AGAIN}", UNMEASURED) from error


def count_words(part: Chunk, memory: int | None) -> WordCounts:
    """The words of a part. Raises what a counter raises, and what reading the file raises."""
    corpus, separator = part.corpus, part.separator.encode()
    if not part.is_plain:
        reading = RowReading(part.column, errors=corpus.errors)
        form = form_of(part.member, reading.name)

        def write_documents(text: BinaryIO) -> None:
            with part.member.open() as file:
                for document in documents_in(part.member, file, reading, form):
                    local.append(text, document, separator)

        return counting.count_stream(corpus, write_documents, memory)
    with part.member.open() as file:
        start, stop = (
            counting.safe_place(corpus, file, part.member.size, bound)
            for bound in (part.first, part.last)
        )
        if part.size < part.member.size:
            file.seek(start)

        def copy(text: BinaryIO) -> None:
            left = stop - start
            # a file that became shorter has changed
            while left and (block := file.read(min(left, 1 << 20))):
                text.write(block)
                left -= len(block)

        try:
            return counting.count_stream(corpus, copy, memory)
        except (InvalidText, LeftOut) as error:
            error.offset += start
            raise


def run_tasks(
    client: Any, replace_dead: Callable[[], None], parts: Sequence[Chunk], memory: int | None
) -> Iterator[tuple[Chunk, bytes]]:
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
                if isinstance(result, bytes):
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
