"""A generated text, counted in parts while its workers are killed."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from harness.corpora import CorpusFile
from harness.corpora.dask import Settings, counted_table
from variants.contract import GPT2_PATTERN, Corpus

END = "<|endoftext|>"


def write_text(path: Path, size: int) -> None:
    """About `size` bytes of documents whose words are drawn as those of a language are: few often, most seldom."""
    chance = random.Random(0)
    words = [f"{chance.choice('abcdefgh')}{number:x}" for number in range(50_000)]
    block = "".join(
        " ".join(words[int(chance.paretovariate(0.6)) % len(words)] for _ in range(200)) + f".\n{END}"
        for _ in range(600)
    ).encode()
    with path.open("wb") as file:
        for number in range(-(-size // len(block))):
            file.write(block + b" number%d" % number)


@contextlib.contextmanager
def killing() -> Iterator[list[int]]:
    """Kill up to six workers of this process, one after 0.7 seconds on average; yields those killed so far."""
    chance, killed, stop = random.Random(0), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < 6 and not stop.wait(chance.expovariate(1 / 0.7)):
            child = chance.choice(psutil.Process().children() or [None])
            with contextlib.suppress(psutil.Error):  # it has just ended
                if child and "distributed.cli.dask_worker" in child.cmdline():
                    child.kill()
                    killed.append(child.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        stop.set()
        killer.join()


def count(path: Any, part_bytes: int, scheduler: str | None = None, pattern: str = GPT2_PATTERN) -> str:
    """Count what data.path names again by two workers, or those of a scheduler; returns the digest of the words."""
    corpus = Corpus("", (END,), pattern)
    table: CorpusFile = counted_table({"path": path}, corpus, Settings(scheduler, 2, part_bytes, None), None, False)
    shutil.rmtree(table.path)  # or the next would take these words
    return table.sha256
