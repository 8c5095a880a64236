"""Outside trainers under the contract of a file trainer, each fed as its authors mean it to be fed.

What they share is written here once: finding the package, refusing what it cannot do, and the text as it takes it. The
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

from variants.contract import GPT2_CHARACTERS, NULL_METER, Corpus, TieBreak, Unavailable
from variants.counting.pretokenize import read_chunks, split_documents
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding

# Private to whoever uses them: what a text does not hold among these can stand between its pre-tokens.
DIVIDERS = [chr(code) for code in range(0xE000, 0xE020)]


def installed(package: str) -> Any:
    """The package, or None where it is not installed: importing it is not measured."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # some greet
            return importlib.import_module(package)
    except ImportError:
        return None


class Peer:
    """An outside trainer, its package (None where that is not installed), and what it supports.

    `own` are its tie-breaks among the contract's; `ties` says in words which of equally frequent pairs it takes.
    """

    def __init__(
        self,
        name: str,
        package: str,
        way_in: str,
        ties: str,
        own: Iterable[TieBreak] = (),
        *,
        pre_tokens: str = BY_THE_PATTERN,
        special_tokens: str = CUT_OUT,
        has_minimum: bool = False,
        reads_file: bool = False,
    ) -> None:
        self.name = name
        self.distribution = package.partition(".")[0].replace("_", "-")
        self.package = installed(package)
        self.own = list(own)
        self.has_minimum = has_minimum
        self.reads_file = reads_file
        self.ways = way_in, pre_tokens, special_tokens, ties

    def check(self, corpus: Corpus, tie_break: TieBreak | None, min_count: int) -> None:
        """Raise Unavailable, with what to do, if the package is missing or lacks a needed feature."""
        if self.package is None:
            raise Unavailable(f"{self.name} is not installed; python -m pip install -e '.[peers]' installs it")
        if not self.own and tie_break is not None:
            rule = f"breaks ties by no rule of tie_break's: it takes {self.ways[3]}"
            raise Unavailable(f"{self.name} {rule}; set tie_break=own")
        if self.own and tie_break not in self.own:
            names = " or ".join(each.value for each in self.own)
            raise Unavailable(
                f"{self.name} does not break ties by {tie_break and tie_break.value}; set tie_break={names}"
            )
        if min_count > 1 and not self.has_minimum:
            raise Unavailable(f"{self.name} has no least count of a pair; leave out min_count={min_count}")
        if corpus.pattern is None:
            raise Unavailable(f"{self.name} takes text and no raw bytes; choose another pattern than bytes")
        if self.reads_file and corpus.errors != "strict":
            raise Unavailable(f"{self.name} takes the bytes as they are; leave out errors={corpus.errors}")

    def feeding(self, corpus: Corpus, **_: Any) -> Feeding:  # noqa: ARG002
        """How it is fed; a module's own `feeding`, unless that has more to say."""
        try:
            program = f"{self.distribution} {importlib.metadata.version(self.distribution)}"
        except importlib.metadata.PackageNotFoundError:
            program = self.distribution
        return Feeding(program, *self.ways)


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
    """Whether another thread runs, or would if it had a processor."""
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


def spelled(token: str) -> bytes:
    """The bytes of a token that is written in GPT-2's characters."""
    return bytes(map(GPT2_CHARACTERS.index, token))
