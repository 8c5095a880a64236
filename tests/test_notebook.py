"""The notebook is its text, holds no outputs, and runs from a clean kernel within its time."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from checked import passing, quick_ones

from harness.conformance import check_conformance, trainer_checks

REPOSITORY = Path(__file__).parent.parent
TEXT = REPOSITORY / "notebooks/series.md"
NOTEBOOK = REPOSITORY / "notebooks/series.ipynb"
MOST_SECONDS = 300
INSTALL = ".venv/bin/python -m pip install -e '.[notebook]'"


def cells() -> list[dict[str, Any]]:
    content: dict[str, Any] = json.loads(NOTEBOOK.read_text())
    listed: list[dict[str, Any]] = content["cells"]
    return listed


def module(code: str) -> ModuleType:
    made = ModuleType("my_stage")
    exec(code, made.__dict__)
    return made


def test_the_notebook_holds_no_outputs() -> None:
    ran = [cell for cell in cells() if cell["cell_type"] == "code"]
    assert ran
    assert [cell for cell in ran if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.slow
def test_what_the_exercise_begins_with_conforms() -> None:
    sources = ["".join(cell["source"]) for cell in cells()]
    (begun,) = [source for source in sources if source.startswith("%%writefile my_stage.py")]
    check_conformance(module(begun.partition("\n")[2]).train)


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_solution_of_the_exercise_conforms(quick: bool) -> None:
    (solution,) = re.findall(
        r"<summary>One solution</summary>\n\n```\n(.*?)^```", TEXT.read_text(), re.M | re.S
    )
    passing(quick_ones(trainer_checks(), quick), module(solution).train)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None and "CI" not in os.environ:
        pytest.skip(f"the notebook is run with what {INSTALL} installs")


@pytest.mark.slow
def test_the_notebook_and_its_text_are_a_pair() -> None:
    needs("jupytext")
    import jupytext

    kept, text = jupytext.read(NOTEBOOK), jupytext.read(TEXT)
    assert [(cell.cell_type, cell.source) for cell in kept.cells] == [
        (cell.cell_type, cell.source) for cell in text.cells
    ], "python -m jupytext --sync notebooks/series.md mends it"


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning"
)
def test_the_notebook_runs_from_a_clean_kernel(tmp_path: Path) -> None:
    needs("nbclient")
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(NOTEBOOK)
    NotebookClient(
        notebook, timeout=MOST_SECONDS, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 10
    assert list(tmp_path.iterdir()) == []
