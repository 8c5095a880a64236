"""Outside trainers under the contract of a file trainer, each fed as its authors mean it to be fed.

What they share is written here once: finding the package, refusing what it cannot do, and the text
as it takes it. The merges of a peer are its own. Where it has one of the contract's tie-breaks they
must be identical to everybody's, and any other question is refused, because an answer to it would
only look like a comparison. Where its own is none of these, the default of `tie_break` is None, and
its merges are replayed against the true counts instead.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import importlib
import importlib.metadata
import inspect
import io
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, AnyStr

import regex

from variants.contract import (
    GPT2_CHARACTERS,
    NULL_METER,
    Corpus,
    FileTrainer,
    Merge,
    TieBreak,
    Unavailable,
)
from variants.counting.pretokenize import read_chunks, split_documents
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding

# Private to whoever uses them: what a text does not hold among these can stand between its
# pre-tokens.
DIVIDERS = [chr(code) for code in range(0xE000, 0xE020)]
BYTES = [bytes((byte,)) for byte in range(256)]


@dataclass
class Peer:
    """An outside trainer, its package (None where that is not installed), and what it supports.

    `own` are its tie-breaks among the contract's; `ties` says in words which of equally frequent
    pairs it takes. `patterns` are those that it knows, by name, if it knows only some.
    """

    name: str
    module: str
    way_in: str
    ties: str
    own: Collection[TieBreak] = ()
    _: KW_ONLY
    patterns: Mapping[str, str] = field(default_factory=dict)
    pre_tokens: str = BY_THE_PATTERN
    special_tokens: str = CUT_OUT
    has_minimum: bool = False
    has_threads: bool = True
    reads_file: bool = False

    def __post_init__(self) -> None:
        self.package: Any = None
        # some greet
        with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
            self.package = importlib.import_module(self.module)

    def trainer(self, learn: Callable[..., list[Merge]]) -> Callable[..., list[Merge]]:
        """`learn` as a trainer: it gets the corpus, the number of merges, and what it names of the
        keywords.

        The trainer raises Unavailable if the package is missing or lacks a needed feature.
        """
        named = inspect.signature(learn).parameters
        keywords = dict(list(inspect.signature(FileTrainer.__call__).parameters.items())[1:])
        keywords["tie_break"] = keywords["tie_break"].replace(default=next(iter(self.own), None))
        if self.has_threads:
            keywords["threads"] = keywords["min_count"].replace(name="threads")
        signature = inspect.Signature(list({**keywords, **named}.values()))

        @functools.wraps(learn)
        def train(*arguments: Any, **keywords: Any) -> list[Merge]:
            given = signature.bind(*arguments, **keywords)
            given.apply_defaults()
            values = given.arguments
            self.check(values["corpus"], values["tie_break"], values["min_count"])
            os.environ["RAYON_NUM_THREADS"] = str(values.get("threads", 1))  # of a pool's first use
            merges = learn(**{name: values[name] for name in named})
            values["meter"].follow(merges)
            return merges

        train.__signature__ = signature  # type: ignore[attr-defined]
        return train

    def check(self, corpus: Corpus, tie_break: TieBreak | None, min_count: int) -> None:
        """Raise Unavailable, with what to do, if the package is missing or lacks a needed
        feature.
        """
        reason = ""
        if self.package is None:
            reason = "is not installed; python -m pip install -e '.[peers]' installs it"
        elif not self.own and tie_break is not None:
            reason = (
                f"breaks ties by no rule of tie_break's: it takes {self.ties}; set tie_break=own"
            )
        elif self.own and tie_break not in self.own:
            names = " or ".join(each.value for each in self.own)
            reason = (
                f"does not break ties by {tie_break and tie_break.value}; set tie_break={names}"
            )
        elif min_count > 1 and not self.has_minimum:
            reason = f"has no least count of a pair; leave out min_count={min_count}"
        elif self.patterns and corpus.pattern not in self.patterns.values():
            reason = f"trains with GPT-2's pattern only; set pattern={' or pattern='.join(self.patterns)}"
        elif corpus.pattern is None:
            reason = "takes text and no raw bytes; choose another pattern than bytes"
        elif self.reads_file and corpus.errors != "strict":
            reason = f"takes the bytes as they are; leave out errors={corpus.errors}"

        if reason:
            raise Unavailable(f"{self.name} {reason}")

    def feeding(self, corpus: Corpus, **_: Any) -> Feeding:  # noqa: ARG002
        """How it is fed; a module's own `feeding`, unless that has more to say."""
        program = self.module.partition(".")[0].replace("_", "-")
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            program = f"{program} {importlib.metadata.version(program)}"
        return Feeding(program, self.way_in, self.pre_tokens, self.special_tokens, self.ties)


