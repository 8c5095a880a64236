"""Where Hydra is known to trip: installed elsewhere, completed by a shell, extended by others, in another version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra.errors
import pytest
from workbench import CHECKOUT

from harness.common import registry
from harness.runs.compose import compose

Complete = Callable[[str], list[str]]

ANNOUNCEMENT = "[harness.variants]\ntheirs = their_package.bpe:train\n"
# Asks bash what it would offer at the end of a line, as it does itself when the Tab key is pressed.
ASK = """
PATH="$1:$PATH"
eval "$(bpe-harness -sc install=bash)"
registered=$(complete -p bpe-harness)
function=${registered##*-F }
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=($2) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
${function%% *}
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(tmp_path: Path) -> Complete:
    """What bash offers where `bpe-harness` is installed as pip does it, and a package that announces a variant."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    described, command = tmp_path / "site" / "their_package-1.0.dist-info", tmp_path / "bin" / "bpe-harness"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ANNOUNCEMENT)
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nimport sys\nfrom harness.__main__ import main\nsys.exit(main())\n")
    command.chmod(0o755)
    variables = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{described.parent}"}

    def ask(line: str) -> list[str]:
        command_line = ["bash", "--norc", "-c", ASK, "bash", str(command.parent), line]
        done = subprocess.run(command_line, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return ask


# Completion.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bpe-harness variant=", sorted(f"variant={name}" for name in [*registry.cards("variant"), "theirs"])),
        ("bpe-harness variant=the", ["variant=theirs"]),
        ("bpe-harness tie_b", ["tie_break="]),
        ("bpe-harness -m variant=heap vocab_s", ["vocab_size=", "vocab_size_at_most."]),
        ("bpe-harness limits.w", ["limits.wall="]),
        ("bpe-harness nonesuch.x", []),
    ],
)
def test_a_shell_completes_names_and_overrides(completed: Complete, line: str, offered: list[str]) -> None:
    assert sorted(completed(line)) == offered


def test_the_papers_name_the_command_that_installs_completion() -> None:
    for paper in ("docs/how-to/run.md", "harness/usage_all.txt"):
        assert 'eval "$(bpe-harness -sc install=bash)"' in (CHECKOUT / paper).read_text()


# Installed.


@pytest.mark.slow
def test_an_installed_wheel_finds_its_configuration_from_anywhere(tmp_path: Path) -> None:
    """The wheel is built without the compiled modules, which have nothing to do with where files are found."""
    source, installed, elsewhere = tmp_path / "source", tmp_path / "installed", tmp_path / "else where"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (CHECKOUT / name).is_file() and name.startswith(("harness/", "variants/", "conf/", "README", "LICENSE")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, source / name)
    shutil.copy(CHECKOUT / "pyproject.toml", source)
    (source / "setup.py").write_text(without_compiled_modules((CHECKOUT / "setup.py").read_text()))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", installed, wheel], check=True)
    elsewhere.mkdir()
    (elsewhere / "text.txt").write_text("low lower lowest " * 50)
    variables = {**os.environ, "PYTHONPATH": str(installed), "BPE_HARNESS_CACHE": str(tmp_path / "cache")}

    def output(*arguments: str) -> str:
        ran = subprocess.run(arguments, cwd=elsewhere, env=variables, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    where = output(
        sys.executable, "-c", "import harness.common.registry; print(harness.common.registry.conf_folder())"
    ).strip()
    assert Path(where) == installed / "harness" / "conf"
    assert "name: heap" in output(sys.executable, "-m", "harness", "--cfg", "job")
    assert "heap" in output(sys.executable, "-m", "harness", "data.path=text.txt", "vocab_size=260", "counting=serial")
    assert "name: naive" in output(str(installed / "bin" / "bpe-harness"), "variant=naive", "--cfg", "job")
    assert sorted(path.name for path in elsewhere.iterdir()) == ["results", "text.txt"]


def without_compiled_modules(script: str) -> str:
    """setup.py with nothing to compile."""
    before, _, after = script.partition("    ext_modules=[")
    _, end, rest = after.partition("\n    ],\n")
    assert end
    return before + rest


# What is not relied on, and what changes.


def test_what_a_later_hydra_warns_of_is_not_the_users_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    class Migration(UserWarning):
        pass

    monkeypatch.setattr(hydra.errors, "Hydra15MigrationWarning", Migration, raising=False)
    main = hydra.main

    def warning_main(**settings: Any) -> object:
        warnings.warn("version_base will go", Migration, stacklevel=2)
        return main(**settings)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Migration):
            warning_main(version_base="1.3", config_path=None)
        monkeypatch.setattr(hydra, "main", warning_main)
        assert compose(["plan=true"]) is not None
