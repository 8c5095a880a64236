"""Generated texts, and tables of words that are counted already, generated or from files.

What is generated is a function of a seed and sizes, the same bytes on every machine. A card names a
generator in `source.generator` and gives all its parameters; with `data.source.NAME=VALUE` the
facts of the card do not hold.

In a table in a file (word_tables.py) a count of 0 drops the word, and the counts of repeated words
are added. Tables are cached as word stores, as counted words are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.common import cache, registry
from harness.common.cards import fitted
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.corpora import language
from harness.corpora.cards import GENERATOR, TABLES, Card, difference
from harness.corpora.files import TEXT, CorpusFile, digest_of
from harness.corpora.language import Bytes, Choice, Integers, Numbers, Pieces, Unsigned
from harness.corpora.local import members_of, name_of
from harness.corpora.rare_words import rare_words
from harness.corpora.word_tables import items_in
from harness.worker import exchange
from variants.contract import WordCounts

VERSION = 1  # of what the generators make; another number makes cached sets again
SEPARATOR = b"<|endoftext|>"
WORDS_AT_ONCE = 1 << 16
BYTES_AT_ONCE = 1 << 20
Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Few = Annotated[int, msgspec.Meta(ge=1, le=1 << 26)]
"""What is held in memory."""
Seed = Annotated[int, msgspec.Meta(ge=0)]
PowerOfTwo = Literal[1, 2, 4, 8, 16, 32, 64]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Ascii = Annotated[str, msgspec.Meta(pattern=r"^[\x00-\x7f]+\Z")]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_WORDS = len(LETTERS) ** 8


def random_text(
    *,
    seed: Seed,
    bytes: Number,
    alphabet: Text,
    letter_weights: list[int],
    length_weights: list[int],
    document: Number,
) -> Iterator[bytes]:
    """Words of random letters, a space before each, up to `bytes` bytes; a document is `document`
    words.

    Letter i of the alphabet has the weight letter_weights[i], equal ones if that is empty; a word
    of n letters has the weight length_weights[n - 1].
    """
    letters, numbers = [letter.encode() for letter in alphabet], Numbers(seed)
    weights = letter_weights or [1] * len(letters)
    if len(weights) != len(letters):
        raise Refusal(
            f"an alphabet of {len(letters)} letters cannot have {len(weights)} letter_weights"
        )
    letter, length = (
        checked_choice("letter_weights", weights),
        checked_choice("length_weights", length_weights),
    )
    # A space and the end of a document are letters too, the last two.
    pieces = Pieces([*letters, b" ", SEPARATOR])
    space, end = len(letters), len(letters) + 1
    written = words = 0
    while written < bytes:
        lengths = length.draw(numbers, WORDS_AT_ONCE) + 1
        ends = np.arange(words + 1, words + WORDS_AT_ONCE + 1) % document == 0
        stops = np.cumsum(1 + lengths + ends)
        pieces_drawn = np.empty(int(stops[-1]), dtype=np.int64)
        pieces_drawn[:] = letter.draw(numbers, len(pieces_drawn))
        pieces_drawn[stops - 1 - lengths - ends] = space
        pieces_drawn[stops[ends] - 1] = end
        sizes = np.add.reduceat(pieces.lengths[pieces_drawn], np.concatenate([[0], stops[:-1]]))
        fitting = int(np.searchsorted(np.cumsum(sizes), bytes - written, side="right"))
        block = pieces.joined(pieces_drawn[: stops[fitting - 1] if fitting else 0]).tobytes()
        yield block
        written += len(block)
        words += WORDS_AT_ONCE
        if fitting < WORDS_AT_ONCE:
            break


def ties(
    *, seed: Seed, letters: Annotated[int, msgspec.Meta(ge=2, le=len(LETTERS))]
) -> Iterator[bytes]:
    """Every word of three of so many letters, once, in random order: all pairs of letters occur
    equally often.
    """
    words = ["".join(word) for word in product(LETTERS[:letters], repeat=3)]
    shuffled = np.argsort(Numbers(seed).take(len(words)), kind="stable")
    yield "".join(f" {words[index]}" for index in shuffled).encode()


def runs(
    *, seed: Seed, bytes: Number, longest: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
) -> Iterator[bytes]:
    """Runs of one letter, space or line end each, up to `longest` long: occurrences of pairs
    overlap.
    """
    numbers = Numbers(seed)
    symbols = np.frombuffer(b"abcde  \n", dtype=np.uint8)
    written = 0
    while written < bytes:
        drawn = symbols[numbers.below(len(symbols), 1024)]
        block = np.repeat(drawn, numbers.below(longest, 1024) + 1)[: bytes - written]
        yield block.tobytes()
        written += len(block)


def one_word(*, seed: Seed, bytes: Number, alphabet: Ascii) -> Iterator[bytes]:
    """One word of so many random letters: DNA, or anything else without a place to split."""
    symbols = np.frombuffer(alphabet.encode("ascii"), dtype=np.uint8)
    numbers = Numbers(seed)
    for written in range(0, bytes, BYTES_AT_ONCE):
        yield symbols[numbers.below(len(symbols), min(BYTES_AT_ONCE, bytes - written))].tobytes()


def no_repeats(*, seed: Seed, words: Few) -> Iterator[bytes]:
    """Generate distinct words, so the table of words grows with every word of the text.

    Word n is n times an odd number modulo 26**8, written in eight letters, so no two are the same.
    """
    factor = int(Numbers(seed).take(1)[0]) % (MOST_WORDS // 26) * 26 + 7  # prime to 26
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)
    scale = np.int64(26) ** np.arange(7, -1, -1)
    for first in range(0, words, WORDS_AT_ONCE):
        number = min(WORDS_AT_ONCE, words - first)
        values = np.array(
            [n * factor % MOST_WORDS for n in range(first + 1, first + number + 1)], dtype=np.int64
        )
        text = np.full((number, 9), ord(" "), dtype=np.uint8)
        text[:, 1:] = letters[values[:, None] // scale % 26]
        yield text.tobytes()


def checked_choice(name: str, weights: Sequence[int]) -> Choice:
    if not weights or min(weights) < 0 or not 0 < sum(weights) < 1 << 32:
        raise Refusal(f"{name} must be whole numbers, none below 0, with a sum from 1 to 2**32 - 1")
    return Choice(weights)


class WordBlock(NamedTuple):
    """Some words: their bytes end to end, their lengths, their counts."""

    data: Bytes
    lengths: Integers
    counts: Unsigned


def zipf_words(
    *,
    seed: Seed,
    words: Few,
    exponent_numerator: Number,
    exponent_denominator: PowerOfTwo,
    shift: Number,
) -> Iterator[WordBlock]:
    """So many words that share parts, with counts by the law of Zipf and Mandelbrot: see
    `language`.
    """
    counts = language.zipf_counts(words, exponent_numerator, exponent_denominator, shift)
    yielded = 0
    for data, lengths, _ in language.distinct(language.endless_words(seed), words):
        yield WordBlock(data, lengths, counts[yielded : yielded + len(lengths)])
        yielded += len(lengths)


Generator = Callable[..., Iterator[Any]]
FUNCTIONS = (
    random_text,
    ties,
    runs,
    one_word,
    no_repeats,
    zipf_words,
    rare_words,
)
GENERATORS: dict[str, Generator] = {function.__name__: function for function in FUNCTIONS}


def made(card: Card) -> Iterator[Any]:
    """What the generator of a card makes, in blocks, with a bar: bytes, or WordBlock for a
    table.
    """
    generator, parameters = generator_of(card["source"])
    done, unit = 0, "words" if generator.__name__ in TABLES else "bytes"
    with bar(f"making {card['name']}", parameters.get(unit, 0), unit) as show:
        for block in generator(**parameters):
            yield block
            done += len(block[-1]) if unit == "words" else len(block)
            show(done)


def generator_of(source: Mapping[str, Any]) -> tuple[Generator, dict[str, Any]]:
    """The generator that a card names, and its parameters. Raises Refusal for a missing, unknown or
    invalid one.
    """
    name = str(source.get("generator"))
    if name not in GENERATORS:
        raise Refusal(registry.unknown("generator", name, GENERATORS))
    parameters = {key: value for key, value in source.items() if key not in ("kind", "generator")}
    types = inspect.get_annotations(GENERATORS[name], eval_str=True)
    types.pop("return")
    kind = msgspec.defstruct("Parameters", types.items(), forbid_unknown_fields=True)
    fitted(parameters, kind, "data.source.", f"the generator {name} takes {', '.join(types)}")
    return GENERATORS[name], parameters


def text_file(card: Card) -> Path:
    """The generated text of a card, made if missing."""

    def make(folder: Path) -> None:
        cache.check_free_space(generator_of(card["source"])[1].get("bytes", 0), card["name"])
        with (folder / TEXT).open("wb") as file:
            file.writelines(made(card))

    return cache.kept("texts", cache.key_of(VERSION, dict(card["source"])), make).path / TEXT


def word_table(card: Card) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the
    card.
    """
    name = card["name"]
    for slicing in ("bytes", "skip", "documents"):
        if card[slicing] is not None:
            raise Refusal(
                f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it"
            )

    if card["path"] is not None:
        paths = members_of(card["path"])
        key = cache.key_of(exchange.FORMAT, *map(digest_of, paths))
        table = cached_table(key, lambda folder: exchange.write_words(folder, from_files(paths)))
        name = name_of(card["path"], paths) if card["source"]["kind"] == "words" else name
    elif card["source"]["kind"] == GENERATOR:
        key = cache.key_of(exchange.FORMAT, VERSION, dict(card["source"]))
        table = cached_table(key, lambda folder: exchange.write_words(folder, from_generator(card)))
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")

    word_counts, manifest = exchange.read_words(table)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card["facts"], actual):
        raise Refusal(
            f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED
        )
    return CorpusFile(name, table, actual["bytes"], manifest["sha256"], table=True)


def cached_table(key: str, make: Callable[[Path], dict[str, Any]]) -> Path:
    """The word store of this key, written by `make`, which returns its manifest, if it is missing."""
    return cache.kept("counts", key, make).path


def from_generator(card: Card) -> WordCounts:
    data, lengths, counts = (np.concatenate(column) for column in zip(*made(card), strict=True))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return WordCounts(data.data, offsets.data.cast("B").cast("q"), counts.data.cast("B").cast("Q"))


def from_files(paths: Sequence[Path]) -> WordCounts:
    """The tables in files as one. Raises Refusal if one is not a table of words."""
    try:
        return WordCounts.from_items(chain.from_iterable(map(items_in, paths)))
    except ValueError as error:
        raise Refusal(f"{', '.join(map(str, paths))}: {error}", UNMEASURED) from error
