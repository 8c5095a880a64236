"""What a gate observed, one line of JSON each, and the snapshot of counts of work that is committed
with the code.

The first line of evidence is the question, then comes every observation in its order. Lines are
written as they come, so an interrupted run leaves what it observed; the verdict is a function of
the file.

The snapshot has the tallies of every variant on the gate's corpora. They are equal on every
machine, so any difference is a change of the algorithm, and must be accepted by writing the
snapshot again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from harness.common import errors
from harness.common.comparison import Sample as Times
from harness.common.errors import Refusal, reason
from harness.common.files import make_results_folder, write_whole
from harness.proof import WRONG
from harness.proof.prove import Identity

FILE_NAME, VERDICT, SUMMARY = "samples.jsonl", "verdict.json", "summary.md"
PASS, MISMATCH, DRIFT, REGRESSION = "pass", "mismatch", "drift", "regression"
UNMEASURED, INCONCLUSIVE, ABSENT = "unmeasured", "inconclusive", "absent"
"""The states of a finding. `absent` cannot run here, or has nothing to be compared with: neither
good nor bad.
"""
ALL = "all"  # in place of a variant: it is about a whole tier
TRIAGE, CONFIRM = "triage", "confirm"
BASE, HEAD, AGAIN = "base", "head", "again"
Counts = dict[str, int]


class Question(msgspec.Struct, tag_field="kind", tag="gate"):
    """The first line: what was gated, by which card, on which machine."""

    card: dict[str, Any]
    schema: Literal[1] = 1
    started: str = ""
    head: str = ""
    environment: dict[str, Any] = {}


class Observation(msgspec.Struct, tag_field="kind"):
    """Any further line."""


class BaseChosen(Observation, tag="base"):
    described: str


class Note(Observation, tag="note"):
    """Something that was not measured."""

    tier: str
    variant: str
    state: str
    reason: str


class Merges(Observation, tag="identity"):
    """The merges of one variant on one corpus."""

    variant: str
    corpus: str
    status: str
    reason: str | None = None
    merges: int | None = None
    merges_sha256: str | None = None
    identity: Identity | None = None


class Tallies(Observation, tag="tallies"):
    """The counts of work of one variant on one corpus, and those of the snapshot, if there is
    one.
    """

    variant: str
    corpus: str
    tallies: Counts
    expected: Counts | None = None
    snapshot: bool = True


class Accepted(Observation, tag="accepted"):
    """The measured counts of work are in the snapshot now."""


class Instructions(Observation, tag="instructions"):
    """The instructions of one variant, layout after layout of memory."""

    variant: str
    state: str
    reason: str | None = None
    base: list[int] = []
    head: list[int] = []


class Timed(Observation, tag="comparison"):
    """A comparison of times that begins, and the digest of the right merges."""

    comparison: str
    variant: str
    corpus: str
    threads: int
    merges_sha256: str


class Sample(Observation, tag="sample"):
    """One timed process of a comparison; `arm` is base, head, or again for base once more."""

    comparison: str
    stage: str
    block: int
    arm: str
    status: str
    reason: str | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    pressure: float | None = None
    peak_bytes: int | None = None
    merges_sha256: str | None = None
    cpu_wait_seconds: float | None = None
    cpu_wait_unknown: str | None = None

    def times(self, threads: int) -> Times:
        return Times(
            run="gate",
            block=self.block,
            wall_seconds=self.wall_seconds or 0.0,
            cpu_seconds=self.cpu_seconds,
            threads=threads,
            pressure=self.pressure,
            cpu_wait_seconds=self.cpu_wait_seconds,
            cpu_wait_unknown=self.cpu_wait_unknown,
        )


AnyObservation = BaseChosen | Note | Merges | Tallies | Accepted | Instructions | Timed | Sample
Kind = TypeVar("Kind", bound=Observation)


Block = dict[str, Sample]  # the samples of one block by arm; base once more is not in each


def blocks_of(samples: Sequence[Sample], stage: str) -> list[Block]:
    """Return the blocks of a stage that have both sides, in order."""
    blocks: dict[int, Block] = {}
    for sample in samples:
        if sample.stage == stage:
            blocks.setdefault(sample.block, {})[sample.arm] = sample
    return [block for _, block in sorted(blocks.items()) if BASE in block and HEAD in block]


@dataclass
class Evidence:
    """A gate's question and its observations, in memory and, while it runs, in a file."""

    question: Question
    observations: list[Observation] = field(default_factory=list)
    path: Path | None = None

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.observations if isinstance(each, kind)]

    def add(self, observation: Observation) -> None:
        self.observations.append(observation)
        if self.path is not None:
            with self.path.open("a", errors="backslashreplace") as file:
                file.write(_line(observation))


def new_evidence(path: Path, question: Question) -> Evidence:
    """Start the file of a gate that runs now."""
    make_results_folder(path.parent)
    write_whole(path, _line(question).encode(errors="backslashreplace"))
    for name in (VERDICT, SUMMARY):  # of samples that were deleted
        path.with_name(name).unlink(missing_ok=True)
    return Evidence(question, path=path)


def _line(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False) + "\n"


def read_evidence(path: Path) -> Evidence:
    """Read a stored file without a last line that was cut short. Raises Refusal if it is not a
    gate's.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        first, *lines = path.read_bytes().split(b"\n")
        question = msgspec.json.decode(first, type=Question)
        return Evidence(
            question, [msgspec.json.decode(line, type=AnyObservation) for line in lines[:-1]]
        )
    except OSError as error:
        raise Refusal(
            f"cannot read {path} ({reason(error)}); pass --replay a gate's output"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not evidence of a gate ({error}); pass --replay a gate's output"
        raise Refusal(message, errors.UNMEASURED) from error


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


def accept(path: Path, evidence: Evidence) -> None:
    """Write the measured tallies in place of the stored ones, except those of wrong merges.

    Sorted, a line for each count: a change of one is a line of a diff.
    """
    snapshot = read_snapshot(path) or Snapshot()
    merges = [
        each
        for each in evidence.of(Merges)
        if each.identity is not None and each.identity.kind == WRONG
    ]
    wrong = {(each.variant, each.corpus) for each in merges}

    for each in evidence.of(Tallies):
        if (each.tallies or each.expected) and (each.variant, each.corpus) not in wrong:
            snapshot.counters.setdefault(each.variant, {})[each.corpus] = each.tallies

    content = json.dumps(msgspec.to_builtins(snapshot), indent=1, sort_keys=True) + "\n"
    write_whole(
        path,
        content.encode(),
        "choose another file with --set work.counters=FILE",
        errors.UNMEASURED,
    )
    evidence.add(Accepted())
