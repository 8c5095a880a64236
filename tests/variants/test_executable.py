"""A program in any language as a trainer: the page's own examples, and every way in which a program
can fail.
"""

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest
from rows import Row, answer_of, each_row
from workbench import (
    CHECKOUT,
    cell_of,
    limits_wait,
    processes_that_mention,
    reading_of,
    recorded_run,
    wait_until,
)

from harness.common.registry import VariantCard
from harness.conformance import check_conformance, trainer_checks
from harness.measure.process import WorkerLimits
from harness.proof.cases import merges_from
from harness.proof.checks import outcome_of
from harness.runs.resume import ImportedFiles
from variants.contract import Meter, TieBreak, WordCounts
from variants.executable import train

EXAMPLES = CHECKOUT / "tests/fixtures/example_programs"
WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2)])
GREATEST = [TieBreak.GREATEST_BYTES]
# Numbers in awk have 53 bits.
BEYOND_AWK = {"check_worked_example[past_2_to_53]", "check_worked_example[near_2_to_63]"}


def write_program(path: Path, source: str) -> None:
    path.write_text(source)
    path.chmod(0o755)


@each_row(__file__, "executable.toml")
def test_program_teaches_its_merges_or_the_error_says_why(
    row: Row, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    Path("seen").touch()
    write_program(Path("train"), "#!/bin/sh\n" + row.get("program", ""))
    options = {"tie_break": "greatest_bytes", **row.get("options", {})}
    options["tie_break"] = TieBreak(options["tie_break"])
    command, meter = row.get("command", "./train"), Meter()
    answer = answer_of(train, WORDS, 3, meter, command=command, **options)

    if "refused" in row:
        assert row["refused"] in answer
    else:
        assert answer == list(merges_from(row["learned"]))
        assert meter.seconds.keys() == {"convert"}
    assert Path("seen").read_text() == row.get("seen", "")
    assert not list(here.glob("executable-*"))


@pytest.mark.slow
def test_example_programs_conform_up_to_the_numbers_of_awk(tmp_path: Path) -> None:
    options = ["-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror"]
    compiled = tmp_path / "compiled"
    subprocess.run(["g++", *options, "-o", compiled, EXAMPLES / "train.cpp"], check=True)
    check_conformance(functools.partial(train, command=str(compiled)), tie_breaks=GREATEST)

    shell = functools.partial(train, command=f"sh {EXAMPLES / 'train.sh'}")
    outcomes = [outcome_of(check, shell) for check in trainer_checks(GREATEST)]
    assert {outcome.check for outcome in outcomes if outcome.status == "failed"} <= BEYOND_AWK


@pytest.mark.slow
def test_program_over_the_limit_is_stopped_with_its_merges_and_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train"
    write_program(program, "#!/bin/sh\nsleep 3600 &\nprintf '61 74\\n74' > $2\nsleep 3600\n")
    limits_wait(monkeypatch, lambda merges: merges >= 1)
    card = VariantCard("executable", "variants.executable:train", params={"command": str(program)})
    cell = cell_of(reading_of(tmp_path), card, limits=WorkerLimits(wall_seconds=0.1))

    trained = recorded_run(tmp_path, [cell]).records()[-1]

    assert trained["status"] == "timeout"
    assert trained["merges_done"] == 1
    wait_until(lambda: not processes_that_mention(str(tmp_path)), "the program's child to be gone")
    assert not list(tmp_path.rglob("executable-*"))


def test_changed_program_is_another_one(tmp_path: Path) -> None:
    program = tmp_path / "train"
    digests = {ImportedFiles(None).add({}, {"command": "awk x"})}
    for content in ("a", "b"):
        program.write_text(content)
        digests.add(ImportedFiles(None).add({}, {"command": f"{program} x"}))
    assert len(digests) == 3
