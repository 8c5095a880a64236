"""The checks of a word counter: worked files at every width, bad UTF-8, random texts against the definition."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from harness.common import registry
from harness.proof.cases import Row, rows, token_from, words_from
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    Subject,
    Words,
    accepts,
    bytes_text,
    expect_phases,
    failure_of,
    words_text,
)
from harness.proof.counterexamples import WrongFile, attached
from variants.contract import COUNTING_PHASES, GPT2_PATTERN, Corpus, InvalidText, Meter, Unavailable, WordCounts

SEEDS = 40
MEBIBYTE = 1 << 20
PHASES = (*COUNTING_PHASES, "convert")
PATTERNS = {"line": r"[^\n]*\n|[^\n]+", "document": r"(?s:.+)", "none": None}
SPECIAL = ("<|e|>",)
SPECIAL_TOKENS: tuple[tuple[str, ...], ...] = (
    (),
    SPECIAL,
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
    properties = (
        check_words_are_distinct,
        check_calls_are_independent,
        check_reports_counting_phases,
        check_replacing_is_decoding_first,
        check_knows_newer_characters,
    )
    large = (check_names_the_offset_far_into_a_file, check_large_file_equals_definition)
    cases = {f"check_worked_file[{case.name}]": case for case in FILE_CASES}
    seeds = {f"check_equals_definition[{seed}]": seed for seed in range(SEEDS)}
    return [
        *(Check.of("worked files", name, check_worked_file, widths, case) for name, case in cases.items()),
        *(Check.of("properties", body.__name__, body, widths) for body in properties),
        *(Check.of("large files", body.__name__, body, widths[:3]) for body in large),
        *(Check.of("random texts", name, check_equals_definition, widths, seed) for name, seed in seeds.items()),
    ]


@contextlib.contextmanager
def corpus_of(content: bytes, special_tokens: tuple[str, ...] = SPECIAL, **options: Any) -> Iterator[Corpus]:
    """A corpus of a file with these bytes, as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.txt")
        path.write_bytes(content)
        yield Corpus(str(path), special_tokens, **options)


def count_words(count: Subject, corpus: Corpus, width: int | None, *meter: Meter) -> WordCounts:
    """Call the counter on a valid file: whatever it raises is a failure that shows the file."""
    try:
        return count_or_refuse(count, corpus, width, *meter)
    except InvalidText as error:
        raise CheckFailed(f"refused a valid file: {error}\n{described(corpus, width)}") from error


def count_or_refuse(count: Subject, corpus: Corpus, width: int | None, *meter: Meter) -> WordCounts:
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
        f"file: {bytes_text(Path(corpus.path).read_bytes())}\n"
        f"special tokens {list(corpus.special_tokens)}, errors={corpus.errors}{threads}, pattern {pattern}"
    )


def widths_for(count: Subject, widths: Sequence[int]) -> Sequence[int | None]:
    return widths if accepts(count, "threads") else (None,)


def expect_words(count: Subject, want: Words, corpus: Corpus, width: int | None, why: str) -> None:
    """Raise CheckFailed with the first word whose count differs from the one wanted, the reason and the file."""
    content = Path(corpus.path).read_bytes()
    with attached(WrongFile(content, corpus.special_tokens, width, corpus.pattern, corpus.errors)):
        compare_words(dict(count_words(count, corpus, width)), want, corpus, width, why)


def compare_words(words: Words, want: Words, corpus: Corpus, width: int | None, why: str) -> None:
    if words == want:
        return
    word = min(word for word in {*words, *want} if words.get(word, 0) != want.get(word, 0))
    raise CheckFailed(
        f"first difference at word {bytes_text(word)}: got {words.get(word, 0)}, want {want.get(word, 0)}\n"
        f"{why}\n{described(corpus, width)}\ncounted {words_text(words)}"
    )


def expect_definition(count: Subject, corpus: Corpus, width: int | None) -> None:
    expect_words(count, definition(corpus), corpus, width, "the definition counts these")


def definition(corpus: Corpus) -> dict[bytes, int]:
    return dict(registry.definition_counter()(corpus))


