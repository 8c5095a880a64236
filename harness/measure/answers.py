"""What a measured process left behind: an answer, which may be garbage, or none, and what its end means then.

Nothing there is trusted. A file is opened only if it is a plain file of a possible size, never by way of a link, and
every number in an answer has bounds. By then every process of the job has ended, so nothing changes any more.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.common.files import remove_tree
from harness.worker import word_store
from harness.worker.merges_bytes import unpacked
from variants.contract import TieBreak

Answer = dict[str, Any]
IsValid = Callable[[Any], bool]

STATUSES = ("ok", "error", "skipped", "rejected", "out_of_memory", "stopped")
LONGEST_ANSWER_BYTES = 64 << 20
LONGEST_MERGES_BYTES = 1 << 30
LONGEST_TEXT = 10_000
MOST_NAMES = 10_000
GREATEST_NUMBER = 2**63
MERGES_TOO_MANY = 1_000_000
"""Beyond the requested number: a trainer that returns more is wrong, and a record may say so."""


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < GREATEST_NUMBER


def is_number(value: Any) -> bool:
    """Comparing comes first: math cannot look at a long integer."""
    return type(value) in (int, float) and abs(value) < GREATEST_NUMBER and math.isfinite(value)


def is_amount(value: Any) -> bool:
    return is_number(value) and value >= 0


def mapping_of(is_valid: IsValid) -> IsValid:
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MOST_NAMES
        and all(is_text(name) and is_valid(part) for name, part in value.items())
    )


def none_or(is_valid: IsValid) -> IsValid:
    return lambda value: value is None or is_valid(value)


def is_curve(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST_NAMES and all(map(is_point, value))


def is_point(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_count(value.get("merges"))
        and is_amount(value.get("total", 0))
        and mapping_of(is_number)(value.get("seconds"))
    )


FIGURES: dict[str, IsValid] = {
    "seconds": mapping_of(is_amount),
    "total": is_amount,
    "laps": is_count,
    "tallies": mapping_of(is_count),
    "curve": is_curve,
    "last_phase": is_text,
    "peak_rss_bytes": is_count,
    "peak_private_bytes": is_count,
    "counted": mapping_of(is_count),
    "interpreter": is_text,
    "takes_threads": none_or(lambda value: isinstance(value, bool)),
}
"""What every answer has that was measured."""
VALID: dict[str, IsValid] = {
    **FIGURES,
    "status": STATUSES.__contains__,
    "reason": none_or(is_text),
    "merges_done": is_count,
    "from_file": lambda value: isinstance(value, bool),
    "tie_break": none_or(lambda value: value in [tie_break.value for tie_break in TieBreak]),
    "feeding": none_or(mapping_of(none_or(is_text))),
    "words_done": is_count,
    "offset": is_count,
}


class BrokenAnswer(Exception):
    """What lies there is not an answer of the worker."""


def read_answer(output: Path, most_merges: int) -> Answer | None:
    """Return the answer in a folder, None if there is none; it may speak of `most_merges` merges.

    Raises BrokenAnswer if it, or what belongs to it, is not whole.
    """
    try:
        answer = json.loads(content_of(output / "answer.json", LONGEST_ANSWER_BYTES))
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise BrokenAnswer("not JSON") from error
    except (OSError, ValueError) as error:
        raise BrokenAnswer((isinstance(error, OSError) and error.strerror) or str(error)) from error
    check(answer)
    check_leavings(output, answer, most_merges)
    return answer  # type: ignore[no-any-return]


def content_of(path: Path, most: int) -> bytes:
    """Return what is in a plain file of at most so many bytes.

    Raises ValueError or OSError for anything else: a link, a pipe, a device, a folder, a hole of terabytes.
    """
    if stat.S_ISDIR(path.lstat().st_mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    expect_plain_file(path, most)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        return file.read(most)


def expect_plain_file(path: Path, most: int) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path.name} is not a plain file")
    if status.st_size > most:
        raise ValueError(f"{path.name} has {status.st_size} bytes, and at most {most} are allowed")


def check(answer: Any) -> None:
    """Raise BrokenAnswer unless an answer has what its status promises, each value valid, and nothing else."""
    if not isinstance(answer, dict) or not VALID["status"](answer.get("status")):
        raise BrokenAnswer("no status")
    if not answer.get("reason") and answer["status"] not in ("ok", "stopped"):
        raise BrokenAnswer("reason")
    if answer["status"] in ("ok", "stopped", "rejected"):
        missing = FIGURES.keys() - answer.keys()
        if missing:
            raise BrokenAnswer(f"no {min(missing)}")
    for name, value in answer.items():
        if name not in VALID or not VALID[name](value):
            raise BrokenAnswer(name)


def check_leavings(output: Path, answer: Answer, most_merges: int) -> None:
    """Raise BrokenAnswer unless the merges or words that an answer speaks of are there and whole."""
    try:
        if "merges_done" in answer:
            if answer["merges_done"] > most_merges:
                raise ValueError(f"{answer['merges_done']} merges, and {most_merges} are the most")
            merges = len(unpacked(content_of(output / "merges", LONGEST_MERGES_BYTES), most_merges))
            if merges != answer["merges_done"]:
                raise ValueError(f"{merges} merges, not {answer['merges_done']}")
        if "words_done" in answer:
            answer["words"] = finished_words(output / "words", answer["words_done"])
    except (OSError, ValueError, TypeError, word_store.BrokenWords) as error:
        raise BrokenAnswer(str(error)) from error


def finished_words(folder: Path, number: int) -> dict[str, Any]:
    """Return the manifest of the words that a counter left as columns; what it says of them itself is not believed.

    Raises an exception of `check_leavings` unless there are as many as its answer says.
    """
    if folder.is_symlink():
        raise ValueError("words is a link")
    for column, _ in word_store.COLUMNS:
        expect_plain_file(folder / column, GREATEST_NUMBER)
    word_counts = word_store.mapped(folder)
    bounds = word_counts.offsets[0], word_counts.offsets[-1]
    if (len(word_counts), bounds) != (number, (0, len(word_counts.data))):
        raise ValueError("other words than it speaks of")
    remove_tree(folder / word_store.MANIFEST)
    manifest = word_store.finish(folder)
    if not is_count(manifest["pre_tokens"]):
        raise ValueError("a table of words that is too large to be one")
    return manifest


def digest_of(output: Path, answer: Answer) -> str | None:
    """Return the digest of the merges or words left; the process told that of what it had when its call returned."""
    if "merges_done" in answer:
        return hashlib.sha256(content_of(output / "merges", LONGEST_MERGES_BYTES)).hexdigest()
    return word_store.seal(word_store.mapped(output / "words")) if "words" in answer else None


def without_answer(exit_code: int, memory_ran_out: bool) -> Answer:
    """Return what the end of a process without an answer means."""
    if exit_code >= 0:
        return {"status": "error", "reason": f"its process ended without an answer, exit status {exit_code}"}
    if memory_ran_out and exit_code == -signal.SIGKILL:
        return {"status": "out_of_memory", "reason": "the kernel had no memory left and ended its process"}
    return {"status": "killed", "reason": f"its process was ended by {signal_name(-exit_code)}"}


def signal_name(number: int) -> str:
    """
    >>> signal_name(11), signal_name(40)
    ('SIGSEGV', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
