"""What the sheets of tokenizers share: how a token is shown, and which columns hold figures."""

from __future__ import annotations

from collections.abc import Sequence

from harness.common.sheet import Column
from harness.common.units import token_text

LONGEST_SHOWN = 40
WORDS = ("engine", "text", "tokenizer", "longest token", "token")
"""The columns of the sheets here that hold no figures."""


def readable_token(token: bytes) -> str:
    """A token for people: its text if it is UTF-8, else its bytes; the middle of a long one is left
    out.
    """
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        return token_text(token, LONGEST_SHOWN)
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]}…{text[-half:]}"


def columns_under(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    """The columns of rows that have a cell for each heading."""
    columns = []
    for index, heading in enumerate(headings):
        cells = [row[index] for row in rows]
        columns.append(Column(heading, cells, heading not in WORDS))
    return columns