def expect_invalid(count: Subject, corpus: Corpus, width: int | None, offset: int, why: str) -> None:
    """Raise CheckFailed unless the counter refuses the file and names the offset of its first bad byte."""
    try:
        words = count_or_refuse(count, corpus, width)
    except InvalidText as error:
        if error.offset == offset:
            return
        failure = f"named byte {error.offset} as the first invalid one, which is byte {offset}"
    else:
        failure = f"counted {words_text(words)}\nalthough byte {offset} is not UTF-8; it must raise InvalidText"
    raise CheckFailed(f"{failure}\n{why}\n{described(corpus, width)}")


# Random texts and properties


def random_text(seed: int) -> tuple[str, tuple[str, ...]]:
    """A text of pieces that are hard to cut between, and its special tokens."""
    chance = random.Random(seed)
    special_tokens = SPECIAL_TOKENS[seed % len(SPECIAL_TOKENS)]
    pieces = chance.sample(PIECES, chance.randint(2, 12)) + list(special_tokens)
    return "".join(chance.choices(pieces, k=chance.randint(1, 120))), special_tokens


def check_equals_definition(widths: Sequence[int], seed: int, count: Subject) -> None:
    """One text at one width, in turn: many processes for each text would take minutes."""
    own_widths = widths_for(count, widths)
    text, special_tokens = random_text(seed)
    with corpus_of(text.encode(), special_tokens) as corpus:
        expect_definition(count, corpus, own_widths[seed % len(own_widths)])


def check_words_are_distinct(widths: Sequence[int], count: Subject) -> None:
    text, _ = random_text(1)
    with corpus_of((text + "<|e|>").encode() * 5) as corpus:
        for width in widths_for(count, widths):
            word_counts = count_words(count, corpus, width)
            words = list(word_counts)
            if len(set(words)) < len(words):
                raise CheckFailed(f"listed a word twice\n{described(corpus, width)}\nlisted {words}")
            if not all(words) or not all(word_counts.values()):
                raise CheckFailed(f"listed a word without bytes or without a count\n{described(corpus, width)}")


def check_calls_are_independent(widths: Sequence[int], count: Subject) -> None:
    with corpus_of(b"") as corpus:
        for content in (b"ab cd<|e|>ab", b"xy", b"ab cd<|e|>ab"):
            Path(corpus.path).write_bytes(content)
            expect_definition(count, corpus, widths_for(count, widths)[0])


def check_reports_counting_phases(widths: Sequence[int], count: Subject) -> None:
    if not accepts(count, "meter"):
        raise CheckSkipped("the counter takes no meter, so it reports no phases")
    with corpus_of(b"ab cd<|e|>" * 20) as corpus:
        for width in widths_for(count, widths):
            start, meter = time.perf_counter(), Meter()
            count_words(count, corpus, width, meter)
            expect_phases(meter, PHASES, time.perf_counter() - start, "the counter")


