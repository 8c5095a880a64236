"""The checks of a word counter: worked files at every width, bad UTF-8, random texts against the
definition.
"""

from __future__ import annotations

import functools
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from harness.common import registry
from harness.proof.cases import Case, read_cases, token_from, words_from
from harness.proof.checks import (
    SHOWN,
    WIDTHS,
    Call,
    Check,
    CheckSkipped,
    Subject,
    accepts,
    reported_phases,
)
from harness.worker.calling import expect_word_counts
from variants.contract import COUNTING_PHASES, GPT2_PATTERN, Corpus, InvalidText, Meter

SEEDS = 40
MEBIBYTE = 1 << 20
PATTERNS = {"gpt2": GPT2_PATTERN, "line": r"[^\n]*\n|[^\n]+", "document": r"(?s:.+)", "none": None}
SPECIAL = ("<|e|>",)
SPECIAL_TOKENS: tuple[tuple[str, ...], ...] = (
    (), SPECIAL, ("<|endoftext|>", "<|e|>"), ("<|e|>", "<|e|>x", "x<|e|>"),
    ("aa",), ("ab", "bc"), ("aba", "bab"), ("\n\n", " ", "é"),
)  # fmt: skip
PIECES = (
    "a¦b¦c¦ab¦bc¦aa¦x¦the¦ word¦word ¦DON'T¦don't¦'ll¦'s¦ '¦''"
    "¦<|e|>¦<|e|>x¦x<|e|>¦<|endoftext|>¦<|e¦|>¦<¦<|¦e|>"
    "¦ ¦  ¦\n¦\n\n¦\r\n¦\t¦\u00a0¦\u3000¦\u2028¦\u0085¦\x1c¦\x00¦\ufeff"
    "¦é¦e\u0301¦\u017f¦一二¦\uff0c¦😀¦👩\u200d🚀¦\U0010ffff¦1¦23¦½¦٣¦!¦?!¦-_-"
)
"""The parts of random texts, which ¦ separates."""


def counter_checks() -> list[Check]:
    """All checks of a word counter; one that takes `threads` is called with several numbers of
    them.
    """
    bodies = {
        check_calls_are_independent: "properties",
        check_reports_counting_phases: "properties",
        check_names_the_offset_far_into_a_file: "large files",
        check_large_file_equals_definition: "large files",
    }
    checks = []
    for case in FILE_CASES:
        body = functools.partial(check_worked_file, case)
        checks.append(Check(f"check_worked_file[{case.name}]", "worked files", body))
    checks += [Check(body.__name__, group, body) for body, group in bodies.items()]
    for seed in range(SEEDS):
        body = functools.partial(check_text, seed)
        checks.append(Check(f"check_equals_definition[{seed}]", "random texts", body))
    return checks


@dataclass(frozen=True)
class CounterCall(Call):
    """A call of a word counter: the bytes of a file, and the options."""

    content: bytes
    special_tokens: tuple[str, ...]
    width: int | None = None
    pattern: str | None = GPT2_PATTERN
    errors: str = "strict"

    def __str__(self) -> str:
        """The file and how it was read."""
        threads = "" if self.width is None else f", threads={self.width}"
        how = f"special tokens {list(self.special_tokens)}, errors={self.errors}{threads}"
        return f"file: {SHOWN.repr(self.content)}\n{how}, pattern {self.pattern or 'none'}"

    def at_widths_of(self, count: Subject) -> list[CounterCall]:
        """The call at each width that the counter takes."""
        widths = WIDTHS if accepts(count, "threads") else (None,)
        return [replace(self, width=width) for width in widths]

    def run(self, count: Subject, *meter: Meter) -> dict[bytes, int] | int:
        """The words with their counts, or the offset that the counter names as that of the first
        invalid byte.
        """
        if meter and not accepts(count, "meter"):
            raise CheckSkipped("the counter takes no meter")
        keywords = {} if self.width is None else {"threads": self.width}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "corpus.txt")
            path.write_bytes(self.content)
            corpus = Corpus(str(path), self.special_tokens, self.pattern, self.errors)
            try:
                word_counts = self.returned(
                    lambda: count(corpus, *meter, **keywords), expect_word_counts
                )
            except InvalidText as error:
                return error.offset
        return dict(sorted(word_counts.items()))

    def defined(self) -> dict[bytes, int] | int:
        return words_of_definition(replace(self, width=None))

    def fault(self, got: dict[bytes, int] | int, want: dict[bytes, int] | int) -> str:
        if isinstance(want, int) or isinstance(got, int):
            return f"got {SHOWN.repr(got)}, want {SHOWN.repr(want)}; a number is the offset of an invalid byte"
        word = min(word for word in {*got, *want} if got.get(word, 0) != want.get(word, 0))
        return f"first difference at word {SHOWN.repr(word)}: got {got.get(word, 0)}, want {want.get(word, 0)}"

    @property
    def size(self) -> int:
        return len(self.content)


