"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in between.

The process is the child of a guard (guard.py), which ends all that was started when the job is over or the harness is
gone. The process gets its work when its code has been imported. Nothing that it reports of itself is believed if its
account (witness.py) contradicts it.

Two timed runs would measure each other, so a run locks `timing` while it measures times, and another one waits for it.
A run with concurrent=true waits for nobody: it shares the lock `concurrent`, so that other runs wait for it or say so
in their records. The kernel drops a lock with the process that holds it, however that ends. The variable
BPE_HARNESS_LOCKS names another folder for the locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal, end_signals
from harness.common.units import BytesRead, bytes_text
from harness.measure.guarded import GuardedProcess
from harness.measure.machine import content
from harness.measure.sandbox import PACKAGES, Limits, Sandbox, touch_memory
from harness.measure.witness import (
    MERGES_TOO_MANY,
    Answer,
    BrokenAnswer,
    ProcessAccount,
    read_answer,
    without_answer,
)
from harness.worker import JOB, JOB_FOLDER, STOP, WORK, exchange

__all__ = ["PACKAGES", "Answer", "Limits", "OnProgress", "measure"]

SECONDS_TO_STOP = 3.0
MOST_IN_A_LINE = 200
# The worker, as by -m, but nothing that lies in the current folder can replace what it imports.
START = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; "
    "runpy.run_module(sys.argv.pop(), None, '__main__', True)"
)
VARIABLE = "BPE_HARNESS_LOCKS"
SECONDS_BETWEEN_TRIES = 0.2
WAITING = "another benchmark is running here; waiting (concurrent=true runs anyway)"
BEFORE_THE_IMPORT = ("kind", "target", "memory_limit", "import_from", "folder", "counts_instructions")
"""What a process has to know before it imports the target; its work is not among it."""


OnProgress = Callable[[int], None]
"""Called with the number of merges made, or with a number of bytes as BytesRead; plainly for a counter's bytes."""


def measure(
    job: dict[str, Any], output: Path, limits: Limits, on_progress: OnProgress = lambda _: None, **options: Any
) -> Answer:
    """Run one job and return its answer; `options` are those of measure_once.

    A rejected job runs once more, and the second answer counts: a disturbed machine can contradict an honest trainer
    once, and a trainer that hides work does so every time.
    """
    concurrent = is_concurrent()
    answer = measure_once(job, output, limits, on_progress, **options)
    if answer["status"] == "rejected":
        shutil.rmtree(output)
        answer = measure_once(job, output, limits, on_progress, **options)
    return {**answer, "concurrent": concurrent or is_concurrent()}


def measure_once(
    job: dict[str, Any],
    output: Path,
    limits: Limits,
    on_progress: OnProgress,
    *,
    under: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    places: Sequence[str] | None = None,
) -> Answer:
    """Run one job in a fresh process, which puts its results (merges, words) into the new folder `output`.

    Every answer has `status` and `reason`; one that was measured also has seconds, tallies and memory. The
    process runs `under` another program if one is given, with `variables` added to its environment. It imports from
    `places` and what is installed, and from nowhere else, if they are given; else also from here.
    """
    output.mkdir(parents=True)
    if not under:
        touch_memory(job)
    killed_before = killed_for_memory()
    interpreter = job.get("interpreter") or sys.executable
    command = [*under, interpreter, "-c", START, "harness.worker"]
    with Sandbox() as sandbox, (sandbox.path / "stderr").open("a+b", buffering=0) as stderr:
        words, corpus = job.get("words"), job.get("corpus")
        if corpus is not None:
            sandbox.give_tables()
        whole_job = {
            **job,
            "words": words and os.path.abspath(words),  # noqa: PTH100
            "corpus": corpus and {**corpus, "path": os.path.abspath(corpus["path"])},  # noqa: PTH100
            "memory_limit": limits.memory_bytes,
            "import_from": import_from() if places is None else list(places),
            "folder": str(sandbox.working),
        }
        (sandbox.job / JOB).write_text(json.dumps({name: whole_job.pop(name, None) for name in BEFORE_THE_IMPORT}))
        environment = {**worker_environment(sandbox, places), **variables, JOB_FOLDER: str(sandbox.job)}
        with GuardedProcess(command, environment, stderr) as process:
            if process.leader is None:
                return {"status": "error", "reason": f"cannot start {interpreter}"}
            supervision = Supervision(process, whole_job, limits, sandbox.job)
            supervision.attend(on_progress)
        answer = supervision.answer(killed_before)
        hand_over(answer, sandbox.job, output)
        answer["stderr_tail"] = process.tail()
    supervision.check(answer, timed=not under)
    return answer


