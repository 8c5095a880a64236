"""Many measurements: blocks of cells in random order, then the proof, then the records, whatever interrupts.

Hydra has enumerated the cells before; from here on it is gone. In each block every counter and then every trainer runs
once, each in a fresh process, one after another and never two at a time.
"""

from __future__ import annotations

import datetime
import random
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import corpora, kept, registry
from harness.cell_record import count_record, train_record
from harness.environment import environment, host
from harness.errors import MISMATCH, UNMEASURED, Refusal
from harness.kinds import RUN_TRAINER, RunJob
from harness.measure import Answer, measure
from harness.plan import CountCell, TrainCell
from harness.progress import Display
from harness.proof import Claim, Verdict, find_reference, verdict
from harness.record import Record, merges_from_bytes
from harness.registry import VariantCard
from harness.settings import Settings
from variants.contract import Merge

# A trainer whose records are to be proved must have been measured to the end or stopped by the wall limit.
PROVABLE = ("ok", "timeout")


@dataclass(frozen=True)
class Block:
    """A pass over all cells."""

    number: int
    warm_up: bool = False

    @property
    def place(self) -> tuple[bool, int]:
        """Where it stands among the others: warm-up comes first."""
        return not self.warm_up, self.number


@dataclass
class Counted:
    """A counter's answer, and whether it is from this run."""

    answer: Answer
    reused: bool
    words: Path | None
    failed_by: str | None = None


@dataclass
class Trained:
    """A trainer's answer in one block, its merges, and in the end what is known of them."""

    cell: TrainCell
    block: Block
    started: str
    answer: Answer
    counted: Counted
    merges: list[Merge] | None = None
    verdict: Verdict = field(default_factory=lambda: Verdict("unconfirmed"))


