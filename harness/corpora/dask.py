"""Counting a text where it is: in parts, by workers of Dask on this machine or of a cluster.

A worker counts a part and leaves its words in the scratch folder as one shard: a sorted run for each partition of the
words by their hash. A part that has its shard is not counted again. Then this process merges the partitions of all
shards into one table.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import hashlib
import logging
import mmap
import os
import queue
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from harness.common import files
from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.progress import bar
from harness.common.registry import at_least
from harness.common.units import bytes_text, count_text, counted_text, parse_bytes
from harness.corpora.cards import counted_otherwise
from harness.corpora.files import CorpusFile
from harness.corpora.formats import COLUMN, WHOLE, kind_of
from harness.corpora.local import append, documents_in, is_url, made_of, name_of, separator_of
from harness.corpora.parts import (
    GROUP,
    Member,
    Part,
    Reading,
    Scratch,
    divide,
    local_state,
    members,
    one_line,
    unreadable,
)
from harness.corpora.word_tables import Columns, check_positions, kept_table
from harness.worker import word_store
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import parts as counting

PARTITIONS = 16
TRAILER = struct.Struct(f"<{PARTITIONS + 1}Q")
"""Ends a shard: where the run of each partition stops, and the checksum of all runs."""
SMALLEST_PART = 1 << 16
SHARE_IN_SHARDS = 0.35
"""About what the shards take of a text's bytes, for the first line of output: parts of 64 MB of English take 0.25."""
MOST_SHOWN = 5
SECONDS_TO_CONNECT = 20
SECONDS_BETWEEN_CHECKS = 0.5
MOST_FAILURES = 10
INNOCENT = 1_000_000
"""How often a worker may die with a task before Dask gives the task up: the machine ends workers, not the task."""
AGAIN = "run the same command again"


@dataclass(frozen=True)
class Settings:
    """counting.params, and counting.memory in bytes."""

    scheduler: str | None
    workers: int
    part_bytes: int
    scratch: str
    keep: bool
    memory: int | None


def settings_of(params: Mapping[str, Any], memory: int | None) -> Settings:
    """Check the parameters. Raises Refusal for invalid ones."""
    workers, scratch = params["workers"], params["scratch"]
    at_least("counting.params.workers", 1 if workers is None else workers)
    part_bytes = parse_bytes(params["part"], "counting.params.part")
    if part_bytes < SMALLEST_PART:
        raise Refusal(f"counting.params.part={params['part']} is too small; the minimum is {bytes_text(SMALLEST_PART)}")
    place = files.cache_folder("parts") if scratch is None else scratch if is_url(scratch) else Path(scratch).absolute()
    number = workers or cores()
    return Settings(params["scheduler"], number, part_bytes, str(place), bool(params["keep"]), memory)


def cores() -> int:
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()) or 1


# What workers do. It may run any number of times, anywhere, and may be killed at any moment.


def count_part(part: Part, folder: str, memory: int | None) -> str | None:
    """Count a part and leave its words in the folder, unless they are there.

    Returns a sentence if the part cannot be read. Raises Refusal for what every other part would meet too.
    """
    scratch = Scratch(folder)
    with refusing(folder):
        if scratch.exists(part.file):
            return None
        try:
            word_counts = count_words(part, memory)
            if not part.member.is_unchanged():
                return f"{part} was changed while it was counted; {AGAIN}"
        except Unavailable as error:
            raise Refusal(str(error), UNMEASURED) from error
        except Refusal as error:
            return str(error)
        except (InvalidText, LeftOut) as error:
            error.path, place = part.member.place, f"at byte {error.offset}"
            return str(error).replace(place, place + origin(part), 1)
        except Exception as error:  # whatever the libraries of all the services raise
            return unreadable(str(part), error)
        write_shard(scratch, part.file, word_counts)
    return None


@contextlib.contextmanager
def refusing(folder: str) -> Iterator[None]:
    """Any error of the block is a Refusal that says the scratch folder needs room."""
    try:
        yield
    except Refusal:
        raise
    except Exception as error:  # whatever the libraries of all the services raise
        raise Refusal(
            f"{folder} cannot take the shards of the words ({getattr(error, 'strerror', None) or one_line(error)}); "
            f"make room or set counting.params.scratch=FOLDER, and {AGAIN}: it resumes from the parts that are counted",
            UNMEASURED,
        ) from error


def origin(part: Part) -> str:
    """What an offset counts if it does not count the bytes of the file."""
    if part.is_plain or part.is_whole:
        return made_of(part.member)
    return f" of the texts in its bytes {part.first} to {part.last}"


