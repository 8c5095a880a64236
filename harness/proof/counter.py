"""The checks of a word counter: worked files at every width, bad UTF-8, random texts against the definition."""

from __future__ import annotations

import functools
import random
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import regex

from harness.common import registry
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    RecordingMeter,
    Words,
    accepts,
    expect_phases,
    failure_of,
    shown,
    shown_bytes,
)
from harness.proof.counterexamples import WrongFile, shown_by
from harness.proof.file_cases import FILE_CASES, FileCase
from variants.contract import COUNTING_PHASES, Corpus, InvalidText, Meter, Unavailable, WordCounts

Count = Callable[..., Any]

SEEDS = 40
MEBIBYTE = 1 << 20
_OF_A_COUNTER = (*COUNTING_PHASES, "convert")

SPECIAL_TOKENS: tuple[tuple[str, ...], ...] = (
    (),
    ("<|e|>",),
    ("<|endoftext|>", "<|e|>"),
    ("<|e|>", "<|e|>x", "x<|e|>"),
    ("aa",),
    ("ab", "bc"),
    ("aba", "bab"),
    ("\n\n", " ", "é"),
)

PIECES = (
    *("a", "b", "c", "ab", "bc", "aa", "x", "the", " word", "word ", "DON'T", "don't", "'ll", "'s", " '", "''"),
    *("<|e|>", "<|e|>x", "x<|e|>", "<|endoftext|>", "<|e", "|>", "<", "<|", "e|>"),
    *(" ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\x00", "\ufeff"),
    *("é", "e\u0301", "\u017f", "一二", "\uff0c", "😀", "👩\u200d🚀", "\U0010ffff"),
    *("1", "23", "½", "٣", "!", "?!", "-_-"),
)


def counter_checks(widths: Sequence[int] = WIDTHS) -> list[Check]:
    """All checks of a word counter; one that takes `threads` is called with each of `widths`."""

    def check(group: str, body: Callable[..., None], *arguments: Any, suffix: str = "") -> Check:
        return Check(f"{body.__name__}{suffix}", group, functools.partial(body, *arguments))

    return [
        *(check("worked files", check_worked_file, widths, case, suffix=f"[{case.name}]") for case in FILE_CASES),
        check("properties", check_words_are_distinct, widths),
        check("properties", check_keeps_nothing_from_call_to_call, widths),
        check("properties", check_reports_counting_phases, widths),
        check("properties", check_replacing_is_decoding_first, widths),
        check("properties", check_knows_newer_characters, widths),
        check("large files", check_names_the_offset_far_into_a_file, widths[:3]),
        check("large files", check_large_file_equals_definition, widths[:3]),
        *(check("random texts", check_equals_definition, widths, seed, suffix=f"[{seed}]") for seed in range(SEEDS)),
    ]


def corpus_of(folder: str, content: bytes, special_tokens: tuple[str, ...], **how: Any) -> Corpus:
    """A corpus of a file with these bytes."""
    path = Path(folder, "corpus.txt")
    path.write_bytes(content)
    return Corpus(str(path), special_tokens, **how)


def count_words(count: Count, corpus: Corpus, width: int | None, *meter: Meter) -> WordCounts:
    """Call the counter on a valid file: whatever it raises is a failure that shows the file."""
    try:
        return count_or_refuse(count, corpus, width, *meter)
    except InvalidText as error:
        raise CheckFailed(f"refused a valid file: {error}\n{described(corpus, width)}") from error


def count_or_refuse(count: Count, corpus: Corpus, width: int | None, *meter: Meter) -> WordCounts:
    """Call the counter on a file that it may refuse as invalid UTF-8 only."""
    keywords = {} if width is None else {"threads": width}
    try:
        word_counts = count(corpus, *meter, **keywords)
    except (InvalidText, Unavailable):
        raise
    except Exception as error:
        raise failure_of(error, described(corpus, width)) from error
    if not isinstance(word_counts, WordCounts):
        raise CheckFailed(f"returned {type(word_counts).__name__}, not WordCounts\n{described(corpus, width)}")
    return word_counts


def described(corpus: Corpus, width: int | None) -> str:
    """The file and how it was read."""
    threads = "" if width is None else f", threads={width}"
    pattern = "none" if corpus.pattern is None else corpus.pattern
    return (
        f"file: {shown_bytes(Path(corpus.path).read_bytes())}\n"
        f"special tokens {list(corpus.special_tokens)}, errors={corpus.errors}{threads}, pattern {pattern}"
    )


