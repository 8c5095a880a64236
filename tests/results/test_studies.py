"""The studies in results/ still print the tables of their pages, from their records and with today's code."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.common.comparison import differ, interval

RESULTS = Path(__file__).parents[2] / "results"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, RESULTS / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) for path in ("aa_study/study.py", "gate_self_test/self_test.py")],
)
def test_a_study_prints_the_tables_of_its_page(path: str) -> None:
    """The gate's: no false alarm in 800 comparisons, and +5 % found in 100 of 100."""
    printed = subprocess.run([sys.executable, str(RESULTS / path)], capture_output=True, text=True, check=True).stdout
    page = (RESULTS / path).with_name("README.md").read_text()
    tables = printed.rstrip().split("\n\n")
    assert len(tables) > 1
    assert [table for table in tables if table not in page] == []


@pytest.mark.slow
def test_the_tables_in_the_explanation_are_those_of_the_study() -> None:
    page, study = (RESULTS.parent / "docs/explanation/measuring.md").read_text(), script("aa_study/study.py")
    studies = {name: study.read_pairs(RESULTS / f"aa_study/{name}.jsonl") for name in ("quiet", "busy")}
    for clock in ("CPU", "wall"):
        assert "\n".join(study.rules_table(studies, clock)) in page


@pytest.mark.parametrize(("kind", "state"), [("same", "pass"), ("+5%", "regression")])
def test_the_gate_judges_stored_blocks_as_it_did(kind: str, state: str) -> None:
    self_test = script("gate_self_test/self_test.py")
    head = json.loads((RESULTS / "gate_self_test/self_test.json").read_text())
    lines = gzip.decompress((RESULTS / "gate_self_test/quiet.jsonl.gz").read_bytes()).splitlines()[1 : 1 + 360]
    states = [each for each, _ in self_test.runs(head, [json.loads(line) for line in lines], kind, [])]
    assert states
    assert set(states) == {state}


@pytest.mark.parametrize("blocks", [3, 6, 10, 30])
def test_the_study_has_the_rule_of_the_harness(blocks: int) -> None:
    study, draw = script("aa_study/study.py"), random.Random(blocks)
    for _ in range(200):
        first, second = ([draw.lognormvariate(0, 0.02) for _ in range(blocks)] for _ in range(2))
        low, high = interval([math.log(later / earlier) for earlier, later in zip(first, second, strict=True)])
        known = low is not None and high is not None and differ(math.exp(low), math.exp(high))
        assert study.paired_apart(first, second) == known
