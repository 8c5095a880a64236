"""Commands whose output nobody reads, or that have no standard streams: they decide and write as
always, and their code says so.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
from workbench import CHECKOUT, first_fast, ran

from harness.records.file import read_records

FIXTURES = CHECKOUT / "tests/fixtures"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that rows of commands start from."""
    shutil.copytree(FIXTURES / "records", tmp_path / "here" / "records")
    rows = FIXTURES / "command_rows" / "folder"
    return Path(shutil.copytree(rows, tmp_path / "here", dirs_exist_ok=True))


@pytest.mark.parametrize(
    ("command", "code"),
    first_fast(
        [
            ("harness.gate --replay gate_wrong --output again", 21),
            ("harness.records check broken.jsonl", 22),
            ("harness.table records/forms.jsonl", 21),
            ("harness variants=trainers:one_too_few data.path=text.txt vocab_size=270", 21),
            ("harness.table records/forms.jsonl --format csv", 21),
            ("harness --help", 0),
            ("harness data.path=text.txt plan=true", 0),
        ],
        3,
    ),
)
def test_a_reader_that_has_gone_changes_no_verdict(folder: Path, command: str, code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = ran(folder, "-m", *command.split(), stdout=writer)
    os.close(writer)

    assert (done.returncode, done.stderr) == (code, "")
    if "--output" in command:
        assert json.loads((folder / "again/verdict.json").read_text())["exit_code"] == code
    if "variants" in command:
        assert len(read_records([folder / "results" / "local"])) == 2


@pytest.mark.parametrize("closed", first_fast(["2", "1", "0 1 2"]))
def test_a_run_without_a_standard_stream_is_a_run(folder: Path, closed: str) -> None:
    """As after `2>&-` in a shell."""

    def close() -> None:
        for descriptor in map(int, closed.split()):
            os.close(descriptor)

    done = ran(folder, "-m", "harness", "data.path=text.txt", "vocab_size=260", preexec_fn=close)
    assert (done.returncode, done.stderr, "identical" in done.stdout) == (0, "", closed == "2")
    counter, trainer = read_records([folder / "results" / "local"])
    assert (counter["status"], trainer["identity"]["kind"]) == ("ok", "identical")
