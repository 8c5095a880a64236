"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in between.

The process leads a group of its own, so that it and everything it starts can be ended at once. The parent keeps its own
clock and takes the kernel's account of the finished process, and does not believe an answer that disagrees with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_STOP = 3.0
STDERR_TAIL_BYTES = 2000
# The worker's clock runs inside the parent's, so it can only show less.
CLOCK_TOLERANCE_SECONDS = 0.005
# The kernel counts CPU time in ticks on some machines.
CPU_TOLERANCE_SECONDS = 0.05
PACKAGES = str(Path(__file__).resolve().parent.parent)
# In the environment of a measured process, and so of everything it starts: how what has left its group is found.
MARK = "BPE_HARNESS_JOB"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Limits:
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group. None: no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


Answer = dict[str, Any]
OnProgress = Callable[[int], None]


def measure(
    job: dict[str, Any],
    output: Path,
    limits: Limits,
    on_progress: OnProgress = lambda _: None,
    *,
    under: Sequence[str] = (),
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Answer:
    """Run one job and return its answer; files it leaves (merges, words) stand in the new folder `output`.

    Every answer has `status` and `reason`; one that was measured has seconds, tallies, curve and memory besides. The
    process runs `under` another program where one is given, with `settings` added to its environment.
    """
    output.mkdir(parents=True)
    reading, writing = os.pipe()
    interpreter = job.get("interpreter") or sys.executable
    full_job = {
        **job,
        "output": str(output),
        "progress_descriptor": writing,
        "memory_limit": limits.memory_bytes,
        "import_from": ["" if path == "" else os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()],  # noqa: PTH100, PTH109
    }
    python_path = os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH")]))
    with (output / "stderr").open("wb") as stderr:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(
                [*under, interpreter, "-m", "harness.worker"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                pass_fds=[writing],
                start_new_session=True,
                env={**os.environ, **settings, "PYTHONPATH": python_path, MARK: str(output)},
            )
        except OSError as error:
            os.close(reading)
            return {"status": "error", "reason": f"cannot start {interpreter}: {error.strerror}"}
        finally:
            os.close(writing)
        try:
            tell(process, json.dumps(full_job))
            ended = attend(process, reading, limits, on_progress)
        finally:
            cpu_seconds = reap(process)
            end_strays(str(output))
            os.close(reading)
        wall = time.perf_counter() - started
    answer = judge(ended, process.returncode, read_answer(output), limits)
    answer.update(
        stderr_tail=tail(output / "stderr"),
        limits={"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes},
    )
    if ended.several or "peak_rss_bytes" not in answer:
        answer["peak_rss_bytes"] = max(ended.most_group_bytes, answer.get("peak_rss_bytes") or 0) or None
        answer["memory_is_sampled"] = True
    if answer["status"] == "ok" and (disagreement := disagreement_of_witnesses(answer, wall, cpu_seconds)):
        answer.update(status="rejected", reason=disagreement)
    return answer


def disagreement_of_witnesses(answer: Answer, wall: float, cpu_seconds: float) -> str | None:
    """What the parent's clock, the kernel's account or an answer's own total say against it; None if nothing."""
    total, spent = answer["total"], sum(answer["seconds"].values())
    if total > wall + CLOCK_TOLERANCE_SECONDS:
        return f"its clock shows {total:.3f} s, the whole process lasted {wall:.3f} s"
    if answer["cpu_seconds"] > cpu_seconds + CPU_TOLERANCE_SECONDS:
        return f"it claims {answer['cpu_seconds']:.3f} s of CPU time, the kernel gave it {cpu_seconds:.3f} s"
    if spent > total + CLOCK_TOLERANCE_SECONDS or min([0.0, *answer["seconds"].values()]) < -CLOCK_TOLERANCE_SECONDS:
        return f"its phases claim {spent:.3f} s of the {total:.3f} s there were"
    return None


def tell(process: subprocess.Popen[bytes], line: str) -> None:
    """Send the process a line; one that is gone by now needs none."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line.encode() + b"\n")


def tail(path: Path) -> str:
    """The end of what was printed, however much that was."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - STDERR_TAIL_BYTES))
        return file.read().decode(errors="replace")


@dataclass
class Ended:
    """Why the parent stopped waiting, and the most memory it saw the group hold."""

    by: str = "itself"
    most_group_bytes: int = 0
    several: bool = False


def attend(process: subprocess.Popen[bytes], reading: int, limits: Limits, on_progress: OnProgress) -> Ended:
    """Wait for the process to end by itself, or make it when it is over a limit."""
    started = time.perf_counter()
    ended = Ended()
    asked_at: float | None = None
    listening, pause = [reading], SECONDS_BETWEEN_LOOKS
    while not exited(process):
        now = time.perf_counter()
        if select.select(listening, [], [], pause)[0]:
            block = os.read(reading, 4096)
            if not block:
                listening, pause = [], 0.001  # closed: the process is about to be gone, or a trainer meddled
            elif (done := block.split()[-1:]) and done[0].isdigit():  # a trainer can write here too
                on_progress(int(done[0]))
        pause = min(2 * pause, SECONDS_BETWEEN_LOOKS)
        held, members = group_memory(process.pid)
        ended.several = ended.several or members > 1
        ended.most_group_bytes = max(ended.most_group_bytes, held)
        if limits.memory_bytes is not None and held > limits.memory_bytes:
            ended.by = "memory"
            return ended
        if asked_at is None and limits.wall_seconds is not None and now - started > limits.wall_seconds:
            ended.by, asked_at = "wall", now
            tell(process, "stop")
        if asked_at is not None and now - asked_at > SECONDS_TO_STOP:
            return ended
    return ended


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


def end_strays(mark: str) -> None:
    """End the processes that bear the mark of a job: they have left its group, into a session of their own."""
    sought = f"{MARK}={mark}".encode()
    give_up = time.perf_counter() + SECONDS_TO_STOP
    while strays := [process for process in all_processes() if sought in environment_of(process)]:
        for process in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.perf_counter() > give_up:
            return  # the kernel is not done with them yet; they are dead all the same
        time.sleep(0.001)


def environment_of(process: int) -> list[bytes]:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # gone, or not ours


def read_answer(output: Path) -> Answer | None:
    try:
        return json.loads((output / "answer.json").read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None


def judge(ended: Ended, exit_code: int, answer: Answer | None, limits: Limits) -> Answer:
    """What the end of the process means."""
    if ended.by == "memory":
        reason = f"its processes held over limits.memory={limits.memory_bytes} bytes"
        return {**(answer or {}), "status": "out_of_memory", "reason": reason}
    if ended.by == "wall":
        if answer is not None and answer["status"] == "ok":
            return answer  # it finished in the moment it was asked to stop
        return {**(answer or {}), "status": "timeout", "reason": f"over limits.wall={limits.wall_seconds:g} s"}
    if answer is not None:
        return answer
    if exit_code < 0:
        return {"status": "killed", "reason": f"its process was ended by {signal_name(-exit_code)}"}
    return {"status": "error", "reason": f"its process ended without an answer, exit status {exit_code}"}


def signal_name(number: int) -> str:
    """
    >>> signal_name(11), signal_name(40)
    ('SIGSEGV', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def group_memory(leader: int) -> tuple[int, int]:
    """The bytes held by the process group of `leader` and the number of its processes; (0, 0) where /proc is absent.

    Pages that several processes share are divided among them (PSS) where there is more than one process.
    """
    members = list(group_members(leader))
    if len(members) == 1:
        return resident_bytes(members[0], "status", "VmRSS"), 1
    return sum(resident_bytes(member, "smaps_rollup", "Pss") for member in members), len(members)


def group_members(leader: int) -> Iterator[int]:
    """The processes in the session of `leader`, whatever groups they have made in it."""
    for process in all_processes():
        try:
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader and fields[0] != b"Z":
            yield process


def all_processes() -> list[int]:
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def resident_bytes(member: int, file_name: str, field: str) -> int:
    try:
        with open(f"/proc/{member}/{file_name}") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # it ended while being looked at
    return 0
