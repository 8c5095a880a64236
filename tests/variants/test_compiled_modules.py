"""What holds for all compiled modules: they are loaded before any clock, and the same wherever they are built."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from variants.contract import Corpus, WordCounts

REPOSITORY = Path(__file__).resolve().parents[2]
VARIANTS = sorted(
    source.stem
    for source in (REPOSITORY / "variants").glob("*.py")
    if re.search("^from variants.native import", source.read_text(), re.MULTILINE)
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_loaded_before_the_clock(variant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = importlib.import_module(f"variants.{variant}")
    text = tmp_path / "text.txt"
    text.write_text("low lower lowest")
    words: Any = Corpus(str(text)) if variant == "flat_file" else WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    load = Mock(wraps=importlib.import_module)
    monkeypatch.setattr(importlib, "import_module", load)
    module.before_the_clock()
    loaded = {each.args[0] for each in load.call_args_list}
    load.reset_mock()
    assert module.train(words, 2) == [(b"o", b"w"), (b"l", b"ow")]
    load.assert_called()
    assert {each.args[0] for each in load.call_args_list} <= loaded


@pytest.mark.slow
def test_it_is_the_same_in_any_folder(tmp_path: Path) -> None:
    """So that the gate knows a variant that a change left alone, and leaves it out."""
    built = []
    for name in ("one", "another_folder"):
        folder = tmp_path / name
        shutil.copytree(
            REPOSITORY, folder, ignore=lambda _, names: {n for n in names if n[0] == "." or n in ("build", "results")}
        )
        for old in folder.rglob("*.so"):
            old.unlink()
        # The smallest of each language; its own scratch folder, so that nothing is taken over.
        building = "import runpy, setuptools; real = setuptools.setup; "
        building += "setuptools.setup = lambda ext_modules, **more: real(ext_modules=[each for each in ext_modules "
        building += "if each.name.endswith(('._loop', '._word_runs'))], **more); runpy.run_path('setup.py')"
        arguments = ["-q", "build_ext", "--inplace"]
        subprocess.run([sys.executable, "-c", building, *arguments], cwd=folder, check=True, capture_output=True)
        built.append({module.name: module.read_bytes() for module in folder.rglob("*.so")})
    assert len(built[0]) == 2
    assert built[0] == built[1]