def worker_environment(sandbox: Sandbox, places: Sequence[str] | None) -> dict[str, str]:
    """Return the variables of a measured process, which imports the harness from here or from the first of `places`."""
    here = [PACKAGES, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, here if places is None else places[:1]))
    return {**os.environ, **sandbox.environment(), "PYTHONPATH": path}


def import_from() -> list[str]:
    """Return where a module of the user's own is looked for first: as here, and in the current folder."""
    return [os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()]  # noqa: PTH100, PTH109


class Supervision:
    """A measured process while the harness waits for it; `stopped_by` is the limit that it exceeded."""

    def __init__(self, process: GuardedProcess, work: dict[str, Any], limits: Limits, folder: Path) -> None:
        self.process = process
        self.work = work
        self.limits = limits
        self.folder = folder
        extending = work.get("extending")
        inherited = 0 if extending is None else Path(extending["merges"]).stat().st_size
        self.account = ProcessAccount(process, inherited)
        self.stopped_by: str | None = None
        self.digest: bytes | None = None
        self.rest = b""

    def attend(self, on_progress: OnProgress) -> None:
        """Wait until the process has ended, or return if it is over a limit and does not stop."""
        started = time.perf_counter()
        stop_at: float | None = None
        while self.process.exit_code is None:
            self.hear(self.process.watch(self.limits.memory_bytes), on_progress)
            now = time.perf_counter()
            if end_signals:  # only the main thread gets a signal, and this may be another
                raise KeyboardInterrupt
            if self.process.is_over_memory:
                self.stopped_by = "memory"
                return
            wall = self.limits.wall_seconds
            if stop_at is None and wall is not None and now - started > wall:
                self.stopped_by, stop_at = "wall", now + SECONDS_TO_STOP
                if self.account.received is None:  # it has no figures yet, and does not look
                    return
                self.put(STOP, "")
            if stop_at is not None and now > stop_at:
                return

    def hear(self, block: bytes, on_progress: OnProgress) -> None:
        """Take what the process says, of a flood the last of each kind. A trainer may say the same, to no effect."""
        *lines, rest = (self.rest + block).split(b"\n")
        self.rest = rest[-MOST_IN_A_LINE:]
        done, moments = None, {}
        for line in lines:
            word, _, more = line.partition(b" ")
            if word.isdigit() and len(word) < 20:
                done = BytesRead(int(word)) if more else int(word)
            else:
                moments[word] = more
        if done is not None:
            on_progress(done)
        if b"imported" in moments and self.account.received is None:
            self.account.received = self.process.cpu()
            self.put(WORK, json.dumps(self.work))
        if b"begin" in moments:
            self.account.begin()
        if b"end" in moments:
            self.account.end()
            self.digest = moments[b"end"]
        if moments:
            self.process.reply()

    def put(self, name: str, content: str) -> None:
        """Write a file for the process."""
        with contextlib.suppress(OSError):  # a trainer has removed the folder
            (self.folder / name).write_text(content)

    def answer(self, killed_before: int) -> Answer:
        """Return what the end of the process means; the kernel had `killed_before` processes for want of memory."""
        try:
            answer = read_answer(self.folder, (self.work.get("num_merges") or 0) + MERGES_TOO_MANY)
        except BrokenAnswer as broken:
            answer = {"status": "error", "reason": f"its answer is invalid: {broken}"}
        if answer is None:
            exit_code = -signal.SIGKILL if self.process.exit_code is None else self.process.exit_code
            memory_ran_out = exit_code == -signal.SIGKILL and killed_for_memory() > killed_before
            answer = without_answer(exit_code, memory_ran_out)
        digest = answer.pop("sha256", None)
        if self.stopped_by == "wall" and answer["status"] == "ok":
            return answer  # it finished just as the limit was reached
        if self.stopped_by is not None:
            return {**answer, **self.over()}
        if answer["status"] == "stopped":
            return {**answer, "status": "error", "reason": "it stopped early, though no limit was reached"}
        if answer["status"] == "ok" and self.process.is_guard_gone:
            return {**answer, "status": "rejected", "reason": "its guard ended before it, so its time is not known"}
        if answer["status"] == "ok" and digest is not None and self.digest not in (None, digest.encode()):
            what = "merges" if "merges_done" in answer else "words"
            reason = f"its {what} are not those that it had when its call returned"
            return {**answer, "status": "rejected", "reason": reason}
        return answer

    def over(self) -> Answer:
        """Return the answer of a process that was over a limit."""
        if self.stopped_by == "wall":
            return {"status": "timeout", "reason": f"over limits.wall={self.limits.wall_seconds:g} s"}
        limit = self.limits.memory_bytes or 0
        reason = f"its processes held more than limits.memory={limit} ({bytes_text(limit)}); raise limits.memory"
        return {"status": "out_of_memory", "reason": reason}

    def check(self, answer: Answer, timed: bool) -> None:
        """Add what the harness knows, and reject an answer that this contradicts; without a clock if not `timed`."""
        seen = self.account.record()
        contradicted = self.account.check(answer, seen["witness"]) if "total" in answer else None
        if timed and contradicted is not None and answer["status"] in ("ok", "timeout"):
            answer.update(status="rejected", reason=contradicted)
        answer.update(
            **seen,
            peak_rss_bytes=self.process.peak_bytes or None,
            memory_is_sampled=self.process.is_sampled or self.account.ended is None,
            limits={"wall_seconds": self.limits.wall_seconds, "memory_bytes": self.limits.memory_bytes},
        )


