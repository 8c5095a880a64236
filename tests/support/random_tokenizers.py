"""Random tokenizers and texts to encode by them, and both as tests/support/encoder_driver.cpp reads
them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import regex
from pattern_family import all_slots, spelling
from tokenizers_made import PATTERNS, SPECIALS, TEXT

from harness.tokenizers.learned import BYTES, Learned
from variants import naive_extending
from variants.contract import Merge, WordCounts
from variants.counting.patterns import compiled
from variants.flat import FIRST_BYTE, ids_of
from variants.vetoes import whole_characters

LETTERS = [
    "a",
    "b",
    "s",
    " ",
    "'s",
    "\n",
    "\r\n",
    "1",
    "23",
    "/",
    "!",
    "é",
    "\u0301",
    "法",
    "律",
    "👩",
]
PATHS = 4


def random_learned(dice: random.Random) -> Learned:
    """A tokenizer that can be compiled: trained on a random text, perhaps cut, with ids in any order
    and with holes, with special tokens, and with tokens that no merge makes.
    """
    pattern = dice.choice([*PATTERNS.values(), spelling(dice.choice(all_slots()), dice)])
    words = random_text(dice, (), 300) + dice.choice(("", TEXT))
    found = [words] if pattern is None else regex.findall(pattern, words)
    counts = {word.encode(): dice.randint(1, 9) for word in found if word}
    veto = dice.choice((None, None, whole_characters))
    trained = naive_extending.train(
        WordCounts.from_items(counts.items()), dice.choice((0, 5, 40)), veto=veto
    )
    merges = list(trained[: dice.randint(0, len(trained))])

    tokens = [*BYTES, *dict.fromkeys(left + right for left, right in merges)]
    ignore_merges = dice.random() < 0.3
    extra = [word for word in counts if ignore_merges and dice.random() < 0.2]
    specials = dice.sample([*SPECIALS, "aa", " a", "é"], dice.randint(0, 4))
    names = dict.fromkeys([*tokens, *extra])
    most = dice.choice((len(names) + len(specials), 60_000, 70_000, 2_000_000))
    ids = iter(dice.sample(range(most), len(names) + len(specials)))
    vocab = {next(ids): token for token in names}
    special_ids = {token: next(ids) for token in specials}
    vocab |= {number: token.encode() for token, number in special_ids.items()}
    return Learned(vocab, merges, special_ids, pattern, ignore_merges)


def random_text(dice: random.Random, specials: Sequence[str], length: int) -> str:
    letters = dice.sample(LETTERS, dice.randint(1, 8))
    parts = [*letters * 3, *specials, *(token[:-1] for token in specials)]
    return "".join(dice.choices(parts, k=dice.randint(0, length)))


def random_content(dice: random.Random, specials: Sequence[str]) -> bytes:
    """A text, some bytes of which may be lost or changed."""
    content = bytearray(random_text(dice, specials, dice.choice((8, 60, 400))).encode())
    for _ in range(dice.choice((0, 0, 1, 5)) if content else 0):
        content[dice.randrange(len(content))] = dice.choice((0x80, 0xC3, 0xE6, 0xED, 0xF0, 0xFF))
    return bytes(content)


def case_of(learned: Learned, texts: Sequence[bytes], dice: random.Random) -> str:
    """A line for the driver, with small sizes, on a random path."""
    ids = learned.token_ids()
    lefts, rights = ids_of(learned.merges)
    assert len(lefts) == len(learned.merges)
    made: list[Merge] = learned.merges
    by_symbol = [ids[byte] for byte in BYTES] + [ids[left + right] for left, right in made]
    narrow = max(learned.vocab) < 1 << 16
    sizes = (
        dice.choice((1, 40, 200)),
        dice.choice((1, 30)),
        dice.choice((1, 20, 1000)),
        dice.choice((1, 500)),
    )
    specials = [(token.encode(), number) for token, number in learned.special_tokens.items()]
    whole = list(ids.items()) if learned.ignore_merges else []

    numbers: list[object] = [int(narrow), dice.randint(1, 3), dice.randrange(PATHS), *sizes]
    numbers += [len(lefts), *(half for merge in zip(lefts, rights) for half in merge)]
    numbers += [FIRST_BYTE + len(by_symbol), *[0] * FIRST_BYTE, *by_symbol]
    for entries in (specials, whole):
        numbers += [
            len(entries),
            *(part for text, number in entries for part in (shown(text), number)),
        ]
    slots = compiled(learned.pattern)
    assert slots is not None
    numbers += [shown(slots), len(texts), *map(shown, texts)]
    return " ".join(map(str, numbers))


def shown(content: bytes) -> str:
    return f".{content.hex()}"
