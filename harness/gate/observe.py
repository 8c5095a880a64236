"""Measuring the two sides, tier after tier, as cells of one run: each process is a record, written as
it ends.

Identity and work run every variant once on every corpus. Instructions of base and head are counted
under callgrind: a count may depend on where things lie in memory, so a higher one is repeated in
other layouts. Times are taken in blocks of base and head, until the rule has decided.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.progress import Advance, Display, bar
from harness.common.registry import GIVEN, VariantCard
from harness.common.units import seconds_text
from harness.gate.base import file_states
from harness.gate.card import GateCard
from harness.gate.evidence import (
    AGAIN,
    BASE,
    HEAD,
    IDENTITY,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    TIME,
    WORK,
    by_comparison,
    paired_blocks,
)
from harness.gate.judge import SAME_CODE, instructions_finding, trouble_of
from harness.gate.rule import CONTROL_EVERY, next_block
from harness.measure.machine import usable_cores
from harness.records.file import RunLog
from harness.records.schema import Note
from harness.runs import jobs
from harness.runs.blocks import count, measure_block, train
from harness.runs.cells import Block, Settings, Side, Task, TrainCell
from harness.runs.plan import planned
from harness.runs.session import Session

FIRST_RUN = Block(0, warm_up=True)
LAYOUTS = 5
"""Head is worse only if it takes more instructions in so many layouts of memory: a map that hashes by
addresses takes up to 1.7 % more steps in one layout than in another.
"""
SECONDS_UNDER_CALLGRIND = 300.0
"""What a process may take that runs fifty times as slowly."""
SIZE = "data.source.bytes"
TEXT_OF_A_SIZE = (f"{SIZE}=", "data.bytes=", "data.path=")
SIZES = tuple(4000 * 3**power for power in range(8))
SAMPLE_SECONDS = 0.05
"""Base is timed on the smallest size at which it takes as long, so a machine decides for itself;
shorter samples show the clock's noise, longer ones cost more than they show.
"""


@dataclass(frozen=True)
class Arm:
    """A variant on one side."""

    side: Side
    variant: VariantCard

    def call(self) -> tuple[str, Any]:
        """Return what it runs: target and parameters."""
        return self.variant.target, self.variant.params


@dataclass(frozen=True)
class Arms:
    """The two sides of a comparison: of one variant, or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_package(self) -> bool:
        """Whether both make the same call, and no file of the trainer's package has changed."""
        package = self.head.variant.target.partition(":")[0].partition(".")[0]
        own = [name for name in self.base.side.changed if package in re.split(r"[/.]", name)]
        return self.base.call() == self.head.call() and not own

    @property
    def same_code(self) -> bool:
        """Whether nothing can differ: no file but documents has changed."""
        return self.base.call() == self.head.call() and not self.base.side.changed

    def cells(self, cell: TrainCell, tier: str, corpus: str) -> list[TrainCell]:
        """Base, head and base again, on the corpus of a cell."""
        sides = ((BASE, self.base), (HEAD, self.head), (AGAIN, self.base))
        return [on_side(cell, arm, tier, corpus, self.name, side) for side, arm in sides]


def on_side(
    cell: TrainCell, arm: Arm, tier: str, corpus: str, comparison: str, side: str
) -> TrainCell:
    """A cell with another variant, imported from a side, for a question of the gate."""
    gate = (("tier", tier), ("corpus", corpus), ("comparison", comparison), ("side", side))
    return replace(cell, variant=arm.variant, side=arm.side, gate=gate)


class QuietDisplay(Display):
    """Shows how many processes of a stage have ended, and nothing of each."""

    def __init__(self, advance: Advance = lambda *_: None) -> None:
        super().__init__()
        self.advance = advance

    @contextlib.contextmanager
    def showing(self, *_: Any, **__: Any) -> Iterator[Advance]:
        yield lambda *_: None
        self.passed()
        self.advance(self.done)


@dataclass
class Sampler:
    """Makes the cells of the gate's card; `folder` holds what their processes need. Frozen files
    are to stay as they are.
    """

    card: GateCard
    folder: Path
    log: RunLog
    cells: dict[tuple[str, ...], TrainCell] = field(default_factory=dict)
    tasks: int = 0
    frozen: dict[Path, dict[str, int]] = field(default_factory=dict)

    def freeze(self, folder: Path) -> None:
        self.frozen[folder] = file_states(folder)

    def changed_files(self) -> list[str]:
        """Return the frozen files that were changed, added or removed."""
        changed = set[str]()
        for folder, before in self.frozen.items():
            states = before.items() ^ file_states(folder).items()
            changed |= {name for name, _ in states}
        return sorted(changed)

    def session(self, kind: str, blocks: int = 1) -> Session:
        """What measures the cells of one tier."""
        settings = Settings(Path(), repeat=blocks, measure=kind, kind=kind)
        return Session(settings, self.log, self.folder / kind, display=QuietDisplay())

    def cell(
        self, session: Session, name: str, overrides: Sequence[str], wall: float | None = None
    ) -> TrainCell:
        """The cell of these overrides, for any variant; its words are counted here."""
        limits = self.card.limits
        overrides = (
            *overrides,
            f"limits.wall={wall or limits.wall:g}",
            f"limits.memory={limits.memory}",
        )
        if overrides not in self.cells:
            cells = planned(overrides).cells
            if len(cells) != 1:
                raise Refusal(
                    f"corpus {name} of the gate makes {len(cells)} cells; set one value for each key"
                )
            counter = replace(cells[0].count, counter=GIVEN)
            self.cells[overrides] = replace(cells[0], count=counter)

        cell = self.cells[overrides]
        session.give(cell.reading)
        return cell

    def task(self, cells: list[TrainCell]) -> Task:
        self.tasks += 1
        return Task(self.tasks - 1, cells)

    def note(self, tier: str, variant: str, state: str, reason: str) -> None:
        """Note why something has no result."""
        run = self.log.run.run
        self.log.append(Note(run=run, tier=tier, variant=variant, state=state, reason=reason))


