"""What a file is, by its first bytes; its name decides only what they leave open.

A file may be compressed under any name. Parquet, Arrow and JSON Lines have rows, each a document,
and so have .csv and .tsv. Other files are one document if they are text; other binaries are refused
by name.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.units import one_line
from harness.corpora import rows
from harness.corpora.files import BLOCK_BYTES, Damaged
from harness.corpora.rows import AGAIN, Reader, RowReading

HEAD_BYTES = 1 << 12
BLOCKS_CHECKED = 16
OBJECT = "a JSON object"
ROWS_INSTEAD = "pass text in UTF-8, or rows in Parquet, Arrow, JSON Lines or CSV"


class Form(NamedTuple):
    """What a file is: its compression, if any, what reads its rows, if any, and what it looks like
    but is not read as.
    """

    packed: str = ""
    rows: Reader | None = None
    resembles: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are the text."""
        return not self.packed and self.rows is None

    @property
    def remark(self) -> str:
        """What the bytes of the text are counted in if that is not the file itself."""
        if self.rows is not None:
            return ", the texts in it"
        return self.packed and ", unpacked"


def form_of(member: Any, column: str = "text") -> Form:
    """The form of a file. Raises Refusal for a binary without rows, and if the file is damaged."""
    with member.open("rb") as file:
        head = file.read(HEAD_BYTES)
        packed = packed_as(member, head)
        if packed:
            if not head:
                raise Damaged(f"{member} is empty, not a {packed} file; {AGAIN}", UNMEASURED)
            file.seek(0)
            with unpacking(member, file, packed) as content:
                head = content.read(HEAD_BYTES)

    if packed and packed_as("", head):
        raise Refusal(f"{member} is compressed twice; unpack it first", UNMEASURED)
    for start, reader in TABLES.items():
        if re.match(start, head, re.DOTALL):
            return Form(packed, reader)
    refuse_others(member, head)
    if is_binary(head):
        check_whole(member, packed)
        raise Refusal(f"{member} is a binary file, not text; {ROWS_INSTEAD}", UNMEASURED)
    return text_form(packed, ending_of(member), head, column)


def refuse_others(member: Any, head: bytes) -> None:
    """Raise Refusal if a file that starts so is known, and is not read."""
    for advice, kinds in OTHERS.items():
        for what, start in kinds.items():
            if re.match(start, head, re.DOTALL):
                raise Refusal(f"{member} is {what}; {advice}", UNMEASURED)


def check_whole(member: Any, packed: str) -> None:
    """Raise Refusal if a compressed file is damaged within its first megabytes: some show it at the
    end of a block only.
    """
    with member.open("rb") as file:
        for _ in islice(blocks_of(member, file, packed), BLOCKS_CHECKED):
            pass


def packed_as(member: Any, head: bytes) -> str:
    """The compression of a file by its first bytes, or else by the end of its name."""
    by_content = next((packed for packed, start in PACKED.items() if re.match(start, head)), "")
    return by_content or PACKED_NAMES.get(["", *suffixes_of(member)][-1], "")


def text_form(packed: str, ending: str, head: bytes, column: str) -> Form:
    """The form of a text that starts so, under a name with this ending."""
    reader, kind, first = json_form(head)
    if reader is not None:
        has_row = ending not in TEXT and starts_with_row(first, column)
        is_named = ending in (*JSON, *ROWS)
        are_rows = has_row and is_named if kind == OBJECT else has_row or is_named
        if are_rows:
            return Form(packed, reader)

    if ending in ROWS:
        return Form(packed, ROWS[ending])
    return Form(packed, resembles=kind)


def json_form(head: bytes) -> tuple[Reader | None, str, bytes]:
    """What reads the rows of JSON that starts so, what JSON it is, and its first row; nothing for
    other text.

    >>> json_form(b'{"text": "low"}\\n')[1], json_form(b'[\\n {"text": "low"}]')[1:]
    ('JSON Lines', ('a JSON array', b'{"text": "low"}]'))
    >>> json_form(b'{\\n "name": "low"\\n}')[:2], json_form(b"low")
    ((None, 'a JSON object'), (None, '', b''))
    """
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for start, reader, kind in JSON_FORMS:
        if match := re.match(start, text):
            return reader, kind, text[match.end() :]
    return None, "", b""


