"""What holds for every test: a cache and locks of its own, so that none meets what another, or a person, does."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from exploring import register_profiles
from fetched import CONTENT
from local_server import Server, serving

from harness.common import files
from harness.corpora import python_files
from harness.measure import lock

register_profiles()


def pytest_configure(config: pytest.Config) -> None:
    """Who keeps no bytecode beside the sources keeps it in pytest's cache; hundreds of processes would compile anew."""
    if sys.dont_write_bytecode and config.cache is not None:
        kept = config.cache.mkdir("bytecode")
        shutil.rmtree(kept.joinpath(*Path(tempfile.gettempdir()).parts[1:]), ignore_errors=True)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(kept)
        sys.dont_write_bytecode = False


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder at every call of next: pytest's own look through all there are, thousands of times over."""
    above = tmp_path_factory.mktemp("caches")
    return (above / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def cache_folder(folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that this test's cache lies in."""
    own = next(folders)
    own.mkdir()
    monkeypatch.setenv(files.CACHE_VARIABLE, str(own / "cache"))
    monkeypatch.setenv(lock.VARIABLE, str(own))
    python_files.standard_library.cache_clear()
    python_files.site_packages.cache_clear()
    return own / "cache"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Hydra's --info lets everything be logged from then on, and then tells all it knows at every start."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in handlers:
            root.removeHandler(handler)


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server on this machine that has one file."""
    with serving(CONTENT) as server:
        yield server
