"""Commands whose output nobody reads, or that have no standard streams: they decide and write as
always, and their code says so.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from gating import DIGEST, STARTED, gate_cell, timed
from measured import measured, stored
from workbench import ran

from harness.gate.card import read_gate_card
from harness.gate.evidence import new_log
from harness.records.file import read_records
from harness.records.schema import Proof, StoredIdentity


def evidence_of_wrong_merges(folder: Path) -> None:
    card = msgspec.to_builtins(read_gate_card("usual", ["tiers=[identity]"]))
    log = new_log(folder, STARTED, {"card": card, "head": "here"})
    wrong = StoredIdentity(kind="wrong", reason="merge 1: less frequent", merge=1)
    measurement = timed(0, 1.0, status="mismatch", reason=wrong.reason).measurement
    proof = Proof(run=STARTED, cell=0, merges_sha256=DIGEST, identity=wrong)
    log.add(gate_cell("identity"), measurement, proof)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("harness.gate --replay gate --output again", 21),
        ("harness.records check broken.jsonl", 22),
        ("harness.table wrong.jsonl", 21),
        ("harness.table wrong.jsonl --format csv", 21),
        ("harness --help", 0),
        ("harness data.path=broken.jsonl plan=true", 0),
        ("harness variant._target_=unruly:returns_one_too_few data.path=broken.jsonl", 21),
    ],
)
def test_a_reader_that_has_gone_changes_no_verdict(tmp_path: Path, command: str, code: int) -> None:
    evidence_of_wrong_merges(tmp_path / "gate")
    (tmp_path / "broken.jsonl").write_text('{"text": "not a record"}\n' * 2000)
    stored(tmp_path / "wrong.jsonl", [measured("heap", 1.0, status="mismatch", reason="wrong")])

    reader, writer = os.pipe()
    os.close(reader)
    done = ran(tmp_path, "-m", *command.split(), stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, "")
    if "--output" in command:
        assert json.loads((tmp_path / "again/verdict.json").read_text())["exit_code"] == code
    if "variant" in command:
        assert len(read_records([tmp_path / "results" / "local"])) == 2


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [(os.devnull, "rb", "Bad file descriptor"), ("/dev/full", "wb", "No space")],
)
def test_output_that_cannot_be_written_is_no_success(
    tmp_path: Path, name: str, mode: str, why: str
) -> None:
    with Path(name).open(mode) as stream:
        done = ran(tmp_path, "-m", "harness", "--help", stdout=stream)
    assert (done.returncode, done.stderr.count("\n"), why in done.stderr) == (22, 1, True)


@pytest.mark.parametrize("closed", ["1", "2", "0 1 2"])
def test_a_run_without_a_standard_stream_is_a_run(tmp_path: Path, closed: str) -> None:
    """As after `2>&-` in a shell."""
    (tmp_path / "text.txt").write_text("low lower lowest")

    def close() -> None:
        for descriptor in map(int, closed.split()):
            os.close(descriptor)

    command = ("-m", "harness", "data.path=text.txt", "vocab_size=260")
    done = ran(tmp_path, *command, preexec_fn=close)
    assert (done.returncode, done.stderr, "identical" in done.stdout) == (0, "", closed == "2")
    counter, trainer = read_records([tmp_path / "results" / "local"])
    assert (counter["status"], trainer["identity"]["kind"]) == ("ok", "identical")


def test_no_columns_are_as_many_as_usual(tmp_path: Path) -> None:
    stored(tmp_path / "records.jsonl", [measured("heap", 1.0)])
    command = ("-m", "harness.table", "records.jsonl")
    none, usual = (
        ran(tmp_path, *command, variables={"COLUMNS": number}).stdout for number in ("0", "80")
    )
    assert none == usual
    assert "heap" in none
