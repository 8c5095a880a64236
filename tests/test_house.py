"""The papers of the house agree with each other and with what is done, and with what users
install.
"""

import importlib.metadata
import re
import runpy
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import setuptools
import tomllib
import yaml
from omegaconf import OmegaConf
from shown import blocks_after
from workbench import CHECKOUT, ran

import harness
from harness.common import registry

CARDS = sorted(CHECKOUT.glob("conf/**/*.yaml"))
GROUPS = {"variant", "data", "counting", "pattern", "measure"}
WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))
COMPILED = (".pyx", ".pxd", ".pxi", ".hpp", ".cpp")
# Written so that this file does not hold what it looks for.
PACKAGE_INDEX = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|crates|debian)\.(?:org|com|io|net)\b", re.IGNORECASE
)
PLACE_ON_A_MACHINE = re.compile(r"(?<![\w.~:/}])/(?:home|root|work|tmp|usr|opt|Users)/")


def text(name: str) -> str:
    return (CHECKOUT / name).read_text(errors="replace")


def found(pattern: str, name: str) -> list[Any]:
    """The matches of a pattern in a file, in which ^ and $ are those of lines."""
    return re.findall(pattern, text(name), re.MULTILINE)


def card(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text(name)))


def git_files(*arguments: str) -> set[str]:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("this is no git checkout, so nothing says which files belong to the project")
    command = ["git", "ls-files", "-z", "--exclude-standard", *arguments]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    return {name for name in names if (CHECKOUT / name).is_file()}


def project_files() -> set[str]:
    return git_files("--cached", "--others")


def test_ci_runs_what_the_readme_says_under_every_python_that_it_names() -> None:
    script, workflow = text(".ci/run"), card(".github/workflows/ci.yml")
    first, second = found(r"^[^-\n].* -m pip install -e .*$", "README.md")
    assert first.replace("python3", '"$PYTHON"', 1) in script.splitlines()
    assert second in script.splitlines()
    (packages,) = found(r"`apt-get install ([^`]+)`", "README.md")
    assert f"|| install {packages} ||" in script
    (required,) = found(r"^export BPE_HARNESS_REQUIRE=(\S+)$", ".ci/run")
    assert set(required.split(",")) <= {*registry.variants(), *registry.counters()}

    ((oldest, newest),) = found(r"Python 3\.(\d+) to 3\.(\d+)", "README.md")
    versions = [f"3.{minor}" for minor in range(int(oldest), int(newest) + 1)]
    assert " ".join(versions) in script
    (job,) = workflow["jobs"].values()
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]
    assert workflow["permissions"] == {"contents": "read"}
    assert job["strategy"]["matrix"]["python"] == versions

    content = tomllib.loads(text("pyproject.toml"))
    assert content["project"]["requires-python"] == f">={versions[0]}"
    assert (
        re.findall(r":: (3\.\d+)$", "\n".join(content["project"]["classifiers"]), re.M) == versions
    )
    wheels = content["tool"]["cibuildwheel"]
    assert wheels["build"] == [f"cp{version.replace('.', '')}-*" for version in versions]
    (tried,) = re.findall(r"\{project\}/(\S+)", wheels["test-command"])
    assert (CHECKOUT / tried).is_file()


def test_every_card_loads_and_says_everything() -> None:
    keys = list(card("conf/variant/heap.yaml"))
    assert keys == ["name", "about", "part", "family", "tags", "_target_", "params"]
    for path in CARDS:
        content = registry.read_card(path)
        group = path.parent.name
        assert content == OmegaConf.to_container(OmegaConf.load(path)), path
        assert group not in GROUPS or content["name"] == path.stem, path

        if group == "variant":
            # nothing unless the card says otherwise
            given = [key for key in content if key not in ("rank", "by_design", "own_words")]
            assert [key for key in given if key != "counting"] == keys, path
            assert content.get("counting", "serial") in registry.counters(), path
        if group == "experiment":
            first = path.read_text().splitlines()[0]
            assert re.match(rf"# python -m harness( -m)? experiment={path.stem}\b", first)

    for name, content in registry.presets().items():
        assert set(content) == set(keys), name
        assert content["name"] == name
        assert not (CHECKOUT / "conf/variant" / f"{name}.yaml").exists()


def test_recipes_for_cards_have_the_keys_of_the_others() -> None:
    variant = yaml.safe_load(blocks_after(CHECKOUT / "docs/how-to/variant.md", "^```yaml\n")[0])
    assert list(variant) == list(card("conf/variant/heap.yaml"))
    assert variant["_target_"] == f"variants.{variant['name']}:train"

    data = yaml.safe_load(
        blocks_after(CHECKOUT / "docs/reference/configuration.md", "^```yaml\n")[-1]
    )
    other = card("conf/data/big_txt.yaml")
    assert list(data) == list(other)
    assert list(data["source"]) == list(other["source"])
    assert set(data["facts"]) <= set(other["facts"])