def widths_for(count: Count, widths: Sequence[int]) -> Sequence[int | None]:
    return widths if accepts(count, "threads") else (None,)


def expect_words(count: Count, want: Words, corpus: Corpus, width: int | None, why: str) -> None:
    """Raise CheckFailed with the first word whose count differs from the one wanted, the reason and the file."""
    content = Path(corpus.path).read_bytes()
    with shown_by(WrongFile(content, corpus.special_tokens, width, corpus.pattern, corpus.errors)):
        compare_words(dict(count_words(count, corpus, width)), want, corpus, width, why)


def compare_words(got: Words, want: Words, corpus: Corpus, width: int | None, why: str) -> None:
    if got == want:
        return
    word = min(word for word in {*got, *want} if got.get(word, 0) != want.get(word, 0))
    raise CheckFailed(
        f"first difference at word {shown_bytes(word)}: got {got.get(word, 0)}, want {want.get(word, 0)}\n"
        f"{why}\n{described(corpus, width)}\ncounted {shown(got)}"
    )


def expect_invalid(count: Count, corpus: Corpus, width: int | None, offset: int, why: str) -> None:
    """Raise CheckFailed unless the counter refuses the file and names the offset of its first bad byte."""
    try:
        words = count_or_refuse(count, corpus, width)
    except InvalidText as error:
        if error.offset != offset:
            raise CheckFailed(
                f"named byte {error.offset} as the first invalid one, which is byte {offset}\n{why}\n"
                f"{described(corpus, width)}"
            ) from error
    else:
        raise CheckFailed(
            f"counted a file whose byte {offset} is not UTF-8; it must raise InvalidText\n{why}\n"
            f"{described(corpus, width)}\ncounted {shown(words)}"
        )


def check_worked_file(widths: Sequence[int], case: FileCase, count: Count) -> None:
    for width in widths_for(count, widths):
        with tempfile.TemporaryDirectory() as folder:
            corpus = corpus_of(folder, case.content, case.special_tokens, pattern=case.pattern, errors=case.errors)
            if case.invalid_at is None:
                expect_words(count, case.words, corpus, width, case.why)
            else:
                expect_invalid(count, corpus, width, case.invalid_at, case.why)


def random_text(seed: int) -> tuple[str, tuple[str, ...]]:
    """A text of pieces that are hard to cut between, and its special tokens."""
    chance = random.Random(seed)
    special_tokens = SPECIAL_TOKENS[seed % len(SPECIAL_TOKENS)]
    pieces = chance.sample(PIECES, chance.randint(2, 12)) + list(special_tokens)
    return "".join(chance.choices(pieces, k=chance.randint(1, 120))), special_tokens


def expect_definition(count: Count, corpus: Corpus, width: int | None) -> None:
    want = dict(registry.definition_counter()(corpus))
    expect_words(count, want, corpus, width, "the definition counts these")


def check_equals_definition(widths: Sequence[int], seed: int, count: Count) -> None:
    """One text at one width, in turn: many processes for each text would take minutes."""
    taken = widths_for(count, widths)
    text, special_tokens = random_text(seed)
    with tempfile.TemporaryDirectory() as folder:
        expect_definition(count, corpus_of(folder, text.encode(), special_tokens), taken[seed % len(taken)])


def check_words_are_distinct(widths: Sequence[int], count: Count) -> None:
    text, _ = random_text(1)
    for width in widths_for(count, widths):
        with tempfile.TemporaryDirectory() as folder:
            corpus = corpus_of(folder, (text + "<|e|>").encode() * 5, ("<|e|>",))
            word_counts = count_words(count, corpus, width)
            words = list(word_counts)
            if len(set(words)) < len(words):
                raise CheckFailed(f"listed a word twice\n{described(corpus, width)}\nlisted {words}")
            if not all(words) or not all(word_counts.values()):
                raise CheckFailed(f"listed a word without bytes or without a count\n{described(corpus, width)}")


def check_keeps_nothing_from_call_to_call(widths: Sequence[int], count: Count) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for content in (b"ab cd<|e|>ab", b"xy", b"ab cd<|e|>ab"):
            expect_definition(count, corpus_of(folder, content, ("<|e|>",)), widths_for(count, widths)[0])


def check_reports_counting_phases(widths: Sequence[int], count: Count) -> None:
    if not accepts(count, "meter"):
        raise CheckSkipped("the counter takes no meter, so it reports no phases")
    for width in widths_for(count, widths):
        with tempfile.TemporaryDirectory() as folder:
            corpus = corpus_of(folder, b"ab cd<|e|>" * 20, ("<|e|>",))
            start = time.perf_counter()
            meter = RecordingMeter()
            count_words(count, corpus, width, meter)
            wall = time.perf_counter() - start
            expect_phases(meter, _OF_A_COUNTER, wall, "the counter")


