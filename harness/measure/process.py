"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in between.

The process is the child of a guard, which is ours (guard.py): it reads the clock where the call begins and ends, and
ends everything that was started when the job is over or the harness is gone. The process learns what its job is when
its code has been imported. Nothing it says of itself is believed that the witnesses contradict.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from harness.common.errors import asked_to_end
from harness.common.files import remove_tree
from harness.common.units import BytesRead
from harness.measure.answers import (
    MERGES_TOO_MANY,
    Answer,
    BrokenAnswer,
    digest_of,
    read_answer,
    without_answer,
)
from harness.measure.control_group import ControlGroup
from harness.measure.disturbance import COUNTED, content
from harness.measure.guarded import Guarded, shorten, tail, tell
from harness.measure.page_cache import COLD, drop
from harness.measure.private import PrivateFolders, leave_only
from harness.measure.processes import MARK, JobProcesses
from harness.measure.warm_memory import WarmMemory, bytes_besides, expected_bytes, remember
from harness.measure.witness import CLOCK_TOLERANCE_SECONDS, Before, Witness
from harness.worker.channel import BEGIN, BEGUN, END, IMPORTED, READY

__all__ = ["CLOCK_TOLERANCE_SECONDS", "PACKAGES", "Answer", "Limits", "OnProgress", "measure"]

SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_STOP = 3.0
SECONDS_FOR_AN_IMPORT = 120.0
PACKAGES = str(Path(__file__).resolve().parent.parent.parent)
# The worker, as by -m, but nothing that lies in the current folder can stand in for what it imports.
START = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; "
    "runpy.run_module(sys.argv.pop(), None, '__main__', True)"
)
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
# What a process has to know before it is told its job; the job's words are not among it.
TO_START = (
    "kind",
    "target",
    "output",
    "channel",
    "memory_limit",
    "import_from",
    "folder",
    "affinity",
    "counts_instructions",
    "tallies_by_phase",
    "compiled",
)


@dataclass(frozen=True)
class Limits:
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group. None: no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


OnProgress = Callable[[int], None]
"""Told how many merges are made, or as BytesRead how many bytes; of a counter's bytes plainly."""


def measure(
    job: dict[str, Any],
    output: Path,
    limits: Limits,
    on_progress: OnProgress = lambda _: None,
    *,
    under: Sequence[str] = (),
    variables: Mapping[str, str] = NO_VARIABLES,
    places: Sequence[str] | None = None,
) -> Answer:
    """Run one job and return its answer; files it leaves (merges, words) stand in the new folder `output`.

    Every answer has `status` and `reason`; one that was measured has seconds, tallies, curve and memory besides. The
    process runs `under` another program where one is given, with `variables` added to its environment. It imports from
    `places` and what is installed, and from nowhere else, where they are given; else also from here.

    What used too much CPU time before its call is run once more: on a busy host a start has been seen to take six times
    what the next one took. No time is taken from a process that was rejected.
    """
    start = (job["target"], job.get("interpreter"), tuple(places) if places is not None else None)
    for last in (False, True):
        answer, witness = run(job, output, limits, on_progress, under, variables, places)
        if under or answer["status"] not in ("ok", "timeout") or "total" not in answer:
            return answer
        against, before = witness.disagreement(answer), None
        if against is None:
            against = before = witness.work_before_the_call(in_empty_jobs(*start, output))
        if before is None or last:
            break
        remove_tree(output)
    if against:
        answer.update(status="rejected", reason=against)
    elif answer["status"] == "ok":
        witness.correct(answer)
    return answer


