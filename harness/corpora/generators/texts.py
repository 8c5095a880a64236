"""Generated texts, in blocks: random words of a given alphabet and lengths, and what trainers stumble over.

Each is a function of a seed and sizes that yields bytes; the same arguments give the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from harness.common.errors import Refusal
from harness.corpora.generators.numbers import Choice, Numbers
from harness.corpora.generators.pieces import Pieces

SEPARATOR = b"<|endoftext|>"
WORDS_AT_ONCE = 1 << 16
BYTES_AT_ONCE = 1 << 20
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def random_text(
    *, seed: int, bytes: int, alphabet: str, letter_weights: Sequence[int], length_weights: Sequence[int], document: int
) -> Iterator[bytes]:
    """Words of random letters, a space before each, up to `bytes` bytes; a document is `document` words.

    Letter i of the alphabet has the weight letter_weights[i], equal ones if that is empty; a word of n letters has the
    weight length_weights[n - 1].
    """
    letters = [letter.encode() for letter in alphabet]
    weights = list(letter_weights) or [1] * len(letters)
    if not letters or len(weights) != len(letters):
        raise Refusal(f"an alphabet of {len(letters)} letters cannot have {len(weights)} letter_weights")
    numbers = Numbers(seed)
    letter, length = checked_choice("letter_weights", weights), checked_choice("length_weights", length_weights)
    # A space and the end of a document are letters too, the last two.
    pieces = Pieces([*letters, b" ", SEPARATOR])
    space, end = len(letters), len(letters) + 1
    made = words = 0
    while made < bytes:
        lengths = length.draw(numbers, WORDS_AT_ONCE) + 1
        ends = np.arange(words + 1, words + WORDS_AT_ONCE + 1) % document == 0
        stops = np.cumsum(1 + lengths + ends)
        places = np.empty(int(stops[-1]), dtype=np.int64)
        places[:] = letter.draw(numbers, len(places))
        places[stops - 1 - lengths - ends] = space
        places[stops[ends] - 1] = end
        sizes = np.add.reduceat(pieces.lengths[places], np.concatenate([[0], stops[:-1]]))
        fitting = int(np.searchsorted(np.cumsum(sizes), bytes - made, side="right"))
        block = pieces.joined(places[: stops[fitting - 1] if fitting else 0]).tobytes()
        yield block
        made += len(block)
        words += WORDS_AT_ONCE
        if fitting < WORDS_AT_ONCE:
            break


def ties(*, seed: int, letters: int) -> Iterator[bytes]:
    """Every word of three of so many letters, once, in random order: all pairs of letters occur equally often."""
    if not 2 <= letters <= len(LETTERS):
        raise Refusal(f"letters={letters} is not from 2 to {len(LETTERS)}")
    words = ["".join(word) for word in product(LETTERS[:letters], repeat=3)]
    yield "".join(f" {words[place]}" for place in Numbers(seed).shuffled(len(words)).tolist()).encode()


def runs(*, seed: int, bytes: int, longest: int) -> Iterator[bytes]:
    """Runs of one letter, space or line end each, up to `longest` long: occurrences of pairs overlap."""
    numbers = Numbers(seed)
    symbols = np.frombuffer(b"abcde  \n", dtype=np.uint8)
    made = 0
    while made < bytes:
        drawn = symbols[numbers.below(len(symbols), 1024)]
        block = np.repeat(drawn, numbers.below(longest, 1024) + 1)[: bytes - made]
        yield block.tobytes()
        made += len(block)


def one_word(*, seed: int, bytes: int, alphabet: str) -> Iterator[bytes]:
    """One word of so many random letters: DNA, or anything else without a place to split."""
    symbols = np.frombuffer(alphabet.encode("ascii"), dtype=np.uint8)
    numbers = Numbers(seed)
    for made in range(0, bytes, BYTES_AT_ONCE):
        yield symbols[numbers.below(len(symbols), min(BYTES_AT_ONCE, bytes - made))].tobytes()


def no_repeats(*, seed: int, words: int) -> Iterator[bytes]:
    """So many words of which none comes twice: the table of words grows with every word of the text.

    Word n is n times an odd number modulo 26**8, written in eight letters, so no two are the same.
    """
    modulus = len(LETTERS) ** 8
    if words > modulus:
        raise Refusal(f"words={words} is more than the {modulus:,} words of eight letters that there are")
    factor = int(Numbers(seed).take(1)[0]) % (modulus // 26) * 26 + 7  # prime to 26
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)
    scale = np.int64(26) ** np.arange(7, -1, -1)
    for first in range(0, words, WORDS_AT_ONCE):
        number = min(WORDS_AT_ONCE, words - first)
        values = np.array([n * factor % modulus for n in range(first + 1, first + number + 1)], dtype=np.int64)
        text = np.full((number, 9), ord(" "), dtype=np.uint8)
        text[:, 1:] = letters[values[:, None] // scale % 26]
        yield text.tobytes()


def checked_choice(name: str, weights: Sequence[int]) -> Choice:
    if not weights or min(weights) < 0 or not 0 < sum(weights) < 1 << 32:
        raise Refusal(f"{name} must be whole numbers, none below 0, with a sum from 1 to 2**32 - 1")
    return Choice(weights)
