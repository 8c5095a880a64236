"""Tries what is installed, in an empty folder: train, save, load, encode, check against the engines
that are there.

    python .ci/try_wheel.py        with an interpreter that has the wheel, and nothing of the
    checkout

It ends with an error where the package lacks anything that a user would meet.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
COMPILED = (
    "_encoder", "_flat", "_grid", "_grid_boost", "_grid_dense", "_grid_std", "_scanner", "_shared", "_typed",
    "_updates", "_word_runs",
)  # fmt: skip
TEXT = "the cat sat on the mat, and the theme was: кот, 猫, קט, قط, 🐈.\n" * 50
PROGRAM = """
import harness
from harness import run
from harness.tokenizer import load
from variants.flat_file import train_bpe

vocabulary, merges = train_bpe("book.txt", 300, special_tokens=["<|endoftext|>"])
records = run(variants=["heap", "flat"], data_path="book.txt", vocab_size=300)
assert [record["status"] for record in records] == ["ok", "ok"], records
assert load("saved").merges == merges
assert load("saved").decode_text(load("saved").encode(open("book.txt").read())) == open("book.txt").read()
print(harness.__version__)
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(
            f"{' '.join(arguments)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "book.txt").write_text(TEXT)
        where = run(
            folder, "-c", "import harness, variants; print(harness.__file__, variants.__file__)"
        )
        if str(CHECKOUT) in where:
            sys.exit(f"what is installed is the checkout itself: {where}")
        saving = [
            "variant=flat",
            "counting=native",
            "data.path=book.txt",
            "vocab_size=300",
            "save=saved",
        ]
        run(folder, "-m", "harness", *saving)
        version = run(folder, "-c", PROGRAM).strip()
        told = run(folder, "-m", "harness", "--version").strip()
        if told != f"bpe-harness {version}":
            sys.exit(f"--version says {told}, the package {version}")
        print(run(folder, "-m", "harness.tokenizer", "check", "saved", "--size", "300kB"))  # noqa: T201
        for module in COMPILED:
            importlib.import_module(f"variants.native.{module}")
        importlib.import_module("harness.proof.native._replay")
        for package in ("harness", "variants"):
            path = importlib.import_module(package).__file__
            assert path is not None
            assert (Path(path).parent / "py.typed").is_file(), f"{package} has no py.typed"
        python = sys.version.split()[0]
        print(f"bpe-harness {version}: trained, saved, loaded and checked under {python}")  # noqa: T201


if __name__ == "__main__":
    main()
