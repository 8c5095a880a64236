"""To tell of a file that is read as it is: a mark at its start, another encoding, a table."""

from __future__ import annotations

from pathlib import Path

LOOKED_AT = 4096
ZERO_SHARE = 0.2
"""Text in UTF-8 has no zero bytes; of UTF-16 in Latin letters every second byte is one."""
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
