"""python -m harness.counting_benchmark: how fast words are counted, by every counter and by a program beside them.

    python -m harness.counting_benchmark book.txt stdlib            files, and names of data cards
    python -m harness.counting_benchmark --threads 1,2,4 owt

In each block every counter and the program beside them (`wc -w`, which every machine has) run once on every corpus, in
random order, each in a fresh process, so that ratios are of times that shared what disturbed the machine. All counters
must come to the same words. The records are those of any run, and the table is `python -m harness.table`.
"""

from __future__ import annotations

import argparse
import inspect
import os
import random
import shlex
import shutil
import sys
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from harness import table
from harness.common import registry
from harness.common.comparison import Sample, sample_of
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal, guarded
from harness.common.files import temporary_folder
from harness.common.media import terminal_text
from harness.common.progress import Display
from harness.common.registry import CounterCard
from harness.common.sheet import PatientConsole
from harness.common.streams import Parser
from harness.measure import lock
from harness.measure.process import Answer
from harness.results.chosen import DEFAULT_RESULTS
from harness.runs.cells import CountCell, TrainCell
from harness.runs.outcome import Block, Counted, CountRun
from harness.runs.precision import Precision
from harness.runs.record import Record, RecordFile
from harness.runs.record_of import count_record
from harness.runs.running import Plan, planned
from harness.runs.schedule import Run, now, shuffled
from harness.runs.settings import Settings

