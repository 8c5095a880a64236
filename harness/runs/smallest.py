"""The smallest text that shows a trainer's fault: cut down from the corpus on which it was found.

The trainer is called hundreds of times, on texts of a few bytes and in a process of its own, which tells every smaller
text as soon as it has one. So whatever the trainer does, the last that was told stands, and the search ends in time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.progress import bar
from harness.proof.counterexamples import respellings, shrunk, smaller_text
from harness.proof.true_counts import replay
from harness.runs.cells import TrainCell
from harness.runs.identity import Identity, identity_of
from harness.runs.record_keys import WRONG
from harness.worker.calling import OWN
from variants.contract import Corpus, TieBreak, Unavailable, WordCounts

SECONDS = 20.0
LONGEST = 200
"""Characters: a longer text is not small yet, and would put its corpus into records and pages."""
BEGINNINGS = tuple(4**power for power in range(2, 12))
"""The lengths of the corpus' beginning that are tried, the shortest first: up to 4 MiB."""

Fault = Callable[[str], "Identity | None"]


def smallest_text(cell: TrainCell, seconds: float = SECONDS) -> dict[str, Any] | None:
    """The smallest text found in so many seconds on which the cell's trainer is wrong; None if there was none.

    It holds `text`, the `merge` that is wrong and the `reason`, and how many merges to ask for (`num_merges`).
    """
    job = {
        "target": cell.variant.target,
        "params": dict(cell.variant.params),
        "corpus": asdict(cell.reading.corpus),
        "num_merges": cell.num_merges,
        "tie_break": cell.tie_break,
        "seconds": seconds,
        "import_from": sys.path,
    }
    label = f"looking for the smallest text on which {cell.variant.name} is wrong"
    with tempfile.TemporaryFile() as told, bar(label, 0, "texts"):
        searching = subprocess.Popen(
            [sys.executable, "-m", "harness.runs.smallest"],
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
    found: dict[str, Any] | None = json.loads(whole[-1]) if whole else None
    return found if found is not None and len(found["text"]) <= LONGEST else None


class TimeIsOver(Exception):
    """The smallest text that was told up to now stands."""


def search(fault: Fault, text: str, until: Callable[[], bool], tell: Callable[[str, Identity], None]) -> None:
    """Tell ever smaller texts that have a fault, beginning with the shortest beginning of `text` that has one."""

    def is_faulty(candidate: str) -> bool:
        if until():
            raise TimeIsOver
        if (found := fault(candidate)) is None:
            return False
        tell(candidate, found)
        return True

    with contextlib.suppress(TimeIsOver):
        for length in BEGINNINGS:
            if is_faulty(text[:length]):
                shrunk(text[:length], smaller_texts, is_faulty, effort=math.inf)
                return
            if length >= len(text):
                return


def smaller_texts(text: str) -> Iterator[str]:
    """The same text with parts left out, never all of it, then with plain letters.

    >>> list(smaller_texts("yz"))
    ['z', 'y', 'az', 'ya']
    """
    if len(text) > 1:
        yield from smaller_text(text)
    for sign, letter in respellings(text):
        yield text.replace(sign, letter)


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
    return registry.definition(extending=True)


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
