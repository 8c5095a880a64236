"""Outside trainers under the contract of a file trainer, each fed as its authors mean it to be fed.

What they all need is said here once: finding the package, refusing what it cannot do, and the text as it takes it. The
merges of a peer are its own. Where it has one of the contract's tie-breaks they must be identical to everybody's, and
any other question is refused, because an answer to it would only look like a comparison.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from variants.contract import NULL_METER, Corpus, TieBreak, Unavailable
from variants.counting.pretokenize import read_chunks, split_documents


def installed(package: str) -> Any:
    """The package, or None where it is not installed: importing it is no part of what is measured."""
    try:
        return importlib.import_module(package)
    except ImportError:
        return None


def expect(package: str, module: Any) -> None:
    """Raise Unavailable, with the command that installs it, where a package is absent."""
    if module is None:
        raise Unavailable(f"{package} is not installed; python -m pip install -e '.[peers]' installs it")


def expect_text(package: str, corpus: Corpus) -> None:
    """Raise Unavailable for raw bytes as words: these trainers take text."""
    if corpus.pattern is None:
        raise Unavailable(f"{package} takes text and no raw bytes; say another pattern than bytes")


def expect_tie_break(package: str, tie_break: TieBreak, own: Iterable[TieBreak]) -> None:
    """Raise Unavailable for a tie-break that a package does not have."""
    names = [each.value for each in own]
    if tie_break.value not in names:
        raise Unavailable(f"{package} does not break ties by {tie_break.value}; say tie_break={' or '.join(names)}")


def expect_no_minimum(package: str, min_count: int) -> None:
    """Raise Unavailable for a least count where a package knows none."""
    if min_count > 1:
        raise Unavailable(f"{package} has no least count of a pair; leave out min_count={min_count}")


def use_threads(threads: int) -> None:
    """Give a package's pool of threads its width; to be called before the pool is first used."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)


def wait_for_other_threads() -> None:
    """Return when no other thread of this process computes: what a package leaves to its pool is its own work as well.

    Where the system does not tell, it returns at once.
    """
    while any_other_computes():
        time.sleep(0.001)


def any_other_computes() -> bool:
    """Whether a thread besides this one runs, or would if it had a processor."""
    for thread in glob.glob("/proc/self/task/*/stat"):  # noqa: PTH207
        with contextlib.suppress(OSError), open(thread, "rb") as file:  # noqa: PTH123
            number, _, rest = file.read().partition(b" ")
            if int(number) != threading.get_native_id() and rest.rpartition(b")")[2].split()[0] in (b"R", b"D"):
                return True
    return False


def documents(corpus: Corpus) -> Iterator[str]:
    """The stretches of text between special tokens, which a package gets as one string each."""
    with open(corpus.path, "rb") as file:  # noqa: PTH123 - a job names its files by strings
        chunks = read_chunks(file, None, corpus.replaces_errors, NULL_METER)
        for document, _ in split_documents(chunks, corpus.special_tokens):
            yield document.decode()
