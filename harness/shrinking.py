"""Making a failing input small: the smallest that still fails says best what is wrong.

Every step takes the first smaller candidate that fails as well, large cuts before small ones, until none does or the
effort is spent. Nothing is left to chance, so the same failure always comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Input = TypeVar("Input")
EFFORT = 3000
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def shrunk(
    start: Input,
    smaller: Callable[[Input], Iterable[Input]],
    fails: Callable[[Input], bool],
    effort_of: Callable[[Input], int] = lambda _: 1,
    effort: int = EFFORT,
) -> Input:
    """The last of a chain of ever smaller inputs that fail, of which `start` is the first.

    >>> shrunk(b"xxabxx", smaller_text, lambda text: b"b" in text)
    b'b'
    """
    found, tried = start, True
    while tried:
        tried = False
        for candidate in smaller(found):
            effort -= effort_of(candidate)
            if effort < 0:
                return found
            if fails(candidate):
                found, tried = candidate, True
                break
    return found


def cuts(length: int) -> Iterator[tuple[int, int]]:
    """Parts to leave out of a sequence, the largest first, never all of it.

    >>> list(cuts(3))
    [(0, 1), (1, 2), (2, 3)]
    """
    size = length // 2
    while size:
        yield from ((start, min(start + size, length)) for start in range(0, length, size))
        size //= 2


def smaller_words(words: Mapping[bytes, int]) -> Iterator[dict[bytes, int]]:
    """The same words with some left out, then shorter, then rarer, then spelled with letters."""
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
    for spelling in respelled(b"".join(words)):
        yield {word.translate(spelling): count for word, count in items}


def with_item(items: Sequence[tuple[bytes, int]], place: int, item: tuple[bytes, int]) -> dict[bytes, int]:
    """The words with one of them replaced; one that is there already is counted with it."""
    words: dict[bytes, int] = {}
    for word, count in [*items[:place], item, *items[place + 1 :]]:
        words[word] = words.get(word, 0) + count
    return words


def respelled(content: bytes) -> Iterator[bytes]:
    """Tables for bytes.translate, each of which writes one byte of the content as an earlier letter not in it."""
    for byte in sorted(set(content)):
        for letter in LETTERS:
            if letter not in content and (byte not in LETTERS or letter < byte):
                yield bytes.maketrans(bytes((byte,)), bytes((letter,)))
                break


def smaller_text(content: bytes) -> Iterator[bytes]:
    """The same text with parts left out, at any byte; what that makes of UTF-8 the caller has to bear."""
    if len(content) == 1:
        yield b""
    for start, stop in cuts(len(content)):
        yield content[:start] + content[stop:]