def count_words(part: Part, memory: int | None) -> WordCounts:
    """The words of a part. Raises what a counter raises, and what reading the file raises."""
    corpus, separator = part.reading.corpus, part.reading.separator.encode()
    if not part.is_plain:
        between = WHOLE if part.is_whole else (part.first, part.last)

        def write_documents(text: BinaryIO) -> None:
            for document in documents_in(part.member, part.reading.column, lambda _: None, between):
                append(text, document, separator)

        return counting.count_stream(corpus, write_documents, memory)
    with part.member.open() as file:

        def read(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)  # type: ignore[no-any-return]

        start, stop = (counting.safe_place(corpus, read, part.member.size, place) for place in (part.first, part.last))
        if not part.is_whole:
            file.seek(start)
        try:
            return counting.count_stream(corpus, functools.partial(copy, file, stop - start), memory)
        except (InvalidText, LeftOut) as error:
            error.offset += start
            raise


def copy(file: BinaryIO, length: int, text: BinaryIO) -> None:
    while length:
        block = file.read(min(length, 1 << 20))
        if not block:
            raise EOFError("it ends early")
        text.write(block)
        length -= len(block)


def write_shard(scratch: Scratch, name: str, word_counts: WordCounts) -> None:
    with tempfile.NamedTemporaryFile(prefix=".", dir=scratch.workspace(), delete=False) as file:
        stops = counting.write_runs(word_counts, PARTITIONS, file)  # type: ignore[arg-type]
        file.seek(0)
        file.write(TRAILER.pack(*stops, zlib.crc32(file.read())))
    scratch.put(Path(file.name), name)


# What the command does


class Lost(Exception):
    """The scheduler is gone; the shards of finished parts are there."""


def counted_table(
    card: Mapping[str, Any], corpus: Corpus, pattern_name: str, settings: Settings, file: CorpusFile | None, plan: bool
) -> CorpusFile:
    """The table of a text's words, from the cache or counted now; `file` is the text if it is one local file.

    Raises Refusal, with one sentence that says what is left and how to resume.
    """
    name, listed, reading = text_of(card, corpus, file)
    parts = divide(listed, reading, settings.part_bytes)
    size = f"{bytes_text(sum(part.size for part in parts))} in {counted_text(len(listed), 'file')}"
    label = f"{size}, {counted_text(len(parts), 'part')}"
    key = hashlib.sha256(" ".join([str(word_store.FORMAT), *sorted(part.file for part in parts)]).encode()).hexdigest()
    place = files.cache_folder("tables") / key
    if plan and not word_store.is_whole(place):
        raise Refusal(f"the words of {name} are not counted yet ({label}), and a plan counts nothing; omit plan=true")
    scratch = Scratch(f"{settings.scratch.rstrip('/')}/{key[:32]}")
    kept_table(place, Counting(name, label, parts, settings, scratch).run)
    word_counts, manifest = word_store.read(place)
    table = CorpusFile(name, place, len(word_counts.data), manifest["sha256"], table=True, of_text=True)
    facts = {} if file is None else file.facts
    if wrong := counted_otherwise(replace(table, facts=facts), pattern_name, manifest, None):
        raise Refusal(wrong, UNMEASURED)
    return table


def text_of(card: Mapping[str, Any], corpus: Corpus, file: CorpusFile | None) -> tuple[str, list[Member], Reading]:
    """Name, files and reading of a text. Raises Refusal if its documents cannot be counted separately."""
    if file is not None:
        name, listed = file.name, [Member(str(file.path), file.bytes, local_state(file.path))]
    else:
        listed = members(card["path"])
        name = name_of(card["path"], listed)  # type: ignore[arg-type]
    has_rows = any(kind_of(member) for member in listed)  # type: ignore[arg-type]
    if card.get("column") is not None and not has_rows and file is None:
        raise Refusal(
            f"data.column={card['column']}, but {card['path']} is plain text; columns are in .parquet and .jsonl files"
        )
    separator = ""
    if len(listed) > 1 or has_rows:
        separator, tokens = separator_of(card, corpus.special_tokens, len(listed)), corpus.special_tokens
        if separator not in tokens or not counting.ends_a_part(separator, tokens):
            raise Refusal(
                f"{separator!r} is between the files, and counting them separately needs a special token there that no "
                "other can overlap; put such a token first in special_tokens"
            )
    return name, listed, Reading(corpus, separator, card.get("column") or COLUMN)


