"""Counting a text where it is: in parts, by threads of this process or by workers of Dask.

A worker counts a part and returns its words as a sorted run, which stays in the cache until all
parts are counted; a part whose run is there is not counted again. Then this process merges the runs
into one table. Files are on this machine or behind a URL that fsspec opens.
"""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import regex

from harness.common import cache
from harness.common.cards import DataCard
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import bytes_text, count_text, counted_text, one_line
from harness.corpora import local
from harness.corpora.files import CHANGED, CorpusFile
from harness.corpora.formats import Form
from harness.corpora.local import Documents
from harness.corpora.rows import RowReading
from harness.measure.machine import usable_cores
from harness.worker import exchange
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable
from variants.counting import parts as counting

GROUP = "distributed"
RUN = "run"  # the file of a part's words in its entry of the cache
FORMAT = 9  # of a run in the cache; one of another format is not read
PART_BYTES = 64_000_000
SECONDS_TO_CONNECT = 20
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
    card: DataCard,
    corpus: Corpus,
    scheduler: str | None,
    memory: int | None,
    file: CorpusFile | None,
    plan: bool,
) -> CorpusFile:
    """The table of a text's words, from the cache or counted now; `file` is the text if it is one
    local file.
    """
    text = text_of(card, corpus, file)
    parts = divide(text, corpus)
    size = sum(part.size for part in parts)
    label = f"{text.name}: {bytes_text(size)} in {counted_text(len(parts), 'part')}"
    key = cache.key_of(exchange.FORMAT, sorted(part.key for part in parts))
    if plan and cache.find("counts", key) is None:
        raise Refusal(
            f"the words of {label} are not counted yet, and a plan counts nothing; omit plan=true"
        )

    def make(folder: Path) -> dict[str, Any]:
        facts = merge_parts(count(label, parts, scheduler, memory, f"parts/{key}"), folder)
        cache.remove("parts", key)
        return facts

    table = cache.kept("counts", key, make)
    text.reading.skipped = table.facts["skipped"]
    text.reading.report()
    bytes, sha256 = table.facts["bytes"], table.facts["sha256"]
    return CorpusFile(text.name, table.path, bytes, sha256, table=True, of_text=True)


def text_of(card: DataCard, corpus: Corpus, file: CorpusFile | None) -> Documents:
    """What is to be counted. Raises Refusal if its documents cannot be counted separately."""
    found = [file.path] if file else local.members_of(card.path, members_behind)
    members = [
        member_of(str(member.absolute())) if isinstance(member, Path) else member
        for member in found
    ]
    if file is not None:
        return Documents(file.name, members, [Form()], RowReading())

    text = local.documents_of(card, corpus.special_tokens, corpus.errors, members)
    separator = text.separator
    if separator and not counting.ends_a_part(separator, corpus.special_tokens):
        needed = "counting them separately needs a special token there that no other can overlap"
        raise Refusal(
            f"{separator!r} is between the files, and {needed}; put such a token first in special_tokens"
        )
    return text


def count(
    label: str, parts: Sequence[Chunk], scheduler: str | None, memory: int | None, runs: str
) -> list[cache.Entry]:
    """Have the parts counted that have none of the entries `runs`; returns all of them. Raises Refusal
    if a part cannot be read.
    """
    left = {part.key: part for part in parts if cache.find(runs, part.key) is None}
    before = count_text(len(parts) - len(left))
    print_stderr(f"counting {label}, {before} of them counted before")

    done = 0
    with bar("counting", sum(part.size for part in left.values()), "bytes") as show:
        for part, result in results(left.values(), scheduler, memory):
            cache.put(runs, part.key, result.write)
            done += part.size
            show(done)
    return [entry for part in parts if (entry := cache.find(runs, part.key))]


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


# Files here or behind a URL


@dataclass(frozen=True)
class Member:
    """A file of a corpus, as much of a `Path` as reading needs."""

    address: str
    size: int
    state: str  # changes when the file does

    def __str__(self) -> str:
        return self.address

    def open(self, _: str = "rb") -> BinaryIO:
        system, path = storage(self.address)
        return io.BufferedReader(system.open(path, "rb"), 1 << 20)


def member_at(address: str, info: Mapping[str, Any]) -> Member:
    """A file with its size and tag, or time; without its inode: workers see it through another
    mount.
    """
    state: Any = next((info[key] for key in STATES if info.get(key) is not None), None)
    if hasattr(state, "timestamp"):  # a date in one answer is a number in another
        state = state.timestamp()
    return Member(address, info["size"], str(state))


def member_of(address: str) -> Member:
    system, path = storage(address)
    return member_at(address, system.info(path))


def storage(address: str) -> tuple[Any, str]:
    """The file system of a path or URL, its cache emptied, and the path in it."""
    system, path = extra("fsspec", "counting=dask", GROUP).core.url_to_fs(address)
    system.invalidate_cache()
    return system, path


def members_behind(url: str) -> list[Member]:
    """The files that a URL names: itself, those in a folder, those that match a pattern."""
    try:
        system, path = storage(url)
        infos = infos_at(system, path)
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(url, error) from error

    shown = [name for name in sorted(infos) if "/." not in f"/{name.removeprefix(path)}"]
    names = [
        name for name in local.without_markers(shown) or shown if infos[name]["type"] == "file"
    ]
    members = [member_at(system.unstrip_protocol(name), infos[name]) for name in names]
    if not members or any(member.size is None for member in members):
        raise Refusal(
            f"{url} not found, or its size is unknown; fetch it and set data.path=FILE", UNMEASURED
        )
    return members


