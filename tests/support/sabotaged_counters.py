"""Word counters that are wrong in one way each: mistakes found in published code, and their nearest
relatives.

`honest` is the definition. Most of the others are it on another text, or on one that is to be read
in another way.
"""

import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from variants.contract import GPT2_PATTERN, NULL_METER, Corpus, Meter, WordCounts
from variants.counting.pretokenize import serial

Count = Callable[..., WordCounts]
MEBIBYTE = 1 << 20
honest = serial


def counted(content: bytes, corpus: Corpus) -> WordCounts:
    """The words of another text that is read as the corpus is."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return honest(replace(corpus, path=file.name))


def content_of(corpus: Corpus) -> bytes:
    return Path(corpus.path).read_bytes()


# Reading and decoding.


def reading(change: Callable[[bytes], bytes]) -> Count:
    """The definition on a changed text."""
    return lambda corpus: counted(change(content_of(corpus)), corpus)


def replace_bytes(content: bytes) -> bytes:
    """Put a replacement in for every bad byte, not for every bad sequence."""
    text = content.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", text).encode()


translates_line_ends = reading(lambda content: content.replace(b"\r\n", b"\n"))
takes_a_byte_order_mark_off = reading(lambda content: content.removeprefix(b"\xef\xbb\xbf"))
normalises = reading(lambda content: unicodedata.normalize("NFC", content.decode()).encode())
drops_invalid_bytes = reading(lambda content: content.decode("utf-8", "ignore").encode())
replaces_every_bad_byte = reading(replace_bytes)


# Special tokens and the pattern.


def taking(change: Callable[[Corpus], dict[str, Any]]) -> Count:
    """The definition with other special tokens or another pattern than are given."""
    return lambda corpus: honest(replace(corpus, **change(corpus)))


def splitting_by(change: Callable[[str], str]) -> Count:
    return taking(lambda corpus: {"pattern": change(corpus.pattern or "")})


def texts_that_match(corpus: Corpus) -> dict[str, Any]:
    text = content_of(corpus).decode()
    matches = re.findall("|".join(corpus.special_tokens), text)
    return {"special_tokens": tuple(filter(None, matches))}


def counts_special_tokens(corpus: Corpus) -> WordCounts:
    return WordCounts.from_items(
        [*honest(corpus).items(), *((token.encode(), 1) for token in corpus.special_tokens)]
    )


def forgets_the_last_document(corpus: Corpus) -> WordCounts:
    last = corpus.special_tokens[-1].encode()
    return counted(content_of(corpus).rpartition(last)[0], corpus)


no_special_tokens_split_everywhere = taking(
    lambda corpus: {} if corpus.special_tokens else {"pattern": "(?s:.)"}
)
shortest_special_token_wins = taking(
    lambda corpus: {"special_tokens": sorted(corpus.special_tokens, key=len)[:1]}
)
special_tokens_are_patterns = taking(texts_that_match)
knows_ascii_blanks_only = splitting_by(lambda pattern: pattern.replace(r"\s", r"[ \t\r\n]"))
contractions_in_either_case = splitting_by(lambda pattern: "(?i)" + pattern)
always_takes_the_same_pattern = splitting_by(lambda _: GPT2_PATTERN)


# Sharing a file out.


def summed(bounds: Iterable[int], corpus: Corpus) -> WordCounts:
    """The words of a file that is cut at these places."""
    content, words = content_of(corpus), Counter[bytes]()
    for start, stop in pairwise(sorted({0, *bounds, len(content)})):
        words.update(dict(counted(content[start:stop], corpus)))
    return WordCounts.from_items(words.items())


def in_ranges(pattern: str | None = None) -> Count:
    """A counter that shares a file out evenly, and cuts behind the next match of the pattern, or behind
    the next special token.
    """

    def count(corpus: Corpus, *, threads: int = 1) -> WordCounts:
        content = content_of(corpus)
        expression = pattern or "|".join(map(re.escape, corpus.special_tokens)) or "(?!)"
        starts = (len(content) * part // threads for part in range(1, threads))
        found = (re.compile(expression.encode()).search(content, start) for start in starts)
        return summed((match.end() for match in found if match), corpus)

    return count


def names_the_offset_in_the_block(corpus: Corpus) -> WordCounts:
    return summed(range(0, len(content_of(corpus)), MEBIBYTE), corpus)


cuts_at_any_special_token = in_ranges()
cuts_behind_newlines = in_ranges(r"\n")
always_cuts_at_endoftext = in_ranges(r"<\|endoftext\|>")
cuts_anywhere = in_ranges("(?:)")


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
