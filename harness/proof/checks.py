"""A check: one named thing that a trainer or a word counter must do, and the message of its
failure.

Most checks compare a call with the definition's. Whatever a call passes is a copy, so a trainer that
changes its input fails only the check meant for it. A call that fails is written as a test that
fails for that function and for no other reason.
"""

from __future__ import annotations

import functools
import math
import pprint
import reprlib
import sys
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from harness.common import registry
from harness.common.units import occasions_text
from harness.common.values import first_difference
from harness.proof import prove
from harness.proof.compiled_replay import Replay
from harness.worker.calling import arguments_for, expect_merges, parameters_of, where_raised
from variants import vetoes
from variants.contract import (
    GREATEST_BYTES,
    InvalidText,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
    WordCounts,
)

Words = Mapping[bytes, int]
Subject = Callable[..., Any]  # a trainer or a word counter
SHOWN = reprlib.Repr()
SHOWN.maxdict, SHOWN.maxother = 60, 200
LONGEST_TEST = 20_000
CLOCK_ERROR = 1e-4  # seconds by which the clocks of a trainer and of a check may differ
WIDTHS = (1, 2, 3, 7, 16)
"""Numbers of threads that divide nothing evenly, and more of them than a tiny input has parts."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class CheckFailed(AssertionError):
    """The checked function differs from the definition; the message shows where, on what input, and
    why it matters.
    """

    counterexample: Call | None = None


class CheckSkipped(Exception):
    """A check does not apply, or cannot run here; the message says why."""


def accepts(subject: Subject, keyword: str) -> bool:
    """Whether a run gives a function this keyword, or the meter.

    >>> accepts(lambda word_counts, num_merges, **options: [], "min_count")
    True
    >>> accepts(lambda word_counts, num_merges: [], "tie_break")
    False
    >>> takes_meter = lambda words, number, meter: []
    >>> accepts(takes_meter, "meter"), accepts(takes_meter, "veto"), accepts(lambda words, number: [], "meter")
    (True, False, False)
    """
    positional, keywords = arguments_for(parameters_of(subject), [], Meter(), {keyword: None}, {})
    return keyword in keywords or (keyword == "meter" and positional != [])


class Call(ABC):
    """A call whose result is compared with the definition's. Its text shows the input."""

    @abstractmethod
    def run(self, subject: Subject, *meter: Meter) -> Any:
        """The result. Raises CheckFailed if the function raises something or returns something else
        than a result.
        """

    @abstractmethod
    def defined(self) -> Any:
        """The definition's result."""

    @abstractmethod
    def fault(self, got: Any, want: Any) -> str:
        """What is wrong with a result where it differs first, in one sentence."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large the input is: of several that fail, the smallest is shown."""

    def compare(self, got: Any, want: Any, why: str) -> None:
        """Raise CheckFailed unless the results are equal."""
        if got != want:
            raise CheckFailed(f"{self.fault(got, want)}\n{why}\n{self}")

    def expect(self, subject: Subject, want: Any, why: str) -> None:
        """Raise CheckFailed, with this counterexample, unless the function has this result."""
        try:
            self.compare(self.run(subject), want, why)
        except CheckFailed as failure:
            failure.counterexample = self
            raise

    def expect_definition(self, subject: Subject, advice: str = "") -> None:
        self.expect(subject, self.defined(), f"the definition gives these{advice}")

    def returned(self, call: Callable[[], Any], expect: Callable[[Any], None]) -> Any:
        """What a call returns. Raises CheckFailed if it raises something, or `expect` a ValueError
        for its result.
        """
        try:
            result = call()
        except (InvalidText, Unavailable):
            raise
        except (Exception, SystemExit) as error:
            raised = f"raised {type(error).__name__}: {error}{where_raised(error)}"
            raise CheckFailed(f"{raised}\n{self}") from error
        try:
            expect(result)
        except ValueError as error:
            raise CheckFailed(f"{error}\n{self}") from error
        return result

    def result_of(self, subject: Subject) -> Any:
        """The function's result; None if it fails."""
        try:
            return self.run(subject)
        except (CheckFailed, Unavailable):
            return None


