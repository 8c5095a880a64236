"""Outside trainers under the contract of a file trainer, each fed as its authors mean it to be fed.

What they all need is said here once: finding the package, refusing what it cannot do, and the text as it takes it. The
merges of a peer are its own. Where it has one of the contract's tie-breaks they must be identical to everybody's, and
any other question is refused, because an answer to it would only look like a comparison. Where its own is none of
these, the default of `tie_break` is None, and its merges are replayed against the true counts instead.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.metadata
import io
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import regex

from variants.contract import NULL_METER, Corpus, TieBreak, Unavailable
from variants.counting.pretokenize import read_chunks, split_documents

# Private to whoever uses them: what a text does not hold among these can stand between its pre-tokens.
DIVIDERS = [chr(code) for code in range(0xE000, 0xE020)]


def installed(package: str) -> Any:
    """The package, or None where it is not installed: importing it is no part of what is measured."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # some greet
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
        raise Unavailable(f"{package} takes text and no raw bytes; choose another pattern than bytes")


def expect_tie_break(package: str, tie_break: TieBreak, own: Iterable[TieBreak]) -> None:
    """Raise Unavailable for a tie-break that a package does not have."""
    names = [each.value for each in own]
    if tie_break.value not in names:
        raise Unavailable(f"{package} does not break ties by {tie_break.value}; set tie_break={' or '.join(names)}")


def expect_own_ties(package: str, tie_break: TieBreak | None, ties: str) -> None:
    """Raise Unavailable where a tie-break is asked for: the package's own, which takes `ties`, is none of them."""
    if tie_break is not None:
        raise Unavailable(f"{package} breaks ties by no rule of tie_break's: it takes {ties}; set tie_break=own")


def expect_no_minimum(package: str, min_count: int) -> None:
    """Raise Unavailable for a least count where a package knows none."""
    if min_count > 1:
        raise Unavailable(f"{package} has no least count of a pair; leave out min_count={min_count}")


def expect_strict(package: str, corpus: Corpus) -> None:
    """Raise Unavailable where invalid text is to be replaced: the package reads the file itself."""
    if corpus.errors != "strict":
        raise Unavailable(f"{package} takes the bytes as they are; leave out errors={corpus.errors}")


def expect_text_work(
    package: str, module: Any, corpus: Corpus, tie_break: TieBreak, own: Iterable[TieBreak], min_count: int
) -> None:
    """Raise Unavailable unless a package is there and can do what is asked: a tie-break, no least count, text."""
    expect(package, module)
    expect_tie_break(package, tie_break, own)
    expect_no_minimum(package, min_count)
    expect_text(package, corpus)


def expect_text_work_with_own_ties(
    package: str, module: Any, corpus: Corpus, tie_break: TieBreak | None, ties: str, min_count: int
) -> None:
    """The same of a package that breaks ties by no rule of ours."""
    expect(package, module)
    expect_own_ties(package, tie_break, ties)
    expect_no_minimum(package, min_count)
    expect_text(package, corpus)


def with_version(distribution: str) -> str:
    """A package's name with its version."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return distribution


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


def whole_text(package: str, corpus: Corpus) -> tuple[str, str]:
    """The corpus as one string, with a pattern that finds its pre-tokens there: for a package that takes one string.

    A single document is taken as it is, with the corpus' own pattern. No pre-token may reach from one document into the
    next, nor look at it, so those of several documents are cut here and divided by a character that none of them holds.
    """
    assert corpus.pattern is not None, "raw bytes were refused"
    texts = list(documents(corpus))
    if len(texts) < 2:
        return "".join(texts), corpus.pattern
    divider = next((each for each in DIVIDERS if not any(each in text for text in texts)), None)
    if divider is None:
        raise Unavailable(f"{package} takes one string, and nothing is left to divide its documents by")
    pre_tokens = regex.compile(corpus.pattern)
    return divider.join(found.group() for text in texts for found in pre_tokens.finditer(text)), f"[^{divider}]+"
