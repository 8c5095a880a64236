"""The digest of the code behind a target changes with that code, and with nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from workbench import CHECKOUT, TEXT

from harness import run
from harness.common import registry
from harness.measure.source_digest import closure, source_sha256
from harness.records.load import read_records

PLACES = (str(CHECKOUT),)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('it was run')\n")
    (folder / "deep" / "__init__.py").write_text("")
    (folder / "deep" / "train.py").write_text("from .. import words\nfrom . import near\nimport json\n")
    (folder / "deep" / "near.py").write_text("def f():\n    from mine.late import g\n")
    (folder / "late.py").write_text("")
    (folder / "words.py").write_text("")
    (folder / "aside.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


@pytest.mark.usefixtures("package")
def test_the_closure_is_what_a_module_imports_of_its_own_package() -> None:
    assert sorted(closure("mine.deep.train", tuple(sys.path))) == [
        "mine",
        "mine.deep",
        "mine.deep.near",
        "mine.deep.train",
        "mine.late",
        "mine.words",
    ]


@pytest.mark.parametrize("name", ["__init__.py", "deep/train.py", "deep/near.py", "late.py", "words.py"])
def test_a_change_in_the_closure_is_another_digest(package: Path, name: str) -> None:
    before = source_sha256("mine.deep.train:f")
    (package / name).write_text((package / name).read_text() + "# changed\n")
    assert source_sha256("mine.deep.train:f") != before


def test_a_change_elsewhere_is_none(package: Path) -> None:
    before = source_sha256("mine.deep.train:f")
    (package / "aside.py").write_text("# changed\n")
    assert source_sha256("mine.deep.train:f") == before is not None


def test_what_does_not_parse_counts_by_its_bytes(package: Path) -> None:
    (package / "words.py").write_text("def (")
    assert source_sha256("mine.deep.train:f") is not None


@pytest.mark.usefixtures("package")
def test_what_is_nowhere_has_no_digest() -> None:
    assert source_sha256("not_a_package.module:train") is None
    assert source_sha256("mine.missing:train") is None
    assert source_sha256("") is None


def test_every_listed_variant_has_one_and_compiled_ones_count_by_what_was_built() -> None:
    for card in registry.variants().values():
        assert source_sha256(card.target) is not None, card.name
    flat = closure("variants.flat", PLACES)
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

    def recorded() -> tuple[str, str]:
        (record,) = run("data.path=text.txt", "vocab_size=260", "variant._target_=edited:train", "results=results")
        return record["status"], record["source_sha256"]

    (tmp_path / "edited.py").write_text("from variants.heap import train\n")
    first = recorded()
    (tmp_path / "edited.py").write_text("def train(*_, **__):\n    raise RuntimeError('edited')\n")
    second = recorded()
    assert (first[0], second[0]) == ("ok", "error")
    assert first[1] != second[1]
    stored = [record["source_sha256"] for record in read_records(["results"]) if record["cell"] == "train"]
    assert stored == [first[1], second[1]]