def hand_over(answer: Answer, folder: Path, output: Path) -> None:
    """Move the results that an answer reports out of the process's folder."""
    names = ["merges"] if "merges_done" in answer else []
    if "words" in answer:
        (output / "words").mkdir()
        names = [f"words/{name}" for name in (exchange.MANIFEST, *dict(exchange.COLUMNS))]
    for name in names:
        shutil.move(folder / name, output / name)


def killed_for_memory() -> int:
    """Return how many processes the kernel has ended because no memory was left, since the machine started."""
    match = re.search(r"^oom_kill (\d+)$", content("proc/vmstat"), re.MULTILINE)
    return int(match[1]) if match else 0


# One timed run at a time on a machine


def timing(concurrent: bool = False) -> io.FileIO:
    """Hold the machine for timed measurements until the lock is closed; wait while another run holds it.

    A `concurrent` run does not wait. Raises Refusal for a lock that cannot be opened.
    """
    held = open_lock("concurrent" if concurrent else "timing")
    try:
        if concurrent:
            fcntl.flock(held, fcntl.LOCK_SH)
        elif not lock(held) or is_concurrent():
            say(WAITING)
            while not lock(held) or is_concurrent():
                time.sleep(SECONDS_BETWEEN_TRIES)
    except BaseException:
        held.close()
        raise
    return held


def is_concurrent(name: str = "concurrent") -> bool:
    """Return whether runs with concurrent=true are being timed; with `timing`, whether another run is."""
    if not os.path.lexists(lock_file(name)):
        return False
    with open_lock(name) as held:
        return not lock(held)


def lock(file: io.FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_file(name: str) -> Path:
    """Return the path of a lock, the same for every user of the machine whatever their temporary folders are."""
    return Path(os.environ.get(VARIABLE) or "/tmp", f"bpe-harness-{name}.lock")


def open_lock(name: str) -> io.FileIO:
    """Open a lock, created if missing; reading is enough to lock it, so other users can.

    Raises Refusal if it cannot be opened; a link is not followed.
    """
    path, how = lock_file(name), os.O_RDONLY | os.O_NOFOLLOW
    try:
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, how | os.O_CREAT | os.O_EXCL, 0o644))
                path.chmod(0o644)  # whatever the umask
        return io.FileIO(os.open(path, how))
    except OSError as error:
        raise Refusal(f"cannot lock {path} ({error.strerror}); set {VARIABLE} to a folder", UNMEASURED) from error
