"""Certificates: a list of merges with all that others need to check it without us.

docs/reference/certificate.md describes the two files, the table of words and the certificate, and
outside/ holds a checker that shares no code with what writes them.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.common.errors import Refusal
from harness.common.files import write_output
from harness.proof.compiled_replay import token_ids
from variants.contract import Merge, TieBreak, WordCounts


def table_lines(words: WordCounts) -> Iterator[bytes]:
    """The plain form of a table: for each word its count and its bytes in hexadecimal digits, in
    the order of the bytes.

    >>> b"".join(table_lines(WordCounts.from_items([(b"low", 5), (b"er", 2)])))
    b'2 6572\\n5 6c6f77\\n'
    """
    return (b"%d %b\n" % (count, word.hex().encode()) for word, count in sorted(words.items()))


def certificate(
    words: WordCounts, merges: Sequence[Merge], tie_break: TieBreak, min_count: int, wanted: int
) -> bytes:
    """The certificate of right merges, of which so many were wanted; they are not judged here."""
    table = b"".join(table_lines(words))
    lines = [
        "bpe-certificate 1",
        f"table {len(table)} {hashlib.sha256(table).hexdigest()}",
        f"tie_break {tie_break.value}",
        f"min_count {min_count}",
        f"wanted {wanted}",
    ]

    for left, right in zip(*token_ids(merges), strict=True):
        lines.append(f"{left} {right}")
    content = "".join(f"{line}\n" for line in lines).encode()
    return content + digest_line(content)


def digest_line(content: bytes) -> bytes:
    return b"sha256 %b\n" % hashlib.sha256(content).hexdigest().encode()


def check_plain(is_plain: bool) -> None:
    """Raise Refusal, before anything is trained, if the training is not plain."""
    if not is_plain:
        raise Refusal(
            "a certificate is of plain training: leave out certificate, or extend, veto, seeds and protected"
        )


def write(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a certificate, compressed if its name ends in .gz. Raises Refusal if that fails."""
    packed = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    write_output(path, packed, overwrite=overwrite, instead="choose another file")