def run(
    job: dict[str, Any],
    output: Path,
    limits: Limits,
    on_progress: OnProgress,
    under: Sequence[str],
    variables: Mapping[str, str],
    places: Sequence[str] | None,
) -> tuple[Answer, Witness]:
    """Run one job: its answer as it stands, and the witness of it."""
    output.mkdir(parents=True)
    interpreter = job.get("interpreter") or sys.executable
    killed_before = killed_for_memory()
    with (
        (output / "stderr").open("a+b", buffering=0) as stderr,
        PrivateFolders() as private,
        ControlGroup() as group,
    ):
        if job.get("corpus") is not None:
            private.give_tables()
            if job.get("page_cache") == COLD:
                drop(job["corpus"]["path"])
        usual = filter(None, [PACKAGES, os.environ.get("PYTHONPATH")])
        environment = {
            **os.environ,
            **private.environment(),
            **variables,
            "PYTHONPATH": os.pathsep.join(usual if places is None else places[:1]),
            MARK: str(output),
        }
        command = [*under, interpreter, "-c", START, "harness.worker"]
        with Guarded.start(command, environment, private, group, stderr) as guarded:
            if guarded.failure is not None:
                reason = f"cannot start {interpreter}: {guarded.failure}"
                return {"status": "error", "reason": reason}, Witness(0)
            assert guarded.leader is not None
            full_job = {
                **job,
                "output": str(output),
                "channel": guarded.channel,
                "memory_limit": limits.memory_bytes,
                "import_from": import_from() if places is None else list(places),
                "folder": private.working,
                **with_full_paths(job),
            }
            processes = JobProcesses(guarded.leader, str(output), guard=guarded.process.pid, group=group)
            attended = Attended(guarded, processes, Witness(guarded.leader), full_job, stderr)
            if not under:  # there is no time to be measured under a tool that counts
                attended.expected_bytes = expected_bytes(job)
            if (extending := job.get("extending")) is not None:
                attended.witness.inherited_bytes = Path(extending["merges"]).stat().st_size
            try:
                tell(guarded, json.dumps({name: value for name, value in full_job.items() if name in TO_START}))
                attended.attend(limits, on_progress)
            finally:
                attended.end()
        if job.get("corpus") is not None:
            private.keep_tables()
        if output.is_symlink() or not output.is_dir():
            leave_only(output, kept=())
        most_merges = (job.get("num_merges") or 0) + MERGES_TOO_MANY
        answer = judge(attended, output, limits, killed_for_memory() > killed_before, most_merges)
        leave_only(output, kept=("words",))
        answer.update(
            stderr_tail=tail(stderr),
            limits={"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes},
            affinity=job.get("affinity"),
            page_cache=job.get("page_cache"),
        )
    add_what_was_seen(answer, attended)
    if attended.held_before and answer["peak_rss_bytes"] is not None:
        remember(job, answer["peak_rss_bytes"] - attended.held_before)
    return answer, attended.witness


def in_empty_jobs(
    target: str, interpreter: str | None, places: tuple[str, ...] | None, beside: Path
) -> Iterator[Before]:
    """The most that starting, and importing a target's module, is known to take where there is no job.

    First what is known, which may be nothing; then after another look, and so on, some looks for each target.
    """
    module = target.partition(":")[0], interpreter, places
    yield known_empty_jobs.get(module, Before())
    while empty_jobs_of[target, interpreter, places] < EMPTY_JOBS:
        empty_jobs_of[target, interpreter, places] += 1
        seen = in_an_empty_job(target, interpreter, places, beside)
        known_empty_jobs[module] = Before(*map(max, known_empty_jobs.get(module, seen), seen))
        yield known_empty_jobs[module]


Imported = tuple[str, str | None, tuple[str, ...] | None]
EMPTY_JOBS = 3
known_empty_jobs: dict[Imported, Before] = {}
empty_jobs_of: Counter[Imported] = Counter()


def in_an_empty_job(target: str, interpreter: str | None, places: tuple[str, ...] | None, beside: Path) -> Before:
    """What starting and importing takes where there is no job, the target's code compiled anew, as the first time."""
    output = beside.with_name(f"{beside.name}-import")
    job = {"kind": "import", "target": target, "interpreter": interpreter, "compiled": str(output / "compiled")}
    limits = Limits(wall_seconds=SECONDS_FOR_AN_IMPORT)
    _, witness = run(job, output, limits, lambda _: None, (), NO_VARIABLES, places)
    remove_tree(output)
    return witness.before


def with_full_paths(job: dict[str, Any]) -> dict[str, Any]:
    """The files that a job names by a way up from the current folder, named so that they are found from any folder.

    What lies in the current folder keeps its name, which people know: its private copy shows it.
    """
    named: dict[str, Any] = {}
    if str(job.get("words", "")).startswith(os.pardir):
        named["words"] = os.path.abspath(job["words"])  # noqa: PTH100
    known = job.get("corpus")
    if known is not None and known["path"].startswith(os.pardir):
        named["corpus"] = {**known, "path": os.path.abspath(known["path"])}  # noqa: PTH100
    return named


def import_from() -> list[str]:
    """Where a module of the user's own is looked for first: as here, and in the current folder."""
    return [os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()]  # noqa: PTH100, PTH109


def add_what_was_seen(answer: Answer, attended: Attended) -> None:
    """Add what the parent knows better, or besides."""
    processes, witness = attended.processes, attended.witness
    if processes.several or "peak_rss_bytes" not in answer:
        answer["peak_rss_bytes"] = max(processes.peak_bytes, answer.get("peak_rss_bytes") or 0) or None
        answer["memory_is_sampled"] = True
    else:
        answer["peak_rss_bytes"] = max(answer["peak_rss_bytes"], witness.most_bytes)
    seen = witness.record()
    answer["witness"] = seen["witness"]
    counted = answer.pop("counted", None) or dict.fromkeys(COUNTED)
    answer["disturbance"] = {**seen["disturbance"], **counted} if "disturbance" in seen else None


@dataclass
class Attended:
    """A process that is waited for: what is watched of it, and in the end by what it was stopped."""

    guarded: Guarded
    processes: JobProcesses
    witness: Witness
    job: dict[str, Any]
    stderr: BinaryIO
    expected_bytes: int = 0
    stopped_by: str | None = None
    digest: bytes | None = None
    memory: WarmMemory | None = None
    held_before: int = 0
    seconds_to_warm: float = 0.0

    def attend(self, limits: Limits, on_progress: OnProgress) -> None:
        """Wait for the process to end by itself, or return when it is over a limit and does not stop."""
        started = looked = time.perf_counter()
        asked_at: float | None = None
        halted = False
        while self.guarded.exit_code is None:
            pause = max(0.0, looked + SECONDS_BETWEEN_LOOKS - time.perf_counter())
            if select.select([self.guarded.told], [], [], pause)[0]:
                self.listen(on_progress)
            now = time.perf_counter()
            if now - looked < SECONDS_BETWEEN_LOOKS:
                continue
            looked = now
            if asked_to_end:  # which only the main thread is told, and this may be another
                raise KeyboardInterrupt
            self.processes.look()
            shorten(self.stderr)
            if self.processes.weigh(limits.memory_bytes):
                self.stopped_by = "memory"
                return
            if self.memory is not None and self.held_before:
                self.memory.free_ahead_of(self.processes.peak_bytes - self.held_before)
            halted_before, halted = halted, self.guarded.is_halted()
            if halted_before and halted:  # once may be while everything here goes on again that was halted together
                self.stopped_by = "itself"
                return
            taken = now - started - self.seconds_to_warm
            if asked_at is None and limits.wall_seconds is not None and taken > limits.wall_seconds:
                self.stopped_by, asked_at = "wall", now
                tell(self.guarded, "stop")
            if asked_at is not None and now - asked_at > SECONDS_TO_STOP:
                return

    def end(self) -> None:
        """End everything that is left of the job; the guard ends what this does not find, and tells the account."""
        leader = self.guarded.leader
        assert leader is not None
        if self.memory is not None:
            self.memory.close()
        if self.guarded.exit_code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        if self.guarded.is_halted():
            self.processes.end()  # first, so that nothing is left that would halt the guard again
            self.guarded.go_on()
        give_up = time.perf_counter() + SECONDS_TO_STOP
        while self.guarded.exit_code is None and time.perf_counter() < give_up:
            if select.select([self.guarded.told], [], [], SECONDS_BETWEEN_LOOKS)[0]:
                for line in self.guarded.lines():
                    self.guarded.take(line)
        self.witness.close(self.guarded.cpu_seconds)
        self.processes.end()
        self.guarded.say(b"finish")

    def listen(self, on_progress: OnProgress) -> None:
        """Take what the guard tells: of the process itself, and what that said."""
        for line in self.guarded.lines():
            if not line[:1].isdigit():
                self.guarded.take(line)
                continue
            at, waited, said = line.split(b" ", 2)
            if said.isdigit():
                on_progress(int(said))
            elif (done := said.removesuffix(b" bytes")).isdigit():
                on_progress(BytesRead(done))
            elif said == b"went":
                self.witness.went(int(at) / 1e9)
            elif said == BEGUN:
                self.witness.has_begun(int(waited) / 1e9)
            else:
                self.note(said, int(at) / 1e9, int(waited) / 1e9)

    def note(self, said: bytes, at: float, waited: float) -> None:
        """A moment that the process waits at. A trainer may say one as well: each has the effect it has, no other."""
        moment, _, digest = said.partition(b" ")
        if moment == READY:
            self.warm_memory()
            self.witness.ready(self.processes)
        elif moment == IMPORTED:
            if self.witness.imported(self.processes):
                rest = {name: value for name, value in self.job.items() if name not in TO_START}
                tell(self.guarded, json.dumps(rest))
        elif moment == BEGIN:
            self.free_memory_for_the_call()
            self.witness.begin(self.processes)
        elif moment == END:
            self.witness.end(self.processes, at, waited)
            self.digest = digest
        self.guarded.say(b"go")

    def warm_memory(self) -> None:
        """Make ready the memory that importing and the call may need; once, for a trainer can say READY as well."""
        if self.memory is None and self.expected_bytes:
            started = time.perf_counter()
            self.memory = WarmMemory(self.expected_bytes + bytes_besides(self.job))
            self.memory.keep(self.expected_bytes)
            self.seconds_to_warm = time.perf_counter() - started

    def free_memory_for_the_call(self) -> None:
        """The call begins: from now on memory is freed ahead of what it takes."""
        if self.memory is not None and not self.held_before:
            self.processes.weigh(None)
            self.held_before = self.processes.peak_bytes
            self.memory.free_ahead_of(0)


def judge(attended: Attended, output: Path, limits: Limits, memory_ran_out: bool, most_merges: int) -> Answer:
    """What the end of the process means."""
    if attended.stopped_by == "itself":
        return {"status": "rejected", "reason": "it halted its guard, without which nothing is known of its time"}
    try:
        answer = read_answer(output, most_merges)
    except BrokenAnswer as broken:
        reason = f"what it left is no answer ({broken})"
        return {"status": "error", "reason": reason} if attended.stopped_by is None else over(attended, limits)
    if attended.stopped_by == "wall" and answer is not None and answer["status"] == "ok":
        return answer  # it finished in the moment it was asked to stop
    if attended.stopped_by is not None:
        return {**(answer or {}), **over(attended, limits)}
    if answer is not None and answer["status"] == "stopped":
        return {**answer, "status": "error", "reason": "it stopped before its end, and nobody had asked it to"}
    if answer is None:
        exit_code = attended.guarded.exit_code
        return without_answer(exit_code if exit_code is not None else -signal.SIGKILL, memory_ran_out)
    if answer["status"] == "ok" and attended.guarded.is_gone:
        return {**answer, "status": "rejected", "reason": "its guard ended before it, so nothing is known of its time"}
    if answer["status"] == "ok" and attended.digest is not None:
        left = digest_of(output, answer)
        if left is not None and attended.digest != left.encode():
            what = "merges" if "merges_done" in answer else "words"
            told = f"its {what} are not those that it had when its call returned"
            return {**answer, "status": "rejected", "reason": told}
    return answer


def over(attended: Attended, limits: Limits) -> Answer:
    """Which limit it was over."""
    if attended.stopped_by == "memory":
        reason = f"its processes held over limits.memory={limits.memory_bytes} bytes"
        return {"status": "out_of_memory", "reason": reason}
    return {"status": "timeout", "reason": f"over limits.wall={limits.wall_seconds:g} s"}


def killed_for_memory() -> int:
    """How many processes the kernel has ended because no memory was left, since the machine started."""
    found = re.search(r"^oom_kill (\d+)$", content("/proc/vmstat"), re.MULTILINE)
    return int(found[1]) if found else 0
