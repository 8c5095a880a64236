"""submit=: one job for each corpus and size, all variants in it; records collected once, whatever interrupts."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.__main__ import main
from harness.common.errors import UNMEASURED, USAGE
from harness.runs.command_line import compose
from harness.runs.record import RecordFile, files_of, read_records
from harness.runs.submitting import ENDED, SUBMITTED, collect, jobs_of, outcome_of, reason_in, run_job

TEXT = "the cat sat on the mat. low lower lowest newest widest\n" * 30


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_a_job_has_one_corpus_and_size_and_all_variants(text: Path) -> None:
    sweep = ["-m", "variant=heap,flat", f"data.path={text}", "vocab_size=280,290", "data.bytes=300,600", "threads=1,2"]
    jobs = jobs_of(compose(sweep) or [])
    assert len(jobs) == 4
    assert {len(job.configurations) for job in jobs} == {4}
    for job in jobs:
        assert {each.config["variant"]["name"] for each in job.configurations} == {"heap", "flat"}
    assert len({job.key for job in jobs}) == 4


def test_where_results_go_decides_no_job(text: Path, tmp_path: Path) -> None:
    usual = ["variant=heap", f"data.path={text}"]
    (here,), (there,) = (jobs_of(compose([*usual, *other]) or []) for other in ([], [f"results={tmp_path}"]))
    assert here.key == there.key


def test_a_plan_of_jobs_submits_none(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    told = ["-m", "variant=heap", f"data.path={text}", "vocab_size=280,290", "submit=local", f"results={results}"]
    assert main([*told, "plan=true"]) == 0
    assert capsys.readouterr().out.count("a job for ") == 2
    assert not results.exists()


def test_what_cannot_be_submitted_is_a_sentence(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ["variant=heap", f"data.path={text}", f"results={tmp_path / 'results'}"]
    assert main([*usual, "submit=cloud"]) == USAGE
    assert "unknown submit 'cloud'; there are: slurm, local" in capsys.readouterr().err
    assert main([*usual, "submit=local", f"save={tmp_path / 'save'}"]) == USAGE
    assert "save= is for a run on this machine" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert main([*usual, "submit=local"]) == UNMEASURED
    assert "submit=local needs submitit, which is not installed; run python -m pip install" in capsys.readouterr().err


def test_without_slurm_its_jobs_are_refused(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit", reason="pip install -e '.[submit]' has it")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["variant=heap", f"data.path={text}", "submit=slurm", f"results={tmp_path}"]) == UNMEASURED
    assert "submit=slurm needs sbatch, which is not on the path" in capsys.readouterr().err


def test_a_job_that_is_refused_leaves_its_sentence(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    told = ["variant=heap", f"data.path={text}", "min_count=1"]
    (job,) = jobs_of(compose(told) or [])
    text.unlink()
    assert run_job(told, job.key, str(tmp_path), str(tmp_path)) == UNMEASURED
    ended = json.loads((tmp_path / ENDED).read_text())
    assert ended["code"] == UNMEASURED
    assert "there is no file" in ended["said"]
    assert outcome_of(tmp_path) == UNMEASURED
    assert outcome_of(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("Starting\nslurmstepd: error: Detected 1 oom_kill event\n\n", "7_0_log.err ends with 'slurmstepd: error: Det"),
        (None, "and it has left no log"),
    ],
)
def test_a_job_that_was_killed_is_told_with_its_state_and_the_end_of_its_log(
    tmp_path: Path, log: str | None, sentence: str
) -> None:
    paths = SimpleNamespace(stderr=tmp_path / "7_0_log.err")
    job = SimpleNamespace(paths=paths, state="OUT_OF_MEMORY", stderr=lambda: log, stdout=lambda: None)
    reason = reason_in(tmp_path / "none", job)
    assert "killed or ran out of job.minutes; its state is OUT_OF_MEMORY, and " in reason
    assert sentence in reason
    assert reason_in(tmp_path / "none", None) == "it was not submitted"


def test_a_job_that_was_killed_early_has_no_records_to_collect(tmp_path: Path) -> None:
    store = RecordFile(tmp_path / "results")
    assert collect(tmp_path, ["killed", "never submitted"], store) == []


def records_in(results: Path) -> Counter[tuple[str, int]]:
    trained = [record for record in read_records(files_of(results)) if record["cell"] == "train"]
    assert all(record["status"] == "ok" for record in trained)
    return Counter((record["variant"], record["vocab_size"]) for record in trained)


def sweep_of(text: Path, results: Path, cluster: str) -> list[str]:
    sweep = ["-m", "variants=[heap,flat]", "counting=serial", f"data.path={text}", "vocab_size=280,290"]
    return [*sweep, f"submit={cluster}", f"results={results}"]


EACH = Counter({(variant, size): 1 for variant in ("heap", "flat") for size in (280, 290)})


@pytest.mark.slow
def test_the_records_of_all_jobs_are_collected_and_shown(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("submitit", reason="pip install -e '.[submit]' has it")
    results = tmp_path / "results"
    assert main(sweep_of(text, results, "local")) == 0
    told = capsys.readouterr()
    assert "heap" in told.out
    assert "vocabulary 290" in told.out
    assert told.err.count("job ") == 2
    assert records_in(results) == EACH
    assert not (results / "submitted").exists()


@pytest.mark.slow
def test_a_submission_goes_on_with_the_jobs_that_did_not_end_well(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit", reason="pip install -e '.[submit]' has it")
    results, command = tmp_path / "results", sweep_of(text, tmp_path / "results", "local")
    submitting = sys.modules["harness.runs.submitting"]
    waited = submitting.wait_for

    def break_off(running: list[object]) -> None:
        waited(running)
        raise KeyboardInterrupt

    monkeypatch.setattr(submitting, "wait_for", break_off)
    assert main(command) == 130
    monkeypatch.setattr(submitting, "wait_for", waited)
    (folder,) = (results / "submitted").iterdir()
    ended = [place for place in folder.iterdir() if outcome_of(place) == 0]
    assert len(ended) == 1
    before = (ended[0] / SUBMITTED).read_text()
    capsys.readouterr()
    assert main(command) == 0
    assert "1 of 2 jobs have ended" in capsys.readouterr().err
    assert before
    assert records_in(results) == EACH


SBATCH = """#!/bin/sh
for script; do :; done
export SLURM_JOB_ID=$$ SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
export SLURM_JOB_NODELIST=here
cp "$script" "$FAKE_SLURM/$$.sh"
echo "Submitted batch job $$"
(sh "$FAKE_SLURM/$$.sh" > "$FAKE_SLURM/$$.log" 2>&1; touch "$FAKE_SLURM/$$.ended") > /dev/null 2>&1 &
"""
SRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case $1 in --output|--error) shift 2;; *) shift;; esac; done
exec "$@"
"""
SACCT = """#!/bin/sh
echo "JobID|State|NodeList|"
for ended in "$FAKE_SLURM"/*.sh; do
    id=$(basename "$ended" .sh)
    if [ -e "$FAKE_SLURM/$id.ended" ]; then echo "$id|COMPLETED|here|"; else echo "$id|RUNNING|here|"; fi
done
"""


@pytest.mark.slow
def test_slurm_is_asked_for_whole_nodes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's commands are stood in for by scripts that run a job at once: what they are told is what counts.

    A job runs the copy of its script, as with Slurm: submitit moves the script as soon as sbatch has answered.
    """
    pytest.importorskip("submitit", reason="pip install -e '.[submit]' has it")
    commands = tmp_path / "commands"
    commands.mkdir()
    for name, script in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT), ("scancel", "#!/bin/sh\n")):
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(commands))
    results = tmp_path / "results"
    command = sweep_of(text, results, "slurm")
    assert main([*command, "concurrent=true", "job.partition=fast", "job.minutes=7", "+job.slurm.constraint=epyc"]) == 0
    scripts = [path.read_text() for path in commands.glob("*.sh")]
    assert len(scripts) == 2
    for asked in ("--exclusive", "--partition=fast", "--time=7", "--constraint=epyc", "--nodes=1"):
        assert all(asked in script for script in scripts)
    assert records_in(results) == EACH
