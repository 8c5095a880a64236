"""Calls of a trainer or a word counter that are compared with the definition; one that differs becomes a test.

The smallest input that still fails shows best what is wrong. It is written as a test that fails for that trainer and
for no other reason.
"""

from __future__ import annotations

import functools
import pprint
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.common import registry
from harness.proof.checks import (
    Call,
    CheckFailed,
    Outcome,
    Subject,
    Words,
    bytes_text,
    expect_merges,
    failure_of,
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

Parts = TypeVar("Parts", bytes, "list[tuple[bytes, int]]", "tuple[str, ...]")
LONGEST_TEST = 20_000


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

    def keywords(self) -> dict[str, Any]:
        """The keywords that differ from the defaults, so that a trainer without the others can be called too."""
        options = {option.name: option.default for option in fields(self)[2:]}
        given = {name: value for name in options if (value := getattr(self, name)) != options[name]}
        return {**given, "veto": vetoes.named(self.veto)} if "veto" in given else given

    def run(self, train: Subject, *meter: Meter) -> list[Merge]:
        word_counts = WordCounts.from_items(self.words.items())
        return learn(train, word_counts, self.num_merges, *meter, **self.keywords())

    def defined(self) -> list[Merge]:
        options = [getattr(self, option.name) for option in fields(self)[1:]]
        return list(defined_merges(tuple(self.words.items()), *options))

    def expect(self, train: Subject, want: Sequence[Merge], why: str) -> None:
        """Raise CheckFailed, with this counterexample, unless a trainer gives these merges."""
        with self.attached():
            merges = self.run(train)
            if self.inherited or self.veto != "none":
                inherited = f"{self.inheriting} of {list(self.inherited)}"
                why += f"\ncalled for {self.num_merges} merges, {inherited}, veto {self.veto}"
            expect_merges(merges, want, self.words, why)

    def expect_definition(self, train: Subject, advice: str = "") -> None:
        why = f"the definition gives these with tie_break={self.tie_break.value}, min_count={self.min_count}{advice}"
        self.expect(train, self.defined(), why)

    def smaller(self, fails: Callable[[TrainerCall], bool]) -> TrainerCall:
        """Fewer, shorter, rarer words, with no more merges than show it."""

        def with_items(items: list[tuple[bytes, int]]) -> TrainerCall:
            enough = len(self.inherited) + to_exhaustion(dict(items))
            return replace(self, words=dict(items), num_merges=min(self.num_merges, enough))

        items = shortest(list(self.words.items()), lambda items: fails(with_items(items)))

        def smaller_item(place: int) -> tuple[bytes, int]:
            def other(word: bytes, count: int) -> TrainerCall:
                return with_items([*items[:place], (word, count), *items[place + 1 :]])

            word, count = items[place]
            word = shortest(word, lambda part: part != b"" and fails(other(part, count)))
            fewer = (n for n in (1, 2, 3, count // 2) if 0 < n < count and fails(other(word, n)))
            return word, next(fewer, count)

        for place in range(len(items)):
            items[place] = smaller_item(place)
        smaller = with_items(items)
        fewer_merges = (replace(smaller, num_merges=n) for n in range(len(self.inherited), smaller.num_merges))
        return next(filter(fails, fewer_merges), smaller)

    def as_test(self, train: Subject) -> str:
        imports, name, keywords = call_of(train)
        texts = {
            "tie_break": f"TieBreak.{self.tie_break.name}",
            "inherited": "inherited",
            "veto": f"vetoes.named({self.veto!r})",
        }
        given = self.keywords()
        keywords += [f"{option}={texts.get(option, repr(value))}" for option, value in given.items()]
        return function_text(
            "test_these_words_give_the_defined_merges()",
            *["from variants import vetoes"] * ("veto" in given),
            f"from variants.contract import {'TieBreak, ' * ('tie_break' in given)}WordCounts",
            *imports,
            "",
            f"word_counts = WordCounts.from_items({literal(list(self.words.items()))})",
            *[f"inherited = {literal(list(self.inherited))}"] * ("inherited" in given),
            f"merges = {name}({', '.join(['word_counts', str(self.num_merges), *keywords])})",
            f"assert merges == {literal(self.defined())}",
        )


@functools.lru_cache(maxsize=4096)
def defined_merges(items: tuple[tuple[bytes, int], ...], *options: Any) -> tuple[Merge, ...]:
    """The merges of the definition; cached, because every trainer is checked on the same words."""
    call = TrainerCall(dict(items), *options)
    keywords = call.keywords()
    definition = registry.definition(extending=not keywords.keys() <= {"tie_break", "min_count"})
    return tuple(definition(WordCounts.from_items(items), call.num_merges, **keywords))


@dataclass(frozen=True)
class CounterCall(Call):
    """A call of a word counter: the bytes of a file, and the options."""

    content: bytes
    special_tokens: tuple[str, ...]
    width: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"

    def words(self, count: Subject, *meter: Meter) -> WordCounts:
        """Call the counter. Raises CheckFailed if it does, except for a file that it refuses as invalid UTF-8."""
        keywords = {} if self.width is None else {"threads": self.width}
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "corpus.txt")
                path.write_bytes(self.content)
                word_counts = count(
                    Corpus(str(path), self.special_tokens, self.pattern, self.errors), *meter, **keywords
                )
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

    def run(self, count: Subject, *meter: Meter) -> dict[bytes, int] | int:
        """The words with their counts, or the offset that the counter names as that of the first invalid byte."""
        try:
            return dict(sorted(dict(self.words(count, *meter)).items()))
        except InvalidText as error:
            return error.offset

    def defined(self) -> dict[bytes, int] | int:
        return replace(self, width=None).run(registry.definition_counter())

    def expect(self, count: Subject, want: Words | int, why: str) -> None:
        """Raise CheckFailed, with this counterexample, unless a counter finds these words, or this invalid byte."""
        with self.attached():
            got = self.run(count)
            if got == want:
                return
            if isinstance(want, int) or isinstance(got, int):
                mine, theirs = (
                    f"byte {it} as invalid" if isinstance(it, int) else words_text(it) for it in (got, want)
                )
                raise CheckFailed(f"got {mine}, want {theirs}\n{why}\n{self}")
            word = min(word for word in {*got, *want} if got.get(word, 0) != want.get(word, 0))
            raise CheckFailed(
                f"first difference at word {bytes_text(word)}: got {got.get(word, 0)}, want {want.get(word, 0)}\n"
                f"{why}\n{self}\ncounted {words_text(got)}"
            )

    def expect_definition(self, count: Subject) -> None:
        self.expect(count, self.defined(), "the definition counts these")

    def smaller(self, fails: Callable[[CounterCall], bool]) -> CounterCall:
        """A shorter file with as few special tokens as show it; it is cut anywhere, also within a character."""
        content = shortest(self.content, lambda content: fails(replace(self, content=content)))
        shorter = replace(self, content=content)
        tokens = shortest(self.special_tokens, lambda tokens: fails(replace(shorter, special_tokens=tokens)))
        return replace(shorter, special_tokens=tokens)

    def as_test(self, count: Subject) -> str:
        imports, name, keywords = call_of(count)
        keywords += [] if self.width is None else [f"threads={self.width}"]
        options = [f"special_tokens={self.special_tokens!r}"]
        options += [f"pattern={self.pattern!r}"] * (self.pattern != GPT2_PATTERN)
        options += [f"errors={self.errors!r}"] * (self.errors != "strict")
        call, defined = f"{name}({', '.join(['corpus', *keywords])})", self.defined()
        return function_text(
            "test_this_file_gives_the_defined_words(tmp_path)",
            *["import pytest"] * isinstance(defined, int),
            f"from variants.contract import Corpus{', InvalidText' * isinstance(defined, int)}",
            *imports,
            "",
            'path = tmp_path / "corpus.txt"',
            f"path.write_bytes({self.content!r})",
            f"corpus = Corpus(str(path), {', '.join(options)})",
            *(
                [f"assert dict({call}) == {literal(defined)}"]
                if isinstance(defined, dict)
                else [
                    "with pytest.raises(InvalidText) as failure:",
                    f"    {call}",
                    f"assert failure.value.offset == {defined}",
                ]
            ),
        )


def shortest(parts: Parts, fails: Callable[[Parts], bool]) -> Parts:
    """Remove halves, then smaller and smaller stretches, as long as what is left fails.

    >>> shortest(b"xxabxx", lambda text: b"b" in text)
    b'b'
    """
    size = len(parts)
    while size:
        place = 0
        while place < len(parts):
            rest = parts[:place] + parts[place + size :]
            if fails(rest):
                parts = rest
            else:
                place += size
        size //= 2
    return parts


# A failure as a test


def smallest_test(outcome: Outcome, subject: Subject) -> str:
    """A whole test of the smallest input that fails like this; empty if there is none that is short enough to paste."""
    call = outcome.counterexample
    test: str = "" if call is None else call.smallest(subject).as_test(subject)
    return test if len(test) <= LONGEST_TEST else ""


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
