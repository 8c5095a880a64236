"""Commands of the pages mean the same in zsh, typed into a terminal, as in bash.

zsh is the shell of macOS. Typed into it, `#` starts no comment, and an unquoted bracket is a
pattern that has to match a file.
"""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rows import write_files
from shown import commands
from workbench import CHECKOUT

PAGES = sorted(
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "results/**/*.md")
    for path in CHECKOUT.glob(pattern)
)
PROGRAMS = (
    "python python3 bpe-harness pip make git g++ apt-get gzip zcat sbatch sed taskset valgrind"
    " source pre-commit py-spy"
)
SHOW = f"""
for program in {PROGRAMS}; do
    eval "$program() {{ printf '<%s>' $program \\"\\$@\\"; echo; }}"
done
"""
"""Functions in place of the programs: each prints the words that it was given."""
FILES = ("raw:a.gz", "raw:texts/a.txt.gz", "results/sweep/x/records.jsonl")
"""What the patterns of the commands match."""


def words_in(shell: str, command: str, folder: Path) -> str:
    """What a shell gives to the programs of a command, and what patterns match no file."""
    done = subprocess.run(
        [*shell.split(), "-c", f"{SHOW}\n{command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
    )
    return done.stdout + "\n".join(re.findall(".*no matches.*", done.stderr))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page)],
    ids=lambda page: page.stem + page.parent.name,
)
def test_commands_of_a_page_mean_the_same_in_zsh(page: Path, tmp_path: Path) -> None:
    if shutil.which("zsh") is None and "CI" not in os.environ:
        pytest.skip("zsh is not installed: apt-get install zsh")
    write_files(tmp_path, dict.fromkeys(FILES, ""))
    for command in commands(page):
        in_bash = words_in("bash --norc", command, tmp_path)
        assert words_in("zsh -f -i", command, tmp_path) == in_bash, command
        assert re.search(r"(^|\s)#", re.sub(r"'[^']*'", "", command)) is None, command


def test_advice_of_a_message_can_be_pasted_into_zsh() -> None:
    """A message that says which list to set quotes it."""
    bare = []
    for path in sorted((CHECKOUT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                advice = re.findall(r"(?:set|or|pass) [a-z_.]+=\[", node.value)
                bare += [f"{path.name}: {text}" for text in advice]
    assert bare == []
