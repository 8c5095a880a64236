"""Generators: texts and word tables made of a seed, the same bytes on every machine, so that a digest stands on a card.

A card names one in `source.generator` and gives it all its parameters beside that. `data.source.NAME=VALUE` changes
one; what is made then is another set, to which the facts of the card do not apply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.common import registry
from harness.common.errors import Refusal
from harness.corpora.generators import tables, texts
from harness.corpora.generators.tables import WordBlock

__all__ = ["VERSION", "WordBlock", "is_table", "made", "parameters_of", "size_of"]

VERSION = 1  # of what the generators make; another number makes kept sets again

TEXTS: dict[str, Callable[..., Iterator[bytes]]] = {
    each.__name__: each for each in (texts.random_text, texts.ties, texts.runs, texts.one_word, texts.no_repeats)
}
TABLES: dict[str, Callable[..., Iterator[WordBlock]]] = {
    each.__name__: each for each in (tables.zipf_words, tables.strange_words, tables.distinct_pairs)
}
# The parameters that say how much is made, in the unit that is shown while it is.
SIZES = ("bytes", "words")


def is_table(source: Mapping[str, Any]) -> bool:
    """Whether a card's source is a generator of word tables."""
    return source.get("kind") == "generator" and source.get("generator") in TABLES


def made(source: Mapping[str, Any]) -> Iterator[Any]:
    """What the generator makes of its parameters, in blocks: bytes, or WordBlock where `is_table`."""
    return generator_of(source)(**parameters_of(source))


def size_of(source: Mapping[str, Any]) -> tuple[int, str]:
    """How much will be made, 0 if that is not known before, and the unit."""
    given = parameters_of(source)
    unit = next((name for name in SIZES if name in given), "words" if is_table(source) else "bytes")
    in_this_unit = unit == ("words" if is_table(source) else "bytes")
    return given.get(unit, 0) if in_this_unit else 0, "words" if is_table(source) else "bytes"


def generator_of(source: Mapping[str, Any]) -> Callable[..., Iterator[Any]]:
    name = source.get("generator", "")
    if name not in TEXTS | TABLES:
        raise Refusal(registry.unknown("generator", str(name), TEXTS | TABLES))
    return (TEXTS | TABLES)[name]


def parameters_of(source: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a card gives its generator. Raises Refusal for one that is missing, unknown or impossible."""
    given = {name: value for name, value in source.items() if name not in ("kind", "generator")}
    takes = inspect.get_annotations(generator_of(source), eval_str=True)
    takes.pop("return")
    for name in takes:
        if name not in given:
            raise Refusal(f"the generator {source['generator']} needs data.source.{name}")
    for name, value in given.items():
        if name not in takes:
            raise Refusal(registry.unknown(f"parameter of the generator {source['generator']}", name, takes))
        if takes[name] is int and (type(value) is not int or value < (0 if name == "seed" else 1)):
            raise Refusal(f"data.source.{name}={value} is not a whole number of {0 if name == 'seed' else 1} or more")
        if takes[name] is str and (not isinstance(value, str) or not value):
            raise Refusal(f"data.source.{name}={value!r} is not a text")
        if takes[name] not in (int, str) and not (isinstance(value, list) and all(type(each) is int for each in value)):
            raise Refusal(f"data.source.{name}={value!r} is not a list of whole numbers")
    return given
