"""Calls of a trainer or a word counter that are compared with the definition; one that differs becomes a test.

The smallest input that still fails shows best what is wrong. It is written as a test that fails for that trainer and
for no other reason.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pprint
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.common import registry
from harness.proof.checks import (
    CheckFailed,
    Counterexample,
    Outcome,
    Subject,
    Words,
    bytes_text,
    expect_merges,
    failure_of,
    first_difference,
    learn,
    to_exhaustion,
    words_text,
)
from variants import vetoes
from variants.contract import (
    GPT2_PATTERN,
    GREATEST_BYTES,
    Corpus,
    InvalidText,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
    WordCounts,
)

Input = TypeVar("Input")
SHRINKING_SECONDS = 20.0
LONGEST_TEST = 20_000
"""Instead of a longer test, the test to paste names the check."""


@dataclass(frozen=True)
class TrainerCall:
    """A call of a trainer: the words, how many merges, and the options."""

    words: Mapping[bytes, int]
    num_merges: int
    tie_break: TieBreak = GREATEST_BYTES
    min_count: int = 1
    inherited: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = "none"

    def keywords(self) -> dict[str, Any]:
        """The keywords of the call; those of extending only if they are set."""
        keywords: dict[str, Any] = {"tie_break": self.tie_break, "min_count": self.min_count}
        if self.inherited:
            keywords.update(inherited=self.inherited, inheriting=self.inheriting)
        return keywords if self.veto == "none" else {**keywords, "veto": vetoes.named(self.veto)}

    def expect(self, train: Subject, want: Sequence[Merge], why: str) -> None:
        """Raise CheckFailed, with this counterexample, unless a trainer gives these merges."""
        with attached(self):
            merges = learn(train, self.words, self.num_merges, **self.keywords())
            if self.inherited or self.veto != "none":
                inherited = f"{self.inheriting} of {list(self.inherited)}"
                why += f"\ncalled for {self.num_merges} merges, {inherited}, veto {self.veto}"
            expect_merges(merges, want, self.words, why)

    def expect_definition(self, train: Subject, advice: str = "") -> None:
        why = f"the definition gives these with tie_break={self.tie_break.value}, min_count={self.min_count}{advice}"
        self.expect(train, self.defined(), why)

    def defined(self) -> list[Merge]:
        options = self.num_merges, self.tie_break, self.min_count, self.inherited, self.inheriting, self.veto
        return list(defined_merges(tuple(self.words.items()), *options))

    def result_of(self, train: Subject) -> list[Merge] | None:
        """The trainer's merges; None if it fails to give any."""
        try:
            return learn(train, self.words, self.num_merges, **self.keywords())
        except CheckFailed:
            return None

    def fails(self, train: Subject) -> bool:
        return self.result_of(train) != self.defined()

    def smallest(self, train: Subject) -> TrainerCall:
        """Fewer, shorter, rarer words that fail too, with no more merges than show it; itself if it passes now."""
        if not self.fails(train):
            return self

        def with_words(words: Mapping[bytes, int]) -> TrainerCall:
            enough = len(self.inherited) + to_exhaustion(words)
            return replace(self, words=words, num_merges=min(self.num_merges, enough))

        words = shrunk(dict(self.words), smaller_words, lambda words: with_words(words).fails(train))
        smallest = with_words(words)
        equal = first_difference(smallest.result_of(train) or [], smallest.defined())
        fewer = replace(smallest, num_merges=max(equal + 1, len(self.inherited)))
        return fewer if fewer.num_merges < smallest.num_merges and fewer.fails(train) else smallest

    def as_test(self, train: Subject) -> str:
        """A whole test that fails for this trainer."""
        other_ties, vetoed = self.tie_break is not GREATEST_BYTES, self.veto != "none"
        imports, name, keywords = call_of(train)
        keywords += [f"tie_break=TieBreak.{self.tie_break.name}"] * other_ties
        keywords += [f"min_count={self.min_count}"] * (self.min_count != 1)
        keywords += ["inherited=inherited", f"inheriting={self.inheriting!r}"] * bool(self.inherited)
        keywords += [f"veto=vetoes.named({self.veto!r})"] * vetoed
        return function_text(
            "test_these_words_give_the_defined_merges()",
            *["from variants import vetoes"] * vetoed,
            f"from variants.contract import {'TieBreak, ' * other_ties}WordCounts",
            *imports,
            "",
            f"word_counts = WordCounts.from_items({literal(list(self.words.items()))})",
            *[f"inherited = {literal(list(self.inherited))}"] * bool(self.inherited),
            f"merges = {name}({', '.join(['word_counts', str(self.num_merges), *keywords])})",
            f"assert merges == {literal(self.defined())}",
        )


