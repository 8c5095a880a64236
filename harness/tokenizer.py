"""A trained tokenizer at work: encode by merge rank, plainly; decode; load what `save` has written.

What it does is the definition read backwards: split at special tokens, the longest first, split by the pattern, and
inside each piece make the earliest learned merge everywhere before the next. Any bytes come back as they went in.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Literal

import regex

from harness.errors import INTERRUPTED, OK, Refusal
from harness.tokenizer_files import check_writable, read, save
from variants.contract import GPT2_PATTERN, Merge, Pair
from variants.words import merge_pair

__all__ = ["Tokenizer", "check_writable", "load", "main", "save"]

WORDS_KEPT = 1 << 16
LONGEST_KEPT = 64


def load(
    folder: Path | str, *, pattern: str | EllipsisType | None = ..., special_tokens: Sequence[str] | None = None
) -> Tokenizer:
    """The tokenizer in a folder.

    A folder from elsewhere that holds vocab.json and merges.txt but no manifest.json needs `pattern` (a regular
    expression, or None for raw bytes) and, if it has any, `special_tokens`.
    Raises Refusal, with what to do, for a file that is missing, damaged, or not of one piece with the others.
    """
    return Tokenizer(*read(Path(folder), pattern, special_tokens))


class Tokenizer:
    """Merges and what they make: `vocab` from id to bytes, `special_tokens` from text to id, `pattern`.

    >>> from variants.contract import vocab_of
    >>> merges = [(b"l", b"o"), (b"lo", b"w")]
    >>> tokenizer = Tokenizer(vocab_of(merges, ["<|e|>"]), merges, {"<|e|>": 256})
    >>> tokenizer.encode("low<|e|>lot")
    [258, 256, 257, 116]
    >>> tokenizer.decode([258, 256])
    b'low<|e|>'
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Mapping[str, int],
        pattern: str | None = GPT2_PATTERN,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.special_tokens = dict(special_tokens)
        self.pattern = pattern
        self._compiled = None if pattern is None else _compiled(pattern)
        # A special token may have the bytes of a merge; the merge's id is then the one meant.
        special_ids = set(self.special_tokens.values())
        ids = {token: number for number, token in self.vocab.items() if number not in special_ids}
        self._byte_ids = [ids[bytes((byte,))] for byte in range(256)]
        self._ranks: dict[Pair, int] = {}
        self._made: list[tuple[Pair, int]] = []
        for rank, (left, right) in enumerate(self.merges):
            pair = ids[left], ids[right]
            self._ranks.setdefault(pair, rank)
            self._made.append((pair, ids[left + right]))
        self._special_ids = {text.encode(): number for text, number in self.special_tokens.items()}
        longest_first = sorted(self._special_ids, key=len, reverse=True)
        self._special = re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        self._kept = functools.lru_cache(WORDS_KEPT)(self._merged)

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a text, or of any bytes. Raises Refusal for a text that has no UTF-8."""
        content = _utf8(text) if isinstance(text, str) else bytes(text)
        ids: list[int] = []
        end = 0
        for special in self._special.finditer(content) if self._special else ():
            self._encode_stretch(content[end : special.start()], ids)
            ids.append(self._special_ids[special[0]])
            end = special.end()
        self._encode_stretch(content[end:], ids)
        return ids

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids. Raises Refusal for an id that is not in the vocabulary."""
        try:
            return b"".join([self.vocab[number] for number in ids])
        except KeyError as error:
            raise Refusal(f"there is no token {error}; the ids of this tokenizer are 0 to {max(self.vocab)}") from error

    def decode_text(self, ids: Iterable[int], errors: Literal["strict", "replace"] = "strict") -> str:
        """The text of some ids. Raises Refusal if their bytes are not UTF-8, unless errors is `replace`."""
        try:
            return self.decode(ids).decode(errors=errors)
        except UnicodeDecodeError as error:
            raise Refusal(
                f"the bytes of these ids are not UTF-8 at byte {error.start}; say errors='replace', or take the bytes"
            ) from error

    def _encode_stretch(self, stretch: bytes, ids: list[int]) -> None:
        for piece in self._pieces(stretch):
            # Long pieces hardly ever come again; keeping them would only cost memory.
            ids += self._kept(piece) if len(piece) <= LONGEST_KEPT else self._merged(piece)

    def _pieces(self, stretch: bytes) -> Iterator[bytes]:
        """The pre-tokens, and between them what the pattern passes over, so that nothing is lost.

        Bytes that are not UTF-8 become lone surrogates for the time that the pattern looks at them.
        """
        if self._compiled is None:
            yield stretch
            return
        text = stretch.decode(errors="surrogateescape")
        end = 0
        # Sorted, because a pattern may say (?r) and be matched from the end.
        for start, stop in [*sorted(match.span() for match in self._compiled.finditer(text)), (len(text), len(text))]:
            for piece in (text[end:start], text[start:stop]):
                if piece:
                    yield piece.encode(errors="surrogateescape")
            end = stop

    def _merged(self, piece: bytes) -> Sequence[int]:
        """The piece's tokens; the work is its length for each of the merges made in it, which suits words."""
        tokens = [self._byte_ids[byte] for byte in piece]
        while ranks := [self._ranks[pair] for pair in zip(tokens, tokens[1:], strict=False) if pair in self._ranks]:
            tokens = merge_pair(tokens, *self._made[min(ranks)])
        return tokens


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern)
    except (regex.error, ValueError, RecursionError) as error:
        raise Refusal(f"pattern {pattern!r} is not a regular expression: {error}") from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise Refusal(
            f"character {error.start} of the text is a lone surrogate, which no UTF-8 has; remove it"
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        pattern = ... if asked.pattern is None else _pattern_named(asked.pattern)
        tokenizer = load(asked.folder, pattern=pattern, special_tokens=asked.special_token)
        if asked.encode is not None:
            given = sys.stdin.buffer.read() if asked.encode == "-" else asked.encode
            sys.stdout.write(" ".join(map(str, tokenizer.encode(given))) + "\n")
        else:
            given = sys.stdin.read() if asked.decode == "-" else asked.decode
            sys.stdout.buffer.write(tokenizer.decode(_numbers(given)))
            if sys.stdout.isatty():
                sys.stdout.write("\n")
        sys.stdout.flush()
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    except BrokenPipeError:  # nobody reads on; what is still in the buffer goes nowhere, without a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.tokenizer",
        description="Encode or decode with a tokenizer that python -m harness save=FOLDER has written.",
        epilog='Example: python -m harness.tokenizer my_tokenizer --encode "def train(words):"',
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where vocab.json and merges.txt are")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--encode", metavar="TEXT", help="print the ids of TEXT; - reads standard input, any bytes")
    what.add_argument("--decode", metavar="IDS", help='write the bytes of IDS, such as "1 2 3"; - reads standard input')
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="for a folder without manifest.json: a name in conf/pattern, or your own",
    )
    parser.add_argument(
        "--special-token", action="append", metavar="TOKEN", help="for such a folder: a special token of it; repeatable"
    )
    return parser


def _pattern_named(name: str) -> str | None:
    from harness import registry  # only here: a tokenizer is at work without the configuration

    card = registry.cards("pattern").get(name)
    return name if card is None else card["regex"]


def _numbers(ids: str) -> list[int]:
    try:
        return [int(number) for number in ids.split()]
    except ValueError as error:
        raise Refusal(f"ids are whole numbers with blanks between them: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
