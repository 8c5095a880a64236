"""What a record says of the machine is what its kernel says, and nothing is guessed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from workbench import CHECKOUT

from harness.measure import environment
from harness.measure.environment import build, builds

CPUINFO = "processor : 0\nmodel name : A Processor 9000\nflags : fpu sse4_2 avx2 hypervisor\n\nprocessor : 1\n"
MEMINFO = "MemTotal:       16000 kB\nMemAvailable:    9000 kB\nSwapTotal:          0 kB\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty file system in the place of /proc and /sys."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    return tmp_path


def place(root: Path, **files: str) -> None:
    """Write files, their names given with __ for / and _DOT_ for a dot."""
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_a_machine_that_says_nothing_is_unavailable_and_not_guessed(root: Path) -> None:
    known = environment.machine()
    for name in ("cpu_flags", "smt", "turbo", "governor", "transparent_huge_pages", "address_randomization"):
        assert known[name] == "unavailable"
    assert known["memory_bytes"] is None
    assert known["container"] == {"cpu_quota_cores": None, "memory_bytes": None, "cpuset": "unavailable"}
    assert list(root.iterdir()) == []


def test_what_the_kernel_says_is_recorded(root: Path) -> None:
    cpu = "sys__devices__system__cpu"
    place(
        root,
        proc__cpuinfo=CPUINFO,
        proc__meminfo=MEMINFO,
        proc__sys__kernel__randomize_va_space="2\n",
        proc__self__personality="00000000\n",
        **{f"{cpu}__smt__active": "1\n", f"{cpu}__intel_pstate__no_turbo": "0\n"},
        **{f"{cpu}__cpu0__cpufreq__scaling_governor": "powersave\n"},
    )
    known = environment.machine()
    assert (known["cpu"], known["cpu_flags"]) == ("A Processor 9000", "fpu sse4_2 avx2 hypervisor")
    assert (known["smt"], known["turbo"], known["governor"]) == ("on", "on", "powersave")
    assert (known["memory_bytes"], known["swap_bytes"]) == (16_384_000, 0)
    assert (known["hypervisor"], known["address_randomization"]) == ("yes", "2")


@pytest.mark.parametrize(("no_turbo", "boost", "said"), [("1", "", "off"), ("", "1", "on"), ("", "0", "off")])
def test_turbo_is_told_by_either_driver(root: Path, no_turbo: str, boost: str, said: str) -> None:
    place(root, sys__devices__system__cpu__intel_pstate__no_turbo=no_turbo)
    place(root, sys__devices__system__cpu__cpufreq__boost=boost)
    assert environment.turbo() == said


def test_addresses_that_are_fixed_for_this_process_are_told(root: Path) -> None:
    place(root, proc__self__personality="00040000\n", proc__sys__kernel__randomize_va_space="2\n")
    assert environment.address_randomization() == "off for this process"


def test_the_tightest_limit_of_the_groups_above_is_the_containers(root: Path) -> None:
    place(root, proc__meminfo=MEMINFO, proc__self__cgroup="0::/outer/inner\n")
    group = "sys__fs__cgroup"
    place(
        root,
        **{
            f"{group}__outer__cpu_DOT_max": "150000 100000\n",
            f"{group}__outer__memory_DOT_max": "1000000\n",
            f"{group}__outer__inner__cpu_DOT_max": "max 100000\n",
            f"{group}__outer__inner__memory_DOT_max": "max\n",
            f"{group}__outer__inner__cpuset_DOT_cpus_DOT_effective": "0-1\n",
        },
    )
    assert environment.container() == {"cpu_quota_cores": 1.5, "memory_bytes": 1_000_000, "cpuset": "0-1"}


def test_groups_of_the_first_version_are_read_too(root: Path) -> None:
    """In a container: our group is mounted as the root of its controller, and its path outside does not exist."""
    place(root, proc__meminfo=MEMINFO, proc__self__cgroup="5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n3:cpuset:/\n")
    group = "sys__fs__cgroup"
    place(
        root,
        **{
            f"{group}__cpu,cpuacct__cpu_DOT_cfs_quota_us": "50000\n",
            f"{group}__cpu,cpuacct__cpu_DOT_cfs_period_us": "100000\n",
            f"{group}__memory__memory_DOT_limit_in_bytes": "9223372036854771712\n",
            f"{group}__cpuset__cpuset_DOT_cpus": "0,3\n",
        },
    )
    assert environment.container() == {"cpu_quota_cores": 0.5, "memory_bytes": None, "cpuset": "0,3"}


@pytest.mark.parametrize(("seed", "said"), [("0", "0"), ("42", "42"), ("random", "random"), (None, "random")])
def test_the_hash_seed_is_its_number_or_random(seed: str | None, said: str) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    told = subprocess.run(
        [sys.executable, "-c", "from harness.measure.environment import hash_seed; print(hash_seed())"],
        cwd=CHECKOUT,
        env=variables if seed is None else {**variables, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == f"{said}\n"


def test_a_compiled_module_tells_its_compiler_and_its_flags(tmp_path: Path) -> None:
    module = tmp_path / f"thing{EXTENSION_SUFFIXES[0]}"
    producer = b"GNU C++17 12.2.0 -O3 -ffile-prefix-map=/build/x=. -g"
    module.write_bytes(b"\x7fELF\0" + producer + b"\0GCC: (Debian 12.2.0-14) 12.2.0\0")
    assert builds(tmp_path) == [{"compiler": "GCC: (Debian 12.2.0-14) 12.2.0", "flags": "-O3 -g", "modules": ["thing"]}]
    module.write_bytes(b"\x7fELF without a word")
    assert build(module) == ("unavailable", "unavailable")
    module.write_bytes(b"")
    assert build(module) == ("unavailable", "unavailable")


def test_the_modules_of_this_build_are_told() -> None:
    modules = [name for each in environment.environment()["native"] for name in each["modules"]]
    there = {path.name.partition(".")[0] for path in (CHECKOUT / "variants").rglob("*.so")}
    assert set(modules) == there
    assert len(modules) == len(there)


def test_an_environment_names_no_place_and_no_host() -> None:
    text = json.dumps(environment.environment())
    for private in (str(CHECKOUT), sys.prefix, str(Path.home()), os.uname().nodename):
        assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text)


def test_the_versions_of_what_is_required_are_told() -> None:
    packages = environment.packages()
    assert packages["regex"] == environment.version("regex")
    assert {"hydra-core", "numpy", "pandas", "Cython", "omegaconf"} <= packages.keys()
    assert environment.version("no-such-package-anywhere") == "unavailable"
