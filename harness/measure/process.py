"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in between.

The process is the child of a guard (guard.py), which reads the clock where the call starts and ends, and ends all that
was started when the job is over or the harness is gone. The process gets its job when its code has been imported.
Nothing that it says of itself is believed if its account (witness.py) contradicts it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.common.errors import asked_to_end
from harness.common.units import BytesRead
from harness.measure.answers import (
    MERGES_TOO_MANY,
    Answer,
    BrokenAnswer,
    digest_of,
    read_answer,
    without_answer,
)
from harness.measure.disturbance import COUNTED, content
from harness.measure.guarded import SECONDS_BETWEEN_LOOKS, GuardedProcess
from harness.measure.sandbox import COLD, PACKAGES, Sandbox, drop, leave_only, touch_memory
from harness.measure.witness import ProcessAccount

__all__ = ["PACKAGES", "Answer", "Limits", "OnProgress", "measure"]

SECONDS_TO_STOP = 3.0
JOB_FOLDER = "BPE_HARNESS_JOB"
"""The variable that names the folder of a job's answer in the environment of its process."""
# The worker, as by -m, but nothing that lies in the current folder can stand in for what it imports.
START = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; "
    "runpy.run_module(sys.argv.pop(), None, '__main__', True)"
)
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
BEFORE_THE_IMPORT = (
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
)
"""What a process has to know before it imports the target; what it is to work on is not among it."""


@dataclass(frozen=True)
class Limits:
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group. None: no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


OnProgress = Callable[[int], None]
"""Called with the number of merges made, or with a number of bytes as BytesRead; plainly for a counter's bytes."""


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
    """Run one job and return its answer; the files it leaves (merges, words) are in the new folder `output`.

    Every answer has `status` and `reason`; one that was measured also has seconds, tallies, curve and memory. The
    process runs `under` another program if one is given, with `variables` added to its environment. It imports from
    `places` and what is installed, and from nowhere else, if they are given; else also from here.
    """
    output.mkdir(parents=True)
    if not under:
        touch_memory(job)
    killed_before = killed_for_memory()
    interpreter = job.get("interpreter") or sys.executable
    command = [*under, interpreter, "-c", START, "harness.worker"]
    with (output / "stderr").open("a+b", buffering=0) as stderr, Sandbox() as sandbox:
        if job.get("corpus") is not None:
            sandbox.give_tables()
            if job.get("page_cache") == COLD:
                drop(job["corpus"]["path"])
        environment = {**worker_environment(sandbox, places), **variables, JOB_FOLDER: str(output)}
        with GuardedProcess.start(command, environment, sandbox.path, stderr) as process:
            if process.leader is None:
                return {"status": "error", "reason": f"cannot start {interpreter}: {process.failure}"}
            full_job = {
                **job,
                "output": str(output),
                "channel": process.channel,
                "memory_limit": limits.memory_bytes,
                "import_from": import_from() if places is None else list(places),
                "folder": sandbox.working,
                **with_full_paths(job),
            }
            supervision = Supervision(process, full_job)
            try:
                supervision.attend(limits, on_progress)
            finally:
                supervision.end()
        if job.get("corpus") is not None:
            sandbox.keep_tables()
        answer = supervision.answer(output, limits, killed_for_memory() > killed_before)
        leave_only(output, keep=("words",))
        answer.update(
            stderr_tail=process.tail(),
            limits={"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes},
            affinity=job.get("affinity"),
            page_cache=job.get("page_cache"),
        )
    supervision.check(answer, timed=not under)
    return answer


def worker_environment(sandbox: Sandbox, places: Sequence[str] | None) -> dict[str, str]:
    """Return the variables of a measured process, which imports the harness from here or from the first of `places`."""
    here = [PACKAGES, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, here if places is None else places[:1]))
    return {**os.environ, **sandbox.environment(), "PYTHONPATH": path}


def with_full_paths(job: dict[str, Any]) -> dict[str, Any]:
    """Return the files that a job names by a way up from the current folder, under names that hold in any folder.

    What lies in the current folder keeps its name, which people know: its private copy shows it.
    """
    named: dict[str, Any] = {}
    if str(job.get("words", "")).startswith(os.pardir):
        named["words"] = os.path.abspath(job["words"])  # noqa: PTH100
    corpus = job.get("corpus")
    if corpus is not None and corpus["path"].startswith(os.pardir):
        named["corpus"] = {**corpus, "path": os.path.abspath(corpus["path"])}  # noqa: PTH100
    return named


def import_from() -> list[str]:
    """Return where a module of the user's own is looked for first: as here, and in the current folder."""
    return [os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()]  # noqa: PTH100, PTH109


