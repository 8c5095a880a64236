"""Background load for a self-test: processes that only compute, up to three at once, coming and going by chance."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

MOST = 3
SECONDS = 4.0
# It ends by itself when its parent is gone, however that ended.
HOG = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000000):
        pass
"""


@contextlib.contextmanager
def background_load(seed: int) -> Iterator[None]:
    """Let between none and three processes compute, another number every four seconds or so."""
    hogs: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    chance = random.Random(seed)

    def change() -> None:
        while not over.is_set():
            wanted = chance.randint(0, MOST)
            while len(hogs) > wanted:
                end(hogs.pop())
            while len(hogs) < wanted:
                hogs.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", HOG]))
            over.wait(chance.uniform(0.5, 1.5) * SECONDS)

    changing = threading.Thread(target=change, daemon=True)
    changing.start()
    try:
        yield
    finally:
        over.set()
        changing.join()
        while hogs:
            end(hogs.pop())


def end(hog: subprocess.Popen[bytes]) -> None:
    hog.kill()
    hog.wait()
