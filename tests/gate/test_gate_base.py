"""The two sides of a gate: where base comes from, how it is built, and that head and the checkout
cannot change it.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from gating import CARD, commit_all, commit_files, git, new_repository
from rows import write_files
from workbench import CHECKOUT, Call

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate import __main__ as gate
from harness.gate.base import (
    base_side,
    changed_files,
    departure,
    has_trainer,
    located,
    provide_compiled,
    repository_of,
    side_of,
)
from harness.runs.resume import WrongCode, check_side


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = new_repository(tmp_path / "repository")
    monkeypatch.chdir(folder)
    return folder


SMALL = f"--card {CARD} --tiers identity,time"


def in_a_line(printed: str) -> str:
    return " ".join(printed.split())


def test_base_is_where_a_branch_departs_and_on_main_the_commit_before(
    repository: Path, tmp_path: Path
) -> None:
    first = git(repository, "rev-parse", "HEAD")
    with pytest.raises(Refusal, match="first commit"):
        departure(repository, "main")
    (repository / "mine.py").write_text("from variants.heap_opt import train\n")
    # what is not committed is compared with what is
    assert departure(repository, "main")[0] == first
    commit_all(repository)
    assert departure(repository, "main")[0] == first
    git(repository, "checkout", "-qb", "branch", first)
    commit_files(repository, {"more.txt": "more"})
    assert departure(repository)[0] == first
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(tmp_path / "shallow"))
    with pytest.raises(Refusal, match="git fetch --unshallow"):
        departure(tmp_path / "shallow", "origin/branch")


def test_package_is_committed_or_git_says_why_it_fails(repository: Path) -> None:
    """As of an owner that it does not trust, in a job that runs in a container."""
    assert repository_of({"mine": repository / "mine.py"}) == repository.resolve()
    (repository / "new.py").write_text("")
    uncommitted = r"no commit has .*new\.py \(git ls-files failed: .*; commit it, or pass --no-base"
    with pytest.raises(Refusal, match=uncommitted):
        repository_of({"new": repository / "new.py"})
    (repository / ".git" / "config").write_text("not a configuration\n")
    with pytest.raises(Refusal, match=r"\(git rev-parse failed: fatal: bad config line 1 in file"):
        repository_of({"mine": repository / "mine.py"})


def test_trainer_is_new_without_its_module_or_its_name(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    side = side_of("base", "", {"mine": module}, tmp_path / "sides")
    for content, there in (
        ("def train(): ...", True),
        ("from elsewhere import *", True),
        ("def trained(): ...", False),
    ):
        module.write_text(content)
        assert has_trainer(side, "mine:train") == there
    assert not has_trainer(side, "new:train")
    assert not has_trainer(side, "mine.inner:train")


@pytest.mark.slow
def test_renamed_trainer_is_new_until_its_old_name_is_given(repository: Path, call: Call) -> None:
    git(repository, "checkout", "-qb", "change")
    git(repository, "mv", "mine.py", "fresh.py")
    commit_all(repository)
    code, shown, _ = call(f"gate fresh:train {SMALL}")
    assert code == 0
    new = "fresh:train: new in head: not compared; --base-target TARGET names it in"
    assert new in in_a_line(shown)
    code, shown, _ = call(f"gate fresh:train {SMALL} --base-target mine:train")
    assert code == 0
    assert "fresh:train against mine:train on random_text" in in_a_line(shown)


def test_next_gate_removes_the_worktree_of_a_killed_one(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "killed"))
    shutil.rmtree(tmp_path / "killed")
    (repository / "mine.py").write_text("")
    with base_side(["mine:train"], "main", "", tmp_path) as base:
        module = Path(base.import_folders[0], "mine.py")
        assert module.read_text() == "from variants.heap import train\n"
        assert len(git(repository, "worktree", "list").splitlines()) == 2  # its own
    assert len(git(repository, "worktree", "list").splitlines()) == 1


# Compiled modules


def test_compiled_modules_are_copied_or_the_base_is_built(repository: Path, tmp_path: Path) -> None:
    """A file that the build reads through another one counts too."""
    plain = ("mine.py", "pack/inner.py", "pack/fast.py", "tests/test_it.py")
    files = ("fast.pyx", "pyproject.toml", "setup.py", "flags.json", "helper.py", "hook.py")
    read = (*files, "pack/__init__.py", "pack/flags.py", "pack/made.py")
    texts = {
        "pyproject.toml": '[tool.hatch]\npath = "hook.py"\n[tool.ruff]\nx = "pack/inner.py"\n',
        "setup.py": "import helper\nfrom setuptools.command import build_ext\nx = 'fast'\n",
        "helper.py": "from pack import (\n    flags,\n)\n",
        "hook.py": "run(['python', '-m', 'pack.made'])\n",
    }
    base = commit_files(repository, dict.fromkeys((*plain, *read), "") | texts)
    module = repository / "fast.so"
    packages = [repository / "mine.py", repository / "pack", module]

    def provide(changed: str, build: str) -> str:
        module.write_text("copied")
        (repository / changed).write_text("x = 1\n")
        os.utime(repository / "fast.pyx", (0, 0))
        checkout = Path(tempfile.mkdtemp(dir=tmp_path))
        git(repository, "worktree", "add", "-q", "--detach", str(checkout), base)
        differing = changed_files(repository, base, tmp_path / "out")
        provide_compiled(repository, checkout, differing, build, packages)
        git(repository, "checkout", "-q", changed)
        return (checkout / "fast.so").read_text()

    build = '{python} -c \'print("built", end="", file=open("fast.so", "w"))\''
    assert {provide(name, "false") for name in plain} == {"copied"}
    assert {provide(name, build) for name in read} == {"built"}

    with pytest.raises(
        Refusal, match=r"build='false' \(without a message\); run .* -m pip install"
    ):
        provide("setup.py", "false")
    with pytest.raises(Refusal, match=r"\(.*No module named 'no_such'\)") as refusal:
        provide("setup.py", "{python} -c 'import no_such'")
    assert refusal.value.exit_code == 22
    os.utime(module, (0, 0))
    os.utime(repository / "fast.pyx")
    with pytest.raises(Refusal, match=r"fast\.pyx is newer than its compiled module"):
        provide_compiled(repository, tmp_path, [], "false", packages)


# Sides


def test_variant_of_base_has_the_parameters_of_its_own_card(tmp_path: Path) -> None:
    """A parameter that is new in head is unknown to the code of the base."""
    card = "name: heap\n_target_: variants.heap:train\nparams: {push: grown}\n"
    write_files(tmp_path, {"variants/__init__.py": "", "conf/variant/heap.yaml": card})
    base = side_of("base", "", {"variants": tmp_path / "variants"}, tmp_path)
    head = side_of("head", "", {}, tmp_path)
    heap = registry.variants()["heap"]
    compared = gate.compared_with(base, head, heap, None)
    assert compared.base_variant.params == {"push": "grown"}
    assert compared.difference == 2
    new = VariantCard("new", "variants.new:train", params={"size": 3})
    assert gate.compared_with(base, head, new, None).base_variant == new


def test_only_documents_make_no_difference(repository: Path, tmp_path: Path) -> None:
    """Whatever the gate itself writes into the repository."""
    names = ("another_package/inner.py", "table.json", "mine.py", "README.md", "docs/page.rst")
    commit_files(repository, dict.fromkeys(names, "# as it was\n"))
    commit_files(repository, {"other.md": "an honest commit"})
    git(repository, "checkout", "-qb", "change")
    mine = VariantCard("mine", "mine:train")
    head = side_of("head", "", {"mine": repository / "mine.py"}, tmp_path)
    write_files(repository, {"out/records.jsonl": "of the gate itself"})

    found = {}
    for name in ("new.txt", *names):
        (repository / name).write_text("# a change\n")
        with base_side(["mine:train"], "main", "", repository / "out") as base:
            found[name] = gate.compared_with(base, head, mine, None).difference
        git(repository, "stash", "-u", "--", name)
    assert found == {"new.txt": 1, **dict(zip(names, (1, 1, 2, 0, 0), strict=True))}


# Which files base imports


def test_each_package_of_the_repository_is_taken_from_the_base(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second package, as an editable install leads to it, and modules beside it; nothing that is
    installed inside of the repository.
    """
    names = ("lib/second/__init__.py", "lib/second/inner.py", "lib/single.py", "elsewhere/alone.py")
    installed = {".gitignore": "venv\n", "venv/inner/__init__.py": "", "venv/inner/fast.so": ""}
    commit_files(repository, dict.fromkeys(names, "# as it was\n") | installed)
    commit_files(repository, {**dict.fromkeys(names, "# a change\n"), "lib/fresh.py": ""})
    monkeypatch.syspath_prepend(repository / "lib")
    monkeypatch.syspath_prepend(repository / "venv")
    with base_side(["mine:train"], "HEAD^", "", tmp_path / "out") as base:
        checkout = Path(base.import_folders[0]).with_name("checkout").resolve()
        places = {
            "mine": checkout / "mine.py",
            "second.inner": checkout / "lib/second/inner.py",
            "single": checkout / "lib/single.py",
            "harness": CHECKOUT / "harness/__init__.py",
        }
        for name, place in places.items():
            spec = located(name, base.import_folders)
            assert Path(str(spec and spec.origin)).resolve() == place
        for name in ("fresh", "alone", "inner"):
            assert located(name, base.import_folders) is None

        allowed = [*map(str, places.values()), pytest.__file__]
        check_side(allowed, base)
        for name in ("lib/fresh.py", "elsewhere/alone.py"):
            with pytest.raises(WrongCode, match=rf"base imported {repository / name}, a file of"):
                check_side([*allowed, str(repository / name)], base)


