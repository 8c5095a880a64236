"""Faults planted in a copy of the checkout, one after the other: does the fast suite notice each of
them?

    python tests/support/planted_faults.py              every fault, with the test that caught it
    python tests/support/planted_faults.py 3 17         these only

A fault is found by its text, anywhere in `harness/`. The tests of its room run first, then the rest
of the fast suite. A fault counts as caught if the test that fails with it passes without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
LEAST_CAUGHT = 23
FAILED = re.compile(r"^FAILED (.*?)(?: - .*)?$", re.MULTILINE)
NOT_COPIED = (
    ".git",
    ".venv",
    "build",
    "dist",
    "site",
    "local",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "*.egg-info",
)


class Fault(NamedTuple):
    """What is wrong with it, and which text of one file becomes which."""

    what: str
    right: str
    wrong: str


FAULTS = (
    # The measured process, and what it leaves.
    Fault(
        "merges that are cut short are taken for whole", "if position != len(content):", "if False:"
    ),
    Fault(
        "words pass for pre-tokens",
        '"pre_tokens": sum(word_counts.counts)',
        '"pre_tokens": len(word_counts)',
    ),
    # What every room needs.
    Fault(
        "a ratio is upside down",
        "getattr(ours, name) / getattr(theirs, name)",
        "getattr(theirs, name) / getattr(ours, name)",
    ),
    Fault(
        "half an interval within the margin is enough",
        "low >= 1 / (1 + MARGIN) and",
        "low >= 1 / (1 + MARGIN) or",
    ),
    Fault(
        "half a file is left behind",
        "            finally:\n                shutil.rmtree(folder)",
        "            finally:\n                pass",
    ),
    # One measurement.
    Fault(
        "phases may claim more than the whole",
        "if phases > total + CLOCK_TOLERANCE_SECONDS:",
        "if False:",
    ),
    Fault(
        "an answer may lack a figure",
        "    total: Amount\n    tallies: Annotated[dict[Text, Count], Few]\n    interpreter: Text\n"
        "    takes_threads: bool | None\n",
        "    total: Amount = 0.0\n    tallies: Annotated[dict[Text, Count], Few] = {}\n"
        "    interpreter: Text = ''\n    takes_threads: bool | None = None\n",
    ),
    # Corpora.
    Fault("a remembered digest outlives a change of its file", "|{status.st_size}|{times}|", "|"),
    Fault("blank documents are counted", "+= bool(content[first : match.start()].strip())", "+= 1"),
    Fault(
        "a place in a member is reported as one in the whole",
        "{whole_offset - part.start}",
        "{whole_offset}",
    ),
    # Tokenizers.
    Fault(
        "ranks are written that tiktoken merges otherwise",
        "if by_rank != sorted(by_rank):",
        "if False:",
    ),
    Fault(
        "the last of equal pairs is merged first",
        "heapq.heapify(heap)",
        "heap.sort(key=lambda at: (at[0], -at[1]))",
    ),
    # What is right.
    Fault("pairs overlap in the true counts", "= positions[since % 2 == 0]", "= positions"),
    Fault(
        "every tie-break would have made any choice",
        "items() if merge == self.merge",
        "items() if True",
    ),
    Fault(
        "a list may end too early",
        "judged == (len(listed.merges), False)",
        "judged[0] == len(listed.merges)",
    ),
    Fault("more merges than requested pass", "if len(listed.merges) > listed.needed:", "if False:"),
    Fault(
        "words of a foreign counter go unchecked",
        "if cell.counter.name in registry.counters():",
        "if True:",
    ),
    # A run.
    Fault(
        "words of an earlier run are taken all the time",
        "cell.reading.file.table or not session.timed",
        "True",
    ),
    Fault(
        "an estimate from far away is as certain as any",
        "LEVEL_DOUBT * share**-EXPONENT_DOUBT",
        "LEVEL_DOUBT",
    ),
    # Records, and what they show.
    Fault(
        "an interrupted block is compared",
        "whole = self._block_of(record) in self.closed",
        "whole = True",
    ),
    Fault(
        "special tokens are forgotten",
        "size - 256 - len(self.record.cell.special_tokens)",
        "size - 256",
    ),
    Fault(
        "rows that made fewer merges are compared", "if row.merges == base.merges or", "if True or"
    ),
    # The gate.
    Fault(
        "a regression need not leave out 0",
        "return low is not None and low > 1",
        "return low is not None",
    ),
    Fault("merges that nobody proved pass", "elif identity.kind not in PROVED:", "elif False:"),
    Fault(
        "layouts of memory excuse nothing",
        "return min(head) / max(base) - 1",
        "return max(head) / min(base) - 1",
    ),
)


class CannotPlant(Exception):
    """The text of a fault does not occur exactly once."""


def place_of(fault: Fault, checkout: Path) -> Path:
    """The file of `harness/` that has the text. Raises CannotPlant unless it occurs once."""
    files = [
        (path, path.read_text().count(fault.right))
        for path in sorted((checkout / "harness").rglob("*.py"))
    ]
    if (times := sum(number for _, number in files)) != 1:
        raise CannotPlant(
            f"{fault.what}: {fault.right!r} occurs {times} times in harness/; update the list"
        )
    return next(path for path, number in files if number)


def nearest_tests(module: Path, checkout: Path) -> list[str]:
    """A module's doctests, and the folder of its room's tests if there is one."""
    room = checkout / "tests" / module.parent.name
    return [str(path.relative_to(checkout)) for path in (module, room) if path.exists()]


# Planting and catching


def copied(folder: Path) -> Path:
    """A copy of this checkout with what is compiled."""
    copy = folder / "checkout"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    return copy


def ended(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a copy, up to the first failure; what it runs imports the copy."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-rf",
        "--tb=no",
        "--no-header",
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "1000"}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def write(path: Path, source: str) -> None:
    """Write a module with a new time, so that Python does not use what it compiled before."""
    later = path.stat().st_mtime + 2
    path.write_text(source)
    os.utime(path, (later, later))


def caught_by(fault: Fault, checkout: Path) -> str | None:
    """The test that catches a fault in a copy, which is restored afterwards; None if the whole fast
    suite passes.

    Raises RuntimeError if the tests end otherwise than by passing or failing.
    """
    path = place_of(fault, checkout)
    right, near = path.read_text(), nearest_tests(path, checkout)
    for arguments in (near, [f"--ignore={name}" for name in near]):
        write(path, right.replace(fault.right, fault.wrong))
        try:
            ran = ended(checkout, *arguments)
        finally:
            write(path, right)
        # 2: in several processes, -x interrupts the others
        if ran.returncode in (1, 2) and FAILED.search(ran.stdout):
            return failed_in(ran.stdout, checkout)
        if ran.returncode not in (0, 5):  # 5: there was nothing to run
            raise RuntimeError(
                f"{fault.what}: pytest ended with {ran.returncode}\n{ran.stdout}{ran.stderr}"
            )
    return None


def failed_in(printed: str, checkout: Path) -> str:
    """The test that failed, which passes now that the fault is gone. Raises RuntimeError if it
    still fails.
    """
    name: str = FAILED.findall(printed)[0]
    again = ended(
        checkout,
        "-n",
        "0",
        "--last-failed",
        "--last-failed-no-failures",
        "none",
        name.partition("::")[0],
    )
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
    chosen = [FAULTS[int(number) - 1] for number in arguments] or list(FAULTS)
    for fault in FAULTS:
        place_of(fault, REPOSITORY)
    caught = plant(chosen)
    number = sum(test is not None for test in caught.values())
    print(f"{number} of {len(caught)} faults are caught")  # noqa: T201
    return 0 if len(caught) - number <= len(FAULTS) - LEAST_CAUGHT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
