"""What trainers are called with: worked examples with the merges they must give and why each is here,
and random and large words.

Every example was worked out by hand from the definition and shows a mistake that somebody made or
nearly made. The reason is part of it, because it is printed when the example fails. To add one, add
it to a table below. The examples for word counters are in counter_checks.py.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harness.proof.checks import TrainerCall, Words, to_exhaustion
from variants.contract import Merge, TieBreak

OPTIONS: dict[str, Callable[[str], Any]] = {
    "num_merges": int,
    "tie_break": TieBreak,
    "min_count": int,
    "inherited": lambda text: merges_from(text, ","),
}


class Case(NamedTuple):
    """A call of a trainer or a counter, the result it must have, and why.

    The result of a counter is the words, or the offset of the invalid byte that it must name.
    """

    name: str
    call: Any
    want: Any
    why: str


def token_from(text: str) -> bytes:
    r"""Read bytes as the tables write them: `_` is a space, escapes are Python's, other characters
    are UTF-8.

    >>> token_from(r"a_\xffé")
    b'a \xff\xc3\xa9'
    """
    return text.replace("_", " ").encode().decode("unicode_escape").encode("latin-1")


def merges_from(text: str, separator: str | None = None) -> tuple[Merge, ...]:
    """Read merges as the tables write them.

    >>> merges_from("a+b ab+c")
    ((b'a', b'b'), (b'ab', b'c'))
    """
    pairs = (merge.partition("+") for merge in text.split(separator) if merge)
    return tuple((token_from(left), token_from(right)) for left, _, right in pairs)


def words_from(text: str) -> dict[bytes, int]:
    """Read words, each with its count if it is not 1.

    >>> words_from("low*5 er")
    {b'low': 5, b'er': 1}
    """
    items = (word.partition("*") for word in text.split())
    return {token_from(word): int(count or 1) for word, _, count in items}


def read_cases(table: str, read: Callable[..., tuple[Any, Any]]) -> tuple[Case, ...]:
    """Read a table of cases: `NAME: INPUT -> RESULT | OPTION=VALUE  # WHY`; lines that continue one
    are indented.

    `read` makes the call and the result of the texts.

    >>> read_cases("one: ab*2 -> a+b | min_count=2  # reached", lambda *texts, **options: (texts, options))
    (Case(name='one', call=('ab*2', 'a+b'), want={'min_count': '2'}, why='reached'),)
    """
    cases = []
    for line in re.sub(r"\n +", " ", table).splitlines():
        if line and not line.startswith("#"):
            row, _, why = line.partition(" # ")
            name, _, example = row.partition(": ")
            words, _, rest = example.partition("->")
            result, _, options = f"{rest} ".partition(" | ")
            values = dict(option.split("=", 1) for option in options.split())
            cases.append(Case(name, *read(words.strip(), result.strip(), **values), why))
    return tuple(cases)


def training(words: str, result: str, **options: str) -> tuple[TrainerCall, list[Merge]]:
    """A call that goes on past its last merge unless it has a num_merges, so a trainer that does
    not stop is caught.
    """
    merges = list(merges_from(result))
    values = {name: OPTIONS.get(name, str)(text) for name, text in options.items()}
    return TrainerCall(words_from(words), **{"num_merges": len(merges) + 20, **values}), merges


DISTINCT_PAIRS = {bytes((65 + index, 255 - index)): index + 1 for index in range(55)}
"""Words that share no pair: every merge leaves exactly one pair fewer."""
MERGE_CASES = (
    *read_cases(
        r"""
C01: aaa*2 xy*3 -> a+a x+y aa+a
    # aaa holds (a, a) twice: overlapping occurrences count, so (a, a) has 4 and goes before (x, y)
C02: aaaa*3 bc*4 -> a+a b+c aa+aa
    # two occurrences side by side leave (aa, aa) only; old neighbours give pairs with a token that is gone
C03: aaaaa -> a+a aa+aa aaaa+a  # a run is replaced from the left
C04: baaab -> a+a b+aa baa+a baaa+b
    # a run is replaced from the left, and a neighbour on each side shows which end the odd one is at
C05: abab -> a+b ab+ab  # the right neighbour is itself replaced by the same merge
C06: ababab -> a+b ab+ab abab+ab  # three occurrences in a row: the middle one loses both of its old neighbours
C07: abcststefstbbef -> s+t e+f st+st stst+ef ststef+st ststefst+b ststefstb+b ststefstbb+ef c+ststefstbbef
    b+cststefstbbef a+bcststefstbbef
    # a pair lost at one place of a word may occur at another: the word must stay in that pair's index