@dataclass(frozen=True)
class Counting:
    """Parts to be counted and merged, and where their shards are."""

    name: str
    label: str
    parts: list[Part]
    settings: Settings
    scratch: Scratch

    def run(self, place: Path) -> None:
        """Count all parts and merge them into the new folder `place`. Raises Refusal."""
        left = self.missing()
        self.announce(len(self.parts) - len(left))
        try:
            with workers(self.settings, self.scratch.workspace()) as run:
                self.count(run, left)
        except Lost:
            scheduler, counted = self.settings.scheduler or "on this machine", len(self.parts) - len(self.missing())
            raise Refusal(
                f"the scheduler {scheduler} was lost; {counted} of {len(self.parts)} parts are counted and stay in "
                f"{self.scratch.place}, {AGAIN} for the rest",
                UNMEASURED,
            ) from None
        self.merge(place)
        if not self.settings.keep:
            self.scratch.remove()

    def missing(self) -> list[Part]:
        """Make the scratch folder; returns the parts that it lacks. Raises Refusal if it cannot be used."""
        with refusing(self.scratch.place):
            with tempfile.NamedTemporaryFile(dir=self.scratch.workspace(), delete=False) as empty:
                self.scratch.put(Path(empty.name), "started")
            counted = self.scratch.names()
        if not is_url(self.scratch.place):
            files.hold(Path(self.scratch.place))
        return [part for part in self.parts if part.file not in counted]

    def announce(self, counted: int) -> None:
        place = self.scratch.place
        where = self.settings.scheduler or f"{counted_text(self.settings.workers, 'worker')} on this machine"
        resumed = f", {count_text(counted)} of them counted before" if counted else ""
        room = bytes_text(int(SHARE_IN_SHARDS * sum(part.size for part in self.parts)))
        free = "" if is_url(place) else f" ({bytes_text(shutil.disk_usage(place).free)} free)"
        say(f"counting {self.name}: {self.label}{resumed}; by {where}; shards take up to {room} in {place}{free}")

    def count(self, run: Run, parts: list[Part]) -> None:
        """Have these parts counted. Raises Refusal that names those that cannot be read."""
        total, left = (sum(part.size for part in each) for each in (self.parts, parts))
        failed: list[str] = []
        with bar(f"counting {self.name}", total, "bytes") as show:
            for part, failure in run(parts, self.scratch.place, self.settings.memory):
                failed += [failure] if failure is not None else []
                left -= part.size
                show(total - left)
        if failed:
            more = [f"{len(failed) - MOST_SHOWN} more parts cannot be read"] * (len(failed) > MOST_SHOWN)
            stay = [f"the other parts are counted and stay in {self.scratch.place}"] * (len(failed) < len(self.parts))
            raise Refusal("; ".join([*sorted(failed)[:MOST_SHOWN], *more, *stay]), UNMEASURED)

    def merge(self, place: Path) -> None:
        """Merge all shards into one word store, several partitions at once.

        Runs are read from front to back, so the memory does not grow with them.
        """
        with (
            tempfile.TemporaryDirectory(prefix=".", dir=self.scratch.workspace()) as here,
            Columns(place) as columns,
            concurrent.futures.ThreadPoolExecutor(cores()) as pool,
            bar(f"merging the words of {self.name}", PARTITIONS, "partitions") as show,
        ):
            shards = [self.shard(name, here) for name in sorted(part.file for part in self.parts)]
            merged = pool.map(functools.partial(merge_partition, here, shards), range(PARTITIONS))
            for done, folder in enumerate(merged, 1):
                columns.append_columns(folder)
                shutil.rmtree(folder)
                show(done)
        check_positions(self.name, place)
        word_store.finish(place)

    def shard(self, name: str, folder: str) -> list[WordCounts]:
        """The runs of a shard, mapped. Raises Refusal for a damaged one, which is removed."""
        with refusing(self.scratch.place), self.scratch.get(name, folder).open("rb") as file:
            try:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                *stops, checksum = TRAILER.unpack(content[-TRAILER.size :])
                if zlib.crc32(content[: stops[-1]]) != checksum:
                    raise ValueError
            except (ValueError, struct.error):
                self.scratch.remove(name)
                place = f"{self.scratch.place}/{name}"
                raise Refusal(f"{place} is damaged; {AGAIN} to count its part again", UNMEASURED) from None
        return [counting.run_in(content[start:stop]) for start, stop in zip([0, *stops], stops, strict=False)]


