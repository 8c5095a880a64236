"""Data sets: from a card to one plain file on this machine, verified and sliced.

A card (conf/data/NAME.yaml) gives a corpus its source and facts. The checksum of a card holds
wherever the file is. A run downloads nothing; `python -m harness.corpora fetch NAME` does.

In: a card of conf/data/, or what data.path names. Out: a CorpusFile: path, digest, size, and where
its members are; or the documents themselves, one after another.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import structs

from harness.common import cache, registry
from harness.common.cards import (
    Addressed,
    DataCard,
    Facts,
    Generated,
    Library,
    Packaged,
    RareWords,
    Yours,
    YourWords,
    ZipfWords,
    fitted,
)
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.values import one_of, parse_value
from harness.corpora.files import (
    TEXT,
    CorpusFile,
    Part,
    card_slice,
    difference,
    digest_of,
    is_slice,
)
from harness.corpora.formats import Form, form_of, unpacking
from harness.corpora.local import (
    Documents,
    documents_of,
    local_corpus,
    members_of,
    name_of,
    named_places,
    path_text,
)
from harness.corpora.rows import NoColumn, RowReading
from harness.worker import exchange
from variants.contract import WordCounts

__all__ = ["CorpusFile"]

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# of stdlib
LEFT_OUT = {
    "test",
    "tests",
    "idle_test",
    "idlelib_test",
    "__pycache__",
    "site-packages",
    "dist-packages",
}


def prepare(card: DataCard, special_tokens: Sequence[str], errors: str = "strict") -> CorpusFile:
    """Find or make the file of a card, verify it, and cut the slice that its `bytes`, `skip`,
    `documents` select.

    Raises Refusal if it is missing (with its place and how to get it), unreadable, or differs from
    its card.
    """
    card = with_changes_named(card)
    parameters = None
    if card.path is None and isinstance(card.source, Generated):
        parameters = msgspec.to_builtins(card.source)
        parameters = {"generator": parameters.pop("kind"), **parameters}
    if is_table(card):
        return replace(word_table(card), parameters=parameters)

    name, whole_path = card.name, ""
    parts: tuple[Part, ...] = ()
    if card.path is None:
        path = find(card)
    else:
        text, path, parts = local_corpus(card, special_tokens, errors)
        name, whole_path = name if card.facts.sha256 else text.name, text.whole_path
    whole = CorpusFile(
        name,
        path,
        path.stat().st_size,
        check_facts(path, card),
        parameters=parameters,
        parts=parts,
        whole_path=whole_path,
        facts=counted_facts(card, special_tokens),
    )
    return card_slice(whole, card, special_tokens)


def inputs_of(card: DataCard) -> list[Path]:
    """The files of this machine that a card reads, and the folders that it reads whole: no output
    may go there.
    """
    if card.path is not None:
        return named_places(card.path)
    if not isinstance(card.source, Addressed | Packaged):
        return []
    return [cache.place(fetched_kind(card.name), card.name)]


def is_table(card: DataCard) -> bool:
    """Whether a card is a table of words that are counted already, from a generator or from a
    file.
    """
    return isinstance(card.source, YourWords | ZipfWords | RareWords)


def find(card: DataCard) -> Path:
    """The file of a card, generated if missing. Raises Refusal if it is not on this machine."""
    source, name = card.source, card.name
    if isinstance(source, Library):
        return standard_library()
    if isinstance(source, Generated):
        from harness.corpora.random_text import text_file  # late: NumPy is slow to import

        return text_file(card)
    if not isinstance(source, Addressed | Packaged):
        raise Refusal(f"data={name} needs data.path=FILE")

    entry = cache.find(fetched_kind(name), name)
    if entry is None:
        place = cache.place(fetched_kind(name), name)
        advice = f"get it with python -m harness.corpora fetch {name}, or set data.path=FILE where you have it"
        raise Refusal(f"data={name}: not found in {place}, or damaged; {advice}", UNMEASURED)
    return Path(entry.path, source.file)


# Cards


def card_of(name: str) -> DataCard:
    """The card of this name, even if others are invalid. Raises Refusal, with the existing names,
    if it is missing.
    """
    one_of("data set", name, registry.names("data"))
    return msgspec.convert(registry.card("data", name), DataCard)


def fetched_kind(name: str) -> str:
    """The folder of the cache that `fetch` puts the file of a card into; a card of yours cannot
    replace the file of another.
    """
    return "corpora/yours" if registry.is_yours("data", name) else "corpora"


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they
    change.
    """
    root, paths = Path(sysconfig.get_paths()["stdlib"]), []
    for folder, folders, names in os.walk(root):
        folders[:] = set(folders) - LEFT_OUT
        paths += [Path(folder, name) for name in names if name.endswith(".py")]
    paths = sorted(filter(Path.is_file, paths), key=Path.as_posix)

    def make(folder: Path) -> None:
        with (folder / TEXT).open("wb") as file:
            for path in paths:
                with contextlib.suppress(UnicodeDecodeError):
                    file.write(path.read_bytes().decode().encode() + b"<|endoftext|>")

    key = cache.key_of("stdlib", list(map(exchange.file_state, paths)))
    return cache.kept("corpora", key, make).path / TEXT


def state(card: DataCard) -> str:
    """Whether the file is here: yes, no, on use (made when a run needs it), or yours."""
    if isinstance(card.source, Addressed | Packaged):
        return "no" if cache.find(fetched_kind(card.name), card.name) is None else "yes"
    return "yours" if isinstance(card.source, Yours) else "on use"


