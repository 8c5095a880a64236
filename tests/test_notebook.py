"""The notebook is its text, shows what it printed, and runs from a clean kernel within its time."""

import json
import os
import re
from pathlib import Path

import pytest
from workbench import CHECKOUT

TEXT = CHECKOUT / "notebooks/series.md"
NOTEBOOK = CHECKOUT / "notebooks/series.ipynb"
MOST_SECONDS = 300
CODE = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def test_the_stored_notebook_has_the_code_of_its_text_and_its_outputs() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if "outputs" in cell]
    assert ["".join(cell["source"]) for cell in cells] == CODE.findall(TEXT.read_text())
    assert None not in [cell["execution_count"] for cell in cells]

    outputs = [output for cell in cells for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in outputs}
    pictures = [output["data"].pop("image/png", None) for output in outputs if "data" in output]
    assert len(pictures) - pictures.count(None) >= 10


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning"
)
def test_the_notebook_is_its_text_and_runs_from_a_clean_kernel(tmp_path: Path) -> None:
    if "CI" not in os.environ:
        needed = "it is run with what .venv/bin/python -m pip install -e '.[notebook]' installs"
        pytest.importorskip("jupytext", reason=needed)
        pytest.importorskip("nbclient", reason=needed)
    import jupytext
    from nbclient import NotebookClient

    notebook, stored = jupytext.read(TEXT), jupytext.read(NOTEBOOK)
    shown, kept = ([(c.cell_type, c.source) for c in each.cells] for each in (notebook, stored))
    assert kept == shown, "python -m jupytext --sync notebooks/series.md fixes it"

    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=MOST_SECONDS, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 10
    assert list(tmp_path.iterdir()) == []
