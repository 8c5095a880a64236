"""Trainers with a daemon that is orphaned, in another session and without their environment, and works on request."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from variants.contract import Merge, WordCounts
from variants.heap import train as honest

DAEMON = """
import os, socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + sys.argv[1])
listening.listen()
print(os.getpid(), flush=True)
while True:
    connection, _ = listening.accept()
    until = time.process_time() + 0.25
    while time.process_time() < until:
        sum(range(1000))
    connection.sendall(b".")
    connection.close()
"""
ORPHANING = f"""
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", {DAEMON!r}, *sys.argv[1:]], env={{}}, start_new_session=True)
os._exit(0)
"""
ADDRESS = hashlib.sha256(os.environ["UNRULY_CHILD"].encode()).hexdigest()


def start_a_daemon() -> None:
    """Returns when it listens, its number left where a test can find it."""
    command = [sys.executable, "-c", ORPHANING, ADDRESS]
    with subprocess.Popen(command, env={}, stdout=subprocess.PIPE) as between:
        assert between.stdout is not None
        number = between.stdout.readline().decode()
    with Path(os.environ["UNRULY_CHILD"]).open("a") as file:
        file.write(number)


def ask_the_daemon() -> bool:
    """Whether there was one that worked."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(f"\0{ADDRESS}")
        except ConnectionRefusedError:
            return False
        return asking.recv(1) == b"."


def asks_that_of_an_earlier_block(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Starts one for a later block in any case."""
    print("was helped" if ask_the_daemon() else "was alone", flush=True)  # noqa: T201
    start_a_daemon()
    return honest(word_counts, num_merges)
