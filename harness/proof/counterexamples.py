"""Counterexamples: words or a file on which a trainer or a counter differs from the definition, shrunk.

The smallest input that still fails shows best what is wrong. Each can be written as a test that fails for that trainer
and for no other reason.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, AnyStr, TypeVar

from harness.common import registry
from harness.proof.checks import CheckFailed, Counterexample, Outcome, first_difference, learn, to_exhaustion
from variants import vetoes
from variants.contract import GPT2_PATTERN, GREATEST_BYTES, Corpus, Merge, TieBreak, WordCounts

Input = TypeVar("Input")
EFFORT = 3000
SHRINKING_SECONDS = 20.0
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
INDENT = "    "
LONGEST_LINE = 120
BYTES_OF_ONE_EFFORT = 20
# Instead of a longer test the check is named.
LONGEST_TEST = 20_000


def shrunk(
    start: Input,
    smaller: Callable[[Input], Iterable[Input]],
    fails: Callable[[Input], bool],
    effort_of: Callable[[Input], int] = lambda _: 1,
    effort: float = EFFORT,
) -> Input:
    """Return the smallest failing input that is found from `start` within the effort and the time.

    Each step takes the next smaller candidate that fails too, large cuts before small ones. Nothing is random, so the
    same failure gives the same input if the time suffices.

    >>> shrunk(b"xxabxx", smaller_text, lambda text: b"b" in text)
    b'b'
    """
    found, place, shrank = start, 0, False
    give_up = time.monotonic() + SHRINKING_SECONDS
    while True:
        # Candidates before the last cut did not fail, and are tried again only after all others.
        for candidate in itertools.islice(smaller(found), place, None):
            effort -= effort_of(candidate)
            if effort < 0 or time.monotonic() > give_up:
                return found
            if fails(candidate):
                found, shrank = candidate, True
                break
            place += 1
        else:
            if not shrank:
                return found
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
    """The same words with some removed, then shorter, then rarer, then spelled with letters."""
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
    for sign, letter in respellings(b"".join(words)):
        yield {word.replace(sign, letter): count for word, count in items}


def with_item(items: Sequence[tuple[bytes, int]], place: int, item: tuple[bytes, int]) -> dict[bytes, int]:
    """The words with one of them replaced; counts of equal words are added."""
    words: dict[bytes, int] = {}
    for word, count in [*items[:place], item, *items[place + 1 :]]:
        words[word] = words.get(word, 0) + count
    return words


def respellings(content: AnyStr) -> Iterator[tuple[AnyStr, AnyStr]]:
    """Each byte or character of the content, with an earlier letter that is not in it."""
    alphabet = LETTERS if isinstance(content, bytes) else LETTERS.decode()
    letters = [alphabet[place : place + 1] for place in range(len(alphabet))]
    for sign in sorted({content[place : place + 1] for place in range(len(content))}):
        for letter in letters:
            if letter not in content and (sign not in letters or letter < sign):
                yield sign, letter
                break


def smaller_text(content: AnyStr) -> Iterator[AnyStr]:
    """The same text with parts removed; bytes are cut anywhere, also within a character."""
    if len(content) == 1:
        yield content[:0]
    for start, stop in cuts(len(content)):
        yield content[:start] + content[stop:]


@dataclass(frozen=True)
class WrongWords(Counterexample):
    """Words on which a trainer learns other merges than the definition, with what it inherits."""

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

    def defined(self) -> list[Merge]:
        word_counts = WordCounts.from_items(self.words.items())
        return list(registry.definition(extending=True)(word_counts, self.num_merges, **self.keywords()))

    def learned(self, train: Callable[..., Any]) -> list[Merge] | None:
        """The trainer's merges; None if it fails to give any."""
        try:
            return learn(train, self.words, self.num_merges, **self.keywords())
        except CheckFailed:
            return None

    def fails(self, train: Callable[..., Any]) -> bool:
        return self.learned(train) != self.defined()

    def smallest(self, train: Callable[..., Any]) -> WrongWords:
        """Fewer, shorter, rarer words that fail too, with no more merges than show it."""
        if not self.fails(train):
            return self  # it does not fail again

        def of(words: Mapping[bytes, int]) -> WrongWords:
            enough = len(self.inherited) + to_exhaustion(words)
            return replace(self, words=words, num_merges=min(self.num_merges, enough))

        found = of(shrunk(dict(self.words), smaller_words, lambda words: of(words).fails(train), effort_of_words))
        fewer = replace(found, num_merges=max(found.first_difference(train) + 1, len(self.inherited)))
        return fewer if fewer.num_merges < found.num_merges and fewer.fails(train) else found

    def first_difference(self, train: Callable[..., Any]) -> int:
        return first_difference(self.learned(train) or [], self.defined())

    def as_test(self, train: Callable[..., Any]) -> str:
        """A whole test that fails for this trainer."""
        imported, called, keywords = call_of(train)
        names = ["WordCounts"]
        if self.tie_break is not GREATEST_BYTES:
            names.insert(0, "TieBreak")
            keywords.append(f"tie_break=TieBreak.{self.tie_break.name}")
        if self.min_count != 1:
            keywords.append(f"min_count={self.min_count}")
        if self.inherited:
            keywords.append("inherited=inherited")
            keywords += [] if self.inheriting == "kept" else [f"inheriting={self.inheriting!r}"]
        if self.veto != "none":
            keywords.append(f"veto=vetoes.named({self.veto!r})")
        arguments = ", ".join(["word_counts", str(self.num_merges), *keywords])
        return written_as_test(
            "test_these_words_give_the_defined_merges",
            [
                *(["from variants import vetoes"] if self.veto != "none" else []),
                f"from variants.contract import {', '.join(names)}",
                *imported,
                "",
                *assigned("word_counts = WordCounts.from_items(", list(self.words.items()), ")"),
                *(assigned("inherited = ", list(self.inherited), "") if self.inherited else []),
                f"merges = {called}({arguments})",
                *assigned("assert merges == ", self.defined(), ""),
            ],
        )


