"""Faults planted in a copy of the checkout, one after the other: does the fast suite notice each of
them?

    python tests/support/planted_faults.py              every fault, with the test that caught it
    python tests/support/planted_faults.py 3 17         these only

planted_faults.toml lists them, each with the file of tests that has to notice it. A fault is found
by its text, anywhere in `harness/` or in the compiled parts of `variants/`; where it is in a header,
the modules that include it are built again. It counts as caught if a fast test of that file fails
with it, or brings the interpreter down, and the file passes without it.
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
from workbench import ran

REPOSITORY = Path(__file__).resolve().parents[2]
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


LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["fault"]
FAULTS = [Fault(**fault) for fault in LISTED]


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
    return shutil.copytree(REPOSITORY, folder / "checkout", ignore=ignored, symlinks=True)


def ended(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a copy, up to the first failure; what it runs imports the copy."""
    variables = {"PYTHONPATH": str(checkout), "COLUMNS": "1000"}
    return ran(checkout, *PYTEST.split(), *arguments, variables=variables)


def write(path: Path, content: bytes) -> None:
    """Write a file with a new time, so that Python does not use what it compiled before."""
    later = max(path.stat().st_mtime, time.time()) + 2
    path.write_bytes(content)
    os.utime(path, (later, later))


def caught_by(fault: Fault, checkout: Path) -> str | None:
    """The test that catches a fault in a copy, which is restored afterwards; None if all of the
    file's tests pass.

    Raises RuntimeError if the tests fail without it as well, or cannot be run.
    """
    place = place_of(fault, checkout)
    kept = {path: path.read_bytes() for path in [place, *checkout.rglob("*.so")]}
    write(place, place.read_text().replace(fault.right, fault.wrong).encode())
    if place.suffix != ".py":
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    ran = ended(checkout, fault.tests)
    for path, content in kept.items():
        write(path, content)
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
    tests = list(plant(chosen).values())
    print(f"{len(tests) - tests.count(None)} of {len(tests)} faults are caught")  # noqa: T201
    return int(None in tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
