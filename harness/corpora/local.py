"""data.path: a file, several, a folder, a pattern of names, standard input; all become one plain file.

An existing file or folder wins over every other reading of the same text, so that a file may be called `[a].txt`.
"""

from __future__ import annotations

import atexit
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import check_room
from harness.common.progress import bar
from harness.common.registry import split_list
from harness.corpora.files import BLOCK_BYTES, Part, check_readable, hold_or_refuse, state_of
from harness.corpora.formats import BEGINNINGS, COLUMN, READERS, WHOLE, Between, blocks_of, kind_of, texts_of

STANDARD_INPUT = "-"


def local_corpus(card: Mapping[str, Any], special_tokens: Sequence[str]) -> tuple[str, Path, tuple[Part, ...]]:
    """The name of what data.path names, one plain file of it, and the parts of that file.

    A single plain file is used in place. Anything else is joined into one, cached until a member changes: each document
    (a file, or a row of Parquet or JSON Lines) is followed by the separator unless it ends with it, so that the words
    of the corpus are those of its documents. Empty documents add nothing.
    """
    path = card["path"]
    if path == STANDARD_INPUT:
        return "stdin", *spooled()
    members = members_of(path)
    if not members:
        raise Refusal("data.path=[] is empty; set data.path=[A,B]")
    for member in members:
        check_readable(member)
    tables = [member for member in members if kind_of(member)]
    column = card.get("column")
    if column is not None and not tables:
        raise Refusal(f"data.column={column}, but {path} is plain text; columns are in .parquet and .jsonl files")
    if len(members) == 1 and not tables and members[0].suffix.lower() not in READERS:
        return name_of(path, members), members[0], ()
    several = len(members) > 1 or bool(tables)
    separator = separator_of(card, special_tokens, len(members)) if several else ""
    recipe = Recipe(tuple(members), separator, column or COLUMN)
    return name_of(path, members), *assemble(recipe, name_of(path, members))


def members_of(path: Any) -> list[Path]:
    """The files that `path` names, in order; those of a folder or pattern sorted by their path.

    A folder means all plain files in it at any depth, except hidden ones and those in hidden folders; links to folders
    are not followed. A pattern is a shell's, with `**` for folders at any depth.
    """
    if isinstance(path, list):
        return [member for name in path for member in members_of(name)]
    text = str(path)
    if not text:
        raise Refusal("data.path is empty; set data.path=FILE")
    if text == STANDARD_INPUT:
        raise Refusal("standard input cannot be joined with files; set data.path=- alone, or ./- for a file named -")
    if is_url(text) and not os.path.lexists(text):
        raise Refusal(f"{text} is not on this machine; counting=dask counts it where it is, or download it first")
    if os.path.isdir(text):  # noqa: PTH112 - a name with a byte of 0 is an error to pathlib
        return files_below(Path(text))
    if is_list(text):
        return [member for name in split_list(text, "data.path") for member in members_of(name)]
    return matching(text) if re.search(r"[*?[]", text) and not os.path.lexists(text) else [Path(text)]


def files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise Refusal(f"cannot read {error.filename} ({reason(error)})", UNMEASURED) from error

    files = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in names if not name.startswith("."))
        files += [path for path in paths if path.is_file()]
    if not files:
        raise Refusal(f"{folder} has no files; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def matching(pattern: str) -> list[Path]:
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
    if not paths:
        raise Refusal(f"{pattern} not found, and no file matches it as a pattern; check data.path", UNMEASURED)
    return [Path(path) for path in paths]


def separator_of(card: Mapping[str, Any], special_tokens: Sequence[str], number: int) -> str:
    separator = card.get("separator")
    if separator is not None:
        try:
            separator.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"data.separator={separator!r} is not UTF-8; write it in a UTF-8 terminal") from error
        return str(separator)
    if special_tokens:
        return special_tokens[0]
    what = f"these {number} files" if number > 1 else "its rows"
    raise Refusal(
        f"{what} are joined by the first special token, and special_tokens is empty; add one, or set "
        "data.separator=TEXT (which may be empty)"
    )


def name_of(path: Any, members: Sequence[Path]) -> str:
    """A short name for records, without folders; a file's name need not be UTF-8, but a record is.

    >>> name_of("texts/*.txt", [Path("texts/a.txt"), Path("texts/b.txt")])
    '*.txt'
    >>> name_of("[texts/a.txt,b.txt]", [Path("texts/a.txt"), Path("b.txt")])
    'a.txt+1'
    """
    if len(members) == 1:
        name = members[0].name
    elif isinstance(path, list) or is_list(path):
        name = f"{members[0].name}+{len(members) - 1}"
    else:
        name = Path(path).resolve().name
    return os.fsencode(name or "/").decode(errors="replace")


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not os.path.lexists(text)


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


