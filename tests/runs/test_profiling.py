"""profile=NAME runs each trainer once more under a profiler, and names the file that it left."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.measure import profilers
from harness.measure.profilers import PY_SPY, program
from harness.records.file import read_records

RUN = ("data.path=text.txt", "vocab_size=400", "results=results")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(Path(__file__).read_text())
    return tmp_path


def profile_of(output: str, variant: str) -> list[Path]:
    """The files of a variant's profile that a command has named."""
    (names,) = re.findall(rf"^profile of {variant} on text.txt: (.*)$", output, re.MULTILINE)
    return [Path(name) for name in names.split(", ")]


def test_cprofile_leaves_a_table_of_the_functions_of_each_trainer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text("from variants.heap import train\nother = train\n")
    variants = "variants=naive,mine:train,mine:other"
    assert main([variants, "profile=cprofile", "repeat=2", *RUN]) == 0
    printed = capsys.readouterr().out
    table, raw = profile_of(printed, "naive")
    assert re.search(r"\d+\.\d+ +\d+\.\d+ +naive\.py:\d+\(train\)$", table.read_text(), re.M)
    assert str(folder) not in table.read_text()
    assert raw.stat().st_size > 0
    assert "heapq" in profile_of(printed, "mine:train")[0].read_text()
    assert profile_of(printed, "mine:other")[0] not in profile_of(printed, "mine:train")

    measured = [record for record in read_records([folder / "results"]) if record.trains]
    assert len(measured) == 6


def test_callgrind_leaves_a_table_of_compiled_functions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    assert main(["variant=flat", "profile=callgrind", *RUN]) == 0
    table, _ = profile_of(capsys.readouterr().out, "flat")
    assert "PROGRAM TOTALS" in table.read_text()


def test_py_spy_leaves_a_flame_graph(capsys: pytest.CaptureFixture[str]) -> None:
    if program(PY_SPY) is None:
        pytest.skip("needs py-spy")
    assert main(["variant=naive", "profile=py-spy", *RUN]) == 0
    (graph,) = profile_of(capsys.readouterr().out, "naive")
    assert "train (variants/naive.py" in graph.read_text()


def test_a_trainer_that_failed_has_no_profile_and_a_profiler_may_fail(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text(
        "import sys\n\n"
        "def fails(word_counts, num_merges):\n    raise ValueError('no')\n\n"
        "def dislikes_profiles(word_counts, num_merges):\n"
        "    assert 'cProfile' not in sys.modules\n"
        "    from variants.naive import train\n"
        "    return train(word_counts, num_merges)\n"
    )
    targets = "variants=mine:fails,mine:dislikes_profiles"
    assert main([targets, "profile=cprofile", *RUN]) == 22
    printed = capsys.readouterr().out
    assert "profile of mine:fails" not in printed
    assert "no profile of mine:dislikes_profiles on text.txt: AssertionError" in printed


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        (
            "py-spy",
            22,
            "profile=py-spy needs py-spy; install it with: python -m pip install py-spy",
        ),
        ("callgrind", 22, "profile=callgrind needs valgrind; install it with: apt-get install"),
        ("perf", 2, "unknown profile 'perf'; there are: none, cprofile, py-spy, callgrind"),
    ],
)
def test_a_profiler_that_is_not_there_is_refused_before_anything_runs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    code: int,
    sentence: str,
) -> None:
    monkeypatch.setattr(profilers, "program", lambda _: None)
    assert main(["variant=heap", f"profile={name}", *RUN]) == code
    assert sentence in capsys.readouterr().err
    assert not (folder / "results").exists()
