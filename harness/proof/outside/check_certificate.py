"""Check a certificate of byte-level BPE merges: python check_certificate.py TABLE CERTIFICATE

It prints "accepted" (exit code 0), the first wrong merge (1), or what cannot be read (2). It needs
the standard library alone; docs/reference/certificate.md describes both files; - is the input.

A word is a string with a character for each token, so a merge is str.replace. The count of a pair
never rises after the merge that creates it, so a heap of old counts is right once its top is.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

LIMIT = 2**63 - 1  # no number in a file is larger, and no sum of counts
NUMBER = rb"(\d{1,19})"
MERGE = NUMBER + rb" " + NUMBER + rb" " + NUMBER + rb" " + NUMBER
VETO = rb"none|superbpe|whole_characters|bytes:\d{1,18}|characters:\d{1,18}|protected:[0-9a-f.]+"
HIDDEN = {*range(33), *range(127, 161), 173}  # the bytes that GPT-2 shows as other characters
RANKS: dict[str, Callable[[int, bytes], Any]] = {
    "greatest_bytes": lambda _, token: "".join(chr(255 - byte) for byte in token) + chr(256),
    "smallest_bytes": lambda _, token: token,
    "raw_bytes": lambda number, _: number,
    "huggingface": lambda number, _: (number > 255, number in HIDDEN, number),
    "any": lambda _, __: 0,
}
"""The rank of a token by its number and its bytes: of equal counts the smallest ranks go first."""
VETOES: dict[str, Callable[[bytes, bytes, str], bool]] = {
    "none": lambda _, __, ___: False,
    "superbpe": lambda a, b, _: b": " in a + b or len([*filter(None, (a + b).split(b" "))]) > 4,
    "whole_characters": lambda a, b, _: not is_whole(a + b),
    "bytes": lambda a, b, most: len(a + b) > int(most),
    "characters": lambda a, b, most: sum(byte & 0xC0 != 0x80 for byte in a + b) > int(most),
    "protected": lambda a, b, tokens: not {a.hex(), b.hex()}.isdisjoint(tokens.split(".")),
}
"""Whether two halves may not merge, by the name of the veto before the colon."""


def is_whole(token: bytes) -> bool:
    """Whether a token is whole characters, or the beginning of one."""
    try:
        return token.decode() != ""
    except UnicodeDecodeError as error:
        return error.start == 0 and error.reason == "unexpected end of data"


def end(code: int, sentence: str) -> NoReturn:
    sys.stdout.write(f"{sentence}\n")
    sys.exit(code)


class Source:
    """A file, line by line."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.number, self.lines = name, 0, io.BytesIO(content)

    def bad_line(self) -> NoReturn:
        end(2, f"unreadable: line {self.number} of the {self.name}")

    def fields(self, form: bytes) -> tuple[str, ...]:
        """The groups of an expression in the next line."""
        self.number += 1
        found = re.fullmatch(form + rb"\n", self.lines.readline())
        if found is None:
            self.bad_line()
        return tuple(group.decode() for group in found.groups())

    def value(self, digits: str) -> int:
        if int(digits) > LIMIT:
            self.bad_line()
        return int(digits)

    def values(self, form: bytes) -> list[int]:
        return list(map(self.value, self.fields(form)))


def pairs(word: str) -> Iterator[str]:
    return map(operator.add, word, word[1:])


class Text:
    """The words of a table, the counts of their pairs, and the most frequent pair of all."""

    def __init__(self, table: Source, tie_break: str, vetoes: str) -> None:
        self.words, self.weights, total = [], [], 0
        while table.lines.tell() < len(table.lines.getbuffer()):
            digits, word = table.fields(NUMBER + rb" ((?:[0-9a-f]{2})+)")
            self.words.append(bytes.fromhex(word).decode("latin-1"))
            self.weights.append(table.value(digits))
            total += self.weights[-1] * (len(self.words[-1]) - 1)
            if total > LIMIT or not self.weights[-1]:
                table.bad_line()

        self.rank, names = RANKS[tie_break], [veto.partition(":") for veto in vetoes.split(",")]
        self.vetoes = [(VETOES[name], value) for name, _, value in names]
        self.spelled: set[bytes] = set()  # by the inherited merges
        self.tokens: list[bytes] = []
        self.ranks: list[Any] = []
        for byte in range(256):
            self.add(bytes((byte,)))

        self.counts: dict[str, int] = defaultdict(int)
        self.words_of_pair: dict[str, set[int]] = defaultdict(set)
        for index, text in enumerate(self.words):
            for pair in pairs(text):
                self.counts[pair] += self.weights[index]
                self.words_of_pair[pair].add(index)
        self.begin()

    def begin(self) -> None:
        """Look at every pair again: after the inherited merges more of them are refused."""
        self.sharing: dict[int, int] = defaultdict(int)  # how many pairs have a count
        self.heap: list[tuple[int, Any, Any, str]] = []
        counts, self.counts = self.counts, defaultdict(int)
        for pair, count in counts.items():
            self.change(pair, count)

    def add(self, token: bytes) -> str:
        self.ranks.append(self.rank(len(self.tokens), token))
        self.tokens.append(token)
        return chr(len(self.tokens) - 1)

    def spelling(self, pair: str) -> bytes:
        return self.tokens[ord(pair[0])] + self.tokens[ord(pair[1])]

    def refused(self, pair: str) -> bool:
        left, right = self.tokens[ord(pair[0])], self.tokens[ord(pair[1])]
        return left + right in self.spelled or any(
            veto(left, right, value) for veto, value in self.vetoes
        )

    def change(self, pair: str, change: int) -> None:
        """Change a count, and what is known of the pairs that may be merged."""
        count = self.counts[pair]
        self.counts[pair] += change
        if change and not self.refused(pair):
            self.sharing[count] -= 1
            self.sharing[count + change] += 1
            if not count:
                self.push(pair)

    def push(self, pair: str) -> None:
        left, right = map(ord, pair)
        heapq.heappush(self.heap, (-self.counts[pair], self.ranks[left], self.ranks[right], pair))

    def merge(self, pair: str) -> None:
        """Make a merge in all words."""
        new = self.add(self.spelling(pair))
        changes: dict[str, int] = defaultdict(int)
        for index in self.words_of_pair.pop(pair, ()):
            word, weight = self.words[index], self.weights[index]
            merged = self.words[index] = word.replace(pair, new)
            for before in pairs(word):
                changes[before] -= weight
            for after in pairs(merged):
                changes[after] += weight
                if new in after:
                    self.words_of_pair[after].add(index)
        for changed, change in changes.items():
            self.change(changed, change)

    def best(self) -> tuple[int, int, str]:
        """The highest count, how many pairs share it, and which goes first; 0 if none is left."""
        while self.heap:
            count, pair = -self.heap[0][0], self.heap[0][-1]
            if count == self.counts[pair]:
                return count, self.sharing[count], pair
            heapq.heappop(self.heap)
            if self.counts[pair]:
                self.push(pair)
        return 0, 0, ""


