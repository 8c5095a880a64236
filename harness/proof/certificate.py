"""Certificates: a list of merges with all that others need to check it without us.

docs/reference/certificate.md describes the two files, the table of words and the certificate, and
outside/ holds two checkers that share no code with what writes them.
"""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.proof.true_counts import INHERITED, Replay
from variants.contract import Merge, TieBreak, WordCounts
from variants.vetoes import limits_of, named

ANY = "any"
"""The rule of a list that is right up to ties, under none of our tie-breaks."""


def table_lines(words: WordCounts) -> Iterator[bytes]:
    """The plain form of a table: for each word its count and its bytes in hexadecimal digits, in
    the order of the bytes.

    >>> b"".join(table_lines(WordCounts.from_items([(b"low", 5), (b"er", 2)])))
    b'2 6572\\n5 6c6f77\\n'
    """
    return (b"%d %b\n" % (count, word.hex().encode()) for word, count in sorted(words.items()))


def certificate(
    words: WordCounts, replayed: Replay, tie_break: TieBreak | None, veto: str, wanted: int
) -> bytes:
    """The certificate of merges as they were replayed; they are not judged again.

    `tie_break` is None for a list that is right up to ties, `veto` is a name as veto= takes it, and
    `wanted` is how many merges were requested.
    """
    size, digest = 0, hashlib.sha256()
    for line in table_lines(words):
        size += len(line)
        digest.update(line)

    steps, rest = replayed.steps, replayed.rest
    head = {
        "bpe-certificate": 1,
        "table": f"{size} {digest.hexdigest()}",
        "tie_break": ANY if tie_break is None else tie_break.value,
        "min_count": replayed.min_count,
        "veto": veto.strip("[]").replace(" ", "").lower(),
        "inherited": sum(step.judgement == INHERITED for step in steps),
        "wanted": wanted,
        "merges": len(steps),
    }
    lines = [f"{name} {value}" for name, value in head.items()]
    for step, (left, right) in zip(steps, numbered(step.merge for step in steps), strict=True):
        lines.append(f"{left} {right} {step.count} {step.best.tied}")
    lines.append(f"left {rest.count} {rest.tied}\n")
    content = "\n".join(lines).encode()
    return content + digest_line(content)


def numbered(merges: Iterable[Merge]) -> Iterator[tuple[int, int]]:
    """The two tokens of each merge by number: a byte by its value, then the merges from 256 on."""
    numbers = {bytes((byte,)): byte for byte in range(256)}
    for number, (left, right) in enumerate(merges, 256):
        yield numbers[left], numbers[right]
        numbers.setdefault(left + right, number)


def digest_line(content: bytes) -> bytes:
    return b"sha256 %b\n" % hashlib.sha256(content).hexdigest().encode()


def check_writable(path: Path, veto: str, overwrite: bool) -> None:
    """Raise Refusal, before anything is trained, if nobody can check a certificate of this veto, or
    none can be written there.
    """
    if limits_of(named(veto)).own is not None:
        raise Refusal(f"nobody else has veto={veto}, so none can check it; leave out certificate")
    if path.exists() and (path.is_dir() or not overwrite):
        raise Refusal(f"{path} exists; remove it, or choose another file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise Refusal(
            f"cannot write {path} ({reason(error)}); choose another file", UNMEASURED
        ) from error


def write(path: Path, content: bytes) -> None:
    """Write a certificate, compressed if its name ends in .gz. Raises Refusal if that fails."""
    packed = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    files.write_whole(path, packed, "choose another file")
