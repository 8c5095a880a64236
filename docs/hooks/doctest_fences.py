"""Docstrings with their doctests as blocks of code, as Markdown wants them."""

from __future__ import annotations

import re

DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> str:
    """A docstring with a fence round each of its doctests."""
    return DOCTEST.sub(lambda doctest: f"```pycon\n{doctest[0]}\n```", text)
