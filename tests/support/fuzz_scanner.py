"""python tests/support/fuzz_scanner.py: a coverage-guided fuzzer over the compiled scanner, repeatable by its seed.

libFuzzer (clang's) grows texts that reach new code of the scanner; scanner_fuzzer.cpp scans each of them on every path
of this machine, in one range and in several, and holds the words against a slow reference of its own. The texts that
were kept for what they reach are then counted by `serial` as well. The exit code is 0 if nothing differs, 21 with a
file that shows the difference, 22 without clang++.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
HEADERS = SUPPORT.parents[1] / "variants" / "native"
sys.path[:0] = [str(SUPPORT)]

import scanned_texts  # noqa: E402 - found once the tests' folder is looked in

from harness.common.errors import MISMATCH, OK, UNMEASURED  # noqa: E402
from variants.counting import character_classes  # noqa: E402

LONGEST_TEXT = 1 << 16
SETTINGS = 6  # the bytes before the text that say how to scan it


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python tests/support/fuzz_scanner.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--bytes", type=int, default=100_000_000, help="of text to scan (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--texts", type=Path, help="a folder of texts to start from, where new ones are kept as well")
    arguments = parser.parse_args(argv)
    compiler = shutil.which("clang++")
    if compiler is None:
        print("the fuzzer is built with clang++, which is not here: apt-get install clang", file=sys.stderr)  # noqa: T201
        return UNMEASURED
    with tempfile.TemporaryDirectory() as folder:
        texts = arguments.texts or Path(folder) / "texts"
        code = fuzz(compiler, Path(folder), texts, arguments.bytes, arguments.seed)
        return code or held_against_serial(Path(folder) / "text", texts, arguments.seed)


def fuzz(compiler: str, folder: Path, texts: Path, most: int, seed: int) -> int:
    """Build the fuzzer and run it until it has scanned so many bytes."""
    program, classes = folder / "fuzzer", folder / "classes"
    build = ["-std=c++17", "-O2", "-g1", "-pthread", "-fsanitize=fuzzer", f"-I{HEADERS}"]
    subprocess.run([compiler, *build, str(SUPPORT / "scanner_fuzzer.cpp"), "-o", str(program)], check=True)
    classes.write_bytes(b"".join(character_classes.character_classes()))
    texts.mkdir(parents=True, exist_ok=True)
    write_first_texts(texts, seed)
    how = (f"-seed={seed}", f"-max_len={LONGEST_TEXT}", "-len_control=0", "-reduce_inputs=0", "-verbosity=0")
    environment = {**os.environ, "SCANNER_CLASSES": str(classes), "SCANNER_BYTES": str(most)}
    differing = f"-artifact_prefix={Path.cwd()}/scanner-"
    fuzzed = subprocess.run([str(program), *how, differing, str(texts)], env=environment, check=False)
    return OK if fuzzed.returncode == 0 else MISMATCH


def write_first_texts(texts: Path, seed: int) -> None:
    """What the fuzzer begins with: texts of pieces that matter, short and long, a setting before each."""
    chance = random.Random(seed)
    for number in range(300):
        content, _ = scanned_texts.random_content(chance)
        repeated = content * (LONGEST_TEXT // 4 // max(1, len(content)) if number % 3 == 0 else 1)
        (texts / f"first-{number}").write_bytes(chance.randbytes(SETTINGS) + repeated)


def held_against_serial(file: Path, texts: Path, seed: int) -> int:
    """Count what the fuzzer has kept once more, by `serial` and by the scanner as Python calls it."""
    chance = random.Random(seed)
    paths = sorted(texts.iterdir())
    for path in paths:
        content = path.read_bytes()[SETTINGS:]
        special_tokens = chance.choice(scanned_texts.SPECIAL_TOKENS)
        pattern = chance.choice(scanned_texts.COMPILED)
        how = {"threads": chance.choice(scanned_texts.WIDTHS), "smallest_range": 1}
        try:
            scanned_texts.expect_definition(file, content, special_tokens, pattern, **how)
        except AssertionError:
            print(f"{path}: counted with {special_tokens}, {pattern!r} and {how}, it differs from serial")  # noqa: T201
            if path.is_relative_to(tempfile.gettempdir()):
                shutil.copy(path, ".")
            return MISMATCH
    print(f"{len(paths)} texts that reach different code: native counts them as serial does")  # noqa: T201
    return OK


if __name__ == "__main__":
    sys.exit(main())
