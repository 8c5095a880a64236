"""The doctor: what disturbs timing here, what can be done about it, and the smallest difference that is found."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from workbench import first_fast

from harness import doctor
from harness.common.comparison import MARGIN, differ, interval
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.doctor import POWER, detectable, usual_beside
from harness.measure import checkup, environment, lock
from harness.measure.checkup import DISTURBS, GOOD, UNKNOWN, Finding, findings

CPU = "sys/devices/system/cpu"
HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
CALM = {
    "proc/loadavg": "0.01 0.05 0.10 1/200 4711",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.10 avg300=0.00 total=1\nfull avg10=9.00 avg60=9.00 total=0",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/stat": "cpu  100 0 100 9800 0 0 0 0 0 0\ncpu0 1 2 3",
    "proc/self/cgroup": "0::/",
    "proc/cpuinfo": "processor : 0\nflags\t\t: fpu sse2",
    "proc/meminfo": "MemTotal: 4000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpufreq/boost": "0",
    f"{CPU}/smt/active": "0",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    HUGE_PAGES: "always [madvise] never",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "sys/fs/cgroup/memory.max": "max",
}
OF_THIS_MACHINE = {"processors", "free memory", "valgrind", "other runs"}


@pytest.fixture
def looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Finds what disturbs timing on a machine of these files."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(checkup, "SECONDS_OF_STEAL", 0)
    monkeypatch.setattr(checkup, "BYTES_TO_TOUCH", 1 << 20)

    def look(files: dict[str, str]) -> dict[str, Finding]:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return {finding.name: finding for finding in findings()}

    return look


def test_a_calm_machine_has_nothing_against_it(looked_at: Any) -> None:
    found = looked_at(CALM)
    assert {name for name, finding in found.items() if finding.state != GOOD} <= OF_THIS_MACHINE
    assert all(not finding.advice for finding in found.values() if finding.state == GOOD)


@pytest.mark.parametrize(
    ("name", "file", "content", "what", "advice"),
    [
        ("load", "proc/loadavg", "900.5 1 1 1/200 4711", "900.5 processes", "measure=careful"),
        ("pressure", "proc/pressure/cpu", "some avg10=9 avg60=42.00 total=1", "cpu 42 %", "end what else"),
        ("pressure", "proc/pressure/io", "some avg10=9 avg60=9.00 avg300=9 total=1", "io 9 %", "end what else runs"),
        ("steal", "proc/stat", "cpu  100 0 100 9300 0 0 0 500 0 0", "5 % since the start", "another hour"),
        ("clock rate", f"{CPU}/cpu0/cpufreq/scaling_governor", "powersave", "governor powersave", "cpupower"),
        ("turbo", f"{CPU}/cpufreq/boost", "1", "on", "switch it off"),
        ("turbo", f"{CPU}/intel_pstate/no_turbo", "0", "on", "intel_pstate/no_turbo"),
        ("hyper-threads", f"{CPU}/smt/active", "1", "on", "affinity="),
        ("virtual machine", "proc/cpuinfo", "flags : fpu hypervisor sse2", "yes", "useless"),
        ("container's limits", "sys/fs/cgroup/cpu.max", "150000 100000", "1.5 processors", "a quota stops it"),
        ("swap", "proc/meminfo", "SwapTotal: 2000 kB\nSwapFree: 500 kB", "1.54 MB of 2.05 MB used", "swapoff"),
        ("huge pages", HUGE_PAGES, "[always] madvise never", "always", "to madvise"),
        ("clock", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "hpet", "clocksource=tsc"),
    ],
)  # fmt: skip
def test_a_disturbance_is_named_with_what_can_be_done(
    looked_at: Any, name: str, file: str, content: str, what: str, advice: str
) -> None:
    finding = looked_at({**CALM, file: content})[name]
    assert finding.state == DISTURBS
    assert what in finding.what
    assert advice in finding.advice


def test_a_machine_that_says_nothing_is_unknown_and_never_good(looked_at: Any) -> None:
    known = {name for name, finding in looked_at({}).items() if finding.state != UNKNOWN}
    assert known <= OF_THIS_MACHINE | {"container's limits"}


def test_another_measured_process_is_named(looked_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, guard = ["python", "-c", "...", "harness.worker"], ["python", "guard.py", "harness.worker"]
    running = [SimpleNamespace(pid=8 + number, info={"cmdline": line}) for number, line in enumerate([worker, guard])]
    monkeypatch.setattr(psutil, "process_iter", lambda _: running)
    assert looked_at(CALM)["other runs"].what == "measured processes: 8"


@pytest.mark.parametrize(
    ("seconds", "state", "what"),
    [
        ((0.512, 0.0256), DISTURBS, "1.91 s to touch a gigabyte, 0.10 s when it has just been freed"),
        ((0.05, 0.0256), GOOD, "0.19 s to touch a gigabyte, 0.10 s when it has just been freed"),
    ],
)
def test_free_memory_that_the_host_has_to_give_first_disturbs(
    monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float], state: str, what: str
) -> None:
    monkeypatch.setattr(checkup, "seconds_to_touch", iter(seconds).__next__)
    (found,) = (finding for finding in findings() if finding.name == "free memory")
    assert (found.state, found.what) == (state, what)


def test_missing_valgrind_comes_with_its_command(looked_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    finding = looked_at(CALM)["valgrind"]
    assert finding.what == "not installed"
    assert finding.advice.startswith("apt-get install valgrind")


# What the machine tells apart.


def log_ratios(number: int, noise: float, seed: int = 0) -> list[float]:
    """Ratios of one program to itself."""
    draw = random.Random(seed)
    return [draw.gauss(0, noise) - draw.gauss(0, noise) for _ in range(number)]


def differs(ratios: list[float], shift: float = 0.0) -> bool:
    low, high = interval([ratio + shift for ratio in ratios])
    return low is not None and high is not None and differ(math.exp(low), math.exp(high))


@pytest.mark.parametrize("blocks", first_fast([6, 30]))
def test_what_is_called_detectable_is_detected_that_often(blocks: int) -> None:
    smallest = detectable(log_ratios(400, 0.03), blocks)
    assert smallest is not None
    assert smallest > MARGIN
    fresh = log_ratios(600 * blocks, 0.03, seed=1)
    found = [differs(fresh[start : start + blocks], math.log1p(smallest)) for start in range(0, len(fresh), blocks)]
    assert sum(found) / 600 > POWER - 0.04


def test_more_blocks_resolve_more_and_more_noise_resolves_less() -> None:
    quiet, loud = log_ratios(300, 0.02), log_ratios(300, 0.1)
    few, many, noisy = detectable(quiet, 6), detectable(quiet, 30), detectable(loud, 30)
    assert few is not None
    assert many is not None
    assert noisy is not None
    assert MARGIN < many < few
    assert many < noisy


def test_a_machine_without_noise_resolves_what_is_over_the_margin() -> None:
    assert detectable([0.0] * 50, 10) == pytest.approx(MARGIN)
    assert not differs([0.0] * 10, math.log1p(MARGIN * 0.99))
    assert differs([0.0] * 10, math.log1p(MARGIN * 1.01))


# The command.


def test_a_look_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--no-run"]) == OK
    out = capsys.readouterr().out
    assert "disturb timing (!)" in out
    assert "A/A run" not in out
    assert doctor.main(["--no-run", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told["resolution"] is None
    assert {"load", "processors", "valgrind"} <= {finding["name"] for finding in told["findings"]}


@pytest.mark.slow
def test_an_aa_run_says_what_can_be_told_apart_also_beside_another_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["--set", "data.bytes=50kB", "--set", "vocab_size=300"]
    with lock.timing():
        assert doctor.main([*small, "--repeat", "12", "--concurrent"]) == OK
    assert "against itself on stdlib, 20 pairs" in (out := capsys.readouterr().out)
    assert "With repeat=12 this machine now resolves" in out
    monkeypatch.setattr(doctor, "FEWEST_PAIRS", 2)
    assert doctor.main([*small, "--repeat", "6", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)["resolution"]
    assert told["pairs"] == 6
    assert told["sample_seconds"] > 0
    assert told["detectable"].keys() == {"CPU time", "wall time"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--repeat", "3"], USAGE, "--repeat=3 is not possible; it is a number of 6 or more"),
        (["--set", "variant=nobody"], USAGE, "nobody"),
        (["--set", "variants=heap,flat", "--set", "data.bytes=20kB"], USAGE, "an A/A run is of one cell"),
        (["--set", "variant._target_=nowhere:train"], UNMEASURED, "be compared with itself (error"),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_sentence(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.main(arguments) == code
    assert message in capsys.readouterr().err


def test_the_usual_gives_way_to_what_was_set() -> None:
    assert usual_beside([]) == ["data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60"]
    assert usual_beside(["data.path=book.txt", "limits.memory=1GB"]) == ["vocab_size=1000"]
