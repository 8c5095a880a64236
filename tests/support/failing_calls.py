"""System calls of a command fail, once or from then on: what the command says and leaves.

    LD_PRELOAD=failing_calls.so python tests/support/failing_calls.py COMMAND KIND MOST

The n-th call of a kind fails: the first, and at most so many others, the last among them. A case
is a fork, so nothing is imported again. Prints what is wrong as a JSON list.
"""

import contextlib
import ctypes
import errno
import gzip
import importlib
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fetched import facts
from gating import CARD, new_repository
from local_server import serving
from measured import RECORDS
from rows import write_files

from harness.__main__ import main
from harness.common import files
from harness.common.errors import Refusal
from harness.records.file import read_records
from harness.tokenizer import load, train
from harness.tokenizers.encoding import ids_in_file

KINDS = {
    "open": ("EMFILE", "EACCES"),
    "read": ("EIO", "short"),
    "write": ("ENOSPC", "short", "EINTR"),
    "fsync": ("EIO",),
    "rename": ("EIO", "ENOSPC"),
    "mkdir": ("ENOSPC",),
    "unlink": ("EIO", "EACCES"),
}
"""The kinds of call, and how each fails; what is short is no failure."""
IMPORTED = (
    "harness.corpora.__main__",
    "harness.gate.__main__",
    "harness.replay",
    "harness.runs.run",
)
"""What commands import late, so each fork would."""
SERVED = b"low low lower newest" * 5000
GONE, LEFT = "what was there cannot be read", "left: "
EXCUSED = {"rename": GONE, "unlink": LEFT}
"""What may be wrong if all calls of a kind fail from then on: nothing can be put back, nor removed."""


class Command(NamedTuple):
    """A command line, and what a reader finds: the files that it writes are never read as anything
    but what was there before, or what the command writes.
    """

    line: str
    read: Callable[[], Any]
    before: str = ""
    """A command that is run first."""
    in_parts: bool = False
    """Whether a reader finds a set, of which a part is kept when the command ends early."""
    repository: bool = False
    """Whether the folder is a repository, with a trainer that was changed since."""


def recorded() -> frozenset[tuple[str, str]]:
    """The trainers with a complete record, and the digest of the merges of each."""
    return frozenset(
        (record.cell.variant or "counting", record.measurement.merges_sha256 or "")
        for record in read_records(["out"])
        if record.measurement.status == "ok"
    )


def judged() -> frozenset[tuple[str, str]]:
    """What a gate has recorded, and what is said of its records judged again."""
    code, _ = call("gate --replay out")
    return recorded() if code == 0 else frozenset()


COMMANDS = {
    "run": Command(
        "variants=naive,heap,flat data.path=text.txt vocab_size=262 results=out concurrent=true",
        recorded,
        in_parts=True,
    ),
    "gate": Command(
        f"gate mine:train --against main~0 --tiers identity --output out --card {CARD}",
        judged,
        in_parts=True,
        repository=True,
    ),
    "fetch": Command(
        "corpora fetch served --config-dir beside",
        lambda: Path("cache/corpora/yours/served/served.txt").read_bytes(),
    ),
    "train": Command(
        "tokenizer train text.txt --vocab-size 262 --save new", lambda: load("new").merges
    ),
    "train over": Command(
        "tokenizer train text.txt --vocab-size 262 --save new --overwrite",
        lambda: load("new").merges,
        "tokenizer train other.txt --vocab-size 258 --save new",
    ),
    "train beside": Command(
        "tokenizer train text.txt --vocab-size 262 --save beside --overwrite",
        lambda: load("beside").merges,
        "tokenizer train other.txt --vocab-size 258 --save beside",
    ),
    "encode": Command(
        "tokenizer encode saved --data text.txt --output ids.bin",
        lambda: ids_in_file(Path("ids.bin")).tolist(),
    ),
    "encode over": Command(
        "tokenizer encode saved --data text.txt --output ids.bin --overwrite",
        lambda: ids_in_file(Path("ids.bin")).tolist(),
        "tokenizer encode saved --data other.txt --output ids.bin",
    ),
    "merge": Command(
        "records merge one.jsonl two.jsonl --output merged",
        lambda: len(read_records(["merged"])),
        "records merge one.jsonl --output merged",
    ),
    "certificate": Command(
        "replay saved/merges.txt --data text.txt --certificate new.gz",
        lambda: gzip.decompress(Path("new.gz").read_bytes()),
    ),
}


def enter(folder: Path) -> None:
    """Make a folder the current one, with a cache and a folder for temporary files of its own."""
    os.environ.update(BPE_HARNESS_CACHE=str(folder / "cache"), TMPDIR=str(folder / "tmp"))
    tempfile.tempdir = None
    os.chdir(folder)