class Supervision:
    """A measured process while the harness waits for it; `stopped_by` is the limit that it was over."""

    def __init__(self, process: GuardedProcess, job: dict[str, Any]) -> None:
        self.process = process
        self.job = job
        extending = job.get("extending")
        inherited = 0 if extending is None else Path(extending["merges"]).stat().st_size
        self.account = ProcessAccount(process, inherited)
        self.stopped_by: str | None = None
        self.digest: bytes | None = None

    def attend(self, limits: Limits, on_progress: OnProgress) -> None:
        """Wait until the process has ended, or return if it is over a limit and does not stop."""
        self.tell(name for name in self.job if name in BEFORE_THE_IMPORT)
        started = looked = time.perf_counter()
        stop_at: float | None = None
        halted = False
        while self.process.exit_code is None:
            for line in self.process.wait(looked + SECONDS_BETWEEN_LOOKS - time.perf_counter()):
                self.hear(line, on_progress)
            now = time.perf_counter()
            if now - looked < SECONDS_BETWEEN_LOOKS:
                continue
            looked = now
            if asked_to_end:  # only the main thread gets a signal, and this may be another
                raise KeyboardInterrupt
            if self.process.look(limits.memory_bytes):
                self.stopped_by = "memory"
                return
            halted_before, halted = halted, self.process.is_guard_halted()
            if halted_before and halted:  # once may be while everything here goes on again that was halted together
                self.stopped_by = "itself"
                return
            if stop_at is None and limits.wall_seconds is not None and now - started > limits.wall_seconds:
                self.stopped_by, stop_at = "wall", now + SECONDS_TO_STOP
                if self.account.received is None:  # it has no figures yet, and nobody in it listens
                    return
                self.process.speak("stop")
            if stop_at is not None and now > stop_at:
                return

    def tell(self, names: Any) -> None:
        self.process.speak(json.dumps({name: self.job[name] for name in names}))

    def hear(self, line: bytes, on_progress: OnProgress) -> None:
        """Take what the process said, and answer it if it waits. A trainer may say the same, to no other effect."""
        at, waited, word = line.split(b" ", 2)
        moment, _, digest = word.partition(b" ")
        if word.isdigit():
            on_progress(int(word))
        elif (done := word.removesuffix(b" bytes")).isdigit():
            on_progress(int(done) if self.job["kind"] == "count" else BytesRead(int(done)))
        elif moment == b"went":
            self.account.went(int(at) / 1e9)
        elif moment == b"begun":
            self.account.has_begun(int(waited) / 1e9)
        else:
            if moment == b"imported" and self.account.receive():
                self.tell(name for name in self.job if name not in BEFORE_THE_IMPORT)
            elif moment == b"begin":
                self.account.begin()
            elif moment == b"end":
                self.account.end(int(at) / 1e9, int(waited) / 1e9)
                self.digest = digest
            self.process.say(b"go")

    def end(self) -> None:
        self.process.kill()
        self.account.closed_at = time.perf_counter()

    def answer(self, output: Path, limits: Limits, memory_ran_out: bool) -> Answer:
        """Return what the end of the process means."""
        if self.stopped_by == "itself":
            return {"status": "rejected", "reason": "it halted its guard, without which nothing is known of its time"}
        if output.is_symlink() or not output.is_dir():
            leave_only(output)
        try:
            answer = read_answer(output, (self.job.get("num_merges") or 0) + MERGES_TOO_MANY)
        except BrokenAnswer as broken:
            reason = f"its answer is invalid: {broken}"
            return {"status": "error", "reason": reason} if self.stopped_by is None else over(self.stopped_by, limits)
        if self.stopped_by == "wall" and answer is not None and answer["status"] == "ok":
            return answer  # it finished in the moment it was asked to stop
        if self.stopped_by is not None:
            return {**(answer or {}), **over(self.stopped_by, limits)}
        if answer is None:
            exit_code = self.process.exit_code
            return without_answer(-signal.SIGKILL if exit_code is None else exit_code, memory_ran_out)
        if answer["status"] == "stopped":
            return {**answer, "status": "error", "reason": "it stopped early, though no limit was reached"}
        return self.with_its_results(answer, output)

    def with_its_results(self, answer: Answer, output: Path) -> Answer:
        """Return an answer; rejected if its guard is gone, or its results are not those of its call."""
        reason = None
        if answer["status"] == "ok" and self.process.is_guard_gone:
            reason = "its guard ended before it, so nothing is known of its time"
        elif answer["status"] == "ok" and self.digest is not None:
            left = digest_of(output, answer)
            if left is not None and self.digest != left.encode():
                what = "merges" if "merges_done" in answer else "words"
                reason = f"its {what} are not those that it had when its call returned"
        return answer if reason is None else {**answer, "status": "rejected", "reason": reason}

    def check(self, answer: Answer, timed: bool) -> None:
        """Add what the parent knows, and reject an answer that this contradicts; without a clock if not `timed`."""
        contradicted = self.account.check(answer) if "total" in answer else None
        if timed and contradicted is not None and answer["status"] in ("ok", "timeout"):
            answer.update(status="rejected", reason=contradicted)
        process = self.process
        if process.several or "peak_rss_bytes" not in answer:
            answer["peak_rss_bytes"] = max(process.peak_bytes, answer.get("peak_rss_bytes") or 0) or None
            answer["memory_is_sampled"] = True
        else:
            answer["peak_rss_bytes"] = max(answer["peak_rss_bytes"], self.account.held_bytes)
        record = self.account.record()
        answer["witness"] = record["witness"]
        counted = answer.pop("counted", None) or dict.fromkeys(COUNTED)
        answer["disturbance"] = {**record["disturbance"], **counted} if "disturbance" in record else None


def over(limit: str, limits: Limits) -> Answer:
    """Return the answer of a process that was over a limit."""
    if limit == "memory":
        reason = f"its processes held over limits.memory={limits.memory_bytes} bytes"
        return {"status": "out_of_memory", "reason": reason}
    return {"status": "timeout", "reason": f"over limits.wall={limits.wall_seconds:g} s"}


def killed_for_memory() -> int:
    """Return how many processes the kernel has ended because no memory was left, since the machine started."""
    match = re.search(r"^oom_kill (\d+)$", content("/proc/vmstat"), re.MULTILINE)
    return int(match[1]) if match else 0
