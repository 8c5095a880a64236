"""data.path: a file, several, a folder, a pattern of names, standard input; all become one plain
file.

An existing file or folder wins over every other reading of the same text, so that a file may be
called `[a].txt`. The end of a file's name says whether it is compressed and whether it has rows;
each row is one document.
"""

from __future__ import annotations

import atexit
import bz2
import contextlib
import csv
import functools
import glob
import gzip
import io
import json
import lzma
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO
from urllib.parse import urlsplit

from harness.common import files
from harness.common.console import bar
from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.registry import split_list
from harness.common.units import one_line
from harness.corpora.files import BLOCK_BYTES, Damaged, Part, check_readable, entry, state_of

# "/dev/stdin" may be followed by nothing, and each of them is compared with a path that ends in a /
STREAMS = ("/dev/stdin/", "/dev/fd/", "/proc/")


def local_corpus(
    card: Mapping[str, Any], special_tokens: Sequence[str]
) -> tuple[str, Path, tuple[Part, ...]]:
    """The name of what data.path names, one plain file of it, and the parts of that file.

    A single plain file is used in place. Anything else is joined into one, cached until a member
    changes: each document (a file, or a row) is followed by the first special token unless it ends
    with it or is empty.
    """
    path, column = card["path"], card.get("column")
    if path == "-":
        return "stdin", spooled(path), (Part(0, "standard input"),)
    members = members_of(path)
    for member in members:
        check_readable(member)
    name, separator = name_of(path, members), separator_of(path, members, column, special_tokens)
    if not separator and not is_compressed(members[0]):
        return name, members[0], ()
    return name, *assemble(members, separator, column, name)


