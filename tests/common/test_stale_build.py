"""After `git pull` compiled modules may be older than what calls them: then a crash says what mends it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools

from harness.common import errors
from harness.runs import run


def test_a_module_is_outdated_when_a_source_is_newer(tmp_path: Path) -> None:
    folder = tmp_path / "variants" / "native"
    folder.mkdir(parents=True)
    assert not errors.is_build_outdated(tmp_path)
    for name, written in (("_flat.so", 10), ("flat.hpp", 9)):
        (folder / name).write_text("")
        os.utime(folder / name, (written, written))
    assert not errors.is_build_outdated(tmp_path)
    os.utime(folder / "flat.hpp", (11, 11))
    assert errors.is_build_outdated(tmp_path)


def test_no_module_is_outdated_after_a_build_that_compiles_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", settings.update)
    monkeypatch.chdir(errors.CHECKOUT)
    runpy.run_path("setup.py")
    folder = tmp_path / "variants" / "native"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (folder / f"{name}.c").write_text(f'#include "{name}.hpp"\nint PyInit_{name};\n')
        (folder / f"{name}.hpp").touch()

    def build() -> None:
        extensions = [
            setuptools.Extension(
                f"variants.native.{name}", [f"variants/native/{name}.c"], depends=[f"variants/native/{name}.hpp"]
            )
            for name in ("one", "two")
        ]
        distribution = setuptools.Distribution({"name": "built", "ext_modules": extensions, "packages": ["variants"]})
        command = settings["cmdclass"]["build_ext"](distribution)
        command.inplace = True
        command.ensure_finalized()
        command.run()

    build()
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (1000, 1000))
    (folder / "two.hpp").touch()
    assert errors.is_build_outdated(tmp_path)
    build()
    assert not errors.is_build_outdated(tmp_path)


@pytest.mark.parametrize("outdated", [True, False])
def test_a_crash_beside_an_outdated_build_says_so(monkeypatch: pytest.MonkeyPatch, outdated: bool) -> None:
    monkeypatch.setattr(errors, "is_build_outdated", lambda: outdated)
    with pytest.raises(TypeError) as raised:
        errors.answered(lambda: len(5))  # type: ignore[arg-type]
    assert getattr(raised.value, "__notes__", []) == [errors.OUTDATED] * outdated


def test_a_crash_of_what_is_measured_beside_an_outdated_build_says_so_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "is_build_outdated", lambda: True)
    fine, slow = ({"status": "ok", "reason": None}, {"status": "timeout", "reason": "over 5 s"})
    run.report_stale_build([fine, slow])
    assert capsys.readouterr().err == ""
    crashed = {"status": "error", "reason": "counting failed: TypeError: cannot unpack (native.py:185, in count)"}
    run.report_stale_build([fine, crashed])
    assert capsys.readouterr().err == f"{errors.OUTDATED}\n"
