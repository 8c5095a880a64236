"""Parity-aware BPE: worked cases, random tables against the definition, and refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest

from variants import heap, parity
from variants.contract import WordCounts


def table(words: str) -> WordCounts:
    """A table as the cases have it: `ab:9, c:1`."""
    items = (word.split(":") for word in words.split(", ") if word)
    return WordCounts.from_items((word.encode(), int(weight)) for word, weight in items)


def written(served: list[parity.Served]) -> str:
    steps = ((left.decode(), right.decode(), language) for (left, right), language in served)
    return ", ".join(
        f"{left}+{right} {'-' if language is None else language}" for left, right, language in steps
    )


CASES: list[tuple[str, list[str], dict[str, Any], int, str]] = [
    ("P1", ["aabb:10", "ccdd:10"], {}, 6, "b+b 0, d+d 1, a+bb 0, c+dd 1, a+abb 0, c+cdd 1"),
    ("P2", ["abd:4, bc:9", "abc:2, ab:1"], {}, 4, "b+c 0, b+d 0, a+bd 0, a+bc 1"),
    ("P3", ["ab:9", "cd:1"], {"dev": ["ab:1", "cd:2"]}, 9, "c+d 1, a+b 0"),
    (
        "P4",
        ["abababab:1", "cdcdcdcd:1"],
        {"ratio": [1, 3]},
        4,
        "c+d 1, cd+cd 1, a+b 0, cdcd+cdcd 1",
    ),
    ("P5", ["abc:3", "xyz:2, xzyxzyy:1"], {"min_count": 3}, 9, "b+c 0, a+bc 0"),
    (
        "P6",
        ["ab:2, cd:1, ef:9", "ab:9, cd:10, gh:8"],
        {"warmup_merges": 2},
        4,
        "c+d -, a+b -, g+h 1, e+f 0",
    ),
    (
        "P7",
        ["abcd:9", "xyz:1"],
        {"window": 2, "alpha": 1},
        5,
        "c+d 0, b+cd 0, y+z 1, a+bcd 0, x+yz 1",
    ),
    # Here tokenizers 0.23.3 never returns: a language that is out, and one of no text.
    ("P8", ["ab:9", "x:1"], {"window": 2, "alpha": 0.3}, 9, "a+b 0"),
    ("P9", ["ab:9", ""], {"ratio": [1, 1]}, 9, "a+b 0"),
    ("P10", ["ab:9", ""], {"ratio": [1, 1], "window": 100, "alpha": 2}, 9, "a+b 0"),
    ("together_ends", ["ab:1", "cd:1"], {"warmup_merges": 5, "min_count": 2}, 9, ""),
    ("no_text", ["", ""], {}, 9, ""),
]


@pytest.mark.parametrize("train", [parity.train, parity.naive])
@pytest.mark.parametrize(
    ("languages", "options", "number", "merges"),
    [case[1:] for case in CASES],
    ids=[c[0] for c in CASES],
)
def test_a_worked_case(
    train: Any, languages: list[str], options: dict[str, Any], number: int, merges: str
) -> None:
    options = {**options, **({"dev": list(map(table, options["dev"]))} if "dev" in options else {})}
    assert written(train(list(map(table, languages)), number, **options)) == merges


@pytest.mark.parametrize("seed", range(60))
def test_random_tables_of_one_to_four_languages_give_the_defined_merges(seed: int) -> None:
    dice = random.Random(seed)
    letters = dice.sample("abcé\0z", dice.randint(1, 5))

    def words() -> WordCounts:
        drawn = (
            "".join(dice.choices(letters, k=dice.choice((1, 2, 3, 8, 15))))
            for _ in range(dice.choice((0, 1, 3, 8)))
        )
        return WordCounts.from_items(
            (word.encode(), dice.choice((1, 1, 2, 3, 2**33))) for word in drawn
        )

    tables = [words() for _ in range(dice.randint(1, 4))]
    options: dict[str, Any] = {
        "warmup_merges": dice.choice((0, 0, 1, 5, 50)),
        "min_count": dice.choice((0, 1, 2, 3)),
        "tie_break": dice.choice(list(parity.TIE_BREAKS.values())),
        **dice.choice(
            ({}, {"window": dice.randint(1, 5), "alpha": dice.choice((0.3, 1, 1.5, 2, 4))})
        ),
        **dice.choice(
            (
                {},
                {"dev": [words() for _ in tables]},
                {"ratio": [dice.choice((0.5, 1, 1.6)) for _ in tables]},
            )
        ),
    }
    number = dice.choice((2, 10, 500))
    assert parity.train(tables, number, **options) == parity.naive(tables, number, **options)


def test_one_language_is_trained_as_ever() -> None:
    words = table("low:5, lower:2, widest:3, newest:6")
    assert [merge for merge, _ in parity.train([words], 20)] == heap.train(words, 20)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dev": [table("ab:1")], "ratio": [1]}, "dev and ratio exclude each other; leave one out"),
        ({"dev": [table("ab:1")] * 2}, "dev is for 2 of 1 languages; give one for each or none"),
        ({"ratio": [0]}, r"ratio=\[0\] must be numbers above 0"),
        ({"window": -1}, "window must be 0 or more, and alpha above 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        parity.train([table("ab:1")], 9, **options)
    with pytest.raises(ValueError, match="no languages"):
        parity.train([], 9)
