"""The checks of a trainer that goes on from inherited merges: worked examples, and random lists on random pieces.

They are made if a trainer takes `inherited` by name. What is right is what the definition does (variants/extending.py);
lists are learned ones, some with merges left out or out of order, and vetoes are those there are.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence

from harness.common import registry
from harness.proof.cases import Case, read_cases
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    Subject,
    accepts,
    failure_of,
    to_exhaustion,
    words_text,
)
from harness.proof.counterexamples import TrainerCall
from harness.proof.trainer_checks import check_worked_example
from variants.contract import Merge, TieBreak, Unavailable, WordCounts

ALPHABET = b"ab :\xc3\xa9\n"
VETOES = (
    *("none", "superbpe", "bytes:3", "characters:2", "whole_characters", "[whole_characters,bytes:4]"),
    *("protected:61.c3a9", "none"),
)
SEEDS = 60


def extension_checks(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """All checks of an extender, the most telling first; random lists alternate between the tie-breaks."""
    cases = [case for case in EXTENSION_CASES if case.call.tie_break in tie_breaks]
    bodies = (check_refuses_to_inherit, check_extends_at_any_width)
    seeds = [(tie_breaks[seed % len(tie_breaks)], seed) for seed in range(SEEDS)]
    random_group, random_name = "extending random words", "check_extends_as_defined"
    return [
        *(
            Check.of("extending", f"check_extends[{case.name}]", check_worked_example, case, tie_breaks)
            for case in cases
        ),
        *(Check.of("extending", body.__name__, body, tie_breaks[0]) for body in bodies),
        *(Check.of(random_group, f"{random_name}[{seed}]", check_extends_as_defined, tie, seed) for tie, seed in seeds),
    ]


def check_extends_as_defined(tie_break: TieBreak, seed: int, train: Subject) -> None:
    random_extension(tie_break, seed).expect_definition(train)


def random_extension(tie_break: TieBreak, seed: int) -> TrainerCall:
    """Pieces, some of them long runs, and a list that the definition can inherit."""
    chance = random.Random(seed)
    letters = chance.sample(list(ALPHABET), chance.randint(2, len(ALPHABET)))
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(1, 7)):
        run = chance.randint(1, 40) if chance.random() < 0.2 else 0
        words[bytes(chance.choices(letters, k=chance.randint(2, 18)) + letters[:1] * run)] = chance.randint(1, 5)
    others = {bytes(chance.choices(letters, k=chance.randint(2, 9))): chance.randint(1, 3) for _ in range(4)}
    learned_from = chance.choice((words, others, {**others, **words}))
    inherited = registry.definition()(WordCounts.from_items(learned_from.items()), chance.randint(0, 12))
    inheriting = chance.choice(("kept", "met"))
    if inheriting == "met":
        inherited = [merge for merge in inherited if chance.random() < 0.9]
        if chance.random() < 0.4:
            inherited = chance.sample(inherited, len(inherited)) + inherited[:1]
    num_merges = len(inherited) + chance.choice((0, 3, to_exhaustion(words)))
    min_count = chance.choice((1, 1, 2))
    return TrainerCall(words, num_merges, tie_break, min_count, tuple(inherited), inheriting, chance.choice(VETOES))


UNINHERITABLE: tuple[tuple[list[Merge], int, str], ...] = (
    ([(b"ab", b"c"), (b"a", b"b")], 9, "merges out of their order cannot all be kept"),
    ([(b"a", b"b"), (b"a", b"b")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c")], 1, "num_merges counts the inherited merges"),
)


def check_refuses_to_inherit(tie_break: TieBreak, train: Subject) -> None:
    words = {b"abcd": 2}
    for inherited, num_merges, why in UNINHERITABLE:
        call = f"called for {num_merges} merges, inheriting {inherited}\n{words_text(words)}"
        try:
            train(WordCounts.from_items(words.items()), num_merges, tie_break=tie_break, inherited=inherited)
        except (ValueError, Unavailable):
            continue
        except Exception as error:
            raise failure_of(error, call) from error
        raise CheckFailed(f"raised no ValueError: {why}\n{call}")


def check_extends_at_any_width(tie_break: TieBreak, train: Subject) -> None:
    if not accepts(train, "threads"):
        raise CheckSkipped("the trainer takes no threads")
    for seed in range(5):
        call = random_extension(tie_break, seed)
        for threads in WIDTHS:
            call.expect_definition(functools.partial(train, threads=threads), f"; called with threads={threads}")


# Worked out by hand from the definition. The merges begin with those inherited that are not dropped.
EXTENSION_CASES: tuple[Case, ...] = read_cases(r"""
kept_first: xy ab*9 -> x+y a+b | inherited=x+y  # inherited merges come first, however rare
kept_never_met: ab*2 -> q+r a+b | inherited=q+r  # kept: a merge that was never met stays
met_never_met: ab*2 -> a+b | inherited=q+r inheriting=met  # met: a merge that was never met is dropped
met_used_up: abc*2 -> b+c a+b a+bc | inherited=b+c,a+b inheriting=met
    # met: (a, b) occurs at the beginning and is used up before its turn: its token stays and occurs nowhere
