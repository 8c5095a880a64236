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
from workbench import CHECKOUT, TEXT

from harness import run
from harness.common import registry
from harness.common.errors import Refusal
from harness.measure import machine

CPU = "sys/devices/system/cpu"
GROUP = "sys/fs/cgroup"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty file system in the place of /proc and /sys."""
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


UNLIMITED = {"cpu_quota_cores": None, "memory_bytes": None}
CPUINFO = (
    "processor : 0\nmodel name : A Processor 9000\nflags : fpu avx2 hypervisor\n\nprocessor : 1\n"
)
UNKNOWN = ("smt", "turbo", "governor", "hypervisor", "transparent_huge_pages")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {**dict.fromkeys(UNKNOWN, "unavailable"), "container": UNLIMITED}),
        ({}, dict.fromkeys(("psi_cpu_seconds", "psi_memory_seconds", "psi_io_seconds"))),
        ({"proc/cpuinfo": CPUINFO}, {"cpu": "A Processor 9000", "hypervisor": "yes"}),
        ({f"{CPU}/smt/active": "1\n"}, {"smt": "on"}),
        ({f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n"}, {"governor": "powersave"}),
        (
            {"proc/pressure/cpu": "some avg10=0 total=3000000\nfull avg10=0 total=1\n"},
            {"psi_cpu_seconds": 3.0},
        ),
        # turbo is read from either driver
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, {"turbo": "off"}),
        ({f"{CPU}/cpufreq/boost": "1"}, {"turbo": "on"}),
        ({f"{CPU}/intel_pstate/no_turbo": "0"}, {"turbo": "on"}),
        # the tightest limit of all groups above counts
        (
            {
                "proc/self/cgroup": "0::/outer/inner\n",
                f"{GROUP}/outer/cpu.max": "150000 100000\n",
                f"{GROUP}/outer/memory.max": "1000000\n",
                f"{GROUP}/outer/inner/cpu.max": "max 100000\n",
                f"{GROUP}/outer/inner/memory.max": "max\n",
            },
            {
                "container": {"cpu_quota_cores": 1.5, "memory_bytes": 1_000_000},
                "available": 1_000_000,
            },
        ),
    ],
)
def test_facts_are_those_of_the_kernel(
    root: Path, files: dict[str, str], expected: dict[str, Any]
) -> None:
    write(root, files)
    facts = {**machine.machine(), **machine.interference(), "available": machine.available_memory()}
    assert {name: facts[name] for name in expected} == expected
    assert facts["memory_bytes"] > 1 << 20


def test_compiled_modules_name_their_compiler(tmp_path: Path) -> None:
    for name, content in (
        ("thing", b"\x7fELF\0GCC: (Debian 12.2.0-14) 12.2.0\0"),
        ("odd", b"\x7fELF"),
        ("no", b""),
    ):
        (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(content)
    assert machine.compilers(tmp_path) == ["GCC: (Debian 12.2.0-14) 12.2.0"]


def test_an_environment_has_versions_and_modules_but_no_place_and_no_host() -> None:
    environment = machine.environment()
    for private in (str(CHECKOUT), sys.prefix, str(Path.home()), os.uname().nodename):
        assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", json.dumps(environment))
    assert bool(environment["compilers"]) == any((CHECKOUT / "variants").rglob("*.so"))
    assert {"hydra-core", "numpy", "pandas", "Cython", "omegaconf"} <= environment[
        "packages"
    ].keys()
    assert environment["packages"]["regex"] == machine.version("regex") != "unavailable"
    assert machine.version("no-such-package-anywhere") == "unavailable"


# Interpreters


def test_another_interpreter_runs_a_trainer_and_one_that_cannot_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"text": TEXT, "old": "#!/bin/sh\necho CPython 3.7.16\n"})
    (tmp_path / "old").chmod(0o755)
    interpreters = f"interpreter={sys.executable},no-such-python,./none/python"
    first, *others = run("-m", "variant=heap", "data.path=text", "vocab_size=270", interpreters)
    assert (first["status"], first["identity"]["kind"]) == ("ok", "identical")
    assert first["interpreter"].startswith(
        f"{platform.python_implementation()} {platform.python_version()} ("
    )
    assert [(other["status"], other["interpreter"], other["reason"]) for other in others] == [
        (
            "skipped",
            "no-such-python",
            "interpreter 'no-such-python' not found; apt-get install no-such-python, or set interpreter=PATH",
        ),
        ("skipped", "none/python", "interpreter 'none/python' not found; give another path"),
    ]
    for path, reason in (
        ("./old", "CPython 3.7.16; trainers run under 3.9 or later"),
        ("/bin/true", "not a Python"),
    ):
        with pytest.raises(Refusal, match=reason):
            run("variant=heap", "data.path=text", "vocab_size=270", f"interpreter={path}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pypy3") is None, reason="pypy3 is not installed")
def test_python_stages_are_proved_under_pypy_and_compiled_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    arguments = "data.path=text", "vocab_size=270", "interpreter=pypy3"
    for record in run("variants=[python,cpp,cython,flat_file]", *arguments):
        assert record["interpreter"].startswith("PyPy")
        if (
            "python" in registry.variants()[record["variant"]].tags
            and record["variant"] != "heap_max"
        ):
            assert (record["status"], record["identity"]["kind"]) in (
                ("ok", "identical"),
                ("ok", "unproved"),
            )
        else:
            assert record["status"] == "skipped"
