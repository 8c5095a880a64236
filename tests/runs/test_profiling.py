"""profile=cprofile runs each trainer once more under it, and names the files that it left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.records.file import read_records

RUN = ("data.path=text.txt", "vocab_size=300")
pytestmark = pytest.mark.usefixtures("measured_once")


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    (here / "text.txt").write_text(Path(__file__).read_text())


def profiles(output: str) -> dict[str, Path]:
    """The first file of each profile that a command has named, by its variant."""
    named = re.findall(r"^profile of (\S+) on text.txt: ([^,\n]*)", output, re.MULTILINE)
    return {variant: Path(name) for variant, name in named}


@pytest.mark.slow
def test_cprofile_leaves_a_table_of_the_functions_of_each_trainer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text("from variants.heap import train\nother = train\n")
    assert main(["variants=naive,mine:train,mine:other", "profile=cprofile", "repeat=2", *RUN]) == 0
    tables = profiles(capsys.readouterr().out)
    assert len(set(tables.values())) == 3
    assert re.search(r" \d+\.\d+ +naive\.py:\d+\(train\)$", tables["naive"].read_text(), re.M)
    assert str(Path.cwd()) not in tables["naive"].read_text()
    assert tables["naive"].with_suffix(".prof").stat().st_size > 0
    assert "heapq" in tables["mine:train"].read_text()
    assert sum(record.trains for record in read_records(["results/local"])) == 6
