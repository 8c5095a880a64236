"""Installed as a wheel, the command finds its configuration from anywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import CHECKOUT


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
    cache = str(tmp_path / "cache")
    variables = {**os.environ, "PYTHONPATH": str(installed), "BPE_HARNESS_CACHE": cache}

    def output(*command: str | Path, env: dict[str, str] | None = None) -> str:
        ran = subprocess.run(
            command, cwd=elsewhere, env=env, capture_output=True, text=True, check=True
        )
        assert ran.stderr == ""
        return ran.stdout

    output("git", "-C", CHECKOUT, "checkout-index", "--all", f"--prefix={source}/")
    setup = source / "setup.py"
    modules = r"(?s)    ext_modules=\[.*?\n    \],\n"
    without, removed = re.subn(modules, "", setup.read_text())
    assert removed == 1
    setup.write_text(without)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    offline = ("--no-deps", "--no-index")
    output(*pip, "wheel", *offline, "--no-build-isolation", "-w", tmp_path, source)
    (wheel,) = tmp_path.glob("*.whl")
    output(*pip, "install", *offline, "--target", installed, wheel)

    harness = (sys.executable, "-m", "harness")
    run = ("data.path=text.txt", "vocab_size=260", "counting=serial")
    assert "name: heap" in output(*harness, "--cfg", "job", env=variables)
    assert "heap" in output(*harness, *run, "plan=true", env=variables)
    script = installed / "bin" / "bpe-harness"
    assert "name: naive" in output(script, "variant=naive", "--cfg", "job", env=variables)
    assert [path.name for path in elsewhere.iterdir()] == ["text.txt"]

    unproved = subprocess.run([*harness, *run], cwd=elsewhere, env=variables, capture_output=True)
    assert unproved.returncode == 22
    assert b"the compiled replay is not built" in unproved.stderr
