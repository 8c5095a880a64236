"""data.path: a file, several, a folder, a pattern of names, standard input; all become one plain file.

An existing file or folder wins over every other reading of the same text, so that a file may be called `[a].txt`. The
end of a file's name says whether it is compressed and whether it has rows; each row is one document.
"""

from __future__ import annotations

import atexit
import bz2
import csv
import functools
import glob
import gzip
import hashlib
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
from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.progress import bar
from harness.common.registry import split_list
from harness.common.units import one_line
from harness.corpora.files import BLOCK_BYTES, Damaged, Part, check_readable, state_of

STANDARD_INPUT = "-"
COLUMN = "text"
ROWS = {".parquet": ".parquet", ".jsonl": ".jsonl", ".ndjson": ".jsonl", ".csv": ".csv", ".tsv": ".csv"}
"""The kinds of files with rows. Those of .csv are read by column only if one is given: else they are plain text."""
ROWS_AT_ONCE = 1024
COMPRESSED_AT_ONCE = 1 << 14
Show = Callable[[int], None]
Between = tuple[int, int | None]
"""The first byte and the byte behind the last, None for the end of the file."""
WHOLE: Between = (0, None)


def local_corpus(card: Mapping[str, Any], special_tokens: Sequence[str]) -> tuple[str, Path, tuple[Part, ...]]:
    """The name of what data.path names, one plain file of it, and the parts of that file.

    A single plain file is used in place. Anything else is joined into one, cached until a member changes: each document
    (a file, or a row) is followed by the separator unless it ends with it, so that the words of the corpus are those of
    its documents. Empty documents add nothing.
    """
    path, column = card["path"], card.get("column")
    if path == STANDARD_INPUT:
        return "stdin", *spooled()
    members = members_of(path)
    for member in members:
        check_readable(member)
    name, has_rows = name_of(path, members), check_column(path, members, column)
    if len(members) == 1 and not has_rows and not is_compressed(members[0]):
        return name, members[0], ()
    separator = separator_of(card, special_tokens, len(members)) if has_rows or len(members) > 1 else ""
    return name, *assemble(members, separator, column, name)


def not_here(url: str) -> list[Any]:
    """Raises Refusal: only Dask reads URLs."""
    raise Refusal(f"{url} is not on this machine; counting=dask counts it where it is, or download it first")


def members_of(path: Any, behind: Callable[[str], list[Any]] = not_here) -> list[Any]:
    """The files that `path` names, in order; those of a folder or pattern sorted by their path, of a URL by `behind`.

    A folder means all plain files in it at any depth, except hidden ones and those in hidden folders; links to folders
    are not followed. A pattern is a shell's, with `**` for folders at any depth.
    """
    if isinstance(path, list):
        if not path:
            raise Refusal("data.path=[] is empty; set data.path=[A,B]")
        return [member for name in path for member in members_of(name, behind)]
    text = str(path) if os.path.lexists(str(path)) else os.path.expanduser(str(path))  # noqa: PTH111
    if not text:
        raise Refusal("data.path is empty; set data.path=FILE")
    if text == STANDARD_INPUT:
        raise Refusal("standard input cannot be joined with files; set data.path=- alone, or ./- for a file named -")
    if is_url(text) and not os.path.lexists(text):
        return behind(text)
    if os.path.isdir(text):  # noqa: PTH112 - a name with a byte of 0 is an error to pathlib
        return files_below(Path(text))
    if is_list(text):
        return members_of(split_list(text, "data.path"), behind)
    return matching(text) if re.search(r"[*?[]", text) and not os.path.lexists(text) else [Path(text)]


