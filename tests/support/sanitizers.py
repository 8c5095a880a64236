"""Drivers in C++, compiled with sanitizers and run over cases, and what they print."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from workbench import CHECKOUT, SUPPORT

from variants.contract import Veto
from variants.counting.character_classes import character_classes
from variants.vetoes import limits_of

HEAVIEST = {b"ab": 2**63 - 1}
"""A table whose sums over words' ends pass 63 bits, though no pair's count does."""


def case_text(numbers: Sequence[object], table: Mapping[bytes, int]) -> str:
    """A case as the drivers read it: a line of numbers, the number of words first, then a line for
    each word.
    """
    lines = [
        " ".join(map(str, [len(table), *numbers])),
        *(f"{weight} {word.hex()}" for word, weight in table.items()),
    ]
    return "".join(line + "\n" for line in lines)


def veto_numbers(veto: Veto | None) -> list[object]:
    """The rules of a veto as the drivers read them."""
    limits = limits_of(veto)
    rules = limits.superbpe, limits.whole_characters, limits.most_bytes, limits.most_characters
    tokens = [part for token in limits.protected for part in (1, token.hex())]
    return [*map(int, rules), len(limits.protected), *tokens]


def compiled(
    driver: str, folder: Path, *flags: str, compiler: str = os.environ.get("CXX", "c++")
) -> Path:
    """Compile tests/support/`driver`, unless the folder has it, and return the program; skips the
    test where this machine cannot.
    """
    if shutil.which(compiler) is None:
        pytest.skip(f"needs the compiler {compiler}: apt-get install g++ or g++-aarch64-linux-gnu")
    program = folder / f"{Path(driver).stem}-{compiler}{''.join(flags).replace('/', '')}"
    if program.exists():
        return program
    options = [
        "-std=c++17",
        "-O1",
        "-g1",
        "-pthread",
        *flags,
        f"-I{CHECKOUT}/variants/native",
        f"-I{CHECKOUT}/harness/proof/native",
    ]
    built = subprocess.run(
        [compiler, *options, str(SUPPORT / driver), "-o", program], capture_output=True, text=True
    )
    if "cannot find" in built.stderr:
        pytest.skip(f"this compiler has no library for {' '.join(flags)}")
    assert built.returncode == 0, built.stderr
    return program


def classes_in(folder: Path) -> Path:
    """A file of Unicode's classes, as the drivers read them."""
    path = folder / "classes"
    path.write_bytes(b"".join(character_classes()))
    return path


def sanitized(driver: str, sanitizers: str, folder: Path, *flags: str) -> Path:
    return compiled(driver, folder, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", *flags)


def lines_of(program: Path, *files: Path) -> list[str]:
    return output_of(program, *files).splitlines()


def output_of(*command: str | Path) -> str:
    """What a driver prints; fails if it does not end well, or a sanitizer says anything."""
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0), ended.stdout
    return ended.stdout
