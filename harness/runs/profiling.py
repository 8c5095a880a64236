"""Profiles of trainers: the same call in a fresh process once more, untimed, under cProfile."""

from __future__ import annotations

import pstats
import shutil
from dataclasses import replace
from pathlib import Path

from harness.measure.process import measure
from harness.runs import jobs
from harness.runs.cells import Task, TrainCell
from harness.runs.saving import folder_name
from harness.runs.session import Session

NONE, CPROFILE = "none", "cprofile"
ROWS = 40


def profile_trainers(task: Task, session: Session) -> bool:
    """Profile every trainer of a task that has succeeded, with a note on where its files are; False
    if one has no profile.
    """
    if session.settings.profile == NONE:
        return True
    records = session.log.records(task.number)
    succeeded = {record.cell.run_key for record in records if record.status == "ok"}
    failures = []
    for cell in task.cells:
        if cell.key not in succeeded:
            continue
        if session.words(cell.reading) is None:
            failures.append(
                f"no profile of {cell.label}: an earlier command counted its words; set rerun=true"
            )
            continue

        name = folder_name(f"profile-{cell.variant.name}-{cell.key[:8]}")
        path = session.settings.results / name
        reason = profile(cell, session, path)
        if reason is None:
            session.notes.append(f"profile of {cell.label}: {path}.txt, {path}.prof")
        else:
            failures.append(f"no profile of {cell.label}: {reason}")
    session.notes += failures
    return not failures


def profile(cell: TrainCell, session: Session, path: Path) -> str | None:
    """Write cProfile's statistics, and a table of the functions with most time; return why not if
    the trainer fails.
    """
    output = session.next_folder()
    statistics = output.absolute() / "profile"
    job = jobs.train_job(cell, cell.variant, session.words_folder(cell.reading))
    answer = measure(replace(job, profile=str(statistics)), output, cell.count.limits)
    if answer.status != "ok":
        shutil.rmtree(output)
        return answer.reason or answer.stderr_tail.strip().rpartition("\n")[2]

    # not with_suffix: a name may have dots
    with path.with_name(f"{path.name}.txt").open("w") as file:
        found = pstats.Stats(str(statistics), stream=file)
        found.strip_dirs().sort_stats("cumulative").print_stats(ROWS)
    shutil.copyfile(statistics, path.with_name(f"{path.name}.prof"))
    shutil.rmtree(output)
    return None
