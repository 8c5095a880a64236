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
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import regex

from harness.common import cache
from harness.common.cards import DataCard
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import bytes_text, count_text, counted_text, one_line
from harness.corpora import local
from harness.corpora.files import CHANGED, CorpusFile
from harness.corpora.formats import Form, documents_in
from harness.corpora.local import Documents
from harness.corpora.rows import RowReading
from harness.measure.machine import usable_cores
from harness.worker import exchange
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable
from variants.counting import parts as counting

GROUP = "distributed"
RUN = "run"  # the file of a part's words in its entry of the cache
FORMAT = 10  # of a run in the cache; one of another format is not read
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
    parts = divide(text)
    size = sum(part.size for part in parts)
    label = f"{text.name}: {bytes_text(size)} in {counted_text(len(parts), 'part')}"
    remarks = [form.remark for form in text.forms]
    how = repr((text.members, remarks, text.separator, text.reading, corpus))
    key = cache.key_of(FORMAT, exchange.FORMAT, regex.__version__, PART_BYTES, how)
    if plan and cache.find("counts", key) is None:
        raise Refusal(
            f"the words of {label} are not counted yet, and a plan counts nothing; omit plan=true"
        )

    def make(folder: Path) -> dict[str, Any]:
        job = partial(count_part, replace(text, members=(), forms=()), corpus, memory)
        facts = merge_parts(count(label, parts, scheduler, job, f"parts/{key}"), folder)
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
    label: str, parts: Sequence[Chunk], scheduler: str | None, job: Job, runs: str
) -> list[cache.Entry]:
    """Have the parts counted that have none of the entries `runs`; returns all of them. Raises Refusal
    if a part cannot be read.
    """
    left = [part for part in parts if cache.find(runs, part.name) is None]
    before = count_text(len(parts) - len(left))
    print_stderr(f"counting {label}, {before} of them counted before")

    done = 0
    with bar("counting", sum(part.size for part in left), "bytes") as show:
        for part, result in results(left, scheduler, job):
            cache.put(runs, part.name, result.write)
            done += part.size
            show(done)
    return [entry for part in parts if (entry := cache.find(runs, part.name))]


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

    >>> alone = {"ETag": '"1"', "LastModified": 0, "size": 3}
    >>> listed = {**alone, "Key": "b/a", "Size": 3, "type": "file"}
    >>> member_at("s3://b/a", listed) == member_at("s3://b/a", alone)
    True
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

    names = []
    for name in sorted(infos):
        if infos[name]["type"] == "file" and "/." not in f"/{name.removeprefix(path)}":
            names.append(name)
    names = local.without_markers(names) or names
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
        return dict(system.glob(path, detail=True))
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


class Chunk(NamedTuple):
    """A file, or a range of a plain one: from the first safe place at `first` or later to that at
    `last` or later. `name` is that of its run in the cache.
    """

    name: str
    member: Member
    form: Form
    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first


def divide(text: Documents) -> list[Chunk]:
    """The parts of a text, the largest first; those of plain files are hardly larger than
    PART_BYTES.
    """
    parts = list[Chunk]()
    for member, form in zip(text.members, text.forms, strict=True):
        number = max(1, -(-member.size // PART_BYTES)) if form.is_plain else 1
        bounds = [member.size * index // number for index in range(number + 1)]
        for first, last in pairwise(bounds):
            parts.append(Chunk(str(len(parts)), member, form, first, last))
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


Job = Callable[[Callable[[], bool], Chunk], CountedPart]
"""Counts a part, unless what it is given says that nobody needs it any more."""


def count_part(
    text: Documents,
    corpus: Corpus,
    memory: int | None,
    is_stopped: Callable[[], bool],
    part: Chunk,
) -> CountedPart:
    """Count a part of a text. Raises Refusal, which names the file, if it cannot be read."""
    member, form, reading = part.member, part.form, replace(text.reading)
    size = start = 0

    def blocks(document: Iterator[bytes]) -> Iterator[bytes]:
        for block in document:
            if is_stopped():
                raise Refusal("not needed any more")
            yield block

    def write(target: BinaryIO) -> None:
        nonlocal size
        for document in documents_in(member, content, reading, form):
            size += local.append(target, blocks(document), end)

    try:
        with member.open() as content:
            place = partial(counting.safe_place, corpus, content, member.size)
            start, stop = place(part.first), place(part.last)
            content.seek(start)
            if form.is_plain:
                content = io.BytesIO(content.read(stop - start))
            end = text.separator.encode() if stop == member.size else b""
            word_counts = counting.count_stream(corpus, write, memory)
        if member_of(member.address) != member:
            raise Refusal(f"{member} {CHANGED}", UNMEASURED)
    except (InvalidText, LeftOut) as error:
        error.path, error.offset = f"{member}{form.remark}", error.offset + start
        raise Refusal(str(error), UNMEASURED) from error
    except Exception as error:  # whatever the libraries of all the services raise
        raise unreadable(str(member), error) from error

    facts = {"bytes": size, "skipped": reading.skipped}
    return CountedPart(counting.sorted_run(word_counts), facts)


# Who does it


def results(
    parts: Iterable[Chunk], scheduler: str | None, job: Job
) -> Iterator[tuple[Chunk, CountedPart]]:
    """Yield the parts with their results, in the order of finishing.

    Raises Refusal if a job raises it, if the scheduler is lost, or if no worker can run a job.
    """
    with workers(scheduler) as (executor, is_stopped):
        futures = {executor.submit(job, is_stopped, part): part for part in parts}
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
def workers(scheduler: str | None) -> Iterator[tuple[Any, Callable[[], bool]]]:
    """What runs jobs, threads of this process or the workers of a scheduler, and whether they are
    still needed.
    """
    if scheduler is not None:
        with client_of(scheduler) as client:
            yield client.get_executor(pure=False), bool
        return

    stop = threading.Event()
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield threads, stop.is_set
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
