"""A generated text, counted in parts while its workers are killed."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.corpora import CorpusFile
from harness.corpora.dask import Settings, counted_table
from variants.contract import GPT2_PATTERN, Corpus

END = "<|endoftext|>"


def write_text(path: Path, size: int, seed: int = 0) -> None:
    """About `size` bytes of documents whose words are drawn as those of a language are: few often, most seldom."""
    chance = random.Random(seed)
    words = [f"{chance.choice('abcdefgh')}{number:x}" for number in range(50_000)]
    block = "".join(
        " ".join(words[int(chance.paretovariate(0.6)) % len(words)] for _ in range(200)) + f".\n{END}"
        for _ in range(600)
    ).encode()
    with path.open("wb") as file:
        for number in range(-(-size // len(block))):
            file.write(block + b" number%d" % number)


def workers_of(process: int) -> list[int]:
    """The worker processes of this one."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            is_worker = b"distributed.cli.dask_worker" in (status.parent / "cmdline").read_bytes()
            if is_worker and int(status.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(status.parent.name))
    return found


@contextlib.contextmanager
def killing(most: int, pause: float, seed: int = 0) -> Iterator[list[int]]:
    """Kill up to `most` workers of this process, one after `pause` seconds on average; yields those killed so far."""
    chance, killed, stop = random.Random(seed), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < most and not stop.wait(chance.expovariate(1 / pause)):
            if there := workers_of(os.getpid()):
                killed.append(chance.choice(there))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        stop.set()
        killer.join()


def count(path: Any, part_bytes: int, scheduler: str | None = None, **other: Any) -> str:
    """Count what data.path names again by two workers, or those of a scheduler; returns the digest of the words."""
    corpus = Corpus("", (END,), other.pop("pattern", GPT2_PATTERN))
    table: CorpusFile = counted_table({"path": path}, corpus, Settings(scheduler, 2, part_bytes, None), None, False)
    shutil.rmtree(table.path)  # or the next would take these words
    return table.sha256
