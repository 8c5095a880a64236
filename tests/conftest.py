"""What holds for every test: a cache and locks of its own, so that none meets what another, or a person, does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fetched import CONTENT
from local_server import Server, serving

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


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server on this machine that has one file."""
    with serving(CONTENT) as server:
        yield server