BESIDE = "wc -w"
LOCALE = "C.UTF-8"


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.counting_benchmark",
        description="Measure word counters, interleaved, and print MB/s and how many times as fast each is.",
        epilog="exit code: 0; 21 if counters differ in their words; 22 if one could not be measured.",
    )
    made.add_argument("corpora", metavar="FILE or NAME", nargs="*", default=["stdlib"], help="(default: stdlib)")
    made.add_argument("--counters", default=",".join(registry.counters()), help="(default: %(default)s)")
    made.add_argument("--threads", default="1", help="widths, for those that take threads (default: %(default)s)")
    made.add_argument(
        "--beside", default=BESIDE, help="a command that reads the file; '' for none (default: %(default)s)"
    )
    made.add_argument("--blocks", type=int, default=5, help="times that each is run (default: %(default)s)")
    made.add_argument(
        "--set", action="append", default=[], metavar="key=value", help="such as pattern=gpt4, data.bytes=5MB"
    )
    made.add_argument(
        "--relative-to", metavar="NAMES", help="rows to compare with (default: the definition and --beside)"
    )
    made.add_argument("--seed", type=int, default=0, help="of the order (default: %(default)s)")
    made.add_argument("--results", default=DEFAULT_RESULTS, metavar="FOLDER", help="(default: %(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: command(parser().parse_args(argv)))


def command(asked: argparse.Namespace) -> int:
    cells, settings = plan_asked(asked)
    store = RecordFile(settings.results)
    with temporary_folder() as folder, lock.timing(settings.concurrent):
        benchmark = Benchmark(cells, settings, Path(folder), shlex.split(asked.beside))
        try:
            benchmark.measure()
        finally:
            store.append(records := benchmark.records())
    table.render(records, console := PatientConsole(), relative_to=asked.relative_to or known_baselines(records))
    for sentence in dict.fromkeys(benchmark.run.disagreements):
        console.print(terminal_text(sentence), soft_wrap=True, markup=False, highlight=False)
    if benchmark.run.disagreements:
        return MISMATCH
    return OK if all(record["status"] in ("ok", "skipped") for record in records) else UNMEASURED


def known_baselines(records: Sequence[Record]) -> str | None:
    """The definition and the program beside the counters, where they could be measured."""
    definition = next(name for name, card in registry.counters().items() if "definition" in card.tags)
    outside = [record["counting"] for record in records if record["counting"] not in registry.counters()]
    measured = {record["counting"] for record in records if record["status"] == "ok"}
    return ",".join(name for name in dict.fromkeys([definition, *outside]) if name in measured) or None


def plan_asked(asked: argparse.Namespace) -> Plan:
    """Every counter at every width it takes, on every corpus."""
    names = asked.counters.split(",")
    counters = registry.counters()
    for name in names:
        if name not in counters:
            raise Refusal(registry.unknown("counting", name, counters))
    whole = [f"repeat={asked.blocks}", f"seed={asked.seed}", f"results={asked.results}", "counts=fresh", *asked.set]
    cells: list[TrainCell] = []
    for corpus in asked.corpora:
        data = f"data.path={corpus}" if Path(corpus).exists() else f"data={corpus}"
        plan = planned(["-m", data, f"counting={','.join(names)}", f"threads={asked.threads}", *whole])
        cells += [cell for cell in plan.cells if reachable(cell.count)]
    return Plan(cells, plan.settings)


def reachable(cell: CountCell) -> bool:
    """Whether the counter runs at this width: one that takes no threads runs in one."""
    return cell.threads == 1 or "threads" in inspect.signature(registry.resolve(cell.counter.target)).parameters


class Benchmark:
    """Counters and the program beside them, in interleaved blocks."""

    def __init__(self, cells: Sequence[TrainCell], settings: Settings, folder: Path, beside: Sequence[str]) -> None:
        self.run = Run(cells, settings, folder)
        self.beside = list(beside)
        self.cells = self.run.count_cells(cells)
        if beside:
            corpora = {cell.reading.key: cell for cell in self.cells}
            card = CounterCard(shlex.join(beside), shlex.join(beside))
            self.cells += [CountCell(cell.reading, card, 1, cell.limits) for cell in corpora.values()]
        self.run.display = Display(len(self.cells) * len(self.run.blocks()))

    def records(self) -> list[Record]:
        """Those of every block in the order in which the cells were asked for."""
        order = {
            (cell.reading.file.sha256, cell.counter.name, cell.threads): place for place, cell in enumerate(self.cells)
        }

        def place(record: Record) -> tuple[bool, int, int]:
            cell = order[record["data"]["sha256"], record["counting"], record["threads"]]
            return not record["warm_up"], record["block"], cell

        return sorted(self.run.records(), key=place)

    def measure(self) -> None:
        order = random.Random(self.run.settings.seed)
        for block in self.run.blocks():
            for cell in shuffled(self.wanted(block), order):
                if cell.counter.name == cell.counter.target:
                    self.measure_beside(cell, block)
                else:
                    self.run.count(cell, block)

    def wanted(self, block: Block) -> list[CountCell]:
        """The cells of a block: all, or those whose ratio to the first of their corpus is not known well enough."""
        rule = self.run.settings.measure.precision
        if rule is None or block.warm_up:
            return self.cells
        samples: dict[Hashable, list[Sample]] = {}
        for counted in self.run.counted:
            sample = None if counted.block.warm_up else sample_of(count_record(counted, {}))
            if sample is not None:
                samples.setdefault(self.cells.index(counted.cell), []).append(sample)
        places = range(len(self.cells))
        precision = Precision(rule, places, lambda place: self.cells[place].reading.key)
        wanted = precision.wanted(block.number, samples)
        return [self.cells[place] for place in places if place in wanted]

    def measure_beside(self, cell: CountCell, block: Block) -> None:
        self.run.settle_down()
        started, concurrent = now(), self.run.is_concurrent()
        label = f"{cell.counter.name} on {cell.reading.file.name}"
        with self.run.display.showing(label, 0, "bytes"):
            answer = run_beside(self.beside, cell.reading.file.path)
        counted = Counted(answer, reused=False, words=None, failed_by=answer["reason"])
        concurrent = concurrent or self.run.is_concurrent()
        self.run.counted.append(CountRun(cell, block, started, counted, concurrent=concurrent))


def run_beside(command: Sequence[str], path: Path) -> Answer:
    """The program's wall and CPU seconds as the kernel has them, in a UTF-8 locale."""
    program = shutil.which(command[0])
    if program is None:
        return {"status": "skipped", "reason": f"there is no {command[0]} here"}
    nothing = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    started = time.perf_counter()
    process = os.posix_spawn(program, [*command, str(path)], {**os.environ, "LC_ALL": LOCALE}, file_actions=nothing)
    _, status, usage = os.wait4(process, 0)
    total = time.perf_counter() - started
    answer: dict[str, Any] = {
        "status": "ok",
        "reason": None,
        "total": total,
        "seconds": {"count": total},
        "tallies": {},
    }
    answer["cpu_seconds"] = usage.ru_utime + usage.ru_stime
    if code := os.waitstatus_to_exitcode(status):
        answer.update(status="error", reason=f"{shlex.join(command)} ended with {code}")
    return answer


if __name__ == "__main__":
    sys.exit(main())
