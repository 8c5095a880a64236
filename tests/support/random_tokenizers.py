"""Random tokenizers and texts to encode by them, and both as tests/support/encoder_driver.cpp reads
them.
"""

import random
from collections.abc import Sequence

import regex
from pattern_family import all_slots, spelling
from scanned_texts import random_text
from tokenizers_made import PATTERNS, SPECIALS, TEXT

from harness.tokenizers.learned import BYTES, Learned
from variants import naive_extending
from variants.contract import Merge, WordCounts
from variants.counting.patterns import compiled
from variants.flat import FIRST_BYTE, ids_of
from variants.vetoes import whole_characters

LETTERS = [*"abs \n1/!é\u0301法律👩", "'s", "\r\n", "23", "<|e|", "<|endoftext|"]
PATHS = 4
WORDS = [PATTERNS[name] for name in ("gpt2", "gpt4", "superbpe_words")]
SUPERWORDS = [PATTERNS[name] for name in ("superbpe", "line", "document")]


def random_learned(dice: random.Random) -> Learned:
    """A tokenizer that can be compiled: trained on a random text in one stage or in two, by other
    words, perhaps cut, with ids in any order and with holes, with special tokens, and with tokens
    that no merge makes.
    """
    text = random_text(dice, (), LETTERS) + dice.choice(("", TEXT))
    trained: list[Merge] = []
    any_pattern = [*PATTERNS.values(), spelling(dice.choice(all_slots()), dice)]
    superwords = [WORDS, SUPERWORDS]
    for patterns in dice.choice(([any_pattern], [any_pattern] * 2, superwords, superwords)):
        pattern = dice.choice(patterns)
        words = [text] if pattern is None else regex.findall(pattern, text)
        counts = {word.encode(): dice.randint(1, 9) for word in words if word}
        table = WordCounts.from_items(counts.items())
        number, veto = dice.choice((0, 5, 30, 40)), dice.choice((None, None, whole_characters))
        trained = naive_extending.train(
            table, len(trained) + number, inherited=trained, inheriting="kept", veto=veto
        )
    merges = list(trained[: dice.choice((len(trained), dice.randint(0, len(trained))))])

    tokens = dict.fromkeys([*BYTES, *(left + right for left, right in merges)])
    ignore_merges = dice.random() < 0.3
    if ignore_merges:
        tokens |= dict.fromkeys(word for word in counts if dice.random() < 0.2)
    specials = dice.sample([*SPECIALS, "aa", " a", "é"], dice.randint(0, 4))

    number = len(tokens) + len(specials)
    ids = dice.sample(range(dice.choice((number, 60_000, 70_000, 2_000_000))), number)
    special_ids = dict(zip(specials, ids[len(tokens) :]))
    vocab = dict(zip(ids, [*tokens, *map(str.encode, specials)]))
    return Learned(vocab, merges, special_ids, pattern, ignore_merges)


def random_content(dice: random.Random, specials: Sequence[str]) -> bytes:
    """A text, some bytes of which may be lost or changed."""
    content = bytearray(random_text(dice, specials, LETTERS).encode())
    for _ in range(dice.choice((0, 0, 1, 5)) if content else 0):
        content[dice.randrange(len(content))] = dice.choice(b"\x80\xc3\xe6\xed\xf0\xff")
    return bytes(content)


def case_of(
    learned: Learned,
    texts: Sequence[bytes],
    dice: random.Random,
    sizes: Sequence[Sequence[int]] = ((1, 40, 200), (1, 30), (1, 20, 1000), (1, 500, 90_000)),
) -> str:
    """A line for the driver on a random path, with one of each of the sizes: of a block, of a part,
    and of what is kept in words and in bytes.
    """
    ids = learned.token_ids()
    lefts, rights = ids_of(learned.merges)
    by_symbol = [ids[byte] for byte in BYTES]
    by_symbol += [ids[left + right] for left, right in learned.merges]
    slots = compiled(learned.pattern)
    assert slots is not None
    assert len(lefts) == len(learned.merges)

    parts: list[object] = [int(max(learned.vocab) < 1 << 16)]
    parts += [dice.randint(1, 3), dice.randrange(PATHS)]
    parts += map(dice.choice, sizes)
    parts.append(len(lefts))
    for left, right in zip(lefts, rights):
        parts += [left, right]
    parts += [FIRST_BYTE + len(by_symbol), *[0] * FIRST_BYTE, *by_symbol]

    specials = {token.encode(): number for token, number in learned.special_tokens.items()}
    for entries in (specials, ids if learned.ignore_merges else {}):
        parts.append(len(entries))
        for token, number in entries.items():
            parts += [shown(token), number]
    parts += [shown(slots), len(texts), *map(shown, texts)]
    return " ".join(map(str, parts))


def shown(content: bytes) -> str:
    return f".{content.hex()}"
