"""Proof on words too long for another trainer: the merges themselves, held against the true counts.

A reference is made by running a trainer of another family, and most of those go through a whole word for each merge in
it: hours, where all the text is one word. Replaying visits the places of each merge alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness import kept, word_store
from harness.outcome import Trained
from harness.plan import Reading
from harness.proof import Claim
from harness.replay import Replay
from variants.contract import TieBreak

LONG_BYTES = 1_000_000
"""From here on the longest word is replayed at once, before another trainer is run."""

REPLAY = "replay"


def replayed_claims(group: Sequence[Trained], tie_break: str, replayed: Callable[[Trained], Replay]) -> list[Claim]:
    """The longest list that a trainer ended with and that replaying finds right; none where no word is long."""
    whole = [trained for trained in group if trained.answer["status"] == "ok" and trained.merges is not None]
    if not whole or longest_word(whole[0].cell.reading) < LONG_BYTES:
        return []
    for trained in sorted(whole, key=lambda trained: trained.cell.num_merges, reverse=True):
        told, num_merges = replayed(trained), trained.cell.num_merges
        if TieBreak(tie_break) in told.tie_breaks and not told.stops_too_early(num_merges):
            return [Claim(REPLAY, REPLAY, trained.merges or [], num_merges, whole=True)]
    return []


def longest_word(reading: Reading) -> int:
    """How many bytes it has; 0 if there are no words."""
    words = kept.words_of(reading)
    offsets = np.frombuffer(word_store.read(words)[0].offsets, dtype=np.int64) if words is not None else np.zeros(1)
    return int(np.diff(offsets).max(initial=0))
