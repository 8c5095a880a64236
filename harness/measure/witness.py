"""Whether an answer is well formed, and whether the harness's clock and the kernel's account agree
with it.

Nothing that a measured process leaves is trusted. A file is opened only if it is a plain file of a
possible size, and every number has bounds. The process announces both ends of its call and waits
while they are noted. Its own clock must agree with the harness's, its phases must fit into its
total, and between receiving its work and starting the call, and after the call, it may use next to
no CPU time. CPU time is the kernel's word alone.
"""

from __future__ import annotations

import hashlib
import json
import signal
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from harness.common.cards import Whole
from harness.common.comparison import OF_ONE_THREAD
from harness.common.units import seconds_text
from harness.measure.machine import Totals, interference, interference_between
from harness.measure.watched_process import Cpu, Turns, WatchedProcess
from harness.worker import ANSWER, exchange
from variants.contract import TieBreak

LONGEST_ANSWER_BYTES = 64 << 20
LONGEST_MERGES_BYTES = 1 << 30
GREATEST_NUMBER = 2**63 - 1
MERGES_TOO_MANY = 1_000_000
"""Beyond the requested number: a trainer that returns more is wrong, and a record may say so."""
CLOCK_TOLERANCE_SECONDS = 0.005
"""The worker's clock is the harness's, and runs inside of what the harness sees."""
SECONDS_TO_NOTICE, SHARE_TO_NOTICE = 0.25, 0.02
"""The harness may see a call last so much longer, on a busy machine. What it cannot explain is
counted in any case.
"""
SECONDS_TO_WAKE = 0.002
SECONDS_OF_OTHERS, SHARE_OF_OTHERS = 0.001, 0.005
"""The CPU time that other threads may use beside the one that works, also as a share of the wall
time: the process looks ten times a second whether it is to stop.
"""
SECONDS_TO_START, SECONDS_TO_READ_A_BYTE = 0.01, 2e-7
"""The CPU time allowed between receiving the job and starting the call, and for each byte of merges
inherited.
"""
SECONDS_TO_ANSWER, SECONDS_TO_FREE_A_BYTE, SECONDS_TO_WRITE_A_BYTE = 0.1, 1e-9, 4e-9
"""The CPU time allowed after the call, for each byte of memory held, and for each byte of a
counter's words.
"""
SECONDS_TO_DESCRIBE_FEEDING = 0.5
FAILURES = ("error", "skipped", "out_of_memory")

Text = Annotated[str, Meta(max_length=10_000)]
Amount = Annotated[float, Meta(ge=0, lt=2.0**63)]
Few = Meta(max_length=10_000)

FileState = Annotated[list[int], Meta(min_length=5, max_length=5)]


class Failed(msgspec.Struct, forbid_unknown_fields=True):
    """What a process reports if it has no figures."""

    status: Literal["error", "skipped", "out_of_memory"]
    reason: Annotated[str, Meta(min_length=1, max_length=10_000)]
    offset: Whole | None = None


