"""What holds for every test: a cache of its own, so that none reads what another, or a person, has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import cache
from harness.corpora import python_files


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that this test's cache lies in."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    python_files.standard_library.cache_clear()
    return tmp_path / "cache"
