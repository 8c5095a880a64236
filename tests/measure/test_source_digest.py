"""The digest of the code behind a target changes with that code, and with nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rows import write_files
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


def test_a_digest_is_that_of_a_module_and_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "mine"
    write_files(package, {**FILES, "aside.py": ""})
    found = closure("mine.deep.train", tuple(sys.path))
    assert {path.relative_to(package).as_posix() for path in found.values()} == set(FILES)

    seen = [source_sha256("mine.deep.train:f")]
    (package / "aside.py").write_text("# changed\n")
    assert source_sha256("mine.deep.train:f") == seen[0]
    for name, source in FILES.items():
        # a file that does not parse counts by its bytes
        for change in ("def (\n", "# changed\n"):
            (package / name).write_text(source + change)
            seen.append(source_sha256("mine.deep.train:f"))
    assert len(set(seen)) == 2 * len(FILES) + 1
    assert None not in seen

    for missing in ("not_a_package.module:train", "mine.missing:train", ""):
        assert source_sha256(missing) is None


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
    Path("text.txt").write_text(TEXT)
    settings = "data.path=text.txt", "vocab_size=260", "variant._target_=edited:train"
    for source in ("from variants.heap import train\n", "def train(*_, **__):\n    1 / 0\n"):
        Path("edited.py").write_text(source)
        run(*settings, "results=results")

    trained = [record for record in read_records(["results"]) if record["cell"] == "train"]
    assert [record["status"] for record in trained] == ["ok", "error"]
    assert trained[0]["source_sha256"] != trained[1]["source_sha256"]
