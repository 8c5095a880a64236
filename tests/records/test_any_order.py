"""A file of records through appends, kills, resumes and merges, in any order."""

import operator
import tempfile
from pathlib import Path
from typing import Any

from exploring import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from measured import measured

from harness.common.errors import OK
from harness.records import __main__ as records
from harness.records.file import RunLog, read_records
from harness.records.lines import FILE_NAME, RecordFile
from harness.runs.resume import unfinished

PLAN = "plan"
VARIANTS = st.sampled_from(["naive", "heap", "flat"])
NAME = operator.itemgetter("run_id", "variant", "block", "attempt")
"""What tells the measurements of this test apart."""


class RecordsMachine(RuleBasedStateMachine):
    """The file beside a list: what was appended is read once, whatever came between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, FILE_NAME)
        self.store = RecordFile(self.path.parent)
        self.appended: list[tuple[Any, ...]] = []
        self.runs = list[str]()
        self.log: RunLog | None = None

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule()
    def start(self) -> None:
        run = f"2026-11-21T11:20:{len(self.runs):02d}+00:00"
        self.runs.append(run)
        self.log = RunLog(self.store, run, PLAN)

    @precondition(lambda self: self.log is not None)
    @rule(variant=VARIANTS, block=st.integers(0, 3))
    def measure(self, variant: str, block: int) -> None:
        assert self.log is not None
        key = (self.log.run.run, variant, block, self.log.attempt)
        if key in self.appended:
            return
        record = measured(variant, 1.0, block=block)
        self.log.add(record.cell, record.measurement, record.proof)
        self.appended.append(key)

    @rule(length=st.integers(1, 60))
    def kill(self, length: int) -> None:
        """The process dies while it writes a line."""
        self.log = None
        with self.path.open("ab") as file:
            file.write(b'{"kind": "measurement", "run": "2026-11-21T11:20:00", "cell": 0}'[:length])

    @rule()
    def resume(self) -> None:
        lines = unfinished(self.path, PLAN)
        measured_runs = [run for run in self.runs if any(key[0] == run for key in self.appended)]
        if lines:
            assert lines[0].run in measured_runs
            self.log = RunLog(self.store, lines[0].run, PLAN, lines=lines)

    @precondition(lambda self: self.log is not None)
    @rule()
    def finish(self) -> None:
        assert self.log is not None
        run = self.log.run.run
        self.log.finish()
        self.log = None
        assert run not in [line.run for line in unfinished(self.path, PLAN)]

    @rule()
    def merge(self) -> None:
        other = self.path.with_name("merged.jsonl")
        for _ in range(2):  # the second time it adds nothing
            assert records.merge_files([self.path], other) == OK
            assert self.is_read_from(other)

    @invariant()
    def read(self) -> None:
        assert self.is_read_from(self.path)

    def is_read_from(self, path: Path) -> bool:
        return sorted(map(NAME, read_records([path]))) == sorted(self.appended)


TestRecordsMachine = RecordsMachine.TestCase
TestRecordsMachine.settings = examples(30, stateful_step_count=15)
