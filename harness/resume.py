"""Going on from an unfinished run: which plan is the same, and its measurements put away and taken up again.

With a single block the cells that were measured count, and only the others are measured. With several, an interrupted
block is measured anew as a whole, since its cells are compared within it; what it had stays recorded as cut short.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import kept
from harness.journal import Entry
from harness.outcome import Block, Counted, CountRun, Trained, stopped_at_the_limit
from harness.plan import TrainCell
from harness.record import merges_from_bytes, merges_to_bytes
from harness.settings import Settings
from harness.source_digest import source_sha256
from variants.contract import Merge

if TYPE_CHECKING:
    from harness.schedule import Run

# The measured process' own half: with other clocks around them the same trainers are measured otherwise.
WORKER = ("worker.py", "calling.py", "word_store.py")


def plan_key(cells: Sequence[TrainCell], settings: Settings, machine: str) -> str:
    """Names a plan: the same cells by the same code under the same limits, measured the same way on one machine."""
    wanted = sorted(
        [
            cell.key(),
            cell.memory_said,
            source_sha256(cell.variant.target, cell.variant.params),
            source_sha256(cell.count.counter.target),
        ]
        for cell in cells
    )
    preset = settings.measure
    how: list[Any] = [settings.repeat, settings.seed, settings.fresh_counts, settings.affinity, settings.concurrent]
    how += [preset.name, preset.kind, preset.warm_up, preset.quiet_seconds]
    worker = [hashlib.sha256((Path(__file__).parent / name).read_bytes()).hexdigest() for name in WORKER]
    parts = [wanted, how, machine, worker]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def entry_of_count(measured: CountRun) -> dict[str, Any]:
    cell = measured.cell
    return {
        "cell": "count",
        "key": [cell.reading.key(), cell.key()],
        **moment(measured),
        **counted_as(measured.counted),
    }


def entry_of_trained(trained: Trained) -> dict[str, Any]:
    own = {"cell": "train", "key": trained.cell.key(), "answer": trained.answer}
    return {**own, **moment(trained), **counted_as(trained.counted)}


def moment(measured: CountRun | Trained) -> dict[str, Any]:
    return {
        "block": measured.block.number,
        "warm_up": measured.block.warm_up,
        "started": measured.started,
        "beside_others": measured.beside_others,
    }


def counted_as(counted: Counted) -> dict[str, Any]:
    return {
        "counted": counted.answer,
        "counts_reused": counted.reused,
        "has_words": counted.words is not None,
        "failed_by": counted.failed_by,
    }


def packed(merges: Sequence[Merge] | None) -> bytes | None:
    return None if merges is None else merges_to_bytes(merges)


def words_are_there(cells: Sequence[TrainCell], entries: Sequence[Entry]) -> bool:
    """Whether the words that the entries were made from are still kept."""
    readings = {cell.reading.key(): cell.reading for cell in cells}
    by_train = {cell.key(): cell.reading.key() for cell in cells}
    needed = {
        entry.head["key"][0] if entry.head["cell"] == "count" else by_train.get(entry.head["key"])
        for entry in entries
        if entry.head["has_words"]
    }
    return all(key in readings and kept.words_of(readings[key]) is not None for key in needed)


def restore(run: Run, entries: Sequence[Entry]) -> None:
    """Put the measurements of the journal into a run that has measured nothing yet."""
    cells = {cell.key(): cell for cell in run.cells}
    count_cells = {(cell.reading.key(), cell.key()): cell for cell in run.count_cells(run.cells)}
    attempts: list[int] = []
    for entry in entries:
        head = entry.head
        block = Block(head["block"], head["warm_up"])
        if head["cell"] == "count":
            count_cell = count_cells[tuple(head["key"])]
            counted = restored_count(head, count_cell.reading)
            run.counted.append(
                CountRun(count_cell, block, head["started"], counted, beside_others=head["beside_others"])
            )
            run.counts[count_cell.reading.key(), count_cell.key()] = counted
        else:
            cell = cells[head["key"]]
            merges = merges_from_bytes(entry.merges) if entry.merges is not None else None
            counted = restored_count(head, cell.reading)
            trained = Trained(cell, block, head["started"], head["answer"], counted, merges)
            trained.beside_others = head["beside_others"]
            run.trained.append(trained)
            attempts.append(entry.attempt)
            run.counts[cell.reading.key(), cell.count.key()] = counted
    mark_attempts(run, attempts)
    mark_cut_short(run)


def restored_count(head: dict[str, Any], reading: Any) -> Counted:
    words = kept.words_of(reading) if head["has_words"] else None
    return Counted(head["counted"], head["counts_reused"], words, head["failed_by"])


def mark_attempts(run: Run, attempts: Sequence[int]) -> None:
    """Mark what was not measured in one go: a block that was begun again whole has its earlier beginnings in it too."""
    several = len(run.blocks()) > 1
    for block in run.blocks():
        there = [
            (attempt, trained) for attempt, trained in zip(attempts, run.trained, strict=True) if trained.block == block
        ]
        begun = {attempt for attempt, _ in there}
        for attempt, trained in there:
            trained.cut_short = len(begun) > 1 and not (several and attempt == max(begun))


def mark_cut_short(run: Run) -> None:
    """Mark what was measured in a block of which not everything was."""
    stopped = stopped_at_the_limit(run.trained)
    for block in run.blocks():
        there = [each for each in run.trained if each.block == block and not each.cut_short]
        wanted = {cell.key() for cell in run.cells} - stopped
        if not wanted <= {each.cell.key() for each in there}:
            for trained in there:
                trained.cut_short = True
            for counted in run.counted:
                counted.cut_short = counted.cut_short or counted.block == block


def is_redone(run: Run, measured: CountRun | Trained) -> bool:
    """Whether it belongs to a block that is measured anew as a whole."""
    return measured.cut_short and len(run.blocks()) > 1
