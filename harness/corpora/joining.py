"""Files of packages as one corpus: which of them, in which order, what of each, and what stands behind each.

A rule is read from a card's source: `files` are patterns (`*.py`; `*` also stands for slashes), `order` is `archive`,
`name` or `version` (the file's own name, numbers in it by their value), `take` says what of a file is text
and `lines` which lines of it are, `separator` ends each.
"""

from __future__ import annotations

import fnmatch
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import placing
from harness.corpora.archives import Member
from harness.corpora.files import Damaged


@dataclass(frozen=True)
class Rule:
    """How files become one corpus."""

    files: tuple[str, ...]
    order: str = "archive"
    take: str = "whole"
    lines: str | None = None
    separator: str = ""

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Rule:
        further = {key: source[key] for key in ("order", "take", "lines", "separator") if key in source}
        return cls(tuple(source["files"]), **further)

    def means(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.files)


def by_version(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers within names by their value, wherever the files lie.

    >>> sorted(["new/rfc10.txt", "old/rfc9.txt"], key=by_version)
    ['old/rfc9.txt', 'new/rfc10.txt']
    """
    parts = re.findall(r"\d+|\D+", name.rpartition("/")[2])
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


ORDER: dict[str, Callable[[str], Any]] = {"name": lambda name: name, "version": by_version}


def whole(content: bytes) -> bytes:
    return content


def sequence(content: bytes) -> bytes:
    """The letters of a FASTA file, without headers and newlines.

    >>> sequence(b">seq one\\nACG\\nT\\n")
    b'ACGT'
    """
    return b"".join(line.strip() for line in content.splitlines() if not line.startswith(b">"))


TAKE: dict[str, Callable[[bytes], bytes]] = {"whole": whole, "sequence": sequence}


def matching_lines(content: bytes, pattern: str) -> bytes:
    r"""What the pattern's first group takes of every line that it matches, a line each.

    >>> matching_lines(b'[\n  "one",\n  "two"\n]', '^ *"(.*)",?$')
    b'one\ntwo\n'
    """
    return b"".join(found[1] + b"\n" for found in re.finditer(pattern.encode(), content, re.MULTILINE))


def join(
    members: Iterable[Member], rule: Rule, place: Path, show: Callable[[int], None], most: int | None = None
) -> None:
    """Write the corpus that the rule makes of these files. Raises Refusal if none of them is meant.

    A file of more than `most` bytes is refused before it is in memory.
    """
    with placing(place) as temporary:
        pieces: list[tuple[str, int, int]] = []
        spool = temporary if rule.order == "archive" else temporary.with_name("in order of the archive")
        with spool.open("wb") as file:
            for member in members:
                if rule.means(member.name):
                    start = file.tell()
                    file.write(text_of(member, rule, most) + rule.separator.encode())
                    pieces.append((member.name, start, file.tell()))
                    show(file.tell())
        if not pieces:
            raise Refusal(
                f"no file is called {' or '.join(rule.files)} there; the card is meant for another version", UNMEASURED
            )
        if spool != temporary:
            reorder(spool, temporary, sorted(pieces, key=lambda piece: ORDER[rule.order](piece[0])))


def reorder(spool: Path, place: Path, pieces: Iterable[tuple[str, int, int]]) -> None:
    with spool.open("rb") as source, place.open("wb") as target:
        for _, start, stop in pieces:
            source.seek(start)
            target.write(source.read(stop - start))


def text_of(member: Member, rule: Rule, most: int | None = None) -> bytes:
    """What the rule takes of a file. Raises Damaged for one of more than `most` bytes, none of which are kept."""
    packed = member.name.endswith(".gz")
    source = cast("IO[bytes]", gzip.GzipFile(fileobj=member.content)) if packed else member.content
    try:
        plain = source.read(-1 if most is None else most + 1)
    except (OSError, EOFError, zlib.error) as error:
        if not packed:
            raise
        raise Refusal(
            f"{member.name} cannot be unpacked ({error}); the package itself is at fault", UNMEASURED
        ) from error
    if most is not None and len(plain) > most:
        raise Damaged(
            f"{member.name} unpacks to more than {most} bytes, more than its card can mean; nothing was kept, and if "
            "it is the same again, its source has changed"
        )
    text = TAKE[rule.take](plain)
    return text if rule.lines is None else matching_lines(text, rule.lines)