def members_of(path: Any, behind: Callable[[str], list[Any]] | None = None) -> list[Any]:
    """The files that `path` names, in order; those of a folder or pattern sorted by their path, of
    a URL by `behind`.

    A folder means all plain files in it at any depth, except hidden ones and those in hidden
    folders; links to folders are not followed. A pattern is a shell's, with `**` for folders at any
    depth.
    """
    if not path:
        raise Refusal("data.path is empty; set data.path=FILE or 'data.path=[A,B]'")
    if isinstance(path, list):
        return [member for name in path for member in members_of(name, behind)]
    path = str(path)
    place = path if os.path.lexists(path) else os.path.expanduser(path)  # noqa: PTH111
    if os.path.isdir(place):  # noqa: PTH112 - a long list is an error to pathlib
        return files_below(Path(place))
    if os.path.lexists(place):
        return [spooled(place) if is_stream(place) else Path(place)]
    if path == "-":
        raise Refusal("standard input cannot be joined with files; set data.path=- alone")
    if is_url(path):
        if behind is None:
            raise Refusal(
                f"{path} is not on this machine; counting=dask counts it where it is, or download it first"
            )
        return behind(path)
    if is_list(path):
        return members_of(split_list(path, "data.path"), behind)
    if not re.search(r"[*?[]", place):
        return [Path(place)]
    paths = sorted(path for path in glob.glob(place, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
    if not paths:
        raise Refusal(
            f"{place} not found, and no file matches it as a pattern; check data.path", UNMEASURED
        )
    return [spooled(path) if is_stream(path) else Path(path) for path in paths]


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

    if folder.resolve() == Path("/") or is_stream(folder):
        raise Refusal(
            f"{folder} is not a folder of texts; set data.path to one, or to a pattern", UNMEASURED
        )
    files = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in names if not name.startswith("."))
        files += [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - of a link that may not be followed
    if not files:
        raise Refusal(f"{folder} has no files; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def separator_of(
    path: Any, members: Sequence[Any], column: str | None, special_tokens: Sequence[str]
) -> str:
    """What the documents of these files are joined by; nothing if there is one text.

    Raises Refusal for a column of plain text, and for several documents without a special token.
    """
    has_rows = any(map(rows_of, members))
    if column is not None and not has_rows:
        raise Refusal(
            f"data.column={column}, but {path} is plain text; {', '.join(ROWS)} files have columns"
        )
    if len(members) == 1 and not has_rows:
        return ""
    if not special_tokens:
        what = f"these {len(members)} files" if len(members) > 1 else "its rows"
        advice = "add one, or join them yourself: COMMAND | ... data.path=-"
        raise Refusal(
            f"{what} are joined by the first special token, and special_tokens is empty; {advice}"
        )
    return special_tokens[0]


def name_of(path: Any, members: Sequence[Any]) -> str:
    """A short name for records, without folders; a file's name need not be UTF-8, but a record is.

    >>> name_of("[texts/a.txt,b.txt]", [Path("texts/a.txt"), Path("b.txt")])
    'a.txt+1'
    """
    if len(members) == 1:
        name = members[0].name
    elif isinstance(path, list) or is_list(path):
        name = f"{members[0].name}+{len(members) - 1}"
    else:
        name = Path(path).resolve().name
    return os.fsencode(name).decode(errors="replace")


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not os.path.lexists(text)


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


def assemble(
    members: Sequence[Path], separator: str, column: str | None, name: str
) -> tuple[Path, tuple[Part, ...]]:
    """One file of these members and its parts, made again if a member has changed.

    Raises Refusal, and leaves nothing, if a member cannot be read or the cache has no room.
    """
    folder = entry(
        "texts", [(str(member), state_of(member)) for member in members], separator, column
    )
    if not folder.exists():
        size, before = sum(member.stat().st_size for member in members), 0
        with files.placing(folder) as temporary, bar(f"reading {name}", size, "bytes") as show:
            temporary.mkdir()
            parts = []
            with (temporary / "text").open("wb") as text:
                for member in members:
                    parts.append((text.tell(), described(member)))
                    with member.open("rb") as file:
                        for document in documents_in(member, file, column):
                            append(
                                text,
                                document,
                                separator.encode(),
                                lambda: show(before + file.tell()),  # noqa: B023
                            )
                    before += member.stat().st_size
            (temporary / "parts.json").write_text(json.dumps(parts))
    return folder / "text", tuple(
        Part(*part) for part in json.loads((folder / "parts.json").read_text())
    )


def documents_in(member: Any, file: IO[bytes], column: str | None) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or all of it. Raises Refusal, naming the row, if
    one is not text.
    """
    if (rows := rows_of(member)) is None:
        yield blocks_of(member, file)
        return
    column = column or "text"
    for place, value in rows(member, file, column):
        try:
            yield iter([value.encode()])
        except (AttributeError, UnicodeEncodeError) as error:  # of half a surrogate pair
            kind = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
            raise bad_row(
                member, place, f"column {column!r} holds {kind}, which is not text"
            ) from error


def append(
    text: BinaryIO, document: Iterator[bytes], end: bytes, show: Callable[[], object] = bool
) -> None:
    """Write a document, then the separator unless the document ends with it or is empty."""
    tail = b""
    for block in document:
        text.write(block)
        tail = (tail + block)[-len(end) :] if end else b""
        show()
    if tail and tail != end:
        text.write(end)


def described(member: Any) -> str:
    """A file, and what its bytes are counted in if that is not the file itself."""
    return f"{member}" + (
        ", the texts in it" if rows_of(member) else ", unpacked" * is_compressed(member)
    )


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
    folder = Path(tempfile.mkdtemp(prefix="stdin-", dir=files.cache_folder("texts")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with (
        contextlib.nullcontext(sys.stdin.buffer)
        if path == "-"
        else Path(path).open("rb") as stream,
        (folder / name).open("wb") as file,
        bar(f"reading {name}", 0, "bytes") as show,
    ):
        while block := stream.read(BLOCK_BYTES):
            file.write(block)
            show(file.tell())
    return folder / name


def suffix_of(path: Any) -> str:
    """The end of the name of a `Path`, a URL, or anything with their text.

    >>> suffix_of("texts/A.JSONL.GZ"), suffix_of("https://host/a.txt?x=1.gz")
    ('.gz', '.txt')
    """
    text = str(path)
    return PurePosixPath(urlsplit(text).path if is_url(text) else text).suffix.lower()


def is_compressed(path: Any) -> bool:
    return suffix_of(path) in UNPACKED


def rows_of(path: Any) -> Callable[[Any, IO[bytes], str], Rows] | None:
    """What reads the rows of a file, compressed or not; None for a file that is text itself.

    >>> rows_of("a.ndjson.gz").__name__, rows_of("a.TSV").__name__, rows_of("a.txt.gz")
    ('json_rows', 'csv_rows', None)
    """
    return ROWS.get(
        suffix_of(str(path)[: -len(suffix_of(path))]) if is_compressed(path) else suffix_of(path)
    )


def blocks_of(path: Any, file: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file's plain text. Raises Refusal if the file is damaged."""
    with unpacked(path, file) as text:
        while block := text.read(BLOCK_BYTES):
            yield block


@contextlib.contextmanager
def unpacked(path: Any, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that unpacks itself while it is read. Raises Refusal if it is damaged."""
    kind = suffix_of(path)
    if kind not in UNPACKED:
        yield file
        return
    try:
        yield UNPACKED[kind](file)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        why = f"is damaged or not a {kind[1:]} file ({one_line(str(error))})"
        raise Damaged(f"{path} {why}; get or make it again", UNMEASURED) from error


UNPACKED: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: io.BufferedReader(
        extra("pyarrow", "a .zst file").CompressedInputStream(file, "zstd")
    ),
}
Rows = Iterator[tuple[str, Any]]  # the place and the value of each row


def parquet_rows(path: Any, opened: IO[bytes], column: str) -> Rows:
    parquet = extra("pyarrow.parquet", path.name)
    row = 0
    try:
        with parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            check_name(path, column, file.schema_arrow.names)
            for batch in file.iter_batches(1024, columns=[column]):
                for row, scalar in enumerate(batch.column(0), row + 1):  # noqa: B020
                    yield f"row {row}", scalar.as_py()
    # a text that is not UTF-8 is a ValueError
    except (OSError, ValueError, NotImplementedError) as error:
        why = f"near row {row}: {one_line(str(error))}"
        raise Damaged(
            f"{path} is damaged or not a Parquet file, {why}; get or make it again", UNMEASURED
        ) from error


def json_rows(path: Any, opened: IO[bytes], column: str) -> Rows:
    with unpacked(path, opened) as file:
        for number, line in enumerate(file, 1):
            place = f"line {number}"
            if line.strip():
                try:
                    row = json.loads(line.decode("utf-8-sig"))
                except (ValueError, RecursionError) as error:
                    raise bad_row(path, place, f"not JSON ({error})") from error
                if not isinstance(row, dict):
                    raise bad_row(path, place, f"not an object with a column {column!r}")
                check_name(f"{path}, {place},", column, list(row))
                yield place, row[column]


def csv_rows(path: Any, opened: IO[bytes], column: str) -> Rows:
    csv.field_size_limit(1 << 30)
    with unpacked(path, opened) as file:
        lines = (line.decode("utf-8-sig") for line in file)
        rows = csv.DictReader(lines, delimiter="\t" if ".tsv" in path.name.lower() else ",")
        try:
            check_name(path, column, list(rows.fieldnames or []))
            for row in rows:
                yield f"line {rows.line_num}", row[column]
        except (csv.Error, UnicodeDecodeError) as error:
            raise bad_row(path, f"line {rows.line_num + 1}", str(error)) from error


ROWS: dict[str, Callable[[Any, IO[bytes], str], Rows]] = {
    ".parquet": parquet_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
    ".csv": csv_rows,
    ".tsv": csv_rows,
}


def bad_row(path: Any, place: str, why: str) -> Refusal:
    return Refusal(
        f"{path}, {place}: {why}; fix or remove that row, or set data.column=NAME", UNMEASURED
    )


def check_name(path: Any, column: str, names: Sequence[str]) -> None:
    """Raises Refusal if a column is missing."""
    if column not in names:
        there = f"{path} has no column {column!r}, there are: {', '.join(names) or 'none'}"
        raise Refusal(f"{there}; set data.column=NAME", UNMEASURED)
