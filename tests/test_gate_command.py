"""The gate as a command: its tiers on real trainers, its bases, what it refuses, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
import yaml
from gating import TINY, git, new_repository, tiny_card
from workbench import CHECKOUT, HEAP, TESTS, first_fast, heed_signals, processes_that_mention, wait_until

from harness.common import registry
from harness.common.registry import VariantCard
from harness.gate import __main__ as gate
from harness.gate.base import NoBase, built_alike, departure, repository_of
from harness.gate.build_inputs import is_compiled, recipe
from harness.gate.comparing import as_described, comparisons_of
from harness.gate.evidence import EvidenceFile
from harness.gate.running import Asked
from harness.gate.sides import here, installed_side, linked_side, working_side
from harness.gate.workflow import workflow
from harness.measure.environment import usable_cores
from harness.runs.record import RecordFile


@pytest.fixture
def card(tmp_path: Path) -> Path:
    return tiny_card(tmp_path)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing lies but what a test puts there."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def run(card: Path, *arguments: str) -> int:
    return gate.main([*arguments, "--card", str(card), "--output", "out"])


def verdict() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Path("out", "verdict.json").read_text())
    return told


def messages(told: dict[str, Any]) -> list[str]:
    return [finding["message"] for finding in told["findings"]]


# Identity and work


def test_a_new_snapshot_is_accepted_and_drifts(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("heap", "--tiers", "identity,work", "--no-base")
    assert run(card, "heap", "--accept") == 0
    path = Path("results/counters.json")
    counted = json.loads(path.read_text())
    assert set(counted["counters"]["heap"]) == {"letters"}
    counted["counters"]["heap"]["letters"]["update/pair_updates"] -= 100
    path.write_text(json.dumps(counted))
    capsys.readouterr()
    assert run(card, *arguments) == 21
    shown = capsys.readouterr().out
    assert "heap on letters, phase update, tally pair_updates: " in shown


@pytest.mark.slow
def test_a_snapshot_is_held_and_what_is_accepted_anew_is_told(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("heap", "--tiers", "identity,work", "--no-base")
    assert run(card, "heap", "--accept") == 0
    path = Path("results/counters.json")
    counted = json.loads(path.read_text())
    counted["counters"]["heap"]["letters"]["update/pair_updates"] -= 100
    path.write_text(json.dumps(counted))
    assert run(card, "heap", "--accept") == 0
    assert "heap on letters: update/pair_updates" in capsys.readouterr().out
    assert run(card, *arguments) == 0
    assert "; work (instructions were not compared): there is no base, by --no-base" in capsys.readouterr().out
    assert run(card, *arguments[:-1], "--against", "nothing-that-git-knows") == 22
    headline = capsys.readouterr().out.partition("\n")[0]
    assert headline.startswith("gate: could not measure; 2 of 3 checks passed; work (instructions were not compared): ")
    assert "git knows none of nothing-that-git-knows; " in headline


@pytest.mark.parametrize(
    ("trainer", "code", "told"),
    first_fast(
        [
            ("sabotaged:ties_to_the_smallest", 21, "which tie_break=greatest_bytes takes"),
            ("unruly:segfaults", 22, "SIGSEGV"),
            ("unruly:returns_none", 22, "NoneType"),
        ],
    ),
)
def test_a_trainer_of_anyones_is_judged_by_its_target(
    card: Path, monkeypatch: pytest.MonkeyPatch, trainer: str, code: int, told: str
) -> None:
    monkeypatch.syspath_prepend(str(TESTS))
    assert run(card, trainer, "--tiers", "identity") == code
    assert any(told in message for message in messages(verdict()))


@pytest.mark.slow
def test_wrong_merges_are_never_acknowledged(card: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS))
    assert run(card, "sabotaged:ties_to_the_smallest", "--accept") == 21
    assert json.loads(Path("results/counters.json").read_text())["counters"] == {}


@pytest.mark.slow
def test_advisory_says_it_all_and_ends_with_0(card: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS))
    assert run(card, "unruly:segfaults", "--tiers", "identity", "--advisory", "--summary", "summary.md") == 0
    assert verdict()["verdict"] == "unmeasured"
    assert "❌ gate: could not measure" in Path("summary.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["identity", "instructions"])
def test_an_interruption_ends_all_that_runs_at_a_time(tmp_path: Path, card: Path, stage: str) -> None:
    if stage == "instructions" and shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    said = TINY["corpora"] if stage == "identity" else {corpus: {"say": []} for corpus in TINY["corpora"]}
    card.write_text(yaml.safe_dump({**TINY, "corpora": said}))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    targets = ["unruly:hangs", "unruly:hangs_after_some_merges", "--against-variant", "heap"]
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.gate", *targets, "--tiers", "identity,work", "--card", str(card)],
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{TESTS}", "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    beside = 2 * min(2, usable_cores())  # each has its guard
    wait_until(lambda: len(processes_that_mention(str(temporary))) > beside, "processes beside each other")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("\ninterrupted; what was observed up to then is in the output folder\n")
    wait_until(lambda: not processes_that_mention(str(temporary)), "the end of every process of the gate")
    assert list(temporary.iterdir()) == []


# Time


@pytest.mark.slow
def test_one_variant_against_another_is_timed_stored_and_judged_again(
    card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(card, "heap", "--against-variant", "heap_python", "--tiers", "time", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == verdict()
    assert told["base"] == "the variant heap_python"
    assert gate.main(["--replay", "out", "--json", "--output", "again"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == told["findings"]
    assert json.loads(Path("again", "verdict.json").read_text())["findings"] == told["findings"]
    samples = [json.loads(line) for line in Path("out", "samples.jsonl").read_text().splitlines()]
    arms = [each["arm"] for each in samples if each["kind"] == "sample"]
    assert [arms.count(arm) for arm in ("base", "head", "again")] == [6, 6, 2]
    assert len({each["merges_sha256"] for each in samples if each["kind"] in ("sample", "comparison")}) == 1


@pytest.mark.slow
def test_the_same_code_is_not_timed_against_itself_unless_it_is_named(card: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed.yaml"
    listed.write_text(yaml.safe_dump({**TINY, "like": str(card), "variants": ["heap"]}))
    environment = ["--base", sys.executable, "--tiers", "time"]
    assert run(listed, *environment) == 22
    same = "heap, time: the same code in base and head"
    assert sorted(messages(verdict())) == [same, f"time was not measured: {same}"]
    assert run(listed, "heap", *environment) == 0
    assert verdict()["tiers"] == {"time": "pass"}


@pytest.mark.slow
def test_without_a_base_times_are_not_compared_and_the_headline_says_so(
    card: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    assert run(card, "mine:train", "--tiers", "identity,time") == 22
    headline = capsys.readouterr().out.partition("\n")[0]
    assert "; time (times were not compared): HEAD is the first commit there is here; --no-base " in headline
    assert run(card, "mine:train", "--no-base") == 0
    headline = capsys.readouterr().out.partition("\n")[0]
    assert "; two tiers were not measured: work, because " in headline


# Two environments: what stands in the way must not be taken for one of them


@pytest.mark.slow
def test_each_side_imports_its_own_package(
    card: Path, tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both environments have a trainer of one name, and so has the current folder; only the base's is wrong."""
    good = "from variants.heap import train\n"
    wrong = "def train(word_counts, num_merges):\n    return [(b'a', b'b')]\n"
    monkeypatch.delenv("PYTHONPATH", raising=False)
    pythons = {}
    for name, source in (("old", wrong), ("new", good)):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / name)], check=True)
        (packages,) = (tmp_path / name).glob("lib/python*/site-packages")
        (packages / "trained_here.py").write_text(source)
        pythons[name] = str(tmp_path / name / "bin" / "python")
    (elsewhere / "trained_here.py").write_text(wrong)
    target = "trained_here:train"
    assert run(card, target, "--base", pythons["old"], "--head", pythons["new"], "--tiers", "identity,time") == 22
    assert any("base made other merges" in message for message in messages(verdict()))
    assert run(card, target, "--base", pythons["new"], "--head", pythons["old"], "--tiers", "identity") == 21
    new, old = (installed_side(name, pythons[name], {"trained_here"}, tmp_path / "sides") for name in ("new", "old"))
    assert new.digest(VariantCard(target, target)) != old.digest(VariantCard(target, target))


