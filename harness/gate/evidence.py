"""What a gate observed, as the records of one run, and the snapshot of counts of work that is committed
with the code.

Lines are written as they come, so an interrupted gate leaves what it observed. The verdict is a
function of them.

The snapshot has the tallies of every variant on the gate's corpora. They are equal on every
machine, so any difference is a change of the algorithm, and must be accepted by writing the
snapshot again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from harness.common import errors
from harness.common.errors import Refusal
from harness.common.files import ELSEWHERE, check_output, write_output
from harness.records.file import Joined, Record, RunLog
from harness.records.lines import FILE_NAME, RecordFile, read_lines
from harness.records.schema import AcceptedChange, Gated, GateQuestion, Note, Run

VERDICT, SUMMARY = "verdict.json", "summary.md"
SNAPSHOT = Path("results", "counters.json")
ACCEPTED_CHANGES = Path("results", "accepted.txt")
PASS, MISMATCH, DRIFT, REGRESSION = "pass", "mismatch", "drift", "regression"
UNMEASURED, INCONCLUSIVE, ABSENT = "unmeasured", "inconclusive", "absent"
"""The states of a finding. `absent` cannot run here, or has nothing to be compared with: neither
good nor bad.
"""
ACCEPTED = "accepted"  # of a note: the measured counts of work are in the snapshot now
ALL = "all"  # in place of a variant: it is about a whole tier
IDENTITY, WORK, TIME = "identity", "work", "time"
BASE, HEAD, AGAIN = "base", "head", "again"
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

    def of(self, tier: str) -> list[Record]:
        return [record for record in self.records if gated(record)["tier"] == tier]

    def compared(self, tier: str) -> dict[str, list[Record]]:
        """The records of a tier by comparison."""
        return by_comparison(self.of(tier))


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
    return [block for _, block in sorted(blocks.items()) if BASE in block and HEAD in block]


def evidence_of(lines: Joined) -> Evidence | None:
    """The newest run of a gate among these lines; None without one."""
    runs = [line for line in lines.shared.values() if isinstance(line, Run) and line.question]
    if not runs:
        return None

    run = runs[-1]
    records = []
    for record in lines.records():
        if record.run.run == run.run and record.cell.gate:
            records.append(record)
    notes = [line for line in lines.closed if isinstance(line, Note) and line.run == run.run]
    return Evidence(run, records, notes)


def new_log(folder: Path, started: str, question: GateQuestion) -> RunLog:
    """Start the records of a gate that runs now. Raises Refusal if the folder has other records."""
    path = folder / FILE_NAME
    check_output(folder, names=[FILE_NAME, VERDICT, SUMMARY])
    if path.exists() and not is_of_a_gate(path):
        raise Refusal(f"{path} has records of other measurements; {ELSEWHERE}")

    for name in (FILE_NAME, VERDICT, SUMMARY):  # of an earlier gate
        path.with_name(name).unlink(missing_ok=True)
    log = RunLog(RecordFile(folder, instead=ELSEWHERE), started)
    log.run = msgspec.structs.replace(log.run, question=question)
    log.append()
    return log


def is_of_a_gate(path: Path) -> bool:
    """Whether a file has runs of gates alone, or nothing at all."""
    runs = [line for _, line in read_lines(path) if isinstance(line, Run)]
    if not runs:
        return path.stat().st_size == 0
    return all(run.question for run in runs)


def evidence_file(path: Path) -> Path:
    """The records of a gate: a file, or the one in its output folder."""
    return path / FILE_NAME if path.is_dir() else path


def read_evidence(path: Path) -> Evidence:
    """Read the records of a gate. Raises Refusal if there are none."""
    path = evidence_file(path)
    if not path.exists():
        message = f"cannot read {path} (no such file); pass --replay a gate's output"
        raise Refusal(message, errors.UNMEASURED)

    lines = Joined()
    for _, line in read_lines(path):
        if not isinstance(line, str):
            lines.join(line)
    evidence = evidence_of(lines)
    if evidence is None:
        message = f"{path} has no records of a gate; pass --replay a gate's output"
        raise Refusal(message, errors.UNMEASURED)
    return evidence


class Snapshot(msgspec.Struct):
    """Tallies by variant and corpus."""

    schema: Literal[1] = 1
    counters: dict[str, dict[str, Counts]] = {}


def read_snapshot(path: Path) -> Snapshot | None:
    """Read the snapshot in a file; None without a file. Raises Refusal for anything else in it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Snapshot) if path.exists() else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not a snapshot of counts ({error}); remove it, --accept writes it"
        raise Refusal(message, errors.UNMEASURED) from error


def accept(path: Path, records: Sequence[Record]) -> None:
    """Write the measured tallies in place of the stored ones, except those of wrong merges.

    Sorted, a line for each count: a change of one is a line of a diff.
    """
    snapshot = read_snapshot(path) or Snapshot()
    for record in records:
        variant, corpus = str(record.cell.variant), gated(record)["corpus"]
        tallies = record.measurement.tallies or {}
        stored = snapshot.counters.get(variant, {}).get(corpus)
        if record.status == "ok" and (tallies or stored):
            snapshot.counters.setdefault(variant, {})[corpus] = tallies

    content = json.dumps(msgspec.to_builtins(snapshot), indent=1, sort_keys=True) + "\n"
    write_output(path, content.encode(), instead="make its folder writable")


# Changes that are accepted on purpose


LINE = re.compile(rf"([0-9a-f]{{7,40}})\s+(\S+)\s+({WORK}|{TIME})\s+(\S.*)")
"""Of a file that is committed with the change. It is valid for one base: after the merge, the base of
the next change is another commit.
"""


def accepted_changes(path: Path, commit: str) -> list[AcceptedChange]:
    """Return what the lines of a file accept against this commit. Raises Refusal for other lines."""
    changes: list[AcceptedChange] = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.fullmatch(line.strip())
        if found is None:
            raise Refusal(
                f"{path}, line {number}: write BASE VARIANT TIER REASON; BASE is the base's commit, "
                f"TIER is {WORK} or {TIME}",
                errors.UNMEASURED,
            )
        base, variant, tier, reason = found.groups()
        if commit.startswith(base):
            changes.append({"variant": variant, "tier": tier, "reason": reason})
    return changes
