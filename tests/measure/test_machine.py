"""What a record says of the machine and of the code that ran, which interpreters can run it, and what
the doctor says of what disturbs timing.
"""

import os
import platform
import re
import shutil
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import psutil
import pytest
import tomllib
from rows import Row, each_row, write_files
from workbench import CHECKOUT, TEXT, Call

from harness import doctor, run
from harness.common import registry
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.measure import machine, quiet
from harness.measure.quiet import Condition, conditions


@each_row(__file__, "machine.toml")
def test_facts_are_those_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    write_files(tmp_path, row.get("files", {}))
    facts = {**machine.machine(), **machine.interference(), "available": machine.available_memory()}
    for name, limit in facts["container"].items():
        facts[f"container {name}"] = limit
    expected = {**dict.fromkeys(row.get("unknown", ())), **row["facts"]}
    assert {name: facts[name] for name in expected} == expected
    assert facts["memory_bytes"] > 1 << 20


def test_an_environment_has_versions_and_compilers(tmp_path: Path) -> None:
    environment = machine.environment()
    packages = environment["packages"]
    assert {"hydra-core", "numpy", "pandas", "Cython", "omegaconf"} <= packages.keys()
    assert packages["regex"] == machine.version("regex") != "unavailable"
    assert machine.version("no-such-package-anywhere") == "unavailable"

    assert bool(environment["compilers"]) == any((CHECKOUT / "variants").rglob("*.so"))
    compiled = {"thing": b"\x7fELF\0GCC: (Debian 12.2.0-14) 12.2.0\0", "odd": b"\x7fELF", "no": b""}
    for name, content in compiled.items():
        (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(content)
    assert machine.compilers(tmp_path) == ["GCC: (Debian 12.2.0-14) 12.2.0"]


def test_asking_git_leaves_its_index_alone(tmp_path: Path) -> None:
    """On a full disk a lock of the index was left behind, and no later git would write."""
    file = tmp_path / "file"
    file.touch()
    machine.git(tmp_path, "init")
    machine.git(tmp_path, "add", "file")
    index = (tmp_path / ".git/index").read_bytes()

    os.utime(file, (1, 1))
    assert machine.git(tmp_path, "status", "--porcelain") == "A  file"
    assert (tmp_path / ".git/index").read_bytes() == index


# Interpreters


def test_another_interpreter_runs_a_trainer_and_an_old_one_is_refused(here: Path) -> None:
    write_files(here, {"text": TEXT, "old": "#!/bin/sh\necho CPython 3.7.16\n"})
    Path("old").chmod(0o755)
    settings = "variant=heap", "data.path=text", "vocab_size=270"

    [record] = run(*settings, f"interpreter={sys.executable}")
    assert (record["status"], record["identity"]["kind"]) == ("ok", "identical")
    python = f"{platform.python_implementation()} {platform.python_version()} ("
    assert record["interpreter"].startswith(python)

    with pytest.raises(Refusal, match=r"CPython 3.7.16; trainers run under 3.9 or later"):
        run(*settings, "interpreter=./old")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pypy3") is None, reason="pypy3 is not installed")
def test_python_stages_are_proved_under_pypy_and_compiled_ones_are_skipped(here: Path) -> None:
    (here / "text").write_text(TEXT)
    settings = "data.path=text", "vocab_size=270", "interpreter=pypy3"
    python = {card.name for card in registry.select(["python"])} - {"heap_max"}
    for record in run("variants=[python,cpp,cython,flat_file]", *settings):
        assert record["interpreter"].startswith("PyPy")
        runs = record["variant"] in python
        assert record["status"] == ("ok" if runs else "skipped")
        assert not runs or record["identity"]["kind"] in ("identical", "unproved")


# The digest of the code behind a target


def test_a_digest_is_that_of_the_files_that_were_imported(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(here))
    lazy = "def train(*work):\n    from mine import late\n    return late.train(*work)\n"
    files = {"__init__.py": "", "eager.py": f"import mine\n{lazy}", "aside.py": ""}
    write_files(here / "mine", {**files, "late.py": "from variants.heap import train\n"})
    Path("text.txt").write_text(TEXT)

    def digest() -> str | None:
        found = run("data.path=text.txt", "vocab_size=260", "variant._target_=mine.eager:train")
        assert (found[0].status, found[0].cell.source_sha256) != ("ok", None)
        return found[0].cell.source_sha256

    before = digest()
    Path("mine/aside.py").write_text("# changed\n")
    assert digest() == before
    seen = [before]
    for name in ("__init__", "eager", "late"):
        file = Path(f"mine/{name}.py")
        file.write_text(f"{file.read_text()}# changed\n")
        seen.append(digest())
    assert len(set(seen)) == 4


# What disturbs timing


CALM: dict[str, str] = tomllib.loads(Path(__file__).with_name("disturbances.toml").read_text())[
    "calm"
]
OF_THIS_MACHINE = {"free memory", "other runs", "load", "steal"}
Examine = Callable[[dict[str, str]], dict[str, Condition]]
Ticks = namedtuple("Ticks", "user nice system idle iowait irq softirq steal")
"""What psutil returns about the CPUs on Linux."""


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Finds what disturbs timing on a machine of these files."""
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setattr(quiet, "SECONDS_OF_STEAL", 0)
    monkeypatch.setattr(quiet, "BYTES_TO_TOUCH", 1 << 20)

    def examine(files: dict[str, str]) -> dict[str, Condition]:
        write_files(tmp_path, files)
        return {found.name: found for found in conditions()}

    return examine


def test_a_calm_machine_has_no_disturbance_and_an_empty_one_is_unknown(examined: Examine) -> None:
    empty, calm = examined({}), examined(CALM)
    for name in calm.keys() - OF_THIS_MACHINE:
        assert empty[name].disturbs is None or name == "container's limits"
        assert (calm[name].disturbs, calm[name].advice) == (False, "")


@each_row(__file__, "disturbances.toml")
def test_a_disturbance_has_advice(examined: Examine, row: Row) -> None:
    found = examined({**CALM, **row["files"]})[row["title"]]
    assert found.disturbs
    assert row["what"] in found.what
    assert row["advice"] in found.advice


def test_what_the_system_reports_elsewhere_disturbs_too(
    examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "getloadavg", lambda: (900.5, 1, 1))
    monkeypatch.setattr(psutil, "cpu_times", lambda: Ticks(100, 0, 100, 9300, 0, 0, 0, 500))
    monkeypatch.setattr(psutil, "cpu_times_percent", lambda _: Ticks(*[0] * 8))
    times = iter([0.0, 0.002, 0.1, 0.1001])  # of a megabyte
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    with quiet.timing():
        found = examined(CALM)

    expected = {
        "load": "900.50 processes",
        "steal": "5 % since the start",
        "other runs": "another run is being timed",
        "free memory": "1.91 s to touch a gigabyte, 95.4 ms when it has just been freed",
    }
    for name, what in expected.items():
        assert found[name].disturbs
        assert what in found[name].what


@pytest.mark.slow
def test_an_aa_run_reports_its_resolution_beside_another_run_or_why_it_has_none(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = "data=stdlib", "data.bytes=50kB", "vocab_size=300", "concurrent=true"
    monkeypatch.setattr(doctor, "USUAL", usual)
    monkeypatch.setattr(doctor, "PAIRS", 12)
    with quiet.timing():
        code, out, _ = call("doctor")
    assert code == OK
    assert re.search(
        r"against itself on stdlib, 12 pairs of \d+ ms: [\d.]+ \([\d.]+ to [\d.]+\) by net time",
        out,
    )
    assert re.search(r"Do not rank what is within [\d.]+ % of each other", out)

    monkeypatch.setattr(doctor, "USUAL", (*usual, "variant._target_=json:dumps"))
    failed = call("doctor")
    assert failed.code == UNMEASURED
    assert "be compared with itself (error" in failed.err
