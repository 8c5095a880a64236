"""Measuring the two sides, tier after tier, as cells of one run: each process is a record, written as
it ends.

Identity and work run every variant once on every corpus. Instructions of base and head are counted
under callgrind: a count may depend on where things lie in memory, so a higher one is repeated in
other layouts. Times are taken in blocks of base and head, until the rule has decided.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.common import registry
from harness.common.cards import MeasureCard, MeasureKind
from harness.common.errors import Refusal
from harness.common.registry import GIVEN, VariantCard
from harness.common.units import seconds_text
from harness.gate.base import has_trainer
from harness.gate.judge import NEW, SAME_CODE, instructions_finding, trouble_of
from harness.gate.rule import CONTROL_EVERY, GateCard, by_comparison, decide, note, samples_of
from harness.measure.machine import usable_cores
from harness.measure.quiet import timing
from harness.records.file import RunLog
from harness.records.schema import Tier
from harness.runs.blocks import measure_block
from harness.runs.cells import Block, Side, Task, TrainCell
from harness.runs.overrides import Settings
from harness.runs.plan import planned
from harness.runs.session import Session

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


class Compared(NamedTuple):
    """What is compared with each other: a variant of base, if there is one, and one of head."""

    name: str
    base: Side | None
    base_variant: VariantCard
    head: Side
    variant: VariantCard

    @property
    def difference(self) -> int:
        """Return 2 if the call or the trainer's package differs, 1 if only other files do, else
        0.
        """
        before, after = self.base_variant, self.variant
        if (before.target, before.params) != (after.target, after.params):
            return 2
        changed = self.base.changed if self.base else ()
        package = re.split("[:.]", after.target)[0]
        is_own = any(package in re.split("[/.]", name) for name in changed)
        return 2 if is_own else min(1, len(changed))

    def cells(self, cell: TrainCell, tier: Tier, corpus: str) -> list[TrainCell]:
        """Base, head and base again, on the corpus of a cell."""
        about = (("tier", tier), ("corpus", corpus), ("comparison", self.name))
        base, head = (self.base_variant, self.base), (self.variant, self.head)
        cells = []
        for name, (variant, side) in (("base", base), ("head", head), ("again", base)):
            gate = (*about, ("side", name))
            cells.append(replace(cell, variant=variant, side=side, gate=gate))
        return cells


def observe_tiers(
    card: GateCard, log: RunLog, folder: Path, comparisons: Sequence[Compared]
) -> None:
    """Measure what the card's tiers need; the log says why variants are not compared."""
    if {"identity", "work"} & set(card.tiers):
        observe_counts(card, session_of(log, folder, "proof"), comparisons)

    differing = []
    for compared in comparisons:
        if compared.base is None:
            continue
        if not has_trainer(compared.base, compared.base_variant.target):
            note(log, card.compared_tiers, compared.name, "absent", NEW)
        elif not compared.difference:
            note(log, card.compared_tiers, compared.name, "pass", SAME_CODE)
        else:
            differing.append(compared)

    if "work" in card.tiers and differing:
        observe_instructions(card, session_of(log, folder, "instructions", LAYOUTS), differing)
    if "time" in card.tiers and differing:
        blocks = card.time.triage.blocks + card.time.confirm.blocks
        with timing():
            observe_times(card, session_of(log, folder, "time", blocks), differing)


def session_of(log: RunLog, folder: Path, kind: MeasureKind, blocks: int = 1) -> Session:
    """Return what measures the cells of one tier."""
    measure = MeasureCard(kind, kind=kind, repeat=blocks)
    return Session(Settings(measure=measure, results=""), log, folder / kind)


def gate_cell(card: GateCard, session: Session, overrides: Sequence[str], wall: float) -> TrainCell:
    """Return the cell of these overrides, for any variant; its words are counted here."""
    limits = (f"limits.wall={wall:g}", f"limits.memory={card.limits.memory}")
    cells = planned([*overrides, *limits]).cells
    if len(cells) != 1:
        what = " ".join(overrides)
        raise Refusal(f"{what} makes {len(cells)} cells; set one value for each key in the card")
    cell = replace(cells[0], count=replace(cells[0].count, counter=GIVEN))
    session.give(cell.reading)
    return cell


