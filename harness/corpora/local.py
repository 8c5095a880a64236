"""data.path: a file, several, a folder, a pattern of names, standard input; all become one plain
file.

An existing file or folder wins over every other reading of the same text, so that a file may be
called `[a].txt`.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, TypeVar

from harness.common import cache, files
from harness.common.cards import DataCard
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.printing import well_formed
from harness.common.progress import Advance, bar
from harness.common.values import split_list
from harness.corpora.files import BLOCK_BYTES, CHANGED, TEXT, Part, check_readable
from harness.corpora.formats import (
    Form,
    documents_in,
    form_of,
    is_url,
    report_resembling,
)
from harness.corpora.rows import RowReading
from harness.worker.exchange import file_state

SPARK = r"/_[^/.]*$|/(_delta_log|_spark_metadata|_temporary)/"
"""What Spark and its like leave beside their data: _SUCCESS, _committed_1, logs."""
DATASETS = r"/(dataset_info|dataset_dict|state)\.json$|/cache-[^/]*\.arrow$"
"""What datasets leaves beside Arrow: descriptions, and results of `map`."""
PATTERN = "[*?[]"
"""What a pattern of names has, and hardly a name."""
File = TypeVar("File")


@dataclass(frozen=True)
class Documents:
    """The documents of a text, one after another, each as blocks of bytes, read as they are asked
    for.

    A row is a document, and so is a file without rows. `separator` joins them into one text, nothing
    if there is one document. `name` is for records, the end of `whole_path`.
    """

    name: str
    members: Sequence[Any]
    forms: Sequence[Form]
    reading: RowReading
    separator: str = ""
    whole_path: str = ""

    def files(self, show: Advance | None = None) -> Iterator[tuple[str, Iterator[Iterator[bytes]]]]:
        """Of each file its name and its documents; `show` is called with the bytes that were read
        of all files, compressed or not. Raises Refusal if a file of this machine changes meanwhile.
        """
        states, before = self.states(), 0
        for member, form in zip(self.members, self.forms, strict=True):
            with member.open("rb") as file:
                documents = documents_in(member, file, self.reading, form)
                yield (
                    f"{member}{form.remark}",
                    (self.blocks(document, file, before, show) for document in documents),
                )
            if isinstance(member, Path):
                before += member.stat().st_size

        if self.states() != states:
            raise Refusal(f"{self.name} {CHANGED}", UNMEASURED)

    def blocks(
        self, document: Iterator[bytes], file: IO[bytes], before: int, show: Advance | None
    ) -> Iterator[bytes]:
        try:
            for block in document:
                yield block
                if show:
                    show(before + file.tell())
        except OSError as error:
            raise Refusal(
                f"cannot read {self.name} ({reason(error)}); make it readable", UNMEASURED
            ) from error

    def read(self, show: Advance | None = None) -> Iterator[Iterator[bytes]]:
        """Every document."""
        for _, documents in self.files(show):
            yield from documents

    def write(self, text: BinaryIO, show: Advance | None = None) -> tuple[int, list[Part]]:
        """Write all documents as one text: each is followed by the separator unless it ends with it
        or is empty. Returns the number of bytes, and where each file starts.
        """
        size, parts, end = 0, [], self.separator.encode()
        for name, documents in self.files(show):
            parts.append(Part(size, name))
            for document in documents:
                size += append(text, document, end)
        return size, parts

    def size(self) -> int:
        """The bytes of all files."""
        return sum(path.stat().st_size for path in self.members)

    def states(self) -> list[tuple[str, Any]]:
        """Of the files of this machine what changes when they do."""
        return [(str(path), file_state(path)) for path in self.members if isinstance(path, Path)]


def local_corpus(
    card: DataCard, special_tokens: Sequence[str], errors: str = "strict"
) -> tuple[Documents, Path, tuple[Part, ...]]:
    """What data.path names, one plain file of it, and the parts of that file.

    A single plain file is used in place. Anything else is joined into one, cached until a member
    changes: each document (a file, or a row) is followed by the first special token unless it ends
    with it or is empty. Raises Refusal, and leaves nothing, if one cannot be read or the cache has no
    room.
    """
    text = documents_of(card, special_tokens, errors)
    reading = text.reading
    if not text.separator and text.forms[0].is_plain:
        is_piped = card.path == "-"
        return text, text.members[0], (Part(0, "standard input"),) if is_piped else ()

    def make(folder: Path) -> list[Any]:
        with (
            bar(f"reading {text.name}", text.size(), "bytes") as show,
            (folder / TEXT).open("wb") as file,
        ):
            _, parts = text.write(file, show)
        return [reading.skipped, parts]

    key = cache.key_of(text.states(), text.separator, repr(reading))
    entry = cache.kept("texts", key, make)
    reading.skipped, parts = entry.facts
    reading.report()
    return text, entry.path / TEXT, tuple(Part(*part) for part in parts)


def documents_of(
    card: DataCard,
    special_tokens: Sequence[str],
    errors: str = "strict",
    members: Sequence[Any] | None = None,
) -> Documents:
    """The files that data.path names, or these. Raises Refusal if one cannot be read, for a column
    of plain text, and for several documents without a special token.
    """
    path = card.path
    if members is None:
        members = members_of(path)
    reading = RowReading(card.column, card.skip_nulls, errors)
    forms = [form_of(member, reading.name) for member in members]
    report_resembling(members, forms)
    separator = separator_of(path, forms, reading, special_tokens)
    if path == "-":
        return Documents("stdin", members, forms, reading, separator)
    whole_path = path_text(path, members)
    return Documents(name_of(whole_path), members, forms, reading, separator, whole_path)


def names_in(path: Any) -> list[str]:
    """The names in a list, also in one that is written as text; or the only one."""
    if isinstance(path, list):
        return [name for each in path for name in names_in(each)]
    text = str(path)
    return [text] if os.path.lexists(text) else split_list(text, "data.path")


def members_of(path: Any, behind: Callable[[str], list[Any]] | None = None) -> list[Any]:
    """The files that `path` names, in order; those of a URL by `behind`. Raises Refusal if there are
    none, or one cannot be read.
    """
    names = names_in(path)
    if not any(names):
        raise Refusal("data.path is empty; set data.path=FILE or 'data.path=[A,B]'")

    members = [member for name in names for member in files_named(name, behind)]
    for member in members:
        if isinstance(member, Path):
            check_readable(member)
    return members


def files_named(name: str, behind: Callable[[str], list[Any]] | None) -> list[Any]:
    """The files of a name, in order; those of a folder or pattern sorted by their path.

    A folder means all plain files in it at any depth, except hidden ones and those in hidden
    folders; links to folders are not followed. A pattern is a shell's, with `**` for folders at any
    depth.
    """
    expanded = name if os.path.lexists(name) else os.path.expanduser(name)  # noqa: PTH111
    if name == "-":
        return [spooled(name)]
    if os.path.isdir(expanded):  # noqa: PTH112 - a long list is an error to pathlib
        return files_below(Path(expanded))
    if is_url(name) and not os.path.lexists(expanded):
        if behind is None:
            raise Refusal(
                f"{name} is not on this machine; counting=dask counts it where it is, or download it first"
            )
        return behind(name)

    paths = [expanded]
    if not os.path.lexists(expanded) and re.search(PATTERN, expanded):
        found = sorted(filter(os.path.isfile, glob.glob(expanded, recursive=True)))  # noqa: PTH207
        paths = without_markers(found) or found
    if not paths:
        raise Refusal(
            f"{expanded} not found, and no file matches it as a pattern; check data.path",
            UNMEASURED,
        )
    named = map(files.path_named, paths)
    return [spooled(str(path)) if files.is_stream(path) else path for path in named]


def named_places(path: Any) -> list[Path]:
    """What `path` may name on this machine: files, and folders that are read whole."""
    places: list[str] = []
    for name in names_in(path):
        expanded = os.path.expanduser(name)  # noqa: PTH111
        matching = glob.glob(expanded, recursive=True)  # noqa: PTH207
        places += [name, expanded, *filter(os.path.isfile, matching)]
    return list(map(Path, places))


def files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise Refusal(
            f"cannot read {error.filename} ({reason(error)}); name files by a pattern", UNMEASURED
        ) from error

    if str(folder.resolve()) in ("/", "/dev") or files.is_stream(folder):
        raise Refusal(
            f"{folder} is not a folder of texts; set data.path to one, or to a pattern", UNMEASURED
        )
    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [os.path.join(parent, name) for name in names if not name.startswith(".")]  # noqa: PTH118
        found += filter(os.path.isfile, paths)  # of a link that may not be followed
    texts = without_markers(list(map(Path, found)))
    if not texts:
        raise Refusal(f"{folder} has no files; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(texts, key=Path.as_posix)


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


def path_text(path: Any, members: Sequence[Any]) -> str:
    """The whole path of a file, a folder or a pattern; of a list that of the first, and how many
    others there are. A file's name need not be UTF-8, but a record is.
    """
    names, others = names_in(path), len(members) - 1
    whole_path = str(Path(str(members[0])).absolute())
    if others and len(names) == 1:
        whole_path = str(Path(names[0]).resolve())
    elif others:
        whole_path += f"+{others}"
    return well_formed(whole_path)


def name_of(whole_path: str) -> str:
    """A short name for records, without the folders above. A pattern is named with the folder that
    it looks into.

    >>> name_of("/home/me/texts/a.txt+1"), name_of("/home/me/texts/**/*.txt")
    ('a.txt+1', 'texts/**/*.txt')
    """
    parts = PurePath(whole_path).parts
    first = len(parts)
    if not os.path.lexists(whole_path):
        matching = [place for place, part in enumerate(parts) if re.search(PATTERN, part)]
        first = min(matching, default=first)
    return "/".join(parts[first - 1 :])


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
    folder = files.folder_of_process(cache.folder("texts"))
    with contextlib.ExitStack() as opened:
        stream = sys.stdin.buffer if path == "-" else opened.enter_context(Path(path).open("rb"))
        file = opened.enter_context((folder / name).open("wb"))
        shutil.copyfileobj(stream, file, BLOCK_BYTES)
    return folder / name
