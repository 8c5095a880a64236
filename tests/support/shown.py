"""What pages show: commands, and blocks of code."""

import re
from pathlib import Path

BLOCK = re.compile(r"^```sh\n(?!#!)(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:python -m |bpe-harness )[^`]+)`")


def commands(page: Path) -> list[str]:
    """Blocks, and commands within sentences.

    A script for a scheduler is a file, which nobody types.
    """
    text = page.read_text().replace(".venv/bin/", "")
    inline = [" ".join(code.split()) for code in INLINE.findall(text)]
    return BLOCK.findall(text) + [code.replace("\\|", "|") for code in inline]


def blocks_after(page: Path, before: str) -> list[str]:
    """The blocks of code before which the page has what matches an expression."""
    return re.findall(rf"(?ms){before}(.*?)^```", page.read_text())
