"""How a trainer that reads the corpus itself gets its work, for comparisons with others."""

from __future__ import annotations

from typing import NamedTuple

BY_THE_PATTERN = "itself, by the pattern"
CUT_OUT = "cut out before; what lies between them is a document"
FIRST_MET = "the pair that comes first in the text"
SMALLEST_IDS = "the smallest ids, bytes numbered as they are"
GPT2_ORDER = "the smallest ids, bytes numbered in the order of their GPT-2 characters"


class Feeding(NamedTuple):
    """What a module says of its trainer in a function `feeding`, which gets the corpus and the
    trainer's parameters.
    """

    program: str
    """Who trains, with its version."""
    way_in: str
    """The call, and what it is handed."""
    pre_tokens: str
    """Who cuts the text into pre-tokens, and by what."""
    special_tokens: str
    """What becomes of special tokens before anything is counted."""
    ties: str
    """Which of several equally frequent pairs it merges first."""
