"""A self-test's stream of blocks, on disk as they come, and the gate runs that it is cut into.

A block holds one sample of base, one of the same program again, and one of each program with more work. Every kind of
run walks through the stream by itself: thirty blocks of triage, ninety of confirmation if the rule wants them, then the
next run begins. So no block serves two runs of a kind, and the rule is that of the gate itself. A kind that has all its
runs is left out of further blocks, until more of them are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common.comparison import Sample
from harness.common.errors import UNMEASURED, Refusal
from harness.gate.card import TimeSaid
from harness.gate.rule import ESCALATE, Blocked, Timed, decide
from harness.runs.aa import Block, BlockFile, Form, read_blocks

KIND = "gate_self_test"
FORM = Form(KIND, {"wall_seconds": 5, "cpu_seconds": 5, "pressure": 3}, named=False)
BASE, AGAIN, SAME = "base", "again", "same"


def planted_name(share: float) -> str:
    """
    >>> planted_name(0.05), planted_name(0.0)
    ('+5%', 'same')
    """
    return f"+{100 * share:g}%" if share else SAME


@dataclass
class Kind:
    """One kind of run, and what its runs so far came to."""

    name: str
    share: float
    wanted: int
    rule: TimeSaid
    states: list[str] = field(default_factory=list)
    used: int = 0
    escalated: int = 0
    waiting: list[Block] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return len(self.states) >= self.wanted

    @property
    def blocks_for_a_run(self) -> float:
        """So far, in the mean; a guess before there is any."""
        if self.states:
            return self.used / len(self.states)
        return self.rule.triage.blocks + (self.rule.confirm.blocks if self.share > self.rule.triage.most else 3)

    @property
    def blocks_left(self) -> float:
        """How many more blocks its runs will take, beyond those that it has been given; at least one."""
        if self.finished:
            return 0.0
        return max(1.0, (self.wanted - len(self.states)) * self.blocks_for_a_run - len(self.waiting))

    def advance(self, further: Iterable[Block]) -> None:
        """Take further blocks of the stream, those that it is in, and make every run for which there are enough."""
        self.waiting += [block for block in further if self.name in block]
        while not self.finished and self.make_run():
            pass

    def make_run(self) -> bool:
        """Make one run of the blocks that wait; whether there were enough of them."""
        first = self.rule.triage.blocks
        whole = first + self.rule.confirm.blocks
        if len(self.waiting) < first:
            return False
        taken = first
        decision = decide(self.rule, blocked(self.waiting[:first], self.name))
        if decision.state == ESCALATE:
            if len(self.waiting) < whole:
                return False
            taken = whole
            triage, confirm = (blocked(part, self.name) for part in (self.waiting[:first], self.waiting[first:whole]))
            decision = decide(self.rule, triage, confirm)
            self.escalated += 1
        del self.waiting[:taken]
        self.used += taken
        self.states.append(decision.state)
        return True


def blocked(blocks: Sequence[Block], head: str, slower: float = 0.0) -> list[Blocked]:
    """Blocks as the rule takes them; `slower` is a share that is added to what head took."""
    return [
        Blocked(
            Timed(block[BASE]),
            Timed(slowed(block[head], slower) if slower else block[head]),
            Timed(block[AGAIN]) if AGAIN in block else None,
        )
        for block in blocks
    ]


def slowed(sample: Sample, share: float) -> Sample:
    cpu = None if sample.cpu_seconds is None else sample.cpu_seconds * (1 + share)
    return sample._replace(wall_seconds=sample.wall_seconds * (1 + share), cpu_seconds=cpu)


class Stream:
    """A file of blocks that belongs to one condition of a self-test."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        """Go on with the file. Raises Refusal if it is of something else, which nobody wants to lose."""
        known, blocks = read_stream(path) if path.exists() else (head, [])
        if comparable(known) != comparable(head):
            raise Refusal(
                f"{path} is of another program, machine or condition; use --output FOLDER, or take it away", UNMEASURED
            )
        self.file = BlockFile(path, FORM, known, blocks)

    @property
    def blocks(self) -> list[Block]:
        return self.file.blocks


def comparable(head: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for blocks to belong together; how many runs are wanted may grow."""
    return {name: head.get(name) for name in ("schema", "condition", "kernel", "host", "python", "concurrent")}


def read_stream(path: Path) -> tuple[dict[str, Any], list[Block]]:
    """The head and the blocks of a file. Raises Refusal if it is none."""
    try:
        return read_blocks(path, FORM)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is no stream of a self-test ({error}); move it away", UNMEASURED) from error
