"""What trainers took on this machine, kept between runs: measured, extrapolated, or predicted from slices.

It tells a plan what it would cost and a budgeted run in which order to go; no result is ever made of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import cache
from harness.extrapolation import Estimate, from_slices
from harness.plan import TrainCell
from harness.source_digest import source_sha256

MOST_KEPT = 64
MEASURED = "measured"


def keep_cost(cell: TrainCell, machine: str, estimate: Estimate) -> None:
    """Remember what a cell takes; what was measured is not given up for a guess."""
    mine = {"reading": cell.reading.key(), "num_merges": cell.num_merges}
    kept = known_costs(cell, machine)
    before = next((each for each in kept if each.items() >= mine.items()), None)
    if before is not None and before["source"] == MEASURED and estimate.source != MEASURED:
        return
    told = {
        **mine,
        "corpus": cell.reading.file.name,
        "bytes": cell.reading.file.bytes,
        "seconds": estimate.seconds,
        "low": estimate.low,
        "high": estimate.high,
        "exponent": estimate.exponent,
        "source": estimate.source,
    }
    others = [each for each in kept if not each.items() >= mine.items()]
    with cache.placing(_file(cell, machine)) as temporary:
        temporary.write_text(json.dumps([*others, told][-MOST_KEPT:]))


def expected_cost(cell: TrainCell, machine: str) -> Estimate | None:
    """What is known of this cell, or follows from other slices of its corpus with as many merges; None if nothing.

    Other corpora say nothing: a small one in Chinese may cost more than a large one in English.
    """
    exact = exact_cost(cell, machine)
    if exact is not None:
        return exact
    mine = {"corpus": cell.reading.file.name, "num_merges": cell.num_merges}
    alike = [each for each in known_costs(cell, machine) if each.items() >= mine.items()]
    sizes = {each["bytes"]: estimate_of(each) for each in alike if each["source"] == MEASURED}
    return from_slices(sorted(sizes.items(), key=lambda each: each[0]), cell.reading.file.bytes)


def exact_cost(cell: TrainCell, machine: str) -> Estimate | None:
    """What is known of this very cell."""
    for each in known_costs(cell, machine):
        if (each["reading"], each["num_merges"]) == (cell.reading.key(), cell.num_merges):
            return estimate_of(each)
    return None


def estimate_of(told: Mapping[str, Any]) -> Estimate:
    return Estimate(told["seconds"], told["low"], told["high"], told["exponent"], told["source"])


def known_costs(cell: TrainCell, machine: str) -> list[dict[str, Any]]:
    try:
        kept = json.loads(_file(cell, machine).read_text())
        for each in kept:
            estimate_of(each), each["reading"], each["num_merges"], each["corpus"], each["bytes"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []  # half a file is none
    return kept  # type: ignore[no-any-return]


def _file(cell: TrainCell, machine: str) -> Path:
    variant, reading = cell.variant, cell.reading
    how = [cell.threads, cell.tie_break, cell.min_count, cell.interpreter]
    read = [reading.pattern, reading.special_tokens, reading.partial]
    parts = [variant.target, dict(variant.params), source_sha256(variant.target, variant.params), how, read, machine]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    return cache.folder("costs") / f"{name}.json"
