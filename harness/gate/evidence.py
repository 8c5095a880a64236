"""What a gate observed, as the records of one run, and the file of what is accepted, which is committed
with the code.

Lines are written as they come, so an interrupted gate leaves what it observed. The verdict is a
function of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import ELSEWHERE, check_output, write_output
from harness.records.file import Joined, Record, RunLog, files_read
from harness.records.lines import FILE_NAME, RecordFile
from harness.records.schema import AcceptedChange, Gated, GateQuestion, Note, Run, State, Tier
from harness.results.fields import together

VERDICT, SUMMARY = "verdict.json", "summary.md"
FILES = (FILE_NAME, VERDICT, SUMMARY)
ALL = "all"  # in place of a variant: it is about a whole tier
Counts = dict[str, int]


@dataclass(frozen=True)
class Evidence:
    """A gate's run, what it measured, and what it did not."""

    run: Run
    question: GateQuestion
    records: Sequence[Record]
    notes: Sequence[Note]

    def of(self, tier: Tier) -> list[Record]:
        return [record for record in self.records if gated(record)["tier"] == tier]


def gated(record: Record) -> Gated:
    """For which question of the gate a record was measured."""
    assert record.cell.gate is not None, "the run of a gate has cells of a gate"
    return record.cell.gate


def by_comparison(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by the comparison that each was measured for."""
    return together((gated(record)["comparison"], record) for record in records)


def of_side(records: Iterable[Record], side: str) -> list[Record]:
    return [record for record in records if gated(record)["side"] == side]


def note(log: RunLog, tiers: Iterable[Tier], variant: str, state: State, reason: str) -> None:
    """Write why a variant, or ALL, has no result in these tiers."""
    for tier in tiers:
        log.append(Note(run=log.run.run, tier=tier, variant=variant, state=state, reason=reason))


def new_log(folder: Path, started: str, question: GateQuestion) -> RunLog:
    """Start the records of a gate that runs now. Raises Refusal if the folder has other records."""
    path = folder / FILE_NAME
    check_output(folder, names=FILES)
    if path.exists() and path.stat().st_size:
        lines = Joined().read(path)
        questions = [line.question for _, _, line in lines if isinstance(line, Run)]
        if not questions or not all(questions):
            raise Refusal(f"{path} has records of other measurements; {ELSEWHERE}")

    for name in FILES:  # of an earlier gate
        path.with_name(name).unlink(missing_ok=True)
    log = RunLog(RecordFile(folder, instead=ELSEWHERE), started)
    log.run = structs.replace(log.run, question=question)
    log.append()
    return log


def read_evidence(path: Path) -> Evidence:
    """Read the newest gate of a file or folder of records. Raises Refusal if there is none."""
    lines, run = Joined(), None
    for file in files_read([path]):
        list(lines.read(file))
    for line in lines.shared.values():
        if isinstance(line, Run) and line.question:
            run = line
    if run is None:
        message = f"{path} has no records of a gate; pass --replay a gate's output"
        raise Refusal(message, UNMEASURED)

    records = [record for record in lines.records() if record.run.run == run.run]
    notes = []
    for line in lines.others.values():
        if isinstance(line, Note) and line.run == run.run:
            notes.append(line)
    return Evidence(run, run.question or {}, records, notes)


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
    """Counts of work by variant and corpus, and changes against one base."""

    counts: dict[str, dict[str, Counts]]
    changes: list[AcceptedChange]


def read_accepted(path: Path, commit: str = "") -> Accepted:
    """Read what a file accepts, of changes those against this commit; nothing without a file. Raises
    Refusal for other lines.
    """
    accepted = Accepted({}, [])
    for number, line in enumerate(map(str.strip, lines_of(path)), 1):
        change, count = CHANGE.fullmatch(line), COUNT.fullmatch(line)

        if change:
            base, variant, tier, reason = change.groups()
            if commit.startswith(base):
                accepted.changes.append({"variant": variant, "tier": tier, "reason": reason})
        elif count:
            variant, corpus, name, value = count.groups()
            accepted.counts.setdefault(variant, {}).setdefault(corpus, {})[name] = int(value)
        elif line and not line.startswith("#"):
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
            for name, count in (record.measurement.tallies or {}).items():
                lines.append(f"{counted}{name} {count}")

    lines.sort(key=lambda line: line if COUNT.fullmatch(line) else "")
    content = "".join(f"{line}\n" for line in lines)
    write_output(path, content.encode(), instead="make its folder writable")


def lines_of(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []
