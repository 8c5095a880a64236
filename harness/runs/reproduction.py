"""The command that measures a record's cell again: `python -m harness` with all in which the cell is no default.

A record holds no path, so a file of one's own stands there by its name alone. Whether it is the same file, and the same
program, the digests of corpus and source tell.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from harness.common import registry
from harness.common.units import parse_bytes
from harness.records.schema import BY_ITSELF
from harness.runs.command_line import quoted
from harness.runs.fields import OVERRIDES, Record

_PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)\Z)[A-Za-z_][\w./+-]*", re.IGNORECASE)
"""Text that Hydra takes for just this text, without quotes."""

_GIVEN = "given"
"""What a record has for a counter where the corpus is a table of words."""


def command_of(record: Record) -> str:
    """What to type in a shell to have the cell of this record measured again.

    >>> command_of({"variant": "my_package.trainer:train", "threads": 2, "vocab_size": 1000, "data": {"name": "ties"}})
    'python -m harness variant._target_=my_package.trainer:train data=ties threads=2'
    """
    if record.get("cell") == "count":
        return _of_counting(record)
    return shlex.join(["python", "-m", "harness", *overrides_of(record)])


def overrides_of(record: Record) -> list[str]:
    """The overrides of the cell, in the order in which they are usually said."""
    parts = (_of_variant, _of_counter, _of_corpus, _of_reading, _of_run, _of_measuring)
    return [override for part in parts for override in part(record)]


def _of_variant(record: Record) -> Iterator[str]:
    name = str(record["variant"])
    card = registry.variants().get(name)
    yield f"variant._target_={name}" if card is None and ":" in name else f"variant={name}"
    usual = card.params if card is not None else {}
    for parameter, value in (record.get("params") or {}).items():
        if parameter not in usual or usual[parameter] != value:
            yield f"variant.params.{parameter}={_value(value)}"


def _of_counter(record: Record) -> Iterator[str]:
    """Nothing where the variant's own counter, the trainer itself or a table did it."""
    counting, card = record.get("counting"), registry.variants().get(str(record["variant"]))
    own = card.counting if card is not None and card.counting else registry.default_counter().name
    if counting in (None, BY_ITSELF, _GIVEN) or (counting == own and not record.get("counting_chosen")):
        return
    yield f"counting={counting}" if counting in registry.counters() else f"counting._target_={counting}"


def _of_corpus(record: Record) -> Iterator[str]:
    corpus = record.get("data") or {}
    name, card = str(corpus.get("name")), _card(corpus)
    if card is not None:
        yield f"data={card['name']}"
    else:
        if _is_table(record):
            yield "data=words"
        yield f"data.path={name}"
    yield from _slice(corpus, card or {})
    source = (card or {}).get("source") or {}
    for parameter, value in (corpus.get("generated") or {}).items():
        if source.get(parameter) != value:
            yield f"data.source.{parameter}={_value(value)}"


def _slice(corpus: Record, card: Record) -> Iterator[str]:
    """A slice is found again by where it begins and how long it is: both are ends of documents already."""
    length, whole = corpus.get("bytes"), (card.get("facts") or {}).get("bytes")
    sliced = corpus["skip"] is not None if "skip" in corpus else length != whole
    if length is None or not sliced or corpus.get("generated"):
        return
    if corpus.get("skip"):
        yield f"data.skip={corpus['skip']}"
    if "bytes" not in card or length != parse_bytes(card["bytes"], "bytes"):
        yield f"data.bytes={length}"


def _of_reading(record: Record) -> Iterator[str]:
    pattern, usual = record.get("pattern"), _usual("special_tokens")
    if pattern is not None and pattern != _chosen("pattern"):
        if pattern in _cards("pattern"):
            yield f"pattern={pattern}"
        else:
            yield f"pattern.regex={pattern}"
            if record.get("pattern_partial"):
                yield "pattern.partial=true"
    tokens = record.get("special_tokens")
    if tokens is not None and list(tokens) != usual:
        yield f"special_tokens=[{','.join(map(_listed, tokens))}]"


def _of_run(record: Record) -> Iterator[str]:
    vocab_size, card = record.get("vocab_size"), _card(record.get("data") or {})
    beside = card if card is not None else _data_card("words" if _is_table(record) else "file") or {}
    if vocab_size is not None and vocab_size != beside.get("vocab_size"):
        yield f"vocab_size={vocab_size}"
    if record.get("extend") is not None:
        yield f"extend={record.get('extend_name')}"
    for field in OVERRIDES:
        value = field.value(record)
        if value is not None and value != _usual(field.name):
            yield f"{field.name}={value}"
    yield from _interpreter(record)


