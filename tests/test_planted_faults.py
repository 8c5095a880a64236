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
FAILED = "FAILED tests/test_others.py::test_sum - assert 5 == 4\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with one module and the tests of its room."""
    (tmp_path / "tests/room").mkdir(parents=True)
    (tmp_path / "harness/room").mkdir(parents=True)
    (tmp_path / "harness/room/sums.py").write_text("def four() -> int:\n    return 4\n")
    return tmp_path


def test_every_fault_can_be_planted_and_every_room_has_one() -> None:
    rooms = set()
    for fault in FAULTS:
        path = place_of(fault, CHECKOUT)
        rooms.add(path.relative_to(CHECKOUT).parts[1])
        assert fault.right != fault.wrong
        ast.parse(path.read_text().replace(fault.right, fault.wrong))

    assert rooms == {path.parent.name for path in CHECKOUT.glob("harness/*/__init__.py")}
    assert len(set(FAULTS)) == 25
    assert LEAST_CAUGHT >= 23


@pytest.mark.parametrize(
    ("codes", "caught"),
    [
        ((0, 2, 0), "tests/test_others.py::test_sum"),
        ((0, 0), None),
        ((1, 1), RuntimeError),
        ((2, 1), RuntimeError),
        ((4,), RuntimeError),
    ],
)
def test_a_fault_is_caught_by_a_test_that_passes_without_it(
    small: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...], caught: object
) -> None:
    module, seen, answers = small / "harness/room/sums.py", [], iter(codes)

    def ended(_: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        seen.append(("return 5" in module.read_text(), "tests/room" in arguments))
        return subprocess.CompletedProcess([], next(answers), FAILED, "")

    monkeypatch.setattr(planted_faults, "ended", ended)
    try:
        found: object = caught_by(FAULT, small)
    except RuntimeError as error:
        found = type(error)
    assert found == caught
    assert "return 4" in module.read_text()
    if isinstance(caught, str):
        assert seen == [(True, True), (True, False), (False, False)]


@pytest.mark.slow
def test_sample_of_faults_is_caught() -> None:
    """All of them take an hour: python tests/support/planted_faults.py."""
    sample = [FAULTS[number] for number in (0, 8, 24)]
    assert None not in plant(sample).values()