C08: \x00\x01\x00\x01 -> \x00+\x01 \x00\x01+\x00\x01
    # the byte NUL is token 0, which code that asks 'is there a token?' takes for none
C09: \x00!?!? -> !+? !?+!? \x00+!?!?
    # a NUL at the start of a word, where the last of two occurrences gets lost if token 0 counts as false
C10: ab -> a+b  # training stops when no pair is left, however many are requested
C11: a*5 b ->  # words of one byte hold no pair
C12:  ->  # no words, no merges, and no error
C13: ab ac bz -> b+z a+c a+b
    # of equally frequent pairs the greatest goes first, by its left token and then by its right one
C14: _a zb -> z+b _+a
    # a space is byte 32 and smaller than z; GPT-2 shows it as a letter with a dot, which is greater
C15: é zz -> \xc3+\xa9 z+z
    # bytes are unsigned: 0xC3 is greater than z, while a signed char holds it as a negative number
C16: usz usbz -> u+s us+z us+b usb+z
    # longer tokens compare by their bytes: (us, z), (us, b) and (b, z) all occur once
C17: ab*3000000000 cd*5 -> a+b c+d  # a weight above 2**31 - 1 is negative in a 32-bit integer
C18: low*5 lower*2 widest*3 newest*6 -> s+t e+st o+w l+ow w+est n+e ne+west w+i wi+d wid+est low+e lowe+r
    # the example of the CS336 handout, to its end
C19: low*5 lower*2 widest*3 newest*6 es*2 st*2 -> s+t e+st o+w l+ow w+est n+e | num_merges=6
    # the example of the series' first part
C20: ab*5 abc*4 bc*3 -> a+b ab+c b+c
    # (b, c) falls from 7 to 3 when (a, b) is merged: a heap entry that still has 7 is stale

# What published code got wrong, each reduced to its smallest input.

caca: caca -> c+a ca+ca  # neighbours taken from the sequence before the merge
aaaa: aaaa -> a+a aa+aa  # four bytes are the fewest that show a phantom (aa, a)
aaa: aaa -> a+a aa+a  # the merged pair, made again with a negative count
occurs_twice: ab*5 bc*3 abcxbc -> a+b b+c x+bc c+xbc ab+cxbc
    # the merge of (a, b) takes (b, c) away at one place of abcxbc and leaves it at another
byte_after_token: ab abx zw -> a+b z+w ab+x  # z is greater than ab by its bytes, though its id is smaller
bbc: bbc -> b+c b+bc  # (b, b) is gone once (b, c) is merged, and must not be used
left_prefix: bc*2 bcx bz -> b+c bc+x b+z
    # b is smaller than bc, so (bc, x) beats (b, z); joined, or inverted without an end mark, the order is inverted
right_prefix: bc*2 xbc xb -> b+c x+bc x+b  # the same among right tokens: bc is greater than its prefix b

# The other tie-breaks: each case gives other merges under each of them.

smallest_first: ab ac bz -> a+b a+c b+z | tie_break=smallest_bytes  # smallest_bytes inverts the definition
smallest_prefix: bc*2 bcx by -> b+c b+y bc+x | tie_break=smallest_bytes
    # a prefix is the smaller one, though bcx comes before by
smallest_bytes_not_ids: ab abx cd -> a+b ab+x c+d | tie_break=smallest_bytes
    # ab comes before c by its bytes, whatever its id
raw_ids_not_bytes: ab abx cd -> a+b c+d ab+x | tie_break=raw_bytes
    # ab is token 256 and comes after every single byte
raw_ids_by_age: zy*3 ab*2 zyq abq -> z+y a+b zy+q ab+q | tie_break=raw_bytes
    # zy was learned first and has the smaller id
raw_blank: _a zb \x80a \xc3a -> _+a z+b \x80+a \xc3+a | tie_break=raw_bytes
    # bytes are their own ids: space, z, 0x80, 0xC3
huggingface_blank: _a zb \x80a \xc3a -> z+b \xc3+a _+a \x80+a | tie_break=huggingface
    # bytes are numbered by their GPT-2 characters: those shown as themselves (z, 0xC3) before space and 0x80
huggingface_ids_by_age: zy*3 ab*2 zyq abq _c -> z+y a+b _+c zy+q ab+q | tie_break=huggingface
    # learned tokens come after all bytes, a space included, in the order they were learned

# Counts beyond 32 bits, beyond a float, and the largest allowed.

