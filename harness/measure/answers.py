"""What a measured process left behind: an answer, which may be garbage, or none, and what its end means then.

Nothing there is trusted. A file is opened only if it is a plain file of a possible size, never by way of a link, and
every number in an answer has bounds. By then every process of the job has ended, so nothing changes any more.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.common.files import remove_tree
from harness.worker import word_store
from harness.worker.merges_bytes import unpacked
from variants.contract import TieBreak

Answer = dict[str, Any]

LONGEST_ANSWER_BYTES = 64 << 20
LONGEST_MERGES_BYTES = 1 << 30
GREATEST_NUMBER = 2**63 - 1
MERGES_TOO_MANY = 1_000_000
"""Beyond the requested number: a trainer that returns more is wrong, and a record may say so."""

Text = Annotated[str, Meta(max_length=10_000)]
Reason = Annotated[str, Meta(min_length=1, max_length=10_000)]
Count = Annotated[int, Meta(ge=0, le=GREATEST_NUMBER)]
Amount = Annotated[float, Meta(ge=0, lt=2.0**63)]
Few = Meta(max_length=10_000)


class Failed(msgspec.Struct, forbid_unknown_fields=True):
    """An answer without figures."""

    status: Literal["error", "skipped", "out_of_memory"]
    reason: Reason
    offset: Count | UnsetType = UNSET


class Point(msgspec.Struct, forbid_unknown_fields=True):
    """A point of the curve."""

    merges: Count
    seconds: Annotated[dict[Text, Annotated[float, Meta(gt=-(2.0**63), lt=2.0**63)]], Few]
    total: Amount


class Measured(msgspec.Struct, forbid_unknown_fields=True):
    """An answer with figures."""

    status: Literal["ok", "stopped", "rejected"]
    reason: Text | None
    seconds: Annotated[dict[Text, Amount], Few]
    total: Amount
    laps: Count
    tallies: Annotated[dict[Text, Count], Few]
    curve: Annotated[list[Point], Few]
    last_phase: Text
    peak_rss_bytes: Count
    peak_private_bytes: Count
    counted: Annotated[dict[Text, Count], Few]
    interpreter: Text
    takes_threads: bool | None
    from_file: bool = False
    tie_break: TieBreak | None = None
    feeding: Annotated[dict[Text, Text | None], Few] | None = None
    merges_done: Count | UnsetType = UNSET
    words_done: Count | UnsetType = UNSET


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
    has_figures = isinstance(answer, dict) and answer.get("status") in ("ok", "stopped", "rejected")
    try:
        msgspec.convert(answer, Measured if has_figures else Failed)
    except msgspec.ValidationError as error:
        raise BrokenAnswer(str(error)) from error


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
    if manifest["pre_tokens"] > GREATEST_NUMBER:
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
