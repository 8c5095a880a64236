"""Many measurements: blocks of cells in random order, then the proof, then the records, whatever interrupts.

Hydra has enumerated the cells before; from here on it is gone. In each block every counter and then every trainer runs
once, each in a fresh process, one after another and never two at a time. Under limits.wall the first block goes from
the cheapest cell to the dearest, as predicted, so that the most is known soonest; the others are in random order.
"""

from __future__ import annotations

import datetime
import math
import random
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import alone, kept, resume
from harness.borrowed_words import patient, with_borrowed_words
from harness.budget import Forecast, extrapolated, of_stopped
from harness.cell_record import count_record, train_record
from harness.corpora.counted_facts import counted_otherwise
from harness.environment import environment, host
from harness.extrapolation import Estimate
from harness.interpreters import interpreter
from harness.jobs import count_job, read_merges, train_job
from harness.journal import Journal
from harness.kept_costs import MEASURED, keep_cost
from harness.kinds import RUN_TRAINER, RunJob
from harness.measure import Answer, Limits, measure
from harness.outcome import STOPPED, Block, Counted, CountRun, Trained, stopped_at_the_limit
from harness.plan import CountCell, TrainCell
from harness.progress import Display, bar
from harness.proof import Claim
from harness.proving import prove_all
from harness.quiet import wait_for_quiet
from harness.record import Record
from harness.registry import VariantCard
from harness.settings import Settings
from harness.time_left import seconds_left
from variants.contract import Merge


