"""One measurement: a job goes to a fresh process, an answer comes back, whatever happens in
between.

The process is the child of a guard (guard.py), which ends all that was started when the job is over
or the harness is gone. The process gets its work when its code has been imported. Nothing that it
reports of itself is believed if its account (witness.py) contradicts it. It finds fresh folders of
its own: what a trainer leaves in its working folder, its home, or where temporary files and caches
go is gone when the next one starts, so nothing is answered from a file of an earlier run. Files
elsewhere are out of scope.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import re
import shutil
import signal
import site
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness.common import cache
from harness.common.command import end_signals
from harness.common.files import temporary_folder
from harness.common.units import BytesRead, bytes_text
from harness.measure.machine import CHECKOUT, WorkerLimits, import_from
from harness.measure.quiet import touch_memory
from harness.measure.watched_process import WatchedProcess
from harness.measure.witness import (
    MERGES_TOO_MANY,
    Answer,
    BrokenAnswer,
    Outcome,
    ProcessAccount,
    read_answer,
    without_answer,
)
from harness.worker import JOB, JOB_FOLDER, STANDARD_LIBRARY_FIRST, STOP, WORK, exchange
from harness.worker.exchange import Job, Setup, written

__all__ = ["Answer", "OnProgress", "WorkerLimits", "measure"]

SECONDS_BETWEEN_LOOKS, SECONDS_TO_STOP = 0.1, 3.0
MOST_IN_A_LINE = 200
# The worker, as by -m, but the standard library comes before the current folder.
START = (
    f"{STANDARD_LIBRARY_FIRST}import runpy; "
    "runpy.run_module(sys.argv.pop(), None, '__main__', True)"
)
PACKAGES = str(CHECKOUT)
MAKES_TABLES = "variants.counting.character_classes"
CHARACTER_CLASSES = "character-classes-*.bin"
OF_THE_USER = ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR")
PLACES = ("HOME", "TMPDIR", "TMP", "TEMP", *(f"XDG_{name}" for name in OF_THE_USER), cache.VARIABLE)
"""The variables that name places where programs leave files."""


OnProgress = Callable[[int], None]
"""Called with the number of merges made, or with a number of bytes as BytesRead; plainly for a
counter's bytes.
"""


class ProcessOptions(NamedTuple):
    """How a measured process runs: `under` another program, with `variables` added to its
    environment. It imports from `import_folders` and what is installed, and from nowhere else;
    None also means from here. `layout` moves what it keeps in memory while instructions are counted.
    """

    under: Sequence[str] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    import_folders: Sequence[str] | None = None
    layout: int = 0


DEFAULTS = ProcessOptions()


def measure(
    job: Job,
    output: Path,
    limits: WorkerLimits,
    on_progress: OnProgress = lambda _: None,
    options: ProcessOptions = DEFAULTS,
) -> Answer:
    """Run one job in a fresh process, which puts its results (merges, words) into the new folder
    `output`; return its answer.

    A rejected job runs once more, and the second answer counts: a disturbed machine can contradict
    an honest trainer once, and a trainer that hides work does so every time.
    """
    answer = measure_once(job, output, limits, on_progress, options)
    if answer.status == "rejected":
        shutil.rmtree(output)
        answer = measure_once(job, output, limits, on_progress, options)
    return answer


def measure_once(
    job: Job,
    output: Path,
    limits: WorkerLimits,
    on_progress: OnProgress,
    options: ProcessOptions,
) -> Answer:
    """Run one job once, whatever its answer is."""
    under, import_folders = options.under, options.import_folders
    output.mkdir(parents=True)
    if not under:
        touch_memory(job)

    interpreter = job.interpreter or sys.executable
    command = [*under, interpreter, "-c", START, "harness.worker"]
    with temporary_folder() as folder, (folder / "stderr").open("a+b", buffering=0) as stderr:
        sandbox = Sandbox(folder)

        if job.corpus is not None:
            sandbox.give_tables()
            path = str(Path(job.corpus.path).absolute())  # the process works in another folder
            job = replace(job, corpus=replace(job.corpus, path=path))
        setup = Setup(
            job.target,
            import_from() if import_folders is None else list(import_folders),
            str(sandbox.working),
            limits.memory_bytes,
            job.counts_instructions,
        )
        (sandbox.job / JOB).write_text(written(setup))

        environment = {
            **worker_environment(sandbox, import_folders),
            **options.variables,
            JOB_FOLDER: str(sandbox.job),
        }
        with WatchedProcess(command, environment, stderr) as process:
            if process.leader is None:
                return Answer("error", f"cannot start {interpreter}")
            inherited = 0 if job.extending is None else Path(job.extending.merges).stat().st_size
            account = ProcessAccount(process, inherited)
            supervision = Supervision(process, account, job, limits, sandbox.job)
            supervision.attend(on_progress)
        answer = supervision.answer(timed=not under and job.profile is None)
        hand_over(answer, sandbox.job, output)
        answer.stderr_tail = process.tail()
    return answer


def worker_environment(sandbox: Sandbox, import_folders: Sequence[str] | None) -> dict[str, str]:
    """Return the variables of a measured process, which imports the harness from here or from the
    first of `import_folders`.

    They name the sandbox's folders; packages that a user has installed are still found.
    """
    here = [PACKAGES, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, here if import_folders is None else import_folders[:1]))
    folders = {variable: str(folder) for variable, folder in sandbox.folders.items()}
    user_base = os.environ.get("PYTHONUSERBASE") or site.getuserbase()
    return {**os.environ, **folders, "PYTHONUSERBASE": user_base, "PYTHONPATH": path}


class Sandbox:
    """Fresh folders in a new one; the working one shows by links what lies in the current
    folder.
    """

    def __init__(self, path: Path) -> None:
        self.job, self.working = path / "job", path / "work"
        """Where the process leaves its answer and its results, and where it works."""
        self.folders = {variable: path / variable for variable in PLACES}
        for folder in (self.job, self.working, *self.folders.values()):
            folder.mkdir(mode=0o700)
        with contextlib.suppress(OSError):  # one that cannot be listed is not shown
            for name in os.listdir():  # noqa: PTH208 - names are all that is needed
                (self.working / name).symlink_to(Path.cwd() / name)

    def give_tables(self) -> None:
        """Copy the tables of Unicode's classes from the cache, where they are made once, so no
        process has to.
        """
        importlib.import_module(MAKES_TABLES).character_classes()
        for table in cache.root().glob(CHARACTER_CLASSES):
            # another process is replacing it: the measured one makes its own
            with contextlib.suppress(OSError):
                shutil.copyfile(table, self.folders[cache.VARIABLE] / table.name)


@dataclass
class Supervision:
    """A measured process while the harness waits for it; `over` says which limit it exceeded."""

    process: WatchedProcess
    account: ProcessAccount
    job: Job
    limits: WorkerLimits
    folder: Path
    over: Outcome | None = None
    digest: bytes | None = None
    rest: bytes = b""

    def attend(self, on_progress: OnProgress) -> None:
        """Wait until the process has ended, or return if it is over a limit and does not stop."""
        started = looked_at = now = time.perf_counter()
        stop_at: float | None = None
        while self.process.exit_code is None:
            self.hear(self.process.listen(looked_at + SECONDS_BETWEEN_LOOKS - now), on_progress)
            now = time.perf_counter()
            if end_signals:  # only the main thread gets a signal, and this may be another
                raise KeyboardInterrupt

            wall, memory = self.limits.wall_seconds, self.limits.memory_bytes
            if now - looked_at >= SECONDS_BETWEEN_LOOKS:
                looked_at = now
                if self.process.look(memory):
                    reason = f"its processes held more than limits.memory={memory} ({bytes_text(memory or 0)})"
                    self.over = Outcome("out_of_memory", f"{reason}; raise limits.memory")
                    return

            if stop_at is None and wall is not None and now - started > wall:
                self.over = Outcome("timeout", f"over limits.wall={wall:g} s")
                stop_at = now + SECONDS_TO_STOP
                if self.account.received is None:  # it has no figures yet, and does not look
                    return
                self.put(STOP, "")
            if stop_at is not None and now > stop_at:
                return

    def hear(self, block: bytes, on_progress: OnProgress) -> None:
        """Take what the process says, of a flood the last of each kind. A trainer may say the same,
        to no effect.
        """
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
            self.put(WORK, written(self.job))
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

    def answer(self, timed: bool) -> Answer:
        """Return the answer, judged, with what the harness saw; by no clock unless it is
        `timed`.
        """
        answer = self.report()
        answer.status, answer.reason = self.outcome(answer, timed)

        self.account.add_to(answer)
        answer.peak_rss_bytes = self.process.peak_bytes or None
        answer.memory_is_sampled = self.process.is_sampled or self.account.ended is None
        return answer

    def report(self) -> Answer:
        """Return what the process answered, or what its end without an answer means."""
        try:
            answer = read_answer(self.folder, self.job.num_merges + MERGES_TOO_MANY)
        except BrokenAnswer as broken:
            return Answer("error", f"its answer is invalid: {broken}")
        if answer is not None:
            return answer
        exit_code = self.process.exit_code
        return without_answer(-signal.SIGKILL if exit_code is None else exit_code)

    def outcome(self, answer: Answer, timed: bool) -> Outcome:
        """Return how the job ended by the first rule that holds; else as the process reports."""
        status = answer.status
        over = self.over
        if over is not None and (status, over.status) == ("ok", "timeout"):
            over = None  # it finished just then
        timed_out = over is not None and over.status == "timeout"

        if over is not None and not timed_out:
            return over
        if status == "stopped" and not timed_out:
            return Outcome("error", "it stopped early, though no limit was reached")
        if status == "ok" and self.process.is_guard_gone:
            return Outcome("rejected", "its guard ended before it, so its time is not known")
        digest = answer.sha256 and answer.sha256.encode()
        if status == "ok" and digest and self.digest not in (None, digest):
            what = "words" if answer.merges_done is None else "merges"
            reason = f"its {what} are not those that it had when its call returned"
            return Outcome("rejected", reason)

        if timed and (status == "ok" or timed_out):
            contradicted = self.account.contradiction(answer, timed_out)
            if contradicted is not None:
                return Outcome("rejected", contradicted)
        return over or Outcome(status, answer.reason)


def hand_over(answer: Answer, folder: Path, output: Path) -> None:
    """Move the results that an answer reports out of the process's folder."""
    names = [] if answer.merges_done is None else ["merges"]
    if answer.words is not None:
        (output / "words").mkdir()
        names = [f"words/{name}" for name in (exchange.MANIFEST, *dict(exchange.COLUMNS))]
    for name in names:
        shutil.move(folder / name, output / name)


