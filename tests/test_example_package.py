"""A package outside this repository is installed, and seen wherever variants are: by globs, help,
tables, report.
"""

import re
import shutil
from pathlib import Path

import pytest
from workbench import CHECKOUT, ran

from harness.records.file import read_records

PACKAGE = CHECKOUT / "tests/fixtures/example_package"
PIP = (
    "-m pip install --quiet --no-build-isolation --no-deps --no-index"
    " --disable-pip-version-check --target site ./source"
)
MEASURED = "data.path=book.txt vocab_size=270 concurrent=true results=r"


@pytest.mark.slow
def test_a_package_is_measured_proved_and_shown_as_a_variant_of_ours(tmp_path: Path) -> None:
    """It is put into a fresh folder by pip without a network, and every command runs in a folder of
    its own.
    """
    path = {"PYTHONPATH": f"{CHECKOUT}:{tmp_path / 'site'}", "PIP_ROOT_USER_ACTION": "ignore"}

    def python(command: str) -> str:
        ended = ran(tmp_path, *command.split(), variables=path)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "source", ignore=ignored)
    python(PIP)
    (tmp_path / "book.txt").write_text("the cat sat on the mat. the cat sat on the hat.\n" * 3)
    shown = python(f"-m harness variants=[heap,example] {MEASURED}")

    records = read_records([tmp_path / "r"])
    trained = {record["variant"]: record for record in records if record["cell"] == "train"}
    assert trained["example"]["identity"]["kind"] == "identical"
    assert trained["example"]["merges_sha256"] == trained["heap"]["merges_sha256"]
    assert trained["example"]["seconds"]["max"] is not None
    for table in (shown, python("-m harness.table r")):
        assert re.findall(r"^(heap|example) ", table, re.MULTILINE)[:2] == ["heap", "example"]

    assert " example" in python("-m harness --help all")
    for choice in ("variants=external", "-m variant=glob(exa*)"):
        assert "example" in python(f"-m harness {choice} plan=true {MEASURED}")
    assert "example conforms: " in python("-m harness.conformance example")
    python(f"-m harness variant=example variant.params.keep_finished=true {MEASURED}")
    record = read_records([tmp_path / "r"])[-1]
    assert (record["status"], record["params"]) == ("ok", {"keep_finished": True})
