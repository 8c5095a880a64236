"""What holds for every test: a cache and locks of its own, so that none meets what another, or a
person, does.
"""

import functools
import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from exploring import register_profiles
from fetched import CONTENT
from local_server import Server, serving
from measured_once import MeasuredOnce
from workbench import Call, Outcome

from harness import corpora
from harness.__main__ import main
from harness.common import cache, registry
from harness.measure import machine, quiet
from harness.runs import blocks
from variants.counting import character_classes

register_profiles()


class OnlyWhereDoctestsAre:
    """Each process of pytest would import everything and search it for doctests, most of it for
    none.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[Any], list[Any]]:
        collectors = yield
        if file_path.suffix != ".py" or b">>> " in file_path.read_bytes():
            return collectors
        return [each for each in collectors if type(each).__name__ != "DoctestModule"]


def pytest_configure(config: pytest.Config) -> None:
    """Who keeps no bytecode beside the sources keeps it in pytest's cache; hundreds of processes
    would compile anew.
    """
    config.pluginmanager.register(OnlyWhereDoctestsAre())
    cache = getattr(config, "cache", None)
    if sys.dont_write_bytecode and cache is not None:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(cache.mkdir("bytecode"))
        sys.dont_write_bytecode = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pytest 9.2 does not look at the names that xdist 3.8 gives to tests of a group, so that no
    group would hold.
    """
    for item in items:
        of_its_group = vars(item).get("_nodeid")
        if of_its_group is not None and of_its_group != item.nodeid:
            from _pytest.nodeid import coerce_node_id

            item._id = coerce_node_id(of_its_group)


def pytest_collection_finish() -> None:
    """What was collected stays: to look through all of it for garbage, time and again, takes
    long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session", autouse=True)
def packages_looked_up_once() -> Iterator[None]:
    """No test installs any, and each run of hundreds would read what two dozen packages say of
    themselves.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "packages", functools.cache(machine.packages))
        yield


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unicode's classes as the cache keeps them: whoever counts natively in a test would make them
    anew, twice.
    """
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, str(folder))
        character_classes.character_classes.__wrapped__()
    (kept,) = folder.iterdir()
    return kept


@pytest.fixture(autouse=True)
def cache_folder(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that this test's cache lies in; all that there is in it are the tables. pytest's
    own tmp_path looks through all there are, thousands of times over.

    A command in one test leaves no folder of cards to the tests after it.
    """
    own = Path(tempfile.mkdtemp(dir=tables.parent))
    (own / "cache").mkdir()
    (own / "cache" / tables.name).hardlink_to(tables)
    monkeypatch.setenv(cache.VARIABLE, str(own / "cache"))
    monkeypatch.setenv(quiet.VARIABLE, str(own))
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no test outlives a power cut
    corpora.standard_library.cache_clear()
    yield own / "cache"
    if registry.Folder.path is not None:
        registry.use_folder(None)


@pytest.fixture
def disk_events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and what is renamed from now on, in this order."""
    events = list[str]()
    rename = Path.rename

    def synced(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def renamed(part: Path, path: Path) -> Path:
        events.append(f"{path.name} renamed")
        return rename(part, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    return events


@pytest.fixture(scope="session")
def measurements(tmp_path_factory: pytest.TempPathFactory) -> MeasuredOnce:
    """What has been measured in this session."""
    return MeasuredOnce(tmp_path_factory.mktemp("measurements"))


@pytest.fixture
def measured_once(measurements: MeasuredOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is done with measurements: the same is measured once."""
    monkeypatch.setattr(blocks, "measure", measurements)


@pytest.fixture
def unruly_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured process can import those that tests have."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent / "support"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command in this process: the words of a line, and further arguments."""

    def call(line: str, *arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            code = main([*line.split(), *map(str, arguments)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def book(tmp_path: Path) -> str:
    """The override that names a short text."""
    path = tmp_path / "book.txt"
    path.write_text("hello hello world")
    return f"data.path={path}"


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server on this machine that has one file."""
    with serving(CONTENT) as server:
        yield server
