"""Counting a text where it is: in parts, by workers of Dask on this machine or of a cluster.

A worker counts a part and leaves its words in the scratch folder as one shard: a sorted run for each partition of the
words by their hash. A part that has its shard is not counted again. Then this process merges the partitions of all
shards into one table. Files are on this machine or behind a URL that fsspec opens.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from harness.common import files
from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.progress import bar
from harness.common.registry import at_least
from harness.common.units import bytes_text, count_text, counted_text, parse_bytes
from harness.corpora import local
from harness.corpora.cards import counted_otherwise
from harness.corpora.files import CorpusFile
from harness.corpora.generators import WordBlock
from harness.corpora.local import is_url
from harness.corpora.parts import GROUP, Member, Part, Reading, divide, line_of, members_of, storage, unreadable
from harness.corpora.word_tables import Columns, cached_table, check_positions
from harness.measure.machine import usable_cores
from harness.worker import word_store
from variants.contract import Corpus, InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import parts as counting

PARTITIONS = 16
TRAILER = struct.Struct(f"<{PARTITIONS + 1}Q")
"""Ends a shard: where the run of each partition stops, and the checksum of all runs."""
SMALLEST_PART = 1 << 16
SECONDS_TO_CONNECT = 20
SECONDS_BETWEEN_CHECKS = 0.1
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
    memory: int | None


def settings_of(params: Mapping[str, Any], memory: int | None) -> Settings:
    """Check the parameters. Raises Refusal for invalid ones."""
    workers, scratch = params["workers"], params["scratch"]
    at_least("counting.params.workers", 1 if workers is None else workers)
    part_bytes = parse_bytes(params["part"], "counting.params.part")
    if part_bytes < SMALLEST_PART:
        raise Refusal(f"counting.params.part={params['part']} is too small; the minimum is {bytes_text(SMALLEST_PART)}")
    place = files.cache_folder("parts") if scratch is None else scratch if is_url(scratch) else Path(scratch).absolute()
    return Settings(params["scheduler"], workers or usable_cores(), part_bytes, str(place).rstrip("/"), memory)


def counted_table(
    card: Mapping[str, Any], corpus: Corpus, pattern_name: str, settings: Settings, file: CorpusFile | None, plan: bool
) -> CorpusFile:
    """The table of a text's words, from the cache or counted now; `file` is the text if it is one local file.

    Raises Refusal, with one sentence that says what is left and how to resume.
    """
    name, members, reading = text_of(card, corpus, file)
    parts = divide(members, reading, settings.part_bytes)
    size = f"{bytes_text(sum(part.size for part in parts))} in {counted_text(len(members), 'file')}"
    label = f"{size}, {counted_text(len(parts), 'part')}"
    key = hashlib.sha256(" ".join([str(word_store.FORMAT), *sorted(part.shard for part in parts)]).encode()).hexdigest()
    place = files.cache_folder("tables") / key
    if plan and word_store.whole(place) is None:
        raise Refusal(f"the words of {name} are not counted yet ({label}), and a plan counts nothing; omit plan=true")
    cached_table(place, Counting(f"{name}: {label}", parts, settings, f"{settings.scratch}/{key[:32]}").run)
    word_counts, manifest = word_store.read(place)
    table = CorpusFile(name, place, len(word_counts.data), manifest["sha256"], table=True, of_text=True)
    facts = {} if file is None else file.facts
    if wrong := counted_otherwise(replace(table, facts=facts), pattern_name, manifest, None):
        raise Refusal(wrong, UNMEASURED)
    return table


def text_of(card: Mapping[str, Any], corpus: Corpus, file: CorpusFile | None) -> tuple[str, list[Member], Reading]:
    """Name, files and reading of a text. Raises Refusal if its documents cannot be counted separately."""
    if file is not None:
        return file.name, members_of(str(file.path)), Reading(corpus, "", None)
    path, column, tokens = card["path"], card.get("column"), corpus.special_tokens
    members, separator = members_of(path), ""
    if local.check_column(path, members, column) or len(members) > 1:
        separator = local.separator_of(card, tokens, len(members))
        if separator not in tokens or not counting.ends_a_part(separator, tokens):
            raise Refusal(
                f"{separator!r} is between the files, and counting them separately needs a special token there that no "
                "other can overlap; put such a token first in special_tokens"
            )
    return local.name_of(path, members), members, Reading(corpus, separator, column)


# What workers do. It may run any number of times, anywhere, and may be killed at any moment.


def count_part(part: Part, scratch: str, memory: int | None) -> str | None:
    """Count a part and leave its words in the scratch folder; returns a sentence if the part cannot be read.

    Raises Refusal for what every other part would meet too.
    """
    try:
        word_counts = count_words(part, memory)
        if not part.member.is_unchanged():
            return f"{part} was changed while it was counted; {AGAIN}"
    except Unavailable as error:
        raise Refusal(str(error), UNMEASURED) from error
    except Refusal as error:
        return str(error)
    except (InvalidText, LeftOut) as error:
        error.path, place = part.member.place if part.is_plain else str(part), f"at byte {error.offset}"
        return str(error).replace(place, place + local.made_of(part.member, part.reading.column), 1)
    except Exception as error:  # whatever the libraries of all the services raise
        return unreadable(str(part), error)
    with refusing(scratch), tempfile.TemporaryFile(dir=counting.spill_folder()) as file:
        stops = counting.write_runs(word_counts, PARTITIONS, file)
        file.seek(0)
        runs = file.read()
        put(scratch, part.shard, runs + TRAILER.pack(*stops, zlib.crc32(runs)))
    return None


def count_words(part: Part, memory: int | None) -> WordCounts:
    """The words of a part. Raises what a counter raises, and what reading the file raises."""
    corpus, separator = part.reading.corpus, part.reading.separator.encode()
    if not part.is_plain:
        between = local.WHOLE if part.is_whole else (part.first, part.last)

        def write_documents(text: BinaryIO) -> None:
            for document in local.documents_in(part.member, part.reading.column, lambda _: None, between):
                local.append(text, document, separator)

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
    while length and (block := file.read(min(length, 1 << 20))):  # a file that became shorter has changed
        text.write(block)
        length -= len(block)


def put(scratch: str, name: str, content: bytes) -> None:
    """Write a file that appears whole: object stores promise that, and renaming does it on a disk."""
    system, path = storage(scratch)
    temporary = f"{path}/{name}" if is_url(scratch) else f"{path}/.{name}.{time.monotonic_ns()}"
    system.pipe_file(temporary, content)
    if not is_url(scratch):
        Path(temporary).replace(f"{path}/{name}")


@contextlib.contextmanager
def refusing(scratch: str) -> Iterator[None]:
    """Any error of the block is a Refusal that says the scratch folder needs room."""
    try:
        yield
    except Refusal:
        raise
    except Exception as error:  # whatever the libraries of all the services raise
        raise Refusal(
            f"{scratch} cannot take the shards of the words ({getattr(error, 'strerror', None) or line_of(error)}); "
            f"make room or set counting.params.scratch=FOLDER, and {AGAIN}: it resumes from the parts that are counted",
            UNMEASURED,
        ) from error


# What the command does


@dataclass(frozen=True)
class Counting:
    """Parts to be counted and merged, and the folder of their shards."""

    label: str
    parts: list[Part]
    settings: Settings
    scratch: str

    def run(self, place: Path) -> None:
        """Count all parts and merge them into the new folder `place`. Raises Refusal."""
        with refusing(self.scratch):
            put(self.scratch, "started", b"")
            system, path = storage(self.scratch)
            shards = {name.rpartition("/")[2] for name in system.ls(path, detail=False)}
        self.count([part for part in self.parts if part.shard not in shards])
        self.merge(place)
        system.rm(path, recursive=True)

    def count(self, parts: list[Part]) -> None:
        """Have these parts counted. Raises Refusal that names those that cannot be read."""
        total, left = (sum(part.size for part in each) for each in (self.parts, parts))
        resumed = f", {count_text(len(self.parts) - len(parts))} of them counted before" * (left < total)
        say(f"counting {self.label}{resumed}; shards take up to {bytes_text(total // 3)} in {self.scratch}")
        failures = []
        with workers(self.settings) as (client, replace_dead), bar("counting", total, "bytes") as show:
            for part, failure in run_tasks(client, replace_dead, parts, self.scratch, self.settings.memory):
                failures += [failure] if failure is not None else []
                left -= part.size
                show(total - left)
        if failures:
            number = f"{len(failures)} of {counted_text(len(self.parts), 'part')} cannot be read"
            stay = f"the other parts are counted and stay in {self.scratch}"
            raise Refusal("; ".join([*sorted(failures)[:5], f"{number}, {stay}"]), UNMEASURED)

    def merge(self, place: Path) -> None:
        """Merge all shards into one word store, several partitions at once.

        Runs are read from front to back, so the memory does not grow with them.
        """
        with (
            tempfile.TemporaryDirectory(prefix=".", dir=place.parent) as here,
            Columns(place) as columns,
            concurrent.futures.ThreadPoolExecutor(usable_cores()) as pool,
            bar("merging the words", PARTITIONS, "partitions") as show,
        ):
            shards = [self.shard(part.shard, here) for part in self.parts]
            merged = pool.map(functools.partial(merge_partition, here, shards), range(PARTITIONS))
            for done, folder in enumerate(merged, 1):
                words = word_store.mapped(folder)
                columns.append(WordBlock(*map(np.asarray, (words.data, np.diff(words.offsets), words.counts))))
                shutil.rmtree(folder)
                show(done)
        check_positions(self.label, place)
        word_store.finish(place)

    def shard(self, name: str, folder: str) -> list[WordCounts]:
        """The runs of a shard, mapped. Raises Refusal for a damaged one, which is removed."""
        system, path = storage(self.scratch)
        file = Path(folder if is_url(self.scratch) else path, name)
        with refusing(self.scratch):
            if is_url(self.scratch):
                system.get_file(f"{path}/{name}", str(file))
            content = word_store.map_column(file, "B", file.stat().st_size)
            *stops, checksum = TRAILER.unpack(bytes(content[-TRAILER.size :]).rjust(TRAILER.size))
            if zlib.crc32(content[: stops[-1]]) != checksum:
                system.rm(f"{path}/{name}")
                raise Refusal(f"{self.scratch}/{name} is damaged; {AGAIN} to count its part again", UNMEASURED)
        return [counting.run_in(content[start:stop]) for start, stop in zip([0, *stops], stops, strict=False)]


def merge_partition(folder: str, shards: Sequence[Sequence[WordCounts]], partition: int) -> Path:
    """Merge the runs of one partition from all shards into the columns of a new folder."""
    place = Path(folder, f"merged-{partition}")
    place.mkdir()
    with contextlib.ExitStack() as opened:
        columns = [opened.enter_context((place / name).open("w+b")) for name, _ in word_store.COLUMNS]
        counting.merge_runs([shard[partition] for shard in shards], *columns)
    return place


@contextlib.contextmanager
def workers(settings: Settings) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A client of the scheduler, or of one with processes on this machine, and a function that replaces dead ones."""
    distributed = extra("distributed", "counting=dask", GROUP)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as opened:
        address, replace_dead = settings.scheduler, lambda: None
        if address is None:
            quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
            address = opened.enter_context(distributed.LocalCluster(n_workers=0, **quiet)).scheduler_address
            replace_dead = opened.enter_context(processes(address, settings.workers))
        try:
            client = distributed.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise Refusal(
                f"no scheduler answers at {address} ({line_of(error)}); set counting.params.scheduler=tcp://HOST:PORT"
                " of a running one, or omit it for workers on this machine",
                UNMEASURED,
            ) from error
        opened.callback(close, client)
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", INNOCENT))
        if settings.scheduler is not None and not client.nthreads():
            say(f"waiting for the first worker of {address}")
        yield client, replace_dead