def check_replacing_is_decoding_first(widths: Sequence[int], count: Subject) -> None:
    bad = (b"\xff", b"\xe4\xb8", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\x80")
    content = b"".join(b"ab" + sequence + b"<|e|>cd " + sequence for sequence in bad) + b"end\xe4"
    with corpus_of(content.decode("utf-8", "replace").encode()) as decoded:
        want = definition(decoded)
    with corpus_of(content, errors="replace") as corpus:
        for width in widths_for(count, widths):
            expect_words(count, want, corpus, width, "the same file, decoded with errors=replace first, has these")


@functools.cache
def newer_characters() -> str:
    """The letters and digits of `regex` that this Python's Unicode tables do not have."""
    unassigned = (chr(number) for number in range(sys.maxunicode + 1) if unicodedata.category(chr(number)) == "Cn")
    return "".join(regex.findall(r"[\p{L}\p{N}]", "".join(unassigned)))


def check_knows_newer_characters(widths: Sequence[int], count: Subject) -> None:
    """A counter with older Unicode tables is not wrong, but has other words of newer characters."""
    newer, width = newer_characters(), widths_for(count, widths)[0]
    if not newer:
        raise CheckSkipped("the tables of `regex` are not newer than this Python's")
    with corpus_of("\n".join(f"a{character}a" for character in newer).encode(), ()) as corpus:
        want, words = definition(corpus), dict(count_words(count, corpus, width))
        differing = b" ".join(word for word in {*words, *want} if words.get(word) != want.get(word))
        touched = set(differing.decode("utf-8", "replace"))
        other = [character for character in newer if character in touched]
        lost = sum(len(word) * (want.get(word, 0) - words.get(word, 0)) for word in {*words, *want})
        if not other or lost:
            compare_words(words, want, corpus, width, "each letter or digit is between two a")
            return
    first = ", ".join(f"U+{ord(character):04X}" for character in other[:3])
    raise CheckSkipped(
        f"its Unicode tables differ from those of regex {regex.__version__}: {len(other)} characters newer than "
        f"Unicode {unicodedata.unidata_version} ({first}) give it other words"
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
    with corpus_of(large_file()) as corpus:
        return definition(corpus)


def check_large_file_equals_definition(widths: Sequence[int], count: Subject) -> None:
    with corpus_of(large_file()) as corpus:
        for width in widths_for(count, widths):
            expect_words(count, words_of_large_file(), corpus, width, "the definition counts these")


def check_names_the_offset_far_into_a_file(widths: Sequence[int], count: Subject) -> None:
    content = large_file()
    offset = len(content) - len(content) // 50
    while content[offset] & 0xC0 == 0x80:
        offset += 1
    with corpus_of(content[:offset] + b"\xff" + content[offset:] + b"\xfe") as corpus:
        for width in widths_for(count, widths):
            expect_invalid(count, corpus, width, offset, "the bad byte is near the end of a large file")


# Worked files


@dataclass(frozen=True)
class FileCase:
    """A file's bytes and the words they must give; `invalid_at` is the byte offset to be named if there are none."""

    name: str
    content: bytes
    special_tokens: tuple[str, ...]
    words: Mapping[bytes, int]
    why: str
    invalid_at: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"


def file_case(row: Row) -> FileCase:
    """A case as the table writes it: see cases.py."""
    options: dict[str, Any] = dict(row.options)
    special_tokens = tuple(token_from(token).decode() for token in options.pop("special", "").split(",") if token)
    if "pattern" in options:
        options["pattern"] = PATTERNS[options["pattern"]]
    if "invalid_at" in options:
        options["invalid_at"] = int(options["invalid_at"])
    return FileCase(row.name, token_from(row.input), special_tokens, words_from(row.result), row.why, **options)


def check_worked_file(widths: Sequence[int], case: FileCase, count: Subject) -> None:
    with corpus_of(case.content, case.special_tokens, pattern=case.pattern, errors=case.errors) as corpus:
        for width in widths_for(count, widths):
            if case.invalid_at is None:
                expect_words(count, case.words, corpus, width, case.why)
            else:
                expect_invalid(count, corpus, width, case.invalid_at, case.why)


FILE_CASES: tuple[FileCase, ...] = (
    *map(
        file_case,
        rows(r"""
F01: a\r\nb_a\r\nb\r\r -> a \r*2 \n*2 b*2 _a \r\r | special=<|e|>
    # line ends are bytes like others: no newline translation
F02: hello_hello_hello -> hello _hello*2
    # no special tokens means no split; splitting on an empty expression makes a word of every character
F03: a<|endoftext|>!!!_a<|endoftext|>!!! -> a <|*2 endoftext*2 |>!!!*2 _a | special=<|sep|>
    # <|endoftext|> is ordinary text unless it is a special token, and not a place to cut
F04: a<|e|><|e|>b -> a b | special=<|e|>  # an empty document between two special tokens
F05: a<|e|>xb -> a b | special=<|e|>,<|e|>x  # the longest special token wins
F06: xaaay -> x ay | special=aa  # a special token that overlaps itself: the leftmost wins
F07: qabcq -> q cq | special=ab,bc  # special tokens that overlap each other
F08: <|e|>ab<|e|> -> ab | special=<|e|>  # a special token at both ends of the file
F09: ab__<|e|>__cd -> ab __ _ _cd | special=<|e|>
    # blanks before a special token are at the end of their document, blanks after it are not
F10: 一二一二\xef\xbc\x8c一二 -> 一二一二 \xef\xbc\x8c 一二  # text without blanks: letters and punctuation beyond ASCII
F11: good_\xff_bad -> | invalid_at=5  # invalid UTF-8 is an error, never a smaller table
F12_empty:  -> | special=<|e|>  # an empty file has no words, and is no error
F12_only_special: <|e|><|e|> -> | special=<|e|>  # special tokens never enter the counts
F13: e\xcc\x81e\xcc\x81 -> e*2 \xcc\x81*2  # a combining accent is not a letter, and nothing is normalised
F15: I'll_DON'T_don't -> I 'll _DON ' T _don 't  # contractions are cut off in lower case only
special_is_not_a_pattern: abc_a.c_abc -> abc _ _abc | special=a.c
    # a special token is taken literally, not as a regular expression
byte_order_mark: \xef\xbb\xbfab -> \xef\xbb\xbf ab  # a byte order mark is text
blanks_of_unicode: a\xc2\xa0b\xe3\x80\x80\xe3\x80\x80c -> a \xc2\xa0 b \xe3\x80\x80*2 c
    # white space is Unicode's, and only an ASCII blank is joined to the word behind it
numbers: x²½٣! -> x ²½٣ !  # numbers are Unicode's, fractions included, and end where punctuation begins
invalid_at_once: \x80ab -> | invalid_at=0  # the first byte of the file is the bad one
invalid_at_end: ab_\xe4\xb8 -> | invalid_at=3  # a character that the end of the file cuts off
surrogate: ab\xed\xa0\x80 -> | invalid_at=2  # a surrogate is not a character in UTF-8
invalid_before_special: a\xe4<|e|>b -> | special=<|e|> invalid_at=1  # a character that a special token cuts off
replaced: a\xffb\xe4\xb8<|e|>c -> a �*2 b c | special=<|e|> errors=replace
    # errors=replace puts one U+FFFD for each bad sequence
replaced_before_splitting: a\xffb -> a b | special=� errors=replace
    # errors=replace comes before the split, so the replacement may be a special token
lines: ab_cd\n\nef -> ab_cd\n \n ef | pattern=line  # another pattern: lines with their ends are the words
documents: a_b\n<|e|>c -> a_b\n c | special=<|e|> pattern=document  # another pattern: whole documents are the words
raw_bytes: a\xff_\x00<|e|>\xe4<|e|>a\xff_\x00 -> a\xff_\x00*2 \xe4 | special=<|e|> pattern=none
    # no pattern: the bytes between special tokens, which need not be UTF-8
no_pattern_overlap: qabcq -> q cq | special=ab,bc pattern=none
    # no pattern, and special tokens that overlap each other
"""),
    ),
    FileCase("F14", b"a" * 600, (), {b"a" * 600: 1}, "one word of 600 bytes, however many want a share of the file"),
    FileCase(
        "cut_at_newline",
        b"ab \n\n" * 8 + b"cd",
        (),
        words_from(r"ab*8 _\n*8 \n*8 cd"),
        "the last blank before a word is alone, which a part of the file that ends at a newline cannot see",
    ),
    FileCase(
        "self_overlap_repeated",
        b"xaaay " * 6,
        ("aa",),
        words_from("x ay*6 _x*5 _"),
        "a cut inside aaa that takes the second aa for the special token",
    ),
    FileCase(
        "overlap_repeated", b"qabcq " * 6, ("ab", "bc"), words_from("q cq*6 _q*5 _"), "a cut at bc where ab matched"
    ),
    FileCase(
        "special_across_4096",
        b"a" * 4090 + b"<|endoftext|>b",
        ("<|endoftext|>",),
        {b"a" * 4090: 1, b"b": 1},
        "a special token that lies across the end of a 4,096-byte window",
    ),
    FileCase(
        "first_of_two_invalid",
        b"ok<|e|>" * 5 + b"\xff" + b"<|e|>ok" * 5 + b"\xfe",
        SPECIAL,
        {},
        "the offset is that of the first bad byte in the file, in whatever order its parts are read",
        invalid_at=35,
    ),
)