def check_replacing_is_decoding_first(widths: Sequence[int], count: Count) -> None:
    bad = (b"\xff", b"\xe4\xb8", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\x80")
    content = b"".join(b"ab" + sequence + b"<|e|>cd " + sequence for sequence in bad) + b"end\xe4"
    decoded = content.decode("utf-8", "replace").encode()
    with tempfile.TemporaryDirectory() as clean, tempfile.TemporaryDirectory() as folder:
        want = dict(registry.definition_counter()(corpus_of(clean, decoded, ("<|e|>",))))
        corpus = corpus_of(folder, content, ("<|e|>",), errors="replace")
        for width in widths_for(count, widths):
            why = "the same file decoded with errors=replace beforehand has these words"
            expect_words(count, want, corpus, width, why)


@functools.cache
def newer_characters() -> str:
    """The letters and digits of `regex` that this Python's Unicode tables do not have."""
    unassigned = (chr(number) for number in range(sys.maxunicode + 1) if unicodedata.category(chr(number)) == "Cn")
    return "".join(regex.findall(r"[\p{L}\p{N}]", "".join(unassigned)))


def check_knows_newer_characters(widths: Sequence[int], count: Count) -> None:
    """A counter with older Unicode tables is not wrong, but has other words of newer characters."""
    newer = newer_characters()
    if not newer:
        raise CheckSkipped("the tables of `regex` are not newer than this Python's")
    with tempfile.TemporaryDirectory() as folder:
        corpus = corpus_of(folder, "\n".join(f"a{character}a" for character in newer).encode(), ())
        want = dict(registry.definition_counter()(corpus))
        got = dict(count_words(count, corpus, widths_for(count, widths)[0]))
        differing = b" ".join(word for word in {*got, *want} if got.get(word) != want.get(word))
        touched = set(differing.decode("utf-8", "replace"))
        named = [character for character in newer if character in touched]
        lost = sum(len(word) * (want.get(word, 0) - got.get(word, 0)) for word in {*got, *want})
        if not named or lost:
            compare_words(got, want, corpus, widths_for(count, widths)[0], "each letter or digit stands between two a")
            return
    shown_first = ", ".join(f"U+{ord(character):04X}" for character in named[:3])
    raise CheckSkipped(
        f"its Unicode tables differ from those of regex {regex.__version__}: {len(named)} characters newer than "
        f"Unicode {unicodedata.unidata_version} ({shown_first}) give it other words"
    )


@functools.cache
def large_file() -> bytes:
    """For counters that read a mebibyte at a time: a character spans the end of the first, a token of the second."""
    chance = random.Random(0)
    pieces = [piece.encode() for piece in PIECES if "<" not in piece and "|" not in piece]
    documents = [b"".join(chance.choices(pieces, k=chance.randint(0, 3000))) for _ in range(20)]
    text = b"".join(document + b"<|e|>" for document in documents)
    text *= MEBIBYTE // len(text) + 1
    content = b""
    for boundary, piece in ((MEBIBYTE, "😀".encode()), (2 * MEBIBYTE, b"<|e|>")):
        content += text[: boundary - len(content) - 100].decode("utf-8", "ignore").encode()
        content += b"x" * (boundary - 2 - len(content)) + piece
    return content + text[: MEBIBYTE // 8].decode("utf-8", "ignore").encode()


@functools.cache
def words_of_large_file() -> dict[bytes, int]:
    """The words of the definition in it; cached for every counter."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(registry.definition_counter()(corpus_of(folder, large_file(), ("<|e|>",))))


def check_large_file_equals_definition(widths: Sequence[int], count: Count) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = corpus_of(folder, large_file(), ("<|e|>",))
        want = words_of_large_file()
        for width in widths_for(count, widths):
            expect_words(count, want, corpus, width, "the definition counts these")


def check_names_the_offset_far_into_a_file(widths: Sequence[int], count: Count) -> None:
    content = large_file()
    offset = len(content) - len(content) // 50
    while content[offset] & 0xC0 == 0x80:
        offset += 1
    broken = content[:offset] + b"\xff" + content[offset:] + b"\xfe"
    with tempfile.TemporaryDirectory() as folder:
        corpus = corpus_of(folder, broken, ("<|e|>",))
        for width in widths_for(count, widths):
            expect_invalid(count, corpus, width, offset, "the bad byte is near the end of a large file")
