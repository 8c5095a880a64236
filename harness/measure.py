"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in between.

The process leads a session of its own, so that it and everything it starts can be found and ended. The parent keeps its
own clock and takes the kernel's account, and does not believe an answer that disagrees with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from harness.answers import Answer, BrokenAnswer, read_answer, without_answer
from harness.channel import BEGIN, END
from harness.disturbance import COUNTED, content
from harness.processes import MARK, JobProcesses
from harness.witness import CLOCK_TOLERANCE_SECONDS, Witness

__all__ = ["CLOCK_TOLERANCE_SECONDS", "PACKAGES", "Answer", "Limits", "OnProgress", "measure"]

SECONDS_BETWEEN_LOOKS = 0.1
# Where nothing tells that a process is gone.
SECONDS_BETWEEN_GLANCES = 0.002
SECONDS_TO_STOP = 3.0
STDERR_TAIL_BYTES = 2000
MOST_STDERR_BYTES = 16 << 20
PACKAGES = str(Path(__file__).resolve().parent.parent)
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Limits:
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group. None: no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


OnProgress = Callable[[int], None]


def measure(
    job: dict[str, Any],
    output: Path,
    limits: Limits,
    on_progress: OnProgress = lambda _: None,
    *,
    under: Sequence[str] = (),
    settings: Mapping[str, str] = NO_SETTINGS,
    places: Sequence[str] | None = None,
) -> Answer:
    """Run one job and return its answer; files it leaves (merges, words) stand in the new folder `output`.

    Every answer has `status` and `reason`; one that was measured has seconds, tallies, curve and memory besides. The
    process runs `under` another program where one is given, with `settings` added to its environment. It imports from
    `places` and what is installed, and from nowhere else, where they are given; else also from here.
    """
    output.mkdir(parents=True)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    interpreter = job.get("interpreter") or sys.executable
    full_job = {
        **job,
        "output": str(output),
        "channel": theirs.fileno(),
        "memory_limit": limits.memory_bytes,
        "import_from": import_from() if places is None else [],
        "folder": os.getcwd(),  # noqa: PTH109
    }
    usual = filter(None, [PACKAGES, os.environ.get("PYTHONPATH")])
    python_path = os.pathsep.join(usual if places is None else places)
    killed_before = killed_for_memory()
    with (output / "stderr").open("a+b", buffering=0) as stderr, ours:
        try:
            process = subprocess.Popen(
                [*under, interpreter, "-m", "harness.worker"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=places[0] if places else None,  # which -m puts before everything else
                env={**os.environ, **settings, "PYTHONPATH": python_path, MARK: str(output)},
            )
        except OSError as error:
            return {"status": "error", "reason": f"cannot start {interpreter}: {error.strerror}"}
        finally:
            theirs.close()
        attended = Attended(process, JobProcesses(process.pid, str(output)), Witness(process.pid), ours, stderr)
        try:
            tell(process, json.dumps(full_job))
            attended.attend(limits, on_progress)
        finally:
            attended.witness.close(reap(process))
            attended.processes.end()
        answer = judge(attended, output, limits, killed_for_memory() > killed_before)
        answer.update(
            stderr_tail=tail(stderr),
            limits={"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes},
            affinity=job.get("affinity"),
        )
    add_what_was_seen(answer, attended)
    if not under and (against := disagreement(answer, attended.witness)):
        answer.update(status="rejected", reason=against)
    make_accessible(output)
    return answer


def import_from() -> list[str]:
    """Where a module of the user's own is looked for first: as here, and in the current folder."""
    return ["" if path == "" else os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()]  # noqa: PTH100, PTH109


def add_what_was_seen(answer: Answer, attended: Attended) -> None:
    """Add what the parent knows better, or besides."""
    processes, witness = attended.processes, attended.witness
    if processes.several or "peak_rss_bytes" not in answer:
        answer["peak_rss_bytes"] = max(processes.peak_bytes, answer.get("peak_rss_bytes") or 0) or None
        answer["memory_is_sampled"] = True
    seen = witness.record()
    answer["witness"] = seen["witness"]
    counted = answer.pop("counted", None) or dict.fromkeys(COUNTED)
    answer["disturbance"] = {**seen["disturbance"], **counted} if "disturbance" in seen else None


def disagreement(answer: Answer, witness: Witness) -> str | None:
    """What the witnesses have against an answer that would stand as a time, be it of the part that was done."""
    if answer["status"] not in ("ok", "timeout") or "total" not in answer:
        return None
    return witness.disagreement(answer)


def tell(process: subprocess.Popen[bytes], line: str) -> None:
    """Send the process a line; one that is gone by now needs none."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line.encode() + b"\n")


def tail(file: BinaryIO) -> str:
    """The end of what was printed, however much that was; through the open file, for its name may be gone."""
    size = os.fstat(file.fileno()).st_size
    kept = min(size, STDERR_TAIL_BYTES)
    return os.pread(file.fileno(), kept, size - kept).decode(errors="replace")


@dataclass
class Attended:
    """A process that is waited for: what is watched of it, and in the end by what it was stopped."""

    process: subprocess.Popen[bytes]
    processes: JobProcesses
    witness: Witness
    channel: socket.socket
    stderr: BinaryIO
    stopped_by: str | None = None
    heard: bytes = b""

    def attend(self, limits: Limits, on_progress: OnProgress) -> None:
        """Wait for the process to end by itself, or return when it is over a limit and does not stop."""
        started = looked = time.perf_counter()
        asked_at: float | None = None
        with readable_when_gone(self.process) as gone:
            listening: list[Any] = [self.channel, *gone]
            while not exited(self.process):
                now = time.perf_counter()
                pause = max(0.0, looked + SECONDS_BETWEEN_LOOKS - now)
                if not listening:
                    pause = min(pause, SECONDS_BETWEEN_GLANCES)
                if self.channel in select.select(listening, [], [], pause)[0] and not self.listen(on_progress):
                    listening.remove(self.channel)  # the process is about to be gone, or a trainer meddled
                now = time.perf_counter()
                if now - looked < SECONDS_BETWEEN_LOOKS:
                    continue
                looked = now
                self.processes.look()
                self.shorten_stderr()
                if self.processes.weigh(limits.memory_bytes):
                    self.stopped_by = "memory"
                    return
                if asked_at is None and limits.wall_seconds is not None and now - started > limits.wall_seconds:
                    self.stopped_by, asked_at = "wall", now
                    tell(self.process, "stop")
                if asked_at is not None and now - asked_at > SECONDS_TO_STOP:
                    return
            if self.channel in listening:
                self.listen(on_progress)  # what it said last

    def listen(self, on_progress: OnProgress) -> bool:
        """Take what the process said, of which a trainer may have said some; whether there may be more."""
        try:
            block = self.channel.recv(65536)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        *lines, rest = (self.heard + block).split(b"\n")
        self.heard = rest[-80:]
        progress = [line for line in lines if re.fullmatch(rb"\d{1,18}", line)]
        if progress:
            on_progress(int(progress[-1]))
        # At most once each: a trainer may say both without end, and the limits are still to be held.
        for moment, note in ((BEGIN, self.witness.begin), (END, self.witness.end)):
            if moment in lines:
                note(self.processes)
                self.processes.weigh(None)
                with contextlib.suppress(OSError):  # it has not waited
                    self.channel.send(b".")
        return block != b""

    def shorten_stderr(self) -> None:
        """Keep the end of a file that would fill the disk."""
        if os.fstat(self.stderr.fileno()).st_size > MOST_STDERR_BYTES:
            end = tail(self.stderr).encode()
            self.stderr.truncate(0)
            self.stderr.write(end)


@contextlib.contextmanager
def readable_when_gone(process: subprocess.Popen[bytes]) -> Any:
    """A descriptor that select finds readable when the process has ended, where the system has such a thing."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield []
        return
    try:
        yield [descriptor]
    finally:
        os.close(descriptor)


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process is gone, without reaping it: its account is still to be taken."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reap(process: subprocess.Popen[bytes]) -> float:
    """End what is left of the group, and return the kernel's account: CPU seconds of the process and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # only a zombie is left (macOS says the latter)
        os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stdin is not None
    process.stdin.close()
    return usage.ru_utime + usage.ru_stime


def judge(attended: Attended, output: Path, limits: Limits, memory_ran_out: bool) -> Answer:
    """What the end of the process means."""
    try:
        answer = read_answer(output)
    except BrokenAnswer as broken:
        reason = f"what it left is no answer ({broken})"
        return {"status": "error", "reason": reason} if attended.stopped_by is None else over(attended, limits)
    if attended.stopped_by == "wall" and answer is not None and answer["status"] == "ok":
        return answer  # it finished in the moment it was asked to stop
    if attended.stopped_by is not None:
        return {**(answer or {}), **over(attended, limits)}
    if answer is not None and answer["status"] == "stopped":
        return {**answer, "status": "error", "reason": "it stopped before its end, and nobody had asked it to"}
    return answer if answer is not None else without_answer(attended.process.returncode, memory_ran_out)


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


def make_accessible(output: Path) -> None:
    """Leave a folder that can be read and removed, whatever a trainer has made of it."""
    if output.is_symlink() or not output.is_dir():
        output.unlink(missing_ok=True)
        output.mkdir(parents=True)
    for folder, _, _ in os.walk(output):
        with contextlib.suppress(OSError):
            Path(folder).chmod(0o700)
