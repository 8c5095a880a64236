"""Check a certificate of byte-level BPE merges: python check_certificate.py TABLE CERTIFICATE

It prints "accepted" (exit code 0), the first wrong merge (1), or why a file cannot be read (2). It
needs the standard library alone; docs/reference/certificate.md describes both files.

A word is a string with a character for each token, so a merge is str.replace. The count of a pair
never rises after the merge that creates it, so a heap of old counts is right once its top is.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import operator
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LIMIT = 2**63 - 1  # no number in a file is larger, and no sum of counts
LINE = re.compile(rb"([1-9]\d*) ((?:[0-9a-f]{2})+)\n")
FORM = re.compile(
    rb"(bpe-certificate 1\ntable (\d+) ([0-9a-f]{64})\ntie_break (\w+)\nmin_count (\d+)\n"
    rb"veto (\S+)\ninherited (\d+)\nwanted (\d+)\nmerges (\d+)\n"
    rb"((?:\d+ \d+ \d+ \d+\n)*)left (\d+ \d+)\n)sha256 ([0-9a-f]{64})\n"
)
HIDDEN = {*range(33), *range(127, 161), 173}  # the bytes that GPT-2 shows as other characters
BYTES = sorted(range(256), key=lambda byte: (byte in HIDDEN, byte))
RANKS: dict[str, Callable[[int, bytes], Any]] = {
    "greatest_bytes": lambda _, token: "".join(chr(255 - byte) for byte in token) + chr(256),
    "smallest_bytes": lambda _, token: token,
    "raw_bytes": lambda number, _: number,
    "huggingface": lambda number, _: BYTES.index(number) if number < 256 else number,
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


def numbers(text: bytes) -> list[int]:
    values = list(map(int, text.split()))
    if max(values, default=0) > LIMIT:
        raise ValueError("a number is larger than 2**63 - 1")
    return values


def pairs(word: str) -> Iterator[str]:
    return map(operator.add, word, word[1:])


class Text:
    """The words of a table, the counts of their pairs, and the most frequent pair of all."""

    def __init__(self, table: bytes, tie_break: str, veto: str) -> None:
        lines = LINE.findall(table)
        if sum(len(count) + len(word) + 2 for count, word in lines) != len(table):
            raise ValueError("a line of the table is not a count and a word in hexadecimal digits")
        self.words = [bytes.fromhex(word.decode()).decode("latin-1") for _, word in lines]
        self.weights = numbers(b" ".join(count for count, _ in lines))
        adjacent = (count * (len(word) - 1) for count, word in zip(self.weights, self.words))
        if sum(adjacent) > LIMIT:
            raise ValueError("the counts of the table add up to more than 2**63 - 1")

        self.rank, names = RANKS[tie_break], [name.partition(":") for name in veto.split(",")]
        self.vetoes = [(VETOES[name], value) for name, _, value in names]
        self.spelled: set[bytes] = set()  # by the inherited merges
        self.tokens: list[bytes] = []
        self.ranks: list[Any] = []
        for byte in range(256):
            self.add(bytes((byte,)))

        self.counts: dict[str, int] = defaultdict(int)
        self.places: dict[str, set[int]] = defaultdict(set)
        self.sharing: dict[int, int] = defaultdict(int)  # how many pairs have a count
        self.heap: list[tuple[int, Any, Any, str]] = []
        for index, word in enumerate(self.words):
            for pair in pairs(word):
                self.counts[pair] += self.weights[index]
                self.places[pair].add(index)
        self.restart()

    def add(self, token: bytes) -> str:
        self.ranks.append(self.rank(len(self.tokens), token))
        self.tokens.append(token)
        return chr(len(self.tokens) - 1)

    def merge(self, pair: str) -> dict[str, int]:
        """Make a merge in all words; returns by how much the count of each pair changes."""
        new = self.add(self.spelling(pair))
        changes: dict[str, int] = defaultdict(int)
        for index in self.places.pop(pair, ()):
            word, weight = self.words[index], self.weights[index]
            merged = self.words[index] = word.replace(pair, new)
            for before in pairs(word):
                changes[before] -= weight
            for after in pairs(merged):
                changes[after] += weight
                if new in after:
                    self.places[after].add(index)
        return changes

    def spelling(self, pair: str) -> bytes:
        return self.tokens[ord(pair[0])] + self.tokens[ord(pair[1])]

    def refused(self, pair: str) -> bool:
        left, right = self.tokens[ord(pair[0])], self.tokens[ord(pair[1])]
        return left + right in self.spelled or any(
            veto(left, right, value) for veto, value in self.vetoes
        )

    def restart(self) -> None:
        """Look at every pair again: after the inherited merges more of them are refused."""
        counts, self.counts = self.counts, defaultdict(int)
        self.sharing.clear()
        self.heap.clear()
        self.settle(counts)

    def settle(self, changes: dict[str, int]) -> None:
        """Change counts, and what is known of the pairs that may be merged."""
        for pair, change in changes.items():
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


def fault_of(table: bytes, certificate: bytes) -> str:
    """The first wrong merge and why; empty if all are right. Raises ValueError if it cannot tell."""
    form = FORM.fullmatch(certificate)
    if form is None:
        raise ValueError("the certificate is not of format 1")
    if hashlib.sha256(form[1]).hexdigest().encode() != form[12]:
        raise ValueError("the certificate is damaged: its digest is another")
    if (len(table), hashlib.sha256(table).hexdigest().encode()) != (int(form[2]), form[3]):
        raise ValueError("the table is not the one that the certificate names")
    tie_break, veto = form[4].decode(), form[6].decode()
    min_count, inherited, wanted, made = numbers(b" ".join(form.group(5, 7, 8, 9)))
    merges = list(map(numbers, form[10].splitlines()))
    if not (len(merges) == made >= inherited and min_count and made < sys.maxunicode - 256):
        raise ValueError("the certificate has other merges than it says, too many, or min_count 0")

    text = Text(table, tie_break, veto)
    for number, (left, right, count, tied) in enumerate(merges, 1):
        if number > wanted:
            return f"merge {number} is one too many"
        if max(left, right) >= len(text.tokens):
            return f"merge {number} is of a token that no merge before it makes"
        pair = chr(left) + chr(right)
        true, (best, sharing, first) = text.counts.get(pair, 0), text.best()
        if number <= inherited:
            sharing = 0
            if text.spelling(pair) in text.spelled:
                return f"merge {number} spells an inherited token again"
            text.spelled.add(text.spelling(pair))
        elif text.refused(pair):
            return f"merge {number} may not be made: it is vetoed, or spells an inherited token"
        elif not true or true < max(best, min_count):
            return f"merge {number} has count {true}, not {best}, or is below min_count"
        elif first != pair and tie_break != "any":
            return f"merge {number} breaks a tie otherwise: {text.spelling(first).hex()} goes first"
        if (count, tied) != (true, sharing):
            return f"merge {number} has count {true}, shared by {sharing}, not {count} and {tied}"
        text.settle(text.merge(pair))
        if number == inherited:
            text.restart()

    best, sharing, _ = text.best()
    if numbers(form[11]) != [best, sharing]:
        return f"merge {made + 1}: count {best} is left, shared by {sharing}"
    if made < wanted and best >= min_count:
        return f"merge {made + 1} is missing: a pair with count {best} is left"
    return ""


def read(path: str) -> bytes:
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def main(arguments: list[str]) -> int:
    try:
        table, certificate = map(read, arguments)
        fault = fault_of(table, certificate)
    except (OSError, EOFError, ValueError, KeyError, zlib.error) as error:
        sys.stdout.write(f"unreadable: {error}\n")
        return 2
    sys.stdout.write(f"wrong: {fault}\n" if fault else "accepted\n")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