# Usage


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["haep"], "did you mean heap?"),
        (["my_modul:train"], "cannot import 'my_modul:train' (there is no module my_modul); a target is written"),
        (["variants.haep:train"], "cannot import 'variants.haep:train' (there is no module variants.haep); a target"),
        (["variants.heap:trian"], "cannot import 'variants.heap:trian' (variants.heap has no trian); a target is"),
        (["--tiers", "speed"], "unknown tier 'speed'"),
        (["--against", "main", "--base", "python3"], "two ways to say what the base is"),
        (["--head", "python3"], "use --base"),
        (["--no-base", "--tiers", "identity,time"], "--no-base says that there is none"),
        (["--no-base", "--against", "main"], "two ways to say what the base is"),
        (["--accept", "--tiers", "time"], "--accept is about counts of work"),
        (["--accept", "--advisory"], "choose one"),
        (["heap", "--base", "no-such-python"], "cannot start no-such-python"),
        (["--set", "time.blocks=3"], "unknown key 'time.blocks'; "),
        (["--set", "work.instructions.layouts=0"], "it is a number of 1 or more"),
        (["--set", "work.instructions.layouts=11"], "there are 10 layouts"),
        (["heap", "--summary", "nowhere/summary.md"], "cannot write nowhere/summary.md"),
        (["--replay", "nowhere"], "--card means nothing to --replay"),
    ],
)
def test_what_cannot_be_meant_is_answered_in_one_sentence(
    card: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run(card, *arguments) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not Path("out").exists()  # nothing has been measured by then


def test_a_replay_of_nothing_is_answered_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.main(["--replay", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("cannot read nowhere")


def test_the_usual_folder_of_results_is_nothing_that_git_would_add(repository: Path) -> None:
    for folder in ("results/local/gate", "results/local", "results/mine"):
        RecordFile(repository / folder)
    assert git(repository, "status", "--short", "--untracked-files=all") == "?? results/mine/records.jsonl"


def test_a_new_run_leaves_no_verdict_of_an_older_one(elsewhere: Path) -> None:
    for name in ("verdict.json", "summary.md"):
        (elsewhere / name).write_text("of an older run")
    EvidenceFile(elsewhere / "samples.jsonl", {})
    assert [path.name for path in elsewhere.iterdir()] == ["samples.jsonl"]


def test_the_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gate.main(["--help"])
    said = capsys.readouterr().out
    assert all(f"\n  {code:<3} " in said for code in (0, 20, 21, 22, 23))


# The base


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def test_the_base_is_where_a_branch_departs_and_on_main_the_commit_before(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    with pytest.raises(NoBase, match="first commit"):
        departure(repository, ["main"])
    (repository / "mine.py").write_text("from variants.heap_opt import train\n")
    assert departure(repository, ["main"])[0] == first  # what is not committed is compared with what is
    git(repository, "commit", "-qam", "second")
    assert departure(repository, ["main"])[0] == first
    git(repository, "checkout", "-qb", "branch", first)
    (repository / "more.txt").write_text("more")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "on a branch")
    assert departure(repository, ["gone", "main"])[0] == first
    with pytest.raises(NoBase, match="git knows none of gone, lost"):
        departure(repository, ["gone", "lost"])


def test_a_package_that_was_never_committed_is_told_from_one_that_is_installed(repository: Path) -> None:
    (repository / "new.py").write_text("")
    (repository / ".gitignore").write_text("installed.py\n")
    (repository / "installed.py").write_text("")
    assert repository_of({"mine": repository / "mine.py"}) == repository.resolve()
    with pytest.raises(NoBase, match="git does not know new yet; commit it, or --no-base"):
        repository_of({"new": repository / "new.py"})
    with pytest.raises(NoBase, match=r"installed is not in a git checkout \(installed\.py is installed\)"):
        repository_of({"installed": repository / "installed.py"})


def test_a_shallow_clone_is_told_how_to_get_its_base(repository: Path, tmp_path: Path) -> None:
    (repository / "mine.py").write_text("from variants.heap_opt import train\n")
    git(repository, "commit", "-qam", "second")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(shallow))
    with pytest.raises(NoBase, match="git fetch --unshallow"):
        departure(shallow, ["origin/main"])


def test_compiled_modules_are_copied_only_where_nothing_that_makes_them_changed(repository: Path) -> None:
    project = repository / "pyproject.toml"
    project.write_text('[project]\nversion = "1"\n[tool.ruff]\nline-length = 1\n')
    (repository / "fast.pyx").write_text("x = 1\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "compiled")
    base = git(repository, "rev-parse", "HEAD")
    checkout = repository.parent / "checkout"
    git(repository, "worktree", "add", "-q", "--detach", str(checkout), base)
    assert built_alike(repository, checkout, base)
    (repository / "mine.py").write_text("train = None\n")
    project.write_text('[project]\nversion = "2"\n[tool.ruff]\nline-length = 2\n')
    assert built_alike(repository, checkout, base)
    project.write_text('[project]\nversion = "2"\n[tool.setuptools]\next-modules = []\n')
    assert not built_alike(repository, checkout, base)
    git(repository, "checkout", "-q", "pyproject.toml")
    (repository / "fast.pyx").write_text("x = 2\n")
    assert not built_alike(repository, checkout, base)


def test_what_goes_into_a_compiled_module_is_known_by_its_name() -> None:
    names = ["a.pyx", "b/c.hpp", "Cargo.toml", "setup.py", "a.py", "README.md", "LICENSE", "pyproject.toml"]
    assert [is_compiled(name) for name in names] == [True] * 4 + [False] * 4
    assert recipe(CHECKOUT / "pyproject.toml")[0]["requires"]


def test_a_side_holds_what_is_measured_and_what_measures(tmp_path: Path) -> None:
    side = working_side("head", {"variants"}, tmp_path)
    assert sorted(path.name for path in side.place.iterdir()) == ["harness", "variants"]
    assert here("variants") == CHECKOUT / "variants"
    assert side.digest(HEAP) is not None
    assert side.digest(VariantCard("gone", "nowhere.at_all:train")) is None


def test_the_base_of_a_variant_has_the_parameters_of_its_own_card(tmp_path: Path) -> None:
    """A parameter that is new in head is unknown to the code of the base."""
    package = tmp_path / "checkout" / "variants"
    package.mkdir(parents=True)
    (package.parent / "conf" / "variant").mkdir(parents=True)
    card = {"name": "heap", "_target_": "variants.heap:train", "params": {"push": "grown"}}
    (package.parent / "conf" / "variant" / "heap.yaml").write_text(yaml.safe_dump(card))
    base = linked_side("base", "a checkout", None, tmp_path, {"variants": package})
    (compared,) = comparisons_of([registry.variants()["heap"]], base, working_side("head", {"variants"}, tmp_path))
    assert compared.base.variant.params == {"push": "grown"}
    assert compared.head.variant.params == {"heap": "c", "push": "all"}
    assert not compared.same_code
    unknown = VariantCard("new", "variants.new:train", params={"size": 3})
    assert as_described(base, unknown, {}) == unknown


@pytest.mark.slow
def test_a_branch_with_a_slower_heap_is_told_from_the_same_branch_without_it(tmp_path: Path, card: Path) -> None:
    """In a worktree of this project: an extra pass over the pairs costs the branch its 0, and names what it did."""
    if not (CHECKOUT / ".git").exists():
        pytest.skip("this is no git checkout, so there is no base to compare with")
    branch = tmp_path / "branch"
    shutil.copytree(CHECKOUT, branch, ignore=ignored)
    git(branch, "init", "-q", "-b", "main")
    git(branch, "add", "-A")
    git(branch, "commit", "-qm", "base")
    git(branch, "checkout", "-qb", "change")

    def gated(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "harness.gate", "heap", "--card", str(card), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(command, cwd=branch, capture_output=True, text=True, env=environment, check=False)
        assert all(line.startswith(("gate: ", "[")) for line in ended.stderr.splitlines()), ended.stderr
        return ended.returncode, ended.stdout

    tiers = ["--tiers", "identity,work"]
    assert gated("--accept")[0] == 0
    git(branch, "add", "-A", "--force", "results/counters.json")
    git(branch, "commit", "-qm", "a snapshot, and nothing slower")
    code, said = gated(*tiers)
    assert code == 0, said
    source = branch / "variants" / "heap.py"
    merged = "        changes, standing = state.merge(pair, vocabulary.add(pair), meter)\n"
    assert source.read_text().count(merged) == 1
    planted = merged + '        meter.tally("pairs_scanned", sum(1 for _ in state.pair_counts))\n'
    source.write_text(source.read_text().replace(merged, planted))
    git(branch, "commit", "-qam", "an extra pass over the pairs")
    code, said = gated(*tiers)
    assert code == 21, said
    assert "heap on letters, phase update, tally pairs_scanned: none -> " in said
    assert gated("--accept")[0] == 0
    git(branch, "commit", "-qam", "acknowledged")
    code, said = gated(*tiers)
    if shutil.which("valgrind") is None:
        assert code == 0, said
        return
    assert code == 20, said
    assert "heap, whole call, instructions: " in said


# The job for other people's repositories


def job_of_the_page() -> dict[str, Any]:
    (job,) = yaml.safe_load(workflow("my_package.my_module:train", "bpe-harness==1.0"))["jobs"].values()
    found: dict[str, Any] = job
    return found


def test_the_job_of_the_page_runs_one_command_and_keeps_what_it_writes() -> None:
    job = job_of_the_page()
    assert job["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    command = job["steps"][-2]["run"]
    assert "python -P -m harness.gate " in command  # nothing of the tree stands in for the gate
    arguments = gate._parser().parse_args(shlex.split(command.partition("harness.gate ")[2]))
    assert arguments.target == ["my_package.my_module:train"]
    kept = next(step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert arguments.output is None
    assert Path(kept) == Asked.output


@pytest.mark.slow
def test_the_job_of_the_page_gates_somebody_elses_repository(repository: Path, tmp_path: Path) -> None:
    """Its command, as it stands there: a branch that breaks nothing ends with 0, one with wrong merges does not."""
    package = repository / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "my_module.py").write_text("from variants.heap import train\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a trainer")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "checkout", "-qb", "change")
    (clone / "my_package" / "notes.py").write_text('"""Nothing."""\n')
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "nothing worse")
    (command,) = [step["run"] for step in job_of_the_page()["steps"] if "harness.gate" in step.get("run", "")]
    summary = tmp_path / "summary.md"
    known = {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
    environment = {**os.environ, **known, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)

    def gated(further: str) -> tuple[int, str]:
        shell = ["bash", "-e", "-c", command + further]
        ended = subprocess.run(shell, cwd=clone, capture_output=True, text=True, env=environment, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    code, said = gated(" --tiers identity,work")
    assert code == 0, said
    wrong = "def train(word_counts, num_merges):\n    return [(b'a', b'b')] * num_merges\n"
    (clone / "my_package" / "my_module.py").write_text(wrong)
    code, said = gated("")
    assert code == 21, said
    assert "::error::my_package.my_module:train on letters: merge 1" in said
    assert summary.read_text().count("### ") == 2


def ignored(folder: str, names: list[str]) -> set[str]:
    """What is not copied into a repository of its own: git's, and what was made there but for compiled modules."""
    made = {name for name in names if name in (".git", ".venv", "build", "__pycache__") or name.startswith(".mypy")}
    local = {"local"} if Path(folder).name == "results" else set()
    return (
        made | local | {name for name in names if name.endswith(".c") and not name.endswith(tuple(EXTENSION_SUFFIXES))}
    )