def observe_counts(card: GateCard, session: Session, comparisons: Sequence[Compared]) -> None:
    """Observe merges and tallies of every variant of head on every corpus, beside each other."""
    for corpus, rule in card.corpora.items():
        suited = registry.select(rule.variants)
        chosen = [one for one in comparisons if not suited or one.variant in suited]
        if chosen and rule.overrides:
            cell = gate_cell(card, session, rule.overrides, card.limits.wall)
            cells = [compared.cells(cell, "identity", corpus)[1] for compared in chosen]
            task = Task(len(session.log.measured), cells)
            session.display.expect(len(cells))
            measure_block(task, Block(0), cells, session, usable_cores())


def observe_instructions(card: GateCard, session: Session, comparisons: Sequence[Compared]) -> None:
    """Count base and head of each comparison; again in other layouts while head takes more."""
    cell = gate_cell(card, session, card.instructions.overrides, SECONDS_UNDER_CALLGRIND)
    cells: list[TrainCell] = []
    for compared in comparisons:
        cells += compared.cells(cell, "work", "instructions")[:2]
    task = Task(len(session.log.measured), cells)

    for layout in range(LAYOUTS):
        session.display.expect(len(cells))
        measure_block(task, Block(layout), cells, session, usable_cores())
        records = by_comparison(session.log.records(task.number))
        cells = []
        for cell in task.cells:
            name = dict(cell.gate)["comparison"]
            if instructions_finding(card, name, records[name]).state == "regression":
                cells.append(cell)
        if not cells:
            return


def observe_times(card: GateCard, session: Session, comparisons: Sequence[Compared]) -> None:
    """Time every comparison, one after another; those whose own package differs first."""
    until = time.monotonic() + card.time.max_seconds
    for compared in sorted(comparisons, key=lambda compared: -compared.difference):
        if time.monotonic() < until:
            observe_time(card, session, compared)
        else:
            limit = seconds_text(card.time.max_seconds)
            reason = f"not started within time.max_seconds, {limit}"
            note(session.log, ["time"], compared.name, "inconclusive", reason)


def observe_time(card: GateCard, session: Session, compared: Compared) -> None:
    """Measure the blocks of triage, and if they do not pass those of confirmation."""
    task = sized_task(card, session, compared)
    both, triage = task.cells[:2], card.time.triage.blocks
    for numbers in (range(triage), range(triage, triage + card.time.confirm.blocks)):
        session.display.expect(len(both) * len(numbers))
        for number in numbers:
            if trouble_of(card, "time", compared.name, session.log.records(task.number)):
                return
            cells = both if number % CONTROL_EVERY else task.cells
            measure_block(task, Block(number), cells, session)
        if decide(card.time, session.log.records(task.number)).state == "pass":
            return


def sized_task(card: GateCard, session: Session, compared: Compared) -> Task:
    """Prove the merges of both sides on texts that grow, until base takes long enough or one fails;
    on the card's own text as it is.
    """
    overrides = card.time.overrides
    grown = [(*overrides, f"{SIZE}={size}") for size in SIZES]
    is_given = any(override.startswith(TEXT_OF_A_SIZE) for override in overrides)
    for of_size in [overrides] if is_given else grown:
        cell = gate_cell(card, session, of_size, card.limits.wall)
        cells = compared.cells(cell, "time", cell.reading.file.name)
        task = Task(len(session.log.measured), cells)
        measure_block(task, Block(0, warm_up=True), cells[:2], session)

        records = session.log.records(task.number)
        trouble = trouble_of(card, "time", compared.name, records)
        if trouble or samples_of(records, "base")[0].seconds >= SAMPLE_SECONDS:
            break
    return task