@functools.lru_cache(maxsize=64)
def words_of_definition(call: CounterCall) -> dict[bytes, int] | int:
    """What the definition counts; cached, because every counter is checked at every width on the
    same files.
    """
    return call.run(registry.definition_counter())


# Random texts and properties


def random_file(seed: int) -> CounterCall:
    """A text of pieces that are hard to cut between, and its special tokens; the first are short."""
    chance = random.Random(seed)
    special_tokens = SPECIAL_TOKENS[seed % len(SPECIAL_TOKENS)]
    pieces = chance.sample(PIECES.split("¦"), chance.randint(2, 12)) + list(special_tokens)
    return CounterCall(
        "".join(chance.choices(pieces, k=chance.randint(1, min(3 * seed + 3, 120)))).encode(),
        special_tokens,
    )


def check_text(seed: int, count: Subject) -> None:
    """One text at one width, in turn: many processes for each text would take minutes."""
    calls = random_file(seed).at_widths_of(count)
    calls[seed % len(calls)].expect_definition(count)


def check_calls_are_independent(count: Subject) -> None:
    """Count another file of the same name, and the first again: no state may survive a call."""
    call = CounterCall(b"ab cd<|e|>ab", SPECIAL).at_widths_of(count)[0]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(str(Path(folder, "corpus.txt")), SPECIAL)
        for one in (call, replace(call, content=b"xy"), call):
            Path(corpus.path).write_bytes(one.content)
            one.expect_definition(lambda _, **width: count(corpus, **width))


def check_reports_counting_phases(count: Subject) -> None:
    for call in CounterCall(b"ab cd<|e|>" * 20, SPECIAL).at_widths_of(count):
        reported_phases(call, count, (*COUNTING_PHASES, "convert"))


@functools.cache
def large_file() -> bytes:
    """For counters that read a mebibyte at a time: a character spans the end of the first, a token
    of the second.
    """
    chance = random.Random(0)
    pieces = [piece for piece in PIECES.split("¦") if "<" not in piece and "|" not in piece]
    pieces = [*pieces * 20, *SPECIAL]
    content = b""
    for boundary, across in ((1, "😀"), (2, "<|e|>"), (2.1, "")):
        missing = int(boundary * MEBIBYTE) - 2 - len(content)
        text = "".join(chance.choices(pieces, k=missing)).encode()[: missing - 20]
        content += text.decode(errors="ignore").encode().ljust(missing, b"x") + across.encode()
    return content


def check_large_file_equals_definition(count: Subject) -> None:
    for call in CounterCall(large_file(), SPECIAL).at_widths_of(count)[:3]:
        call.expect_definition(count)


def check_names_the_offset_far_into_a_file(count: Subject) -> None:
    content = large_file()
    offset = len(content) - len(content) // 50
    while content[offset] & 0xC0 == 0x80:
        offset += 1
    damaged = CounterCall(content[:offset] + b"\xff" + content[offset:] + b"\xfe", SPECIAL)
    for call in damaged.at_widths_of(count)[:3]:
        call.expect(count, offset, "the bad byte is near the end of a large file")


# Worked files


def counting(
    text: str,
    result: str,
    special: str = "",
    pattern: str = "gpt2",
    errors: str = "strict",
    invalid_at: str = "",
) -> tuple[CounterCall, dict[bytes, int] | int]:
    """A file and its words as the table writes them: see cases.py."""
    special_tokens = tuple(token_from(token).decode() for token in special.split(",") if token)
    call = CounterCall(token_from(text), special_tokens, pattern=PATTERNS[pattern], errors=errors)
    return call, int(invalid_at) if invalid_at else words_from(result)


def check_worked_file(case: Case, count: Subject) -> None:
    for call in case.call.at_widths_of(count):
        call.expect(count, case.want, case.why)


