"""Faults planted in a copy of the checkout, one after the other: does the fast suite notice each of them?

    python tests/support/planted_faults.py              every fault, with the test that caught it
    python tests/support/planted_faults.py 3 17         these only

A fault is found by its text, wherever in `harness/` that stands now. Which tests catch it is said nowhere: those files
of tests run first that import the module with the fault, nearest first, and then all the rest of the fast suite. A
fault counts as caught if the test that fails with it passes without it.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
LEAST_CAUGHT = 23
MOST_NEAR = 30
FAILED = re.compile(r"^FAILED (.*?)(?: - .*)?$", re.MULTILINE)
NOT_COPIED = (".git", ".venv", "build", "dist", "site", "local", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")


class Fault(NamedTuple):
    """What is wrong with it, and which text of one file becomes which."""

    what: str
    right: str
    wrong: str


FAULTS = (
    # The measured process, and what it leaves.
    Fault("merges that are cut short are taken for whole", "if len(tokens[-1]) != length:", "if False:"),
    Fault(
        "words are told in place of pre-tokens",
        '"pre_tokens": sum(sum(chunk) for chunk in chunks_of(word_counts.counts))',
        '"pre_tokens": len(word_counts)',
    ),
    # What every room needs.
    Fault("a ratio is upside down", "[math.log(clock(ours) / clock(theirs))", "[math.log(clock(theirs) / clock(ours))"),
    Fault(
        "half an interval within the margin is enough to call two times the same",
        "return low >= 1 / (1 + MARGIN) and high",
        "return low >= 1 / (1 + MARGIN) or high",
    ),
    Fault(
        "half a file stays beside the one that could not be written",
        "os.close(held)\n        shutil.rmtree(folder)",
        "os.close(held)",
    ),
    # One measurement.
    Fault("phases may claim more than the whole", "if phases > total + CLOCK_TOLERANCE_SECONDS:", "if False:"),
    Fault("an answer may lack a figure", "Measured if has_figures else Failed", "dict if has_figures else Failed"),
    # Corpora.
    Fault("a remembered digest outlives a change of its file", "|{status.st_size}|{times}|", "|"),
    Fault(
        "blank documents are counted as documents",
        "number += bool(content[first : match.start()].strip())",
        "number += 1",
    ),
    Fault("a place in a member is told as one in the whole", "offset - part.start + part.at", "offset + part.at"),
    # Tokenizers.
    Fault("two ranks of one token are taken", "if token in ranks:", "if False:"),
    Fault("the last of equal pairs is merged first", "found.index(rank)", "len(found) - 1 - found[::-1].index(rank)"),
    # What is right.
    Fault("pairs overlap in the true counts", "every_second: Array = places[since % 2 == 0]", "kept: Array = places"),
    Fault("lists that part by a tie are called wrong", "BY_TIES if", "WRONG if"),
    Fault("a right beginning proves what follows it", "or len(right.merges) >= claimed.needed", "or True"),
    Fault("more merges than requested pass", "if len(claimed.merges) > claimed.needed:", "if False:"),
    Fault("the words of a foreign counter go unchecked", "(ours and not differ)", "not differ"),
    # A run.
    Fault(
        "words of an earlier run are taken where their time is wanted",
        "if not self.timed and (words := store.words_of(cell.reading)) is not None:",
        "if (words := store.words_of(cell.reading)) is not None:",
    ),
    Fault("an estimate from far away is as certain as any", "LEVEL_DOUBT * share**-EXPONENT_DOUBT", "LEVEL_DOUBT"),
    # Records, and what they show.
    Fault(
        "a block that was cut short is compared",
        'record["block_whole"] = _block(record) in self.closed',
        'record["block_whole"] = True',
    ),
    Fault(
        "special tokens are forgotten among the merges asked for",
        'vocab_size - 256 - len(self.record.get("special_tokens") or ())',
        "vocab_size - 256",
    ),
    Fault(
        "rows that made fewer merges are compared",
        "if row.merges != base.merges and None not in",
        "if False and None not in",
    ),
    # The gate.
    Fault("a regression need not leave out 0", "if slower.low is None or slower.low <= 0:", "if slower.low is None:"),
    Fault("merges that nobody proved pass", 'if identity["kind"] not in PROVED:', "if False:"),
    Fault("layouts of memory excuse nothing", "return min(head) / max(base) - 1", "return max(head) / min(base) - 1"),
)


class CannotPlant(Exception):
    """The text of a fault stands nowhere, or in several places."""


def place_of(fault: Fault, checkout: Path) -> Path:
    """The one file of `harness/` that has the text. Raises CannotPlant if there is none, or it is not told apart."""
    files = [path for path in sorted((checkout / "harness").rglob("*.py")) for _ in range(times(fault, path))]
    if len(files) != 1:
        raise CannotPlant(f"{fault.what}: {fault.right!r} stands {len(files)} times in harness/; mend the list")
    return files[0]


def times(fault: Fault, path: Path) -> int:
    return path.read_text().count(fault.right)


# Which tests are near


def nearest_tests(module: Path, checkout: Path) -> list[str]:
    """A module's doctests, then the files of tests that import it, those that import little else first.

    Behind them come those that import what imports it.
    """
    imports = {
        path: set(imports_of(path)) for folder in ("harness", "tests") for path in (checkout / folder).rglob("*.py")
    }
    ours = {path: sum(other.startswith("harness.") for other in others) for path, others in imports.items()}
    names, near = {name_of(module, checkout)}, [module]
    for _ in range(2):
        users = {path for path, others in imports.items() if any(is_of(other, names) for other in others)}
        tests = [path for path in users - set(near) if path.name.startswith("test_")]
        near += sorted(tests, key=lambda path: (ours[path], path))
        names = {name_of(path, checkout) for path in users if "harness" in path.relative_to(checkout).parts}
    return [str(path.relative_to(checkout)) for path in near[:MOST_NEAR]]


def is_of(imported: str, names: set[str]) -> bool:
    """Whether what is imported is one of these modules, or lies in one."""
    return imported in names or imported.rpartition(".")[0] in names


def name_of(module: Path, checkout: Path) -> str:
    return ".".join(module.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# Planting and catching


def copied(folder: Path) -> Path:
    """A copy of this checkout with what is compiled."""
    copy = folder / "checkout"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    return copy


def ended(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a copy, up to the first failure; what it runs imports the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=no", "--no-header", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "1000"}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def write(path: Path, source: str) -> None:
    """Write a module so that nothing compiled of it is taken for it: not of one size and second with what it was."""
    later = path.stat().st_mtime + 2
    path.write_text(source)
    os.utime(path, (later, later))


def caught_by(fault: Fault, checkout: Path) -> str | None:
    """The test that catches a fault in a copy, which is mended afterwards; None if the whole fast suite passes.

    Raises RuntimeError where the tests end otherwise than by passing or failing.
    """
    path = place_of(fault, checkout)
    right = path.read_text()
    near = nearest_tests(path, checkout)
    rest = [f"--ignore={name}" for name in near]
    for arguments in (["-n", "0", *near], rest):
        write(path, right.replace(fault.right, fault.wrong))
        try:
            ran = ended(checkout, *arguments)
        finally:
            write(path, right)
        if ran.returncode in (1, 2) and FAILED.search(ran.stdout):  # 2: in several processes, -x interrupts the others
            return failed_in(ran.stdout, checkout)
        if ran.returncode not in (0, 5):  # 5: there was nothing to run
            raise RuntimeError(f"{fault.what}: pytest ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return None


def failed_in(printed: str, checkout: Path) -> str:
    """The test that failed, which passes now that the fault is gone. Raises RuntimeError if it fails as well."""
    name: str = FAILED.findall(printed)[0]
    again = ended(checkout, "-n", "0", "--last-failed", "--last-failed-no-failures", "none", name.partition("::")[0])
    if again.returncode != 0:
        raise RuntimeError(f"{name} fails without a fault as well\n{again.stdout}")
    return name


def plant(faults: Iterable[Fault]) -> dict[Fault, str | None]:
    """Plant them one by one in a copy; returns which test caught each, None for those that none did."""
    caught = {}
    with tempfile.TemporaryDirectory() as folder:
        checkout = copied(Path(folder))
        for fault in faults:
            caught[fault] = caught_by(fault, checkout)
            print(f"{FAULTS.index(fault) + 1:2} {fault.what}: {caught[fault] or 'NOT CAUGHT'}", flush=True)  # noqa: T201
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
