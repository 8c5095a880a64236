"""Executable: a program in any language that reads words with their counts from a file and writes
merges to another.

`command` is what is run, without a shell, with {words}, {merges} and {num_merges} put in, or
appended in this order where it has none of them; {tie_break}, {min_count} and {threads} are put in
where they occur. A word is a line of its count, a space, and its bytes in hexadecimal digits; a
merge is a line of its two tokens in hexadecimal digits, in the order of learning. Writing the one
and reading the other is `convert`; what the program does in between it alone knows, so that shows
as `other`. Merges that it writes as it goes show as progress, and count if it is stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from variants.contract import (
    GREATEST_BYTES,
    NULL_METER,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
    WordCounts,
)

SECONDS_BETWEEN_LOOKS = 0.1
IN_ANY_CASE = ("words", "merges", "num_merges")
PLACE = re.compile(r"\{(\w+)\}")
MERGE = re.compile(rb"((?:[0-9a-fA-F]{2})+) ((?:[0-9a-fA-F]{2})+)\r?")
# The folder of a measured job, which goes away with the job however that ends.
JOB = "BPE_HARNESS_JOB"


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    threads: int = 1,
    command: str = "",
) -> list[Merge]:
    """Let the program learn. Raises ValueError if it fails, and for merges that are none.

    Raises Unavailable without a command, and if it has no place for a requested tie-break or
    minimum count.
    """
    if not command:
        example = "variant.params.command='./train {words} {merges} {num_merges}'"
        raise Unavailable(f"it runs a program of yours; set {example}")
    for name, needed in (
        ("tie_break", tie_break is not GREATEST_BYTES),
        ("min_count", min_count != 1),
    ):
        if needed and f"{{{name}}}" not in command:
            raise Unavailable(f"the command takes no {{{name}}}, so it runs with the default only")
    job = os.environ.get(JOB)
    folder = tempfile.mkdtemp(prefix="executable-", dir=job if job and Path(job).is_dir() else None)
    try:
        words, merges = Path(folder, "words"), Path(folder, "merges")
        values = {"words": words, "merges": merges, "num_merges": num_merges}
        options = {"tie_break": tie_break.value, "min_count": min_count, "threads": threads}
        arguments = arguments_of(command, values, options)
        begun = time.perf_counter()
        with words.open("w", encoding="ascii") as file:
            file.writelines(f"{count} {word.hex()}\n" for word, count in word_counts.items())
        meter.add("convert", time.perf_counter() - begun)
        whole = run_program(arguments, merges, meter)
        begun = time.perf_counter()
        learned = merges_in(merges, whole)
        meter.add("convert", time.perf_counter() - begun)
    finally:
        # a process that the program left may write there still
        shutil.rmtree(folder, ignore_errors=True)
    return learned


def arguments_of(command: str, values: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """The command's words with everything in its place.

    >>> arguments_of("./train -n {num_merges} {words} {merges}", {"words": "w", "merges": "m", "num_merges": 5}, {})
    ['./train', '-n', '5', 'w', 'm']
    >>> arguments_of("./train", {"words": "w", "merges": "m", "num_merges": 5}, {})
    ['./train', 'w', 'm', '5']
    """
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"the command {command!r} cannot be read: {error}") from error

    places = set(PLACE.findall(command))
    known = {**values, **options}
    if unknown := sorted(places - known.keys()):
        raise ValueError(
            f"the command has a place for {{{unknown[0]}}}; there are: {', '.join(known)}"
        )

    if not places.intersection(IN_ANY_CASE):
        arguments += [f"{{{name}}}" for name in IN_ANY_CASE]
    elif missing := [name for name in IN_ANY_CASE[:2] if name not in places]:
        raise ValueError(f"the command has no place for {{{missing[0]}}}; use all of them, or none")

    return [PLACE.sub(lambda found: str(known[found[1]]), argument) for argument in arguments]


def run_program(arguments: list[str], merges: Path, meter: Meter) -> bool:
    """Run the program to its end; whether it came to it, for a meter may say stop. Raises
    ValueError if it fails.
    """
    try:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL)
    except OSError as error:
        advice = "a program in the current folder is ./NAME, a script names its interpreter in its first line"
        raise ValueError(f"cannot start {arguments[0]} ({error.strerror}); {advice}") from error

    ending = threading.Thread(target=process.wait)  # so that nothing is lost by waiting
    ending.start()

    try:
        while ending.is_alive():
            ending.join(SECONDS_BETWEEN_LOOKS)
            if ending.is_alive() and not meter.progress(lines_in(merges)):
                return False
    finally:
        process.kill()
        ending.join()

    if process.returncode:
        code = process.returncode
        how = (
            f"ended with exit status {code}"
            if code > 0
            else f"was ended by {signal.Signals(-code).name}"
        )
        raise ValueError(f"{arguments[0]} {how}; the record's stderr_tail is what it printed")

    if not merges.exists():
        raise ValueError(
            f"{arguments[0]} ended well and wrote no merges; it is to write them to the file {{merges}}"
        )
    return True


def lines_in(path: Path) -> int:
    """How many whole lines a file that grows has by now."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def merges_in(path: Path, whole: bool) -> list[Merge]:
    """The merges in a file, of one that is not `whole` those in finished lines. Raises ValueError
    with the line.
    """
    content = path.read_bytes() if path.exists() else b""
    lines = content.split(b"\n")
    if not whole or not lines[-1]:
        del lines[-1]

    merges = []
    for number, line in enumerate(lines, 1):
        found = MERGE.fullmatch(line)
        if found is None:
            shown = line[:80].decode(errors="replace")
            raise ValueError(
                f"line {number} of its merges is not two tokens in hexadecimal digits: {shown!r}"
            )
        left, right = (bytes.fromhex(token.decode()) for token in found.groups())
        merges.append((left, right))

    return merges
