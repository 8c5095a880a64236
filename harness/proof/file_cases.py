"""Worked examples for word counters: files, the words they must give, and why each is here (see cases.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from variants.contract import GPT2_PATTERN

LINE_PATTERN = r"[^\n]*\n|[^\n]+"
DOCUMENT_PATTERN = r"(?s:.+)"


@dataclass(frozen=True)
class FileCase:
    """A file's bytes and the words they must give; `invalid_at` is the byte offset to be named where there are none."""

    name: str
    content: bytes
    special_tokens: tuple[str, ...]
    words: Mapping[bytes, int]
    why: str
    invalid_at: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"


FILE_CASES: tuple[FileCase, ...] = (
    FileCase(
        "F01",
        b"a\r\nb a\r\nb\r\r",
        ("<|e|>",),
        {b"a": 1, b"\r": 2, b"\n": 2, b"b": 2, b" a": 1, b"\r\r": 1},
        "line ends are bytes like others: no newline translation",
    ),
    FileCase(
        "F02",
        b"hello hello hello",
        (),
        {b"hello": 1, b" hello": 2},
        "no special tokens means no split; splitting on an empty expression makes a word of every character",
    ),
    FileCase(
        "F03",
        b"a<|endoftext|>!!! a<|endoftext|>!!!",
        ("<|sep|>",),
        {b"a": 1, b"<|": 2, b"endoftext": 2, b"|>!!!": 2, b" a": 1},
        "<|endoftext|> is ordinary text unless it was named, and no place to cut",
    ),
    FileCase("F04", b"a<|e|><|e|>b", ("<|e|>",), {b"a": 1, b"b": 1}, "an empty document between two special tokens"),
    FileCase("F05", b"a<|e|>xb", ("<|e|>", "<|e|>x"), {b"a": 1, b"b": 1}, "the longest special token wins"),
    FileCase("F06", b"xaaay", ("aa",), {b"x": 1, b"ay": 1}, "a special token that overlaps itself: the leftmost wins"),
    FileCase("F07", b"qabcq", ("ab", "bc"), {b"q": 1, b"cq": 1}, "special tokens that overlap each other"),
    FileCase("F08", b"<|e|>ab<|e|>", ("<|e|>",), {b"ab": 1}, "a special token at both ends of the file"),
    FileCase(
        "F09",
        b"ab  <|e|>  cd",
        ("<|e|>",),
        {b"ab": 1, b"  ": 1, b" ": 1, b" cd": 1},
        "blanks before a special token are at the end of their document, blanks after it are not",
    ),
    FileCase(
        "F10",
        "一二一二\uff0c一二".encode(),
        (),
        {"一二一二".encode(): 1, "\uff0c".encode(): 1, "一二".encode(): 1},
        "text without blanks: letters and punctuation beyond ASCII",
    ),
    FileCase("F11", b"good \xff bad", (), {}, "invalid UTF-8 is an error, never a smaller table", invalid_at=5),
    FileCase("F12_empty", b"", ("<|e|>",), {}, "an empty file has no words, and is no error"),
    FileCase("F12_only_special", b"<|e|><|e|>", ("<|e|>",), {}, "special tokens never enter the counts"),
    FileCase(
        "F13",
        "e\u0301e\u0301".encode(),
        (),
        {b"e": 2, "\u0301".encode(): 2},
        "a combining accent is no letter, and nothing is normalised",
    ),
    FileCase("F14", b"a" * 600, (), {b"a" * 600: 1}, "one word of 600 bytes, however many want a share of the file"),
    FileCase(
        "F15",
        b"I'll DON'T don't",
        (),
        {b"I": 1, b"'ll": 1, b" DON": 1, b"'": 1, b"T": 1, b" don": 1, b"'t": 1},
        "contractions are cut off in lower case only",
    ),
    FileCase(
        "cut_at_newline",
        b"ab \n\n" * 8 + b"cd",
        (),
        {b"ab": 8, b" \n": 8, b"\n": 8, b"cd": 1},
        "the last blank before a word stands alone, which a part of the file that ends at a newline cannot see",
    ),
    FileCase(
        "self_overlap_repeated",
        b"xaaay " * 6,
        ("aa",),
        {b"x": 1, b"ay": 6, b" x": 5, b" ": 1},
        "a cut inside aaa that takes the second aa for the special token",
    ),
    FileCase(
        "overlap_repeated",
        b"qabcq " * 6,
        ("ab", "bc"),
        {b"q": 1, b"cq": 6, b" q": 5, b" ": 1},
        "a cut at bc where ab matched",
    ),
    FileCase(
        "special_across_4096",
        b"a" * 4090 + b"<|endoftext|>b",
        ("<|endoftext|>",),
        {b"a" * 4090: 1, b"b": 1},
        "a special token that lies across the end of a 4,096-byte window",
    ),
    FileCase(
        "special_is_no_pattern",
        b"abc a.c abc",
        ("a.c",),
        {b"abc": 1, b" ": 1, b" abc": 1},
        "a special token is taken literally, not as a regular expression",
    ),
    FileCase("byte_order_mark", b"\xef\xbb\xbfab", (), {b"\xef\xbb\xbf": 1, b"ab": 1}, "a byte order mark is text"),
    FileCase(
        "blanks_of_unicode",
        "a\u00a0b\u3000\u3000c".encode(),
        (),
        {b"a": 1, "\u00a0".encode(): 1, b"b": 1, "\u3000".encode(): 2, b"c": 1},
        "white space is Unicode's, and only an ASCII blank is joined to the word behind it",
    ),
    FileCase(
        "numbers",
        "x²½٣!".encode(),
        (),
        {b"x": 1, "²½٣".encode(): 1, b"!": 1},
        "numbers are Unicode's, fractions included, and end where punctuation begins",
    ),
    FileCase("invalid_at_once", b"\x80ab", (), {}, "the first byte of the file is the bad one", invalid_at=0),
    FileCase("invalid_at_end", b"ab \xe4\xb8", (), {}, "a character that the end of the file cuts off", invalid_at=3),
    FileCase("surrogate", b"ab\xed\xa0\x80", (), {}, "a surrogate is no character in UTF-8", invalid_at=2),
    FileCase(
        "invalid_before_special",
        b"a\xe4<|e|>b",
        ("<|e|>",),
        {},
        "a character that a special token cuts off",
        invalid_at=1,
    ),
    FileCase(
        "first_of_two_invalid",
        b"ok<|e|>" * 5 + b"\xff" + b"<|e|>ok" * 5 + b"\xfe",
        ("<|e|>",),
        {},
        "the offset is that of the first bad byte in the file, whoever meets one first",
        invalid_at=35,
    ),
    FileCase(
        "replaced",
        b"a\xffb\xe4\xb8<|e|>c",
        ("<|e|>",),
        {b"a": 1, "\ufffd".encode(): 2, b"b": 1, b"c": 1},
        "errors=replace puts one U+FFFD for each bad sequence",
        errors="replace",
    ),
    FileCase(
        "replaced_before_splitting",
        b"a\xffb",
        ("\ufffd",),
        {b"a": 1, b"b": 1},
        "errors=replace comes before the split, so a special token may be what was put in",
        errors="replace",
    ),
    FileCase(
        "lines",
        b"ab cd\n\nef",
        (),
        {b"ab cd\n": 1, b"\n": 1, b"ef": 1},
        "another pattern: lines with their ends are the words",
        pattern=LINE_PATTERN,
    ),
    FileCase(
        "documents",
        b"a b\n<|e|>c",
        ("<|e|>",),
        {b"a b\n": 1, b"c": 1},
        "another pattern: whole documents are the words",
        pattern=DOCUMENT_PATTERN,
    ),
    FileCase(
        "raw_bytes",
        b"a\xff \x00<|e|>\xe4<|e|>a\xff \x00",
        ("<|e|>",),
        {b"a\xff \x00": 2, b"\xe4": 1},
        "no pattern: the bytes between special tokens, which need not be UTF-8",
        pattern=None,
    ),
    FileCase(
        "no_pattern_overlap",
        b"qabcq",
        ("ab", "bc"),
        {b"q": 1, b"cq": 1},
        "no pattern, and special tokens that overlap each other",
        pattern=None,
    ),
)