def _interpreter(record: Record) -> Iterator[str]:
    """The command of another Python than the one that the harness ran under, as far as its label tells it."""
    label = str(record.get("interpreter") or "")
    python = (record.get("environment") or {}).get("python")
    if not label or python in (None, label):
        return
    told = re.fullmatch(r"(?P<name>\w+) (?P<version>\d+\.\d+)\S*(?: \((?P<place>.+)\))?", label)
    if told is None:
        yield f"interpreter={_value(label)}"
    elif told["place"]:
        yield f"interpreter={_value(told['place'])}"
    else:
        yield f"interpreter=python{told['version']}" if told["name"] == "CPython" else "interpreter=pypy3"


def _of_measuring(record: Record) -> Iterator[str]:
    preset, repeat = record.get("measure"), record.get("repeat")
    usual = _chosen("measure")
    cards = _cards("measure")
    if preset in cards and preset != usual:
        yield f"measure={preset}"
    blocks = cards.get(preset or usual, {}).get("repeat")
    if repeat and repeat != blocks:
        yield f"repeat={repeat}"
    precision, card = record.get("precision") or {}, cards.get(preset or usual, {})
    for name, key in (("asked", "precision"), ("most", "most")):
        if name in precision and precision[name] != card.get(key, 20 if key == "most" else None):
            yield f"measure.{key}={precision[name]:g}"
    limits = record.get("limits") or {}
    if limits.get("wall_seconds") is not None:
        yield f"limits.wall={limits['wall_seconds']:g}"
    # By default it follows what is free, so it is of the cell only where it ended it.
    if record.get("status") == "out_of_memory" and limits.get("memory_bytes") is not None:
        yield f"limits.memory={limits['memory_bytes']}"
    if record.get("affinity"):
        yield f"affinity={_value(record['affinity'])}"


def _of_counting(record: Record) -> str:
    """A counter is measured with any trainer; another program beside the counters is a command itself."""
    counting, parts = str(record.get("counting")), (_of_corpus, _of_reading, _of_run, _of_measuring)
    if counting not in registry.counters() and ":" not in counting:
        return shlex.join([*counting.split(), str((record.get("data") or {}).get("name"))])
    key = "counting" if counting in registry.counters() else "counting._target_"
    overrides = [override for part in parts for override in part(record)]
    return shlex.join(["python", "-m", "harness", f"{key}={counting}", *overrides])


def _card(corpus: Record) -> Record | None:
    """The card of a corpus that is not just a file's name; that of a generated one has no parameters behind it."""
    name = str(corpus.get("name"))
    card = _data_card(name.partition("(")[0] if corpus.get("generated") else name)
    return None if card is None or (card.get("source") or {}).get("kind") in ("path", "words") else card


@functools.cache
def _cards(group: str) -> Mapping[str, Mapping[str, Any]]:
    """A group of conf/, read once: a page may hold hundreds of rows."""
    return registry.cards(group)


@functools.cache
def _data_card(name: str) -> Mapping[str, Any] | None:
    return _cards("data").get(name)


@functools.cache
def _config() -> Mapping[str, Any]:
    return _cards("")["config"]


def _is_table(record: Record) -> bool:
    return record.get("counting") == _GIVEN


def _usual(name: str) -> Any:
    """What conf/config.yaml says of a key."""
    return _config().get(name)


def _chosen(group: str) -> Any:
    """The card of a group that conf/config.yaml takes where none is named."""
    return next(each[group] for each in _config()["defaults"] if isinstance(each, dict) and group in each)


def _value(value: Any) -> str:
    """A value in Hydra's language.

    >>> _value("grown"), _value("true"), _value(True), _value([1, "a b"])
    ('grown', "'true'", 'true', "[1,'a b']")
    """
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{name}:{_value(each)}' for name, each in value.items())}}}"
    return json.dumps(value)


def _listed(token: str) -> str:
    """A special token as an item of a list: in quotes of the kind that it does not hold."""
    quote = '"' if "'" in token else "'"
    return f"{quote}{token}{quote}" if re.search(r"[,'\"\[\]]|\A\s|\s\Z", token) else token
