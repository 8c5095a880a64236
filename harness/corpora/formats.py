"""What files of texts hold: plain or compressed text, block by block; texts in a column of Parquet or JSON Lines.

The end of a file's name says which it is. Each row of a file with columns is one document.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.units import one_line
from harness.corpora.files import BLOCK_BYTES, Damaged

COLUMN = "text"
JSON_LINES = (".jsonl", ".ndjson")
ROWS_AT_ONCE = 1024
COMPRESSED_AT_ONCE = 1 << 14
Show = Callable[[int], None]
Between = tuple[int, int | None]
"""The first byte and the byte behind the last, None for the end of the file."""
WHOLE: Between = (0, None)
# How a compressed stream starts. The first or second byte is invalid there in UTF-8 text; bzip2's are not.
BEGINNINGS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"\xfd7zXZ\x00": ".xz"}


def blocks_of(path: Path, show: Show, start: int = 0) -> Iterator[bytes]:
    """The blocks of a file's plain text; `show` is called with the bytes read from it.

    An uncompressed file can be read from byte `start` on. Raises Refusal with the place if the file is damaged.
    """
    kind = path.suffix.lower()
    reader: Callable[[IO[bytes]], Iterator[bytes]] = READERS.get(kind, plain_blocks)
    with path.open("rb") as file:
        try:
            if start:
                file.seek(start)
            if reader is not plain_blocks and not file.peek(1):
                raise EOFError
            for block in reader(file):
                show(file.tell())
                yield block
        except EOFError:
            raise Damaged(
                f"{path} ends early, at byte {file.tell()}, before its {kind[1:]} stream does; get or make it again"
            ) from None
        except Exception as error:
            # gzip and bz2 raise OSError for wrong bytes too, without a number.
            if not isinstance(error, (OSError, zlib.error, lzma.LZMAError)) and type(error).__name__ != "ZstdError":
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise Refusal(f"cannot read {path} ({reason(error)})", UNMEASURED) from error
            raise Damaged(
                f"{path} is damaged or not a {kind[1:]} file ({error}, by byte {file.tell()}); get or make it again"
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


def kind_of(path: Path) -> str | None:
    """`.parquet`, or `.jsonl` for JSON Lines, compressed or not; None for a file that is text itself.

    >>> kind_of(Path("a.parquet")), kind_of(Path("a.ndjson.gz")), kind_of(Path("a.json"))
    ('.parquet', '.jsonl', None)
    """
    if path.suffix.lower() == ".parquet":
        return ".parquet"
    inner = Path(path.stem) if path.suffix.lower() in READERS else path
    return ".jsonl" if inner.suffix.lower() in JSON_LINES else None


def texts_of(path: Path, column: str, show: Show, between: Between = WHOLE) -> Iterator[str]:
    """The texts in a column of a file with rows. Raises Refusal, naming the row, if one is not text.

    With `between`, only those whose line, or group of rows, starts between these bytes of an uncompressed file:
    adjacent bounds give all texts, each once.
    """
    yield from (parquet_texts if kind_of(path) == ".parquet" else json_texts)(path, column, show, between)


def parquet_texts(path: Path, column: str, show: Show, between: Between) -> Iterator[str]:
    parquet = extra("pyarrow.parquet", path.name)
    size, done = path.stat().st_size, 0
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            if column not in names:
                counted = {"word", "count"} <= set(names)
                raise no_column(path, column, names, otherwise=", or data=words to train on its counts" * counted)
            for before, batch in batches_of(file, column, between):
                for done, scalar in enumerate(batch.column(0), before + 1):
                    try:
                        value = scalar.as_py()
                    except UnicodeDecodeError as error:
                        raise refused(path, f"row {done}", f"column {column!r} is not UTF-8 ({error})") from error
                    yield text_in(value, path, f"row {done}", column)
                show(size * done // file.metadata.num_rows)
    except (OSError, ValueError, NotImplementedError) as error:
        raise Damaged(
            f"{path} is damaged or not a Parquet file, after row {done}: {one_line(str(error))}; get or make it again"
        ) from error


def batches_of(file: Any, column: str, between: Between) -> Iterator[tuple[int, Any]]:
    """Some rows at a time, with the number of rows before them."""
    first, last = between
    before = 0
    for group in range(file.metadata.num_row_groups):
        chunk = file.metadata.row_group(group).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        if first <= start and (last is None or start < last):
            done = before
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[column]):
                yield done, batch
                done += len(batch)
        before += file.metadata.row_group(group).num_rows


def json_texts(path: Path, column: str, show: Show, between: Between) -> Iterator[str]:
    first, last = between
    offset = max(0, first - 1)
    lines = lines_of(blocks_of(path, show, start=offset))
    if first:
        offset += len(next(lines)) + 1  # this line started before `first`
    for number, line in enumerate(lines, 1):
        if last is not None and offset >= last:
            return
        place = f"line {number} from byte {first} on" if first else f"line {number}"
        if line.strip():
            row = json_in(line, offset, path, place)
            if not isinstance(row, dict):
                raise refused(path, place, f"{kind_in_json(row)}, not an object with a column {column!r}")
            if column not in row:
                advice = ", or data.path=- < FILE for all of it as text"
                raise no_column(path, column, list(row), f" in {place}", advice)
            yield text_in(row[column], path, place, column)
        offset += len(line) + 1


def json_in(line: bytes, offset: int, path: Path, place: str) -> Any:
    """The value in a line that begins at byte `offset` of the file."""
    mark = line.startswith(codecs.BOM_UTF8) and not offset
    try:
        text = line.decode("utf-8-sig" if mark else "utf-8")
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise refused(path, place, f"invalid UTF-8 at byte {offset + error.start + 3 * mark}") from error
    except json.JSONDecodeError as error:
        byte = offset + len(text[: error.pos].encode()) + 3 * mark
        raise refused(path, place, f"not JSON at byte {byte} ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise refused(path, place, f"not JSON that can be read ({error})") from error


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


def text_in(value: Any, path: Path, place: str, column: str) -> str:
    if not isinstance(value, str):
        raise refused(path, place, f"column {column!r} holds {kind_in_json(value)}, not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refused(path, place, f"column {column!r} holds half a surrogate pair, which is not UTF-8") from error
    return value


def kind_in_json(value: Any) -> str:
    """
    >>> kind_in_json(None), kind_in_json([]), kind_in_json(1.5)
    ('null', 'a list', 'float')
    """
    return {type(None): "null", list: "a list", dict: "an object", str: "a text"}.get(type(value), type(value).__name__)


def refused(path: Path, place: str, why: str) -> Refusal:
    return Refusal(f"{path}, {place}: {why}; fix or remove that row, or set data.column=NAME", UNMEASURED)


def no_column(path: Path, column: str, names: list[str], where: str = "", otherwise: str = "") -> Refusal:
    there = ", ".join(names) or "none"
    return Refusal(
        f"{path} has no column {column!r}{where}, there are: {there}; set data.column=NAME{otherwise}", UNMEASURED
    )
