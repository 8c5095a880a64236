"""What trainers took on this machine, kept between runs: measured, extrapolated, or predicted from slices.

It tells a plan what it would cost and a budgeted run in which order to go; no result is ever made of it. Where
limits.wall asks for a budget, a cell that was never seen is predicted from slices of its words: every k-th word with
its count, so that the same pairs are frequent in it, trained for as many merges as the whole. Slices grow until what
they take would pass a tenth of limits.wall, or half a minute.

A trainer that reads the file by itself has no words to slice. When limits.wall ends it, it is run on beginnings of its
text, each twice as long as the one before and for twice as many merges, for as many seconds again at most. So its
merges are of pairs as rare as in the whole, and no part runs out of them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.common import files
from harness.measure.process import Answer, Limits
from harness.measure.source_digest import source_sha256
from harness.runs.cells import TrainCell
from harness.runs.extrapolation import (
    MEASURED,
    Estimate,
    from_beginnings,
    from_curve,
    from_slices,
)
from harness.worker import word_store
from variants.contract import WordCounts

MOST_KEPT = 64
SHARE_OF_LIMIT = 0.1
MOST_SECONDS = 30.0
SECONDS_TO_START = 0.25
"""What a process takes besides the call."""
SMALLEST_SYMBOLS = 3_000
LARGEST_SYMBOLS = 4_000_000
MOST_SLICES = 6
SHARE_OF_SLICE = 0.4
"""The share of what is left that one slice may take, so that the first is not the last."""

BEGINNINGS = tuple(2**power for power in range(10, 0, -1))
"""Which parts of its text a trainer that reads the file is run on."""

MOST_CONTINUED, UPPER_BITS, CONTINUES = 3, 0xC0, 0x80
"""UTF-8: how many bytes may follow the first of a character, and what their two upper bits are."""
BYTES_AT_ONCE = 1 << 22


def keep_cost(cell: TrainCell, machine: str, estimate: Estimate) -> None:
    """Remember what a cell takes; what was measured is not given up for a guess."""
    reading = cell.reading
    mine = {"reading": reading.key, "num_merges": cell.num_merges}
    kept = known_costs(cell, machine)
    before = next((each for each in kept if each.items() >= mine.items()), None)
    if before is not None and before["source"] == MEASURED and estimate.source != MEASURED:
        return
    told = {
        **mine,
        "corpus": reading.file.name,
        "bytes": reading.file.bytes,
        "seconds": estimate.seconds,
        "low": estimate.low,
        "high": estimate.high,
        "exponent": estimate.exponent,
        "source": estimate.source,
    }
    others = [each for each in kept if not each.items() >= mine.items()]
    with files.placing(_file(cell, machine)) as temporary:
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
    sizes = {each["bytes"]: estimate_from_kept(each) for each in alike if each["source"] == MEASURED}
    return from_slices(sorted(sizes.items(), key=lambda each: each[0]), cell.reading.file.bytes)


def exact_cost(cell: TrainCell, machine: str) -> Estimate | None:
    """What is known of this very cell."""
    mine = {"reading": cell.reading.key, "num_merges": cell.num_merges}
    alike = (each for each in known_costs(cell, machine) if each.items() >= mine.items())
    return next(map(estimate_from_kept, alike), None)


def estimate_from_kept(kept: Mapping[str, Any]) -> Estimate:
    return Estimate(kept["seconds"], kept["low"], kept["high"], kept["exponent"], kept["source"])


def known_costs(cell: TrainCell, machine: str) -> list[dict[str, Any]]:
    try:
        kept = json.loads(_file(cell, machine).read_text())
        for each in kept:
            estimate_from_kept(each), each["reading"], each["num_merges"], each["corpus"], each["bytes"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []  # half a file is none
    return kept  # type: ignore[no-any-return]


def _file(cell: TrainCell, machine: str) -> Path:
    variant, reading = cell.variant, cell.reading
    how = [cell.count.threads, cell.tie_break, cell.min_count, cell.interpreter, *cell.extension.key()]
    read = [reading.corpus.pattern, reading.corpus.special_tokens, reading.corpus.partial]
    parts = [variant.target, dict(variant.params), source_sha256(variant.target, variant.params), how, read, machine]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    return files.cache_folder("costs") / f"{name}.json"


@dataclass(frozen=True)
class Part:
    """A part of a table of words, whose size is the bytes of its distinct words, or of a text; and its merges."""

    path: Path
    size: int
    num_merges: int


RunPart = Callable[[TrainCell, Part, Limits], Answer]
WholeOf = Callable[[Sequence[tuple[int, Estimate]], int], "Estimate | None"]


class Slices:
    """The slices of the tables of one run, made when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[Path, int], tuple[Path, int]] = {}

    def steps(self, words: Path) -> list[int]:
        """Which k-th words to take, the smallest slice first: from some thousand bytes up to a half of the table."""
        whole = size_of(words)
        smallest = max(1.0, math.log2(max(1.0, whole / SMALLEST_SYMBOLS)))
        largest = max(1.0, math.log2(max(1.0, whole / LARGEST_SYMBOLS)))
        places = [smallest + (largest - smallest) * place / (MOST_SLICES - 1) for place in range(MOST_SLICES)]
        return sorted({round(2**place) for place in places}, reverse=True)

    def every(self, words: Path, step: int, num_merges: int) -> Part:
        """Every step-th word, for so many merges."""
        if (words, step) not in self.made:
            table, _ = word_store.read(words)
            offsets, counts = table.offsets, table.counts
            chosen = range(0, len(counts), step)
            spelled = [bytes(table.data[offsets[place] : offsets[place + 1]]) for place in chosen]
            folder = self.folder / f"slice{len(self.made)}"
            word_store.write(folder, WordCounts.from_columns(spelled, [counts[place] for place in chosen]))
            self.made[words, step] = folder, sum(map(len, spelled))
        return Part(*self.made[words, step], num_merges)


def size_of(words: Path) -> int:
    return len(word_store.read(words)[0].data)


def predicted(cell: TrainCell, words: Path, slices: Slices, run_slice: RunPart) -> Estimate | None:
    """What the trainer would take for the whole table; None if its slices do not show it.

    The merges of a slice are not proved: they are another question's.
    """
    wall = cell.limits.wall_seconds
    assert wall is not None, "without a limit there is no budget"
    whole = size_of(words)
    parts = [
        (whole // step, functools.partial(slices.every, words, step, cell.num_merges)) for step in slices.steps(words)
    ]
    return from_parts(cell, whole, parts, min(SHARE_OF_LIMIT * wall, MOST_SECONDS), run_slice, from_slices)


def predicted_from_beginnings(cell: TrainCell, folder: Path, run_beginning: RunPart) -> Estimate | None:
    """What a trainer that reads the file would take for all of it; None if beginnings of the text do not show it.

    They are written into `folder`, one at a time.
    """
    wall = cell.limits.wall_seconds
    assert wall is not None, "without a limit nothing is stopped"
    text = Path(cell.reading.corpus.path)
    whole = text.stat().st_size
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / text.name
        parts = [
            (whole // share, functools.partial(beginning, text, whole // share, path, cell.num_merges // share))
            for share in BEGINNINGS
            if cell.num_merges >= share
        ]
        return from_parts(cell, whole, parts, wall, run_beginning, from_beginnings)


def beginning(text: Path, size: int, path: Path, num_merges: int) -> Part:
    """Write the first so many bytes of a text, for so many merges; a character cut in two is left out."""
    with text.open("rb") as source, path.open("wb") as file:
        for _ in range(min(size, MOST_CONTINUED)):
            source.seek(size)
            after = source.read(1)
            if not after or after[0] & UPPER_BITS != CONTINUES:
                break
            size -= 1
        source.seek(0)
        for place in range(0, size, BYTES_AT_ONCE):
            file.write(source.read(min(BYTES_AT_ONCE, size - place)))
    return Part(path, size, num_merges)


def from_parts(
    cell: TrainCell,
    whole: int,
    parts: Sequence[tuple[int, Callable[[], Part]]],
    seconds: float,
    run_part: RunPart,
    whole_of: WholeOf,
) -> Estimate | None:
    """What the whole would take by its parts, the smallest first, as far as they fit into so many seconds."""
    left = seconds
    known: list[tuple[int, Estimate]] = []
    for size, make in parts:
        if SECONDS_TO_START + next_cost(whole_of, known, size) > left:
            break
        part = make()
        own = SHARE_OF_SLICE * left
        answer = run_part(cell, part, replace(cell.limits, wall_seconds=own + SECONDS_TO_START))
        left -= SECONDS_TO_START + min(answer.get("total") or 0.0, own)
        if answer["status"] == "rejected" or (answer["status"] == "ok" and answer["merges_done"] < part.num_merges):
            continue  # its clocks disagreed, or it ran out of pairs, which the whole will not
        estimate = estimate_from_answer(answer, part.num_merges)
        if estimate is None:
            break
        known.append((part.size, estimate))
    return whole_of(known, whole)


def next_cost(whole_of: WholeOf, costs: Sequence[tuple[int, Estimate]], size: int) -> float:
    """What a slice of this size would take; with less than two before it, nothing that would keep it from running."""
    estimate = whole_of(costs[-2:], size)
    return estimate.seconds if estimate is not None else 0.0


def estimate_from_answer(answer: Answer, num_merges: int) -> Estimate | None:
    """What a trainer took, or would have taken had it not been stopped; None if it failed otherwise."""
    if answer["status"] == "ok":
        return Estimate(answer["total"], answer["total"], answer["total"], None, MEASURED)
    return from_curve(answer["curve"], num_merges) if answer["status"] == "timeout" and answer.get("curve") else None


class Forecast:
    """What the cells of a run would take, each predicted once, from what is kept or from slices."""

    def __init__(self, machine: str, folder: Path, run_slice: RunPart) -> None:
        self.machine = machine
        self.slices = Slices(folder)
        self.run_slice = run_slice
        self.known: dict[str, Estimate | None] = {}

    def of(self, cell: TrainCell, words: Path | None) -> Estimate | None:
        if cell.key() not in self.known and words is not None:
            estimate = exact_cost(cell, self.machine) or predicted(cell, words, self.slices, self.run_slice)
            self.known[cell.key()] = estimate
            if estimate is not None:
                keep_cost(cell, self.machine, estimate)
        return self.known.get(cell.key())

    def seconds_left(self, waiting: Sequence[TrainCell]) -> float | None:
        """What these cells will take by what is kept of each, up to its limit; None if one of them is unknown."""
        costs = {cell.key(): self.known.get(cell.key()) or exact_cost(cell, self.machine) for cell in waiting}
        total = 0.0
        for cell in waiting:
            cost, wall = costs[cell.key()], cell.limits.wall_seconds
            if cost is None:
                return None
            total += SECONDS_TO_START + (cost.seconds if wall is None else min(cost.seconds, wall))
        return total


def of_stopped(answer: Answer, num_merges: int, from_parts: Estimate | None) -> Estimate | None:
    """The total of a cell that was stopped at the limit: the more certain of what its curve and its slices say.

    Slices whose whole interval has passed by the time it was stopped have been proved wrong. One that could not say how
    long it had gone on was stopped at the limit.
    """
    elapsed = answer.get("total") or (answer.get("limits") or {}).get("wall_seconds") or 0.0
    own = from_curve(answer["curve"], num_merges) if answer.get("curve") else None
    told = [each for each in (own, from_parts) if each is not None and each.high > elapsed]
    if not told:
        return None
    exponent = from_parts.exponent if from_parts is not None else None
    return replace(min(told, key=lambda each: each.width).beyond(elapsed), exponent=exponent)


def extrapolated(estimate: Estimate, answer: Answer) -> dict[str, Any]:
    """What a record says of a total that was not measured; the exponent is that over sizes, where slices showed one."""
    return {
        "total_seconds": estimate.seconds,
        "low_seconds": estimate.low,
        "high_seconds": estimate.high,
        "exponent": estimate.exponent,
        "merges_done": answer.get("merges_done", 0),
        "from": estimate.source,
    }
