"""The coverage-guided fuzzer finds nothing in the scanner, and finds what was broken for it to find.

`SCANNER_FUZZ_BYTES` and `SCANNER_FUZZ_SEED` say how much text it scans and from where it starts; the workflow
`explore` gives it more.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("variants.native._scanner")

import fuzz_scanner

from harness.common.errors import MISMATCH, OK, UNMEASURED

needs_clang = pytest.mark.skipif(
    shutil.which("clang++") is None, reason="clang++ builds the fuzzer: apt-get install clang"
)
BROKEN = (
    ("scanner_blocks.hpp", "carried.contracted = bit ? joined >> (64 - bit) : 0;", "carried.contracted = 0;"),
    ("scanner_blocks.hpp", "carried.trail = trailing >> 63;", "carried.trail = 0;"),
    ("scanner_patterns.hpp", "if (left & space) return false;", "if (left & number) return false;"),
    ("scanner_join.hpp", "places[place]->count += word.slot->count;", "places[place]->count = word.slot->count;"),
    ("scanner_classes.hpp", "lead == 0xED ? 0x9F", "lead == 0xED ? 0xBF"),
)


@pytest.mark.slow
@needs_clang
def test_the_fuzzer_finds_nothing() -> None:
    most = os.environ.get("SCANNER_FUZZ_BYTES", "20000000")
    assert fuzz_scanner.main(["--bytes", most, "--seed", os.environ.get("SCANNER_FUZZ_SEED", "1")]) == OK


@pytest.mark.slow
@needs_clang
@pytest.mark.parametrize(("header", "right", "wrong"), BROKEN)
def test_the_fuzzer_finds_a_scanner_broken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, right: str, wrong: str
) -> None:
    headers = tmp_path / "native"
    shutil.copytree(fuzz_scanner.HEADERS, headers)
    text = (headers / header).read_text()
    assert text.count(right) == 1
    (headers / header).write_text(text.replace(right, wrong))
    monkeypatch.setattr(fuzz_scanner, "HEADERS", headers)
    monkeypatch.chdir(tmp_path)
    assert fuzz_scanner.main(["--bytes", "100000000", "--seed", "2"]) == MISMATCH
    assert list(tmp_path.glob("scanner-crash-*"))


def test_without_clang_the_fuzzer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert fuzz_scanner.main([]) == UNMEASURED
    assert "apt-get install clang" in capsys.readouterr().err