def prepare(folder: Path, address: str) -> None:
    """Write what the commands read."""
    for name in ("cache", "tmp"):
        (folder / name).mkdir()
    card = {
        "source": {"kind": "url", "url": f"{address}/served.txt", "file": "served.txt"},
        "facts": facts(SERVED),
    }
    texts = {"text.txt": "low low lower newest\n", "other.txt": "low low\n"}
    beside = {"beside/README": "mine", "beside/data/served.yaml": json.dumps(card)}
    write_files(folder, {**texts, **beside})
    for name, source in {"one.jsonl": "repeats.jsonl", "two.jsonl": "sweep.jsonl"}.items():
        shutil.copy(RECORDS / source, folder / name)
    enter(folder)
    train(Path("text.txt"), 262).save("saved")


def call(line: str, failing: str = "") -> tuple[int, str]:
    """Run a command in a fork, in which calls fail; return its exit code and what it printed."""
    printed = Path(os.environ["TMPDIR"]).parents[1] / "printed.txt"
    child = os.fork()
    if child == 0:
        os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        files.remove_abandoned.cache_clear()
        if failing:
            os.environ["FAILING"] = failing
            ctypes.CDLL(None).failing_arm()
        code = 1
        try:
            code = main(line.split())
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), printed.read_text()


def found(read: Callable[[], Any]) -> Any:
    """What a reader finds, or None if it refuses what is there, or nothing is."""
    try:
        return read()
    except (Refusal, OSError, EOFError):
        return None


def wrong_ends(command: Command, kind: str, most: int) -> Iterator[str]:
    """What is wrong with the ends of a command, each time that a call of the kind fails."""
    with serving(SERVED) as server, tempfile.TemporaryDirectory(dir="/tmp") as top:
        plain, work, counter = (Path(top, name) for name in ("plain", "work", "count"))
        plain.mkdir()
        prepare(plain, server.address)
        if command.repository:
            new_repository(plain)
            Path("mine.py").write_text("from variants.heap import train as train\n")
        if command.before:
            assert call(command.before)[0] == 0
        old = found(command.read)
        os.environ["FAILING_COUNT"] = str(counter)

        def ended(nth: int = 0, number: int = 0, onwards: int = 0) -> tuple[int, str]:
            """How the command ends in a new folder; the file has how many calls of the kind it makes."""
            os.chdir(top)
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(plain, work)
            enter(work)
            counter.write_bytes(bytes(8))
            return call(command.line, f"{kind} {nth} {number} {onwards} {work}")

        assert ended()[0] == 0
        calls = int.from_bytes(counter.read_bytes(), sys.byteorder)
        new = found(command.read)
        step = math.ceil(calls / most) or 1
        chosen = sorted({1, *range(calls, 0, -step)})
        for how, onwards, nth in itertools.product(KINDS[kind], (0, 1), chosen):
            if how == "EINTR" and onwards:  # Python tries an interrupted call again for ever
                continue
            outcome = ended(nth, getattr(errno, how, 0), onwards)
            for text in complaints(command, *outcome, old, new):
                if not (onwards and text.startswith(EXCUSED.get(kind, "nothing"))):
                    yield f"{kind} {nth} {how}{' and on' if onwards else ''}: {text}"
        os.chdir("/")


def complaints(command: Command, code: int, printed: str, old: Any, new: Any) -> Iterator[str]:
    """What is wrong with the end of a command, and with what the same command does again."""
    there = found(command.read)
    if "Traceback" in printed or code not in (0, 2, 22):
        yield f"exit code {code}: {printed[-400:]}"
    elif code and not printed.strip():
        yield "no sentence"
    if code == 0 and there != new:
        yield f"success, and a reader finds {there!r:.80}"
    is_part = command.in_parts and there is not None and there <= new
    if there not in (None, old, new) and not is_part:
        yield f"a reader finds {there!r:.80}"
    if there is None and old is not None:
        yield f"{GONE}: {printed[-300:]}"
    again, printed_again = call(command.line)
    is_reported = code == 0 or "it has written is whole" in printed
    is_there = "already" in printed_again and there == new and is_reported
    if not is_there and (again or found(command.read) != new):
        yield f"the same again ends with {again}: {printed_again[-300:]} after {printed[-300:]}"
    left = [str(path) for path in Path().rglob(".bpe-harness*")]
    if left and not is_there and not any(part.startswith("cache") for part in left):
        yield f"{LEFT}{left}"


if __name__ == "__main__":
    for module in IMPORTED:
        importlib.import_module(module)
    name, kind, most = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        wrong = list(wrong_ends(COMMANDS[name], kind, int(most)))
    sys.stdout.write(json.dumps(wrong) + "\n")
