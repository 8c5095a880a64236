"""The doctor: what disturbs timing here, what can be done about it, and the smallest difference
that is found.
"""

from __future__ import annotations

import re
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import doctor
from harness.common.errors import OK, UNMEASURED
from harness.measure import machine, quiet
from harness.measure.quiet import Condition, conditions

CPU = "sys/devices/system/cpu"
QUIET = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1"
CALM = {
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.10 avg300=0.00 total=1\nfull avg10=9.00 avg60=9.00 total=0",
    "proc/pressure/memory": QUIET,
    "proc/pressure/io": QUIET,
    "proc/self/cgroup": "0::/",
    "proc/cpuinfo": "processor : 0\nflags\t\t: fpu sse2",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpufreq/boost": "0",
    f"{CPU}/smt/active": "0",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "sys/fs/cgroup/memory.max": "max",
}
OF_THIS_MACHINE = {"free memory", "other runs", "load", "steal"}


Ticks = namedtuple("Ticks", "user nice system idle iowait irq softirq steal")
"""What psutil returns about the CPUs on Linux."""


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Finds what disturbs timing on a machine of these files."""
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setattr(quiet, "SECONDS_OF_STEAL", 0)
    monkeypatch.setattr(quiet, "BYTES_TO_TOUCH", 1 << 20)

    def examine(files: dict[str, str]) -> dict[str, Condition]:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return {finding.name: finding for finding in conditions()}

    return examine


def test_a_calm_machine_has_no_disturbance_and_an_empty_one_is_unknown(examined: Any) -> None:
    unknown = {name for name, finding in examined({}).items() if finding.disturbs is not None}
    assert unknown <= OF_THIS_MACHINE | {"container's limits"}
    found = examined(CALM)
    assert {
        name for name, finding in found.items() if finding.disturbs is not False
    } <= OF_THIS_MACHINE
    assert all(not finding.advice for finding in found.values() if not finding.disturbs)


@pytest.mark.parametrize(
    ("name", "file", "content", "what", "advice"),
    [
        (
            "pressure",
            "proc/pressure/cpu",
            "some avg10=9 avg60=42.00 total=1",
            "cpu 42 %",
            "end what else",
        ),
        (
            "pressure",
            "proc/pressure/io",
            "some avg10=9 avg60=9.00 avg300=9 total=1",
            "io 9 %",
            "end what else runs",
        ),
        (
            "clock rate",
            f"{CPU}/cpu0/cpufreq/scaling_governor",
            "powersave",
            "powersave",
            "cpupower",
        ),
        ("turbo", f"{CPU}/cpufreq/boost", "1", "on", "switch it off"),
        ("hyper-threads", f"{CPU}/smt/active", "1", "on", "taskset"),
        ("virtual machine", "proc/cpuinfo", "flags : fpu hypervisor sse2", "yes", "useless"),
        (
            "container's limits",
            "sys/fs/cgroup/cpu.max",
            "150000 100000",
            "1.5 CPUs",
            "a quota stops it",
        ),
    ],
)
def test_a_disturbance_has_advice(
    examined: Any, name: str, file: str, content: str, what: str, advice: str
) -> None:
    finding = examined({**CALM, file: content})[name]
    assert finding.disturbs
    assert what in finding.what
    assert advice in finding.advice


def test_what_the_system_reports_elsewhere_disturbs_too(
    examined: Any, monkeypatch: pytest.MonkeyPatch
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
    assert {name for name, what in expected.items() if what in found[name].what} == expected.keys()
    assert all(found[name].disturbs for name in expected)


# The command


@pytest.mark.slow
def test_an_aa_run_reports_its_resolution_also_beside_another_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor, "USUAL", ("data=stdlib", "data.bytes=50kB", "vocab_size=300", "concurrent=true")
    )
    with quiet.timing():
        assert doctor.main(["--repeat", "12"]) == OK
    out = capsys.readouterr().out
    assert re.search(
        r"against itself on stdlib, 12 pairs of \d+ ms: [\d.]+ \([\d.]+ to [\d.]+\) by net time",
        out,
    )
    assert re.search(r"Do not rank what is within [\d.]+ % of each other", out)


def test_a_cell_that_cannot_be_measured_is_one_sentence_and_no_run_measures_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("low lower lowest")
    failing = (f"data.path={tmp_path / 'text'}", "vocab_size=300", "variant._target_=json:dumps")
    monkeypatch.setattr(doctor, "conditions", list)
    monkeypatch.setattr(doctor, "USUAL", failing)
    assert doctor.main(["--no-run"]) == OK
    assert doctor.main([]) == UNMEASURED
    assert "be compared with itself (error" in capsys.readouterr().err
