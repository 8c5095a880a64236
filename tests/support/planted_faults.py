"""Faults planted in a copy of the checkout, one after the other: does the fast suite notice each of
them?

    python tests/support/planted_faults.py              every fault, with the test that caught it
    python tests/support/planted_faults.py 3 17         these only

planted_faults.toml lists them, each with the file of tests that has to notice it. A fault is found
by its text, anywhere in `harness/` or in the compiled parts of `variants/`; where it is in a header,
the modules that include it are built again. It counts as caught if a fast test of that file fails
with it, or brings the interpreter down, and the file passes without it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rows import rows_of
from workbench import CHECKOUT, ran

FAILED = re.compile(r"^FAILED (.*?)(?: - .*)?$", re.MULTILINE)
NOT_COPIED = ".git .venv build dist site local __pycache__ .*_cache .hypothesis *.egg-info"
PLACES = ("harness/**/*.py", "harness/**/*.hpp", "variants/native/*.hpp")
PYTEST = "-m pytest -n 0 -x -q -rf --tb=no --no-header"


class Fault(NamedTuple):
    """What is wrong with it, which text of one file becomes which, and who notices."""

    what: str
    right: str
    wrong: str
    tests: str


FAULTS = [Fault(**fault) for fault in rows_of(Path(__file__).with_suffix(".toml"))]


def place_of(fault: Fault, checkout: Path) -> Path:
    """The file that has the text. Raises RuntimeError unless it occurs once."""
    found: list[Path] = []
    for place in PLACES:
        for path in sorted(checkout.glob(place)):
            found += [path] * path.read_text().count(fault.right)
    if len(found) != 1:
        times = f"{fault.right!r} occurs {len(found)} times"
        raise RuntimeError(f"{fault.what}: {times}; update the list")
    return found[0]


def copied(folder: Path) -> Path:
    """A copy of this checkout with what is compiled."""
    ignored = shutil.ignore_patterns(*NOT_COPIED.split())
    return shutil.copytree(CHECKOUT, folder / "checkout", ignore=ignored, symlinks=True)


def ended(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a copy, up to the first failure; what it runs imports the copy."""
    variables = {"PYTHONPATH": str(checkout), "COLUMNS": "1000"}
    return ran(checkout, *PYTEST.split(), *arguments, variables=variables)


def build(checkout: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)


def caught_by(fault: Fault, checkout: Path) -> str | None:
    """The test that catches a fault in a copy of a checkout; None if all of the file's tests pass.

    Raises RuntimeError if the tests fail without it as well, or cannot be run.
    """
    is_compiled = place_of(fault, checkout).suffix != ".py"
    if is_compiled:  # once; what a copy has of it is compiled again where the fault is
        build(checkout)
    with tempfile.TemporaryDirectory() as folder:
        faulty = shutil.copytree(checkout, Path(folder, "faulty"), symlinks=True)
        place = place_of(fault, faulty)
        place.write_text(place.read_text().replace(fault.right, fault.wrong))
        if is_compiled:
            build(faulty)
        ran = ended(faulty, fault.tests)
    if ran.returncode == 0:
        return None

    failed = FAILED.findall(ran.stdout)
    if not failed and ran.returncode > 0:
        ending = f"pytest ended with {ran.returncode}\n{ran.stdout}{ran.stderr}"
        raise RuntimeError(f"{fault.what}: {ending}")
    name = failed[0] if failed else fault.tests

    again = ended(checkout, name)
    if again.returncode != 0:
        raise RuntimeError(f"{name} fails without a fault as well\n{again.stdout}")
    return str(name)


def main(arguments: Sequence[str]) -> int:
    numbers = list(map(int, arguments)) or range(1, len(FAULTS) + 1)
    tests = []
    with tempfile.TemporaryDirectory() as folder:
        checkout = copied(Path(folder))
        for number in numbers:
            fault = FAULTS[number - 1]
            tests.append(caught_by(fault, checkout))
            print(f"{number:2} {fault.what}: {tests[-1] or 'NOT CAUGHT'}", flush=True)  # noqa: T201

    print(f"{len(tests) - tests.count(None)} of {len(tests)} faults are caught")  # noqa: T201
    return int(None in tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
