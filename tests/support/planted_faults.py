"""Faults planted in a copy of the checkout, one after the other: does the fast suite notice each of
them?

    python tests/support/planted_faults.py              every fault, with the test that caught it
    python tests/support/planted_faults.py 3 17         these only

planted_faults.toml lists them. A fault is found by its text, anywhere in `harness/` or in the
compiled parts of `variants/`; where it is in a header, the modules that include it are built again.
The tests of its room run first, then the rest of the fast suite. A fault counts as caught if the
test that fails with it passes without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
LEAST_CAUGHT = 23
FAILED = re.compile(r"^FAILED (.*?)(?: - .*)?$", re.MULTILINE)
NOT_COPIED = ".git .venv build dist site local __pycache__ .*_cache .hypothesis *.egg-info"
PLACES = ("harness/**/*.py", "harness/**/*.hpp", "variants/native/*.hpp")
PYTEST = "-m pytest -x -q -rf --tb=no --no-header"


class Fault(NamedTuple):
    """What is wrong with it, and which text of one file becomes which."""

    what: str
    right: str
    wrong: str


class CannotPlant(Exception):
    """The text of a fault does not occur exactly once."""


LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["fault"]
FAULTS = [Fault(**fault) for fault in LISTED]


def place_of(fault: Fault, checkout: Path) -> Path:
    """The file that has the text. Raises CannotPlant unless it occurs once."""
    found: list[Path] = []
    for place in PLACES:
        for path in sorted(checkout.glob(place)):
            found += [path] * path.read_text().count(fault.right)
    if len(found) != 1:
        times = f"{fault.right!r} occurs {len(found)} times"
        raise CannotPlant(f"{fault.what}: {times}; update the list")
    return found[0]


def room_of(module: Path) -> str:
    """The folder of a module in `harness/`, `variants` for the compiled parts of variants."""
    return module.parts[1] if module.parts[0] == "harness" else module.parts[0]


def copied(folder: Path) -> Path:
    """A copy of this checkout with what is compiled."""
    ignored = shutil.ignore_patterns(*NOT_COPIED.split())
    return shutil.copytree(REPOSITORY, folder / "checkout", ignore=ignored, symlinks=True)


def ended(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a copy, up to the first failure; what it runs imports the copy."""
    command = [sys.executable, *PYTEST.split(), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "1000"}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def write(path: Path, source: str, checkout: Path) -> None:
    """Write a module with a new time, so that Python does not use what it compiled before, and
    build what includes a header.
    """
    later = max(path.stat().st_mtime, time.time()) + 2
    path.write_text(source)
    os.utime(path, (later, later))
    if path.suffix != ".py":
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=checkout, check=True, capture_output=True)


def caught_by(fault: Fault, checkout: Path) -> str | None:
    """The test that catches a fault in a copy, which is restored afterwards; None if the whole fast
    suite passes.

    Raises RuntimeError if the tests end otherwise than by passing or failing.
    """
    path = place_of(fault, checkout)
    right = path.read_text()
    module = path.relative_to(checkout)
    room = Path("tests", room_of(module))
    near = [str(name) for name in (module, room) if (checkout / name).exists()]
    near = near if module.suffix == ".py" else near[1:]

    for arguments in (near, [f"--ignore={name}" for name in near]):
        write(path, right.replace(fault.right, fault.wrong), checkout)
        try:
            ran = ended(checkout, *arguments)
        finally:
            write(path, right, checkout)
        # 2: in several processes, -x interrupts the others
        if ran.returncode in (1, 2) and FAILED.search(ran.stdout):
            return failed_in(ran.stdout, checkout)
        if ran.returncode not in (0, 5):  # 5: there was nothing to run
            ending = f"pytest ended with {ran.returncode}\n{ran.stdout}{ran.stderr}"
            raise RuntimeError(f"{fault.what}: {ending}")
    return None


def failed_in(printed: str, checkout: Path) -> str:
    """The test that failed, which passes now that the fault is gone. Raises RuntimeError if it
    still fails.
    """
    name: str = FAILED.findall(printed)[0]
    only_failed = "-n 0 --last-failed --last-failed-no-failures none"
    again = ended(checkout, *only_failed.split(), name.partition("::")[0])
    if again.returncode != 0:
        raise RuntimeError(f"{name} fails without a fault as well\n{again.stdout}")
    return name


def plant(faults: Iterable[Fault]) -> dict[Fault, str | None]:
    """Plant them one by one in a copy; returns which test caught each, None for those that none
    did.
    """
    caught = {}
    with tempfile.TemporaryDirectory() as folder:
        checkout = copied(Path(folder))
        for fault in faults:
            caught[fault] = caught_by(fault, checkout)
            line = f"{FAULTS.index(fault) + 1:2} {fault.what}: {caught[fault] or 'NOT CAUGHT'}"
            print(line, flush=True)  # noqa: T201
    return caught


def main(arguments: Sequence[str]) -> int:
    chosen = [FAULTS[int(number) - 1] for number in arguments] or FAULTS
    for fault in FAULTS:
        place_of(fault, REPOSITORY)

    tests = list(plant(chosen).values())
    missed = tests.count(None)
    print(f"{len(tests) - missed} of {len(tests)} faults are caught")  # noqa: T201
    return 0 if missed <= len(FAULTS) - LEAST_CAUGHT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
