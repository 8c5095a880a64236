"""Many measurements: blocks of cells in random order, then the proof, then the records, whatever interrupts.

Hydra has enumerated the cells before; from here on it is gone. In each block every counter and then every trainer runs
once, each in a fresh process, one after another and never two at a time. Under limits.wall the first block goes from
the cheapest cell to the dearest, as predicted, so that the most is known soonest; the others are in random order.
"""

from __future__ import annotations

import datetime
import functools
import math
import os
import random
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.progress import Display, bar
from harness.common.registry import VariantCard
from harness.corpora.counted_facts import counted_otherwise
from harness.measure import lock
from harness.measure.disturbance import wait_for_quiet
from harness.measure.environment import environment, host, machine, timed_on
from harness.measure.instructions import RUN_TRAINER, RunJob
from harness.measure.interpreters import interpreter
from harness.measure.process import Answer, Limits, measure
from harness.runs import store
from harness.runs.cells import CountCell, Reading, TrainCell, count_job, count_key, read_merges, train_job
from harness.runs.costs import (
    Forecast,
    Part,
    expected_cost,
    extrapolated,
    keep_cost,
    of_stopped,
    predicted_from_beginnings,
)
from harness.runs.extrapolation import MEASURED, Estimate
from harness.runs.journal import Journal, entry_of_count, entry_of_trained, mark_cut_short, taken_up
from harness.runs.known import RatiosKnown
from harness.runs.outcome import STOPPED, Block, Counted, CountRun, Trained, stopped_at_the_limit
from harness.runs.record import Record
from harness.runs.record_of import by_itself, count_record, train_record
from harness.runs.settings import Settings
from harness.runs.spent import Spent
from harness.runs.verdict import Claim
from harness.worker import word_store
from variants.contract import Merge

PATIENCE = 10
"""How many times limits.wall what is not measured may take: trainers run for a reference, counters for their words."""


