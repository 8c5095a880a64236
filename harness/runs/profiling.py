"""Profiles of trainers: the same call in a fresh process once more, untimed, under a profiler that
exists; ours only starts it and names its file.
"""

from __future__ import annotations

import pstats
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.measure.callgrind import account_of_call, measure_instructions
from harness.measure.process import Answer, ProcessOptions, measure
from harness.measure.profilers import ANNOTATE, CALLGRIND, CPROFILE, NONE, PY_SPY, program
from harness.runs import jobs
from harness.runs.cells import Task, TrainCell
from harness.runs.saving import folder_name
from harness.runs.session import Session
from harness.worker.job import Job

ROWS = 40
FLAME_GRAPH = ("record", "--format", "flamegraph", "--rate", "250", "--subprocesses")


def profiles(task: Task, session: Session) -> Iterator[str]:
    """Profile every trainer of a task that has succeeded, and yield a note for each: where its file
    is, or why there is none.
    """
    if session.settings.profile == NONE:
        return
    records = session.log.records(task.number)
    succeeded = {record.cell.run_key for record in records if record.status == "ok"}
    for cell in task.cells:
        if cell.key not in succeeded:
            continue
        if session.words(cell.reading) is None:
            yield f"no profile of {cell.label}: an earlier command counted its words; set rerun=true"
            continue

        name = folder_name(f"profile-{cell.variant.name}-{cell.key[:8]}")
        path = session.settings.results / name
        output = session.next_folder()
        answer, files = WRITERS[session.settings.profile](cell, session, path, output)
        shutil.rmtree(output)
        if files:
            yield f"profile of {cell.label}: {', '.join(map(str, files))}"
        else:
            why = answer.reason or answer.stderr_tail.strip().rpartition("\n")[2]
            yield f"no profile of {cell.label}: {why}"


Profiled = tuple[Answer, list[Path]]
"""The answer of the process, and the files of its profile: none if it failed."""


def with_cprofile(cell: TrainCell, session: Session, path: Path, output: Path) -> Profiled:
    """Write cProfile's statistics, and a table of the functions with most time."""
    statistics = output.absolute() / "profile"
    job = replace(job_of(cell, session), profile=str(statistics))
    answer = measure(job, output, cell.count.limits)
    if answer.status != "ok":
        return answer, []

    table, raw = with_ending(path, ".txt"), with_ending(path, ".prof")
    with table.open("w") as file:
        found = pstats.Stats(str(statistics), stream=file)
        found.strip_dirs().sort_stats("cumulative").print_stats(ROWS)
    shutil.copyfile(statistics, raw)
    return answer, [table, raw]


def with_py_spy(cell: TrainCell, session: Session, path: Path, output: Path) -> Profiled:
    """Write py-spy's flame graph, of the whole process and those that it starts."""
    graph = with_ending(path, ".svg")
    graph.unlink(missing_ok=True)
    under = [program(PY_SPY) or PY_SPY, *FLAME_GRAPH, "--output", str(graph.absolute()), "--"]
    answer = measure(
        job_of(cell, session), output, cell.count.limits, options=ProcessOptions(under)
    )
    return answer, [graph] if answer.status == "ok" and graph.is_file() else []


def with_callgrind(cell: TrainCell, session: Session, path: Path, output: Path) -> Profiled:
    """Write callgrind's account of the call, and a table of the functions with most instructions."""
    answer = measure_instructions(job_of(cell, session), output, cell.count.limits)
    if answer.status != "ok":
        return answer, []

    table, raw = with_ending(path, ".txt"), with_ending(path, ".callgrind")
    shutil.copyfile(account_of_call(output), raw)
    with table.open("w") as file:
        command = [program(ANNOTATE) or ANNOTATE, "--auto=no", str(raw)]
        subprocess.run(command, stdout=file, check=True)
    return answer, [table, raw]


def with_ending(path: Path, ending: str) -> Path:
    """Return the path with an ending behind its name, which may have dots."""
    return path.with_name(f"{path.name}{ending}")


WRITERS = {CPROFILE: with_cprofile, PY_SPY: with_py_spy, CALLGRIND: with_callgrind}


def job_of(cell: TrainCell, session: Session) -> Job:
    return jobs.train_job(cell, cell.variant, session.words_folder(cell.reading))
