"""The checks of a trainer that goes on from inherited merges: worked examples, and every kind of list on random pieces.

They are made where a trainer takes `inherited` by name. What is right is what the definition does, which the registry
knows; lists are learned ones, such as those with merges left out or out of order, and vetoes are those there are.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Sequence
from typing import Any

from harness.common import registry
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    accepts,
    expect_merges,
    failure_of,
    learn_from,
    shown,
    to_exhaustion,
)
from harness.proof.counterexamples import WrongWords, shown_by
from harness.proof.differential import random_words
from harness.proof.extension_cases import EXTENSION_CASES, ExtensionCase
from variants.contract import Merge, TieBreak, Unavailable, WordCounts

Train = Callable[..., Any]

ALPHABET = b"ab :\xc3\xa9\n"
VETOES = (
    "none",
    "superbpe",
    "bytes:3",
    "characters:2",
    "whole_characters",
    "[whole_characters,bytes:4]",
    "protected:61.c3a9",
    "none",
)
SEEDS = 60


def extends(train: Train) -> bool:
    """Whether a trainer says by its parameters that it can go on from inherited merges."""
    try:
        return "inherited" in inspect.signature(train).parameters
    except (TypeError, ValueError):
        return False


def extension_checks(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """All checks of an extender, the most telling first; random lists go round the tie-breaks."""
    bodies = (check_learns_in_two_parts, check_refuses_to_inherit, check_extends_at_any_width)
    return [
        *(
            Check(f"check_extends[{case.name}]", "extending", functools.partial(check_extends, case))
            for case in EXTENSION_CASES
            if case.tie_break in tie_breaks
        ),
        *(Check(body.__name__, "extending", functools.partial(body, tie_breaks[0])) for body in bodies),
        *(
            Check(
                f"check_extends_as_defined[{seed}]",
                "extending random words",
                functools.partial(check_extends_as_defined, tie_breaks[seed % len(tie_breaks)], seed),
            )
            for seed in range(SEEDS)
        ),
    ]


def check_extends(case: ExtensionCase, train: Train) -> None:
    asked = WrongWords(
        case.words, case.num_merges, case.tie_break, case.min_count, case.inherited, case.inheriting, case.veto
    )
    expect_extended(asked, case.merges, case.why, train)


def check_extends_as_defined(tie_break: TieBreak, seed: int, train: Train) -> None:
    asked = random_extension(tie_break, seed)
    expect_extended(asked, asked.defined(), "wanted is what the definition gives", train)


def expect_extended(asked: WrongWords, want: Sequence[Merge], why: str, train: Train) -> None:
    """Raise CheckFailed unless an extender gives these merges."""
    with shown_by(asked):
        got = learn_from(train, WordCounts.from_items(asked.words.items()), asked.num_merges, **asked.keywords())
        how = f"asked for {asked.num_merges} merges, {asked.inheriting} of {list(asked.inherited)}, veto {asked.veto}"
        expect_merges(got, want, asked.words, f"{why}\n{how}")


def random_extension(tie_break: TieBreak, seed: int) -> WrongWords:
    """Pieces, some of them long runs, and a list that the definition can inherit."""
    chance = random.Random(seed)
    letters = chance.sample(list(ALPHABET), chance.randint(2, len(ALPHABET)))
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(1, 7)):
        run = chance.randint(1, 40) if chance.random() < 0.2 else 0
        words[bytes(chance.choices(letters, k=chance.randint(2, 18)) + letters[:1] * run)] = chance.randint(1, 5)
    others = {bytes(chance.choices(letters, k=chance.randint(2, 9))): chance.randint(1, 3) for _ in range(4)}
    learned_from = {**others, **words} if chance.random() < 0.5 else others
    inherited = registry.definition()(WordCounts.from_items(learned_from.items()), chance.randint(0, 12))
    inheriting = chance.choice(("kept", "met"))
    if inheriting == "met":
        inherited = [merge for merge in inherited if chance.random() < 0.9]
        if chance.random() < 0.4:
            inherited = chance.sample(inherited, len(inherited)) + inherited[:1]
    num_merges = len(inherited) + chance.choice((0, 3, to_exhaustion(words)))
    min_count = chance.choice((1, 1, 2))
    return WrongWords(words, num_merges, tie_break, min_count, tuple(inherited), inheriting, chance.choice(VETOES))


def check_learns_in_two_parts(tie_break: TieBreak, train: Train) -> None:
    """What was learned first, inherited, and learned further on the same words is what is learned at once."""
    for seed in range(10):
        words = random_words(seed)
        defined = registry.definition()(WordCounts.from_items(words.items()), to_exhaustion(words), tie_break=tie_break)
        for first in {0, 1, len(defined) // 2, len(defined)}:
            for inheriting in ("kept", "met"):
                inherited = tuple(defined[:first])
                asked = WrongWords(words, to_exhaustion(words) + first, tie_break, 1, inherited, inheriting)
                expect_extended(asked, defined, "wanted is what is learned at once", train)


UNINHERITABLE: tuple[tuple[list[Merge], int, str], ...] = (
    ([(b"ab", b"c"), (b"a", b"b")], 9, "merges out of their order cannot all be kept"),
    ([(b"a", b"b"), (b"a", b"b")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c")], 1, "what is inherited is among the merges asked for"),
)


def check_refuses_to_inherit(tie_break: TieBreak, train: Train) -> None:
    words = {b"abcd": 2}
    for inherited, num_merges, why in UNINHERITABLE:
        try:
            train(WordCounts.from_items(words.items()), num_merges, tie_break=tie_break, inherited=inherited)
        except (ValueError, Unavailable):
            continue
        except Exception as error:
            raise failure_of(error, f"asked for {num_merges} merges, inheriting {inherited}\n{shown(words)}") from error
        raise CheckFailed(f"took {inherited} for {num_merges} merges without a ValueError: {why}\n{shown(words)}")


def check_extends_at_any_width(tie_break: TieBreak, train: Train) -> None:
    if not accepts(train, "threads"):
        raise CheckSkipped("the trainer takes no threads")
    for seed in range(5):
        asked = random_extension(tie_break, seed)
        for threads in WIDTHS:
            why = f"wanted is what the definition gives, asked with threads={threads}"
            expect_extended(asked, asked.defined(), why, functools.partial(train, threads=threads))
