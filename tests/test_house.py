"""The papers of the house agree with each other and with what is done, and with what users
install.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import setuptools
import tomllib
import yaml
from omegaconf import OmegaConf

import harness
from harness.__main__ import main
from harness.common import registry

REPOSITORY = Path(__file__).parent.parent
CARDS = sorted(REPOSITORY.glob("conf/**/*.yaml"))
GROUPS = {"variant", "data", "counting", "pattern", "measure"}
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
ACTION = re.compile(r"uses: *([^\s@]+)@(\S+)(.*)")
# Written so that this file does not hold what it looks for.
PACKAGE_INDEX = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|crates|debian)\.(?:org|com|io|net)\b", re.IGNORECASE
)
PLACE_ON_A_MACHINE = re.compile(r"(?<![\w.~:/}])/(?:home|root|work|tmp|usr|opt|Users)/")


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks of one language in a Markdown file, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text(name), re.MULTILINE | re.DOTALL)


def first_two_commands() -> tuple[str, str]:
    first, second = (
        block.strip() for block in blocks("README.md", "sh") if " -m pip install -e " in block
    )
    return first, second


def git_files(*arguments: str) -> list[str]:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("this is no git checkout, so nothing says which files belong to the project")
    listed = subprocess.run(
        ["git", "ls-files", "-z", *arguments], cwd=REPOSITORY, capture_output=True, check=True
    )
    return [
        name
        for name in listed.stdout.decode().split("\0")
        if name and (REPOSITORY / name).is_file()
    ]


def project_files() -> list[str]:
    return git_files("--cached", "--others", "--exclude-standard")


def card(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def test_ci_installs_and_runs_what_the_readme_says() -> None:
    first, second = first_two_commands()
    lines = text(".ci/run").splitlines()
    assert first.replace("python3", '"$PYTHON"', 1) in lines
    assert second in lines
    named = re.search(r"`apt-get install ([^`]+)`", text("README.md"))
    assert named
    assert f"|| install {named[1]} ||" in text(".ci/run")


def test_the_workflow_calls_the_same_script_under_every_python_of_the_readme() -> None:
    workflow = yaml.safe_load(text(".github/workflows/ci.yml"))
    (job,) = workflow["jobs"].values()
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]
    assert workflow["permissions"] == {"contents": "read"}
    bounds = re.search(r"Python 3\.(\d+) to 3\.(\d+)", text("README.md"))
    assert bounds
    versions = [f"3.{minor}" for minor in range(int(bounds[1]), int(bounds[2]) + 1)]
    assert job["strategy"]["matrix"]["python"] == versions
    assert f">={versions[0]}" == project()["project"]["requires-python"]
    assert " ".join(versions) in text(".ci/run")


def test_what_must_run_on_ci_is_in_the_registry() -> None:
    required = re.search(r"^export BPE_HARNESS_REQUIRE=(\S+)$", text(".ci/run"), re.MULTILINE)
    assert required
    assert set(required[1].split(",")) <= {*registry.variants(), *registry.counters()}


def test_every_card_loads_and_is_called_like_its_file() -> None:
    for path in CARDS:
        content = registry.read_card(path)
        assert content == OmegaConf.to_container(OmegaConf.load(path)), path
        assert path.parent.name not in GROUPS or content["name"] == path.stem, path


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("conf/variant/*.yaml")), ids=lambda path: path.stem
)
def test_a_variants_card_says_everything(path: Path) -> None:
    content = card(path)
    for optional in ("rank", "by_design", "own_words"):  # nothing unless the card says otherwise
        content.pop(optional, None)
    assert content.pop("counting", registry.default_counter().name) in registry.counters()
    assert list(content) == ["name", "about", "part", "family", "tags", "_target_", "params"]


def test_a_preset_becomes_a_card_that_says_everything() -> None:
    families = [card(path) for path in CARDS if path.parent.name == "family"]
    for name, content in registry.presets().items():
        assert set(content) == set(card(REPOSITORY / "conf/variant/heap.yaml"))
        assert content["name"] == name
        assert not (REPOSITORY / "conf/variant" / f"{name}.yaml").exists()
        assert content["about"]
        (family,) = [family for family in families if name in family["presets"]]
        assert list(content["params"]) == list(family["defaults"]["params"]), (
            f"{name} has one that no other has"
        )


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("conf/experiment/*.yaml")), ids=lambda path: path.stem
)
def test_an_experiment_begins_with_its_command(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert re.match(rf"# python -m harness( -m)? experiment={path.stem}\b", first)


def test_every_line_of_security_names_its_test() -> None:
    rows = re.findall(r"^\| (?!what|program|data \|)[^-].*\|$", text("SECURITY.md"), re.MULTILINE)
    tests = "".join(path.read_text() for path in REPOSITORY.glob("tests/**/test_*.py"))
    assert len(rows) > 15
    for row in rows:
        named = re.search(r"\| `(test_\w+)` \|$", row)
        assert named, row
        assert f"def {named[1]}(" in tests, row


def project() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py hands to setuptools."""
    settings: dict[str, Any] = {}
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(setuptools, "setup", settings.update)
    runpy.run_path("setup.py")
    return settings


def test_the_build_names_every_package_that_is_there(build: dict[str, Any]) -> None:
    folders = {
        Path(name).parent
        for name in project_files()
        if re.match(r"(variants|harness)/.*\.py$", name)
    }
    cards = {path.parent.relative_to(REPOSITORY) for path in CARDS}
    expected = {".".join(folder.parts) for folder in folders} | {
        ".".join(("harness", *folder.parts)) for folder in cards
    }
    assert sorted(build["packages"]) == sorted(expected)