def merge_partition(folder: str, shards: Sequence[Sequence[WordCounts]], partition: int) -> Path:
    """Merge the runs of one partition from all shards into the columns of a new folder. Raises Refusal."""
    place = Path(folder, f"merged-{partition}")
    with refusing(folder), contextlib.ExitStack() as opened:
        place.mkdir()
        columns = [opened.enter_context((place / name).open("w+b")) for name, _ in word_store.COLUMNS]
        counting.merge_runs([shard[partition] for shard in shards], *columns)
    return place


Run = Callable[[Sequence[Part], str, int | None], Iterator[tuple[Part, str | None]]]
"""Calls `count_part` with each part, yields the parts with the results, in the order of finishing."""


@contextlib.contextmanager
def workers(settings: Settings, folder: str) -> Iterator[Run]:
    """The workers of a scheduler, or processes on this machine with files in `folder`. Raises Refusal and Lost."""
    distributed, dask = (extra(name, "counting=dask", GROUP) for name in ("distributed", "dask"))
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as opened:
        address = settings.scheduler
        check: Callable[[], None] = lambda: None  # noqa: E731
        if address is None:
            opened.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": INNOCENT}))
            quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
            cluster = opened.enter_context(distributed.LocalCluster(n_workers=0, **quiet))
            address = cluster.scheduler_address
            check = opened.enter_context(processes(address, settings.workers, folder))
        try:
            client = distributed.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise Refusal(
                f"no scheduler answers at {address} ({one_line(error)}); set counting.params.scheduler=tcp://HOST:PORT"
                " of a running one, or omit it for workers on this machine",
                UNMEASURED,
            ) from error
        opened.callback(close, client)
        if settings.scheduler is not None:
            client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", INNOCENT))
            if not client.nthreads():
                say(f"waiting for the first worker of {address}")
        yield functools.partial(run_tasks, client, check)


@contextlib.contextmanager
def processes(address: str, number: int, folder: str) -> Iterator[Callable[[], None]]:
    """Worker processes on this machine; yields a function that replaces those that were killed.

    Not LocalCluster's: they would import the script that is running, and one killed while it starts is not replaced.
    """
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as own, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
        command += ["--memory-limit", "0", "--no-dashboard", "--local-directory", own]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        null, failures = subprocess.DEVNULL, 0

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, stdin=null, stdout=null, stderr=errors, env=environment)

        def replace_dead() -> None:
            nonlocal failures
            for place, process in enumerate(running):
                if process.poll() is not None:
                    failures += process.returncode > 0
                    if failures > MOST_FAILURES:
                        errors.seek(0)
                        last = errors.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
                        raise Refusal(f"workers cannot be started on this machine ({last})", UNMEASURED)
                    running[place] = start()

        running = [start() for _ in range(number)]
        try:
            yield replace_dead
        finally:
            for process in running:
                process.kill()
                process.wait()


def close(client: Any) -> None:
    with contextlib.suppress(Exception):  # the scheduler may be gone
        client.close(timeout=2)


def run_tasks(
    client: Any, check: Callable[[], None], parts: Sequence[Part], folder: str, memory: int | None
) -> Iterator[tuple[Part, str | None]]:
    """See `Run`. Raises Lost if the scheduler is gone, Refusal if a task raises it or no worker can run a task."""
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    futures = {client.submit(count_part, part, folder, memory, pure=False): part for part in parts}
    try:
        for future in futures:
            future.add_done_callback(ended.put)
        while futures:
            future, result = next_result(client, check, ended)
            yield futures.pop(future), result
    except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError):
        raise Lost from None
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel(list(futures), force=True)


def next_result(client: Any, check: Callable[[], None], ended: queue.SimpleQueue[Any]) -> tuple[Any, Any]:
    """The next future that is done, with its result, which is computed again if its worker is killed before."""
    while True:
        with contextlib.suppress(queue.Empty):
            future = ended.get(timeout=SECONDS_BETWEEN_CHECKS)
            try:
                return future, future.result(timeout=SECONDS_BETWEEN_CHECKS)
            except TimeoutError:
                ended.put(future)
            except (OSError, Refusal):
                raise
            except Exception as error:
                if future.status != "error":
                    raise Lost from None
                raise Refusal(
                    f"a worker cannot do its task ({type(error).__name__}: {one_line(error)}); workers need this "
                    "version of bpe-harness and memory for a part, see counting.params.part",
                    UNMEASURED,
                ) from error
        if client.status not in ("running", "connecting"):
            raise Lost
        check()
