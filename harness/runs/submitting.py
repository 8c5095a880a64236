"""submit=slurm|local: a command as jobs, one for each corpus and size, whose records are collected when they end.

All variants of a comparison are in one job, so that they are measured on one machine, in blocks; a job has its node to
itself. What is on disk says how far a submission is, so the same command goes on with one that was interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from harness.common.choices import at_least, one_of
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal, extra
from harness.common.files import remove_tree, temporary_folder, write_whole
from harness.common.media import terminal_text
from harness.common.progress import bar
from harness.common.streams import say
from harness.runs.cells import of_card_unless_said
from harness.runs.command_line import Composed, compose
from harness.runs.journal import measurement_of
from harness.runs.record import Record, RecordFile, files_of, read_records
from harness.runs.running import Show, plan_of, run_plan
from harness.runs.spent import Spent

CLUSTERS = ("slurm", "local")
GROUP = "submit"
ENDED, SUBMITTED = "ended.json", "job.json"
SECONDS_BETWEEN_LOOKS = 1.0
OWN_RESULTS = "results"
MOST_SHOWN = 200


class Job(NamedTuple):
    """The configurations of one corpus and size; `key` names them, in the job too."""

    key: str
    name: str
    configurations: list[Composed]


def is_submitted(composed: Sequence[Composed]) -> bool:
    return any(each.config["submit"] is not None for each in composed)


def jobs_of(composed: Sequence[Composed]) -> list[Job]:
    """A job for each corpus, slice of it and vocabulary size, in the order in which they were asked for."""
    jobs: dict[str, Job] = {}
    for each in composed:
        data, vocab_size = each.config["data"], of_card_unless_said(each.config, "vocab_size")
        key = hashlib.sha256(json.dumps([data, vocab_size], sort_keys=True).encode()).hexdigest()[:16]
        size = f" {data['bytes']}" if data["bytes"] else ""
        name = f"{data['name'] if data['path'] is None else data['path']}{size}, vocab_size={vocab_size}"
        jobs.setdefault(key, Job(key, name, [])).configurations.append(each)
    return list(jobs.values())


def submit(arguments: Sequence[str], composed: Sequence[Composed], show: Show, console: Console) -> int:
    """Have the jobs run, wait for them, collect their records and show them; returns the worst of the exit codes."""
    config = composed[0].config
    one_of("submit", config["submit"], CLUSTERS)
    at_least("job.minutes", config["job"]["minutes"])
    if config["save"] is not None:
        raise Refusal("save= is for a run on this machine; leave it out, and save what is best afterwards")
    jobs = jobs_of(composed)
    if config["plan"]:
        for job in jobs:
            told = f"a job for {job.name}: {len(job.configurations)} configurations"
            console.print(terminal_text(told), soft_wrap=True, markup=False, highlight=False)
        return OK
    results = Path(config["results"]).absolute()
    told = json.dumps([list(arguments), [job.key for job in jobs]])
    folder = results / "submitted" / hashlib.sha256(told.encode()).hexdigest()[:16]
    executor = executor_of(config, folder)
    waiting = [job for job in jobs if outcome_of(folder / job.key) not in (OK, MISMATCH)]
    if len(waiting) < len(jobs):
        say(f"continuing the submission in {folder}: {len(jobs) - len(waiting)} of {len(jobs)} jobs have ended")
    run_jobs(executor, arguments, waiting, folder, alone=config["submit"] == "local")
    collected = collect(folder, [job.key for job in jobs], RecordFile(results))
    codes = [outcome_of(folder / job.key) for job in jobs]
    notes = [
        f"the job for {job.name} has not ended as it should: "
        f"{reason_in(folder / job.key, job_in(executor, folder / job.key))}; run the same command again"
        for job, code in zip(jobs, codes, strict=True)
        if code not in (OK, MISMATCH)
    ]
    if any(record["status"] == "ok" for record in collected):
        show(collected, notes)
    else:
        for note in notes:
            say(note)
    if not notes:
        remove_tree(folder)
        with contextlib.suppress(OSError):  # another submission is not over
            folder.parent.rmdir()
    return max(UNMEASURED if code is None else code for code in codes)


def executor_of(config: Mapping[str, Any], folder: Path) -> Any:
    """What submits a job: a node to itself and one task."""
    submitit = extra("submitit", f"submit={config['submit']}", GROUP)
    cluster, job = config["submit"], config["job"]
    if cluster == "slurm" and shutil.which("sbatch") is None:
        raise Refusal("submit=slurm needs sbatch, which is not on the path; run it where Slurm takes jobs", UNMEASURED)
    folder.mkdir(parents=True, exist_ok=True)
    executor = submitit.AutoExecutor(folder=folder / "log", cluster=cluster)
    executor.update_parameters(timeout_min=job["minutes"], name="bpe-harness")
    if cluster == "slurm":
        own = {f"slurm_{name}": job[name] for name in ("partition", "account") if job[name] is not None}
        executor.update_parameters(
            nodes=1, tasks_per_node=1, slurm_exclusive=True, **own, slurm_additional_parameters=dict(job["slurm"])
        )
    return executor


def run_jobs(executor: Any, arguments: Sequence[str], jobs: Sequence[Job], folder: Path, alone: bool) -> None:
    """Submit the jobs that are not under way and wait for all of them; `alone`: here, one after the other."""
    running: list[Any] = []
    with bar("jobs", len(jobs), "jobs") as show:
        try:
            for number, job in enumerate(jobs):
                running.append(under_way(executor, folder / job.key) or started(executor, arguments, job, folder))
                say(f"job {running[-1].job_id} for {job.name}")
                if alone:
                    wait_for(running[-1:])
                    show(number + 1)
            wait_for(running, show)
        except BaseException:
            if alone:  # nobody else would end it
                for each in running:
                    each.cancel()
            raise


def wait_for(running: Sequence[Any], show: Any = lambda _: None) -> None:
    while (done := sum(each.done() for each in running)) < len(running):
        show(done)
        time.sleep(SECONDS_BETWEEN_LOOKS)
    show(done)


def started(executor: Any, arguments: Sequence[str], job: Job, folder: Path) -> Any:
    place = folder / job.key
    place.mkdir(exist_ok=True)
    (place / ENDED).unlink(missing_ok=True)
    submitted = executor.submit(run_job, list(arguments), job.key, str(place), str(Path.cwd()))
    write_whole(place / SUBMITTED, json.dumps({"id": submitted.job_id}).encode())
    return submitted


def under_way(executor: Any, place: Path) -> Any:
    """The job that an interrupted command has submitted, if it has not ended yet."""
    job = job_in(executor, place)
    return None if job is None or job.done() else job


def job_in(executor: Any, place: Path) -> Any:
    """The job that was submitted last for this place; None if there was none."""
    try:
        job_id = json.loads((place / SUBMITTED).read_text())["id"]
    except FileNotFoundError:
        return None
    return executor.job_class(executor.folder, job_id)


def run_job(arguments: Sequence[str], key: str, place: str, working_folder: str) -> int:
    """A job: the configurations of one key, measured here, their records in a folder of its own."""
    os.chdir(working_folder)
    folder = Path(place)
    code, said = UNMEASURED, "it was ended"
    try:
        composed = compose([*arguments, "submit=null", f"results={folder / OWN_RESULTS}"]) or []
        (job,) = [job for job in jobs_of(composed) if job.key == key]
        with temporary_folder() as temporary:
            code = run_plan(plan_of(job.configurations), temporary, lambda *_: None, Console(quiet=True), Spent())
        said = ""
    except Refusal as refusal:
        code, said = refusal.exit_code, str(refusal)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise
    finally:
        write_whole(folder / ENDED, json.dumps({"code": code, "said": said}).encode())
    return code


def outcome_of(place: Path) -> int | None:
    """The exit code of a job; None if it has not come to one."""
    try:
        return int(json.loads((place / ENDED).read_text())["code"])
    except FileNotFoundError:
        return None


def reason_in(place: Path, job: Any) -> str:
    """Why a job has not ended well: its own sentence, else the state that it is in and how its log ends."""
    try:
        return str(json.loads((place / ENDED).read_text())["said"] or "some of it could not be measured")
    except FileNotFoundError:
        if job is None:
            return "it was not submitted"
    lines = [line.strip() for line in (job.stderr() or job.stdout() or "").splitlines() if line.strip()]
    log = f"its log {job.paths.stderr} ends with {lines[-1][-MOST_SHOWN:]!r}" if lines else "it has left no log"
    return f"it was killed or ran out of job.minutes; its state is {job.state}, and {log}"


def collect(folder: Path, keys: Sequence[str], store: RecordFile) -> list[Record]:
    """The records of all jobs, each in the store once; a job that was killed early has none."""
    paths = [path for key in keys for path in files_of(folder / key / OWN_RESULTS) if path.exists()]
    records = read_records(paths)
    known = {measurement_of(record) for record in read_records(files_of(store.path.parent))}
    store.append([record for record in records if measurement_of(record) not in known])
    return records
