"""What the kernel's files say about a machine is found, with what can be done; what they do not say is unknown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.measure import checkup
from harness.measure.checkup import DISTURBS, GOOD, UNKNOWN, Finding, Machine, findings

CPU = "sys/devices/system/cpu"
HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
CALM = {
    "proc/loadavg": "0.01 0.05 0.10 1/200 4711",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.10 avg300=0.00 total=1\nfull avg10=9.00 avg60=9.00 total=0",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/stat": "cpu  100 0 100 9800 0 0 0 0 0 0\ncpu0 1 2 3",
    "proc/7/cmdline": "vi\0harness.worker.txt\0",
    "proc/cpuinfo": "processor : 0\nflags\t\t: fpu sse2",
    "proc/meminfo": "MemTotal: 100 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpufreq/boost": "0",
    f"{CPU}/smt/active": "0",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    HUGE_PAGES: "always [madvise] never",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "sys/fs/cgroup/memory.max": "max",
}


def looked_at(folder: Path, files: dict[str, str]) -> dict[str, Finding]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return {finding.name: finding for finding in findings(Machine(folder))}


OF_THIS_MACHINE = {"processors", "free memory", "perf", "valgrind"}


def test_a_calm_machine_has_nothing_against_it(tmp_path: Path) -> None:
    found = looked_at(tmp_path, CALM)
    assert {name for name, finding in found.items() if finding.state != GOOD} <= OF_THIS_MACHINE
    assert all(not finding.advice for name, finding in found.items() if finding.state == GOOD)


@pytest.mark.parametrize(
    ("name", "file", "content", "what", "advice"),
    [
        ("load", "proc/loadavg", "900.5 1 1 1/200 4711", "900.50 processes", "measure=careful"),
        ("pressure", "proc/pressure/cpu", "some avg10=9 avg60=42.00 total=1", "cpu 42 %", "end what else"),
        ("pressure", "proc/pressure/io", "some avg10=9 avg60=9.00 avg300=9 total=1", "io 9 %", "end what else runs"),
        ("steal", "proc/stat", "cpu  100 0 100 9300 0 0 0 500 0 0", "5 % since the start", "another hour"),
        ("other runs", "proc/8/cmdline", "python\0-m\0harness.worker\0", "measured processes: 8", "wait for them"),
        ("clock rate", f"{CPU}/cpu0/cpufreq/scaling_governor", "powersave", "governor powersave", "cpupower"),
        ("turbo", f"{CPU}/cpufreq/boost", "1", "on", "echo 0 | sudo tee"),
        ("hyper-threads", f"{CPU}/smt/active", "1", "on", "affinity="),
        ("virtual machine", "proc/cpuinfo", "flags : fpu hypervisor sse2", "yes", "no baseline"),
        ("container's limits", "sys/fs/cgroup/cpu.max", "150000 100000", "1.5 processors", "no quota"),
        ("swap", "proc/meminfo", "SwapTotal: 2000 kB\nSwapFree: 500 kB", "1.54 MB of 2.05 MB used", "swapoff"),
        ("huge pages", HUGE_PAGES, "[always] madvise never", "always", "echo madvise"),
        ("clock", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "hpet", "clocksource=tsc"),
    ],
)  # fmt: skip
def test_what_disturbs_is_named_with_what_can_be_done(
    name: str, file: str, content: str, what: str, advice: str, tmp_path: Path
) -> None:
    finding = looked_at(tmp_path, {**CALM, file: content})[name]
    assert finding.state == DISTURBS
    assert what in finding.what
    assert advice in finding.advice


def test_limits_of_an_older_container_are_found_too(tmp_path: Path) -> None:
    older = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000000",
    }
    assert looked_at(tmp_path, older)["container's limits"].what == "0.5 processors, 2.00 GB of memory"


def test_a_processor_of_another_maker_tells_its_turbo_elsewhere(tmp_path: Path) -> None:
    files = {name: content for name, content in CALM.items() if not name.endswith("boost")}
    finding = looked_at(tmp_path, {**files, f"{CPU}/intel_pstate/no_turbo": "0"})["turbo"]
    assert (finding.state, finding.what) == (DISTURBS, "on")
    assert "intel_pstate/no_turbo" in finding.advice


def test_a_machine_that_says_nothing_is_unknown_and_never_good(tmp_path: Path) -> None:
    found = looked_at(tmp_path, {})
    known = {name for name, finding in found.items() if finding.state != UNKNOWN}
    assert known <= OF_THIS_MACHINE | {"other runs", "container's limits"}


@pytest.mark.parametrize(
    ("seconds", "state", "what"),
    [
        ((0.512, 0.0256), DISTURBS, "1.91 s to touch a gigabyte, 0.10 s when it has just been freed"),
        ((0.05, 0.0256), GOOD, "0.19 s to touch a gigabyte, 0.10 s when it has just been freed"),
        (None, UNKNOWN, "cannot be tried"),
    ],
)
def test_free_memory_that_the_host_has_to_give_first_disturbs(
    seconds: tuple[float, float] | None, state: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "seconds_to_touch", lambda _: seconds)
    (finding,) = checkup.free_memory(Machine())
    assert (finding.state, finding.what) == (state, what)
    assert bool(finding.advice) == (state == DISTURBS)


def test_missing_valgrind_comes_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    finding = looked_at(tmp_path, CALM)["valgrind"]
    assert (finding.state, finding.what) == (UNKNOWN, "not installed")
    assert finding.advice.startswith("apt-get install valgrind")