@dataclass(frozen=True)
class TrainerCall(Call):
    """A call of a trainer: the words, how many merges, and the options."""

    words: Words
    num_merges: int
    tie_break: TieBreak = GREATEST_BYTES
    min_count: int = 1
    inherited: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = "none"
    threads: int | None = None

    def __hash__(self) -> int:
        return hash((self.num_merges, frozenset(self.words.items())))

    def __str__(self) -> str:
        chosen = {**self.chosen(), "tie_break": self.tie_break.value}
        options = ", ".join(f"{name}={value}" for name, value in chosen.items())
        words = SHOWN.repr(dict(self.words))
        return f"word counts: {words}\ncalled for {self.num_merges} merges, {options}"

    def chosen(self) -> dict[str, Any]:
        """The options that differ from the defaults, so that a trainer without the others can be
        called too.
        """
        options = {option.name: option.default for option in fields(self)[2:]}
        return {name: value for name in options if (value := getattr(self, name)) != options[name]}

    def keywords(self) -> dict[str, Any]:
        chosen = self.chosen()
        return {**chosen, "veto": vetoes.named(self.veto)} if "veto" in chosen else chosen

    @property
    def word_counts(self) -> WordCounts:
        """The words as a trainer gets them."""
        return WordCounts.from_items(self.words.items())

    def run(
        self, train: Subject, *meter: Meter, word_counts: WordCounts | None = None
    ) -> list[Merge]:
        """The merges, of `word_counts` in place of a copy of the words if they are given.

        Raises CheckSkipped if the trainer does not take a keyword, or the meter.
        """
        keywords = self.keywords()
        for keyword in [*keywords, "meter"] if meter else keywords:
            if not accepts(train, keyword):
                raise CheckSkipped(f"the trainer takes no {keyword}")

        given = self.word_counts if word_counts is None else word_counts
        positional: list[Any] = [given, self.num_merges]
        if meter:
            parameters = parameters_of(train)
            positional, keywords = arguments_for(parameters, positional, meter[0], keywords, {})
        return list(self.returned(lambda: train(*positional, **keywords), expect_merges))

    def defined(self) -> list[Merge]:
        return list(defined_merges(replace(self, threads=None)))

    def fault(self, got: Sequence[Merge], want: Sequence[Merge]) -> str:
        index = first_difference(got, want)
        number = index + 1
        if index < len(got) and not isinstance(got[index], tuple):
            kind = type(got[index]).__name__
            return f"merge {number} is a {kind}, {got[index]}; a merge is a tuple (left, right) of bytes"
        if index == len(want):
            return f"merge {number} is one too many: the list ends after {index} merges"

        replay = Replay(
            self.word_counts,
            [*got, want[index]][:number],
            number,
            self.min_count,
            self.inherited,
            self.inheriting,
            vetoes.named(self.veto),
        )
        step = prove.explained(replay, number, [self.tie_break])
        if index < len(got):
            return prove.describe(step)
        missing = prove.merge_text(step.merge)
        return f"merge {number} is missing: {missing}, {occasions_text(step.occurrences)}"

    @property
    def size(self) -> int:
        return sum(map(len, self.words)) + len(self.words) + len(self.inherited)

    def as_test(self, imports: list[str], name: str, bound: list[str]) -> str:
        """A whole test of a trainer, see call_of."""
        chosen = self.chosen()
        texts = {
            "tie_break": f"TieBreak.{self.tie_break.name}",
            "inherited": "inherited",
            "veto": f"vetoes.named({self.veto!r})",
        }
        arguments = ["word_counts", str(self.num_merges), *bound]
        for option, value in chosen.items():
            arguments.append(f"{option}={texts.get(option, repr(value))}")

        lines = [
            *["from variants import vetoes"] * ("veto" in chosen),
            f"from variants.contract import {'TieBreak, ' * ('tie_break' in chosen)}WordCounts",
            *imports,
            "",
            f"word_counts = WordCounts.from_items({literal(list(self.words.items()))})",
            *[f"inherited = {literal(list(self.inherited))}"] * ("inherited" in chosen),
            f"merges = {name}({', '.join(arguments)})",
            f"assert merges == {literal(self.defined())}",
        ]
        body = textwrap.indent("\n".join(lines), "    ")
        return f"def test_these_words_give_the_defined_merges():\n{body}\n"


