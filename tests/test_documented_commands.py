"""Every command and every program that a page shows runs, in the page's order, in a copy of the checkout.

Before a block of code a page may say `<!-- file: PATH -->`, which writes it there, or `<!-- not run: REASON -->`.
What is a model or a program has a test of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from planted_faults import copied

REPOSITORY = Path(__file__).parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|not run|model|program)(?:: (?P<argument>[^>]+))? -->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
REASONS = {
    "installs system packages",
    "sets up an environment",
    "needs a scheduler",
    "needs root",
    "needs valgrind, takes minutes",
    "needs .[distributed]",
    "downloads",
    "shows what there is",
    "takes minutes",
    "takes hours",
}
"""Why a command that is shown is not run; one of these, so that none is left out for any other."""
RUN = ("sh", "python")


class Block(NamedTuple):
    """A block of code of a page, with its mark and the mark's argument."""

    mark: str | None
    argument: str | None
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer(page.read_text())]


def named(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def shown(page: Path) -> bool:
    return any(block.language in RUN for block in blocks(page))


def test_every_mark_precedes_a_block_and_what_is_not_run_has_a_reason() -> None:
    for page in PAGES:
        found = blocks(page)
        marks = re.findall(r"^<!-- (?:file|not run|model|program)\b.*-->$", page.read_text(), re.MULTILINE)
        assert len(marks) == sum(block.mark is not None for block in found), page
        assert {block.argument for block in found if block.mark == "not run"} <= REASONS, page


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=named)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks(page):
        if block.mark == "file":
            assert block.argument is not None
            (checkout / block.argument).parent.mkdir(parents=True, exist_ok=True)
            (checkout / block.argument).write_text(block.code)
        if block.mark is not None or block.language not in RUN:
            continue
        command = (
            ["bash", "-euo", "pipefail", "-c"] if block.language == "sh" else [sys.executable, "-W", "error", "-c"]
        )
        done = subprocess.run([*command, block.code], cwd=checkout, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{block.code}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    shutil.rmtree(checkout)