def close(client: Any) -> None:
    with contextlib.suppress(Exception):  # the scheduler may be gone
        client.close(timeout=2)


@contextlib.contextmanager
def processes(address: str, number: int) -> Iterator[Callable[[], None]]:
    """Worker processes on this machine; yields a function that replaces those that were killed.

    Not LocalCluster's: they would import the script that is running, and one killed while it starts is not replaced.
    """
    with tempfile.TemporaryDirectory(prefix=".", dir=counting.spill_folder()) as own, tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
        command += ["--memory-limit", "0", "--no-dashboard", "--local-directory", own]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        null, failures = subprocess.DEVNULL, 0

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, stdin=null, stdout=null, stderr=log, env=environment)

        def replace_dead() -> None:
            nonlocal failures
            for place, process in enumerate(running):
                if process.poll() is not None:
                    failures += process.returncode > 0
                    if failures > MOST_FAILURES:
                        log.seek(0)
                        last = log.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
                        raise Refusal(f"workers cannot be started on this machine ({last})", UNMEASURED)
                    running[place] = start()

        running = [start() for _ in range(number)]
        try:
            yield replace_dead
        finally:
            for process in running:
                process.kill()
                process.wait()


def run_tasks(
    client: Any, replace_dead: Callable[[], None], parts: Sequence[Part], scratch: str, memory: int | None
) -> Iterator[tuple[Part, str | None]]:
    """Yield the parts with the results of `count_part`, in the order of finishing.

    Raises Refusal if the scheduler is lost, a task raises it, or no worker can run a task.
    """
    as_completed = extra("distributed", "counting=dask", GROUP).as_completed
    futures = {client.submit(count_part, part, scratch, memory, pure=False): part for part in parts}
    results = as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
    try:
        while futures:
            for future, result in results.next_batch(block=False):
                if future.status == "error":
                    raise unable(result[1])
                if future.status == "finished":
                    yield futures.pop(future), result
            if client.status not in ("running", "connecting"):
                raise Refusal(f"the scheduler was lost; counted parts stay in {scratch}, {AGAIN}", UNMEASURED)
            replace_dead()
            time.sleep(SECONDS_BETWEEN_CHECKS)
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel(list(futures), force=True)


def unable(error: BaseException) -> Refusal:
    if isinstance(error, Refusal):
        return error
    return Refusal(
        f"a worker cannot do its task ({type(error).__name__}: {line_of(error)}); workers need this version of "
        "bpe-harness and memory for a part, see counting.params.part",
        UNMEASURED,
    )