class Report(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a process may add to its figures."""

    from_file: bool = False
    tie_break: TieBreak | None = None
    imported: Annotated[dict[str, FileState], Meta(max_length=100_000)] = {}
    text: FileState | None = None
    feeding: Annotated[dict[Text, Text | None], Few] | None = None
    merges_done: Whole | None = None
    words_done: Whole | None = None


class Measured(Report):
    """What a process reports of a call that it measured."""

    status: Literal["ok", "stopped", "rejected"]
    reason: Text | None
    seconds: Annotated[dict[Text, Amount], Few]
    total: Amount
    tallies: Annotated[dict[Text, Whole], Few]
    interpreter: Text
    takes_threads: bool | None


class Outcome(NamedTuple):
    """How a job ended, and why if it was not well."""

    status: str
    reason: str | None = None


class Answer(Report):
    """What came of a job: what its process reports, and what the harness saw and concluded.

    Without figures `total` is None. `sha256` is the digest of the merges or words that were left.
    """

    status: str
    reason: str | None = None
    offset: int | None = None
    seconds: dict[str, float] = {}
    total: float | None = None
    tallies: dict[str, int] | None = None
    interpreter: str | None = None
    takes_threads: bool | None = None
    words: dict[str, Any] | None = None
    sha256: str | None = None
    cpu_seconds: float | None = None
    system_seconds: float | None = None
    cpu_wait_seconds: float | None = None
    cpu_wait_unknown: str | None = None
    witness: dict[str, float] | None = None
    disturbance: Totals | None = None
    peak_rss_bytes: int | None = None
    memory_is_sampled: bool = False
    source_sha256: str | None = None
    stderr_tail: str = ""
    instructions: dict[str, Any] | None = None

    def fail(self, status: str, reason: str) -> None:
        """Give it another status; the figures stay."""
        self.status = status
        self.reason = reason


class BrokenAnswer(Exception):
    """What the process left is not an answer of the worker."""


def read_answer(folder: Path, most_merges: int) -> Answer | None:
    """Return the answer in a folder, None if there is none; it may report at most `most_merges`
    merges.

    An answer about words gets their manifest as `words`. Raises BrokenAnswer if the answer, or what
    it reports, is not whole.
    """
    try:
        report = json.loads(plain_file(folder / ANSWER, LONGEST_ANSWER_BYTES).read_bytes())
        failed = isinstance(report, dict) and report.get("status") in FAILURES
        checked = msgspec.convert(report, Failed if failed else Measured)
        answer = Answer(**msgspec.structs.asdict(checked))

        if answer.merges_done is not None:
            content = plain_file(folder / "merges", LONGEST_MERGES_BYTES).read_bytes()
            merges = len(exchange.unpacked(content, most_merges))
            if merges != answer.merges_done:
                raise ValueError(f"{merges} merges, not {answer.merges_done}")
            answer.sha256 = hashlib.sha256(content).hexdigest()

        if answer.words_done is not None:
            answer.words = finish_words(folder / "words", answer.words_done)
            answer.sha256 = answer.words["seal"]
    # those of msgspec are ValueErrors, and those of words OSErrors
    except (OSError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, FileNotFoundError) and Path(error.filename).name == ANSWER:
            return None
        raise BrokenAnswer((isinstance(error, OSError) and error.strerror) or str(error)) from error
    return answer


def plain_file(path: Path, most: int) -> Path:
    """Raise ValueError or OSError for anything but a plain file: a link, a pipe, a device, too many
    bytes.

    Nothing can change it later: all processes have ended.

    >>> plain_file(Path(__file__), Path(__file__).stat().st_size).name
    'witness.py'
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path.name} is not a plain file")
    if status.st_size > most:
        raise ValueError(f"{path.name} has {status.st_size} bytes, and at most {most} are allowed")
    return path


def finish_words(folder: Path, number: int) -> dict[str, Any]:
    """Return the manifest of the words that a counter left as columns; one that it left itself is
    not believed.
    """
    if folder.is_symlink():
        raise ValueError("words is a link")
    for column, _ in exchange.COLUMNS:
        plain_file(folder / column, GREATEST_NUMBER)
    words = exchange.mapped(folder)
    if (len(words), words.offsets[0], words.offsets[-1]) != (number, 0, len(words.data)):
        raise ValueError("other words than it reports")
    (folder / exchange.MANIFEST).unlink(missing_ok=True)
    manifest = exchange.finish(folder)
    if manifest["pre_tokens"] > GREATEST_NUMBER:
        raise ValueError("a table of words that is too large to be one")
    return {**manifest, "bytes": words.data.nbytes + words.offsets.nbytes + words.counts.nbytes}