def infos_at(system: Any, path: str) -> dict[str, Mapping[str, Any]]:
    """What a file system says of a file, of those in a folder, or else of those that match a
    pattern.
    """
    try:
        info = system.info(path)
    except FileNotFoundError:
        matching = dict(system.glob(path, detail=True))
        if not matching:
            raise
        return matching
    return dict(system.find(path, detail=True)) if info["type"] == "directory" else {path: info}


def unreadable(address: str, error: Exception) -> Refusal:
    """One sentence on why a file cannot be read."""
    if isinstance(error, (Refusal, Unavailable)):
        return Refusal(str(error), UNMEASURED)
    advice = "check its place and your credentials"
    return Refusal(f"cannot read {address} ({line_of(error)}); {advice}", UNMEASURED)


def line_of(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:300]


# Parts


@dataclass(frozen=True)
class Chunk:
    """A file, or a range of a plain one: from the first safe place at `first` or later to that at
    `last` or later.
    """

    member: Member
    form: Form
    separator: str
    reading: RowReading
    corpus: Corpus  # how to read it
    first: int
    last: int

    def __str__(self) -> str:
        return str(self.member)

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def key(self) -> str:
        """The key of all that its words depend on."""
        how = self.member, self.form.remark, self.separator, self.reading, self.corpus
        return cache.key_of(FORMAT, regex.__version__, self.first, self.last, repr(how))

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The safe places."""
        with self.member.open() as file:
            place_from = partial(counting.safe_place, self.corpus, file, self.member.size)
            return place_from(self.first), place_from(self.last)

    def open(self, _: str = "rb") -> BinaryIO:
        """The file, or the bytes of the range as one."""
        start, stop = self.bounds
        if not self.form.is_plain:
            return self.member.open()
        with self.member.open() as file:
            file.seek(start)
            return io.BytesIO(file.read(stop - start))


def divide(text: Documents, corpus: Corpus) -> list[Chunk]:
    """The parts of a text, the largest first; those of plain files are hardly larger than
    PART_BYTES.
    """
    parts = []
    for member, form in zip(text.members, text.forms, strict=True):
        number = max(1, -(-member.size // PART_BYTES)) if form.is_plain else 1
        bounds = [member.size * index // number for index in range(number + 1)]
        for first, last in pairwise(bounds):
            parts.append(Chunk(member, form, text.separator, text.reading, corpus, first, last))
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


def count_part(is_stopped: Callable[[], bool], part: Chunk, memory: int | None) -> CountedPart:
    """Count a part. Raises Refusal, which names the file, if it cannot be read."""
    sizes, reading = list[int](), replace(part.reading)

    def show(_: int) -> None:
        if is_stopped():
            raise Refusal("not needed any more")

    try:
        start, stop = part.bounds
        separator = part.separator if stop == part.member.size else ""
        text = Documents(str(part), [part], [part.form], reading, separator)
        word_counts = counting.count_stream(
            part.corpus, lambda file: sizes.append(text.write(file, show)[0]), memory
        )
        if member_of(part.member.address) != part.member:
            raise Refusal(f"{part} {CHANGED}", UNMEASURED)
    except (InvalidText, LeftOut) as error:
        error.path, error.offset = f"{part}{part.form.remark}", error.offset + start
        raise Refusal(str(error), UNMEASURED) from error
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(str(part), error) from error

    facts = {"bytes": sizes[0], "skipped": reading.skipped}
    return CountedPart(counting.sorted_run(word_counts), facts)


# Who does it


def results(
    parts: Iterable[Chunk], scheduler: str | None, memory: int | None
) -> Iterator[tuple[Chunk, CountedPart]]:
    """Yield the parts with the results of `count_part`, in the order of finishing.

    Raises Refusal if a task raises it, if the scheduler is lost, or if no worker can run a task.
    """
    with workers(scheduler) as submit:
        futures = {submit(part, memory): part for part in parts}
        try:
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        except Refusal:
            raise
        except Exception as error:  # whatever happens to a scheduler and its workers
            what = f"the scheduler or a worker was lost ({line_of(error)})"
            needs = "workers need this version of bpe-harness, memory and room"
            advice = "the words of counted parts are kept, run the same command again"
            raise Refusal(f"{what}; {needs}; {advice}", UNMEASURED) from error


@contextlib.contextmanager
def workers(scheduler: str | None) -> Iterator[Callable[..., Future[CountedPart]]]:
    """What has a part counted, by threads of this process or by the workers of a scheduler."""
    if scheduler is not None:
        with client_of(scheduler) as client:
            yield partial(client.get_executor(pure=False).submit, count_part, bool)
        return

    stop = threading.Event()
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield lambda part, memory: threads.submit(count_part, stop.is_set, part, memory)
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)


@contextlib.contextmanager
def client_of(scheduler: str) -> Iterator[Any]:
    """A client of a running scheduler of Dask's. Raises Refusal if it does not answer."""
    distributed = extra("distributed", "counting.params.scheduler", GROUP)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        advice = "set counting.params.scheduler=tcp://HOST:PORT of a running one, or omit it for workers here"
        raise Refusal(
            f"no scheduler answers at {scheduler} ({line_of(error)}); {advice}", UNMEASURED
        ) from error
    if not client.nthreads():
        print_stderr(f"waiting for the first worker of {scheduler}")
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)