met_after_another: abc*2 ab -> a+b ab+c | inherited=a+b,ab+c inheriting=met
    # met: (ab, c) first occurs after (a, b) was made
met_drops_with_its_token: xabc -> a+b x+ab xab+c | inherited=x+y,xy+a,a+b inheriting=met
    # met: x+y is dropped, so xy is no token, and xy+a is dropped as well; a+b is not
met_wrong_order: abc*2 de*3 -> a+b d+e ab+c | inherited=ab+c,a+b inheriting=met
    # met: at the turn of ab+c there is no token ab yet, so it is dropped, and learned again later
met_repeated: abc*2 -> a+b ab+c | inherited=a+b,a+b inheriting=met
    # met: being merged makes a pair unmet, so the same merge a second time is dropped
in_the_order_of_the_list: abc*5 ab*9 -> b+c a+b a+bc | inherited=b+c,a+b
    # the inherited merges are made in their order, not the most frequent first
kept_run: aaa -> a+a aa+a | inherited=a+a  # an inherited merge is made from the left
kept_long_run: aaaaaaa*2 bc*3 -> a+a aa+aa b+c aaaa+aa aaaaaa+a | inherited=a+a
    # seven a are aa aa aa a: (aa, aa) occurs twice, overlaps counted, and has 4
neighbours_of_inherited: xababy*2 xa*3 -> a+b x+a x+ab xab+ab xabab+y | inherited=a+b
    # pairs that the inherited merge replaced no longer count: (x, a) has 3 and not 5, (b, a) none
spelled_once: abcd*2 abc -> b+c a+b ab+c bc+d a+bcd | inherited=b+c,a+b,ab+c
    # (a, bc) would spell the inherited token abc again, so it is refused; its halves merge with others
ids_in_the_order_of_the_list: abf cde -> c+d a+b cd+e ab+f | tie_break=huggingface inherited=c+d,a+b
    # inherited tokens are numbered in the order of the list, so cd has the smaller id
dropped_ones_have_no_id: abf cde ghi -> g+h c+d a+b gh+i cd+e ab+f | tie_break=huggingface inherited=a+q,g+h,c+d,a+b
    inheriting=met
    # a dropped merge takes no number, and the others keep their order
veto_colon: a:_b*5 -> a+: _+b | veto=superbpe
    # no token holds a colon and a blank: neither (:, blank) nor (a:, blank b) may be merged
veto_again: xy:_xy*3 :_*5 -> x+y xy+: _+xy | veto=superbpe
    # the refused pair is beside both places of x+y: it is refused each time
veto_spares_inherited: a:_b*2 -> :+_ a+:_ | inherited=:+_,a+:_ veto=superbpe
    # a veto is for new merges: inherited merges are made, but (a:, b) would hold a colon and a blank
veto_words: a_b_c_d_e -> _+b _+c _+d _+e a+_b a_b+_c a_b_c+_d | inherited=_+b,_+c,_+d,_+e veto=superbpe
    # four words may be a token, five may not