def without_answer(exit_code: int) -> Answer:
    """Return what the end of a process without an answer means.

    >>> [without_answer(code).status for code in (1, 0, -1)]
    ['error', 'error', 'killed']
    >>> without_answer(-99).reason
    'its process was ended by signal 99'
    """
    if exit_code >= 0:
        return Answer("error", f"its process ended without an answer, exit status {exit_code}")

    name = f"signal {-exit_code}"
    if -exit_code in set(signal.Signals):
        name = signal.Signals(-exit_code).name
    reason = f"its process was ended by {name}"
    if name == "SIGKILL":
        reason += "; if memory ran out, take less text (data.bytes=64MB) or set limits.memory"
    return Answer("killed", reason)


class Clocks(NamedTuple):
    """A process's CPU time, the interference, how its main thread had shared the CPUs, the
    page faults of its children that had ended, the harness's clock.
    """

    cpu: Cpu
    interference: Totals
    turns: Turns
    child_faults: list[str]
    at: float


class SeenCall(NamedTuple):
    """A call from the harness's side: the accounts at both ends, and what its process had used when
    it was sent its work; how long it took, what it used, and how its main thread ran and waited
    for a CPU. The harness heard of the end up to `late` seconds after it.
    """

    received: Cpu
    begun: Clocks
    ended: Clocks
    wall_seconds: float
    used: Cpu
    turns: Turns
    late: float

    @property
    def least_seconds(self) -> float:
        """What the call took at least: neither waiting for a CPU nor hearing late is its time."""
        return self.wall_seconds - self.turns.waited - self.late

    @property
    def was_shared(self) -> bool:
        """Whether other threads or processes did part of the work.

        >>> end = Clocks(Cpu(), Totals(), Turns(), [], 0.0)
        >>> def shared(used):
        ...     return SeenCall(Cpu(), end, end, 10.0, Cpu(used), Turns(1.0), 0.0).was_shared
        >>> shared(1.15), shared(1.16)
        (False, True)
        """
        alone = OF_ONE_THREAD * self.turns.ran + SECONDS_OF_OTHERS
        alone += SHARE_OF_OTHERS * self.wall_seconds
        return self.used.total > alone or self.begun.child_faults != self.ended.child_faults