def test_every_line_of_security_and_of_measuring_names_its_tests() -> None:
    tests = "".join(path.read_text() for path in CHECKOUT.glob("tests/**/test_*.py"))
    rows = found(r"^\| (?!what|program|data \|)[^-].*\|$", "SECURITY.md")
    assert len(rows) > 15
    names = set(found(r"`(test_\w+)`", "docs/explanation/measuring.md"))
    assert len(names) > 10
    for row in rows:
        named = re.search(r"\| `(test_\w+)` \|$", row)
        assert named, row
        names.add(named[1])
    assert [name for name in names if f"def {name}(" not in tests] == []


def test_the_build_names_every_package_and_every_compiled_module_with_its_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build: dict[str, Any] = {}
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setattr(setuptools, "setup", build.update)
    runpy.run_path("setup.py")

    written = [name for name in project_files() if name.startswith(("variants/", "harness/"))]
    folders = {Path(name).parent for name in written if name.endswith(".py")}
    folders |= {Path("harness", path.parent.relative_to(CHECKOUT)) for path in CARDS}
    assert sorted(build["packages"]) == sorted(".".join(folder.parts) for folder in folders)
    named: set[str] = set()
    for module in build["ext_modules"]:
        named.update(module.sources, module.depends)
    generated = {"variants/native/_shared.c"}  # by Cython
    assert named - generated == {name for name in written if name.endswith(COMPILED)}


def test_links_between_the_papers_lead_somewhere() -> None:
    papers = {name for name in project_files() if name.endswith(".md")}
    assert {"CONTRIBUTING.md", "README.md"} <= papers
    broken = []
    for name in papers:
        folder = (CHECKOUT / name).parent
        for link in found(r"\]\((?!https?:)([^)#]+)", name):
            if not (folder / link).exists():
                broken.append((name, link))
    assert broken == []


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    assert harness.__version__ == importlib.metadata.version("bpe-harness") == version
    assert found(r"^## \[(.+?)\]", "CHANGELOG.md")[:2] == ["Unreleased", version]
    assert card("CITATION.cff")["version"] == version


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    used = []
    for page in (*WORKFLOWS, *(CHECKOUT / "docs").rglob("*.md")):
        used += found(r"uses: *([^\s@]+)@(\S+)(.*)", str(page))
    assert len(used) > 10

    pinned = re.compile(r"[0-9a-f]{40}  # v[\d.]+")
    assert [action for action in used if not pinned.fullmatch("".join(action[1:]))] == []
    assert len({action[:2] for action in used}) == len({action[0] for action in used})


def test_releasing_needs_no_secret_and_may_do_nothing_else() -> None:
    assert [page.name for page in WORKFLOWS if "secrets." in page.read_text()] == []
    workflow = card(".github/workflows/wheels.yml")
    assert workflow["permissions"] == {"contents": "read"}
    permitted = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert permitted == {"wheels": None, "sdist": None, "release": {"id-token": "write"}}
    release = workflow["jobs"]["release"]
    assert (release["needs"], release["environment"]) == (["wheels", "sdist"], "release")
    assert release["if"] == "startsWith(github.ref, 'refs/tags/v')"


@pytest.mark.slow
def test_the_source_distribution_holds_all_that_the_project_is(tmp_path: Path) -> None:
    """So that it builds, is tested and documented from there as from a checkout; and nothing that
    was made.
    """
    building = f"-m build --sdist --no-isolation --outdir {tmp_path} ."
    assert ran(CHECKOUT, *building.split()).returncode == 0
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    held = {member.name.partition("/")[2] for member in members if member.isfile()}

    kept = project_files()
    assert kept - held == set()
    made = {name for name in held - kept if not name.startswith("bpe_harness.egg-info")}
    assert made <= {"PKG-INFO", "setup.cfg"}


def test_nothing_names_a_place_on_a_machine_or_a_package_index() -> None:
    named = []
    for name in project_files():
        content = text(name)
        # a quick test that few files pass
        may_name = re.search(r"\.(?:org|com|io|net)\b", content.lower())
        matches = [*PACKAGE_INDEX.finditer(content)] if may_name else []
        if name.endswith((".md", ".yaml", ".yml", ".json", ".jsonl", ".csv", ".ipynb")):
            matches += PLACE_ON_A_MACHINE.finditer(content)
        for match in matches:
            line = content.count("\n", 0, match.start()) + 1
            named.append(f"{name}:{line}: {match[0]}")
    assert named == []


def test_nothing_that_is_made_is_kept() -> None:
    assert git_files("--cached", "--ignored") == set()


def test_a_missing_compiler_is_named_before_anything_is_built() -> None:
    without = {"CXX": "no-such-compiler -pthread"}
    built = ran(CHECKOUT, "setup.py", "-q", "build_ext", variables=without)
    assert built.returncode != 0
    assert built.stderr.splitlines()[-1].startswith(
        "bpe-harness needs a C++ compiler, and no-such-compiler -pthread was not found; install one"
    )