@functools.lru_cache(maxsize=4096)
def defined_merges(items: tuple[tuple[bytes, int], ...], *options: Any) -> tuple[Merge, ...]:
    """The merges of the definition; cached, because every trainer is checked on the same words."""
    call = TrainerCall(dict(items), *options)
    definition = registry.definition(extending=bool(call.inherited) or call.veto != "none")
    return tuple(definition(WordCounts.from_items(items), call.num_merges, **call.keywords()))


@dataclass(frozen=True)
class CounterCall:
    """A call of a word counter: the bytes of a file, and the options."""

    content: bytes
    special_tokens: tuple[str, ...]
    width: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"

    @contextlib.contextmanager
    def corpus(self) -> Iterator[Corpus]:
        """The file on disk, as long as the context lasts."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "corpus.txt")
            path.write_bytes(self.content)
            yield Corpus(str(path), self.special_tokens, self.pattern, self.errors)

    def words(self, count: Subject, *meter: Meter) -> WordCounts:
        """Call the counter. Raises CheckFailed if it does, except for a file that it refuses as invalid UTF-8."""
        keywords = {} if self.width is None else {"threads": self.width}
        try:
            with self.corpus() as corpus:
                word_counts = count(corpus, *meter, **keywords)
        except (InvalidText, Unavailable):
            raise
        except Exception as error:
            raise failure_of(error, str(self)) from error
        if not isinstance(word_counts, WordCounts):
            raise CheckFailed(f"returned {type(word_counts).__name__}, not WordCounts\n{self}")
        return word_counts

    def __str__(self) -> str:
        """The file and how it was read."""
        threads = "" if self.width is None else f", threads={self.width}"
        how = f"special tokens {list(self.special_tokens)}, errors={self.errors}{threads}"
        return f"file: {bytes_text(self.content)}\n{how}, pattern {self.pattern or 'none'}"

    def expect(self, count: Subject, want: Words, why: str) -> None:
        """Raise CheckFailed with the first word whose count differs from the one wanted, the reason and the file."""
        with attached(self):
            try:
                words = dict(self.words(count))
            except InvalidText as error:
                raise CheckFailed(f"refused a valid file: {error}\n{self}") from error
            if words != want:
                word = min(word for word in {*words, *want} if words.get(word, 0) != want.get(word, 0))
                raise CheckFailed(
                    f"first difference at word {bytes_text(word)}: got {words.get(word, 0)}, want {want.get(word, 0)}\n"
                    f"{why}\n{self}\ncounted {words_text(words)}"
                )

    def expect_definition(self, count: Subject) -> None:
        self.expect(count, dict(self.defined() or ()), "the definition counts these")

    def result_of(self, count: Subject) -> list[tuple[bytes, int]] | None:
        """The words in order with their counts; None if the counter fails to count any."""
        try:
            return sorted(dict(self.words(count)).items())
        except (CheckFailed, InvalidText, Unavailable):
            return None

    def defined(self) -> list[tuple[bytes, int]] | None:
        return replace(self, width=None).result_of(registry.definition_counter())

    def fails(self, count: Subject) -> bool:
        """Whether the counter differs where the definition can count."""
        defined = self.defined()
        return defined is not None and self.result_of(count) != defined

    def smallest(self, count: Subject) -> CounterCall:
        """A shorter file that fails too, with as few special tokens as show it."""
        if not self.fails(count):
            return self
        content = shrunk(self.content, smaller_text, lambda content: replace(self, content=content).fails(count))
        smallest = replace(self, content=content)
        for token in self.special_tokens:
            others = tuple(other for other in smallest.special_tokens if other != token)
            fewer = replace(smallest, special_tokens=others)
            smallest = fewer if fewer.fails(count) else smallest
        return smallest

    def as_test(self, count: Subject) -> str:
        """A whole test that fails for this counter."""
        imports, name, keywords = call_of(count)
        keywords += [] if self.width is None else [f"threads={self.width}"]
        options = [f"special_tokens={self.special_tokens!r}"]
        options += [f"pattern={self.pattern!r}"] * (self.pattern != GPT2_PATTERN)
        options += [f"errors={self.errors!r}"] * (self.errors != "strict")
        return function_text(
            "test_this_file_gives_the_defined_words(tmp_path)",
            "from variants.contract import Corpus",
            *imports,
            "",
            'path = tmp_path / "corpus.txt"',
            f"path.write_bytes({self.content!r})",
            f"corpus = Corpus(str(path), {', '.join(options)})",
            f"assert dict({name}({', '.join(['corpus', *keywords])})) == {literal(dict(self.defined() or ()))}",
        )


@contextlib.contextmanager
def attached(counterexample: Counterexample) -> Iterator[None]:
    """Attach a counterexample to a failure that has none."""
    try:
        yield
    except CheckFailed as failure:
        failure.counterexample = failure.counterexample or counterexample
        raise


# Shrinking


def shrunk(start: Input, smaller: Callable[[Input], Iterable[Input]], fails: Callable[[Input], bool]) -> Input:
    """Return the smallest failing input that is found from `start` in SHRINKING_SECONDS.

    Each step takes the next smaller candidate that fails too, large cuts before small ones. Nothing is random, so the
    same failure gives the same input if the time suffices.

    >>> shrunk(b"xxabxx", smaller_text, lambda text: b"b" in text)
    b'b'
    """
    smallest, place, shrank = start, 0, False
    give_up = time.monotonic() + SHRINKING_SECONDS
    while True:
        # Candidates before the last cut did not fail, and are tried again only after all others.
        for candidate in itertools.islice(smaller(smallest), place, None):
            if time.monotonic() > give_up:
                return smallest
            if fails(candidate):
                smallest, shrank = candidate, True
                break
            place += 1
        else:
            if not shrank:
                return smallest
            place, shrank = 0, False


def cuts(length: int) -> Iterator[tuple[int, int]]:
    """Parts to remove from a sequence, the largest first, never all of it.

    >>> list(cuts(3))
    [(0, 1), (1, 2), (2, 3)]
    """
    size = length // 2
    while size:
        yield from ((start, min(start + size, length)) for start in range(0, length, size))
        size //= 2


def smaller_words(words: Mapping[bytes, int]) -> Iterator[dict[bytes, int]]:
    """The same words with some removed, then shorter, then rarer."""
    items = list(words.items())
    if len(items) == 1:
        yield {}
    for start, stop in cuts(len(items)):
        yield dict(items[:start] + items[stop:])
    for place, (word, count) in enumerate(items):
        for start, stop in cuts(len(word)):
            yield with_item(items, place, (word[:start] + word[stop:], count))
        for fewer in sorted({1, 2, 3, count // 2, count - 1}):
            if 0 < fewer < count:
                yield with_item(items, place, (word, fewer))


def with_item(items: Sequence[tuple[bytes, int]], place: int, item: tuple[bytes, int]) -> dict[bytes, int]:
    """The words with one of them replaced; counts of equal words are added."""
    words: dict[bytes, int] = {}
    for word, count in [*items[:place], item, *items[place + 1 :]]:
        words[word] = words.get(word, 0) + count
    return words


def smaller_text(content: bytes) -> Iterator[bytes]:
    """The same text with parts removed; it is cut anywhere, also within a character."""
    if len(content) == 1:
        yield b""
    for start, stop in cuts(len(content)):
        yield content[:start] + content[stop:]


# A failure as a test


def pasted(outcome: Outcome, subject: Subject, checks_from: str) -> str:
    """A whole test for a failed check: of the smallest input if there is one, else of the check itself.

    `checks_from` is the expression that lists the checks, a call of a function of harness.conformance.
    """
    if outcome.counterexample is not None:
        test = outcome.counterexample.smallest(subject).as_test(subject)
        if len(test) <= LONGEST_TEST:
            return test
    imports, name, keywords = call_of(subject)
    bound = f"functools.partial({', '.join([name, *keywords])})" if keywords else name
    return function_text(
        f"test_it_passes_{outcome.check.partition('[')[0]}()",
        *["import functools", ""] * bool(keywords),
        f"from harness.conformance import {checks_from.partition('(')[0]}",
        *["from variants.contract import TieBreak"] * ("TieBreak" in checks_from),
        *imports,
        "",
        f"(check,) = [check for check in {checks_from} if check.name == {outcome.check!r}]",
        f"check({bound})",
    )


def call_of(subject: Subject) -> tuple[list[str], str, list[str]]:
    """The line that imports a function, its name there, and the keywords bound to it."""
    keywords: dict[str, Any] = {}
    while isinstance(subject, functools.partial):
        keywords = {**subject.keywords, **keywords}
        subject = subject.func
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", type(subject).__qualname__)
    bound = [f"{key}={value!r}" for key, value in keywords.items()]
    if "<" in name:  # made by another function; the module may still have a name for it
        names = vars(sys.modules.get(module or "", object))
        name = next((key for key, value in names.items() if value is subject), name)
    if module in (None, "__main__") or "<" in name:
        return [f"subject = ...  # {module}:{name}, which no import reaches"], "subject", bound
    return [f"from {module} import {name.partition('.')[0]}"], name, bound


def literal(value: Any) -> str:
    return pprint.pformat(value, width=80, compact=True, sort_dicts=False)


def function_text(signature: str, *lines: str) -> str:
    body = textwrap.indent("\n".join(lines), "    ", lambda line: bool(line.strip()))
    return f"def {signature}:\n{body}\n"
