"""data.path: a file, several, a folder, a pattern of names, standard input; all become one plain
file.

An existing file or folder wins over every other reading of the same text, so that a file may be
called `[a].txt`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, TypeVar

from harness.common import cache, files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.progress import Advance, bar
from harness.common.values import split_list
from harness.corpora.files import BLOCK_BYTES, TEXT, Part, check_readable, state_of
from harness.corpora.formats import (
    HEAD_BYTES,
    Form,
    documents_in,
    form_of,
    is_url,
    report_resembling,
)
from harness.corpora.rows import RowReading

# "/dev/stdin" may be followed by nothing, and each of them is compared with a path that ends in a /
STREAMS = ("/dev/stdin/", "/dev/fd/", "/proc/")
SPARK = r"/_[^/.]*$|/(_delta_log|_spark_metadata|_temporary)/"
"""What Spark and its like leave beside their data: _SUCCESS, _committed_1, logs."""
DATASETS = r"/(dataset_info|dataset_dict|state)\.json$|/cache-[^/]*\.arrow$"
"""What datasets leaves beside Arrow: descriptions, and results of `map`."""
File = TypeVar("File")


@dataclass
class Documents:
    """The documents of a text, one after another, each as blocks of bytes, read as they are asked
    for.

    A row is a document, and so is a file without rows. `separator` joins them into one text, nothing
    if there is one document. `name` is for records, the end of `whole_path`. `done` counts what was
    read, of compressed files in their own bytes.
    """

    name: str
    members: Sequence[Any]
    forms: Sequence[Form]
    reading: RowReading
    separator: str = ""
    whole_path: str = ""
    done: int = 0
    show: Advance = lambda *_: None

    def __iter__(self) -> Iterator[Iterator[bytes]]:
        states = self.states()
        for member, form in zip(self.members, self.forms, strict=True):
            yield from self.of(member, form)
        self.check_unchanged(states)

    def of(self, member: Any, form: Form) -> Iterator[Iterator[bytes]]:
        """The documents of one file."""
        before = self.done
        with member.open("rb") as file:
            for document in documents_in(member, file, self.reading, form):
                yield self.counted(document, file, before)

    def counted(self, document: Iterator[bytes], file: IO[bytes], before: int) -> Iterator[bytes]:
        is_seekable = file.seekable()
        try:
            for block in document:
                yield block
                self.done = before + file.tell() if is_seekable else self.done + len(block)
                self.show(self.done)
        except OSError as error:
            raise Refusal(
                f"cannot read {self.name} ({reason(error)}); make it readable", UNMEASURED
            ) from error

    def size(self) -> int:
        """The bytes of all files; 0 if that is unknown."""
        return sum(member.stat().st_size for member in self.members if isinstance(member, Path))

    def states(self) -> list[tuple[str, str]]:
        """Changes when a file does."""
        return [(str(path), state_of(path)) for path in self.members if isinstance(path, Path)]

    def check_unchanged(self, states: list[tuple[str, str]]) -> None:
        """Raise Refusal if a file has another state now."""
        if self.states() != states:
            what = f"{self.name} was changed while it was read"
            raise Refusal(f"{what}; run the same again", UNMEASURED)


class StandardInput:
    """Standard input as a file whose start can be read twice, to see what it is. Raises Refusal if
    nothing is piped into it.
    """

    def __init__(self) -> None:
        if sys.stdin is None or sys.stdin.isatty():
            raise Refusal("- reads standard input, and nothing is piped into it; run COMMAND | ...")
        self.name = "standard input"
        self.head = sys.stdin.buffer.read(HEAD_BYTES)

    def __str__(self) -> str:
        return self.name

    def open(self, _: str) -> BinaryIO:
        """Open it at its start, as often as nobody has read more than its first bytes."""
        return io.BufferedReader(FromStart(self.head))


class FromStart(io.RawIOBase):
    """Standard input behind its first bytes, which were read before."""

    def __init__(self, head: bytes) -> None:
        self.left = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.left[: len(buffer)] or sys.stdin.buffer.read(len(buffer))
        self.left = self.left[len(block) :]
        buffer[: len(block)] = block
        return len(block)


def local_corpus(
    card: Mapping[str, Any], special_tokens: Sequence[str], errors: str | None = "strict"
) -> tuple[str, Path, tuple[Part, ...], str]:
    """The name of what data.path names, one plain file of it, the parts of that file, and the whole
    path that ends with the name.

    A single plain file is used in place. Anything else is joined into one, cached until a member
    changes: each document (a file, or a row) is followed by the first special token unless it ends
    with it or is empty.
    """
    is_piped = card["path"] == "-"
    find = (lambda _: [spooled("-")]) if is_piped else None
    text = documents_of(card, special_tokens, errors, find)
    parts: tuple[Part, ...] = ()
    if is_piped:
        text.name, text.whole_path, parts = "stdin", "", (Part(0, "standard input"),)
    if not text.separator and text.forms[0].is_plain:
        return text.name, text.members[0], parts, text.whole_path
    return text.name, *assemble(text), text.whole_path


def documents_of(
    card: Mapping[str, Any],
    special_tokens: Sequence[str],
    errors: str | None = "strict",
    find: Callable[[Any], list[Any]] | None = None,
) -> Documents:
    """The files that data.path names, or that `find` finds for it. Raises Refusal if one cannot be
    read, for a column of plain text, and for several documents without a special token.
    """
    path = card["path"]
    members = (find or members_of)(path)
    reading = RowReading(card.get("column"), bool(card.get("skip_nulls")), errors)
    forms = [form_of(member, reading.name) for member in members]
    report_resembling(members, forms)
    separator = separator_of(path, forms, reading, special_tokens)
    name, whole_path = name_of(path, members), path_text(path, members)
    return Documents(name, members, forms, reading, separator, whole_path)


def members_of(path: Any, behind: Callable[[str], list[Any]] | None = None) -> list[Any]:
    """The files that `path` names, in order. Raises Refusal if there are none, or one cannot be
    read.
    """
    members = named_files(path, behind)
    for member in members:
        if isinstance(member, Path):
            check_readable(member)
    return members


def named_files(path: Any, behind: Callable[[str], list[Any]] | None) -> list[Any]:
    """The files that `path` names, in order; those of a folder or pattern sorted by their path, of
    a URL by `behind`.

    A folder means all plain files in it at any depth, except hidden ones and those in hidden
    folders; links to folders are not followed. A pattern is a shell's, with `**` for folders at any
    depth.
    """
    if not path:
        raise Refusal("data.path is empty; set data.path=FILE or 'data.path=[A,B]'")
    if isinstance(path, list):
        return [member for name in path for member in named_files(name, behind)]
    path = str(path)
    expanded = path if os.path.lexists(path) else os.path.expanduser(path)  # noqa: PTH111
    if os.path.isdir(expanded):  # noqa: PTH112 - a long list is an error to pathlib
        return files_below(Path(expanded))
    if os.path.lexists(expanded):
        return [spooled(expanded) if is_stream(expanded) else Path(expanded)]

    if path == "-":
        raise Refusal("standard input cannot be joined with files; set data.path=- alone")
    if is_url(path):
        if behind is None:
            raise Refusal(
                f"{path} is not on this machine; counting=dask counts it where it is, or download it first"
            )
        return behind(path)
    if is_list(path):
        return named_files(split_list(path, "data.path"), behind)

    if not re.search(r"[*?[]", expanded):
        return [files.path_named(expanded)]
    found = sorted(path for path in glob.glob(expanded, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
    paths = found if PurePath(expanded).name.startswith("_") else without_markers(found)
    if not paths:
        raise Refusal(
            f"{expanded} not found, and no file matches it as a pattern; check data.path",
            UNMEASURED,
        )
    return [spooled(path) if is_stream(path) else Path(path) for path in paths]


def named_places(path: Any) -> list[Path]:
    """What `path` may name on this machine: files, and folders that are read whole."""
    names = split_list(path, "data.path") if isinstance(path, str) and is_list(path) else path
    places: list[str] = []
    for name in map(str, names if isinstance(names, list) else [names]):
        expanded = os.path.expanduser(name)  # noqa: PTH111
        matching = glob.glob(expanded, recursive=True)  # noqa: PTH207
        places += [name, expanded, *filter(os.path.isfile, matching)]
    return list(map(Path, places))


def is_stream(path: str | Path) -> bool:
    """Whether a path means another file, or nothing, in another process: /dev/stdin, /dev/fd/N and
    what is below /proc.
    """
    forms = os.path.abspath(path), os.path.realpath(path)  # noqa: PTH100
    return any(f"{form}/".startswith(STREAMS) for form in forms)


def files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise Refusal(
            f"cannot read {error.filename} ({reason(error)}); name files by a pattern", UNMEASURED
        ) from error

    if str(folder.resolve()) in ("/", "/dev") or is_stream(folder):
        raise Refusal(
            f"{folder} is not a folder of texts; set data.path to one, or to a pattern", UNMEASURED
        )
    files = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(parent, name) for name in names if not name.startswith("."))
        files += [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - of a link that may not be followed
    files = without_markers(files)
    if not files:
        raise Refusal(f"{folder} has no files; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def without_markers(paths: Sequence[File]) -> list[File]:
    """The files of a folder without those that programs leave beside their data.

    >>> without_markers(["t/part-0", "t/_SUCCESS", "t/__init__.py", "t/_delta_log/0.json"])
    ['t/part-0', 't/__init__.py']
    >>> without_markers(["t/data.arrow", "t/state.json"]), without_markers(["t/state.json"])
    (['t/data.arrow'], ['t/state.json'])
    """
    has_arrow = any(str(path).endswith(".arrow") for path in paths)
    markers = re.compile("|".join([SPARK, DATASETS] if has_arrow else [SPARK]))
    return [path for path in paths if not markers.search(f"/{path}")]


def separator_of(
    path: Any, forms: Sequence[Form], reading: RowReading, special_tokens: Sequence[str]
) -> str:
    """What the documents of these files are joined by; nothing if there is one text.

    Raises Refusal for a column of plain text, and for several documents without a special token.
    """
    has_rows = any(form.rows is not None for form in forms)
    if reading.column is not None and not has_rows:
        what = f"data.column={reading.column}, but {path} is plain text"
        raise Refusal(f"{what}; Parquet, Arrow, JSON Lines and CSV have columns")
    if len(forms) == 1 and not has_rows:
        return ""
    if not special_tokens:
        what = f"these {len(forms)} files" if len(forms) > 1 else "its rows"
        advice = "add one, or join them yourself: COMMAND | ... data.path=-"
        raise Refusal(
            f"{what} are joined by the first special token, and special_tokens is empty; {advice}"
        )
    return special_tokens[0]


def name_of(path: Any, members: Sequence[Any]) -> str:
    """A short name for records, without the folders above; a file's name need not be UTF-8, but a
    record is. A pattern is named with the folder that it looks into.

    >>> name_of("[texts/a.txt,b.txt]", [Path("texts/a.txt"), Path("b.txt")])
    'a.txt+1'
    >>> name_of("/home/me/texts/**/*.txt", [Path("a.txt"), Path("b.txt")])
    'texts/**/*.txt'
    """
    parts = PurePath(path_text(path, members)).parts
    first = len(parts)
    if len(members) > 1 and not (isinstance(path, list) or is_list(path)):
        is_pattern = [re.search("[*?[]", part) is not None for part in parts]
        first = is_pattern.index(True) if True in is_pattern else first
    return "/".join(parts[first - 1 :])


def path_text(path: Any, members: Sequence[Any]) -> str:
    """The whole path of a file, a folder or a pattern; of a list that of the first, and how many
    others there are.
    """
    if len(members) == 1 or isinstance(path, list) or is_list(path):
        others = f"+{len(members) - 1}" if len(members) > 1 else ""
        whole_path = f"{Path(str(members[0])).absolute()}{others}"
    else:
        whole_path = str(Path(path).resolve())
    return os.fsencode(whole_path).decode(errors="replace")


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not os.path.lexists(text)


def assemble(documents: Documents) -> tuple[Path, tuple[Part, ...]]:
    """One file of these files and its parts, made again if one of them has changed.

    Raises Refusal, and leaves nothing, if one cannot be read or the cache has no room.
    """
    states = documents.states()

    def make(folder: Path) -> list[Any]:
        parts = join(documents, folder / TEXT)
        documents.check_unchanged(states)
        return [documents.reading.skipped, parts]

    reading = documents.reading
    how = reading.column, reading.skip_nulls, reading.errors == "replace"
    key = cache.key_of(states, documents.separator, how)
    entry = cache.kept("texts", key, make)
    reading.skipped, parts = entry.facts
    reading.report()
    return entry.path / TEXT, tuple(Part(*part) for part in parts)


def join(documents: Documents, path: Path) -> list[tuple[int, str]]:
    """Write the documents of all files into one; returns where each file starts, and its name."""
    end, parts = documents.separator.encode(), []
    label = f"reading {documents.name}"
    with bar(label, documents.size(), "bytes") as documents.show, path.open("wb") as text:
        for member, form in zip(documents.members, documents.forms, strict=True):
            parts.append((text.tell(), f"{member}{form.remark}"))
            for document in documents.of(member, form):
                append(text, document, end)
    return parts


def append(text: BinaryIO, document: Iterator[bytes], end: bytes) -> int:
    """Write a document, then the separator unless the document ends with it or is empty; returns
    the number of bytes.
    """
    size, tail = 0, b""
    for block in document:
        size += text.write(block)
        tail = (tail + block)[-len(end) :] if end else b""
    if tail and tail != end:
        size += text.write(end)
    return size


@functools.cache
def spooled(path: str) -> Path:
    """The file that standard input (`-`) or another stream of this process was written to.

    It is in the cache, where there is room, and removed when the process ends. Raises Refusal if
    nothing is piped into `-`.
    """
    if path == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise Refusal(
            "data.path=- reads standard input, and nothing is piped into it; run COMMAND | ... data.path=-"
        )

    name = "standard input" if path == "-" else Path(path).name
    folder = Path(tempfile.mkdtemp(prefix="stdin-", dir=cache.folder("texts")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with (
        contextlib.nullcontext(sys.stdin.buffer)
        if path == "-"
        else Path(path).open("rb") as stream,
        (folder / name).open("wb") as file,
    ):
        shutil.copyfileobj(stream, file, BLOCK_BYTES)
    return folder / name
