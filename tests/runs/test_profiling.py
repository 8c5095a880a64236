"""profile=NAME runs each trainer once more under a profiler, and names the file that it left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workbench import first_fast

from harness.__main__ import main
from harness.measure import profilers
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


@pytest.mark.parametrize(
    ("name", "variant", "text"),
    first_fast(
        [("py-spy", "naive", "train (variants/naive.py"), ("callgrind", "flat", "PROGRAM TOTALS")]
    ),
)
def test_a_profiler_leaves_its_file_and_a_missing_one_is_refused(
    name: str,
    variant: str,
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [f"variant={variant}", f"profile={name}", *RUN]
    with monkeypatch.context() as patch:
        patch.setattr(profilers, "program", lambda _: None)
        assert main(command) == 22
    needs, _, advice = capsys.readouterr().err.partition("; install it with: ")
    assert needs.startswith(f"profile={name} needs ")
    assert advice.split()[0] in ("python", "apt-get")
    assert not Path("results").exists()

    if profilers.program(name if name == "py-spy" else "valgrind") is None:
        pytest.skip(needs)
    assert main(command) == 0
    assert text in profiles(capsys.readouterr().out)[variant].read_text()
