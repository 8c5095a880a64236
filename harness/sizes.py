"""Sizes as people write them: 64MB, 2GB, 1GiB, 4000000."""

from __future__ import annotations

import re

from harness.errors import Refusal

FACTORS = {
    "": 1,
    "B": 1,
    "K": 10**3,
    "KB": 10**3,
    "M": 10**6,
    "MB": 10**6,
    "G": 10**9,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


def parse_bytes(text: str | int, name: str, smallest: int = 1) -> int:
    """The number of bytes that `text` says, at least `smallest`; `name` is what the message calls it.

    >>> parse_bytes("64MB", "data.bytes"), parse_bytes("1.5 GiB", "limits.memory")
    (64000000, 1610612736)
    """
    found = re.fullmatch(r"\s*([0-9][0-9_]{0,30}(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    factor = FACTORS.get(found[2].upper()) if found else None
    if found is None or factor is None:
        raise Refusal(f"{name}={text} is not a size; write a number with or without a unit, as 64MB, 2GB or 1GiB")
    size = int(float(found[1].replace("_", "")) * factor) if "." in found[1] else int(found[1]) * factor
    if size < smallest:
        raise Refusal(f"{name}={text} is nothing; write a size of at least one byte")
    return size
