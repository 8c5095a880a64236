"""What a measured process left behind: an answer, which may be garbage, or none, and what its end means then.

Nothing there is trusted. A file is opened only if it is a plain file of a possible size, never by way of a link, and
every number in an answer has bounds. By then every process of the job has ended, so that nothing changes meanwhile.
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

STATUSES = ("ok", "error", "skipped", "rejected", "out_of_memory", "stopped")
LONGEST_ANSWER_BYTES = 64 << 20
LONGEST_MERGES_BYTES = 1 << 30
LONGEST_TEXT = 10_000
MOST_NAMES = 10_000
GREATEST_NUMBER = 2**63
# Beyond what was asked for: a trainer that returns more is wrong, and may be told so.
MERGES_TOO_MANY = 1_000_000


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_whole(value: Any) -> bool:
    """A whole number that every reader of records can hold."""
    return type(value) is int and abs(value) < GREATEST_NUMBER


def is_number(value: Any) -> bool:
    """A number that has a size: comparing comes first, for a long integer is none that math could look at."""
    return type(value) in (int, float) and abs(value) < GREATEST_NUMBER and math.isfinite(value)


def is_count(value: Any) -> bool:
    return is_whole(value) and value >= 0


def is_amount(value: Any) -> bool:
    return is_number(value) and value >= 0


def each(value_is: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether something is a mapping from names to values that are so."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MOST_NAMES
        and all(is_text(name) and value_is(part) for name, part in value.items())
    )


def none_or(value_is: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or value_is(value)


def is_curve(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_NAMES
        and all(
            isinstance(point, dict)
            and is_count(point.get("merges"))
            and is_amount(point.get("total", 0))
            and each(is_number)(point.get("seconds"))
            for point in value
        )
    )


FIGURES: dict[str, Callable[[Any], bool]] = {
    "seconds": each(is_amount),
    "total": is_amount,
    "laps": is_count,
    "tallies": each(is_count),
    "curve": is_curve,
    "last_phase": is_text,
    "peak_rss_bytes": is_count,
    "peak_private_bytes": is_count,
    "cpu_seconds": is_amount,
    "counted": each(is_count),
    "interpreter": is_text,
    "takes_threads": none_or(lambda value: isinstance(value, bool)),
}
"""What an answer has that was measured."""
FURTHER: dict[str, Callable[[Any], bool]] = {
    "merges_done": is_count,
    "from_file": lambda value: isinstance(value, bool),
    "tie_break": none_or(lambda value: value in [each.value for each in TieBreak]),
    "feeding": none_or(each(none_or(is_text))),
    "words_done": is_count,
    "offset": is_count,
}


class BrokenAnswer(Exception):
    """What lies there is no answer of ours."""


def read_answer(output: Path, most_merges: int) -> Answer | None:
    """The answer in a folder, None if there is none; `most_merges` is how many it can speak of.

    Raises BrokenAnswer if it or what belongs to it is not whole.
    """
    try:
        content = content_of(output / "answer.json", LONGEST_ANSWER_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BrokenAnswer(in_brief(error)) from error
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BrokenAnswer("not JSON") from error
    check(answer)
    check_leavings(output, answer, most_merges)
    return answer  # type: ignore[no-any-return]


def content_of(path: Path, most: int) -> bytes:
    """What is in a plain file of at most so many bytes.

    Raises ValueError for anything else that can lie there: a link, a pipe, a device, a file with a hole of terabytes.
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
        raise ValueError(f"{path.name} is no plain file")
    if status.st_size > most:
        raise ValueError(f"{path.name} is of {status.st_size} bytes, and {most} are the most")


def in_brief(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def check(answer: Any) -> None:
    """Raise BrokenAnswer unless it has what its status promises, each of its type, and nothing else."""
    if not isinstance(answer, dict) or answer.get("status") not in STATUSES:
        raise BrokenAnswer("no status")
    reason = answer.get("reason")
    if not none_or(is_text)(reason) or (not reason and answer["status"] not in ("ok", "stopped")):
        raise BrokenAnswer("reason")
    if answer["status"] in ("ok", "stopped", "rejected"):
        missing = FIGURES.keys() - answer.keys()
        # A call that had not begun when it was stopped has none of them.
        if missing:
            raise BrokenAnswer(f"no {min(missing)}")
    known = {**FIGURES, **FURTHER}
    for name, value in answer.items():
        if name not in ("status", "reason") and not (name in known and known[name](value)):
            raise BrokenAnswer(name)


def check_leavings(output: Path, answer: Answer, most_merges: int) -> None:
    """Raise BrokenAnswer unless the merges or words that an answer speaks of are there and whole."""
    try:
        if "merges_done" in answer:
            if answer["merges_done"] > most_merges:
                raise ValueError(f"{answer['merges_done']} merges, and {most_merges} are the most")
            content = content_of(output / "merges", LONGEST_MERGES_BYTES)
            merges = len(unpacked(content, most_merges))
            if merges != answer["merges_done"]:
                raise ValueError(f"{merges} merges, not {answer['merges_done']}")
        if "words_done" in answer:
            answer["words"] = finished_words(output / "words", answer["words_done"])
    except (OSError, ValueError, TypeError, word_store.BrokenWords) as error:
        raise BrokenAnswer(str(error)) from error


def finished_words(folder: Path, number: int) -> dict[str, Any]:
    """The manifest of the words that a counter left as columns, made here: nothing that it says of them is believed.

    Raises an exception of `check_leavings` unless there are as many as it told of.
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
    if not is_whole(manifest["pre_tokens"]):
        raise ValueError("a table of words that is too large to be one")
    return manifest


def digest_of(output: Path, answer: Answer) -> str | None:
    """What the measured process told of its merges or words when its call returned, taken of what it left."""
    if "merges_done" in answer:
        return hashlib.sha256(content_of(output / "merges", LONGEST_MERGES_BYTES)).hexdigest()
    return word_store.seal(word_store.mapped(output / "words")) if "words" in answer else None


def without_answer(exit_code: int, memory_ran_out: bool) -> Answer:
    """What the end of a process means that left no answer."""
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