veto_newline_separates_no_words: a\nb\tc -> b+\t b\t+c a+\n a\n+b\tc | veto=superbpe
    # only a blank separates words: these are one
veto_bytes: aaaa abc -> a+a b+c a+bc | veto=bytes:3  # three bytes may be a token, (aa, aa) would have four
veto_characters: éaé*2 -> \xc3+\xa9 é+a | veto=characters:2
    # a character is counted where it begins: éa are two, éaé would be three
veto_and_min_count: :_*9 ab*4 cd*3 -> a+b | min_count=4 veto=superbpe
    # a refused pair neither ends the training nor takes up a place
W1: _\xf0\x9f\xa4\x97*10 _\xf0\x9d\x9f\x91*9 -> \xf0+\x9f \xf0\x9f+\xa4 \xf0\x9f\xa4+\x97 _+\xf0\x9f\xa4\x97
    \xf0+\x9d \xf0\x9d+\x9f \xf0\x9d\x9f+\x91 _+\xf0\x9d\x9f\x91 | veto=whole_characters
    # the most frequent pair is a blank and the first byte of a character, which may not be merged
W2: \xc3\xa9\n*3 \xc4\xa9\n*3 \xc5\xa9\n*3 -> \xc5+\xa9 ũ+\n \xc4+\xa9 ĩ+\n \xc3+\xa9 é+\n | veto=whole_characters
    # the last byte of several characters does not merge with what follows it
W3: 中*2 席*3 渭*4 -> \xe6+\xb8 \xe6\xb8+\xad \xe5+\xb8 \xe5\xb8+\xad \xe4+\xb8 \xe4\xb8+\xad | veto=whole_characters
    # a character is built from its first byte on: (B8, AD) counts 9 and is refused
W4: aé*5 bé*4 -> \xc3+\xa9 a+é b+é | veto=whole_characters  # the veto changes nothing here
W5: \x80\x80a*3 bb\x80*2 -> b+b | veto=whole_characters  # bytes that begin no character stay single
W6: \xe4\xb8*2 \xe4\xb8a*3 -> \xe4+\xb8 | veto=whole_characters
    # the beginning of a character may be a token, and goes with nothing but its next byte
W7: \xe0\x80\x80*2 \xed\xa0\x80*2 \xed\x9f\xbf -> \xed+\x9f \xed\x9f+\xbf | veto=whole_characters
    # overlong forms and surrogates are not UTF-8, so nothing begins with E0 80 or ED A0
W8: \xe2\x80\x99*3 a\xe2\x80\x99*2 -> \x80+\x99 \xe2+\x80\x99 a+\xe2\x80\x99 | inherited=\x80+\x99
    veto=whole_characters
    # the rule looks at the joined bytes: an inherited end of a character may complete it
whole_and_short: éé*3 abcde*2 -> \xc3+\xa9 é+é d+e c+de b+cde | veto=[whole_characters,bytes:4]
    # vetoes combine: a pair that either refuses is refused
S1: ab*9 abc*3 -> b+c a+b a+bc | inherited=b+c  # a seed comes before more frequent pairs
S2: abc*5 -> b+c a+b a+bc | inherited=b+c,a+b  # of overlapping seeds the earlier merge wins: ab is not found in abc
S3: movzx*2 mov*9 remove -> o+v m+ov z+x r+e | inherited=o+v,m+ov veto=protected:6d6f76
    # a protected seed is merged no further, its neighbours are
S4: 12*9 123*3 a1*2 -> | veto=protected:31.32.33  # protected bytes stay single
S5: movzx -> z+x o+v m+ov mov+zx | inherited=z+x,o+v,m+ov,mov+zx veto=protected:6d6f76.7a78
    # an inherited merge may join protected tokens
S6: xabx*3 abx*2 -> a+b ab+x x+abx | inherited=a+b,ab+x veto=protected:6162
    # the same: the seed abx is made of the protected ab
S7: thenthe*2 the*5 -> t+h th+e | veto=protected:746865  # a token that is learned later is protected from then on
""")
