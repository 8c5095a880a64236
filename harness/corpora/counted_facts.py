"""What a card says of a corpus that only counting shows: how many documents, pre-tokens and words there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.corpora.cards import OF_THE_COUNT
from harness.corpora.files import CorpusFile

# The pattern that such numbers are said of; the special tokens are the card's.
PATTERN_NAME = "gpt2"


def counted_facts(card: Mapping[str, Any], special_tokens: Sequence[str]) -> dict[str, int]:
    """Those that can be held against a count with these special tokens."""
    if list(special_tokens) != card.get("special_tokens", ["<|endoftext|>"]):
        return {}
    return {fact: card["facts"][fact] for fact in OF_THE_COUNT if card["facts"].get(fact) is not None}


def counted_otherwise(
    file: CorpusFile, pattern_name: str, manifest: Mapping[str, Any], documents: int | None
) -> str | None:
    """A sentence on what was counted otherwise than the card says; None if nothing, or it speaks of another reading."""
    if pattern_name != PATTERN_NAME:
        return None
    return disagreement(file.name, file.facts, {**manifest, "documents": documents})


def disagreement(name: str, facts: Mapping[str, int], counted: Mapping[str, Any]) -> str | None:
    """
    >>> print(disagreement("owt", {"words": 2, "documents": 7}, {"words": 3, "documents": 7}))
    data=owt: its card says 2 words, counted were 3; it is another text, or mend the card: data.facts.words=3
    """
    wrong = {fact: counted[fact] for fact in facts if counted.get(fact) not in (None, facts[fact])}
    if not wrong:
        return None
    listed = ", ".join(f"{facts[fact]} {fact.replace('_', '-')}, counted were {counted[fact]}" for fact in wrong)
    mended = " ".join(f"data.facts.{fact}={number}" for fact, number in wrong.items())
    return f"data={name}: its card says {listed}; it is another text, or mend the card: {mended}"
