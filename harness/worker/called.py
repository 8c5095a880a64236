"""A trainer or word counter that is called again and again by a judge in another process.

The judge's requests come pickled over a socket, one at a time;
what goes back is JSON and bytes, so that reading it runs nothing. Standard library only, and Python 3.9's.
"""

from __future__ import annotations

import inspect
import json
import os
import pickle
import resource
import socket
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from harness.worker.calling import is_pair_of_bytes, resolve, shortened
from harness.worker.merges_bytes import merges_to_bytes
from harness.worker.meters import JUDGED_METERS
from variants.contract import InvalidText, Meter, Unavailable, WordCounts

LENGTH = struct.Struct("<Q")
LENGTHS = struct.Struct("<QQ")
FORMATS = ("B", "q", "Q")
LONGEST_MESSAGE = 2000
MOST_LENGTHS = 10_000


class Columns(NamedTuple):
    """Word counts on their way: the bytes of each column, and whether a trainer may be able to write to them."""

    data: bytes
    offsets: bytes
    counts: bytes
    writable: bool = False


class MeterOf(NamedTuple):
    """A meter on its way: its name among JUDGED_METERS."""

    name: str


def main() -> None:
    """Import the target, tell how it is called, then answer call after call until the judge is gone.

    The program's argument is the descriptor of a socket, by which the judge speaks.
    """
    judge = socket.socket(fileno=int(sys.argv[1]))
    judge.set_inheritable(False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    process = os.getpid()
    job = request(judge)
    sys.path[:0] = job["import_from"]
    os.chdir(job["folder"])
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = job["memory_bytes"] if most == resource.RLIM_INFINITY else min(job["memory_bytes"], most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    target: Any = None
    try:
        target = resolve(job["target"])
        answer(judge, 0, {"status": "imported", **described(target)})
    except Unavailable as reason:
        answer(judge, 0, {"status": "unavailable", "said": words_of(reason)})
    except BaseException as error:
        answer(judge, 0, {"status": "raised", "said": sentence_of(error)})
    number = 0
    while True:
        asked = request(judge)
        number += 1
        said, parts = made(target, *asked)
        if os.getpid() != process:
            os._exit(1)  # a forked child that comes back from the call
        answer(judge, number, said, parts)


def request(judge: socket.socket) -> Any:
    """What is asked next; without a judge there is nothing left to do."""
    return pickle.loads(received(judge, LENGTH.unpack(received(judge, LENGTH.size))[0]))


def received(judge: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        block = judge.recv(min(length - len(content), 1 << 20))
        if not block:
            os._exit(0)
        content += block
    return bytes(content)


def answer(judge: socket.socket, number: int, said: Mapping[str, Any], parts: Sequence[bytes] = ()) -> None:
    """Answer a request, which has a number so that nothing said before stands for it."""
    head = json.dumps({**said, "number": number, "parts": list(map(len, parts))}).encode()
    judge.sendall(b"".join((LENGTHS.pack(len(head), sum(map(len, parts))), head, *parts)))


def described(target: Any) -> dict[str, Any]:
    """How a function is called: its parameters, each with its kind and whether it has a default; None if not shown."""
    if not callable(target):
        return {"type": type(target).__name__, "callable": False, "parameters": None}
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return {"callable": True, "parameters": None}
    listed = [[each.name, int(each.kind), each.default is not each.empty] for each in parameters]
    return {"callable": True, "parameters": listed}


def made(
    target: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[str, Any], list[bytes]]:
    """Make one call: what is to be said of it, and the columns or merges that belong to it."""
    meters: list[Meter] = []
    given: list[tuple[WordCounts, list[Any]]] = []

    def unpacked(value: Any) -> Any:
        if isinstance(value, MeterOf):
            meters.append(JUDGED_METERS[value.name]())
            return meters[-1]
        if isinstance(value, Columns):
            columns: list[Any] = [bytearray(value.data), array("q", value.offsets), array("Q", value.counts)]
            views = [memoryview(column) for column in columns]
            word_counts = WordCounts(*(views if value.writable else [view.toreadonly() for view in views]))
            if value.writable:
                given.append((word_counts, columns))
            return word_counts
        return value

    try:
        result = target(*map(unpacked, arguments), **{name: unpacked(value) for name, value in keywords.items()})
        said, parts = returned(result)
        if meters:
            said["meter"], further = told_by(meters[0])
            parts += further
        if given:
            said["given"] = True
            word_counts, columns = given[0]
            parts += map(bytes, columns)
            parts += [bytes(column) for column in (word_counts.data, word_counts.offsets, word_counts.counts)]
    except Unavailable as reason:
        return {"status": "unavailable", "said": words_of(reason)}, []
    except InvalidText as error:
        return {"status": "invalid", "offset": error.offset if type(error.offset) is int else None}, []
    except BaseException as error:  # also what would end a process: it is a finding like any other
        return {"status": "raised", "said": sentence_of(error), "value": isinstance(error, ValueError)}, []
    return said, parts


def returned(result: Any) -> tuple[dict[str, Any], list[bytes]]:
    """What a call gave: word counts, merges, or something that is neither, which is named by its type."""
    if isinstance(result, WordCounts):
        columns = [memoryview(column) for column in (result.data, result.offsets, result.counts)]
        if tuple(column.format for column in columns) != FORMATS:
            return {"status": "returned", "type": "WordCounts with other columns", "kind": "other"}, []
        return {"status": "returned", "kind": "words"}, [bytes(column) for column in columns]
    if isinstance(result, list):
        said, content = in_bytes(list(result))
        return {"status": "returned", "kind": "merges", "merges": said}, [content]
    return {"status": "returned", "type": type(result).__name__, "kind": "other"}, []


def in_bytes(merges: list[Any]) -> tuple[dict[str, Any], bytes]:
    """Merges up to the first that is none, how many there are, and that one in words."""
    right = next((place for place, merge in enumerate(merges) if not is_merge(merge)), len(merges))
    wrong = None if right == len(merges) else shortened(repr(merges[right]))
    return {"length": len(merges), "wrong": wrong}, merges_to_bytes(merges[:right])


def is_merge(value: Any) -> bool:
    return type(value) is tuple and is_pair_of_bytes(value) and all(value)


def told_by(meter: Any) -> tuple[dict[str, Any], list[bytes]]:
    """What a meter was told; a tally that is no number as text. Raises ValueError for seconds that are none."""
    followed, content = in_bytes(list(meter.followed))
    lengths = meter.lengths_at_update
    return {
        "seconds": {phase: float(spent) for phase, spent in meter.seconds.items()},
        "tallies": {name: n if type(n) is int else shortened(repr(n)) for name, n in meter.tallies.items()},
        "follow_calls": meter.follow_calls,
        "lengths_at_update": lengths if len(lengths) <= MOST_LENGTHS else [lengths[0], lengths[-1]],
        "followed": followed,
    }, [content]


def sentence_of(error: BaseException) -> str:
    message = words_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def words_of(error: BaseException) -> str:
    try:
        return str(error)[:LONGEST_MESSAGE]
    except BaseException:  # whatever its own __str__ raises
        return "an exception that cannot be put into words"