def wait_for_other_threads() -> None:
    """Return when no other thread of this process computes: what a package leaves to its pool is
    its own work as well.

    Where the system does not tell, it returns at once.
    """
    while any_other_computes():
        time.sleep(0.001)


def any_other_computes() -> bool:
    """Whether another thread runs, or would if it had a processor."""
    for thread in glob.glob("/proc/self/task/*/stat"):  # noqa: PTH207
        with contextlib.suppress(OSError), open(thread, "rb") as file:  # noqa: PTH123
            number, _, rest = file.read().partition(b" ")
            if int(number) != threading.get_native_id() and rest.rpartition(b")")[2].split()[0] in (
                b"R",
                b"D",
            ):
                return True
    return False


def stretches(corpus: Corpus) -> Iterator[str]:
    """The stretches of text between special tokens, which a package gets as one string each."""
    with open(corpus.path, "rb") as file:  # noqa: PTH123 - a job names its files by strings
        chunks = read_chunks(file, None, corpus.replaces_errors, NULL_METER)
        for document, _ in split_documents(chunks, corpus.special_tokens):
            yield document.decode()


def whole_text(package: str, corpus: Corpus) -> tuple[str, str]:
    """The corpus as one string, with a pattern that finds its pre-tokens there: for a package that
    takes one string.

    A single document is taken as it is, with the corpus' own pattern. No pre-token may reach from
    one document into the next, nor look at it, so those of several documents are cut here and
    divided by a character that none of them holds.
    """
    assert corpus.pattern is not None, "raw bytes were refused"
    texts = list(stretches(corpus))
    if len(texts) < 2:
        return "".join(texts), corpus.pattern
    divider = next((each for each in DIVIDERS if not any(each in text for text in texts)), None)
    if divider is None:
        raise Unavailable(
            f"{package} takes one string, and nothing is left to divide its documents by"
        )
    pre_tokens = regex.compile(corpus.pattern)
    return divider.join(
        found.group() for text in texts for found in pre_tokens.finditer(text)
    ), f"[^{divider}]+"


def bytes_of_spelling(token: str) -> bytes:
    """The bytes of a token that is written in GPT-2's characters."""
    return bytes(map(GPT2_CHARACTERS.index, token))


def merges_of_numbers(pairs: Iterable[tuple[int, int]]) -> list[Merge]:
    """The merges of pairs of numbers: a byte by its value, and from 256 on what a merge made.

    >>> merges_of_numbers([(97, 98), (256, 99)])
    [(b'a', b'b'), (b'ab', b'c')]
    """
    tokens, merges = list(BYTES), []
    for left, right in pairs:
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return merges


def merges_of(tokens: list[AnyStr], single: int = 256) -> list[tuple[AnyStr, AnyStr]]:
    """Find the merge that made each token, in the order of their ids; no merge made the first
    `single`.

    It is for packages that tell what they have learned and not what it was made of. Two different
    merges never give the same bytes, and a token's parts are what the merges before it leave of its
    bytes. Finding them is some hundredths of the time of training, and is measured with it, since
    nobody can have the merges without.

    >>> merges_of([*BYTES, b"ab", b"abab"])
    [(b'a', b'b'), (b'ab', b'ab')]
    """
    rank_of = {token: rank for rank, token in enumerate(tokens)}
    return [
        parts_of_token(token, rank, rank_of) for rank, token in enumerate(tokens) if rank >= single
    ]


def parts_of_token(token: AnyStr, rank: int, rank_of: dict[AnyStr, int]) -> tuple[AnyStr, AnyStr]:
    """The two parts that a token was made of: the only two known ones, or those that earlier merges
    leave of it.
    """
    possible = [
        (token[:cut], token[cut:])
        for cut in range(1, len(token))
        if rank_of.get(token[:cut], rank) < rank and rank_of.get(token[cut:], rank) < rank
    ]
    if len(possible) == 1:
        return possible[0]
    parts = [token[place : place + 1] for place in range(len(token))]
    ranks = [rank_of.get(left + right, rank) for left, right in zip(parts, parts[1:])]
    while len(parts) > 2:
        place = ranks.index(min(ranks))
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
        del ranks[place]
        for pair in range(max(place - 1, 0), min(place + 1, len(ranks))):
            ranks[pair] = rank_of.get(parts[pair] + parts[pair + 1], rank)
    return parts[0], parts[1]