# Counting instead of timing: the instructions of a trainer's call, however busy the machine is.
#
# Callgrind writes what it has counted whenever the C library's ctermid is entered. The measured
# process enters it where the call starts and where it ends, so the second account is the call's
# alone. What else could change the count is fixed: the hash seed, the addresses (by valgrind itself),
# which of its functions the C library chooses by looking at the CPU, and when it joins small
# blocks of freed memory, else in bursts (3 % of a call, or nothing).
#
# The addresses are those of one code in one folder: in another they are others, and what hashes by
# them, as Abseil's maps do, then takes other steps. A layout moves them on purpose, so that a count
# can be seen to depend on them.

MARKED_FUNCTION = "ctermid"
CALLGRIND = (
    "--tool=callgrind",
    "--quiet",
    f"--dump-before={MARKED_FUNCTION}",
    "--compress-pos=yes",
    "--dump-line=no",
)
"""Without a model of a cache."""
OF_THE_CALL = 2  # the number of the call's account: the first is of everything before it
ONE_THREAD = "callgrind runs one thread at a time, so instructions are counted with threads=1 only"
NOT_INSTALLED = "counting instructions needs valgrind; install it with: apt-get install valgrind"
# The C library has functions for every generation of CPUs; without these features all take
# the same ones.
FEATURES = (
    "AVX512F",
    "AVX512VL",
    "AVX512BW",
    "AVX2",
    "BMI2",
    "LZCNT",
    "MOVBE",
    "ERMS",
    "FSRM",
    "RTM",
    "SSE4_2",
)
TUNABLES = (
    "glibc.malloc.mxfast=0",
    "glibc.cpu.hwcaps=" + ",".join(f"-{feature}" for feature in FEATURES),
)
UNDER_CALLGRIND = {"PYTHONHASHSEED": "0", "GLIBC_TUNABLES": ":".join(TUNABLES), "LD_BIND_NOW": "1"}
PADDING = "BPE_HARNESS_PADDING"
# the bytes by which the environment grows from layout to layout: three pages and a little
STEP = 12_345
MOST_LAYOUTS = 10  # Linux takes no variable of 128 KiB


