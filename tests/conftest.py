"""What holds for every test: a cache and locks of its own, so that none meets what another, or a person, does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import alone, cache
from harness.corpora import python_files


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that this test's cache lies in."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    locks = tmp_path_factory.mktemp("locks")
    monkeypatch.setenv(alone.VARIABLE, str(locks))
    python_files.standard_library.cache_clear()
    python_files.site_packages.cache_clear()
    return tmp_path / "cache"
