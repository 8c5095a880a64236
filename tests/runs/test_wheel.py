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
    source, installed, elsewhere = (
        tmp_path / "source",
        tmp_path / "installed",
        tmp_path / "else where",
    )
    subprocess.run(
        ["git", "checkout-index", "--all", f"--prefix={source}/"], cwd=CHECKOUT, check=True
    )
    setup, removed = re.subn(
        r"(?s)    ext_modules=\[.*?\n    \],\n", "", (source / "setup.py").read_text()
    )
    assert removed == 1
    (source / "setup.py").write_text(setup)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "-w", tmp_path, source], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", installed, wheel], check=True)
    elsewhere.mkdir()
    (elsewhere / "text.txt").write_text("low lower lowest " * 50)
    variables = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "BPE_HARNESS_CACHE": str(tmp_path / "cache"),
    }

    def output(*arguments: str) -> str:
        ran = subprocess.run(
            arguments, cwd=elsewhere, env=variables, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    where = output(
        sys.executable, "-c", "from harness.common import registry; print(registry.conf_folder())"
    )
    assert Path(where.strip()) == installed / "harness" / "conf"
    assert "name: heap" in output(sys.executable, "-m", "harness", "--cfg", "job")
    assert "heap" in output(
        sys.executable, "-m", "harness", "data.path=text.txt", "vocab_size=260", "counting=serial"
    )
    assert "name: naive" in output(
        str(installed / "bin" / "bpe-harness"), "variant=naive", "--cfg", "job"
    )
    assert sorted(path.name for path in elsewhere.iterdir()) == ["results", "text.txt"]
