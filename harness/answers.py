"""What a measured process left behind: an answer, which may be garbage, or none, and what its end means then."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import word_store
from harness.record import merges_from_bytes
from variants.contract import TieBreak

Answer = dict[str, Any]

STATUSES = ("ok", "error", "skipped", "rejected", "out_of_memory", "stopped")
LONGEST_ANSWER_BYTES = 64 << 20


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    return type(value) is int


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def each(value_is: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether something is a mapping from names to values that are so."""
    return lambda value: isinstance(value, dict) and all(value_is(part) for part in value.values())


def none_or(value_is: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or value_is(value)


def is_curve(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(point, dict)
        and is_whole(point.get("merges"))
        and is_number(point.get("total", 0))
        and each(is_number)(point.get("seconds"))
        for point in value
    )


FIGURES: dict[str, Callable[[Any], bool]] = {
    "seconds": each(is_number),
    "total": is_number,
    "laps": is_whole,
    "tallies": each(is_whole),
    "curve": is_curve,
    "last_phase": is_text,
    "peak_rss_bytes": is_whole,
    "peak_private_bytes": is_whole,
    "cpu_seconds": is_number,
    "counted": each(is_whole),
    "interpreter": is_text,
    "takes_threads": none_or(lambda value: isinstance(value, bool)),
}
"""What an answer has that was measured."""
FURTHER: dict[str, Callable[[Any], bool]] = {
    "merges_done": is_whole,
    "from_file": lambda value: isinstance(value, bool),
    "tie_break": none_or(lambda value: value in [each.value for each in TieBreak]),
    "feeding": none_or(each(none_or(is_text))),
    "words": lambda value: isinstance(value, dict),
    "offset": lambda value: is_whole(value) and value >= 0,
}


class BrokenAnswer(Exception):
    """What lies there is no answer of ours."""


def read_answer(output: Path) -> Answer | None:
    """The answer in a folder, None if there is none. Raises BrokenAnswer if it or what belongs to it is not whole."""
    try:
        with (output / "answer.json").open("rb") as file:
            content = file.read(LONGEST_ANSWER_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BrokenAnswer(error.strerror) from error
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BrokenAnswer("not JSON") from error
    check(answer)
    check_leavings(output, answer)
    return answer  # type: ignore[no-any-return]


def check(answer: Any) -> None:
    """Raise BrokenAnswer unless it has what its status promises, each of its type, and nothing else."""
    if not isinstance(answer, dict) or answer.get("status") not in STATUSES:
        raise BrokenAnswer("no status")
    if not none_or(is_text)(answer.get("reason")):
        raise BrokenAnswer("reason")
    if answer["status"] in ("ok", "stopped", "rejected"):
        missing = FIGURES.keys() - answer.keys()
        if missing:
            raise BrokenAnswer(f"no {min(missing)}")
    known = {**FIGURES, **FURTHER}
    for name, value in answer.items():
        if name not in ("status", "reason") and not (name in known and known[name](value)):
            raise BrokenAnswer(name)


def check_leavings(output: Path, answer: Answer) -> None:
    """Raise BrokenAnswer unless the merges or words that an answer speaks of are there and whole."""
    try:
        if "merges_done" in answer:
            merges = len(merges_from_bytes((output / "merges").read_bytes()))
            if merges != answer["merges_done"]:
                raise ValueError(f"{merges} merges, not {answer['merges_done']}")
        if "words" in answer:
            _, manifest = word_store.read(output / "words")
            if any(answer["words"].get(name) != value for name, value in manifest.items()):
                raise ValueError("other words than it speaks of")
    except (OSError, ValueError, word_store.BrokenWords) as error:
        raise BrokenAnswer(str(error)) from error


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
