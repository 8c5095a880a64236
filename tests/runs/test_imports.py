"""Code that is edited while a run measures it: the run ends with a sentence, interrupted or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import HEAP, cell_of, reading_of, recorded_run

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import VariantCard
from harness.records.file import read_records
from harness.runs import blocks
from harness.runs.cells import TrainCell

MINE = VariantCard("mine", "mine:train")


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that the trainer imports when it is called, beside the trainer's own."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "mine.py").write_text(
        "def train(words, num_merges):\n"
        "    import aside\n"
        "    return aside.train(words, num_merges)\n"
    )
    path = tmp_path / "aside.py"
    path.write_text("from variants.heap import train\n")
    return path


def edited(path: Path) -> None:
    path.write_text(path.read_text() + "# a change\n")


def measured(folder: Path) -> list[tuple[Any, ...]]:
    records = read_records([folder / "results"])
    return [(one["variant"], one["block"]) for one in records if one["cell"] == "train"]


def cells(folder: Path) -> list[TrainCell]:
    reading = reading_of(folder)
    return [cell_of(reading, MINE), cell_of(reading, HEAP)]


@pytest.mark.parametrize("name", ["aside.py", "mine.py"])
def test_file_that_changes_between_two_blocks_ends_the_run(
    tmp_path: Path, helper: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = blocks.measure_block

    def edit_after(*arguments: Any) -> None:
        whole(*arguments)
        edited(helper.with_name(name))

    monkeypatch.setattr(blocks, "measure_block", edit_after)
    with pytest.raises(Refusal, match=f"{name} was changed after this run had imported it") as end:
        recorded_run(tmp_path, cells(tmp_path), repeat=3)
    assert end.value.exit_code == UNMEASURED
    assert sorted(measured(tmp_path)) == [("heap", 0), ("mine", 0)]


def test_file_that_changes_before_the_run_is_resumed_ends_it(
    tmp_path: Path, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = blocks.measure_block

    def interrupt_after(*arguments: Any) -> None:
        whole(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(blocks, "measure_block", interrupt_after)
        with pytest.raises(KeyboardInterrupt):
            recorded_run(tmp_path, cells(tmp_path), repeat=2)
    edited(helper)
    with pytest.raises(Refusal, match="run the same again with rerun=true"):
        recorded_run(tmp_path, cells(tmp_path), repeat=2)
    assert len(measured(tmp_path)) == 2
    recorded_run(tmp_path, cells(tmp_path), repeat=2, rerun=True)
    assert len(measured(tmp_path)) == 6


def test_new_link_to_a_file_lets_a_run_go_on(
    tmp_path: Path, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = blocks.measure_block

    def link_after(*arguments: Any) -> None:
        whole(*arguments)
        (tmp_path / f"link{len(list(tmp_path.iterdir()))}").hardlink_to(helper)

    monkeypatch.setattr(blocks, "measure_block", link_after)
    recorded_run(tmp_path, cells(tmp_path), repeat=2)
    assert len(measured(tmp_path)) == 4
