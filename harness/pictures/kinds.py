"""Every kind of picture by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.pictures import counting, growth, ladder, memory, paired, phases, published, scaling, work
from harness.pictures.request import Request
from harness.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Kind(NamedTuple):
    """What a picture shows, and how it is drawn; drawing raises Refusal where the rows do not have what it takes."""

    shows: str
    draw: Callable[[Sequence[Row], Request], Figure]
    counting: bool = False


KINDS: dict[str, Kind] = {
    "phases": Kind("seconds stacked by phase, a bar for each row", phases.draw),
    "ladder": Kind("seconds on a log axis, and each rung's gain over the one before", ladder.draw),
    "size": Kind(
        "seconds against the size of the corpus, log-log, with fitted exponents", scaling.draw_along(scaling.SIZE)
    ),
    "vocabulary": Kind("the same against the size of the vocabulary", scaling.draw_along(scaling.VOCABULARY)),
    "threads": Kind("the same against the number of threads", scaling.draw_along(scaling.THREADS)),
    "growth": Kind("seconds over merges, in sum and for one merge: maximum and update", growth.draw),
    "work": Kind("seconds beside every count of work", work.draw),
    "memory": Kind("time against memory, with the rows that nobody beats in both", memory.draw),
    "paired": Kind("ratios block by block with their intervals (--relative-to)", paired.draw),
    "counting": Kind("megabytes a second of word counters, by language", counting.draw, counting=True),
    "published": Kind("the series' figures and claims beside ours", published.draw),
}
