"""What a gate observed, as the records of one run, and the file of what is accepted, which is committed
with the code.

Lines are written as they come, so an interrupted gate leaves what it observed. The verdict is a
function of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import ELSEWHERE, check_output, write_output
from harness.records.file import Joined, Record, RunLog, files_read, joined_lines
from harness.records.lines import FILE_NAME, RecordFile, read_lines
from harness.records.schema import AcceptedChange, Gated, GateQuestion, Note, Run, State, Tier

VERDICT, SUMMARY = "verdict.json", "summary.md"
ALL = "all"  # in place of a variant: it is about a whole tier
Counts = dict[str, int]
SideRecords = Mapping[str, Record]
"""The records of one block by side; base once more is not in each."""


@dataclass(frozen=True)
class Evidence:
    """A gate's run, what it measured, and what it did not."""

    run: Run
    records: Sequence[Record]
    notes: Sequence[Note]

    @property
    def question(self) -> GateQuestion:
        return self.run.question or {}

    def of(self, tier: Tier) -> list[Record]:
        return [record for record in self.records if gated(record)["tier"] == tier]


def gated(record: Record) -> Gated:
    """For which question of the gate a record was measured."""
    assert record.cell.gate is not None, "the run of a gate has cells of a gate"
    return record.cell.gate


def by_comparison(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by the comparison that each was measured for."""
    comparisons: dict[str, list[Record]] = {}
    for record in records:
        comparisons.setdefault(gated(record)["comparison"], []).append(record)
    return comparisons


def paired_blocks(records: Iterable[Record]) -> list[SideRecords]:
    """The blocks that have both sides, in order, without warm-up."""
    blocks: dict[int, dict[str, Record]] = {}
    for record in records:
        if not record.measurement.warm_up:
            blocks.setdefault(record.measurement.block, {})[gated(record)["side"]] = record
    return [block for _, block in sorted(blocks.items()) if {"base", "head"} <= block.keys()]


def evidence_of(lines: Joined) -> Evidence | None:
    """The newest run of a gate among these lines; None without one."""
    runs = [line for line in lines.shared.values() if isinstance(line, Run) and line.question]
    if not runs:
        return None

    run = runs[-1]
    records = [record for record in lines.records() if record.run.run == run.run]
    notes = [line for line in lines.closed if isinstance(line, Note) and line.run == run.run]
    return Evidence(run, [record for record in records if record.cell.gate], notes)


def note(log: RunLog, tiers: Iterable[Tier], variant: str, state: State, reason: str) -> None:
    """Write why a variant, or ALL, has no result in these tiers."""
    for tier in tiers:
        log.append(Note(run=log.run.run, tier=tier, variant=variant, state=state, reason=reason))


def new_log(folder: Path, started: str, question: GateQuestion) -> RunLog:
    """Start the records of a gate that runs now. Raises Refusal if the folder has other records."""
    path = folder / FILE_NAME
    check_output(folder, names=[FILE_NAME, VERDICT, SUMMARY])
    if path.exists() and path.stat().st_size:
        runs = [line for _, line in read_lines(path) if isinstance(line, Run)]
        if not runs or not all(run.question for run in runs):
            raise Refusal(f"{path} has records of other measurements; {ELSEWHERE}")

    for name in (FILE_NAME, VERDICT, SUMMARY):  # of an earlier gate
        path.with_name(name).unlink(missing_ok=True)
    log = RunLog(RecordFile(folder, instead=ELSEWHERE), started)
    log.run = structs.replace(log.run, question=question)
    log.append()
    return log


def read_evidence(path: Path) -> Evidence:
    """Read the records of a gate. Raises Refusal if there are none."""
    lines = Joined()
    for file in files_read([path]):
        list(joined_lines(file, lines))
    evidence = evidence_of(lines)
    if evidence is None:
        message = f"{path} has no records of a gate; pass --replay a gate's output"
        raise Refusal(message, UNMEASURED)
    return evidence


# What is accepted


ACCEPTED = Path("results", "accepted.txt")
CHANGE = re.compile(r"([0-9a-f]{7,40})\s+(\S+)\s+(work|time)\s+(\S.*)")
"""A change for the worse. It is valid for one base: after the merge, the base of the next change is
another commit.
"""
COUNT = re.compile(r"([^#\s]\S*) (\S+) (\S.*) (\d+)")
"""A variant's count of work on a corpus. It is equal on every machine, so another one is a change of the
algorithm.
"""


class Accepted(NamedTuple):
    """Counts of work by variant and corpus, and changes with the beginning of their base."""

    counts: dict[str, dict[str, Counts]]
    changes: list[tuple[str, AcceptedChange]]


def read_accepted(path: Path) -> Accepted:
    """Read what a file accepts, nothing without one. Raises Refusal for other lines."""
    accepted = Accepted({}, [])
    for number, line in enumerate(lines_of(path), 1):
        change, count = CHANGE.fullmatch(line.strip()), COUNT.fullmatch(line.strip())
        if change:
            base, variant, tier, reason = change.groups()
            accepted.changes.append((base, {"variant": variant, "tier": tier, "reason": reason}))
        elif count:
            variant, corpus, name, value = count.groups()
            accepted.counts.setdefault(variant, {}).setdefault(corpus, {})[name] = int(value)
        elif line.strip() and not line.startswith("#"):
            raise Refusal(
                f"{path}, line {number}: write BASE VARIANT TIER REASON, where BASE is the base's "
                "commit and TIER is work or time; --accept writes VARIANT CORPUS NAME COUNT",
                UNMEASURED,
            )
    return accepted


def accept(path: Path, records: Iterable[Record]) -> None:
    """Write the measured counts of work in place of the accepted ones, except those of wrong merges;
    sorted, below all other lines.
    """
    lines = lines_of(path)
    for record in records:
        if record.status == "ok":
            counted = f"{record.cell.variant} {gated(record)['corpus']} "
            lines = [line for line in lines if not line.startswith(counted)]
            counts = record.measurement.tallies or {}
            lines += [f"{counted}{name} {count}" for name, count in counts.items()]

    lines.sort(key=lambda line: line if COUNT.fullmatch(line) else "")
    content = "".join(f"{line}\n" for line in lines)
    write_output(path, content.encode(), instead="make its folder writable")


def lines_of(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []
