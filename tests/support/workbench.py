"""What tests of the measuring half build their cases from: a corpus, a cell of it, settings, a look
at processes.
"""

import contextlib
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import psutil
import pytest

from harness.common.cards import MeasureCard
from harness.common.registry import CounterCard, VariantCard
from harness.corpora import CorpusFile
from harness.measure.process import OnProgress, Supervision, WorkerLimits
from harness.records.file import RunLog
from harness.runs.blocks import measure_task
from harness.runs.cells import CountCell, Plan, Reading, TrainCell, make_tasks
from harness.runs.overrides import Settings, compose
from harness.runs.plan import cells_of
from harness.runs.session import session_of
from variants.contract import Corpus, Meter

SUPPORT = Path(__file__).resolve().parent
CHECKOUT = SUPPORT.parents[1]
TEXT = "the cat sat on the mat. the cat sat on the hat. low lower lowest newest widest\n" * 3
SERIAL = CounterCard("serial", "variants.counting.pretokenize:serial")
HEAP = VariantCard("heap", "variants.heap:train", family="windowed")
NAIVE = VariantCard("naive", "variants.naive:train", family="recount")
SECONDS_TO_BE_GONE = 60.0
BRIEF = WorkerLimits(wall_seconds=0.3)


class Outcome(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Call = Callable[..., Outcome]
"""Runs a command in this process (conftest.py: call)."""


def cells(*arguments: str) -> list[TrainCell]:
    """The cells that `python -m harness` would measure with these arguments."""
    return [cell for config in compose(arguments) for cell in cells_of(config)]


def first_fast(cases: Iterable[Any], fast: int = 1) -> list[Any]:
    """The cases of a test: the first of them run always, the others with the slow tests."""
    parameters = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        marks = pytest.mark.slow if number >= fast else ()
        parameters.append(pytest.param(*values, marks=marks))
    return parameters


def of_python(
    folder: Path, *command: str, variables: Mapping[str, str] = MappingProxyType({}), **process: Any
) -> dict[str, Any]:
    """What starts a command of Python's in a folder, with the modules of this checkout and of the
    tests.
    """
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{SUPPORT}", **variables}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **process}
    return {"args": [sys.executable, *command], "cwd": folder, "env": environment, **options}


def ran(folder: Path, *command: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(**of_python(folder, *command, **how))


def started(folder: Path, *command: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(**of_python(folder, *command, **how))


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """As on a disk that is full, no file can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        # what is imported meanwhile would be kept cut short
        with mock.patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def corpus_of(folder: Path, text: str | bytes, *how: Any, **named: Any) -> Corpus:
    """The corpus of a file with this text."""
    return Corpus(str(written(folder, text)), *how, **named)


def work_of(train: Callable[..., object], *arguments: Any, **params: Any) -> dict[str, int]:
    """The tallies of a training."""
    meter = Meter()
    train(*arguments, meter, **params)
    return meter.tallies


def written(folder: Path, text: str | bytes, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their names in it, but for bytecode."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def unruly(name: str) -> VariantCard:
    """A trainer of unruly.py, of a family of its own."""
    return VariantCard(name, f"unruly:{name}", family=name)


def unruly_counter(name: str) -> CounterCard:
    return CounterCard(name, f"unruly:{name}")


def reading_of(folder: Path, text: str | bytes = TEXT) -> Reading:
    path = written(folder, text)
    content = path.read_bytes()
    file = CorpusFile(path.name, path, len(content), hashlib.sha256(content).hexdigest())
    return Reading(file, "gpt2", Corpus(str(path)))


def cell_of(
    reading: Reading,
    variant: VariantCard = HEAP,
    num_merges: int = 10,
    counter: CounterCard = SERIAL,
    *,
    limits: WorkerLimits | None = None,
    threads: int = 1,
    tie_break: str = "greatest_bytes",
    min_count: int = 1,
) -> TrainCell:
    count = CountCell(reading, counter, threads, limits or WorkerLimits())
    return TrainCell(variant, count, False, 257 + num_merges, tie_break, min_count)


def settings_for(folder: Path, measure: str = "quick", **others: Any) -> Settings:
    """Settings of a command; keys of a card of conf/measure are the card's."""
    of_card = {name: others.pop(name) for name in {*others} & {*MeasureCard.__struct_fields__}}
    card = MeasureCard(measure, **of_card)
    return Settings(measure=card, results=str(folder / "results"), **others)


def recorded_run(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> RunLog:
    """One task, measured, proved and recorded as a command does it."""
    plan = Plan(make_tasks(cells), settings_for(folder, **settings))
    with session_of(plan, Path(tempfile.mkdtemp(dir=folder))) as session:
        measure_task(plan.tasks[0], session)
        session.log.finish()
    return session.log


def limits_wait(monkeypatch: pytest.MonkeyPatch, until: Callable[[int], bool]) -> None:
    """Let every limit on time wait `until` it is true of the merges (or bytes) that were seen
    done.
    """
    attend = Supervision.attend

    def patiently(supervision: Supervision, on_progress: OnProgress) -> None:
        given = supervision.limits
        supervision.limits = given._replace(wall_seconds=None)

        def seen(done: int) -> None:
            on_progress(done)
            if until(done):
                supervision.limits = given

        attend(supervision, seen)

    monkeypatch.setattr(Supervision, "attend", patiently)


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Return as soon as it is true; fail if it does not come true in good time."""
    until = time.monotonic() + SECONDS_TO_BE_GONE
    while not true():
        if time.monotonic() > until:
            pytest.fail(f"waited {SECONDS_TO_BE_GONE:g} s for: {what}")
        time.sleep(0.02)


def heed_signals() -> None:
    """For a process that is to be interrupted: in the background or under nohup, what is ignored
    there is inherited.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def is_running(process: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def started_in(folder: Path) -> list[int]:
    """The processes whose numbers a trainer has left (unruly.py: leave_number)."""
    numbers = folder / "child"
    return [int(line) for line in numbers.read_text().split()] if numbers.exists() else []


def processes_that_mention(text: str) -> list[int]:
    """The running processes that have `text` in their environment: a folder that only one test
    uses, for instance.
    """
    found = []
    for process in psutil.process_iter(["environ"]):
        is_other = process.pid != os.getpid()
        if is_other and text in str(process.info["environ"]) and is_running(process.pid):
            found.append(process.pid)
    return found


def damage(path: Path, how: str) -> None:
    """Do to a file what a power cut, a full disk or a person may do."""
    content = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "removed":
        new = {"half": content[: len(content) // 2], "longer": content + b"x"}
        path.write_bytes({"empty": b"", "zeros": bytes(len(content)), **new}[how])