@pytest.mark.slow
def test_base_that_imports_a_file_of_the_working_tree_is_no_result(
    repository: Path, call: Call
) -> None:
    folder = repository / "vendored"
    content = f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom quick import train\n"
    honest = "from variants.heap import train\n"
    commit_files(repository, {"mine.py": content, "vendored/quick.py": honest})
    git(repository, "checkout", "-qb", "change")
    commit_files(repository, {"vendored/quick.py": SLOWER})
    code, shown, _ = call(f"gate mine:train {SMALL}")
    assert code == 22
    untrusted = f"the results are not trusted: base imported {folder / 'quick.py'}"
    assert untrusted in in_a_line(shown)


@pytest.mark.slow
def test_change_of_its_own_card_is_in_the_headline(repository: Path, call: Call) -> None:
    card = CARD.read_text()
    commit_files(repository, {"gate.yaml": card})
    git(repository, "checkout", "-qb", "change")
    edited = card.replace("limits: {wall: 300}", "limits: {wall: 200}")
    commit_files(repository, {"gate.yaml": edited})
    edit = "the change edits the card of its own gate: -limits: {wall: 300} +limits: {wall: 200}"
    for arguments in (f"mine:train {SMALL} --card gate.yaml", f"--replay {gate.OUTPUT}"):
        code, shown, _ = call(f"gate {arguments}")
        assert code in (0, 20, 23)
        assert edit in in_a_line(shown).partition(" identity ")[0]


# What head and the checkout could do

SLOWER = """
from variants.heap import train as honest

def train(word_counts, num_merges):
    honest(word_counts, num_merges)
    return honest(word_counts, num_merges)
"""
REWRITES_BASE = """
import glob, os

for base in glob.glob(FOLDERS + "/bpe-harness-*/checkout/mine.py"):
    times = os.stat(base)
    with open(base, "w") as file:
        file.write(SLOWER)
    os.utime(base, ns=(times.st_atime_ns, times.st_mtime_ns))
"""


@pytest.mark.slow
def test_head_that_makes_the_base_slower_is_not_believed(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,
) -> None:
    """It takes twice as long, and so would what is left of the base."""
    folders = tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    attack = f"FOLDERS = {str(folders)!r}\nSLOWER = {SLOWER!r}\n{REWRITES_BASE}{SLOWER}"
    (repository / "mine.py").write_text(attack)
    code, shown, _ = call(f"gate mine:train {SMALL}")
    assert code == 22
    # although its time says the same
    changed = r"not trusted: checkout/mine\.py.*, of the base, changed while head ran"
    assert re.search(changed, in_a_line(shown))
