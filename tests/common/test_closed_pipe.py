"""Commands whose output nobody reads: they decide and write as always, and their code says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from gating import DIGEST, STARTED, gate_cell, timed
from measured import measured, stored
from workbench import CHECKOUT

from harness.gate.card import read_gate_card
from harness.gate.evidence import new_log
from harness.records.file import read_records
from harness.records.schema import Proof, StoredIdentity


def code_of(folder: Path, *arguments: str) -> int:
    """The exit code of a command whose reader has gone before it prints anything."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    finally:
        os.close(writer)
    assert "Traceback" not in process.stderr
    assert "BrokenPipe" not in process.stderr
    return process.returncode


def evidence_of_wrong_merges(folder: Path) -> Path:
    card = msgspec.to_builtins(read_gate_card("usual", ["tiers=[identity]"]))
    log = new_log(folder / "gate", STARTED, {"card": card, "head": "here"})
    wrong = StoredIdentity(kind="wrong", reason="merge 1: less frequent", merge=1)
    measurement = timed(0, 1.0, status="mismatch", reason=wrong.reason).measurement
    proof = Proof(run=STARTED, cell=0, merges_sha256=DIGEST, identity=wrong)
    log.add(gate_cell("identity"), measurement, proof)
    return folder / "gate"


def test_failing_gate_fails_and_writes_its_verdict(tmp_path: Path) -> None:
    evidence = evidence_of_wrong_merges(tmp_path)
    code = code_of(tmp_path, "harness.gate", "--replay", str(evidence), "--output", "again")
    assert code == 21
    assert json.loads((tmp_path / "again/verdict.json").read_text())["exit_code"] == 21


def test_broken_records_are_never_a_success(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("not a record\n" * 2000)
    assert code_of(tmp_path, "harness.records", "check", str(tmp_path)) == 22


@pytest.mark.parametrize("options", [(), ("--format", "csv")])
def test_wrong_merges_are_never_a_success(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = stored(
        tmp_path / "records.jsonl", [measured("heap", 1.0, status="mismatch", reason="wrong")]
    )
    assert code_of(tmp_path, "harness.table", str(path), *options) == 21


def test_usage_without_a_reader_is_no_failure(tmp_path: Path) -> None:
    assert code_of(tmp_path, "harness", "--help") == 0


def test_output_that_cannot_be_written_is_no_success() -> None:
    with Path(os.devnull).open("rb") as only_readable:
        process = subprocess.run(
            [sys.executable, "-m", "harness", "--help"],
            cwd=CHECKOUT,
            stdout=only_readable,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert process.returncode == 22
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["1", "2", "0 1 2"])
def test_a_run_without_a_standard_stream_is_a_run(tmp_path: Path, closed: str) -> None:
    """As after `2>&-` in a shell."""
    (tmp_path / "text.txt").write_text("low lower lowest")
    command = [sys.executable, "-m", "harness", "data.path=text.txt", "vocab_size=260"]

    def close() -> None:
        for descriptor in map(int, closed.split()):
            os.close(descriptor)

    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        preexec_fn=close,
        check=False,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ("identical" in ended.stdout) == (closed == "2")
    (counter, trainer) = read_records([tmp_path / "results" / "local"])
    assert (counter["status"], trainer["identity"]["kind"]) == ("ok", "identical")


def test_no_columns_are_as_many_as_usual(tmp_path: Path) -> None:
    records = stored(tmp_path / "records.jsonl", [measured("heap", 1.0)])
    command = [sys.executable, "-m", "harness.table", str(records)]
    tables = [
        subprocess.run(
            command,
            env={**os.environ, "COLUMNS": columns, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for columns in ("0", "80")
    ]
    assert tables[0] == tables[1]
    assert "heap" in tables[0]
