"""What tests of compiled trainers listen with: a meter that notes and stops, and a process whose memory runs out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from variants.contract import Meter


class Recorder(Meter):
    """Notes every call of progress, and does at the second one, the first while C++ works, what it was told to do."""

    def __init__(self, at_second: Any) -> None:
        super().__init__()
        self.at_second = at_second
        self.heard: list[tuple[int, int]] = []

    def progress(self, done: int) -> bool:
        self.heard.append((done, len(self.followed)))
        return bool(self.at_second()) if len(self.heard) == 2 else True


def interrupt() -> bool:
    raise KeyboardInterrupt


OUT_OF_MEMORY = """
import importlib, resource, sys
from variants.contract import WordCounts
train = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
words = WordCounts.from_items([(bytes(range(256)) * 40_000, 1)])
train(WordCounts.from_items([(b"ab", 1)]), 1)
held = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (held + 30_000_000, held + 30_000_000))
try:
    train(words, 1000)
except MemoryError:
    print("MemoryError")
"""


def ends_in_memory_error(train: Any) -> None:
    """Hold a trainer to this: an allocation that fails is Python's MemoryError, not a crash."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OUT_OF_MEMORY, train.__module__, train.__name__]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=root, env={**os.environ, "PYTHONPATH": "."})
    assert (ended.stdout, ended.stderr, ended.returncode) == ("MemoryError\n", "", 0)
