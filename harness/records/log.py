"""The lines of one run, from its first measurement to its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import structs

from harness.records.file import Joined
from harness.records.lines import RecordFile, checked, complaint_of
from harness.records.schema import SCHEMA, Cell, End, Line, Measurement, Proof, Run, WholeBlock


class RunLog(Joined):
    """The lines of one run, appended as soon as they are made; without a file they are only
    remembered.
    """

    def __init__(
        self,
        store: RecordFile | None,
        run_id: str,
        plan: str = "",
        overrides: Sequence[str] = (),
        lines: Iterable[Line] = (),
    ) -> None:
        """Start a run, or resume the one that has these lines."""
        super().__init__()
        for line in lines:
            self.join(line)
        self.store = store
        attempts = [record.measurement.attempt for record in self.measured]
        self.attempt = 1 + max(attempts, default=0)
        self.run = Run(run=run_id, schema=SCHEMA, plan=plan, overrides=list(overrides))

    def add(
        self,
        cell: Cell,
        measurement: Measurement,
        proof: Proof | None = None,
        closes: tuple[int, bool] | None = None,
    ) -> None:
        """Name run and cell in these lines and put them on disk; `closes` names the block that they
        complete.

        A measurement that does not fit the schema becomes one of an error, without figures.
        """
        try:
            lines = self._joined(cell, measurement, proof)  # shown even if the disk is full
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            failed = Measurement(
                run=measurement.run,
                cell=measurement.cell,
                block=measurement.block,
                warm_up=measurement.warm_up,
                started=measurement.started,
                status="error",
                reason=f"its figures are invalid: {complaint_of(error)}",
            )
            lines = self._joined(structs.replace(cell, feeding=None), failed, None)

        if closes is not None:
            number, warm_up = closes
            shared: Any = {"run": self.run.run, "task": cell.task, "attempt": self.attempt}
            block = WholeBlock(block=number, warm_up=warm_up, **shared)
            self.join(block)
            lines.append(block)
        if self.store is not None:
            self.store.append_lines(lines)

    def _joined_fresh(self, *lines: Line) -> list[Line]:
        """Join the run and these lines, all or none; returns those that are not there yet."""
        fresh = [line for line in map(checked, (self.run, *lines)) if line not in self]
        for line in fresh:
            self.join(line)
        return fresh

    def _joined(self, cell: Cell, measurement: Measurement, proof: Proof | None) -> list[Line]:
        """The same, with run and cell named in them."""
        cell = self._numbered(checked(structs.replace(cell, run=self.run.run)))
        names = {"run": self.run.run, "cell": cell.cell}
        lines: list[Line] = [cell, structs.replace(measurement, **names, attempt=self.attempt)]
        if proof is not None:
            lines.insert(1, structs.replace(proof, **names))
        return self._joined_fresh(*lines)

    def _numbered(self, cell: Cell) -> Cell:
        """The cell with the number of the same cell, or with the next one."""
        cells = [line for line in self.shared.values() if isinstance(line, Cell)]
        for known in cells:
            if structs.replace(cell, cell=known.cell) == known:
                return known
        return structs.replace(cell, cell=len(cells))

    def append(self, *lines: Line) -> None:
        """Put the run and these lines on disk, unless they are there."""
        fresh = self._joined_fresh(*lines)
        if self.store is not None:
            self.store.append_lines(fresh)

    def finish(self) -> None:
        """Write that the run is complete."""
        self.append(End(run=self.run.run))