@dataclass
class ProcessAccount:
    """The moments of one process; of a moment that a trainer repeats, the first start and the last
    end count.
    """

    process: WatchedProcess
    inherited_bytes: int = 0
    received: Cpu | None = None  # what the process had used when it was sent its work
    begun: Clocks | None = None
    ended: Clocks | None = None
    late: float = 0.0

    def begin(self) -> None:
        """Note that the call starts as soon as the process is answered; the clock is read last."""
        self.begun = self.begun or self.moment()._replace(at=time.perf_counter())

    def end(self) -> None:
        """Note that the call has ended; what the process waits for from now on is not the
        call's.
        """
        self.late = self.process.late
        self.ended = self.moment()
        self.process.weigh(None)

    def moment(self) -> Clocks:
        """Return the accounts as they are now, and when the harness listened last."""
        process = self.process
        turns = process.turns()
        accounts = process.cpu(), interference(), turns, process.faults_of_children()
        return Clocks(*accounts, process.heard_at)

    @property
    def call(self) -> SeenCall | None:
        """The call; None unless both of its ends were heard."""
        received, begun, ended = self.received, self.begun, self.ended
        if received is None or begun is None or ended is None:
            return None
        used = Cpu(*map(sub, ended.cpu, begun.cpu))
        turns = Turns(*map(sub, ended.turns, begun.turns))
        wall_seconds = ended.at - begun.at
        return SeenCall(received, begun, ended, wall_seconds, used, turns, self.late)

    def contradiction(self, answer: Answer, timed_out: bool) -> str | None:
        """Return what the times of an answer contradict, or None; a call that `timed_out` goes on
        while its answer is written.
        """
        call = self.call
        if answer.total is None:
            return None
        if call is None:
            return None if timed_out else "its parent has not heard when its call began and ended"

        reason = contradiction(answer.total, answer.seconds, call.wall_seconds, call.least_seconds)
        if reason is not None:
            return reason

        used = call.begun.cpu.total - call.received.total
        allowed = SECONDS_TO_START + SECONDS_TO_READ_A_BYTE * self.inherited_bytes
        reason = excess(used, "between receiving the job and starting the call", allowed)
        if reason is not None or timed_out:
            return reason

        used = self.process.used.total - call.ended.cpu.total
        allowed = SECONDS_TO_ANSWER + SECONDS_TO_FREE_A_BYTE * self.process.peak_bytes
        allowed += SECONDS_TO_WRITE_A_BYTE * (answer.words or {}).get("bytes", 0)
        allowed += SECONDS_TO_DESCRIBE_FEEDING * answer.from_file
        return excess(used, "after its call", allowed)

    def add_to(self, answer: Answer) -> None:
        """Add what was seen of the call to an answer, and correct its times by it.

        The time for which the process waited for a CPU, or the harness to hear of the end, need
        not be in the total. A rest that nobody can explain is counted, so a trainer that turns its
        clock back gains nothing.
        """
        call = self.call
        if call is None:
            return
        answer.witness = {
            "wall_seconds": call.wall_seconds,
            "cpu_seconds": call.used.total,
            "system_seconds": call.used.system,
            "import_cpu_seconds": call.received.total,
        }
        answer.disturbance = interference_between(call.begun.interference, call.ended.interference)
        if answer.total is None:
            return

        answer.cpu_seconds = call.used.total
        answer.system_seconds = call.used.system
        if answer.total < call.least_seconds - SECONDS_TO_WAKE:
            answer.total = call.least_seconds

        if not call.turns.ran:
            answer.cpu_wait_unknown = "the system does not report waiting for a CPU"
        elif call.was_shared:
            answer.cpu_wait_unknown = "other threads or processes did part of the work"
        else:
            # It may also have waited before its clock was started, and so may the harness have.
            net = max(answer.total - call.turns.waited, call.least_seconds, call.turns.ran)
            answer.cpu_wait_seconds = max(0.0, answer.total - net)


def contradiction(
    total: float, seconds: Mapping[str, float], wall: float, least: float
) -> str | None:
    """Return what is impossible in the times of a call that its parent saw last `wall` seconds, and
    `least` at least.

    >>> contradiction(1.0, {"init": 0.9}, 1.001, 1.0)
    >>> contradiction(0.0, {"init": 0.005}, 0.0, 0.25), contradiction(0.005, {}, 0.0, 0.0)
    (None, None)
    >>> contradiction(9.6, {}, 10.0, 10.0)
    >>> contradiction(0.1, {}, 2.0, 1.9)
    'its clock shows 100 ms, its parent saw 2.00 s pass'
    >>> contradiction(1.0, {"init": 0.9, "max": 0.9}, 1.0, 1.0)
    'its phases claim 1.80 s of the 1.00 s there were'
    """
    phases = sum(seconds.values())
    if phases > total + CLOCK_TOLERANCE_SECONDS:
        return f"its phases claim {seconds_text(phases)} of the {seconds_text(total)} there were"
    if (
        total > wall + CLOCK_TOLERANCE_SECONDS
        or total < least - SECONDS_TO_NOTICE - SHARE_TO_NOTICE * wall
    ):
        return f"its clock shows {seconds_text(total)}, its parent saw {seconds_text(wall)} pass"
    return None


def excess(seconds: float, when: str, allowed: float) -> str | None:
    """
    >>> excess(0.1, "after its call", 0.1), excess(0.2, "after its call", 0.1)
    (None, '200 ms of CPU time after its call; at most 100 ms is allowed')
    """
    if seconds <= allowed:
        return None
    limit = seconds_text(allowed)
    return f"{seconds_text(seconds)} of CPU time {when}; at most {limit} is allowed"
