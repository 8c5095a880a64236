"""The list of faults fits the code as it is, and a fault that nothing notices is reported."""

import ast
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from planted_faults import FAULTS, Fault, caught_by, copied, place_of
from rows import write_files
from workbench import CHECKOUT


def test_every_fault_can_be_planted_and_every_room_has_one() -> None:
    rooms, compiled = set(), 0
    for fault in FAULTS:
        path = place_of(fault, CHECKOUT)
        rooms.add(path.relative_to(CHECKOUT).parts[1])
        assert fault.right != fault.wrong
        assert (CHECKOUT / fault.tests).exists()
        if path.suffix == ".py":
            ast.parse(path.read_text().replace(fault.right, fault.wrong))
        compiled += path.suffix == ".hpp"

    assert rooms >= {path.parent.name for path in CHECKOUT.glob("harness/*/__init__.py")}
    assert compiled >= 4
    assert len(set(FAULTS)) >= 29


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checked", "caught"), [("== 4", "tests/room/test_four.py::test_four"), ("> 0", None)]
)
def test_a_fault_is_caught_by_the_test_that_fails_only_with_it(
    tmp_path: Path, checked: str, caught: str | None
) -> None:
    test = f"from harness.room.sums import four\n\ndef test_four():\n    assert four() {checked}\n"
    files = {"harness/room/sums.py": "def four():\n    return 4\n", "harness/__init__.py": ""}
    write_files(tmp_path, {**files, "tests/room/test_four.py": test})
    fault = Fault("two and two are five", "return 4", "return 5", "tests/room/test_four.py")
    assert caught_by(fault, tmp_path) == caught


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".py", ".hpp"])
def test_faults_drawn_by_the_date_are_caught(tmp_path: Path, kind: str) -> None:
    """All of them take half an hour, once a week: python tests/support/planted_faults.py."""
    of_kind = [fault for fault in FAULTS if place_of(fault, CHECKOUT).suffix == kind]
    drawn = random.Random(datetime.now(UTC).toordinal()).sample(of_kind, 3)
    checkout = copied(tmp_path)
    assert [fault.what for fault in drawn if caught_by(fault, checkout) is None] == []
