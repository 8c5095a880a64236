"""What is measured of our own trainers and counters is measured once, and handed out again to
whoever asks the same.

Tests of what is done with measurements (blocks, proofs, records, runs taken up again) train the
same few variants on the same few words some hundred times, in a process of its own each time. What
these processes are and survive is tested elsewhere; here it is enough that each of them was real
once.
"""

import copy
import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.measure.process import DEFAULTS, Answer, WorkerLimits, measure
from harness.worker import exchange
from harness.worker.exchange import Job


class MeasuredOnce:
    """In the place of `measure`: the answers of this session, with the files that each left in
    `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, Answer] = {}

    def __call__(self, job: Job, output: Path, limits: WorkerLimits, *others: Any) -> Answer:
        # Trainers that tests bring along may do anything, and whoever is run in another way is the
        # test's subject.
        is_usual = job.interpreter is None and others[1:] in ((), (DEFAULTS,))
        if not is_usual or not job.target.startswith("variants."):
            return measure(job, output, limits, *others)
        key = digest_of(job, limits)
        if key not in self.answers:
            answer = measure(job, output, limits, *others)
            if answer.status != "ok":
                return answer
            shutil.copytree(output, self.folder / key)
            self.answers[key] = answer
        shutil.copytree(self.folder / key, output, dirs_exist_ok=True)
        answer = copy.deepcopy(self.answers[key])
        if answer.text is not None:
            assert job.corpus is not None
            answer.text = exchange.file_state(job.corpus.path)
        return answer


def digest_of(job: Job, limits: WorkerLimits) -> str:
    """The digest of a job, with the content of its files in place of their paths."""
    paths = [Path(job.words) / name for name, _ in exchange.COLUMNS if job.words]
    if job.corpus is not None:
        paths.append(Path(job.corpus.path))
        job = replace(job, corpus=replace(job.corpus, path="text"))
    question = replace(job, words=""), limits, [path.read_bytes() for path in paths]
    return hashlib.sha256(repr(question).encode()).hexdigest()
