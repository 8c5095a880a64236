"""GPT-2's written form of a tokenizer: every byte of a token one visible character, one merge a line, ids in JSON.

It is what the usual libraries read. Reading raises ValueError with what is wrong; the caller knows in which file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from variants.contract import GPT2_CHARACTERS, Merge

HEADER = "#version: 0.2"
_CHARACTERS = dict(enumerate(GPT2_CHARACTERS))
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def spelled(token: bytes) -> str:
    """A token in GPT-2's visible characters.

    >>> spelled(b" the"), spelled("é".encode())
    ('Ġthe', 'Ã©')
    """
    return token.decode("latin-1").translate(_CHARACTERS)


def read_spelling(spelling: str) -> bytes:
    """The token that `spelled` wrote. Raises KeyError for a character that stands for no byte.

    >>> read_spelling("Ġthe")
    b' the'
    """
    return bytes(_BYTES[character] for character in spelling)


def merge_line(merge: Merge) -> str:
    """A merge as it stands in merges.txt.

    >>> merge_line((b" t", b"he"))
    'Ġt he'
    """
    return f"{spelled(merge[0])} {spelled(merge[1])}"


def merges_text(merges: Sequence[Merge]) -> bytes:
    """The content of merges.txt.

    >>> merges_text([(b"t", b"h"), (b"th", b"e")])
    b'#version: 0.2\\nt h\\nth e\\n'
    """
    return "".join(f"{line}\n" for line in [HEADER, *map(merge_line, merges)]).encode()


def read_merges(content: bytes) -> list[Merge]:
    """The merges that merges.txt holds; the header may be missing. Raises ValueError for a line that is no merge."""
    merges = []
    lines = content.decode(errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        if (number == 1 and line.startswith("#version")) or (number == len(lines) and not line):
            continue
        try:
            left, right = map(read_spelling, line.split(" "))
        except (KeyError, ValueError) as error:
            raise ValueError(f"line {number} is not a merge: {line[:80]!r}") from error
        merges.append((left, right))
    return merges


def json_text(content: Mapping[str, Any]) -> bytes:
    """An object as JSON, one entry a line, so that two of them can be compared by eye."""
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def read_json(content: bytes) -> dict[str, Any]:
    """A JSON object. Raises ValueError if it is none."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(read, dict):
        raise ValueError("it is no JSON object")
    return read


def read_ids(content: bytes) -> dict[str, int]:
    """The ids that vocab.json gives to tokens as they are spelled. Raises ValueError if it gives none."""
    ids = read_json(content)
    if not all(type(number) is int for number in ids.values()):
        raise ValueError("it does not map tokens to ids")
    return ids
