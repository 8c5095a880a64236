"""Facts of the machine and software in a record are those of the system; interpreters that cannot
run are named.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from rows import rows_beside, write_files
from workbench import CHECKOUT, TEXT

from harness import run
from harness.common import registry
from harness.common.errors import Refusal
from harness.measure import machine


@pytest.mark.parametrize("row", rows_beside(__file__, "machine.toml"))
def test_facts_are_those_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    write_files(tmp_path, row.get("files", {}))
    facts = {**machine.machine(), **machine.interference(), "available": machine.available_memory()}
    limits = {"cpu_quota_cores": None, "memory_bytes": None}
    expected = {**dict.fromkeys(row.get("unknown", ())), **row["facts"]}
    if "container" in expected:
        expected["container"] = {**limits, **expected["container"]}
    assert {name: facts[name] for name in expected} == expected
    assert facts["memory_bytes"] > 1 << 20


def test_an_environment_has_versions_and_compilers_but_no_place_and_no_host(
    tmp_path: Path,
) -> None:
    environment = machine.environment()
    for private in (str(CHECKOUT), sys.prefix, str(Path.home()), os.uname().nodename):
        assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", json.dumps(environment))
    packages = environment["packages"]
    assert {"hydra-core", "numpy", "pandas", "Cython", "omegaconf"} <= packages.keys()
    assert packages["regex"] == machine.version("regex") != "unavailable"
    assert machine.version("no-such-package-anywhere") == "unavailable"

    assert bool(environment["compilers"]) == any((CHECKOUT / "variants").rglob("*.so"))
    compiled = {"thing": b"\x7fELF\0GCC: (Debian 12.2.0-14) 12.2.0\0", "odd": b"\x7fELF", "no": b""}
    for name, content in compiled.items():
        (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(content)
    assert machine.compilers(tmp_path) == ["GCC: (Debian 12.2.0-14) 12.2.0"]


# Interpreters


def test_another_interpreter_runs_a_trainer_and_one_that_cannot_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"text": TEXT, "old": "#!/bin/sh\necho CPython 3.7.16\n"})
    (tmp_path / "old").chmod(0o755)
    settings = "variant=heap", "data.path=text", "vocab_size=270"
    interpreters = f"interpreter={sys.executable},no-such-python,./none/python"
    first, *others = run("-m", *settings, interpreters)

    python = f"{platform.python_implementation()} {platform.python_version()} ("
    assert (first["status"], first["identity"]["kind"]) == ("ok", "identical")
    assert first["interpreter"].startswith(python)
    missing = "interpreter 'no-such-python' not found; apt-get install no-such-python, or set interpreter=PATH"
    assert [(other["status"], other["interpreter"], other["reason"]) for other in others] == [
        ("skipped", "no-such-python", missing),
        ("skipped", "none/python", "interpreter 'none/python' not found; give another path"),
    ]
    old = "CPython 3.7.16; trainers run under 3.9 or later"
    for path, reason in (("./old", old), ("/bin/true", "not a Python")):
        with pytest.raises(Refusal, match=reason):
            run(*settings, f"interpreter={path}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pypy3") is None, reason="pypy3 is not installed")
def test_python_stages_are_proved_under_pypy_and_compiled_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    settings = "data.path=text", "vocab_size=270", "interpreter=pypy3"
    python = {card.name for card in registry.select(["python"])} - {"heap_max"}
    for record in run("variants=[python,cpp,cython,flat_file]", *settings):
        assert record["interpreter"].startswith("PyPy")
        runs = record["variant"] in python
        assert record["status"] == ("ok" if runs else "skipped")
        assert not runs or record["identity"]["kind"] in ("identical", "unproved")


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
