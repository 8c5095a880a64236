"""The smallest text that shows a trainer's fault: cut down from the corpus on which it was found.

The trainer is called hundreds of times, on texts of a few bytes and in a process of its own, which tells every smaller
text as soon as it has one. So whatever the trainer does, the last that was told stands, and the search ends in time.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness import registry
from harness.calling import OWN
from harness.identity import Identity, identity_of
from harness.plan import TrainCell
from harness.progress import bar
from harness.record_keys import WRONG
from harness.replay import replay
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts

SECONDS = 20.0
BEGINNINGS = tuple(4**power for power in range(2, 12))
"""The lengths of the corpus' beginning that are tried, the shortest first: up to 4 MiB."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Fault = Callable[[str], "Identity | None"]


def smallest_text(cell: TrainCell, seconds: float = SECONDS) -> dict[str, Any] | None:
    """The smallest text found in so many seconds on which the cell's trainer is wrong; None if there was none.

    It holds `text`, the `merge` that is wrong and the `reason`, and how many merges to ask for (`num_merges`).
    """
    corpus = asdict(cell.reading.corpus())
    job = {
        "target": cell.variant.target,
        "params": dict(cell.variant.params),
        "corpus": corpus,
        "num_merges": cell.num_merges,
        "tie_break": cell.tie_break,
        "seconds": seconds,
        "import_from": sys.path,
    }
    label = f"looking for the smallest text on which {cell.variant.name} is wrong"
    with tempfile.TemporaryFile() as told, bar(label, 0, "texts"):
        searching = subprocess.Popen(
            [sys.executable, "-m", "harness.smallest"],
            stdin=subprocess.PIPE,
            stdout=told,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RAYON_NUM_THREADS": "1"},
        )
        try:
            searching.communicate(json.dumps(job).encode(), timeout=seconds + 10)
        except subprocess.TimeoutExpired:
            pass
        finally:
            searching.kill()
            searching.wait()
        told.seek(0)
        whole = [line for line in told.read().split(b"\n")[:-1] if line]
    return json.loads(whole[-1]) if whole else None


def search(fault: Fault, text: str, until: Callable[[], bool], tell: Callable[[str, Identity], None]) -> None:
    """Tell ever smaller texts that have a fault, beginning with the shortest beginning of `text` that has one."""
    for length in BEGINNINGS:
        found = fault(text[:length])
        if found is not None:
            tell(text[:length], found)
            shrink(fault, text[:length], until, tell)
            return
        if length >= len(text) or until():
            return


def shrink(fault: Fault, text: str, until: Callable[[], bool], tell: Callable[[str, Identity], None]) -> str:
    """Leave out parts, ever shorter ones, as long as the fault stays; then make the letters plain.

    >>> shrink(lambda text: Identity("wrong") if "yy" in text else None, "axyyb", lambda: False, lambda *_: None)
    'yy'
    """

    def accepted(candidate: str) -> bool:
        if until() or (found := fault(candidate)) is None:
            return False
        tell(candidate, found)
        return True

    size = len(text) // 2
    while size:
        place, before = 0, text
        while place < len(text):
            candidate = text[:place] + text[place + size :]
            if candidate and accepted(candidate):
                text = candidate
            else:
                place += size
        # A part that could be left out may leave others that can be, too.
        size = size if size == 1 and text != before else size // 2
    for old, new in zip(dict.fromkeys(text), LETTERS, strict=False):
        if new not in text and accepted(text.replace(old, new)):
            text = text.replace(old, new)
    return text


class Trial:
    """One trainer, called on one text after another."""

    def __init__(self, job: Mapping[str, Any], folder: Path) -> None:
        self.job = job
        self.path = folder / "text"
        self.train = registry.resolve(job["target"])
        self.count = registry.definition_counter()
        self.fastest = fastest_judge()
        asked = {**job["corpus"], "special_tokens": tuple(job["corpus"]["special_tokens"])}
        self.corpus = replace(Corpus(**asked), path=str(self.path))
        self.keywords = dict(job["params"])
        if job["tie_break"] != OWN:
            self.keywords["tie_break"] = TieBreak(job["tie_break"])
        self.asked = 0
        self.beyond = False
        """Whether the fault is in what is made when no pair is left; else no more is asked for than there is."""

    def __call__(self, text: str) -> Identity | None:
        """What is wrong with the trainer's merges on a text; None if nothing is."""
        self.path.write_text(text, "utf-8", newline="")
        try:
            words = self.count(self.corpus)
        except ValueError:  # what is left is no text of this pattern any more
            return None
        most = len(self.fastest(words, self.job["num_merges"]))
        self.asked = num_merges = min(most + self.beyond, self.job["num_merges"])
        try:
            merges = self.train(self.corpus, num_merges, **self.keywords) if num_merges else []
        except Exception:  # an error of its own is another fault than the one that is looked for
            return None
        found = identity_of(replay(words, merges), num_merges)
        return found if found.kind == WRONG and found.merge is not None else None


def fastest_judge() -> Callable[..., Any]:
    """The fastest trainer of ours that is there: how many merges a text has does not depend on who makes them."""
    for judge in registry.judges():
        train = registry.resolve(judge.target)
        with contextlib.suppress(Unavailable):
            train(WordCounts.from_items([(b"ab", 1)]), 1)
            return train
    return registry.definition()


def main() -> None:
    job = json.load(sys.stdin)
    sys.path[:0] = [place for place in job["import_from"] if place not in sys.path]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # trainers print
    ends = time.monotonic() + job["seconds"]
    text = Path(job["corpus"]["path"]).read_bytes()[: BEGINNINGS[-1]].decode(errors="ignore")

    def tell(smaller: str, found: Identity) -> None:
        told = {"text": smaller, "merge": found.merge, "reason": found.reason, "num_merges": trial.asked}
        answers.write(json.dumps(told) + "\n")
        answers.flush()

    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(job, Path(folder))
        for trial.beyond in (False, True):
            told: list[str] = []

            def told_too(smaller: str, found: Identity, told: list[str] = told) -> None:
                told.append(smaller)
                tell(smaller, found)

            search(trial, text, lambda: time.monotonic() > ends, told_too)
            if told:
                break


if __name__ == "__main__":
    main()
