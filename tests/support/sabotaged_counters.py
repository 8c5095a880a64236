"""Word counters that are wrong in one way each: mistakes found in published code, and their nearest
relatives.

`honest` reads the whole file at once and is written apart from the counters of this project. Most
of the others are it with one of its steps replaced.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from variants.contract import NULL_METER, Corpus, InvalidText, Meter, WordCounts

Count = Callable[..., WordCounts]


def read_bytes(corpus: Corpus) -> bytes:
    return Path(corpus.path).read_bytes()


def decode(content: bytes, corpus: Corpus) -> str:
    try:
        return content.decode("utf-8", corpus.errors)
    except UnicodeDecodeError as error:
        raise InvalidText(corpus.path, error.start) from None


def split(text: str, special_tokens: Sequence[str], longest_first: bool = True) -> list[str]:
    if not special_tokens:
        return [text]
    return regex.split(
        "|".join(map(regex.escape, sorted(special_tokens, key=len, reverse=longest_first))), text
    )


def pre_tokens(document: str, pattern: str) -> Iterable[str]:
    return (match.group() for match in regex.finditer(pattern, document))


def words_of(
    content: bytes,
    corpus: Corpus,
    decode: Callable[[bytes, Corpus], str] = decode,
    split: Callable[[str, Sequence[str]], list[str]] = split,
    pre_tokens: Callable[[str, str], Iterable[str]] = pre_tokens,
) -> Counter[bytes]:
    """The words of a text by the definition, with the steps that are given in place of its own."""
    if corpus.pattern is None:
        # Every byte as the character of that number, so that text and bytes are split by the same
        # lines.
        special_tokens = [token.encode().decode("latin-1") for token in corpus.special_tokens]
        documents = split(content.decode("latin-1"), special_tokens)
        return Counter(document.encode("latin-1") for document in documents if document)

    words: Counter[bytes] = Counter()
    for document in split(decode(content, corpus), corpus.special_tokens):
        words.update(word.encode() for word in pre_tokens(document, corpus.pattern))
    return words


def reading(**steps: Any) -> Count:
    """The definition as a word counter, with the steps that are given in place of its own."""

    def count(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
        content = read_bytes(corpus)
        meter.lap("read")
        words = words_of(content, corpus, **steps)
        meter.lap("count")
        return WordCounts.from_items(words.items())

    return count


honest = reading()


# Reading and decoding.


def decoding(change: Callable[[str], str]) -> Count:
    """The definition with another text in place of the one that was read."""
    return reading(decode=lambda content, corpus: change(decode(content, corpus)))


def decode_megabytes(content: bytes, corpus: Corpus) -> str:
    starts = range(0, len(content), 1 << 20)
    return "".join(decode(content[start : start + (1 << 20)], corpus) for start in starts)


def decode_replacing_bytes(content: bytes, corpus: Corpus) -> str:
    """Puts a replacement in for every bad byte, not for every bad sequence."""
    if corpus.errors == "strict":
        return decode(content, corpus)
    return re.sub("[\udc80-\udcff]", "\ufffd", content.decode("utf-8", "surrogateescape"))


translates_line_ends = decoding(lambda text: text.replace("\r\n", "\n"))
takes_a_byte_order_mark_off = decoding(lambda text: text.removeprefix("\ufeff"))
normalises = decoding(lambda text: unicodedata.normalize("NFC", text))
drops_invalid_bytes = reading(decode=lambda content, _: content.decode("utf-8", "ignore"))
names_the_offset_in_the_block = reading(decode=decode_megabytes)
replaces_every_bad_byte = reading(decode=decode_replacing_bytes)


# Special tokens.


no_special_tokens_split_everywhere = reading(
    split=lambda text, tokens: split(text, tokens) if tokens else list(text)
)
shortest_special_token_wins = reading(
    split=lambda text, tokens: split(text, tokens, longest_first=False)
)
special_tokens_are_patterns = reading(
    split=lambda text, tokens: regex.split("|".join(tokens), text) if tokens else [text]
)
counts_special_tokens = reading(split=lambda text, tokens: [*split(text, tokens), *tokens])
forgets_the_last_document = reading(split=lambda text, tokens: split(text, tokens)[:-1] or [text])


# The pattern.


def splitting_by(change: Callable[[str], str]) -> Count:
    """The definition with another pattern in place of the one that is given."""
    return reading(pre_tokens=lambda text, pattern: pre_tokens(text, change(pattern)))


knows_ascii_blanks_only = splitting_by(lambda pattern: pattern.replace(r"\s", r"[ \t\r\n]"))
contractions_in_either_case = splitting_by(lambda pattern: "(?i)" + pattern)
always_takes_the_same_pattern = splitting_by(lambda _: Corpus("").pattern or "")


# Sharing a file out.


def in_ranges(patterns: Callable[[Iterable[str]], Iterable[str]]) -> Count:
    """A counter that shares a file out evenly, and cuts behind the next match of the patterns that it
    makes of the special tokens.
    """

    def count(corpus: Corpus, *_: Meter, threads: int = 1) -> WordCounts:
        content = read_bytes(corpus)
        expression = "|".join(patterns(map(re.escape, corpus.special_tokens))) or "(?!)"
        bounds = {0, len(content)}
        for part in range(1, threads):
            start = len(content) * part // threads
            if found := re.compile(expression.encode()).search(content, start):
                bounds.add(found.end())

        summed: Counter[bytes] = Counter()
        for start, stop in pairwise(sorted(bounds)):
            summed.update(dict(words_of(content[start:stop], corpus)))
        return WordCounts.from_items(summed.items())

    return count


cuts_at_any_special_token = in_ranges(lambda tokens: tokens)
cuts_behind_newlines = in_ranges(lambda _: ["\n"])
always_cuts_at_endoftext = in_ranges(lambda _: [re.escape("<|endoftext|>")])
cuts_anywhere = in_ranges(lambda _: ["(?:)"])


# Manners.


def lists_words_at_each_occurrence(corpus: Corpus) -> WordCounts:
    words = list(Counter(dict(honest(corpus))).elements())
    return WordCounts.from_columns(words, [1] * len(words))


_earlier: Counter[bytes] = Counter()


def keeps_its_words_from_call_to_call(corpus: Corpus) -> WordCounts:
    _earlier.update(dict(honest(corpus)))
    return WordCounts.from_items(_earlier.items())


def returns_a_dict(corpus: Corpus) -> Any:
    return dict(honest(corpus))


def reports_a_phase_of_training(corpus: Corpus, meter: Meter = NULL_METER) -> WordCounts:
    word_counts = honest(corpus)
    meter.lap("update")
    return word_counts


def counts_nothing(corpus: Corpus) -> WordCounts:
    return WordCounts.from_items((token.encode(), 0) for token in corpus.special_tokens)