sum_above_32_bits: ab*1073741824 xab*1073741824 yab*1073741824 cd*2147483647 -> a+b c+d y+ab x+ab
    # each weight fits 32 bits and their sum does not
past_2_to_32: ab*4294967297 cd*2 -> a+b c+d  # unsigned 32 bits leave (a, b) 1
past_2_to_53: ab*9007199254740993 cd*9007199254740992 -> a+b c+d  # as floats the two are equal
near_2_to_63: ab*4611686018427387904 cd*4611686018427387903 -> a+b c+d
    # the largest weights allowed: their sum is 2**63 - 1

# A newborn pair may win a tie that its parent lost: several merges at once must see it.

N1: zae*6 za*4 mn*6 -> z+a za+e m+n
    # (za, e) is born with the count of (m, n) and beats it, while (a, e) would have lost
N2: aze*6 az*4 mn*6 -> a+z az+e m+n | tie_break=smallest_bytes
    # the same by smallest bytes: (az, e) beats (m, n), (z, e) would not
N3: ab*20 xab*6 xaz*6 az*4 -> a+b a+z x+az x+ab
    # (x, ab) waits with 6 until (x, az) is born with 6 and goes before it
N4: ade*6 ad*4 bc*6 -> a+d ad+e b+c | tie_break=smallest_bytes
    # (ad, e) beats (b, c) by smallest bytes, though (d, e) would not
N5: ade*6 ad*4 bc*6 -> a+d b+c ad+e | tie_break=huggingface
    # by ids a new token is the greatest, so a newborn pair never wins a tie

# The first best pair whose count is below min_count ends the training.

min_count_2: ab*5 abc*4 bc*3 xy -> a+b ab+c b+c | min_count=2  # (x, y) occurs once and is not learned
min_count_is_reached: ab*4 cd*3 -> a+b | min_count=4  # a count of exactly min_count is enough, one less is not
min_count_after_stale: ab*5 abc*4 bc*3 -> a+b ab+c | min_count=4
    # (b, c) had 7 at first and has 3 when its turn comes: the true count decides
min_count_none: ab*4 -> | min_count=5  # nothing reaches min_count, nothing is learned
""",
        training,
    ),
    Case(
        "last_pair_greatest",
        TrainerCall(DISTINCT_PAIRS, len(DISTINCT_PAIRS) + 20),
        [(word[:1], word[1:]) for word in reversed(DISTINCT_PAIRS)],
        "55 pairs, then 54, down to one, the greatest always last: every remainder of every number of slices",
    ),
)

# Worked out by hand from the definition. The merges begin with those inherited that are not
# dropped.
EXTENSION_CASES: tuple[Case, ...] = read_cases(
    r"""
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
    # no token holds a colon and a space: neither (:, space) nor (a:, space b) may be merged
veto_again: xy:_xy*3 :_*5 -> x+y xy+: _+xy | veto=superbpe
    # the refused pair is beside both places of x+y: it is refused each time
veto_spares_inherited: a:_b*2 -> :+_ a+:_ | inherited=:+_,a+:_ veto=superbpe
    # a veto is for new merges: inherited merges are made, but (a:, b) would hold a colon and a space
veto_words: a_b_c_d_e -> _+b _+c _+d _+e a+_b a_b+_c a_b_c+_d | inherited=_+b,_+c,_+d,_+e veto=superbpe
    # four words may be a token, five may not
veto_newline_separates_no_words: a\nb\tc -> b+\t b\t+c a+\n a\n+b\tc | veto=superbpe
    # only a space separates words: these are one
veto_bytes: aaaa abc -> a+a b+c a+bc | veto=bytes:3  # three bytes may be a token, (aa, aa) would have four
veto_characters: éaé*2 -> \xc3+\xa9 é+a | veto=characters:2
    # a character is counted where it begins: éa are two, éaé would be three
veto_and_min_count: :_*9 ab*4 cd*3 -> a+b | min_count=4 veto=superbpe
    # a refused pair neither ends the training nor takes up a place