class Run:
    """One command's measurements, those of an unfinished run before it among them."""

    def __init__(
        self,
        cells: Sequence[TrainCell],
        settings: Settings,
        folder: Path,
        journal: Journal | None = None,
        spent: Spent | None = None,
    ) -> None:
        self.cells = distinct(cells)
        self.settings = settings
        self.spent = spent or Spent()
        self.timed = settings.measure.timed
        self._blocks = [Block(number, warm_up=True) for number in range(settings.measure.warm_up)]
        self._blocks += [Block(number) for number in range(settings.measure.blocks(settings.repeat))]
        self.folder = folder
        known_machine = machine()
        self.host = host(known_machine)
        self.machine = timed_on(known_machine)
        self.run_id = journal.run_id if journal is not None else now()
        self.journal = journal
        known = journal.entries if journal is not None else []
        rule = settings.measure.precision
        self.known = None if rule is None else RatiosKnown(rule, self.cells)
        self.counts, self.counted, self.trained = taken_up(known, self.cells, self.blocks(), self.wanted)
        self.disagreements: list[str] = []
        self.without_words: set[str] = set()
        self.restless = 0
        self.jobs = 0
        self.forecast = Forecast(self.machine, folder / "slices", self.run_slice)
        blocks = settings.measure.warm_up + settings.repeat
        self.display = Display((len(self.cells) + len(self.count_cells(self.cells))) * blocks)

    def blocks(self) -> list[Block]:
        """Those of warm-up, which are apart from every statistic, then those asked for."""
        return self._blocks

    def count_cells(self, cells: Sequence[TrainCell]) -> list[CountCell]:
        """The counters that these cells need, each once for each corpus and width."""
        return list({count_key(cell.count): cell.count for cell in cells}.values())

    def measure_all(self) -> None:
        """Every block. What has been measured stays in this object if it is interrupted."""
        for block in self.blocks():
            # Each block has an order of its own, whatever was measured before it by a run that was interrupted.
            order = random.Random(f"{self.settings.seed} {block.place}")
            due = self.due(block)
            if block.number >= self.settings.repeat:  # added, because too little is known
                self.display.total_cells += len(due) + len(self.count_cells(due))
            for count_cell in shuffled(self.count_cells(due), order):
                counted = self.counted_in(block, count_cell) or self.count(count_cell, block)
                self.counts[count_key(count_cell)] = self.with_borrowed_words(counted, count_cell)
            ordered = self.in_order(due, block, order)
            for place, cell in enumerate(ordered):
                self.display.seconds_left = self.seconds_left(block, ordered[place:])
                trained = self.train(cell, block)
                begun_before = any(each.cut_short and each.block == block for each in self.trained)
                trained.cut_short = begun_before and not self.several_blocks
                self.trained.append(trained)
                self.note(entry_of_trained(trained), trained.merges, train_record(trained, self.common()))

    def in_order(self, due: Sequence[TrainCell], block: Block, order: random.Random) -> list[TrainCell]:
        """The cells of a block as they are to run: at random, in the first block of a budgeted run the cheapest first.

        A cell that is predicted to be over its limit is left out of warm-up: it runs once, up to the limit.
        """
        listed = shuffled(due, order)
        if block != self.blocks()[0] or not self.timed:
            return listed
        costs = [(cell, self.predicted(cell)) for cell in listed]
        costs.sort(key=lambda cost: math.inf if cost[1] is None else cost[1].seconds)
        return [cell for cell, cost in costs if not (block.warm_up and is_over(cell, cost))]

    def predicted(self, cell: TrainCell) -> Estimate | None:
        """What the trainer would take; nothing is run to know it unless its time is limited."""
        if cell.limits.wall_seconds is None or interpreter(cell.interpreter).status:
            return None
        return self.forecast.of(cell, self.counts[count_key(cell.count)].words)

    def run_slice(self, cell: TrainCell, part: Part, limits: Limits) -> Answer:
        """Run a trainer on a part of its words, to see what the whole would take."""
        job = train_job(cell, cell.variant, part.num_merges, part.path, cell.interpreter)
        # Without the corpus: a trainer that reads the file by itself has no slices.
        return self.run_to_predict(cell, {**job, "corpus": None}, limits)

    def run_beginning(self, cell: TrainCell, part: Part, limits: Limits) -> Answer:
        """Run a trainer that reads the file on a beginning of it, to see what the whole would take."""
        words = self.counts[count_key(cell.count)].words
        assert words is not None, "it was run on the whole"
        job = train_job(cell, cell.variant, part.num_merges, words, cell.interpreter)
        return self.run_to_predict(cell, {**job, "corpus": {**job["corpus"], "path": str(part.path)}}, limits)

    def run_to_predict(self, cell: TrainCell, job: dict[str, Any], limits: Limits) -> Answer:
        """Run a trainer on a part; nothing but what it took is kept."""
        output = self.next_folder()
        with self.spent.on("predicting"), bar(f"predicting {cell.variant.name}", 0, "merges") as on_progress:
            answer = measure(job, output, limits, on_progress)
        shutil.rmtree(output)
        return answer

    def due(self, block: Block) -> list[TrainCell]:
        """The cells that this block still has to measure: not those that were over the wall limit before."""
        done = {each.cell.key() for each in self.trained if each.block == block and not self.is_redone(each)}
        done |= stopped_at_the_limit(self.trained)
        wanted = self.wanted(block, self.trained) - done
        return [cell for cell in self.cells if cell.key() in wanted]

    def wanted(self, block: Block, trained: Sequence[Trained]) -> set[str]:
        """The keys of the cells that belong into a block: all, or those of which too little is known before it."""
        if self.known is None or block.warm_up:
            return {cell.key() for cell in self.cells}
        return self.known.wanted(block, trained)

    @property
    def several_blocks(self) -> bool:
        return len(self.blocks()) > 1

    def is_redone(self, measured: CountRun | Trained) -> bool:
        """Whether it belongs to a block that is measured anew as a whole."""
        return measured.cut_short and self.several_blocks

    def seconds_left(self, block: Block, waiting: Sequence[TrainCell]) -> float | None:
        """The seconds of those that wait in this block and of the blocks after it; None if they are unknown."""
        if not self.display.console.is_terminal:
            return None
        stopped = stopped_at_the_limit(self.trained)
        place = self.blocks().index(block) + 1
        foreseen = {} if self.known is None else self.known.foreseen(self.trained)
        blocks = {cell.key(): foreseen.get(cell.key(), self.settings.repeat) for cell in self.cells}
        warm_up = self.settings.measure.warm_up
        left = [cell for cell in self.cells if cell.key() not in stopped]
        later = [cell for cell in left for _ in range(warm_up + blocks[cell.key()] - place)]
        return self.forecast.seconds_left([*waiting, *later])

    def counted_in(self, block: Block, cell: CountCell) -> Counted | None:
        """What the counter came to in this block before an interruption, or in any if it was over the wall limit."""
        for each in self.counted:
            again = each.block == block and not self.is_redone(each)
            if count_key(each.cell) == count_key(cell) and (again or each.counted.answer["status"] == "timeout"):
                return each.counted
        return None

    def note(self, entry: dict[str, Any], merges: list[Merge] | None, record: Record) -> None:
        """Put what was just measured on disk."""
        if self.journal is not None:
            self.journal.add({**entry, "record": self.shown(record)}, merges)

    def count(self, cell: CountCell, block: Block) -> Counted:
        """Measure a counter, or take what is kept of it."""
        if cell.reading.file.table:
            return self.given(cell)
        mine = None if self.settings.fresh_counts else self.counted_before(cell)
        if mine is not None:
            self.display.pass_over()
            return mine
        known = self.kept_count(cell) if self.reuses_counts else None
        if known is not None:
            self.display.pass_over()
            words = store.words_of(cell.reading)
            wrong = words and self.counted_otherwise(cell, words, known.get("documents"))
            if wrong:
                return Counted({**known, "status": "error", "reason": wrong}, reused=True, words=None, failed_by=wrong)
            return Counted(known, reused=True, words=words)
        self.settle_down()
        started, concurrent = now(), self.is_concurrent()
        answer, words = self.run_counter(f"counting {cell.reading.file.name} ({cell.counter.name})", cell)
        counted = Counted(answer, reused=False, words=words, failed_by=answer["reason"])
        measured = CountRun(cell, block, started, counted, concurrent=concurrent or self.is_concurrent())
        self.counted.append(measured)
        self.note(entry_of_count(measured), None, count_record(measured, self.common()))
        return counted

    def with_borrowed_words(self, counted: Counted, cell: CountCell) -> Counted:
        """What trainers go on with: the counter's own words, or another's where it was over the wall limit.

        So a corpus that is too large for one counter still has a row for every trainer. Nobody is measured here.
        """
        if counted.answer["status"] != "timeout":
            return counted
        words = store.words_of(cell.reading) or self.words_of_another(cell)
        return counted if words is None else Counted({"status": "ok", "reason": None}, reused=True, words=words)

    def words_of_another(self, cell: CountCell) -> Path | None:
        """Words from a quicker counter with all processors, tried once in a run; None if it fails too."""
        lenders = [card for card in registry.lenders() if card.name != cell.counter.name]
        if not lenders or cell.reading.key in self.without_words:
            return None
        self.without_words.add(cell.reading.key)
        lent = replace(cell, counter=lenders[0], threads=os.cpu_count() or 1, limits=patient(cell.limits))
        label = f"words of {cell.reading.file.name} ({lent.counter.name})"
        return self.run_counter(label, lent)[1]

    def run_counter(self, label: str, cell: CountCell) -> tuple[Answer, Path | None]:
        """Run a counter, shown as `label`; its answer, and its words where they are now kept."""
        showing = self.display.showing(label, cell.reading.file.bytes, "bytes")
        with self.spent.on("counting"), showing as on_progress:
            answer = measure(count_job(cell), output := self.next_folder(), cell.limits, on_progress)
        if "offset" in answer:
            answer["reason"] = cell.reading.file.located(answer["reason"], answer["offset"])
        words = self.keep(cell, answer, output / "words") if answer["status"] == "ok" else None
        shutil.rmtree(output)
        return answer, words

    def counted_before(self, cell: CountCell) -> Counted | None:
        """What this run has measured of a counter in another block."""
        for each in self.counted:
            words = each.counted.words
            if count_key(each.cell) == count_key(cell) and words is not None and word_store.is_whole(words):
                return each.counted
        return None

    @functools.cached_property
    def reuses_counts(self) -> bool:
        """Whether kept words are taken: those of all counters of the run, or of none.

        A total is what a run measured, so a run that measured one counter and not another would compare what cannot be.
        """
        if self.settings.fresh_counts:
            return False
        counters = [cell for cell in self.count_cells(self.cells) if not cell.reading.file.table]
        return not self.settings.measure.timed or all(self.kept_count(cell) is not None for cell in counters)

    def counted_otherwise(self, cell: CountCell, words: Path, documents: int | None) -> str | None:
        reading = cell.reading
        return counted_otherwise(reading.file, reading.pattern_name, store.manifest_of(words), documents)

    def kept_count(self, cell: CountCell) -> Answer | None:
        """What is kept of a counter; where no times are wanted, the words of whichever counter will do."""
        known = store.measured_count(cell, self.machine)
        if known is None and not self.timed and store.words_of(cell.reading) is not None:
            return {"status": "ok", "reason": None}
        return known

    def given(self, cell: CountCell) -> Counted:
        """The words of a table, which came with their counts."""
        self.display.pass_over()
        words = store.words_of(cell.reading)
        answer = {"status": "ok", "reason": None, "takes_threads": False}
        if words is None:
            answer.update(status="error", reason="its kept words were damaged meanwhile; run the same again")
            return Counted(answer, reused=False, words=None, failed_by=str(answer["reason"]))
        return Counted({**answer, "words": store.manifest_of(words)}, reused=False, words=words)

    def keep(self, cell: CountCell, answer: Answer, counted: Path) -> Path | None:
        """Keep the words and their time, and return where the words are; None if these cannot be what was asked for."""
        file = cell.reading.file
        if not file.is_unchanged():
            answer.update(status="error", reason=f"{file.name} was changed while it was read; run the same again")
            return None
        if wrong := self.counted_otherwise(cell, counted, answer["tallies"].get("documents")):
            answer.update(status="error", reason=wrong)
            return None
        try:
            words = store.keep_words(cell.reading, counted)
        except store.OtherWords as error:
            answer.update(status="mismatch", reason="it came to other words than a counter before it")
            self.disagreements.append(
                f"{file.name}: counting={cell.counter.name} came to other words than a counter before it; check both "
                f"with python -m harness.conformance, then remove {error}"
            )
            return None
        answer["documents"] = answer["tallies"].get("documents")
        answer["measured"], answer["corpus"] = now(), file.name
        if self.timed:
            store.keep_count(cell, self.machine, answer)
        return words

    def train(self, cell: TrainCell, block: Block) -> Trained:
        """Measure a trainer on the words its counter made; without words the counter's failure is its own."""
        started = now()
        counted = self.counts[count_key(cell.count)]
        if counted.words is not None and not word_store.is_whole(counted.words):  # the cache was emptied meanwhile
            counted = self.with_borrowed_words(self.count(cell.count, block), cell.count)
            self.counts[count_key(cell.count)] = counted
        if counted.words is None:
            # Wrong words are the counter's mismatch; its trainers have just not been measured.
            status = "error" if counted.answer["status"] == "mismatch" else counted.answer["status"]
            failed = {"status": status, "reason": f"counting failed: {counted.failed_by}"}
            return Trained(cell, block, started, failed, counted)
        runs_under = interpreter(cell.interpreter)
        if runs_under.status:
            failed = {"status": runs_under.status, "reason": runs_under.reason}
            return Trained(cell, block, started, failed, counted)
        self.settle_down()
        started, concurrent = now(), self.is_concurrent()
        label = f"{cell.variant.name} on {cell.count.reading.file.name}"
        job = train_job(cell, cell.variant, cell.num_merges, counted.words, cell.interpreter)
        with self.spent.on("training"):
            answer, merges = self.run_trainer(label, job, cell, RUN_TRAINER[self.settings.measure.kind])
        if self.timed:
            self.reckon(cell, answer)
        if answer["status"] in STOPPED:
            block = Block(0)  # it is not run again, so what is known of it belongs to no warm-up
        return Trained(cell, block, started, answer, counted, merges, concurrent=concurrent or self.is_concurrent())

    def reckon(self, cell: TrainCell, answer: Answer) -> None:
        """Extrapolate the total of a cell that was stopped at the limit, and keep what every cell took."""
        if answer["status"] == "timeout":
            from_parts = self.forecast.known.get(cell.key()) or expected_cost(cell, self.machine)
            estimate = of_stopped(answer, cell.num_merges, from_parts)
            if estimate is None and by_itself(cell, answer):
                from_parts = predicted_from_beginnings(cell, self.folder / "beginnings", self.run_beginning)
                estimate = of_stopped(answer, cell.num_merges, from_parts)
            if estimate is None:
                return
            answer.update(status="extrapolated", extrapolated=extrapolated(estimate, answer))
        elif answer["status"] == "ok":
            estimate = Estimate(answer["total"], answer["total"], answer["total"], None, MEASURED)
        else:
            return
        keep_cost(cell, self.machine, estimate)

    def run_trainer(
        self, label: str, job: dict[str, Any], cell: TrainCell, run_job: RunJob
    ) -> tuple[Answer, list[Merge] | None]:
        """Run a trainer's job under the cell's limits, shown as `label`; its answer and its merges."""
        output = self.next_folder()
        showing = self.display.showing(label, job["num_merges"], "merges", cell.reading.file.bytes)
        with showing as on_progress:
            answer = run_job(job, output, cell.limits, on_progress)
        merges = read_merges(output, answer)
        shutil.rmtree(output)
        return answer, merges

    def settle_down(self) -> None:
        """Wait for a quiet machine as long as the preset says, and remember if there was none."""
        with self.spent.on("waiting for a quiet machine"):
            quiet = wait_for_quiet(self.settings.measure.quiet_seconds)
        self.restless += not quiet

    def is_concurrent(self) -> bool:
        """Whether other timed runs are going on beside this one."""
        return self.settings.concurrent or (self.timed and lock.is_concurrent())

    def prove(self, interrupted: bool = False) -> None:
        """Give every trained cell its verdict, and a sentence for each corpus on which families disagree."""
        from harness.runs.prove import count_tokens, prove_all  # here: numpy comes with it, and is needed only now

        if interrupted:
            mark_cut_short(self.wanted, self.counted, self.trained, self.blocks())
        with self.spent.on("proof"):
            self.disagreements += prove_all(self.trained, self.run_judge, self.count_otherwise, interrupted)
        if self.settings.tokens and not interrupted:
            count_tokens(self.trained)

    def count_otherwise(self, cell: TrainCell, reading: Reading) -> Path | None:
        """The words of a cell's corpus read in another way, kept ones or counted untimed; None if that fails."""
        words = store.words_of(reading)
        if words is not None:
            return words
        lender = registry.lenders()[0]
        lent = replace(cell.count, reading=reading, counter=lender, threads=os.cpu_count() or 1)
        lent = replace(lent, limits=patient(cell.limits))
        return self.run_counter(f"words of {reading.file.name} in its own way ({lender.name})", lent)[1]

    def run_judge(self, cell: TrainCell, judge: VariantCard, num_merges: int) -> Claim | None:
        """Run a variant of another family, untimed, for its merges only."""
        words = store.words_of(cell.reading)
        if words is None:  # the cache was emptied meanwhile: then nothing is proved, and nothing lost
            return None
        label = f"reference for {cell.reading.file.name} ({judge.name})"
        unhurried = replace(cell, count=replace(cell.count, limits=patient(cell.limits)))
        answer, merges = self.run_trainer(label, train_job(cell, judge, num_merges, words, None), unhurried, measure)
        if answer["status"] != "ok" or merges is None:
            return None
        return Claim(judge.name, judge.family, merges, num_merges, whole=True)

    def records(self) -> list[Record]:
        """Every record of this run: counters first, then trainers in the order they were asked for."""
        order = {cell.key(): place for place, cell in enumerate(self.cells)}
        listed = sorted(self.trained, key=lambda trained: (trained.block.place, order[trained.cell.key()]))
        counters = [count_record(counted, self.common()) for counted in self.counted]
        trained = [train_record(each, self.common()) for each in listed]
        if self.known is not None:
            told = self.known.told(self.trained)
            trained = [{**each, "precision": told[of.cell.key()]} for each, of in zip(trained, listed, strict=True)]
        return [self.shown(record) for record in counters + trained]

    def shown(self, record: Record) -> Record:
        """The record without its times where times were not what was measured."""
        if self.timed:
            return record
        untimed = {"seconds": dict.fromkeys(record["seconds"]), "cpu_seconds": None}
        return {**record, **untimed, **({"curve": None} if "curve" in record else {})}

    @functools.cached_property
    def environment(self) -> dict[str, Any]:
        """Asked for by the first record: how every module was built takes longer to see than many a job."""
        return environment()

    def common(self) -> Record:
        return {
            "run_id": self.run_id,
            "repeat": self.settings.repeat,
            "measure": self.settings.measure.name,
            "host": self.host,
            "environment": self.environment,
        }

    def next_folder(self) -> Path:
        self.jobs += 1
        return self.folder / str(self.jobs)


def is_over(cell: TrainCell, cost: Estimate | None) -> bool:
    """Whether a cell is predicted to take more than its limit, whatever the doubt."""
    wall = cell.limits.wall_seconds
    return cost is not None and wall is not None and cost.low > wall


def patient(limits: Limits) -> Limits:
    """The same, for what is not measured."""
    wall = limits.wall_seconds
    return replace(limits, wall_seconds=wall and wall * PATIENCE)


def distinct(cells: Iterable[TrainCell]) -> list[TrainCell]:
    return list({cell.key(): cell for cell in cells}.values())


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    listed = list(cells)
    order.shuffle(listed)
    return listed


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