class Run:
    """One command's measurements."""

    def __init__(self, cells: Sequence[TrainCell], settings: Settings, folder: Path) -> None:
        self.cells = list({cell.key(): cell for cell in cells}.values())
        self.settings = settings
        self.folder = folder
        self.environment = environment()
        self.host = host(self.environment)
        # What a kept count was measured on: another version of Python counts at another speed.
        self.machine = f"{self.host}-{self.environment['python'].replace(' ', '-')}"
        self.run_id = now()
        self.affinity = list(settings.affinity) if settings.affinity is not None else None
        self.counts: dict[tuple[str, str], Counted] = {}
        self.count_records: list[Record] = []
        self.trained: list[Trained] = []
        self.disagreements: list[str] = []
        self.jobs = 0
        passes = settings.measure.warm_up + settings.repeat
        self.display = Display((len(self.cells) + len(self.count_cells())) * passes)

    def count_cells(self) -> list[CountCell]:
        """The counters that are needed, each once for each corpus and width."""
        return list({(cell.reading.key(), cell.count.key()): cell.count for cell in self.cells}.values())

    def measure_all(self) -> None:
        """Every block. What has been measured stays in this object if it is interrupted."""
        order = random.Random(self.settings.seed)
        for block in self.blocks():
            for count_cell in shuffled(self.count_cells(), order):
                self.counts[count_cell.reading.key(), count_cell.key()] = self.count(count_cell, block)
            for cell in shuffled(self.cells, order):
                self.trained.append(self.train(cell, block))

    def blocks(self) -> list[Block]:
        """Those of warm-up, which are apart from every statistic, then those asked for."""
        warming = [Block(number, warm_up=True) for number in range(self.settings.measure.warm_up)]
        return warming + [Block(number) for number in range(self.settings.repeat)]

    def count(self, cell: CountCell, block: Block) -> Counted:
        """Measure a counter, or take what is kept of it."""
        known = None if self.settings.fresh_counts else kept.measured_count(cell, self.machine)
        if known is not None:
            self.display.pass_over()
            return Counted(known, reused=True, words=kept.words_of(cell.reading))
        started, corpus = now(), cell.reading.corpus()
        job = {
            "kind": "count",
            "target": cell.counter.target,
            "params": dict(cell.counter.params),
            "threads": cell.threads,
            "affinity": self.affinity,
            "corpus": {
                "path": corpus.path,
                "special_tokens": corpus.special_tokens,
                "pattern": corpus.pattern,
                "errors": corpus.errors,
                "partial": corpus.partial,
            },
        }
        label = f"counting {cell.reading.file.name} ({cell.counter.name})"
        with self.display.showing(label, cell.reading.file.bytes, "bytes") as on_progress:
            answer = measure(job, output := self.next_folder(), cell.limits, on_progress)
        words = self.keep(cell, answer, output / "words") if answer["status"] == "ok" else None
        shutil.rmtree(output)
        counted = Counted(answer, reused=False, words=words, failed_by=answer["reason"])
        self.count_records.append(count_record(cell, answer, words, started, block, self.common()))
        return counted

    def keep(self, cell: CountCell, answer: Answer, counted: Path) -> Path | None:
        """Keep the words and their time, and return where the words are; None if these cannot be what was asked for."""
        file = cell.reading.file
        if corpora.digest_of(file.path) != file.sha256:
            answer.update(status="error", reason=f"{file.name} was changed while it was read; run the same again")
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
        kept.keep_count(cell, self.machine, answer)
        return words

    def train(self, cell: TrainCell, block: Block) -> Trained:
        """Measure a trainer on the words its counter made; without words the counter's failure is its own."""
        started = now()
        counted = self.counts[cell.reading.key(), cell.count.key()]
        if counted.words is None:
            # Wrong words are the counter's mismatch; its trainers have just not been measured.
            status = "error" if counted.answer["status"] == "mismatch" else counted.answer["status"]
            failed = {"status": status, "reason": f"counting failed: {counted.failed_by}"}
            return Trained(cell, block, started, failed, counted)
        if cell.interpreter is not None and shutil.which(cell.interpreter) is None:
            reason = f"there is no interpreter {cell.interpreter!r} here; install it, or say interpreter=PATH"
            return Trained(cell, block, started, {"status": "skipped", "reason": reason}, counted)
        label = f"{cell.variant.name} on {cell.reading.file.name}"
        job = train_job(cell, cell.variant, cell.num_merges, counted.words, cell.interpreter)
        answer, merges = self.run_trainer(label, job, cell, RUN_TRAINER[self.settings.measure.kind])
        return Trained(cell, block, started, answer, counted, merges)

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

    def prove(self, interrupted: bool = False) -> None:
        """Give every trained cell its verdict, and a sentence for each corpus on which families disagree.

        After an interruption nothing more is run and nothing kept: what is there has to do.
        """
        groups: dict[tuple[str, str, int], list[Trained]] = {}
        for trained in self.trained:
            if trained.answer["status"] in PROVABLE and trained.merges is not None:
                cell = trained.cell
                groups.setdefault((cell.reading.key(), cell.tie_break, cell.min_count), []).append(trained)
        for group in groups.values():
            claims = [claim_of(trained) for trained in group]
            cell = max((trained.cell for trained in group), key=lambda cell: cell.num_merges)
            asked = cell.reading, cell.tie_break, cell.min_count
            reference = kept.reference(*asked)
            whole = [claim.num_merges for claim in claims if claim.whole]
            if whole and (reference is None or not reference.covers(max(whole))):
                judges = [] if interrupted else registry.judges()
                made, disagree = find_reference(claims, judges, lambda judge, size: self.rerun(cell, judge, size))  # noqa: B023
                if made is not None:
                    reference = made
                    if not interrupted:
                        kept.keep_reference(*asked, made)
                elif disagree:
                    names = ", ".join(dict.fromkeys(claim.variant for claim in claims))
                    self.disagreements.append(
                        f"{cell.reading.file.name}: {names} and the trainers they were held against disagree, and no "
                        "two families agree; none of these merges is proved"
                    )
            for trained, claim in zip(group, claims, strict=True):
                trained.verdict = verdict(claim, reference)

    def rerun(self, cell: TrainCell, judge: VariantCard, num_merges: int) -> Claim | None:
        """Run a variant of another family, untimed, for its merges only."""
        words = kept.words_of(cell.reading)
        assert words is not None, "the words were there when the cell was measured"
        label = f"reference for {cell.reading.file.name} ({judge.name})"
        answer, merges = self.run_trainer(label, train_job(cell, judge, num_merges, words, None), cell, measure)
        if answer["status"] != "ok" or merges is None:
            return None
        return Claim(judge.name, judge.family, merges, num_merges, whole=True)

    def records(self) -> list[Record]:
        """Every record of this run: counters first, then trainers in the order they were asked for."""
        order = {cell.key(): place for place, cell in enumerate(self.cells)}
        listed = sorted(self.trained, key=lambda trained: (trained.block.place, order[trained.cell.key()]))
        return self.count_records + [train_record(trained, self.common()) for trained in listed]

    def common(self) -> Record:
        return {
            "run_id": self.run_id,
            "repeat": self.settings.repeat,
            "measure": self.settings.measure.name,
            "concurrent": self.settings.concurrent,
            "host": self.host,
            "environment": self.environment,
        }

    def next_folder(self) -> Path:
        self.jobs += 1
        return self.folder / str(self.jobs)


def train_job(
    cell: TrainCell, variant: VariantCard, num_merges: int, words: Path, interpreter: str | None
) -> dict[str, Any]:
    return {
        "kind": "train",
        "target": variant.target,
        "params": dict(variant.params),
        "threads": cell.threads,
        "interpreter": interpreter,
        "words": str(words),
        "num_merges": num_merges,
        "tie_break": cell.tie_break,
        "min_count": cell.min_count,
    }


def claim_of(trained: Trained) -> Claim:
    cell, whole = trained.cell, trained.answer["status"] == "ok"
    return Claim(cell.variant.name, cell.variant.family, trained.merges or [], cell.num_merges, whole)


def read_merges(output: Path, answer: Answer) -> list[Merge] | None:
    """The merges that a process left; without an answer that names them, half of them may be there, which are none."""
    return merges_from_bytes((output / "merges").read_bytes()) if "merges_done" in answer else None


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    listed = list(cells)
    order.shuffle(listed)
    return listed


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")


def refuse_if_nothing_counted(run: Run) -> None:
    """One sentence instead of a table of dashes when no words could be had."""
    reasons = {counted.failed_by for counted in run.counts.values() if counted.words is None}
    if reasons and all(counted.words is None for counted in run.counts.values()):
        code = MISMATCH if run.disagreements else UNMEASURED
        raise Refusal("; ".join(run.disagreements or sorted(str(reason) for reason in reasons)), code)