def files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        instead = f"set data.path to files by a pattern such as '{folder / '*.txt'}'"
        raise Refusal(f"cannot read {error.filename} ({reason(error)}); {instead}", UNMEASURED) from error

    if folder.resolve() == Path("/"):
        raise Refusal(
            f"{folder} is the whole file system; set data.path to a folder of texts, or a pattern", UNMEASURED
        )
    files = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in names if not name.startswith("."))
        files += [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - of a link that may not be followed
    if not files:
        raise Refusal(f"{folder} has no files; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def matching(pattern: str) -> list[Path]:
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
    if not paths:
        raise Refusal(f"{pattern} not found, and no file matches it as a pattern; check data.path", UNMEASURED)
    return [Path(path) for path in paths]


def check_column(path: Any, members: Sequence[Any], column: str | None) -> bool:
    """Whether any of these files has rows. Raises Refusal for a column of plain text."""
    has_rows = any(kind_of(member, column) for member in members)
    if column is not None and not has_rows:
        raise Refusal(f"data.column={column}, but {path} is plain text; {', '.join(ROWS)} files have columns")
    return has_rows


def separator_of(card: Mapping[str, Any], special_tokens: Sequence[str], number: int) -> str:
    if card.get("separator") is not None:
        return str(card["separator"])
    if special_tokens:
        return special_tokens[0]
    what = f"these {number} files" if number > 1 else "its rows"
    raise Refusal(
        f"{what} are joined by the first special token, and special_tokens is empty; add one, or set "
        "data.separator=TEXT (which may be empty)"
    )


def name_of(path: Any, members: Sequence[Any]) -> str:
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
    return os.fsencode(name).decode(errors="replace")


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not os.path.lexists(text)


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


# Several files as one


def assemble(members: Sequence[Path], separator: str, column: str | None, name: str) -> tuple[Path, tuple[Part, ...]]:
    """One file of these members and its parts, made again if a member has changed.

    Raises Refusal, and leaves nothing, if a member cannot be read or changes in the meantime, or the cache has no room.
    """
    states = [[str(member), state_of(member)] for member in members]
    key = hashlib.sha256(json.dumps([states, separator, column or COLUMN]).encode()).hexdigest()[:32]
    folder = files.cache_folder("assembled") / key
    if not folder.exists():
        size = sum(member.stat().st_size for member in members)
        with files.placing(folder) as temporary, bar(f"reading {name}", size, "bytes") as show:
            temporary.mkdir()
            with (temporary / "text").open("wb") as text:
                parts = list(join(members, separator.encode(), column, text, show))
            (temporary / "parts.json").write_text(json.dumps(parts))
            for member, state in states:
                if state_of(Path(member)) != state:
                    raise Refusal(f"{member} was changed while it was read; run the same again", UNMEASURED)
    return folder / "text", tuple(Part(*part) for part in json.loads((folder / "parts.json").read_text()))


def join(members: Sequence[Path], end: bytes, column: str | None, text: BinaryIO, show: Show) -> Iterator[Part]:
    """Write the documents of these files; yields where each file starts."""
    before = 0
    for member in members:
        yield Part(text.tell(), str(member), 0, made_of(member, column))
        for document in documents_in(member, column, lambda read: show(before + read)):  # noqa: B023
            append(text, document, end)
        before += member.stat().st_size


def documents_in(member: Any, column: str | None, show: Show, between: Between = WHOLE) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or those between two bytes, or all of it.

    A row is between the bytes where its line, or its group of rows, starts: adjacent bounds give all rows, each once.
    Raises Refusal, naming the row, if one is not text.
    """
    kind = kind_of(member, column)
    if kind is None:
        yield blocks_of(member, show)
    else:
        for place, value in TEXTS[kind](member, column or COLUMN, show, between):
            yield iter([encoded(value, member, place, column or COLUMN)])


def append(text: BinaryIO, document: Iterator[bytes], end: bytes) -> None:
    """Write a document, then the separator unless the document ends with it or is empty."""
    tail = b""
    for block in document:
        text.write(block)
        tail = (tail + block)[-len(end) :] if end else b""
    if tail and tail != end:
        text.write(end)


def made_of(member: Any, column: str | None) -> str:
    """What an offset in this member's part counts from, if not from the start of the file itself."""
    if kind_of(member, column):
        return " of the texts in it"
    return " of what is unpacked" if is_compressed(member) else ""


# Standard input


@functools.cache
def spooled() -> tuple[Path, tuple[Part, ...]]:
    """The file that standard input was written to; removed when this process ends.

    It is in the cache, where there is room for corpora, and not with temporary files, which may be in memory.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise Refusal("data.path=- reads standard input, and nothing is piped into it; run COMMAND | ... data.path=-")
    folder = Path(tempfile.mkdtemp(prefix="stdin-", dir=files.cache_folder("spool")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = folder / "standard input"
    try:
        with text.open("wb") as file, bar("reading standard input", 0, "bytes") as show:
            for block in plain_blocks(sys.stdin.buffer):
                file.write(block)
                show(file.tell())
    except OSError as error:
        raise files.cache_unusable(folder.parent, error) from error
    return text, (Part(0, "standard input"),)


# What is in a file. Here, a file is a `Path`, or what has its `open`, `stat`, `name` and text.


def suffix_of(path: Any) -> str:
    """
    >>> suffix_of("texts/A.JSONL.GZ"), suffix_of("https://host/a.txt?x=1.gz")
    ('.gz', '.txt')
    """
    text = str(path)
    return PurePosixPath(urlsplit(text).path if is_url(text) else text).suffix.lower()


def kind_of(path: Any, column: str | None = None) -> str | None:
    """The kind of a file with rows, compressed or not; None for a file that is text itself.

    >>> kind_of(Path("a.parquet")), kind_of(Path("a.ndjson.gz")), kind_of(Path("a.json"))
    ('.parquet', '.jsonl', None)
    >>> kind_of(Path("a.tsv")), kind_of(Path("a.tsv"), "text")
    (None, '.csv')
    """
    suffix = suffix_of(path)
    kind = ROWS.get(suffix_of(str(path)[: -len(suffix)]) if is_compressed(path) else suffix)
    if (kind == ".csv" and column is None) or (kind == ".parquet" and is_compressed(path)):
        return None
    return kind


def is_compressed(path: Any) -> bool:
    return suffix_of(path) in READERS


def blocks_of(path: Any, show: Show, start: int = 0) -> Iterator[bytes]:
    """The blocks of a file's plain text; `show` is called with the bytes read from it.

    An uncompressed file can be read from byte `start` on. Raises Refusal with the place if the file is damaged.
    """
    kind = suffix_of(path)
    reader: Callable[[IO[bytes]], Iterator[bytes]] = READERS.get(kind, plain_blocks)
    with path.open("rb") as file:
        try:
            if start:
                file.seek(start)
            if is_compressed(path) and not file.peek(1):
                raise EOFError
            for block in reader(file):
                show(file.tell())
                yield block
        except Exception as error:
            # gzip and bz2 raise OSError for wrong bytes too, without a number.
            known = (OSError, EOFError, zlib.error, lzma.LZMAError)
            if not isinstance(error, known) and type(error).__name__ != "ZstdError":
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise Refusal(f"cannot read {path} ({reason(error)})", UNMEASURED) from error
            why = "it ends early" if isinstance(error, EOFError) else str(error)
            raise Damaged(
                f"{path} is damaged or not a {kind[1:]} file ({why}, by byte {file.tell()}); get or make it again"
            ) from error


def plain_blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block


def zstandard_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """One frame after another. The library's own reader accepts half a frame, so the ends are checked here."""
    unpacker = extra("zstandard", "a .zst file").ZstdDecompressor(max_window_size=1 << 31)
    frame = None
    while packed := file.read(COMPRESSED_AT_ONCE):
        while packed:
            frame = frame or unpacker.decompressobj()
            block = frame.decompress(packed)
            packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
            if block:
                yield block
    if frame is not None:
        raise EOFError


READERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
    ".gz": lambda file: plain_blocks(gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: plain_blocks(bz2.BZ2File(file)),
    ".xz": lambda file: plain_blocks(lzma.LZMAFile(file)),  # noqa: SIM115 - the caller closes the file
    ".zst": zstandard_blocks,
}

Values = Iterator[tuple[str, Any]]
"""The place and the value of each row."""


def parquet_values(path: Any, column: str, show: Show, between: Between) -> Values:
    parquet = extra("pyarrow.parquet", path.name)
    first, last = between
    row = 0
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            check_name(path, column, file.schema_arrow.names)
            for group in range(file.metadata.num_row_groups):
                chunk = file.metadata.row_group(group).column(0)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                row = sum(file.metadata.row_group(before).num_rows for before in range(group))
                if first <= start and (last is None or start < last):
                    for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[column]):
                        for scalar in batch.column(0):
                            row += 1
                            yield f"row {row}", scalar.as_py()
                        show(path.stat().st_size * row // file.metadata.num_rows)
    except UnicodeDecodeError as error:
        raise refused(path, f"row {row}", f"column {column!r} is not UTF-8") from error
    except (OSError, ValueError, NotImplementedError) as error:
        why = one_line(str(error))
        raise Damaged(
            f"{path} is damaged or not a Parquet file, after row {row}: {why}; get or make it again"
        ) from error


def json_values(path: Any, column: str, show: Show, between: Between) -> Values:
    first, last = between
    offset = max(0, first - 1)
    lines = lines_of(blocks_of(path, show, start=offset))
    if first:
        offset += len(next(lines)) + 1  # this line started before `first`
    for number, line in enumerate(lines, 1):
        if last is not None and offset >= last:
            return
        place = f"line {number}" + (f" from byte {first} on" if first else "")
        if line.strip():
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise refused(path, place, f"not JSON ({error})") from error
            if not isinstance(row, dict):
                raise refused(path, place, f"not an object with a column {column!r}")
            check_name(f"{path}, {place},", column, list(row))
            yield place, row[column]
        offset += len(line) + 1


def csv_values(path: Any, column: str, show: Show, _: Between) -> Values:
    csv.field_size_limit(1 << 30)
    lines = (line.decode("utf-8-sig") + "\n" for line in lines_of(blocks_of(path, show)))
    rows = csv.DictReader(lines, delimiter="\t" if ".tsv" in path.name.lower() else ",")
    try:
        check_name(path, column, list(rows.fieldnames or []))
        for row in rows:
            yield f"line {rows.line_num}", row[column]
    except (csv.Error, UnicodeDecodeError) as error:
        raise refused(path, f"line {rows.line_num + 1}", str(error)) from error


TEXTS: dict[str, Callable[[Any, str, Show, Between], Values]] = {
    ".parquet": parquet_values,
    ".jsonl": json_values,
    ".csv": csv_values,
}


def lines_of(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines in blocks, without their ends; only a newline ends one.

    >>> list(lines_of(iter([b"a", b"b\\n\\nc", b"\\r\\n"])))
    [b'ab', b'', b'c\\r', b'']
    """
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    yield b"".join(begun)


def encoded(value: Any, path: Any, place: str, column: str) -> bytes:
    try:
        return value.encode()  # type: ignore[no-any-return]
    except (AttributeError, UnicodeEncodeError) as error:  # of half a surrogate pair
        kind = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
        raise refused(path, place, f"column {column!r} holds {kind}, which is not text") from error


def refused(path: Any, place: str, why: str) -> Refusal:
    return Refusal(f"{path}, {place}: {why}; fix or remove that row, or set data.column=NAME", UNMEASURED)


def check_name(path: Any, column: str, names: Sequence[str]) -> None:
    """Raises Refusal if a column is missing."""
    if column not in names:
        counted = ", or data=words to train on its counts" * ({"word", "count"} <= set(names))
        there = f"{path} has no column {column!r}, there are: {', '.join(names) or 'none'}"
        raise Refusal(f"{there}; set data.column=NAME{counted}", UNMEASURED)
