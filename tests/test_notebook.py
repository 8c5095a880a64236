"""The notebook is its text, holds no outputs, and runs from a clean kernel within its time."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from checked import passing, quick_ones

from harness.conformance import trainer_checks

REPOSITORY = Path(__file__).parent.parent
TEXT = REPOSITORY / "notebooks/series.md"
NOTEBOOK = REPOSITORY / "notebooks/series.ipynb"
MOST_SECONDS = 300
INSTALL = ".venv/bin/python -m pip install -e '.[notebook]'"
EXERCISE = re.compile(r"%%writefile my_stage.py\n(.*?)^```", re.MULTILINE | re.DOTALL)
SOLUTION = re.compile(r"<summary>One solution</summary>\n\n```\n(.*?)^```", re.M | re.S)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None and "CI" not in os.environ:
        pytest.skip(f"the notebook is run with what {INSTALL} installs")


def test_the_notebook_holds_no_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    ran = [cell for cell in cells if cell["cell_type"] == "code"]
    assert ran
    assert [cell for cell in ran if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.parametrize("code", [EXERCISE, SOLUTION], ids=["exercise", "solution"])
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_the_exercise_begins_with_and_its_solution_conform(
    quick: bool, code: re.Pattern[str]
) -> None:
    (source,) = code.findall(TEXT.read_text())
    stage = ModuleType("my_stage")
    exec(source, stage.__dict__)
    passing(quick_ones(trainer_checks(), quick), stage.train)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning"
)
def test_the_notebook_is_its_text_and_runs_from_a_clean_kernel(tmp_path: Path) -> None:
    needs("jupytext")
    needs("nbclient")
    import jupytext
    from nbclient import NotebookClient

    notebook, stored = jupytext.read(TEXT), jupytext.read(NOTEBOOK)
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == [
        (cell.cell_type, cell.source) for cell in notebook.cells
    ], "python -m jupytext --sync notebooks/series.md fixes it"

    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=MOST_SECONDS, resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 10
    assert list(tmp_path.iterdir()) == []