@functools.lru_cache(maxsize=4096)
def defined_merges(call: TrainerCall) -> tuple[Merge, ...]:
    """The merges of the definition; cached, because every trainer is checked on the same words."""
    keywords = call.keywords()
    definition = registry.definition(extending=not keywords.keys() <= {"tie_break", "min_count"})
    return tuple(definition(call.word_counts, call.num_merges, **keywords))


def to_exhaustion(words: Words) -> int:
    """More merges than these words can give: each takes at least one adjacent position away."""
    return sum(map(len, words)) + 5


def literal(value: Any) -> str:
    return pprint.pformat(value, width=80, compact=True, sort_dicts=False)


# Checks


class Check(NamedTuple):
    """One thing a trainer or a word counter must do. The body raises CheckFailed if it does not."""

    name: str
    group: str
    body: Callable[[Subject], None]


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: `passed`, `failed` or `skipped`, and for the last two the reason; for
    a failure also the size of its input, and a whole test of it if that is short enough to paste.
    """

    check: str
    group: str
    status: str
    message: str = ""
    size: float = field(default=math.inf, compare=False)
    test: str = field(default="", compare=False)


def outcome_of(check: Check, subject: Subject) -> CheckResult:
    """Run one check. What cannot run here is skipped, never failed."""
    try:
        check.body(subject)
    except CheckFailed as failure:
        outcome = CheckResult(check.name, check.group, FAILED, str(failure))
        if (call := failure.counterexample) is None:
            return outcome
        return replace(outcome, size=call.size, test=whole_test(call, subject))
    except (CheckSkipped, Unavailable) as reason:
        return CheckResult(check.name, check.group, SKIPPED, str(reason))
    return CheckResult(check.name, check.group, PASSED)


def is_word_counter(subject: Subject) -> bool:
    """Whether a function's first parameter is called `corpus`; a trainer's is not."""
    return next(iter(parameters_of(subject) or ()), "") == "corpus"


def reported_phases(call: Call, subject: Subject, phases: Sequence[str]) -> Mapping[str, float]:
    """The seconds of the phases that a call reports. Raises CheckFailed for a phase that is none of
    these, or if they take longer than the call, and CheckSkipped without any.
    """
    meter = Meter()
    start = time.perf_counter()
    call.run(subject, meter)
    wall = time.perf_counter() - start

    if not meter.seconds:
        raise CheckSkipped("it reports no phases; all its time will show as other")
    for phase in meter.seconds:
        if phase not in phases:
            raise CheckFailed(f"reported the phase {phase!r}; phases are {', '.join(phases)}")
    reported = sum(meter.seconds.values())
    if reported > wall + CLOCK_ERROR:
        raise CheckFailed(f"reported phases of {reported} s in all, but the call took {wall} s")
    return meter.seconds


def whole_test(call: Call, subject: Subject) -> str:
    """A whole test of the input that a trainer failed; empty if none is short enough to paste."""
    if not isinstance(call, TrainerCall) or call.size > LONGEST_TEST:
        return ""
    test = call.as_test(*call_of(subject))
    return test if len(test) <= LONGEST_TEST else ""


def call_of(subject: Subject) -> tuple[list[str], str, list[str]]:
    """The line that imports a function, its name there, and the keywords bound to it."""
    keywords: dict[str, Any] = {}
    if isinstance(subject, functools.partial):
        keywords = subject.keywords
        subject = subject.func
    module = getattr(subject, "__module__", "")
    name = getattr(subject, "__qualname__", type(subject).__qualname__)
    if "<" in name:  # made by another function; the module may still have a name for it
        name = next(
            (key for key, value in vars(sys.modules[module]).items() if value is subject), name
        )
    bound = [f"{key}={value!r}" for key, value in keywords.items()]
    return [f"from {module} import {name.partition('.')[0]}"], name, bound
