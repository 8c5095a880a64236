"""The doctor: what disturbs timing here, what can be done about it, and the smallest difference
that is found.
"""

from __future__ import annotations

import re
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomllib
from rows import rows_beside, write_files

from harness import doctor
from harness.common.errors import OK, UNMEASURED
from harness.measure import machine, quiet
from harness.measure.quiet import Condition, conditions

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


@pytest.mark.parametrize("row", rows_beside(__file__, "disturbances.toml"))
def test_a_disturbance_has_advice(examined: Examine, row: dict[str, Any]) -> None:
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
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = "data=stdlib", "data.bytes=50kB", "vocab_size=300", "concurrent=true"
    monkeypatch.setattr(doctor, "USUAL", usual)
    with quiet.timing():
        assert doctor.main(["--repeat", "12"]) == OK
    out = capsys.readouterr().out
    assert re.search(
        r"against itself on stdlib, 12 pairs of \d+ ms: [\d.]+ \([\d.]+ to [\d.]+\) by net time",
        out,
    )
    assert re.search(r"Do not rank what is within [\d.]+ % of each other", out)

    monkeypatch.setattr(doctor, "USUAL", (*usual, "variant._target_=json:dumps"))
    assert doctor.main(["--repeat", "6"]) == UNMEASURED
    assert "be compared with itself (error" in capsys.readouterr().err