def test_the_build_names_every_compiled_module_with_its_headers(build: dict[str, Any]) -> None:
    named = {
        source for module in build["ext_modules"] for source in [*module.sources, *module.depends]
    }
    written = {
        name
        for name in project_files()
        if name.startswith(("variants/", "harness/"))
        and name.endswith((".pyx", ".pxd", ".pxi", ".hpp", ".cpp"))
    }
    assert named == written


def test_links_between_the_papers_lead_somewhere() -> None:
    papers = [name for name in project_files() if name.endswith(".md")]
    assert {"CONTRIBUTING.md", "README.md"} <= set(papers)
    links = [
        (name, link)
        for name in papers
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text(name))
    ]
    assert [
        (name, link)
        for name, link in links
        if not (REPOSITORY / name).parent.joinpath(link).exists()
    ] == []


def test_the_recipe_for_a_variant_has_the_keys_of_the_others() -> None:
    described = yaml.safe_load(blocks("docs/how-to/variant.md", "yaml")[0])
    assert list(described) == list(card(REPOSITORY / "conf/variant/heap.yaml"))
    assert described["_target_"] == f"variants.{described['name']}:train"


def test_the_recipe_for_a_data_set_says_what_the_others_say() -> None:
    described = yaml.safe_load(blocks("docs/reference/configuration.md", "yaml")[-1])
    other = card(REPOSITORY / "conf/data/big_txt.yaml")
    assert list(described) == list(other)
    assert list(described["source"]) == list(other["source"])
    assert set(described["facts"]) <= set(other["facts"])


def test_the_version_is_ours_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    version = project()["project"]["version"]
    assert harness.__version__ == importlib.metadata.version("bpe-harness") == version
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bpe-harness {version}\n"
    assert re.findall(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.MULTILINE)[:2] == [
        "Unreleased",
        version,
    ]
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == version


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    pages = [*WORKFLOWS, *(REPOSITORY / "docs").rglob("*.md")]
    used = [found.groups() for page in pages for found in ACTION.finditer(page.read_text())]
    assert len(used) > 10
    pinned = re.compile(r"[0-9a-f]{40}  # v[\d.]+")
    assert [action for action in used if not pinned.fullmatch("".join(action[1:]))] == []
    assert len({(name, commit) for name, commit, _ in used}) == len({name for name, _, _ in used})


def test_releasing_needs_no_secret_and_may_do_nothing_else() -> None:
    assert [page.name for page in WORKFLOWS if "secrets." in page.read_text()] == []
    workflow = yaml.safe_load(text(".github/workflows/wheels.yml"))
    assert workflow["permissions"] == {"contents": "read"}
    permitted = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert permitted == {"wheels": None, "sdist": None, "release": {"id-token": "write"}}
    release = workflow["jobs"]["release"]
    assert (release["needs"], release["environment"]) == (["wheels", "sdist"], "release")
    assert release["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_wheels_are_for_the_pythons_that_are_tested() -> None:
    versions = re.findall(
        r":: (3\.\d+)$", "\n".join(project()["project"]["classifiers"]), re.MULTILINE
    )
    assert " ".join(versions) in text(".ci/run")
    assert project()["tool"]["cibuildwheel"]["build"] == [
        f"cp{version.replace('.', '')}-*" for version in versions
    ]
    (script,) = re.findall(r"\{project\}/(\S+)", project()["tool"]["cibuildwheel"]["test-command"])
    assert (REPOSITORY / script).is_file()


@pytest.mark.slow
def test_the_source_distribution_holds_all_that_the_project_is(tmp_path: Path) -> None:
    """So that it builds, is tested and documented from there as from a checkout; and nothing that
    was made.
    """
    building = [
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        ".",
    ]
    subprocess.run(building, cwd=REPOSITORY, check=True, capture_output=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames() if not name.endswith("/")}
    kept = set(git_files("--cached", "--others", "--exclude-standard"))
    assert kept - held == set()
    files = {
        name
        for name in held
        if "." in Path(name).name and not name.startswith("bpe_harness.egg-info")
    }
    folders = {str(parent) for name in held for parent in Path(name).parents}
    assert files - kept - folders <= {"PKG-INFO", "setup.cfg"}


def test_nothing_names_a_place_on_a_machine_or_a_package_index() -> None:
    found = []
    for name in project_files():
        content = (REPOSITORY / name).read_text(errors="replace")
        # a quick test that few files pass
        may_name = re.search(r"\.(?:org|com|io|net)\b", content.lower())
        matches = [*PACKAGE_INDEX.finditer(content)] if may_name else []
        if name.endswith((".md", ".yaml", ".yml", ".json", ".jsonl", ".csv")):
            matches += PLACE_ON_A_MACHINE.finditer(content)
        found += [
            f"{name}:{content.count(chr(10), 0, match.start()) + 1}: {match[0]}"
            for match in matches
        ]
    assert found == []


def test_nothing_that_is_made_is_kept() -> None:
    assert git_files("--cached", "--ignored", "--exclude-standard") == []


def test_a_missing_compiler_is_named_before_anything_is_built() -> None:
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext"],
        cwd=REPOSITORY,
        env={**os.environ, "CXX": "no-such-compiler -pthread"},
        capture_output=True,
        text=True,
    )
    assert built.returncode != 0
    assert built.stderr.splitlines()[-1].startswith(
        "bpe-harness needs a C++ compiler, and no-such-compiler -pthread was not found; install one"
    )
