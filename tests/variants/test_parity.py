"""Parity-aware BPE: worked cases and refusals (parity.toml), random tables against the definition."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from rows import rows_beside

from variants import heap, parity
from variants.contract import WordCounts


def table(words: dict[str, int]) -> WordCounts:
    return WordCounts.from_items((word.encode(), weight) for word, weight in words.items())


@pytest.mark.parametrize("train", [parity.train, parity.naive])
@pytest.mark.parametrize("row", rows_beside(__file__, "parity.toml"))
def test_worked_case_is_learned_or_refused(train: Any, row: dict[str, Any]) -> None:
    tables = list(map(table, row["train"]))
    options = {"dev": list(map(table, row.get("dev", []))), **row.get("options", {})}
    if "refused" in row:
        with pytest.raises(ValueError, match=f"^{re.escape(row['refused'])}$"):
            train(tables, 9, **options)
        return

    merges = []
    for (left, right), language in train(tables, row.get("num_merges", 9), **options):
        name = "-" if language is None else language
        merges.append(f"{left.decode()}+{right.decode()} {name}")
    assert merges == row["merges"]


@pytest.mark.parametrize("seed", range(60))
def test_random_tables_of_one_to_four_languages_give_the_defined_merges(seed: int) -> None:
    dice = random.Random(seed)
    letters = dice.sample("abcé\0z", dice.randint(1, 5))

    def words() -> WordCounts:
        drawn = {}
        for _ in range(dice.choice((0, 1, 3, 8))):
            word = "".join(dice.choices(letters, k=dice.choice((1, 2, 3, 8, 15))))
            drawn[word] = dice.choice((1, 1, 2, 3, 2**33))
        return table(drawn)

    tables = [words() for _ in range(dice.randint(1, 4))]
    dev = {"dev": [words() for _ in tables]}
    ratio = {"ratio": [dice.choice((0.5, 1, 1.6)) for _ in tables]}
    options: dict[str, Any] = {
        "warmup_merges": dice.choice((0, 0, 1, 5, 50)),
        "min_count": dice.choice((0, 1, 2, 3)),
        "tie_break": dice.choice(list(parity.TIE_BREAKS.values())),
        "window": dice.choice((0, 0, 1, 2, 3, 5)),
        "alpha": dice.choice((0.3, 1, 1.5, 2, 4)),
        **dice.choice(({}, dev, ratio)),
    }
    number = dice.choice((2, 10, 500))

    served = parity.train(tables, number, **options)
    assert served == parity.naive(tables, number, **options)
    if len(tables) == 1:
        plain = {name: options[name] for name in ("min_count", "tie_break")}
        assert [merge for merge, _ in served] == heap.train(tables[0], number, **plain)
