"""The digest of the code behind a target changes with that code, and with nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from workbench import CHECKOUT, TEXT

from harness import run
from harness.common import registry
from harness.measure.machine import closure, source_sha256
from harness.records.file import read_records

FILES = {
    "__init__.py": "raise RuntimeError('it was run')\n",
    "deep/__init__.py": "",
    "deep/train.py": "from .. import words\nfrom . import near\nimport json\n",
    "deep/near.py": "def f():\n    from mine.late import g\n",
    "late.py": "",
    "words.py": "",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in {**FILES, "aside.py": ""}.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "mine"


def test_a_digest_is_that_of_a_module_and_its_imports(package: Path) -> None:
    found = closure("mine.deep.train", tuple(sys.path))
    assert {path.relative_to(package).as_posix() for path in found.values()} == set(FILES)
    before = source_sha256("mine.deep.train:f")
    (package / "aside.py").write_text("# changed\n")
    assert source_sha256("mine.deep.train:f") == before is not None
    for name in FILES:
        changed = before
        # a file that does not parse counts by its bytes
        (package / name).write_text(FILES[name] + "def (\n")
        before = source_sha256("mine.deep.train:f")
        assert before not in (changed, None)
        (package / name).write_text(FILES[name] + "# changed\n")
        before = source_sha256("mine.deep.train:f")


def test_a_missing_module_has_no_digest(package: Path) -> None:
    assert package.is_dir()
    assert [
        source_sha256(target) for target in ("not_a_package.module:train", "mine.missing:train", "")
    ] == [None] * 3


def test_every_variant_has_a_digest_and_compiled_ones_count_by_what_was_built() -> None:
    for card in registry.variants().values():
        assert source_sha256(card.target) is not None, card.name
    flat = closure("variants.flat", (str(CHECKOUT),))
    assert flat["variants.native._flat"].suffix == ".so"
    assert "variants.contract" in flat
    assert "variants.heap" not in flat


def test_a_trainer_edited_between_two_runs_of_one_process_is_recorded_with_its_new_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    recorded: list[Any] = []
    for source in (
        "from variants.heap import train\n",
        "def train(*_, **__):\n    raise RuntimeError('edited')\n",
    ):
        (tmp_path / "edited.py").write_text(source)
        recorded += run(
            "data.path=text.txt",
            "vocab_size=260",
            "variant._target_=edited:train",
            "results=results",
        )
    assert [record["status"] for record in recorded] == ["ok", "error"]
    assert recorded[0]["source_sha256"] != recorded[1]["source_sha256"]
    stored = [
        record["source_sha256"] for record in read_records(["results"]) if record["cell"] == "train"
    ]
    assert stored == [record["source_sha256"] for record in recorded]
