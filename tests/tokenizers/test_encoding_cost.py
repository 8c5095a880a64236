"""What encoding loads, and what memory it takes: not more for a longer text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tokenizers_made import SPECIALS, TEXT, learned

from harness.tokenizers.model import Tokenizer

ENCODE_FILE = """
import sys
from harness.tokenizer import main, train

main(["encode", "saved", "--data", "text.txt", "--output", "ids.npy"])
print({"hydra", "omegaconf", "pandas"} & {*sys.modules})
"""
ENCODE_LINES = """
import resource
from itertools import chain, repeat
from harness.tokenizers.model import load

lines = [f"the cat {number} sat on the mat\\n" for number in range(3000)]
tokenizer = load("saved")
for times in (10, 160):
    parts = chain.from_iterable(repeat(lines, times))
    count = sum(1 for _ in tokenizer.encode_iterable(parts))
    print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def printed(folder: Path, code: str) -> list[str]:
    """The lines that a process prints in a folder with a tokenizer and a text."""
    Tokenizer(learned("gpt2", SPECIALS)).save(folder / "saved")
    (folder / "text.txt").write_text(TEXT)
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, cwd=folder, text=True).splitlines()


def test_encoding_a_file_composes_no_configuration(tmp_path: Path) -> None:
    assert printed(tmp_path, ENCODE_FILE)[-1] == "set()"
    assert (tmp_path / "ids.npy").exists()


def test_an_iterable_is_encoded_in_bounded_memory(tmp_path: Path) -> None:
    """As the test of CS336's `encode_iterable`, with a text that is sixteen times as long."""
    short, long = (line.split() for line in printed(tmp_path, ENCODE_LINES))
    assert int(long[0]) == 16 * int(short[0])
    assert int(long[1]) - int(short[1]) < 3 * 1024
