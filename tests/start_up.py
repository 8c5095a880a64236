"""How long the command takes to start: python tests/start_up.py. A benchmark, and no test: nothing here can fail.

Prints the median CPU seconds, of nine starts each, of `python -m harness --help` as a whole, and of `python -m harness`
up to the moment in which its first measured process is started.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STARTS = 9
HELP = [sys.executable, "-m", "harness", "--help"]
# Ends the command where it would start the first job, whose own seconds do not count.
FIRST_JOB = [
    sys.executable,
    "-c",
    "import os, subprocess, sys\n"
    "from harness.__main__ import main\n"
    "start = subprocess.Popen.__init__\n"
    "def stop(self, command, *rest, **named):\n"
    "    os._exit(0) if 'harness.worker' in command else start(self, command, *rest, **named)\n"
    "subprocess.Popen.__init__ = stop\n"
    "main(['data.bytes=20kB', 'vocab_size=300', 'results=' + sys.argv[1]])\n",
]


def cpu_seconds(command: list[str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, command in (("--help", HELP), ("up to the first job", FIRST_JOB)):
            seconds = [cpu_seconds(command, str(Path(folder) / "results")) for _ in range(STARTS)]
            print(f"{name}: {statistics.median(seconds):.3f} CPU s ({min(seconds):.3f} to {max(seconds):.3f})")  # noqa: T201


if __name__ == "__main__":
    main()
