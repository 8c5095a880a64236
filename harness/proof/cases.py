"""Worked examples for trainers: word counts, the merges they must give, and why each is here.

Every case was worked out by hand from the definition and shows a mistake that somebody made or nearly made. The
reason is part of the case, because it is printed when the case fails. To add one: add an entry, and say what it
catches. The examples for word counters are in file_cases.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from variants.contract import GREATEST_BYTES, Merge, TieBreak


@dataclass(frozen=True)
class MergeCase:
    """Word counts and the merges that training on them must give, in order.

    A complete case is trained past its last merge, so that a trainer which does not stop is caught; of the others only
    the merges shown are asked for.
    """

    name: str
    words: Mapping[bytes, int]
    merges: tuple[Merge, ...]
    why: str
    tie_break: TieBreak = GREATEST_BYTES
    min_count: int = 1
    complete: bool = True

    @property
    def num_merges(self) -> int:
        return len(self.merges) + (20 if self.complete else 0)


def merges_from(shorthand: bytes) -> tuple[Merge, ...]:
    """Read merges as they are written in this file.

    >>> merges_from(b"a+b, ab+c")
    ((b'a', b'b'), (b'ab', b'c'))
    """
    return tuple((left, right) for left, right in (merge.split(b"+") for merge in shorthand.split(b", ") if merge))


def merges_of_run(byte: bytes, length: int) -> tuple[Merge, ...]:
    """The merges of one byte repeated: halve the run while two of the longest token are left, then fold in the rest.

    Left to right the odd one out stays at the end, so the tokens always stand in order of length, and of the pairs
    that occur once the one with the longest tokens is the greatest.

    >>> merges_of_run(b"a", 5)
    ((b'a', b'a'), (b'aa', b'aa'), (b'aaaa', b'a'))
    """
    merges, token, rest, number = [], byte, [], length
    while number > 1:
        merges.append((token, token))
        if number % 2:
            rest.append(token)
        token, number = token + token, number // 2
    for shorter in reversed(rest):
        merges.append((token, shorter))
        token += shorter
    return tuple(merges)


def distinct_pairs(weights: list[int]) -> dict[bytes, int]:
    """Two-byte words that share no pair, with these weights: every merge leaves exactly one pair fewer."""
    return {bytes((65 + place, 255 - place)): weight for place, weight in enumerate(weights)}


def merges_of_distinct_pairs(weights: list[int]) -> tuple[Merge, ...]:
    """The merges of `distinct_pairs(weights)`, where no two weights are equal: the heaviest word first."""
    words = distinct_pairs(weights)
    return tuple((word[:1], word[1:]) for word in sorted(words, key=lambda word: -words[word]))


MERGE_CASES: tuple[MergeCase, ...] = (
    MergeCase(
        "C01",
        {b"aaa": 2, b"xy": 3},
        merges_from(b"a+a, x+y, aa+a"),
        "aaa holds (a, a) twice: overlapping occurrences count, so (a, a) has 4 and goes before (x, y)",
    ),
    MergeCase(
        "C02",
        {b"aaaa": 3, b"bc": 4},
        merges_from(b"a+a, b+c, aa+aa"),
        "two occurrences side by side leave (aa, aa) only; old neighbours give pairs with a token that is gone",
    ),
    MergeCase("C03", {b"aaaaa": 1}, merges_from(b"a+a, aa+aa, aaaa+a"), "a run is replaced from the left"),
    MergeCase(
        "C04",
        {b"baaab": 1},
        merges_from(b"a+a, b+aa, baa+a, baaa+b"),
        "a run is replaced from the left, and a neighbour on each side shows which end the odd one is at",
    ),
    MergeCase(
        "C05", {b"abab": 1}, merges_from(b"a+b, ab+ab"), "the right neighbour is itself replaced by the same merge"
    ),
    MergeCase(
        "C06",
        {b"ababab": 1},
        merges_from(b"a+b, ab+ab, abab+ab"),
        "three occurrences in a row: the middle one loses both of its old neighbours",
    ),
    MergeCase(
        "C07",
        {b"abcststefstbbef": 1},
        merges_from(
            b"s+t, e+f, st+st, stst+ef, ststef+st, ststefst+b, ststefstb+b, ststefstbb+ef, c+ststefstbbef, "
            b"b+cststefstbbef, a+bcststefstbbef"
        ),
        "a pair lost at one place of a word may stand at another: the word must stay in that pair's index",
    ),
    MergeCase(
        "C08",
        {b"\x00\x01\x00\x01": 1},
        merges_from(b"\x00+\x01, \x00\x01+\x00\x01"),
        "the byte NUL is token 0, which code that asks 'is there a token?' takes for none",
    ),
    MergeCase(
        "C09",
        {b"\x00!?!?": 1},
        merges_from(b"!+?, !?+!?, \x00+!?!?"),
        "a NUL at the head of a word, where the last of two occurrences gets lost if token 0 counts as false",
    ),
    MergeCase(
        "C10", {b"ab": 1}, merges_from(b"a+b"), "training stops when no pair is left, however many are requested"
    ),
    MergeCase("C11", {b"a": 5, b"b": 1}, (), "words of one byte hold no pair"),
    MergeCase("C12", {}, (), "no words, no merges, and no error"),
    MergeCase(
        "C13",
        {b"ab": 1, b"ac": 1, b"bz": 1},
        merges_from(b"b+z, a+c, a+b"),
        "of equally frequent pairs the greatest goes first, by its left token and then by its right one",
    ),
    MergeCase(
        "C14",
        {b" a": 1, b"zb": 1},
        merges_from(b"z+b,  +a"),
        "a blank is byte 32 and smaller than z; GPT-2 shows it as a letter with a dot, which is greater",
    ),
    MergeCase(
        "C15",
        {b"\xc3\xa9": 1, b"zz": 1},
        merges_from(b"\xc3+\xa9, z+z"),
        "bytes are unsigned: 0xC3 is greater than z, while a signed char holds it as a negative number",
    ),
    MergeCase(
        "C16",
        {b"usz": 1, b"usbz": 1},
        merges_from(b"u+s, us+z, us+b, usb+z"),
        "longer tokens compare by their bytes: (us, z), (us, b) and (b, z) all occur once",
    ),
    MergeCase(
        "C17",
        {b"ab": 3_000_000_000, b"cd": 5},
        merges_from(b"a+b, c+d"),
        "a weight above 2**31 - 1 is negative in a 32-bit integer",
    ),
    MergeCase(
        "C18",
        {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6},
        merges_from(b"s+t, e+st, o+w, l+ow, w+est, n+e, ne+west, w+i, wi+d, wid+est, low+e, lowe+r"),
        "the example of the CS336 handout, to its end",
    ),
    MergeCase(
        "C19",
        {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6, b"es": 2, b"st": 2},
        merges_from(b"s+t, e+st, o+w, l+ow, w+est, n+e"),
        "the example of the series' first part",
        complete=False,
    ),
    MergeCase(
        "C20",
        {b"ab": 5, b"abc": 4, b"bc": 3},
        merges_from(b"a+b, ab+c, b+c"),
        "(b, c) falls from 7 to 3 when (a, b) is merged: a heap entry that still says 7 is out of date",
    ),
    # What published code got wrong, each reduced to its smallest input.
    MergeCase("caca", {b"caca": 1}, merges_from(b"c+a, ca+ca"), "neighbours taken from the sequence before the merge"),
    MergeCase("aaaa", {b"aaaa": 1}, merges_from(b"a+a, aa+aa"), "four bytes are the least that show a phantom (aa, a)"),
    MergeCase("aaa", {b"aaa": 1}, merges_from(b"a+a, aa+a"), "the merged pair, made again with a negative count"),
    MergeCase(
        "stands_twice",
        {b"ab": 5, b"bc": 3, b"abcxbc": 1},
        merges_from(b"a+b, b+c, x+bc, c+xbc, ab+cxbc"),
        "the merge of (a, b) takes (b, c) away at one place of abcxbc and leaves it at another",
    ),
    MergeCase(
        "byte_after_token",
        {b"ab": 1, b"abx": 1, b"zw": 1},
        merges_from(b"a+b, z+w, ab+x"),
        "z is greater than ab by its bytes, though its id is smaller",
    ),
    MergeCase(
        "bbc", {b"bbc": 1}, merges_from(b"b+c, b+bc"), "(b, b) is gone once (b, c) is merged, and must not be used"
    ),
    MergeCase(
        "left_prefix",
        {b"bc": 2, b"bcx": 1, b"bz": 1},
        merges_from(b"b+c, bc+x, b+z"),
        "b is smaller than bc, so (bc, x) beats (b, z); joined, or inverted without an end mark, the order turns round",
    ),
    MergeCase(
        "right_prefix",
        {b"bc": 2, b"xbc": 1, b"xb": 1},
        merges_from(b"b+c, x+bc, x+b"),
        "the same among right tokens: bc is greater than its prefix b",
    ),
    MergeCase(
        "sum_above_32_bits",
        {b"ab": 2**30, b"xab": 2**30, b"yab": 2**30, b"cd": 2**31 - 1},
        merges_from(b"a+b, c+d, y+ab, x+ab"),
        "each weight fits 32 bits and their sum does not",
    ),
    MergeCase(
        "past_2_to_32", {b"ab": 2**32 + 1, b"cd": 2}, merges_from(b"a+b, c+d"), "unsigned 32 bits leave (a, b) 1"
    ),
    MergeCase(
        "past_2_to_53", {b"ab": 2**53 + 1, b"cd": 2**53}, merges_from(b"a+b, c+d"), "as floats the two are equal"
    ),
    MergeCase(
        "near_2_to_63",
        {b"ab": 2**62, b"cd": 2**62 - 1},
        merges_from(b"a+b, c+d"),
        "the largest weights the contract allows: their sum is 2**63 - 1",
    ),
    MergeCase(
        "eleven_pairs",
        distinct_pairs(list(range(1, 12))),
        merges_of_distinct_pairs(list(range(1, 12))),
        "eleven pairs in four slices: a parallel maximum that cuts even slices forgets the last ones",
    ),
    MergeCase(
        "last_pair_greatest",
        distinct_pairs(list(range(1, 56))),
        merges_of_distinct_pairs(list(range(1, 56))),
        "55 pairs, then 54, down to one, the greatest always last: every remainder of every number of slices",
    ),
    MergeCase(
        "first_pair_greatest",
        distinct_pairs(list(range(55, 0, -1))),
        merges_of_distinct_pairs(list(range(55, 0, -1))),
        "the same with the greatest always first",
    ),
    MergeCase(
        "run_of_600",
        {b"a" * 600: 1},
        merges_of_run(b"a", 600),
        "tokens of 256 bytes and more: lengths stored in one byte",
    ),
    MergeCase(
        "run_of_70000",
        {b"a" * 70_000: 1},
        merges_of_run(b"a", 70_000),
        "tokens of 65,536 bytes and more: lengths stored in two bytes",
    ),
    # The other tie-breaks: each case gives other merges under each of them.
    MergeCase(
        "smallest_first",
        {b"ab": 1, b"ac": 1, b"bz": 1},
        merges_from(b"a+b, a+c, b+z"),
        "smallest_bytes turns the definition round",
        TieBreak.SMALLEST_BYTES,
    ),
    MergeCase(
        "smallest_prefix",
        {b"bc": 2, b"bcx": 1, b"by": 1},
        merges_from(b"b+c, b+y, bc+x"),
        "a prefix is the smaller one, though bcx comes before by",
        TieBreak.SMALLEST_BYTES,
    ),
    MergeCase(
        "smallest_bytes_not_ids",
        {b"ab": 1, b"abx": 1, b"cd": 1},
        merges_from(b"a+b, ab+x, c+d"),
        "ab comes before c by its bytes, whatever its id",
        TieBreak.SMALLEST_BYTES,
    ),
    MergeCase(
        "raw_ids_not_bytes",
        {b"ab": 1, b"abx": 1, b"cd": 1},
        merges_from(b"a+b, c+d, ab+x"),
        "ab is token 256 and comes after every single byte",
        TieBreak.RAW_BYTES,
    ),
    MergeCase(
        "raw_ids_by_age",
        {b"zy": 3, b"ab": 2, b"zyq": 1, b"abq": 1},
        merges_from(b"z+y, a+b, zy+q, ab+q"),
        "zy was learned first and has the smaller id",
        TieBreak.RAW_BYTES,
    ),
    MergeCase(
        "raw_blank",
        {b" a": 1, b"zb": 1, b"\x80a": 1, b"\xc3a": 1},
        merges_from(b" +a, z+b, \x80+a, \xc3+a"),
        "bytes are their own ids: blank, z, 0x80, 0xC3",
        TieBreak.RAW_BYTES,
    ),
    MergeCase(
        "huggingface_blank",
        {b" a": 1, b"zb": 1, b"\x80a": 1, b"\xc3a": 1},
        merges_from(b"z+b, \xc3+a,  +a, \x80+a"),
        "bytes are numbered by their GPT-2 characters: those shown as themselves (z, 0xC3) before blank and 0x80",
        TieBreak.HUGGINGFACE,
    ),
    MergeCase(
        "huggingface_ids_by_age",
        {b"zy": 3, b"ab": 2, b"zyq": 1, b"abq": 1, b" c": 1},
        merges_from(b"z+y, a+b,  +c, zy+q, ab+q"),
        "learned tokens come after all bytes, a blank included, in the order they were learned",
        TieBreak.HUGGINGFACE,
    ),
    # A newborn pair may win a tie that its parent lost: several merges at once must see it.
    MergeCase(
        "N1",
        {b"zae": 6, b"za": 4, b"mn": 6},
        merges_from(b"z+a, za+e, m+n"),
        "(za, e) is born with the count of (m, n) and beats it, while (a, e) would have lost",
    ),
    MergeCase(
        "N2",
        {b"aze": 6, b"az": 4, b"mn": 6},
        merges_from(b"a+z, az+e, m+n"),
        "the same by smallest bytes: (az, e) beats (m, n), (z, e) would not",
        TieBreak.SMALLEST_BYTES,
    ),
    MergeCase(
        "N3",
        {b"ab": 20, b"xab": 6, b"xaz": 6, b"az": 4},
        merges_from(b"a+b, a+z, x+az, x+ab"),
        "(x, ab) waits with 6 until (x, az) is born with 6 and goes before it",
    ),
    MergeCase(
        "N4",
        {b"ade": 6, b"ad": 4, b"bc": 6},
        merges_from(b"a+d, ad+e, b+c"),
        "(ad, e) beats (b, c) by smallest bytes, though (d, e) would not",
        TieBreak.SMALLEST_BYTES,
    ),
    MergeCase(
        "N5",
        {b"ade": 6, b"ad": 4, b"bc": 6},
        merges_from(b"a+d, b+c, ad+e"),
        "by ids a new token is the greatest, so what is born never wins a tie",
        TieBreak.HUGGINGFACE,
    ),
    # min_count: the first best pair whose count is below it ends the training.
    MergeCase(
        "min_count_2",
        {b"ab": 5, b"abc": 4, b"bc": 3, b"xy": 1},
        merges_from(b"a+b, ab+c, b+c"),
        "(x, y) occurs once and is not learned",
        min_count=2,
    ),
    MergeCase(
        "min_count_is_reached",
        {b"ab": 4, b"cd": 3},
        merges_from(b"a+b"),
        "a count of exactly min_count is enough, one less is not",
        min_count=4,
    ),
    MergeCase(
        "min_count_after_stale",
        {b"ab": 5, b"abc": 4, b"bc": 3},
        merges_from(b"a+b, ab+c"),
        "(b, c) had 7 at first and has 3 when its turn comes: the true count decides",
        min_count=4,
    ),
    MergeCase("min_count_none", {b"ab": 4}, (), "nothing reaches min_count, nothing is learned", min_count=5),
)
