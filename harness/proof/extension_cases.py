"""Worked examples for trainers that go on from inherited merges, or are kept from some pairs by a veto.

Like those in cases.py: worked out by hand from the definition (variants/extending.py), each for a mistake that is
easily made, and the reason is part of the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.proof.cases import merges_from
from variants.contract import GREATEST_BYTES, Merge, TieBreak


@dataclass(frozen=True)
class ExtensionCase:
    """Pieces with their weights, what is inherited, and all merges that training past the last one must give.

    `merges` begin with those inherited that are not dropped. `veto` is a name, as variants/vetoes.py reads it.
    """

    name: str
    words: Mapping[bytes, int]
    inherited: tuple[Merge, ...]
    merges: tuple[Merge, ...]
    why: str
    inheriting: str = "kept"
    veto: str = "none"
    tie_break: TieBreak = GREATEST_BYTES
    min_count: int = 1

    @property
    def num_merges(self) -> int:
        return max(len(self.merges), len(self.inherited)) + 20


def case(name: str, words: Mapping[bytes, int], merges: tuple[bytes, bytes], why: str, **how: object) -> ExtensionCase:
    """A case whose merges are written as in cases.py: those inherited, and all that come out."""
    inherited, learned = map(merges_from, merges)
    return ExtensionCase(name, words, inherited, learned, why, **how)  # type: ignore[arg-type]


EXTENSION_CASES: tuple[ExtensionCase, ...] = (
    case("kept_first", {b"xy": 1, b"ab": 9}, (b"x+y", b"x+y, a+b"), "what is inherited stands first, however rare"),
    case("kept_never_met", {b"ab": 2}, (b"q+r", b"q+r, a+b"), "kept: a merge that was never met stays"),
    case("met_never_met", {b"ab": 2}, (b"q+r", b"a+b"), "met: a merge that was never met is dropped", inheriting="met"),
    case(
        "met_used_up",
        {b"abc": 2},
        (b"b+c, a+b", b"b+c, a+b, a+bc"),
        "met: (a, b) stood there at the beginning and is used up by its turn: its token stays, and stands nowhere",
        inheriting="met",
    ),
    case(
        "met_after_another",
        {b"abc": 2, b"ab": 1},
        (b"a+b, ab+c", b"a+b, ab+c"),
        "met: (ab, c) first stands there after (a, b) was made",
        inheriting="met",
    ),
    case(
        "met_drops_with_its_token",
        {b"xabc": 1},
        (b"x+y, xy+a, a+b", b"a+b, x+ab, xab+c"),
        "met: x+y is dropped, so xy is no token, and xy+a is dropped as well; a+b is not",
        inheriting="met",
    ),
    case(
        "met_wrong_order",
        {b"abc": 2, b"de": 3},
        (b"ab+c, a+b", b"a+b, d+e, ab+c"),
        "met: at the turn of ab+c there is no token ab yet, so it is dropped, and learned anew in its place",
        inheriting="met",
    ),
    case(
        "met_repeated",
        {b"abc": 2},
        (b"a+b, a+b", b"a+b, ab+c"),
        "met: being merged makes a pair unmet, so the same merge a second time is dropped",
        inheriting="met",
    ),
    case(
        "in_the_order_of_the_list",
        {b"abc": 5, b"ab": 9},
        (b"b+c, a+b", b"b+c, a+b, a+bc"),
        "the inherited merges are made in their order, not the most frequent first",
    ),
    case("kept_run", {b"aaa": 1}, (b"a+a", b"a+a, aa+a"), "an inherited merge is made from the left"),
    case(
        "kept_long_run",
        {b"aaaaaaa": 2, b"bc": 3},
        (b"a+a", b"a+a, aa+aa, b+c, aaaa+aa, aaaaaa+a"),
        "seven a are aa aa aa a: (aa, aa) stands there twice, overlaps counted, and has 4",
    ),
    case(
        "neighbours_of_inherited",
        {b"xababy": 2, b"xa": 3},
        (b"a+b", b"a+b, x+a, x+ab, xab+ab, xabab+y"),
        "what the inherited merge took away counts no more: (x, a) has 3 and not 5, (b, a) none",
    ),
    case(
        "spelled_once",
        {b"abcd": 2, b"abc": 1},
        (b"b+c, a+b, ab+c", b"b+c, a+b, ab+c, bc+d, a+bcd"),
        "(a, bc) would spell the inherited token abc anew, so it is refused; its halves merge with others",
    ),
    case(
        "ids_in_the_order_of_the_list",
        {b"abf": 1, b"cde": 1},
        (b"c+d, a+b", b"c+d, a+b, cd+e, ab+f"),
        "inherited tokens are numbered in the order of the list, so cd has the smaller id",
        tie_break=TieBreak.HUGGINGFACE,
    ),
    case(
        "dropped_ones_have_no_id",
        {b"abf": 1, b"cde": 1, b"ghi": 1},
        (b"a+q, g+h, c+d, a+b", b"g+h, c+d, a+b, gh+i, cd+e, ab+f"),
        "a dropped merge takes no number, and the others keep their order",
        inheriting="met",
        tie_break=TieBreak.HUGGINGFACE,
    ),
    case(
        "veto_colon",
        {b"a: b": 5},
        (b"", b"a+:,  +b"),
        "no token holds a colon and a blank: neither (:, blank) nor (a:, blank b) may be merged",
        veto="superbpe",
    ),
    case(
        "veto_again",
        {b"xy: xy": 3, b": ": 5},
        (b"", b"x+y, xy+:,  +xy"),
        "the refused pair stands beside both places of x+y: looked at again, it is refused again",
        veto="superbpe",
    ),
    case(
        "veto_spares_inherited",
        {b"a: b": 2},
        (b":+ , a+: ", b":+ , a+: "),
        "a veto is for new merges: what is inherited is made, but (a:, b) would hold a colon and a blank",
        veto="superbpe",
    ),
    case(
        "veto_words",
        {b"a b c d e": 1},
        (b" +b,  +c,  +d,  +e", b" +b,  +c,  +d,  +e, a+ b, a b+ c, a b c+ d"),
        "four words are a token, five are none",
        veto="superbpe",
    ),
    case(
        "veto_newline_parts_no_words",
        {b"a\nb\tc": 1},
        (b"", b"b+\t, b\t+c, a+\n, a\n+b\tc"),
        "only the blank parts words: these are one",
        veto="superbpe",
    ),
    case(
        "veto_bytes",
        {b"aaaa": 1, b"abc": 1},
        (b"", b"a+a, b+c, a+bc"),
        "three bytes are a token, (aa, aa) would have four",
        veto="bytes:3",
    ),
    case(
        "veto_characters",
        {"éaé".encode(): 2},
        (b"", b"\xc3+\xa9, \xc3\xa9+a"),
        "a character is counted where it begins: éa are two, éaé would be three",
        veto="characters:2",
    ),
    case(
        "veto_and_min_count",
        {b": ": 9, b"ab": 4, b"cd": 3},
        (b"", b"a+b"),
        "a refused pair neither ends the training nor takes up a place",
        veto="superbpe",
        min_count=4,
    ),
    case(
        "W1",
        {" 🤗".encode(): 10, " \U0001d7d1".encode(): 9},
        (
            b"",
            b"\xf0+\x9f, \xf0\x9f+\xa4, \xf0\x9f\xa4+\x97,  +\xf0\x9f\xa4\x97, \xf0+\x9d, \xf0\x9d+\x9f, "
            b"\xf0\x9d\x9f+\x91,  +\xf0\x9d\x9f\x91",
        ),
        "the most frequent pair is a blank and the first byte of a character, which may not be merged",
        veto="whole_characters",
    ),
    case(
        "W2",
        {"é\n".encode(): 3, "ĩ\n".encode(): 3, "ũ\n".encode(): 3},
        (b"", b"\xc5+\xa9, \xc5\xa9+\n, \xc4+\xa9, \xc4\xa9+\n, \xc3+\xa9, \xc3\xa9+\n"),
        "the last byte of several characters does not merge with what follows it",
        veto="whole_characters",
    ),
    case(
        "W3",
        {"中".encode(): 2, "席".encode(): 3, "渭".encode(): 4},
        (b"", b"\xe6+\xb8, \xe6\xb8+\xad, \xe5+\xb8, \xe5\xb8+\xad, \xe4+\xb8, \xe4\xb8+\xad"),
        "a character is built from its first byte on: (B8, AD) counts 9 and is refused",
        veto="whole_characters",
    ),
    case(
        "W4",
        {"aé".encode(): 5, "bé".encode(): 4},
        (b"", b"\xc3+\xa9, a+\xc3\xa9, b+\xc3\xa9"),
        "what plain training does here anyway",
        veto="whole_characters",
    ),
    case(
        "W5",
        {b"\x80\x80a": 3, b"bb\x80": 2},
        (b"", b"b+b"),
        "bytes that begin no character stay single",
        veto="whole_characters",
    ),
    case(
        "W6",
        {b"\xe4\xb8": 2, b"\xe4\xb8a": 3},
        (b"", b"\xe4+\xb8"),
        "the beginning of a character may be a token, and goes with nothing but its next byte",
        veto="whole_characters",
    ),
    case(
        "W7",
        {b"\xe0\x80\x80": 2, b"\xed\xa0\x80": 2, b"\xed\x9f\xbf": 1},
        (b"", b"\xed+\x9f, \xed\x9f+\xbf"),
        "overlong forms and surrogates are not UTF-8, so nothing begins with E0 80 or ED A0",
        veto="whole_characters",
    ),
    case(
        "W8",
        {"\u2019".encode(): 3, "a\u2019".encode(): 2},
        (b"\x80+\x99", b"\x80+\x99, \xe2+\x80\x99, a+\xe2\x80\x99"),
        "the rule looks at the joined bytes: an inherited end of a character may complete it",
        veto="whole_characters",
    ),
    case(
        "whole_and_short",
        {"éé".encode(): 3, b"abcde": 2},
        (b"", b"\xc3+\xa9, \xc3\xa9+\xc3\xa9, d+e, c+de, b+cde"),
        "vetoes combine: what either refuses is refused",
        veto="[whole_characters,bytes:4]",
    ),
    case(
        "S1",
        {b"ab": 9, b"abc": 3},
        (b"b+c", b"b+c, a+b, a+bc"),
        "a seed stands before what is more frequent",
        veto="none",
    ),
    case(
        "S2",
        {b"abc": 5},
        (b"b+c, a+b", b"b+c, a+b, a+bc"),
        "of overlapping seeds the earlier merge wins: ab is not found in abc",
        veto="none",
    ),
    case(
        "S3",
        {b"movzx": 2, b"mov": 9, b"remove": 1},
        (b"o+v, m+ov", b"o+v, m+ov, z+x, r+e"),
        "a protected seed is merged no further, what stands beside it is",
        veto="protected:6d6f76",
    ),
    case("S4", {b"12": 9, b"123": 3, b"a1": 2}, (b"", b""), "protected bytes stay single", veto="protected:31.32.33"),
    case(
        "S5",
        {b"movzx": 1},
        (b"z+x, o+v, m+ov, mov+zx", b"z+x, o+v, m+ov, mov+zx"),
        "an inherited merge may join protected tokens",
        veto="protected:6d6f76.7a78",
    ),
    case(
        "S6",
        {b"xabx": 3, b"abx": 2},
        (b"a+b, ab+x", b"a+b, ab+x, x+abx"),
        "the same: the seed abx is made of the protected ab",
        veto="protected:6162",
    ),
    case(
        "S7",
        {b"thenthe": 2, b"the": 5},
        (b"", b"t+h, th+e"),
        "a token that is learned later is protected from then on",
        veto="protected:746865",
    ),
)