def observe_counts(sampler: Sampler, head: Side, variants: Sequence[VariantCard]) -> None:
    """Observe merges and tallies of every variant on every corpus."""
    session = sampler.session("proof")
    for corpus, rule in sampler.card.corpora.items():
        chosen = variants if rule.variants is None else registry.select(rule.variants)
        names = {card.name for card in chosen}
        arms = [Arm(head, card) for card in variants if card.name in names]
        if not arms or not rule.overrides:
            continue

        cell = sampler.cell(session, corpus, rule.overrides)
        cells = [on_side(cell, arm, IDENTITY, corpus, arm.variant.name, HEAD) for arm in arms]
        with bar(f"identity and work on {corpus}", len(cells), "variants") as advance:
            session.display = QuietDisplay(advance)
            measure_block(sampler.task(cells), Block(0), cells, session, usable_cores())


def observe_instructions(sampler: Sampler, comparisons: Sequence[Arms]) -> None:
    """Count base and head of each comparison whose code differs; again in other layouts while head
    takes more.
    """
    rule = sampler.card.instructions
    changed = []
    for comparison in comparisons:
        if comparison.same_code:
            reason = f"{comparison.name}, instructions: {SAME_CODE}"
            sampler.note(WORK, comparison.name, PASS, reason)
        else:
            changed.append(comparison)
    if not changed:
        return

    session = sampler.session("instructions", LAYOUTS)
    cell = sampler.cell(session, "instructions", rule.overrides, SECONDS_UNDER_CALLGRIND)
    cells = []
    for comparison in changed:
        cells += comparison.cells(cell, WORK, "instructions")[:2]
    task = sampler.task(cells)
    for layout in range(LAYOUTS):
        due = task.cells if layout == 0 else cells_due(sampler, task)
        with bar("instructions", len(due), "processes") as advance:
            session.display = QuietDisplay(advance)
            measure_block(task, Block(layout), due, session, usable_cores())


def cells_due(sampler: Sampler, task: Task) -> list[TrainCell]:
    """The cells whose instructions are to be counted in another layout."""
    compared = by_comparison(sampler.log.records(task.number))
    due = {
        name
        for name, records in compared.items()
        if instructions_finding(sampler.card, name, records).state == REGRESSION
    }
    return [cell for cell in task.cells if dict(cell.gate)["comparison"] in due]


def observe_times(sampler: Sampler, comparisons: Sequence[Arms]) -> None:
    """Time every comparison whose code differs, one after another; those whose own package differs
    first.
    """
    rule = sampler.card.time
    until = time.monotonic() + rule.max_seconds
    session = sampler.session("time", rule.triage.blocks + rule.confirm.blocks)
    for comparison in sorted(comparisons, key=lambda comparison: comparison.same_package):
        name = comparison.name
        if comparison.same_code:
            sampler.note(TIME, name, PASS, f"{name}, time: {SAME_CODE}")
        elif time.monotonic() > until:
            limit = f"time.max_seconds, {seconds_text(rule.max_seconds)}"
            sampler.note(TIME, name, INCONCLUSIVE, f"{name}, time: not started within {limit}")
        else:
            observe_time(sampler, session, comparison)


def observe_time(sampler: Sampler, session: Session, comparison: Arms) -> None:
    """Prove the merges of both sides, then measure blocks of them while the rule wants more."""
    rule, name = sampler.card.time, comparison.name
    task = sized_task(sampler, session, comparison)
    both, with_base_again = task.cells[:2], task.cells

    measure_block(task, FIRST_RUN, both, session)
    records = sampler.log.records(task.number)
    with bar(name, 0, "blocks") as advance:
        while trouble_of(name, records) is None:
            number = next_block(rule, paired_blocks(records))
            if number is None:
                return
            cells = both if number % CONTROL_EVERY else with_base_again
            measure_block(task, Block(number), cells, session)
            records = sampler.log.records(task.number)
            advance(number + 1)


def sized_task(sampler: Sampler, session: Session, comparison: Arms) -> Task:
    """The smallest size at which base takes long enough, or fails; the card's own text as it is."""
    overrides = sampler.card.time.overrides
    grown = [(*overrides, f"{SIZE}={size}") for size in SIZES]
    is_given = any(override.startswith(TEXT_OF_A_SIZE) for override in overrides)
    for of_size in [overrides] if is_given else grown:
        cell = sampler.cell(session, "time", of_size)
        cells = comparison.cells(cell, TIME, cell.reading.file.name)
        task = sampler.task(cells)
        base = cells[0]
        answer = train(base, FIRST_RUN, count(base.count, FIRST_RUN, task, session), session).answer
        seconds = jobs.net_total(answer)
        if answer.status != "ok" or seconds >= SAMPLE_SECONDS:
            break
    return task
