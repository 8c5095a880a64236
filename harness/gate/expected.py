"""How long a gate will take, roughly: said before it begins, so that nobody waits for he knows not what."""

from __future__ import annotations

from harness.common.units import counted_text, duration_text
from harness.gate.card import Card
from harness.measure.environment import usable_cores

PROCESS_SECONDS = 0.4
"""Of a fresh process with a small corpus, from its start to its answer."""
CALLGRIND_SECONDS = 8.0
"""Of a plain Python trainer on the card's small corpus, its instructions counted."""
LOOK_SECONDS = 3.0
"""For making the base, and again for finding the size of corpus at which times are compared."""


def expected_line(card: Card, variants: int, whole: bool) -> str:
    """One sentence, with the least if everything is as it was, and the most if every tier has to look again."""
    low, high = expected_seconds(card, variants, whole)
    about = f"{duration_text(low)} to {duration_text(high)}" if high > 1.5 * low else duration_text(high)
    what = counted_text(variants, "variant")
    return f"gate: {what}, tiers {', '.join(card.tiers)}: about {about}, by how much has to be looked at twice"


def expected_seconds(card: Card, variants: int, whole: bool) -> tuple[float, float]:
    """The least and the most. Of a whole card's variants those whose code has not changed are not timed."""
    looked = 0 if whole else variants
    cores = usable_cores()
    low = high = LOOK_SECONDS
    if {"identity", "work"} & set(card.tiers):
        asked = sum(bool(corpus.say) for corpus in card.corpora.values() if whole or corpus.variants is None)
        low = high = LOOK_SECONDS + variants * asked * PROCESS_SECONDS / min(cores, variants)
    if "work" in card.tiers:
        counts = 2 * CALLGRIND_SECONDS / min(cores, 2 * variants)
        low += looked * counts
        high += variants * counts * (1 + card.work.instructions.layouts)
    if "time" in card.tiers:
        time = card.time
        samples = 2 + 1 / time.control.every
        low += looked * (LOOK_SECONDS + time.triage.blocks * samples * (PROCESS_SECONDS + time.sample.least))
        blocks = time.triage.blocks + time.confirm.blocks
        seconds = LOOK_SECONDS + blocks * samples * (PROCESS_SECONDS + time.sample.most)
        high += min(variants * len(time.threads) * seconds, max(time.seconds, seconds))
    return low, high
