"""Mutants of the code in which truth is decided: does a fast test notice each of them?

    python tests/support/mutants.py                     every part of mutants.toml
    python tests/support/mutants.py comparison gate     these only

cosmic-ray (pip install cosmic-ray) changes a copy of the checkout, one operator, number or
condition at a time, and runs the tests of the part. Prints what survives, and exits with 1 if in a
part more do than mutants.toml gives a reason for.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import tomllib
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome
from planted_faults import PYTEST, copied

LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
CONFIGURATION = """
[cosmic-ray]
module-path = {modules}
timeout = 300.0
excluded-modules = ["harness/proof/cases.py"]  # what checks are called with is no condition
test-command = "{python} {pytest} {tests}"
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = {left_out}
"""


def mutated(part: dict[str, Any], checkout: Path) -> Counter[TestOutcome]:
    """How many mutants of a part ended how in a copy of the checkout; prints those that survived."""
    text = CONFIGURATION.format(
        **part, python=sys.executable, pytest=PYTEST, left_out=LISTED["left_out"]
    )
    configuration, session = checkout / "mutants.toml", checkout / "mutants.sqlite"
    configuration.write_text(text)
    # a mutant may have the size and the time of the one before
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    for program in (
        ("cosmic-ray", "init", configuration, session, "--force"),
        ("cr-filter-operators", session, configuration),
        ("cosmic-ray", "baseline", configuration),
        ("cosmic-ray", "exec", configuration, session),
        ("cr-report", "--surviving-only", "--show-diff", session),
    ):
        command = [Path(sys.executable).with_name(program[0]), *program[1:]]
        subprocess.run(command, cwd=checkout, env=environment, check=True)

    with use_db(session) as database:
        results = [result for _, result in database.completed_work_items]
    return Counter(
        result.test_outcome for result in results if result.worker_outcome != WorkerOutcome.SKIPPED
    )


def main(names: list[str]) -> int:
    unexplained = 0
    for name in names or LISTED["parts"]:
        part = LISTED["parts"][name]
        with tempfile.TemporaryDirectory() as folder:
            ended = mutated(part, copied(Path(folder)))
        print(f"{name}: {dict(ended)}", flush=True)  # noqa: T201
        unexplained += max(ended[TestOutcome.SURVIVED] - part["explained"], 0)
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
