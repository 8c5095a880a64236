"""The self-test's third part: trainers that are wrong, and whether the gate says so with the right exit code."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.common.errors import MISMATCH, UNMEASURED, Refusal
from harness.common.files import temporary_folder, write_whole
from harness.common.registry import VariantCard
from harness.gate import planted
from harness.gate.card import Card
from harness.gate.deterministic import Deterministic
from harness.gate.evidence import EvidenceFile
from harness.gate.judging import judged
from harness.gate.sides import Side
from harness.gate.snapshot import Snapshot
from harness.gate.tasks import Arm, Laboratory, Task

MODULE = planted.__name__
HANG_SECONDS = 1.0
HOG_MEMORY = 200_000_000


@dataclass(frozen=True)
class Fault:
    """A way to be wrong, and the exit code that it deserves."""

    name: str
    code: int


FAULTS = (
    Fault("a corrupted merge", MISMATCH),
    Fault("counts of work that drift", MISMATCH),
    Fault("a crash", UNMEASURED),
    Fault("a hang", UNMEASURED),
    Fault("a memory hog", UNMEASURED),
)


def wanted(card: Card, quick: bool) -> dict[str, int]:
    """How many runs of each fault."""
    runs = card.self_test.quick if quick else card.self_test.runs
    return {fault.name: runs.wrong if fault.code == MISMATCH else runs.failing for fault in FAULTS}


class Failures:
    """Gate runs of faulty trainers; what each ended with goes into a file at once."""

    def __init__(self, path: Path, laboratory: Laboratory, side: Side, task: Task, kernel: VariantCard) -> None:
        self.path = path
        self.laboratory = laboratory
        self.side = side
        self.task = task
        self.kernel = kernel
        self.ended = read_failures(path)

    def left(self, numbers: Mapping[str, int]) -> int:
        return sum(max(0, number - len(self.ended.get(name, []))) for name, number in numbers.items())

    def run(self, numbers: Mapping[str, int]) -> Iterator[str]:
        """Make the runs that are still missing; yields the name of each before it is made."""
        honest = self.laboratory.sample(Arm(self.side, self.kernel), self.task, phased=True).answer["tallies"]
        content = "".join(f"{line}\n" for line in whole_lines(self.path))  # without one that was cut off
        write_whole(self.path, content.encode(), exit_code=UNMEASURED)
        for fault in FAULTS:
            for number in range(len(self.ended.get(fault.name, [])), numbers[fault.name]):
                yield fault.name
                code = self.gated(self.faulty(fault, number), honest)
                self.ended.setdefault(fault.name, []).append(code)
                with self.path.open("a") as file:
                    file.write(json.dumps({"fault": fault.name, "exit_code": code}) + "\n")

    def faulty(self, fault: Fault, number: int) -> VariantCard:
        """The kernel with the fault, another each time where it can be."""
        params = dict(self.kernel.params)
        target = {"target": params["target"]}
        made: dict[str, tuple[str, dict[str, Any]]] = {
            "a corrupted merge": ("corrupted", {**target, "place": random.Random(number).randrange(1 << 20)}),
            "counts of work that drift": ("units", {**params, "units": params["units"] + 1 + number}),
            "a crash": ("crashes", {}),
            "a hang": ("hangs", {}),
            "a memory hog": ("hogs", {}),
        }
        function, said = made[fault.name]
        return VariantCard(fault.name, f"{MODULE}:{function}", family=self.kernel.family, params=said)

    def gated(self, variant: VariantCard, honest: Mapping[str, int]) -> int:
        """The exit code of a gate that holds this one trainer against what the honest one counts."""
        with temporary_folder() as folder:
            evidence = EvidenceFile(
                Path(folder, "samples.jsonl"),
                {"card": asdict(replace(self.laboratory.card, tiers=["identity", "work"]))},
            )
            tiers = Deterministic(self.laboratory, self.side, self.side, ("identity", "work"))
            tiers.snapshot = Snapshot(
                {self.task.name: self.task.described}, {variant.name: {self.task.name: dict(honest)}}
            )
            tiers.observe_corpus(limited(self.task, variant), [variant], evidence, lambda *_: None)
            return judged(evidence.evidence).exit_code()


def limited(task: Task, variant: VariantCard) -> Task:
    """The task under limits that a hang or a hog reaches soon, and nobody else does."""
    limits = replace(task.cell.limits, memory_bytes=HOG_MEMORY)
    if variant.target.endswith(":hangs"):
        limits = replace(limits, wall_seconds=HANG_SECONDS)
    return replace(task, cell=replace(task.cell, count=replace(task.cell.count, limits=limits)))


def read_failures(path: Path) -> dict[str, list[int]]:
    """The exit codes so far, by fault. Raises Refusal if the file is of something else."""
    ended: dict[str, list[int]] = {}
    try:
        for line in whole_lines(path):
            entry = json.loads(line)
            ended.setdefault(entry["fault"], []).append(entry["exit_code"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is no list of a self-test's failures ({error}); move it away", UNMEASURED) from error
    return ended


def whole_lines(path: Path) -> list[str]:
    """The lines of a file without a last one that was cut off; none if there is no file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []
