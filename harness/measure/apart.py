"""A trainer or word counter in a process of its own, called as if it were here.

What it does to its own process reaches no judge: it gets copies, and its answers are bytes of a bounded number that are
looked through before they are believed. One that crashes, hangs or takes too much memory has broken down: that is what
every further call says, too.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from array import array
from collections.abc import Mapping
from typing import Any, BinaryIO

from harness.measure.answers import BrokenAnswer, each, is_text, is_whole, none_or, without_answer
from harness.measure.control_group import ControlGroup
from harness.measure.guarded import Guarded, shorten, tail
from harness.measure.private import PrivateFolders
from harness.measure.process import PACKAGES, import_from, killed_for_memory
from harness.measure.processes import MARK, JobProcesses
from harness.worker.called import LENGTH, LENGTHS, Columns, MeterOf
from harness.worker.merges_bytes import merges_from_bytes
from harness.worker.meters import RecordingMeter
from variants.contract import Corpus, InvalidText, Meter, Unavailable, WordCounts

# Nothing that lies in the current folder can stand in for what it imports.
CALL = "import sys; sys.path[:] = filter(None, sys.path); from harness.worker.called import main; main()"
SECONDS_FOR_A_CALL = 120.0
MEMORY_BYTES = 4 << 30
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_TELL_OF_ITS_END = 2.0
LONGEST_HEAD_BYTES = 8 << 20
LONGEST_PARTS_BYTES = 256 << 20
MOST_MERGES = 10_000_000
FORMATS = ("B", "q", "Q")
KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


class BrokeDown(Exception):
    """The process of a subject has ended or had to be ended; the message says how."""


class Finding(Exception):
    """What a subject did in a call instead of answering it: what it raised, or what it returned that is no answer."""


class ValueFinding(Finding, ValueError):
    """It raised a ValueError, which is an answer to some questions."""


class NotImportable(Exception):
    """The target cannot be imported; the message is the exception's name and its words."""


class Shown:
    """Something that a subject gave which is no merge: all that is known of it is how it shows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Apart:
    """A subject in a process of its own, as a context and a function.

    It has the signature of what it stands for, and its name. Entering raises NotImportable, or Unavailable, where the
    target cannot be imported. A call returns what the target returned, raises Finding for what is no answer, and
    BrokeDown for a process that is no more.
    """

    def __init__(self, target: str) -> None:
        self.__module__, _, self.__qualname__ = target.partition(":")
        self.target = target
        self.broken: BrokeDown | None = None
        self.calls = 0
        self.parameters: list[inspect.Parameter] | None = None
        self.type_name: str | None = None
        """What it is if it is no function."""

    @property
    def __signature__(self) -> inspect.Signature:
        """Raises ValueError for compiled code that does not show how it is called."""
        if self.parameters is None:
            raise ValueError(f"{self.target} does not show its signature")
        return inspect.Signature(self.parameters)

    def __enter__(self) -> Apart:
        with contextlib.ExitStack() as opened:
            self.stderr: BinaryIO = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            private = opened.enter_context(PrivateFolders())
            private.give_tables()
            group = opened.enter_context(ControlGroup())
            self.line, theirs = socket.socketpair()
            opened.callback(self.line.close)
            mark = str(private.path)
            usual = filter(None, [PACKAGES, os.environ.get("PYTHONPATH")])
            environment = {**os.environ, **private.environment(), "PYTHONPATH": os.pathsep.join(usual), MARK: mark}
            command = [sys.executable, "-c", CALL, str(theirs.fileno())]
            with theirs:
                os.set_inheritable(theirs.fileno(), True)
                started = Guarded.start(command, environment, private, group, self.stderr, (theirs.fileno(),))
            self.guarded = opened.enter_context(started)
            if self.guarded.leader is None:
                raise NotImportable(f"its process cannot be started: {self.guarded.failure}")
            self.processes = JobProcesses(self.guarded.leader, mark, guard=self.guarded.process.pid, group=group)
            opened.callback(self.end)
            self.line.setblocking(False)
            self.out_of_memory_before = killed_for_memory()
            self.introduce(private.working)
            self.opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.close()

    def introduce(self, folder: str) -> None:
        """Have the target imported, and learn how it is called."""
        job = {"target": self.target, "import_from": import_from(), "folder": folder, "memory_bytes": MEMORY_BYTES}
        try:
            said, _ = self.exchange(pickle.dumps(job))
        except BrokeDown as broken:
            raise NotImportable(str(broken)) from broken
        if said["status"] == "unavailable":
            raise Unavailable(said["said"])
        if said["status"] == "raised":
            raise NotImportable(said["said"])
        self.type_name = None if said.get("callable") else str(said.get("type"))
        listed = said.get("parameters")
        try:
            if listed is not None:
                self.parameters = [parameter_of(*described) for described in listed]
                inspect.Signature(self.parameters)
        except (TypeError, ValueError) as error:
            raise NotImportable(f"its signature is none: {error}") from error

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        meters = [value for value in [*arguments, *keywords.values()] if isinstance(value, Meter)]
        tables = [value for value in [*arguments, *keywords.values()] if isinstance(value, WordCounts)]
        request = [packed(value) for value in arguments], {name: packed(value) for name, value in keywords.items()}
        said, parts = self.exchange(pickle.dumps(request))
        if said["status"] == "unavailable":
            raise Unavailable(said["said"])
        if said["status"] == "invalid":
            corpus = next(value for value in arguments if isinstance(value, Corpus))
            raise InvalidText(corpus.path, said["offset"])
        if said["status"] == "raised":
            raise (ValueFinding if said.get("value") else Finding)(f"raised {said['said']}")
        try:
            return self.taken(said, parts, meters, tables)
        except (KeyError, TypeError, ValueError, IndexError, BrokenAnswer, struct.error) as error:
            self.broken = self.broken or BrokeDown(f"what it answered is no answer ({error})")
            raise self.broken from error

    def taken(self, said: dict[str, Any], parts: list[bytes], meters: list[Meter], tables: list[WordCounts]) -> Any:
        """What a call gave, looked through; the meter and the columns handed over get what was done to them."""
        left = iter(parts)
        result: Any
        if said["kind"] == "merges":
            result = merges_of(said["merges"], next(left))
        elif said["kind"] == "words":
            result = word_counts_of([next(left) for _ in FORMATS])
        else:
            raise_finding = Finding(f"returned {said['type']}, not {'a list of merges' if tables else 'WordCounts'}")
            raise raise_finding
        if meters:
            fill(meters[0], said["meter"], next(left))
        if said.get("given"):
            lay_out(tables[0], [next(left) for _ in range(2 * len(FORMATS))])
        return result

    def exchange(self, content: bytes) -> tuple[dict[str, Any], list[bytes]]:
        """Say something and hear the answer. Raises BrokeDown where none comes."""
        if self.broken is not None:
            raise self.broken
        try:
            head, blob = self.heard(LENGTH.pack(len(content)) + content)
            said = json.loads(head)
            check_head(said, self.calls, len(blob))
        except BrokeDown as broken:
            self.broken = broken
            raise
        except (ValueError, RecursionError, BrokenAnswer, OSError) as error:
            self.broken = BrokeDown(f"what it answered is no answer ({error})")
            raise self.broken from error
        self.calls += 1
        parts, start = [], 0
        for length in said["parts"]:
            parts.append(blob[start : start + length])
            start += length
        return said, parts

    def heard(self, content: bytes) -> tuple[bytes, bytes]:
        """Send a request, and wait for all of the answer, as long as the process lives, in its limits."""
        unsent, came = memoryview(content), bytearray()
        started = looked = time.monotonic()
        lengths: tuple[int, int] | None = None
        while lengths is None or len(came) < sum(lengths):
            ready, writable, _ = select.select(
                [self.line, self.guarded.told], [self.line] if unsent else [], [], SECONDS_BETWEEN_LOOKS
            )
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                if writable:
                    unsent = unsent[self.line.send(unsent[: 1 << 20]) :]
                if self.line in ready:
                    block = self.line.recv(1 << 20)
                    came += block
                    if not block:
                        raise self.gone()
            if lengths is None and len(came) >= LENGTHS.size:
                lengths = LENGTHS.unpack_from(came)
                del came[: LENGTHS.size]
                if lengths[0] > LONGEST_HEAD_BYTES or lengths[1] > LONGEST_PARTS_BYTES:
                    raise ValueError(f"it is of {sum(lengths)} bytes")
            if self.guarded.told in ready and self.line not in ready:
                self.listen()
                if self.guarded.exit_code is not None:
                    raise self.gone()
            now = time.monotonic()
            if now - looked >= SECONDS_BETWEEN_LOOKS:
                looked = now
                self.look(now - started)
        return bytes(came[: lengths[0]]), bytes(came[lengths[0] : sum(lengths)])

    def look(self, seconds: float) -> None:
        """Raise BrokeDown for a call that takes too long or too much memory."""
        self.processes.look()
        shorten(self.stderr)
        if self.processes.weigh(MEMORY_BYTES):
            raise BrokeDown(f"its processes held over {MEMORY_BYTES >> 30} GiB of memory")
        if seconds > SECONDS_FOR_A_CALL:
            raise BrokeDown(f"a call of it took over {SECONDS_FOR_A_CALL:g} s")

    def listen(self) -> None:
        for line in self.guarded.lines():
            if not line[:1].isdigit():
                self.guarded.take(line)

    def gone(self) -> BrokeDown:
        """How its process ended, which the guard tells a moment after its line is cut."""
        give_up = time.monotonic() + SECONDS_TO_TELL_OF_ITS_END
        while self.guarded.exit_code is None and (left := give_up - time.monotonic()) > 0:
            if select.select([self.guarded.told], [], [], left)[0]:
                self.listen()
        if self.guarded.exit_code is None:
            return BrokeDown("it closed the line to the judge")
        ran_out = killed_for_memory() > self.out_of_memory_before
        return BrokeDown(str(without_answer(self.guarded.exit_code, ran_out)["reason"]))

    def end(self) -> None:
        """End everything that it started."""
        assert self.guarded.leader is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.guarded.leader, signal.SIGKILL)
        self.processes.end()
        self.guarded.say(b"finish")

    def printed(self) -> str:
        """The end of what it has printed."""
        return tail(self.stderr)


def packed(value: Any) -> Any:
    """An argument as it can be sent."""
    if isinstance(value, WordCounts):
        data, offsets, counts = value.data, value.offsets, value.counts
        writable = not (data.readonly or offsets.readonly or counts.readonly)
        return Columns(bytes(data), bytes(offsets), bytes(counts), writable)
    return MeterOf(type(value).__name__) if isinstance(value, Meter) else value


def parameter_of(name: Any, kind: Any, has_default: Any) -> inspect.Parameter:
    """Raises ValueError or TypeError for what is no parameter."""
    (known,) = [each for each in KINDS if each == kind]
    return inspect.Parameter(name, known, default=None if has_default else inspect.Parameter.empty)


def check_head(said: Any, number: int, length: int) -> None:
    """Raise BrokenAnswer unless this is what can be said in answer to a request."""
    if not isinstance(said, dict) or said.get("number") != number:
        raise BrokenAnswer("it answers no call")
    if said.get("status") not in ("imported", "returned", "unavailable", "invalid", "raised"):
        raise BrokenAnswer("no status")
    parts = said.get("parts")
    if not (isinstance(parts, list) and all(is_whole(part) and part >= 0 for part in parts) and sum(parts) == length):
        raise BrokenAnswer("its parts")
    if said["status"] in ("unavailable", "raised") and not is_text(said.get("said")):
        raise BrokenAnswer("no reason")
    if said["status"] == "invalid" and not none_or(is_whole)(said.get("offset")):
        raise BrokenAnswer("offset")


def merges_of(said: Mapping[str, Any], content: bytes) -> list[Any]:
    """Merges as they came; from the first on that is none, what that one shows as."""
    length, wrong = said["length"], said["wrong"]
    if not (is_whole(length) and 0 <= length <= MOST_MERGES and none_or(is_text)(wrong)):
        raise BrokenAnswer("its merges")
    merges: list[Any] = list(merges_from_bytes(content, length))
    if (wrong is None) != (len(merges) == length):
        raise BrokenAnswer("fewer merges than it tells of")
    return merges + [Shown(wrong)] * (length - len(merges))


def word_counts_of(columns: list[bytes]) -> WordCounts:
    """Word counts as they came. Raises BrokenAnswer where an offset leads out of the words."""
    data, offsets, counts = columns
    if len(offsets) % 8 or len(counts) % 8:
        raise BrokenAnswer("its columns")
    listed = array("q", offsets).tolist()
    if not listed or listed[0] != 0 or listed[-1] != len(data) or any(a > b for a, b in zip(listed, listed[1:])):
        raise BrokenAnswer("its offsets")
    return WordCounts(memoryview(data), memoryview(offsets).cast("q"), memoryview(counts).cast("Q"))


def fill(meter: Meter, said: Mapping[str, Any], followed: bytes) -> None:
    """Tell a meter what the one was told that the call had."""
    lengths = said["lengths_at_update"]
    if not (
        each(lambda value: isinstance(value, float))(said["seconds"])
        and each(lambda value: is_whole(value) or is_text(value))(said["tallies"])
        and is_whole(said["follow_calls"])
        and isinstance(lengths, list)
        and all(map(is_whole, lengths))
    ):
        raise BrokenAnswer("its meter")
    meter.seconds, meter.tallies = dict(said["seconds"]), dict(said["tallies"])
    meter.followed = merges_of(said["followed"], followed)
    if isinstance(meter, RecordingMeter):
        meter.follow_calls, meter.lengths_at_update = said["follow_calls"], lengths


def lay_out(given: WordCounts, columns: list[bytes]) -> None:
    """Show in the columns that were handed over what a call has made of its copies, and what stands in their place."""
    names = ("data", "offsets", "counts")
    for name, form, content in zip(names, FORMATS, columns[: len(FORMATS)], strict=True):
        column = getattr(given, name)
        if len(content) != column.nbytes:
            raise BrokenAnswer("its columns")
        if len(content):
            column.cast("B")[:] = content if form == "B" else memoryview(content)
    for name, form, content in zip(names, FORMATS, columns[len(FORMATS) :], strict=True):
        if content != bytes(getattr(given, name)):
            setattr(given, name, memoryview(array(form, content)) if form != "B" else memoryview(content))