def starts_with_row(start: bytes, column: str) -> bool:
    """Whether JSON starts with an object that has a column, the first one if the object is cut.

    >>> starts_with_row(b'{"id": 1, "text": "low"}', "text"), starts_with_row(b'{"text": "lo', "text")
    (True, True)
    >>> starts_with_row(b'{"cells": [{"text": "low"}]}', "text"), starts_with_row(b'{"id": 1, "te', "text")
    (False, False)
    """
    text, name = start.decode(errors="replace"), column.partition(".")[0]
    try:
        row = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return re.match(rf'\{{\s*"{re.escape(name)}"\s*:', text) is not None
    return isinstance(row, dict) and name in row


def is_binary(head: bytes) -> bool:
    """Whether bytes are not text, in any of the encodings that one byte or UTF-8 has.

    >>> is_binary(b"low\\n"), is_binary("naïve".encode("latin-1")), is_binary("low".encode("utf-16-le"))
    (False, False, True)
    """
    if head.count(0) * 10 > len(head):
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        controls = len(head) - len(head.translate(None, CONTROLS))
        return head.count(0) > FEW or controls * 20 > len(head)
    return False


def report_resembling(members: Sequence[Any], forms: Sequence[Form]) -> None:
    """Print a note on the first file that starts like JSON and is read as text."""
    for member, form in zip(members, forms, strict=True):
        if form.resembles:
            print_stderr(f"{member} starts like {form.resembles}, read as text")
            return


def documents_in(
    member: Any, file: IO[bytes], reading: RowReading, form: Form
) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or all of it. Raises Refusal, naming the row, if
    one is not text.
    """
    if form.rows is None:
        yield blocks_of(member, file, form.packed)
        return
    with unpacking(member, file, form.packed) as content:
        for text in rows.texts_in(member, form.rows(member, content, reading), reading):
            yield iter([text])


def blocks_of(path: Any, file: IO[bytes], packed: str) -> Iterator[bytes]:
    """The blocks of a file's plain text. Raises Refusal if the file is damaged."""
    with unpacking(path, file, packed) as text:
        while block := text.read(BLOCK_BYTES):
            yield block


@contextlib.contextmanager
def unpacking(path: Any, file: IO[bytes], packed: str) -> Iterator[IO[bytes]]:
    """A file that unpacks itself while it is read. Raises Refusal if it is damaged."""
    if not packed:
        yield file
        return
    try:
        yield UNPACKED[packed](file)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        why = f"is damaged or not a {packed} file ({one_line(str(error))})"
        raise Damaged(f"{path} {why}; {AGAIN}", UNMEASURED) from error


def suffixes_of(path: Any) -> list[str]:
    """The suffixes of the name of a `Path`, a URL, or anything with their text.

    >>> suffixes_of("texts/A.JSONL.GZ"), suffixes_of("https://host/a.txt?x=1.gz")
    (['.jsonl', '.gz'], ['.txt'])
    """
    text = str(path)
    return PurePosixPath((urlsplit(text).path if is_url(text) else text).lower()).suffixes


def ending_of(path: Any) -> str:
    """The ending that says what is in a file, without those of compression, parts and copies.

    >>> ending_of("a.jsonl.gzip"), ending_of("texts/a.jsonl.1"), ending_of("part-00000"), ending_of("a.b.txt")
    ('.jsonl', '.jsonl', '', '.txt')
    """
    suffixes = [suffix for suffix in suffixes_of(path) if suffix not in PACKED_NAMES]
    known = [suffix for suffix in suffixes if suffix in ROWS or suffix in TEXT]
    return ["", *suffixes[-1:], *known[-1:]][-1]


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


