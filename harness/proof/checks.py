"""A check: one named thing that a trainer or a word counter must do, and the message of its failure.

A check copies everything that it passes, so a trainer that changes its input fails only the check meant for it. A
failure says where the merges differ first, on which words, and why that matters.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.worker.calling import arguments_for, parameters_of
from variants.contract import Merge, Merges, Meter, Unavailable, WordCounts

Words = Mapping[bytes, int]
Subject = Callable[..., Any]
"""A trainer or a word counter."""
SHRINKING_SECONDS = 20.0
CLOCK_ERROR = 1e-4
"""Seconds by which the clocks of a trainer and of a check may differ."""
WIDTHS = (1, 2, 3, 7, 16)
"""Numbers of threads that divide nothing evenly, and more of them than a tiny input has parts."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Call(ABC):
    """A call whose result is compared with the definition's. It can be made smaller and written as a test."""

    @abstractmethod
    def run(self, subject: Subject, *meter: Meter) -> Any: ...

    @abstractmethod
    def defined(self) -> Any:
        """The definition's result."""

    @abstractmethod
    def smaller(self, fails: Callable[[Any], bool]) -> Any:
        """A smaller call that `fails` too; an equal one if none is found."""

    @abstractmethod
    def as_test(self, subject: Subject) -> str:
        """A whole test that fails for this function."""

    def result_of(self, subject: Subject) -> Any:
        """The function's result; None if it fails."""
        try:
            return self.run(subject)
        except (CheckFailed, Unavailable):
            return None

    def fails(self, subject: Subject) -> bool:
        return bool(self.result_of(subject) != self.defined())

    def smallest(self, subject: Subject) -> Any:
        """The smallest call found in SHRINKING_SECONDS that fails too; itself if it passes now."""
        give_up = time.monotonic() + SHRINKING_SECONDS
        smallest: Any = self
        before = None
        while smallest != before and smallest.fails(subject):
            before = smallest
            smallest = smallest.smaller(lambda call: time.monotonic() < give_up and call.fails(subject))
        return smallest

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Attach this call to a failure."""
        try:
            yield
        except CheckFailed as failure:
            failure.counterexample = self
            raise


class CheckFailed(AssertionError):
    """The checked function differs from the definition; the message shows where, on what input, and why it matters."""

    counterexample: Call | None = None


class CheckSkipped(Exception):
    """A check does not apply, or cannot run here; the message says why."""


@dataclass(frozen=True)
class Check:
    """One thing a trainer or a word counter must do. Calling it with one raises CheckFailed if it does not."""

    name: str
    group: str
    body: Callable[[Subject], None]

    @classmethod
    def of(cls, group: str, name: str, body: Callable[..., None], *arguments: Any) -> Check:
        """A check whose body takes these arguments before the checked function."""
        return cls(name, group, functools.partial(body, *arguments))

    def __call__(self, subject: Subject) -> None:
        self.body(subject)


@dataclass(frozen=True)
class Outcome:
    """The result of one check: `passed`, `failed` or `skipped`, and for the last two the reason."""

    check: str
    group: str
    status: str
    message: str = ""
    counterexample: Call | None = field(default=None, compare=False)


def outcome_of(check: Check, subject: Subject) -> Outcome:
    """Run one check. What cannot run here is skipped, never failed."""
    try:
        check(subject)
    except CheckFailed as failure:
        return Outcome(check.name, check.group, FAILED, str(failure), failure.counterexample)
    except (CheckSkipped, Unavailable) as reason:
        return Outcome(check.name, check.group, SKIPPED, str(reason))
    return Outcome(check.name, check.group, PASSED)


def accepts(subject: Subject, keyword: str) -> bool:
    """Whether a function takes this keyword, by name or as one of `**keywords`.

    A compiled function without a signature is assumed to take what the contract has.

    >>> accepts(lambda word_counts, num_merges, **options: [], "min_count")
    True
    >>> accepts(lambda word_counts, num_merges: [], "tie_break")
    False
    """
    parameters = parameters_of(subject)
    if not parameters:
        return keyword in ("meter", "tie_break", "min_count")
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return keyword in parameters or (takes_any and keyword != "threads")


def extends(train: Subject) -> bool:
    """Whether a trainer can go on from inherited merges: it takes them by name."""
    return "inherited" in (parameters_of(train) or ())


def is_word_counter(subject: Subject) -> bool:
    """Whether a function's first parameter is called `corpus`; a trainer's is not."""
    return next(iter(parameters_of(subject) or ()), "") == "corpus"


def learn(train: Subject, word_counts: WordCounts, num_merges: int, *meter: Meter, **keywords: Any) -> list[Merge]:
    """Call the trainer; whatever it raises is a failure that shows its input.

    Raises CheckSkipped if it does not take a keyword.
    """
    for keyword in keywords:
        if not accepts(train, keyword):
            raise CheckSkipped(f"the trainer takes no {keyword}")
    words = dict(word_counts)
    positional: list[Any] = [word_counts, num_merges]
    if meter:
        positional, keywords = arguments_for(train, positional, meter[0], keywords, {})
    try:
        merges = train(*positional, **keywords)
    except Unavailable:
        raise
    except (Exception, SystemExit) as error:
        options = "".join(f", {name}={value}" for name, value in keywords.items())
        raise failure_of(error, f"called for {num_merges} merges{options}\n{words_text(words)}") from error
    if not isinstance(merges, (list, Merges)):
        raise CheckFailed(f"returned {type(merges).__name__}, not a list of merges\n{words_text(words)}")
    for merge in merges:
        if type(merge) is not tuple or [type(token) for token in merge] != [bytes, bytes] or not all(merge):
            wrong = f"a merge is a tuple of two bytes, neither empty; this is {merge!r}"
            raise CheckFailed(f"{wrong}\n{words_text(words)}")
    return list(merges)


def failure_of(error: BaseException, call: str) -> CheckFailed:
    """A failure of a call that raised something."""
    return CheckFailed(f"raised {type(error).__name__}: {error}\n{call}")


def expect_phases(meter: Meter, phases: Sequence[str], wall: float, who: str) -> None:
    """Raise CheckFailed if `meter` was given other phases, seconds below zero, or more than the `wall` time there was.

    Raises CheckSkipped without any phases.
    """
    if not meter.seconds:
        raise CheckSkipped(f"{who} reports no phases; all its time will show as other")
    for phase, seconds in meter.seconds.items():
        if phase not in phases:
            raise CheckFailed(f"reported the phase {phase!r}; phases are {', '.join(phases)}")
        if not 0 <= seconds < math.inf:
            raise CheckFailed(f"reported {seconds} seconds for {phase}")
    reported = sum(meter.seconds.values())
    if reported > wall + CLOCK_ERROR:
        raise CheckFailed(f"reported phases of {reported} s in all, but the call took {wall} s")


def expect_merges(merges: Sequence[Merge], want: Sequence[Merge], words: Words, why: str) -> None:
    """Raise CheckFailed with the first difference (the first merge is merge 1), the reason and the word counts."""
    if list(merges) == list(want):
        return
    equal = first_difference(merges, want)
    mine, theirs = (str(side[equal]) if equal < len(side) else "no more merges" for side in (merges, want))
    raise CheckFailed(f"first difference at merge {equal + 1}: got {mine}, want {theirs}\n{why}\n{words_text(words)}")


def first_difference(merges: Sequence[Merge], want: Sequence[Merge]) -> int:
    """How many merges are equal before the first difference."""
    pairs = enumerate(zip(merges, want, strict=False))
    return next((place for place, (mine, other) in pairs if mine != other), min(len(merges), len(want)))


def words_text(words: Words) -> str:
    """The word counts as Python writes them, in one line; long words and long tables are cut short.

    >>> words_text({b"low": 5, b"a" * 600: 1})
    "word counts: {b'low': 5, b'aaaaaaaaaa' and 590 bytes more: 1}"
    """
    items = [f"{bytes_text(word)}: {count}" for word, count in words.items()]
    if len(items) > 60:
        items[60:] = [f"and {len(items) - 60} words more"]
    return f"word counts: {{{', '.join(items)}}}"


def bytes_text(content: bytes) -> str:
    return repr(content) if len(content) <= 200 else f"{content[:10]!r} and {len(content) - 10} bytes more"


def to_exhaustion(words: Words) -> int:
    """More merges than these words can give: each takes at least one adjacent position away."""
    return sum(map(len, words)) + 5
