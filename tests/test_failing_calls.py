"""System calls that fail: the command says so in a sentence, and nothing half-written is read."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from failing_calls import COMMANDS, KINDS
from workbench import CHECKOUT, SUPPORT, ran

FAST = [("encode over", "rename"), ("train beside", "rename")]
MOST = os.environ.get("FAILING_CALLS", "1")
"""How many calls of a kind fail besides the first, one in each case: the last alone, or all of them in the
weekly workflow.
"""
OF_GATE = KINDS if MOST != "1" else ("write", "rename")
"""The kinds that fail in a gate, whose cases take longest."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "failing_calls.so"
    source = SUPPORT / "failing_calls.c"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(path), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        pytest.param(command, kind, marks=() if (command, kind) in FAST else pytest.mark.slow)
        for command in COMMANDS
        for kind in (OF_GATE if command == "gate" else KINDS)
    ],
)
def test_a_call_that_fails_costs_a_sentence_and_no_file(
    library: Path, command: str, kind: str
) -> None:
    line = (str(SUPPORT / "failing_calls.py"), command, kind, MOST)
    done = ran(CHECKOUT, *line, variables={"LD_PRELOAD": str(library)}, check=True)
    assert json.loads(done.stdout) == []