PACKED = {
    "gz": rb"\x1f\x8b",
    "bz2": rb"BZh\d1AY&SY",
    "xz": rb"\xfd7zXZ\0",
    "zst": rb"\x28\xb5\x2f\xfd",
}
PACKED_NAMES = {
    ".gz": "gz",
    ".gzip": "gz",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zst": "zst",
    ".zstd": "zst",
}
UNPACKED: dict[str, Callable[[Any], Any]] = {
    "gz": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
    "zst": lambda file: io.BufferedReader(
        extra("pyarrow", "a .zst file").CompressedInputStream(file, "zstd")
    ),
}
TABLES: dict[bytes, Reader] = {
    rb"PAR1\x15": rows.parquet_rows,
    rb"ARROW1\0\0|\xff\xff\xff\xff.{2}\0\0": rows.arrow_rows,
}
OTHERS = {
    "unpack it first": {
        "a zip archive (such as .docx, .xlsx, .npz or .pt)": rb"PK(\x03\x04|\x05\x06)",
        "a lz4 archive": rb"\x04\x22\x4d\x18",
        "a 7z archive": rb"7z\xbc\xaf",
        "a rar archive": rb"Rar!\x1a\x07",
        "a tar archive": rb".{257}ustar",
    },
    "convert it with iconv": {
        "UTF-32 text, not UTF-8": rb"\xff\xfe\0\0|\0\0\xfe\xff",
        "UTF-16 text, not UTF-8": rb"\xff\xfe|\xfe\xff",
    },
    ROWS_INSTEAD: {
        "an SQLite database": rb"SQLite format 3\0",
        "a DuckDB database": rb".{8}DUCK[^\0]\0",
        "an ORC file": rb"ORC.{0,3}[\0-\x08]",
        "an Avro file": rb"Obj\x01",
        "a Feather file of version 1": rb"FEA1",
        "an HDF5 file": rb"\x89HDF",
        "a NumPy array": rb"\x93NUMPY",
        "a pickle of Python": rb"\x80[\x02-\x05]",
        "a model in GGUF": rb"GGUF[\x01-\x1f]",
        "a model in safetensors": rb"[^\0]{1,5}\0{3,7}\{\"",
        "a PDF document": rb"%PDF-",
        "an old document of Office": rb"\xd0\xcf\x11\xe0",
        "an image": rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|II\*\0|MM\0\*",
        "sound or video": rb"RIFF.{4}(WAVE|AVI )|OggS\0|fLaC\0|ID3[\x02-\x04]|\0\0.{2}ftyp",
        "a program": rb"\x7fELF|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe|\0asm|MZ[^\n]{0,64}\0",
    },
}
"""What a file is that is not read, by its first bytes, and what to do."""
CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
"""Bytes that texts hardly have, whatever their encoding."""
FEW = 3
"""NUL bytes that the start of a text may have, by mistake."""
ROWS: dict[str, Reader] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".jl", ".jsonlines", ".ldjson"), rows.json_rows),
    **dict.fromkeys((".csv", ".tsv", ".tab"), rows.csv_rows),
    ".parquet": rows.parquet_rows,
    **dict.fromkeys((".arrow", ".feather"), rows.arrow_rows),
}
"""What reads the rows of a file with this ending, unless it starts like another form with rows."""
JSON_FORMS: tuple[tuple[bytes, Reader | None, str], ...] = (
    (rb'\[\s*(?=[{"]|null\b)', rows.array_rows, "a JSON array"),
    (rb'(?=\{[^\S\n]*"[^\n]*(\}\s*(\n|\Z)|\Z))', rows.json_rows, "JSON Lines"),
    (rb'\{\s*"[^"]*"\s*:\s*\[\s*(?=\{)', rows.array_rows, OBJECT),
    (rb'\{\s*"', None, OBJECT),
)
"""How JSON starts before its first row, what reads it, and what it is; the first that matches."""
JSON = ("", ".json")
"""Endings of files that have rows if they start like JSON."""
TEXT = (".txt", ".text", ".md", ".markdown", ".rst", ".tex")
"""Endings of text, even if it starts like JSON."""
