"""Installed as a wheel, the command finds its configuration from anywhere."""

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from workbench import CHECKOUT, ran


@pytest.mark.slow
def test_an_installed_wheel_finds_its_configuration_from_anywhere(tmp_path: Path) -> None:
    """The wheel is built without the compiled modules, which have nothing to do with where files
    are found.
    """
    source = tmp_path / "source"
    installed = tmp_path / "installed"
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "text.txt").write_text("low lower lowest " * 50)
    copy = ["git", "-C", str(CHECKOUT), "checkout-index", "--all", f"--prefix={source}/"]
    subprocess.run(copy, check=True)
    setup = source / "setup.py"
    modules = r"(?s)    ext_modules=\[.*?\n    \],\n"
    without, removed = re.subn(modules, "", setup.read_text())
    assert removed == 1
    setup.write_text(without)
    pip = "-m pip --quiet install --no-deps --no-index --no-build-isolation --target"
    ran(elsewhere, *pip.split(), str(installed), str(source), check=True)

    variables = {"PYTHONPATH": str(installed), "BPE_HARNESS_CACHE": str(tmp_path / "cache")}
    python = partial(ran, elsewhere, variables=variables)
    run = ("-m", "harness", "data.path=text.txt", "vocab_size=260", "counting=serial")
    script = str(installed / "bin" / "bpe-harness")
    for command, expected in {
        ("-m", "harness", "--cfg", "job"): "name: heap",
        (*run, "plan=true"): "heap",
        (script, "variant=naive", "--cfg", "job"): "name: naive",
    }.items():
        done = python(*command)
        assert expected in done.stdout
        assert done.stderr == ""
    assert [path.name for path in elsewhere.iterdir()] == ["text.txt"]

    unproved = python(*run)
    assert unproved.returncode == 22
    assert "the compiled replay is not built" in unproved.stderr