def with_changes_named(card: DataCard) -> DataCard:
    """The card; with overridden generator parameters, a card named by them and without facts."""
    if not isinstance(card.source, Generated) or card.name not in registry.names("data"):
        return card
    original = card_of(card.name).source
    changed = [
        f"{name}={value}"
        for name, value in msgspec.to_builtins(card.source).items()
        if getattr(original, name, value) != value
    ]
    if not changed:
        return card
    return structs.replace(card, name=f"{card.name}({','.join(changed)})", facts=Facts())


def check_facts(path: Path, card: DataCard) -> str:
    """Return the digest of a file. Raises Refusal if its size or digest differs from the card's."""
    digest = digest_of(path)
    if wrong := difference(card.facts, {"bytes": path.stat().st_size, "sha256": digest}):
        advice = "it is another file or damaged; remove it to get it again, or use it as your own file with data=file"
        raise Refusal(f"data={card.name}: {path} {wrong}; {advice}", UNMEASURED)
    return digest


def counted_facts(card: DataCard, special_tokens: Sequence[str]) -> Facts:
    """The facts of the count, if they hold for these special tokens."""
    if list(special_tokens) != card.special_tokens:
        return Facts()
    return structs.replace(card.facts, bytes=None, sha256=None)


def counted_otherwise(
    file: CorpusFile, pattern: str, manifest: Mapping[str, Any], documents: int | None
) -> str | None:
    """A sentence if the counts differ from the card's, which hold for the pattern gpt2; else
    None.
    """
    wrong = difference(file.facts, {**manifest, "documents": documents})
    if pattern != "gpt2" or not wrong:
        return None
    return f"data={file.name} {wrong}; it is another text, or fix the facts of the card"


# The texts that commands take without a configuration: by a data set's name, or by a path of whatever
# data.path takes


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
    content = msgspec.to_builtins(card or structs.replace(card_of("file"), path=path))
    if isinstance(settings, str):
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


# Tables of words that are counted already, generated or from files, as word stores of the cache. Files
# are Parquet, JSON Lines and CSV with the columns `word` (text, in Parquet also binary) and `count`
# (whole numbers), and what `python -m harness.corpora counts --table` writes. A count of 0 drops a word,
# and the counts of repeated words are added.

Item = tuple[bytes, int]
NEEDED = (
    "it needs Parquet, JSON Lines or CSV with the columns word (binary or text) and count (whole numbers), "
    "or what python -m harness.corpora counts --table writes"
)


def word_table(card: DataCard) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the
    card.
    """
    name = card.name
    for slicing in ("bytes", "skip", "documents"):
        if getattr(card, slicing) is not None:
            raise Refusal(
                f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it"
            )

    items: Iterator[Item]
    state: list[Any]
    if card.path is not None:
        paths = members_of(card.path)
        if isinstance(card.source, YourWords):
            name = name_of(path_text(card.path, paths))
        state = list(map(digest_of, paths))
        items = chain.from_iterable(map(items_in, paths))
    elif isinstance(card.source, Generated):
        from harness.corpora import random_text  # late: NumPy is slow to import

        state = [random_text.VERSION, msgspec.to_builtins(card.source)]
        items = random_text.generated(card.source)
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")

    def make(folder: Path) -> dict[str, Any]:
        try:
            return exchange.write_words(folder, WordCounts.from_items(items))
        except ValueError as error:
            raise Refusal(f"{name}: {error}", UNMEASURED) from error

    entry = cache.kept("counts", cache.key_of(exchange.FORMAT, *state), make)
    word_counts, manifest = exchange.read_words(entry.path)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card.facts, actual):
        raise Refusal(
            f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED
        )
    return CorpusFile(name, entry.path, actual["bytes"], manifest["sha256"], table=True)


def items_in(path: Path) -> Iterator[Item]:
    """The words of a file with their counts. Raises Refusal if it is not a table of words."""
    form, place = form_of(path, "word"), "its columns"
    with path.open("rb") as file, unpacking(path, file, form.packed) as content:
        if form.rows is None:
            yield from line_items(path, content)
            return
        try:
            for position, row in form.rows(path, content, RowReading("word", others=["count"])):
                place = position
                word, count = row["word"], str(row["count"])
                whole = int(count.removesuffix(".0"))  # of SQL, whose sums may be floating
                yield word if isinstance(word, bytes) else word.encode(), whole
        except (AttributeError, KeyError, TypeError, ValueError, NoColumn) as error:
            raise not_a_table(path, place) from error


def line_items(path: Path, file: IO[bytes]) -> Iterator[Item]:
    """The lines of `counts --table`: a count, and the word in hexadecimal digits.

    >>> import io
    >>> list(line_items(Path("w"), io.BytesIO(b"5 6c6f77\\n2 6572\\n")))
    [(b'low', 5), (b'er', 2)]
    """
    for number, line in enumerate(file, 1):
        match = re.fullmatch(rb"(\d+) ((?:[0-9a-f]{2})+)\r?\n?", line)
        if match is None:
            raise not_a_table(path, f"line {number}")
        yield bytes.fromhex(match[2].decode()), int(match[1])


def not_a_table(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} is not a table of words ({why}); {NEEDED}", UNMEASURED)