class Run:
    """One command's measurements, those of an unfinished run before it among them."""

    def __init__(
        self, cells: Sequence[TrainCell], settings: Settings, folder: Path, journal: Journal | None = None
    ) -> None:
        self.cells = distinct(cells)
        self.settings = settings
        self.folder = folder
        self.environment = environment()
        self.host = host(self.environment)
        self.machine = machine(self.environment)
        self.run_id = journal.run_id if journal is not None else now()
        self.journal = journal
        self.affinity = list(settings.affinity) if settings.affinity is not None else None
        self.counts: dict[tuple[str, str], Counted] = {}
        self.counted: list[CountRun] = []
        self.trained: list[Trained] = []
        self.disagreements: list[str] = []
        self.without_words: set[str] = set()
        self.restless = 0
        self.jobs = 0
        self.forecast = Forecast(self.machine, folder / "slices", self.run_slice)
        self.display = Display((len(self.cells) + len(self.count_cells(self.cells))) * len(self.blocks()))
        if journal is not None:
            resume.restore(self, journal.entries)

    def blocks(self) -> list[Block]:
        """Those of warm-up, which are apart from every statistic, then those asked for."""
        warming = [Block(number, warm_up=True) for number in range(self.settings.measure.warm_up)]
        return warming + [Block(number) for number in range(self.settings.repeat)]

    def count_cells(self, cells: Sequence[TrainCell]) -> list[CountCell]:
        """The counters that these cells need, each once for each corpus and width."""
        return list({count_key(cell.count): cell.count for cell in cells}.values())

    def measure_all(self) -> None:
        """Every block. What has been measured stays in this object if it is interrupted."""
        several = len(self.blocks()) > 1
        for block in self.blocks():
            # Each block has an order of its own, whatever was measured before it by a run that was interrupted.
            order = random.Random(f"{self.settings.seed} {block.place}")
            due = self.due(block)
            for count_cell in shuffled(self.count_cells(due), order):
                counted = self.counted_in(block, count_cell) or self.count(count_cell, block)
                self.counts[count_key(count_cell)] = with_borrowed_words(self, counted, count_cell)
            ordered = self.in_order(due, block, order)
            for place, cell in enumerate(ordered):
                self.display.seconds_left = seconds_left(self, block, ordered[place:])
                trained = self.train(cell, block)
                trained.cut_short = any(each.cut_short and each.block == block for each in self.trained) and not several
                self.trained.append(trained)
                self.note(resume.entry_of_trained(trained), trained.merges, train_record(trained, self.common()))

    def in_order(self, due: Sequence[TrainCell], block: Block, order: random.Random) -> list[TrainCell]:
        """The cells of a block as they are to run: at random, in the first block of a budgeted run the cheapest first.

        A cell that is predicted to be over its limit is left out of warm-up: it runs once, up to the limit.
        """
        listed = shuffled(due, order)
        if block != self.blocks()[0] or not self.settings.measure.timed:
            return listed
        costs = {cell.key(): self.predicted(cell) for cell in listed}
        listed.sort(key=lambda cell: cost.seconds if (cost := costs[cell.key()]) is not None else math.inf)
        return [cell for cell in listed if not (block.warm_up and is_over(cell, costs[cell.key()]))]

    def predicted(self, cell: TrainCell) -> Estimate | None:
        """What the trainer would take; nothing is run to know it unless its time is limited."""
        if cell.limits.wall_seconds is None or interpreter(cell.interpreter).status:
            return None
        return self.forecast.of(cell, self.counts[count_key(cell.count)].words)

    def run_slice(self, cell: TrainCell, words: Path, limits: Limits) -> Answer:
        """Run a trainer on a part of its words, to see what the whole would take."""
        job = train_job(cell, cell.variant, cell.num_merges, words, cell.interpreter)
        output = self.next_folder()
        with bar(f"predicting {cell.variant.name}", 0, "merges") as on_progress:
            # Without the corpus: a trainer that reads the file by itself has no slices.
            answer = measure({**job, "corpus": None, "affinity": self.affinity}, output, limits, on_progress)
        shutil.rmtree(output)
        return answer

    def due(self, block: Block) -> list[TrainCell]:
        """The cells that this block still has to measure: not those that were over the wall limit before."""
        done = {each.cell.key() for each in self.trained if each.block == block and not resume.is_redone(self, each)}
        done |= stopped_at_the_limit(self.trained)
        return [cell for cell in self.cells if cell.key() not in done]

    def counted_in(self, block: Block, cell: CountCell) -> Counted | None:
        """What the counter came to in this block before an interruption, or in any if it was over the wall limit."""
        for each in self.counted:
            again = each.block == block and not resume.is_redone(self, each)
            if count_key(each.cell) == count_key(cell) and (again or each.counted.answer["status"] == "timeout"):
                return each.counted
        return None

    def note(self, entry: dict[str, Any], merges: list[Merge] | None, record: Record) -> None:
        """Put what was just measured on disk."""
        if self.journal is not None:
            self.journal.add({**entry, "record": self.shown(record)}, resume.packed(merges))

    def count(self, cell: CountCell, block: Block) -> Counted:
        """Measure a counter, or take what is kept of it."""
        if cell.reading.file.table:
            return self.given(cell)
        known = None if self.settings.fresh_counts else self.kept_count(cell)
        if known is not None:
            self.display.pass_over()
            words = kept.words_of(cell.reading)
            wrong = words and counted_otherwise(cell.reading, kept.manifest_of(words), known.get("documents"))
            if wrong:
                return Counted({**known, "status": "error", "reason": wrong}, reused=True, words=None, failed_by=wrong)
            return Counted(known, reused=True, words=words)
        self.settle_down()
        started, beside = now(), self.others_beside()
        label = f"counting {cell.reading.file.name} ({cell.counter.name})"
        with self.display.showing(label, cell.reading.file.bytes, "bytes") as on_progress:
            answer = measure(count_job(cell, self.affinity), output := self.next_folder(), cell.limits, on_progress)
        if "offset" in answer:
            answer["reason"] = cell.reading.file.located(answer["reason"], answer["offset"])
        words = self.keep(cell, answer, output / "words") if answer["status"] == "ok" else None
        shutil.rmtree(output)
        counted = Counted(answer, reused=False, words=words, failed_by=answer["reason"])
        measured = CountRun(cell, block, started, counted, beside_others=beside or self.others_beside())
        self.counted.append(measured)
        self.note(resume.entry_of_count(measured), None, count_record(measured, self.common()))
        return counted

    def kept_count(self, cell: CountCell) -> Answer | None:
        """What is kept of a counter; where no times are wanted, the words of whichever counter will do."""
        known = kept.measured_count(cell, self.machine)
        if known is None and not self.settings.measure.timed and kept.words_of(cell.reading) is not None:
            return {"status": "ok", "reason": None}
        return known

    def given(self, cell: CountCell) -> Counted:
        """The words of a table, which came with their counts."""
        self.display.pass_over()
        words = kept.words_of(cell.reading)
        answer = {"status": "ok", "reason": None, "takes_threads": False}
        if words is None:
            answer.update(status="error", reason="its kept words were damaged meanwhile; run the same again")
            return Counted(answer, reused=False, words=None, failed_by=str(answer["reason"]))
        return Counted({**answer, "words": kept.manifest_of(words)}, reused=False, words=words)

    def keep(self, cell: CountCell, answer: Answer, counted: Path) -> Path | None:
        """Keep the words and their time, and return where the words are; None if these cannot be what was asked for."""
        file = cell.reading.file
        if not file.is_unchanged():
            answer.update(status="error", reason=f"{file.name} was changed while it was read; run the same again")
            return None
        if wrong := counted_otherwise(cell.reading, kept.manifest_of(counted), answer["tallies"].get("documents")):
            answer.update(status="error", reason=wrong)
            return None
        try:
            words = kept.keep_words(cell.reading, counted)
        except kept.OtherWords as error:
            answer.update(status="mismatch", reason="it came to other words than a counter before it")
            self.disagreements.append(
                f"{file.name}: counting={cell.counter.name} came to other words than a counter before it; check both "
                f"with python -m harness.conformance, then remove {error}"
            )
            return None
        answer["documents"] = answer["tallies"].get("documents")
        if self.settings.measure.timed:
            kept.keep_count(cell, self.machine, answer)
        return words

    def train(self, cell: TrainCell, block: Block) -> Trained:
        """Measure a trainer on the words its counter made; without words the counter's failure is its own."""
        started = now()
        counted = self.counts[count_key(cell.count)]
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
        started, beside = now(), self.others_beside()
        label = f"{cell.variant.name} on {cell.reading.file.name}"
        job = train_job(cell, cell.variant, cell.num_merges, counted.words, cell.interpreter)
        answer, merges = self.run_trainer(label, job, cell, RUN_TRAINER[self.settings.measure.kind])
        if self.settings.measure.timed:
            self.reckon(cell, answer)
        if answer["status"] in STOPPED:
            block = Block(0)  # it is not run again, so what is known of it belongs to no warm-up
        return Trained(cell, block, started, answer, counted, merges, beside_others=beside or self.others_beside())

    def reckon(self, cell: TrainCell, answer: Answer) -> None:
        """Extrapolate the total of a cell that was stopped at the limit, and keep what every cell took."""
        if answer["status"] == "timeout":
            estimate = of_stopped(answer, cell.num_merges, self.forecast.known.get(cell.key()))
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
        with self.display.showing(label, job["num_merges"], "merges") as on_progress:
            answer = run_job({**job, "affinity": self.affinity}, output, cell.limits, on_progress)
        merges = read_merges(output, answer)
        shutil.rmtree(output)
        return answer, merges

    def settle_down(self) -> None:
        """Wait for a quiet machine as long as the preset says, and remember if there was none."""
        if not wait_for_quiet(self.settings.measure.quiet_seconds):
            self.restless += 1

    def others_beside(self) -> bool:
        return self.settings.concurrent or (self.settings.measure.timed and alone.others_beside())

    def prove(self, interrupted: bool = False) -> None:
        """Give every trained cell its verdict, and a sentence for each corpus on which families disagree."""
        if interrupted:
            resume.mark_cut_short(self)
        self.disagreements += prove_all(self.trained, self.run_judge, interrupted)

    def run_judge(self, cell: TrainCell, judge: VariantCard, num_merges: int) -> Claim | None:
        """Run a variant of another family, untimed, for its merges only."""
        words = kept.words_of(cell.reading)
        assert words is not None, "the words were there when the cell was measured"
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
        return [self.shown(record) for record in counters + [train_record(each, self.common()) for each in listed]]

    def shown(self, record: Record) -> Record:
        """The record without its times where times were not what was measured."""
        if self.settings.measure.timed:
            return record
        untimed = {"seconds": dict.fromkeys(record["seconds"]), "cpu_seconds": None}
        return {**record, **untimed, **({"curve": None} if "curve" in record else {})}

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


def machine(known: dict[str, Any]) -> str:
    """What a kept time was measured on: another version of Python is another speed."""
    return f"{host(known)}-{known['python'].replace(' ', '-')}"


def distinct(cells: Iterable[TrainCell]) -> list[TrainCell]:
    return list({cell.key(): cell for cell in cells}.values())


def count_key(cell: CountCell) -> tuple[str, str]:
    return cell.reading.key(), cell.key()


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    listed = list(cells)
    order.shuffle(listed)
    return listed


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