W1: _\xf0\x9f\xa4\x97*10 _\xf0\x9d\x9f\x91*9 -> \xf0+\x9f \xf0\x9f+\xa4 \xf0\x9f\xa4+\x97 _+\xf0\x9f\xa4\x97
    \xf0+\x9d \xf0\x9d+\x9f \xf0\x9d\x9f+\x91 _+\xf0\x9d\x9f\x91 | veto=whole_characters
    # the most frequent pair is a space and the first byte of a character, which may not be merged
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
""",
    training,
)

UNINHERITABLE = (
    ("ab+c a+b", 9, "merges out of their order cannot all be kept"),
    ("a+b a+b", 9, "a token is spelled once"),
    ("a+b b+c ab+c a+bc", 9, "a token is spelled once"),
    ("a+b b+c", 1, "num_merges counts the inherited merges"),
)
"""Lists that nobody can go on from, with `num_merges` and why."""


# Random and large words. Alphabets of few symbols, with NUL and 0xFF among them, make runs, repeats
# and ties, which is where trainers go wrong.

SAMPLES: tuple[Words, ...] = (
    {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6},
    {b"abcststefstbbef": 1, b"\x00!?!?": 2, b"aaaaa": 3},
    {b"zb": 1, b" a": 1, b"\xc3\xa9": 1, b"usz": 1, b"usbz": 1, b"ab": 1, b"ac": 1, b"caca": 1},
)
ALPHABET = (ord("a"), ord("b"), 0x00, 0x01, 0xFF)
LETTERS = (*b"ab :\xc3\xa9\n",)
VETOES = (
    "none", "superbpe", "bytes:3", "characters:2", "whole_characters",
    "[whole_characters,bytes:4]", "protected:61.c3a9", "none",
)  # fmt: skip


def random_words(
    chance: random.Random, letters: Sequence[int], number: int, longest: int
) -> dict[bytes, int]:
    """Words over these letters, at most so many; one weight in ten is beyond 32 bits."""
    words: dict[bytes, int] = {}
    for _ in range(number):
        word = bytes(chance.choices(letters, k=chance.randint(1, longest)))
        words[word] = chance.randint(1, 6) + (2**32 if chance.random() < 0.1 else 0)
    return words


def random_call(seed: int, tie_break: TieBreak) -> TrainerCall:
    """Words over one to four symbols, the first tiny, trained on to the end; one call in four has a
    min_count.
    """
    chance = random.Random(seed)
    letters = chance.sample(ALPHABET, chance.randint(1, 4))
    number = chance.randint(1, min(seed // 10 + 1, 8))
    words = random_words(chance, letters, number, min(seed // 5 + 3, 16))
    min_count = (1, 1, 1, 1, 1, 1, 2, 5)[seed % 8]
    return TrainerCall(words, to_exhaustion(words), tie_break, min_count)


def random_extension(seed: int, tie_break: TieBreak) -> TrainerCall:
    """Words, one of them perhaps a long run, and a list that the definition can inherit."""
    chance = random.Random(seed)
    letters = chance.sample(LETTERS, chance.randint(2, len(LETTERS)))
    words = random_words(chance, letters, chance.randint(1, 7), 18)
    words[bytes(letters[:1]) * chance.choice((1, 1, 40))] = 1

    others = random_words(chance, letters, 4, 9)
    learned_from = chance.choice((words, others, {**others, **words}))
    inherited = TrainerCall(learned_from, chance.randint(0, 12)).defined()
    inheriting = chance.choice(("kept", "met"))
    if inheriting == "met" and chance.random() < 0.5:
        inherited = chance.sample(inherited, len(inherited)) + inherited[:1]

    num_merges = len(inherited) + chance.choice((0, 3, to_exhaustion(words)))
    rules = (chance.choice((1, 1, 2)), tuple(inherited), inheriting, chance.choice(VETOES))
    return TrainerCall(words, num_merges, tie_break, *rules)


def large_calls(tie_break: TieBreak) -> dict[str, TrainerCall]:
    """Calls with long words, and with many."""
    letters = bytes(random.Random(3000).choices(b"ab", k=3000))
    # after some hundred merges of short words over few bytes with small weights, most are ties
    with_ties = random_words(random.Random(1500), range(0, 240, 10), 700, 7)
    # more words than 16 bits can number; the last ones have the largest counts
    many = {number.to_bytes(3, "big"): 1 + 50 * (number >> 16) for number in range(70_000)}
    # a word for each byte, which is first in one and last in another; no two counts are equal
    bytewise = {bytes((first, first ^ 0x5A)): 1 + first * 7 % 256 for first in range(256)}

    return {
        # lengths stored in one byte, or two
        "run_of_70000": TrainerCall({b"a" * 70_000: 1}, 200, tie_break),
        "3000_letters": TrainerCall({letters: 1}, 200, tie_break),
        "1100_merges_with_many_ties": TrainerCall(with_ties, 1100, tie_break),
        "70000_words": TrainerCall(many, 2, tie_break),
        "every_byte_first_and_last": TrainerCall(bytewise, 256, tie_break),
    }