@dataclass(frozen=True)
class WrongFile(Counterexample):
    """A file in which a counter counts other words than the definition."""

    content: bytes
    special_tokens: tuple[str, ...]
    width: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"

    def defined(self) -> dict[bytes, int] | None:
        return self.counted(registry.definition_counter(), {})

    def counted(self, count: Callable[..., Any], keywords: Mapping[str, Any]) -> dict[bytes, int] | None:
        """The words with their counts; None if the counter raises."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "corpus.txt")
            path.write_bytes(self.content)
            try:
                return dict(count(Corpus(str(path), self.special_tokens, self.pattern, self.errors), **keywords))
            except Exception:  # a counter may raise anything
                return None

    def fails(self, count: Callable[..., Any]) -> bool:
        """Whether the counter differs where the definition can count."""
        defined = self.defined()
        keywords = {} if self.width is None else {"threads": self.width}
        return defined is not None and self.counted(count, keywords) != defined

    def smallest(self, count: Callable[..., Any]) -> WrongFile:
        """A shorter file that fails too, with as few special tokens as show it."""
        if not self.fails(count):
            return self
        content = shrunk(
            self.content, smaller_text, lambda content: replace(self, content=content).fails(count), effort_of_file
        )
        found = replace(self, content=content)
        for token in self.special_tokens:
            fewer = replace(found, special_tokens=tuple(each for each in found.special_tokens if each != token))
            found = fewer if fewer.fails(count) else found
        return found

    def as_test(self, count: Callable[..., Any]) -> str:
        """A whole test that fails for this counter."""
        imported, called, keywords = call_of(count)
        how = [f"special_tokens={self.special_tokens!r}"]
        how += [f"pattern={self.pattern!r}"] if self.pattern != GPT2_PATTERN else []
        how += [f"errors={self.errors!r}"] if self.errors != "strict" else []
        keywords += [] if self.width is None else [f"threads={self.width}"]
        return written_as_test(
            "test_this_file_gives_the_defined_words",
            [
                "from variants.contract import Corpus",
                *imported,
                "",
                'path = tmp_path / "corpus.txt"',
                f"path.write_bytes({self.content!r})",
                f"corpus = Corpus(str(path), {', '.join(how)})",
                *assigned(f"assert dict({called}({', '.join(['corpus', *keywords])})) == ", self.defined(), ""),
            ],
            arguments="tmp_path",
        )


def effort_of_words(words: Mapping[bytes, int]) -> int:
    return 1 + sum(map(len, words)) // BYTES_OF_ONE_EFFORT


def effort_of_file(content: bytes) -> int:
    return 5 + len(content) // 5000


@contextlib.contextmanager
def shown_by(counterexample: Counterexample) -> Iterator[None]:
    """Attach a counterexample to a failure that has none."""
    try:
        yield
    except CheckFailed as failure:
        failure.shown_by = failure.shown_by or counterexample
        raise


def pasted(outcome: Outcome, subject: Callable[..., Any], checks_from: str) -> str:
    """A whole test for a failed check: of the smallest input if there is one, else of the check itself.

    `checks_from` is the expression that lists the checks, a call of a function of harness.
    """
    if outcome.shown_by is not None:
        test = outcome.shown_by.smallest(subject).as_test(subject)
        if len(test) <= LONGEST_TEST:
            return test
    imported, called, keywords = call_of(subject)
    bound = f"functools.partial({', '.join([called, *keywords])})" if keywords else called
    module = "harness.conformance" if checks_from.startswith("trainer") else "harness.proof.counter"
    return written_as_test(
        f"test_it_passes_{outcome.check.partition('[')[0]}",
        [
            *(["import functools", ""] if keywords else []),
            f"from {module} import {checks_from.partition('(')[0]}",
            *(["from variants.contract import TieBreak"] if "TieBreak" in checks_from else []),
            *imported,
            "",
            f"(check,) = [check for check in {checks_from} if check.name == {outcome.check!r}]",
            f"check({bound})",
        ],
    )


def call_of(subject: Callable[..., Any]) -> tuple[list[str], str, list[str]]:
    """The line that imports a function, its name there, and the keywords bound to it."""
    keywords: dict[str, Any] = {}
    while isinstance(subject, functools.partial):
        keywords = {**subject.keywords, **keywords}
        subject = subject.func
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", type(subject).__qualname__)
    bound = [f"{key}={value!r}" for key, value in keywords.items()]
    if "<" in name:  # made by another function; the module may still have a name for it
        names = vars(sys.modules.get(module or "", object))
        name = next((each for each, value in names.items() if value is subject), name)
    if module in (None, "__main__") or "<" in name:
        return [f"subject = ...  # {module}:{name}, which no import reaches"], "subject", bound
    return [f"from {module} import {name.partition('.')[0]}"], name, bound


def assigned(head: str, value: Any, tail: str) -> list[str]:
    """A statement with a list or mapping, one item on a line if it is too long for one line."""
    line = f"{head}{value!r}{tail}"
    if len(line) + len(INDENT) <= LONGEST_LINE or not isinstance(value, (list, dict)):
        return [line]
    items = [f"{key!r}: {each!r}" for key, each in value.items()] if isinstance(value, dict) else map(repr, value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return [f"{head}{opening}", *(f"{INDENT}{item}," for item in items), f"{closing}{tail}"]


def written_as_test(name: str, lines: list[str], arguments: str = "") -> str:
    body = "\n".join(f"{INDENT}{line}".rstrip() for line in lines)
    return f"def {name}({arguments}):\n{body}\n"
