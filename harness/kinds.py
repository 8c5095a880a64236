"""How a trainer's job is run for each kind of measuring: the one place where kinds part ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.instructions import measure_instructions
from harness.measure import Answer, Limits, OnProgress, measure

RunJob = Callable[[dict[str, Any], Path, Limits, OnProgress], Answer]

RUN_TRAINER: dict[str, RunJob] = {"time": measure, "proof": measure, "instructions": measure_instructions}
"""By `measure.kind`. Only the seconds of "time" go into records."""
