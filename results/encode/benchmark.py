"""Encoding, here and by other engines: CPU seconds, wall seconds and peak memory, in interleaved
blocks.

python results/encode/benchmark.py english=FILE chinese=FILE [...]   # measure, append to figures.jsonl
python results/encode/benchmark.py --table                           # print the table of what is stored

--figures FILE is another file than figures.jsonl: figures of two machines are two tables.

Each text is cut to --megabytes and trains a tokenizer of each size, by which every engine encodes
it, and one of half words and half superwords (`english superwords`). Two texts are made of the
given ones: `chat`, the first text in turns between special tokens, and `unknown`, the last text by
the first one's tokenizer. Each measurement is a process of its own: it encodes the whole text, the
whole text again with the same object, and then pieces of 1,000 characters. All ids must have one
digest, or no time is shown. --candidate PYTHON is an interpreter with the release candidate of
tokenizers.
"""

import argparse
import base64
import hashlib
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any

FIGURES = Path(__file__).parent / "figures.jsonl"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SIZES = (32_000, 200_000)
PIECE = 1000
SLOW_MEGABYTES = 2
SLOW = ("plain", "tokenizers")
"""Engines that get the beginning of the text only; speeds are comparable, not memory."""
ENGINES = ("ours", "ours, two threads", "plain", "tiktoken", "gigatoken", "tokenizers", "candidate")
Encode = Callable[[str], Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("texts", nargs="*", metavar="NAME=FILE")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--candidate", metavar="PYTHON")
    parser.add_argument("--table", action="store_true", help="print the stored figures")
    parser.add_argument("--figures", type=Path, default=FIGURES, metavar="FILE")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.table:
        stored = [json.loads(line) for line in options.figures.read_text().splitlines()]
        print("\n".join(table(stored)))
        return 0
    if options.measure:
        engine, folder, text = options.measure
        print(json.dumps(measured(engine, Path(folder), Path(text))))
        return 0
    if not options.texts:
        parser.error("name texts as english=FILE, or pass --table")

    with tempfile.TemporaryDirectory() as folder:
        texts = dict(text.split("=", 1) for text in options.texts)
        cases = list(made_cases(texts, Path(folder), options.megabytes * 1_000_000))
        for figure in figures(cases, options.blocks, options.candidate):
            with options.figures.open("a") as file:
                file.write(json.dumps(figure) + "\n")
            print(figure, flush=True)
    return 0


# What is encoded


def made_cases(
    files: dict[str, str], folder: Path, size: int
) -> Iterator[tuple[str, int, Path, Path]]:
    """The name of each case, the size of its vocabulary, and where its tokenizer and its text are."""
    from harness.tokenizer import train

    texts = {name: beginning(Path(file).read_bytes(), size) for name, file in files.items()}
    first, last = next(iter(texts)), list(texts)[-1]
    texts["chat"] = "".join(chat(texts[first]))
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, newline="")

    for vocab_size in SIZES:
        for name in texts:
            tokenizer = train(folder / f"{name}.txt", vocab_size, special_tokens=SPECIALS)
            saved = folder / f"{name}-{vocab_size}"
            tokenizer.save(saved)
            yield name, vocab_size, saved, folder / f"{name}.txt"
            if name in files:
                saved = superwords(folder / f"{name}.txt", vocab_size)
                yield f"{name} superwords", vocab_size, saved, folder / f"{name}.txt"
        yield "unknown", vocab_size, folder / f"{first}-{vocab_size}", folder / f"{last}.txt"


