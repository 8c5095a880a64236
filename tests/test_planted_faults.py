"""The list of faults fits the code as it is, and a fault that nothing notices is reported."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import planted_faults
import pytest
from planted_faults import FAULTS, LEAST_CAUGHT, Fault, caught_by, place_of, plant
from workbench import CHECKOUT

FAULT = Fault("two and two are five", "return 4", "return 5")


def ends(*codes: int, printed: str = "") -> list[subprocess.CompletedProcess[str]]:
    return [subprocess.CompletedProcess([], code, printed, "") for code in codes]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with one module and the tests of its room."""
    for folder in ("harness/room", "tests/room"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "harness/room/sums.py").write_text("def four() -> int:\n    return 4\n")
    return tmp_path


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_every_fault_can_be_planted(fault: Fault) -> None:
    path = place_of(fault, CHECKOUT)
    assert fault.right != fault.wrong
    ast.parse(path.read_text().replace(fault.right, fault.wrong))


def test_every_room_has_a_fault() -> None:
    rooms = {place_of(fault, CHECKOUT).relative_to(CHECKOUT).parts[1] for fault in FAULTS}
    assert rooms == {path.parent.name for path in CHECKOUT.glob("harness/*/__init__.py")}
    assert len(FAULTS) == 25
    assert len(set(FAULTS)) == 25
    assert LEAST_CAUGHT >= 23


def test_fault_is_removed_after_the_tests(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, seen = small / "harness/room/sums.py", []
    answers = iter(ends(0, 2, 0, printed="FAILED tests/test_others.py::test_sum - assert 5 == 4\n"))

    def ended(_: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        seen.append(("return 5" in module.read_text(), "tests/room" in arguments))
        return next(answers)

    monkeypatch.setattr(planted_faults, "ended", ended)
    assert caught_by(FAULT, small) == "tests/test_others.py::test_sum"
    assert seen == [(True, True), (True, False), (False, False)]
    assert "return 4" in module.read_text()


@pytest.mark.parametrize("codes", [(0, 0), (1, 1), (2, 1), (4,)])
def test_fault_that_no_test_distinguishes_is_not_caught(
    small: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...]
) -> None:
    answers = iter(ends(*codes, printed="FAILED tests/test_sums.py::test_sum\n"))
    monkeypatch.setattr(planted_faults, "ended", lambda *_: next(answers))
    if any(codes):
        with pytest.raises(RuntimeError):
            caught_by(FAULT, small)
    else:
        assert caught_by(FAULT, small) is None


@pytest.mark.slow
def test_sample_of_faults_is_caught() -> None:
    """All of them take an hour: python tests/support/planted_faults.py."""
    sample = [FAULTS[number] for number in (0, 8, 24)]
    assert None not in plant(sample).values()
