"""Every kind of picture by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.results.charts import sizes
from harness.results.charts.chart import Chart, Request
from harness.results.charts.compared import paired
from harness.results.charts.dots import dots
from harness.results.charts.memory import memory
from harness.results.charts.race import race
from harness.results.charts.seconds import ladder, phases
from harness.results.rows import Row


class Kind(NamedTuple):
    """What a picture shows, and its description, which raises Refusal where the rows do not have what it takes."""

    shows: str
    describe: Callable[[Sequence[Row], Request], Chart]


KINDS: dict[str, Kind] = {
    "phases": Kind("seconds stacked by phase, a bar for each row", phases),
    "ladder": Kind("seconds on a log axis, and each rung's gain over the one before", ladder),
    "race": Kind("total seconds, sorted, ours and outside trainers; narrow, for a front page", race),
    "dots": Kind("total seconds of each trainer as dots, sorted, one thread and more", dots),
    "size": Kind("seconds against the size of the corpus, log-log, with fitted exponents", sizes.along(sizes.CORPUS)),
    "vocabulary": Kind("the same against the size of the vocabulary", sizes.along(sizes.VOCABULARY)),
    "threads": Kind("seconds against the number of threads, with the ideal", sizes.along(sizes.THREADS)),
    "memory": Kind("time against memory, with the rows that nobody beats in both", memory),
    "paired": Kind("ratios block by block with their intervals (--relative-to)", paired),
}