def superwords(text: Path, vocab_size: int) -> Path:
    """The folder of a tokenizer half of whose merges were learned in words, half in lines."""
    from harness.tokenizer import train

    first, saved = (text.with_name(f"{text.stem}-{stage}-{vocab_size}") for stage in (1, 2))
    words = train(text, vocab_size // 2, pattern="superbpe_words", special_tokens=SPECIALS)
    words.save(first)
    options: dict[str, Any] = {"extend": first, "veto": "superbpe", "special_tokens": SPECIALS}
    train(text, vocab_size, pattern="superbpe", **options).save(saved)
    return saved


def beginning(content: bytes, size: int) -> str:
    return content[:size].decode(errors="ignore")


def chat(text: str) -> Iterator[str]:
    """The lines of a text as turns of two speakers."""
    for number, line in enumerate(text.splitlines(keepends=True)):
        speaker = "assistant" if number % 2 else "user"
        yield f"<|im_start|>{speaker}\n{line}<|im_end|>\n"


# Measuring: in a process of its own, whose engine's package alone is imported


def figures(
    cases: Sequence[tuple[str, int, Path, Path]], blocks: int, candidate: str | None
) -> Iterator[dict[str, Any]]:
    """A figure for each engine on each case in each block, in random order within a block."""
    for block in range(blocks):
        tasks = [(case, engine) for case in cases for engine in ENGINES]
        random.Random(block).shuffle(tasks)
        for (name, vocab_size, folder, text), engine in tasks:
            if engine == "candidate" and candidate is None:
                continue
            python = candidate if engine == "candidate" else sys.executable
            command = [python, __file__, "--measure", engine, str(folder), str(text)]
            ended = subprocess.run(command, capture_output=True, text=True)
            about = {"block": block, "text": name, "vocab_size": vocab_size, "engine": engine}
            if ended.returncode:
                yield {**about, "error": error_text(ended.stderr)}
            else:
                yield {**about, **json.loads(ended.stdout)}


def error_text(printed: str) -> str:
    """The beginning of the exception that ended a process, without paths."""
    _, _, last = printed.rpartition("Traceback (most recent call last):")
    found = re.search(r"^[\w.]+(: .+)?$", last, re.MULTILINE)
    return shorten(re.sub(r"\S*/\S*", "FILE", found[0]), 75) if found else "killed"


def measured(engine: str, folder: Path, path: Path) -> dict[str, Any]:
    """The seconds of both passes and of the pieces, the digest of the ids, and the peak memory."""
    import_module("numpy")  # some engines import it at the first array
    text = path.read_bytes().decode()
    short = beginning(text.encode()[: SLOW_MEGABYTES * 1_000_000], SLOW_MEGABYTES * 1_000_000)
    if engine in SLOW:
        text = short
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    version, encode = opened(engine, folder)

    seconds = {}
    for name, parts in (("first", [text]), ("second", [text]), ("pieces", pieces)):
        cpu, wall = time.process_time(), time.perf_counter()
        for part in parts:
            ids = encode(part)
        seconds[name] = time.process_time() - cpu
        seconds[f"{name}_wall"] = time.perf_counter() - wall
        if name == "first":
            peak = peak_memory()
            digests = {str(len(text.encode())): digest(ids)}
    if engine == "ours":
        digests[str(len(short.encode()))] = digest(encode(short))
    size = len(text.encode())
    return {"version": version, "bytes": size, "peak": peak, "digests": digests, **seconds}


def peak_memory() -> int:
    """The most bytes that this process had in memory; what `getrusage` says begins with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def digest(ids: Iterable[int]) -> str:
    import numpy as np

    return hashlib.sha256(np.asarray(ids, np.uint32).tobytes()).hexdigest()


def opened(engine: str, folder: Path) -> tuple[str, Encode]:
    """An engine's version, and its function from a text to ids: as an array where it has one."""
    from importlib.metadata import version

    if engine.startswith("ours"):
        from harness.tokenizer import load

        threads = 2 if "two" in engine else 1
        tokenizer = load(folder)
        tokenizer.encode("")  # makes the tables, as opening does elsewhere
        name = f"bpe-harness {version('bpe-harness')}"
        return name, lambda text: tokenizer.encode_to_numpy(text, threads=threads)
    if engine == "plain":
        from harness.tokenizer import load
        from harness.tokenizers.encoding import PlainEncoder

        plain = PlainEncoder(load(folder).learned)
        return f"bpe-harness {version('bpe-harness')}", plain.encode
    if engine == "tiktoken":
        import tiktoken

        manifest = json.loads((folder / "manifest.json").read_text())
        lines = (folder / "ranks.tiktoken").read_bytes().splitlines()
        encoding = tiktoken.Encoding(
            "ours",
            pat_str=manifest["pattern"]["regex"],
            mergeable_ranks={
                base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines
            },
            special_tokens={token["text"]: token["id"] for token in manifest["special_tokens"]},
        )
        name = f"tiktoken {version('tiktoken')}"
        return name, lambda text: encoding.encode_to_numpy(text, allowed_special="all")
    if engine == "gigatoken":
        import gigatoken

        giga = gigatoken.Tokenizer(folder / "tokenizer.json")
        return f"gigatoken {version('gigatoken')}", giga.encode

    import tokenizers

    hugging_face = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    name = f"tokenizers {version('tokenizers')}"
    return name, lambda text: hugging_face.encode(text, add_special_tokens=False).ids


# Showing


def table(stored: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of a Markdown table for each text and size: medians over the blocks."""
    groups = defaultdict(list)
    for figure in stored:
        groups[figure["text"], figure["vocab_size"], figure["engine"]].append(figure)
    header = (
        "| text | tokens | engine | first pass | second pass | pieces | first, times ours | peak |"
    )
    lines = [header, "|---|---:|---|---:|---:|---:|---:|---:|"]
    for (text, vocab_size, engine), rows in groups.items():
        ours = {
            row["block"]: row
            for row in groups.get((text, vocab_size, "ours"), ())
            if "error" not in row
        }
        lines.append(f"| {text} | {vocab_size:,} | {row_text(engine, rows, ours)} |")
    return lines[:2] + sorted(lines[2:])


def row_text(engine: str, rows: Sequence[dict[str, Any]], ours: dict[int, Any]) -> str:
    """One engine's cells; MB a second of CPU time, with two threads of wall time."""
    if error := next((row["error"] for row in rows if "error" in row), None):
        return f"{engine} | it failed: {error} | | | |"
    name = "ours, plain Python" if engine == "plain" else rows[0]["version"]
    name += engine.removeprefix("ours") if engine.startswith("ours") else ""
    known = [digest for row in ours.values() for digest in row["digests"].items()]
    if any(entry not in known for row in rows for entry in row["digests"].items()):
        return f"{name} | other ids | | | |"

    suffix = "_wall" if "two" in engine else ""
    speeds = []
    for key in ("first", "second", "pieces"):
        speed = statistics.median(row["bytes"] / row[key + suffix] / 1e6 for row in rows)
        speeds.append(f"{speed:,.0f} MB/s" if speed >= 10 else f"{speed:.1f} MB/s")
    ratios = [
        row["first" + suffix]
        / row["bytes"]
        * ours[row["block"]]["bytes"]
        / ours[row["block"]]["first" + suffix]
        for row in rows
        if row["block"] in ours
    ]
    peak = f"{statistics.median(row['peak'] for row in rows) / 1e6:,.0f} MB"
    cells = [name, *speeds, f"{statistics.median(ratios):.2f}", "" if engine in SLOW else peak]
    return " | ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