FILE_CASES: tuple[Case, ...] = (
    *read_cases(
        r"""
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
    # spaces before a special token are at the end of their document, spaces after it are not
F10: 一二一二\xef\xbc\x8c一二 -> 一二一二 \xef\xbc\x8c 一二  # text without blanks: letters and punctuation beyond ASCII
F11: good_\xff_bad -> | invalid_at=5  # invalid UTF-8 is an error, never a smaller table
F12_empty:  -> | special=<|e|>  # an empty file has no words, and is not an error
F12_only_special: <|e|><|e|> -> | special=<|e|>  # special tokens never enter the counts
F13: e\xcc\x81e\xcc\x81 -> e*2 \xcc\x81*2  # a combining accent is not a letter, and nothing is normalised
F15: I'll_DON'T_don't -> I 'll _DON ' T _don 't  # contractions are cut off in lower case only
special_is_not_a_pattern: abc_a.c_abc -> abc _ _abc | special=a.c
    # a special token is taken literally, not as a regular expression
byte_order_mark: \xef\xbb\xbfab -> \xef\xbb\xbf ab  # a byte order mark is text
blanks_of_unicode: a\xc2\xa0b\xe3\x80\x80\xe3\x80\x80c -> a \xc2\xa0 b \xe3\x80\x80*2 c
    # white space is Unicode's, and only an ASCII space is joined to the word behind it
numbers: x²½٣! -> x ²½٣ !  # numbers are Unicode's, fractions included, and end where punctuation begins
invalid_at_once: \x80ab -> | invalid_at=0  # the first byte of the file is the bad one
invalid_at_end: ab_\xe4\xb8 -> | invalid_at=3  # a character that the end of the file cuts off
surrogate: ab\xed\xa0\x80 -> | invalid_at=2  # a surrogate is not a character in UTF-8
invalid_before_special: a\xe4<|e|>b -> | special=<|e|> invalid_at=1  # a character that a special token cuts off
replaced: a\xffb\xe4\xb8<|e|>c\xf0\x9fd\xed\xa0\x80e\xc0\x80f\xe4 -> a �*4 b c d ��� e �� f | special=<|e|>
    errors=replace
    # errors=replace puts one U+FFFD for each bad sequence, the longest beginning of a character or else a byte
replaced_before_splitting: a\xffb -> a b | special=� errors=replace
    # errors=replace comes before the split, so the replacement may be a special token
lines: ab_cd\n\nef -> ab_cd\n \n ef | pattern=line  # another pattern: lines with their ends are the words
documents: a_b\n<|e|>c -> a_b\n c | special=<|e|> pattern=document  # another pattern: whole documents are the words
raw_bytes: a\xff_\x00<|e|>\xe4<|e|>a\xff_\x00 -> a\xff_\x00*2 \xe4 | special=<|e|> pattern=none
    # no pattern: the bytes between special tokens, which need not be UTF-8
no_pattern_overlap: qabcq -> q cq | special=ab,bc pattern=none
    # no pattern, and special tokens that overlap each other
cut_at_newline: ab_\n\nab_\n\nab_\n\nab_\n\nab_\n\nab_\n\ncd -> ab*6 _\n*6 \n*6 cd
    # the last space before a word is alone, which a part of the file that ends at a newline cannot see
self_overlap_repeated: xaaay_xaaay_xaaay_xaaay_xaaay_xaaay_ -> x ay*6 _x*5 _ | special=aa
    # a cut inside aaa that takes the second aa for the special token
overlap_repeated: qabcq_qabcq_qabcq_qabcq_qabcq_qabcq_ -> q cq*6 _q*5 _ | special=ab,bc  # a cut at bc where ab matched
first_of_two_invalid: ok<|e|>ok<|e|>ok<|e|>ok<|e|>ok<|e|>\xff<|e|>ok<|e|>ok<|e|>ok<|e|>ok<|e|>ok\xfe -> | special=<|e|>
    invalid_at=35
    # the offset is that of the first bad byte in the file, in whatever order its parts are read
""",
        counting,
    ),
    Case(
        "F14",
        CounterCall(b"a" * 600, ()),
        {b"a" * 600: 1},
        "one word of 600 bytes, however many share the file",
    ),
    Case(
        "special_across_4096",
        CounterCall(b"a" * 4090 + b"<|endoftext|>b", ("<|endoftext|>",)),
        {b"a" * 4090: 1, b"b": 1},
        "a special token that lies across the end of a 4,096-byte window",
    ),
)
