"""Counting instead of timing: the instructions of a trainer's call, counted by callgrind, however
busy the machine is.

Callgrind writes what it has counted whenever the C library's ctermid is entered. The measured
process enters it where the call starts and where it ends, so the second account is the call's
alone. What else could change the count is fixed: the hash seed, the addresses (by valgrind itself),
which of its functions the C library chooses by looking at the CPU, and when it joins small
blocks of freed memory, else in bursts (3 % of a call, or nothing).

The addresses are those of one code in one folder: in another they are others, and what hashes by
them, as Abseil's maps do, then takes other steps. A layout moves them on purpose, so that a count
can be seen to depend on them.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from harness.measure.process import (
    DEFAULTS,
    Answer,
    OnProgress,
    ProcessOptions,
    WorkerLimits,
    measure,
)
from harness.worker.job import Job

MARKED_FUNCTION = "ctermid"
OPTIONS = (
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
SETTINGS = {"PYTHONHASHSEED": "0", "GLIBC_TUNABLES": ":".join(TUNABLES), "LD_BIND_NOW": "1"}
PADDING = "BPE_HARNESS_PADDING"
# the bytes by which the environment grows from layout to layout: three pages and a little
STEP = 12_345
MOST_LAYOUTS = 10  # Linux takes no variable of 128 KiB
NOT_UNDER_VALGRIND = ("total", "cpu_seconds", "system_seconds", "peak_rss_bytes")
"""Figures of the tool and not of the trainer."""


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
        under=[valgrind, *OPTIONS, accounts],
        variables={**options.variables, **SETTINGS, PADDING: padding},
    )
    job = replace(job, counts_instructions=True)
    answer = measure(job, output, limits, on_progress, options)
    for name in NOT_UNDER_VALGRIND:
        setattr(answer, name, None)
    answer.seconds = {}
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
