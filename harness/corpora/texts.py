"""The texts that commands take without a configuration: by a data set's name, or by a path of
whatever data.path takes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.common.cards import DataCard, fitted
from harness.common.errors import Refusal
from harness.common.progress import bar
from harness.common.values import one_of, parse_value
from harness.corpora import inputs_of, prepare
from harness.corpora.cards import card_of
from harness.corpora.files import CorpusFile, is_slice
from harness.corpora.formats import Form
from harness.corpora.local import Documents, documents_of
from harness.corpora.rows import RowReading

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def text(
    source: Source,
    settings: Sequence[str] = (),
    special_tokens: Sequence[str] | None = None,
    errors: str | None = None,
) -> CorpusFile:
    """The one plain file of a data set or of a path, as `python -m harness` reads it.

    `settings` are data.NAME=VALUE, and errors=HOW if no `errors` are given: `strict` or `replace`.
    Several documents are joined by the first of the special tokens, by default those of the card.
    Raises Refusal for a table of words, and as `prepare` does.
    """
    card, errors = card_named(source, settings, errors)
    tokens = card.special_tokens if special_tokens is None else special_tokens
    file = prepare(card, tokens, errors)
    if file.table:
        raise Refusal(f"{file.name} is a table of words, not a text; pass a text")
    return file


def card_named(
    source: Source, settings: Sequence[str], errors: str | None = None
) -> tuple[DataCard, str]:
    """The card of a data set, or of files; an existing file of a data set's name wins.

    With it comes what becomes of rows that are not UTF-8: `errors`, or what the settings say.
    """
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else list(map(str, source))
    card = card_of(path) if isinstance(path, str) and is_name(path) else None
    content = msgspec.to_builtins(card or replace(card_of("file"), path=path))
    if isinstance(settings, str | Mapping) or not all(isinstance(one, str) for one in settings):
        raise TypeError(f"settings are {settings!r}, not a list; pass ['data.NAME=VALUE']")

    chosen = errors or "strict"
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key == "errors" and errors is None:
            one_of("errors", value, ["strict", "replace"])
            chosen = value
            continue

        if not equals or not key.startswith("data."):
            raise Refusal(f"--set {setting!r} is not a setting of a text; write data.NAME=VALUE")
        above, _, name = key.removeprefix("data.").rpartition(".")
        part = content["source"] if above == "source" else content
        part[name] = parse_value(value, f"--set {key}")

    return fitted(content, DataCard, "--set data.", "correct this value"), chosen


def named_inputs(source: Source, settings: Sequence[str] = ()) -> list[Path]:
    """The files and whole folders that a source names."""
    card, _ = card_named(source, settings)
    return inputs_of(card)


def is_name(text: str) -> bool:
    """Whether a text is a data set's name, and not a path."""
    return re.fullmatch(r"\w[\w-]{,99}", text) is not None and not os.path.lexists(text)


def blocks(file: CorpusFile) -> Iterator[bytes]:
    """A plain text in blocks. Raises Refusal if it cannot be read."""
    return chain.from_iterable(plain(file).read())


def plain(file: CorpusFile) -> Documents:
    return Documents(file.name, [file.path], [Form()], RowReading())


@contextlib.contextmanager
def documents(
    source: Source, settings: Sequence[str] = (), *, progress: bool = False
) -> Iterator[Iterator[Iterator[bytes]]]:
    """The documents of a data set or of a path, with a bar if `progress` is true.

    Files are not copied, and memory is that of a block or of a row. Raises Refusal as `text` does.
    """
    card, errors = card_named(source, settings)
    is_made = card.path is None or is_slice(card)
    found = plain(text(source, settings)) if is_made else documents_of(card, ["any"], errors)
    shown = bar(f"encoding {found.name}", found.size(), "bytes")
    with shown if progress else contextlib.nullcontext[Any]() as show:
        yield found.read(show)
    found.reading.report()
