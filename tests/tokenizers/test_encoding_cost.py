"""What encoding loads, and what memory it takes: not more for a longer text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers_made import SPECIALS, TEXT, learned

from harness.tokenizers.model import Tokenizer

MEGABYTE = 1 << 20
SLOW_TO_IMPORT = ("hydra", "omegaconf", "pandas")
LOADED = (
    "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
)

ENCODE_LINES = """
import resource, sys
from itertools import chain, repeat
from pathlib import Path
from harness.tokenizers.model import load

tokenizer, size = load(sys.argv[1]), int(sys.argv[2])
lines = Path(sys.argv[3]).read_text().splitlines(keepends=True)
count = sum(1 for _ in tokenizer.encode_iterable(chain.from_iterable(repeat(lines, size))))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, count)
"""


def printed(*arguments: object) -> str:
    ended = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Tokenizer(learned("gpt2", SPECIALS)).save(tmp_path / "saved")
    return tmp_path / "saved"


def test_encoding_a_file_composes_no_configuration(saved: Path) -> None:
    text, output = saved.parent / "small.txt", saved.parent / "ids.npy"
    text.write_text(TEXT)
    encode = ["encode", str(saved), "--data", str(text), "--output", str(output)]
    command = f"from harness.tokenizer import main; main({encode})"
    for code in (command, "from harness.tokenizer import train"):
        loaded = json.loads(printed("-c", f"{code}; {LOADED}").splitlines()[-1])
        assert "harness" in loaded
        assert {*SLOW_TO_IMPORT} & {*loaded} == set()
    assert output.exists()


def test_an_iterable_is_encoded_in_bounded_memory(saved: Path) -> None:
    """As the test of CS336's `encode_iterable`, with a text that is sixteen times as long."""
    text = saved.parent / "lines.txt"
    text.write_text("".join(f"the cat {number} sat on the mat\n" for number in range(3000)))
    short, long = (
        list(map(int, printed("-c", ENCODE_LINES, saved, times, text).split()))
        for times in (20, 320)
    )
    assert long[1] == 16 * short[1]
    assert (long[0] - short[0]) * 1024 < 4 * MEGABYTE
