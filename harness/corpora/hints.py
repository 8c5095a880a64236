"""To tell of a file that is read as it is: a mark at its start, another encoding, a table. Of a slice, its length."""

from __future__ import annotations

from pathlib import Path

from harness.common.units import count_text, parse_bytes

LOOKED_AT = 4096
ZERO_SHARE = 0.2
"""Text in UTF-8 has no zero bytes; of UTF-16 in Latin letters every second byte is one."""
LEAST_SHARE = 0.9
"""A slice that has less of what was asked for is told."""
MARK = b"\xef\xbb\xbf"
TABLES = (".csv", ".tsv", ".xlsx", ".xls")


def hints(path: Path, name: str) -> tuple[str, ...]:
    """A sentence for each thing that is probably not meant, with what to do about it."""
    with path.open("rb") as file:
        head = file.read(LOOKED_AT)
    said = []
    if head.startswith(MARK):
        said.append(f"{name} begins with a byte order mark, which is trained on; tail -c +4 gives the text without it")
    if head and head.count(0) >= ZERO_SHARE * len(head):
        said.append(f"{name} has many zero bytes and may be UTF-16; iconv -f UTF-16LE -t UTF-8 converts it")
    if name.lower().endswith(TABLES):
        said.append(
            f"{name} is read as plain text, with its headings, separators and quotes; to train on one column, write "
            "that as text or Parquet (data.column=NAME) first"
        )
    return tuple(said)


def shorter_than_asked(name: str, asked: str | int | None, size: int, rest: int) -> tuple[str, ...]:
    """What there is to say of a slice of `size` bytes where `asked` were, of text that goes on for `rest` more."""
    if asked is None or size >= LEAST_SHARE * parse_bytes(asked, "data.bytes") or not rest:
        return ()
    return (
        f"data.bytes={asked} of {name} became {count_text(size)} bytes: a slice ends where a document does, and the "
        "next document is too long for it",
    )
