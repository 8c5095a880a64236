"""Check a certificate of byte-level BPE merges: python check_certificate.py TABLE CERTIFICATE

It prints "accepted: ..." (exit code 0), the first wrong merge (1), or why it cannot tell (2); - is
the standard input. docs/reference/certificate.md describes both files.

A token's number is at its first and last place in the text. A merge visits the places where its pair
appeared. A count only falls after that, so a heap of old counts is right if its top is.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NoReturn

LIMIT = 2**63 - 1  # of a count, and of the sum of all counts
IDS = 1 << 32  # a pair is one number: left * IDS + right
END, HOLE = -1, -2  # between two words; where the right half of a token began
HIDDEN = {*range(33), *range(127, 161), 173}  # the bytes that GPT-2 shows as other characters
HEAD = (
    rb"bpe-certificate 1\ntable (\d{1,19}) ([0-9a-f]{64})\n"
    rb"tie_break (greatest_bytes|smallest_bytes|huggingface|raw_bytes)\n"
    rb"min_count ([1-9]\d{0,18})\nwanted (\d{1,19})\n"
)


def end(code: int, sentence: str) -> NoReturn:
    try:
        os.write(1, f"{sentence}\n".encode())
    except OSError:
        code = 2
    sys.exit(code)


def read(path: str, most: int) -> bytes:  # one more if there are more
    try:
        with open(0 if path == "-" else path, "rb") as file:  # noqa: PTH123
            return file.read(most + 1)
    except OSError as error:
        end(2, f"unreadable: cannot read {path} ({error.strerror})")


def fields(name: str, number: int, form: bytes, line: bytes) -> tuple[bytes, ...]:
    found = re.fullmatch(form + rb"\n", line)  # the line must match
    return found.groups() if found else end(2, f"unreadable: line {number} of the {name}")


class Spelling:
    """The bytes of a token, as a place in a text: which of two goes first."""

    def __init__(self, text: bytearray, start: int, length: int, rule: str) -> None:
        self.text, self.start, self.end = text, start, start + length
        self.greatest = rule == "greatest_bytes"

    def part(self, size: int) -> bytearray:
        return self.text[self.start : min(self.start + size, self.end)]

    def __lt__(self, other: Spelling) -> bool:
        mine: Any = self.end
        theirs: Any = other.end
        if self.start != other.start:  # else one begins the other
            size = 32
            while (mine := self.part(size)) == (theirs := other.part(size)) and len(mine) == size:
                size *= 2
        return bool(mine != theirs) and (mine < theirs) != self.greatest


class Text:
    """All bytes and the words as one text of tokens, and the count and the places of each pair."""

    def __init__(self, table: bytes, tie_break: str) -> None:
        self.tie_break = tie_break
        self.ranks: list[Any] = []
        self.lengths: list[int] = []
        self.bytes, total, before = bytearray((*range(256), 0)), 0, b""
        self.tokens, self.weights = array("q", [END] * 257), array("q", [0] * 257)
        for byte in range(256):
            self.add(byte, 1)

        for number, line in enumerate(table.splitlines(keepends=True), 1):
            digits, letters = fields("table", number, rb"([1-9]\d{0,18}) ([0-9a-f]+)", line)
            word = bytes.fromhex(letters.decode()) if len(letters) % 2 == 0 else b""
            total += int(digits) * (len(word) - 1)
            if int(digits) > LIMIT or word <= before or total > LIMIT:
                end(2, f"unreadable: line {number} of the table")
            self.tokens.extend([*word, END])
            self.weights.extend([int(digits)] * (len(word) + 1))
            self.bytes += word + b"\0"
            before = word
        self.counts: dict[int, int] = defaultdict(int)
        self.places: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self.heap: list[tuple[int, Any, Any, int]] = []
        self.appear(place for place, token in enumerate(self.tokens) if token != END)

    def add(self, start: int, length: int) -> int:
        """Number the token that is at this place, and rank it: the smallest rank goes first."""
        number, spelling = len(self.ranks), Spelling(self.bytes, start, length, self.tie_break)
        by_number = {"raw_bytes": number, "huggingface": (number > 255, number in HIDDEN, number)}
        self.ranks.append(by_number.get(self.tie_break, spelling))
        self.lengths.append(length)
        return number

    def pair_at(self, place: int) -> int:  # negative at the end of a word
        left = self.tokens[place]
        right = self.tokens[place + self.lengths[left]]
        return left * IDS + right if right != END else END

    def appear(self, places: Iterable[int]) -> None:
        """Count the pairs that begin at these places, all of which are new."""
        new: dict[int, None] = {}
        for place in places:
            if (pair := self.pair_at(place)) != END:
                self.counts[pair] += self.weights[place]
                self.places[pair].append(place)
                new[pair] = None
        for pair in new:
            self.push(pair)

    def push(self, pair: int) -> None:
        left, right = divmod(pair, IDS)
        heapq.heappush(self.heap, (-self.counts[pair], self.ranks[left], self.ranks[right], pair))

    def first(self) -> tuple[int, int]:
        """The highest count and the pair that goes first; 0 if no pair is left."""
        while self.heap:
            count, pair = -self.heap[0][0], self.heap[0][-1]
            if count == self.counts[pair]:
                return count, pair
            heapq.heappop(self.heap)
            if self.counts[pair]:
                self.push(pair)
        return 0, END

    def merge(self) -> None:
        """Replace the pair that goes first in all words, from the left and without overlap."""
        pair = heapq.heappop(self.heap)[-1]
        (left, right), places = divmod(pair, IDS), self.places.pop(pair)
        half, length = self.lengths[left], self.lengths[left] + self.lengths[right]
        merged, changed = self.add(places[0], length), dict[int, None]()

        for place in places:
            if self.tokens[place] != left or self.tokens[place + half] != right:
                continue
            before = self.tokens[place - 1]
            neighbour = [place - self.lengths[before]] if before != END else []
            for start in (*neighbour, place, place + half):
                if start not in changed and (old := self.pair_at(start)) != END:
                    self.counts[old] -= self.weights[place]
            self.tokens[place + half] = HOLE
            self.tokens[place] = self.tokens[place + length - 1] = merged
            changed.update(dict.fromkeys([*neighbour, place]))
        self.appear(changed)


def judge(table_path: str, certificate_path: str) -> NoReturn:
    content = read(certificate_path, 20_000_000)
    body, digest = content[:-72], hashlib.sha256(content[:-72]).hexdigest()
    if content[-72:] != f"sha256 {digest}\n".encode():
        end(2, "unreadable: the certificate is damaged, compressed or too long")
    head = re.match(HEAD, body) or end(2, "unreadable: the first five lines of the certificate")
    size, min_count, wanted = map(int, head.group(1, 4, 5))
    table, rule = read(table_path, size), head[3].decode()
    if len(table) != size or hashlib.sha256(table).hexdigest().encode() != head[2]:
        end(2, "unreadable: the table is not the one that the certificate names")
    lines = body[head.end() :].splitlines(keepends=True)

    text = Text(table, rule)
    for number, line in enumerate(lines, 1):
        left, right = map(int, fields("certificate", number + 5, rb"(\d{1,9}) (\d{1,9})", line))
        pair, (highest, first) = left * IDS + right, text.first()
        count, needed = text.counts.get(pair, 0), max(highest, min_count)
        if number > wanted:
            end(1, f"wrong: merge {number} is one too many")
        if count < needed:
            end(1, f"wrong: merge {number} has count {count}, below {needed}")
        if pair != first:
            end(1, f"wrong: merge {number} breaks a tie: {divmod(first, IDS)} goes first")
        text.merge()

    if len(lines) < wanted and text.first()[0] >= min_count:
        end(1, f"wrong: merge {len(lines) + 1} is missing: a pair with that count is left")
    end(0, f"accepted: {len(lines)} of {wanted} merges, tie_break {rule}, min_count {min_count}")


def check(table_path: str, certificate_path: str) -> NoReturn:
    try:
        judge(table_path, certificate_path)
    except (MemoryError, OverflowError):
        end(2, "unreadable: these words need more memory than there is")


if __name__ == "__main__":
    usage = "usage: check_certificate.py TABLE CERTIFICATE"
    check(*sys.argv[1:]) if len(sys.argv) == 3 else end(2, usage)