# Several files as one


@dataclass(frozen=True)
class Recipe:
    """What an assembled corpus depends on."""

    members: tuple[Path, ...]
    separator: str
    column: str

    def key(self) -> str:
        states = [[str(member), state_of(member)] for member in self.members]
        return hashlib.sha256(json.dumps([states, self.separator, self.column]).encode()).hexdigest()[:32]


def assemble(recipe: Recipe, name: str) -> tuple[Path, tuple[Part, ...]]:
    """The one file of a recipe and its parts, made again if a member has changed.

    Raises Refusal, and leaves nothing, if a member cannot be read or changes in the meantime, or the cache has no room.
    """
    folder = files.cache_folder("assembled") / recipe.key()
    if not folder.exists():
        sizes = [member.stat().st_size for member in recipe.members]
        # Compressed files need more, but do not reliably say how much.
        check_room(folder.parent, sum(sizes), name)
        with files.placing(folder) as temporary, bar(f"reading {name}", sum(sizes), "bytes") as show:
            temporary.mkdir()
            parts = write(recipe, temporary / "text", show)
            (temporary / "parts.json").write_text(json.dumps(parts))
        files.report_copy(folder, name)
    hold_or_refuse(folder, name)
    return folder / "text", tuple(Part(*part) for part in json.loads((folder / "parts.json").read_text()))


def write(recipe: Recipe, place: Path, show: Callable[[int], None]) -> list[Part]:
    parts: list[Part] = []
    end, before = recipe.separator.encode(), 0
    with place.open("wb") as text:
        for member in recipe.members:
            state = state_of(member)
            parts.append(Part(text.tell(), str(member), 0, made_of(member)))
            for document in documents_in(member, recipe.column, lambda read: show(before + read)):  # noqa: B023
                append(text, document, end)
            if state_of(member) != state:
                raise Refusal(f"{member} was changed while it was read; run the same again", UNMEASURED)
            before += member.stat().st_size
    return parts


def documents_in(
    member: Path, column: str, show: Callable[[int], None], between: Between = WHOLE
) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or those between two bytes, or all of it."""
    if kind_of(member):
        yield from (iter([text.encode()]) for text in texts_of(member, column, show, between))
    else:
        yield blocks_of(member, show)


def append(text: BinaryIO, document: Iterator[bytes], end: bytes) -> None:
    """Write a document, then the separator unless the document ends with it or is empty."""
    tail = b""
    for block in document:
        text.write(block)
        tail = (tail + block)[-len(end) :] if end else b""
    if tail and tail != end:
        text.write(end)


def made_of(member: Path) -> str:
    """What an offset in this member's part counts from, if not from the start of the file itself."""
    if kind_of(member):
        return " of the texts in it"
    return " of what is unpacked" if member.suffix.lower() in READERS else ""


# Standard input


@functools.cache
def spooled() -> tuple[Path, tuple[Part, ...]]:
    """The file that standard input was written to, unpacked if it was compressed; removed when this process ends.

    It is in the cache, where there is room for corpora, and not with temporary files, which may be in memory.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise Refusal("data.path=- reads standard input, and nothing is piped into it; run COMMAND | ... data.path=-")
    folder = Path(tempfile.mkdtemp(prefix="stdin-", dir=files.cache_folder("spool")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = folder / "standard input"
    try:
        with text.open("wb") as file, bar("reading standard input", 0, "bytes") as show:
            while block := sys.stdin.buffer.read(BLOCK_BYTES):
                file.write(block)
                show(file.tell())
        return unpacked(text), (Part(0, "standard input"),)
    except OSError as error:
        raise Refusal(
            f"cannot keep standard input in {folder.parent} ({reason(error)}); set {files.CACHE_VARIABLE} to a folder "
            "with room for it",
            UNMEASURED,
        ) from error


def unpacked(text: Path) -> Path:
    """The plain text of what was piped in, recognized by its first bytes."""
    with text.open("rb") as file:
        head = file.read(max(map(len, BEGINNINGS)))
    kind = next((kind for beginning, kind in BEGINNINGS.items() if head.startswith(beginning)), None)
    if kind is None:
        return text
    packed = text.rename(text.with_suffix(kind))
    with text.open("wb") as file, bar("unpacking standard input", packed.stat().st_size, "bytes") as show:
        try:
            file.writelines(blocks_of(packed, show))
        except Refusal as refusal:
            raise Refusal(f"{refusal}".replace(str(packed), "standard input"), refusal.exit_code) from refusal
    packed.unlink()
    return text