def measure_instructions(
    job: Job,
    output: Path,
    limits: WorkerLimits,
    on_progress: OnProgress = lambda _: None,
    options: ProcessOptions = DEFAULTS,
) -> Answer:
    """Run a trainer's job under callgrind: its answer has `instructions` and no time. For the rest
    see measure.

    The layout is a number from 0 to MOST_LAYOUTS - 1.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None or job.threads > 1:
        output.mkdir(parents=True)
        return Answer("skipped", NOT_INSTALLED if valgrind is None else ONE_THREAD)

    accounts = f"--callgrind-out-file={str(output).replace('%', '%%')}/callgrind.%p"
    padding = "x" * (options.layout * STEP)
    options = options._replace(
        under=[valgrind, *CALLGRIND, accounts],
        variables={**options.variables, **UNDER_CALLGRIND, PADDING: padding},
    )
    job = replace(job, counts_instructions=True)
    answer = measure(job, output, limits, on_progress, options)
    answer.peak_rss_bytes = None  # of the tool, and so are its times, which no record has
    answer.memory_is_sampled = False

    if answer.status == "ok":
        try:
            version = subprocess.run(
                [valgrind, "--version"], capture_output=True, text=True, check=False
            ).stdout
            path = f"{platform.machine()}, {' '.join(platform.libc_ver())}"
            tool = f"callgrind of {version.strip() or 'an unknown valgrind'}"
            answer.instructions = {"count": count_of_call(output), "path": path, "tool": tool}
        except ValueError as error:
            answer.fail("error", str(error))
    elif answer.status == "out_of_memory":
        answer.reason = f"{answer.reason}, callgrind's own memory included"
    return answer


def count_of_call(output: Path) -> int:
    """Return the instructions between the marks. Raises ValueError if callgrind has not seen them,
    or another process.
    """
    processes = set()
    parts: dict[int, Path] = {}
    for path in output.glob("callgrind.*"):
        _, process, *part = path.name.split(".")
        processes.add(process)
        if part:
            parts[int(part[0])] = path
    if len(processes) > 1:
        raise ValueError("it ran in several processes, and instructions are counted of one")
    if max(parts, default=0) != OF_THE_CALL:
        message = "callgrind has not seen the call begin once and end once"
        raise ValueError(f"{message}; a trainer cannot call {MARKED_FUNCTION}")

    account = parts[OF_THE_CALL]
    total = re.search(r"^totals: (\d+)$", account.read_text(errors="replace"), re.MULTILINE)
    if total is None:
        raise ValueError(f"{account.name} is not an account of callgrind's")
    return int(total[1])