def check_choice(text: Text, pair: str, number: int, min_count: int, tie_break: str) -> None:
    count, (highest, _, first) = text.counts.get(pair, 0), text.best()
    if text.refused(pair):
        end(1, f"wrong: merge {number} is vetoed, or spells an inherited token again")
    if not count or count < max(highest, min_count):
        end(1, f"wrong: merge {number} has count {count}, the highest is {highest}")
    if first != pair and tie_break != "any":
        left, right = (text.tokens[ord(half)].hex() for half in first)
        end(1, f"wrong: merge {number} breaks a tie otherwise: {left} {right} goes first")


def check(table: bytes, certificate: bytes) -> None:
    body, digest = certificate[:-72], hashlib.sha256(certificate[:-72]).hexdigest()
    if certificate[-72:] != b"sha256 %b\n" % digest.encode():
        end(2, "unreadable: the certificate is damaged, or compressed")

    source = Source("certificate", body)
    if source.values(rb"bpe-certificate " + NUMBER) != [1]:
        source.bad_line()
    size, digest = source.fields(rb"table " + NUMBER + rb" ([0-9a-f]+)")
    if (source.value(size), digest) != (len(table), hashlib.sha256(table).hexdigest()):
        end(2, "unreadable: the table is not the one that the certificate names")
    (tie_break,) = source.fields(rb"tie_break (%b)" % "|".join(RANKS).encode())
    (min_count,) = source.values(rb"min_count " + NUMBER)
    if not min_count:
        source.bad_line()
    (vetoes,) = source.fields(rb"veto ((?:%b)(?:,(?:%b))*)" % (VETO, VETO))
    (inherited,) = source.values(rb"inherited " + NUMBER)
    (wanted,) = source.values(rb"wanted " + NUMBER)
    (listed,) = source.values(rb"merges " + NUMBER)
    if not inherited <= listed <= 1_000_000:
        source.bad_line()

    text = Text(Source("table", table), tie_break, vetoes)
    for number in range(1, listed + 1):
        left, right, count, shared = source.values(MERGE)
        if number > wanted:
            end(1, f"wrong: merge {number} is one too many")
        if max(left, right) >= len(text.tokens):
            end(1, f"wrong: merge {number} is of a token that no merge before it makes")
        pair = chr(left) + chr(right)
        if number > inherited:
            check_choice(text, pair, number, min_count, tie_break)
        elif text.spelling(pair) in text.spelled:
            end(1, f"wrong: merge {number} spells an inherited token again")
        true, sharing = text.counts.get(pair, 0), text.best()[1] if number > inherited else 0
        if (count, shared) != (true, sharing):
            end(1, f"wrong: merge {number} has count {true}, shared by {sharing}")
        text.merge(pair)
        if number <= inherited:
            text.spelled.add(text.tokens[-1])
        if number == inherited:
            text.begin()

    highest, sharing, _ = text.best()
    if source.values(rb"left " + NUMBER + rb" " + NUMBER) != [highest, sharing]:
        end(1, f"wrong: merge {listed + 1}: count {highest} is left, shared by {sharing}")
    if listed < wanted and highest >= min_count:
        end(1, f"wrong: merge {listed + 1} is missing: a pair with count {highest} is left")
    source.number += 1
    if source.lines.read():
        source.bad_line()


def read_file(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError:
        end(2, f"unreadable: cannot read {path}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        end(2, "usage: check_certificate TABLE CERTIFICATE")
    check(*map(read_file, sys.argv[1:]))
    end(0, "accepted")
