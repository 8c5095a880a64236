"""Cards of strangers: those that are data run nothing, write nowhere and carry nothing away; a bad
one is answered in one sentence.
"""

import json
import random
import re
from pathlib import Path

import pytest
from rows import Row, each_row
from workbench import Call, first_fast

from harness.common import registry
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import fetch, fetched_kind
from harness.gate.base import build_base

INDEX = {"kind": "package_index", "package": "p", "version": "1", "files": ["*"], "file": "f.txt"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for --config-dir; nothing may get as far as a package client."""
    monkeypatch.setattr(fetch, "client_command", lambda *_: pytest.fail("would have fetched"))
    return tmp_path / "cards"


def write(folder: Path, group: str, name: str, content: object) -> Path:
    """A card; text is written as it is."""
    path = folder / group / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@each_row(__file__, "refused_cards.toml")
def test_hostile_card_is_refused_in_one_sentence(row: Row, folder: Path, call: Call) -> None:
    group = row["group"]
    path = write(folder, group, "mine", row["card"])
    run = call(f"plan=true {group}=mine", *row.get("with", []), "--config-dir", folder)
    assert (run.code, run.out, run.err.count("\n")) == (USAGE, "", 1)
    assert run.err.startswith(row.get("starts", f"{path}: "))
    assert row["refused"] in run.err
    if group == "data":
        assert call("corpora fetch mine --config-dir", folder) == run


def test_card_of_yours_takes_the_place_of_none(folder: Path) -> None:
    tags = ["definition", "compiled", "extends", "frontier", "native"]
    for group in ("variant", "counting"):
        write(folder, group, "aaa", {"_target_": "evil:train", "tags": tags, "name": "aaa"})
    write(folder, "data", "mine", {"source": {**INDEX, "file": "big.txt"}})
    registry.use_folder(folder)

    assert registry.definition().__module__ == "variants.naive"
    assert registry.default_counter().name == "native"
    assert list(registry.variants())[-1] == "aaa"
    assert [fetched_kind(name) for name in ("big_txt", "mine")] == ["corpora", "corpora/yours"]


@pytest.mark.usefixtures("measured_once")
def test_code_of_your_cards_runs_only_if_chosen(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, book: str, call: Call
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for group in ("variant", "counting"):
        code = f"open('{tmp_path}/{group} ran', 'w').close()\n"
        (tmp_path / f"their_{group}.py").write_text(code)
        write(folder, group, "mine", {"name": "mine", "_target_": f"their_{group}:nonesuch"})
    line = f"vocab_size=258 {book} results={tmp_path} --config-dir {folder}"

    assert call(line).code == OK
    assert not list(tmp_path.glob("* ran"))
    write(folder, "experiment", "theirs", {"variants": ["mine"]})
    for group, choice in {"variant": "experiment=theirs", "counting": "counting=mine"}.items():
        assert call(line, choice).code != OK
        assert (tmp_path / f"{group} ran").exists()


def test_gate_card_is_a_program(tmp_path: Path) -> None:
    build_base(tmp_path, f"touch {tmp_path / 'mark'}")
    assert (tmp_path / "mark").exists()


def test_data_set_that_is_missing_is_not_fetched_by_a_run(folder: Path, call: Call) -> None:
    write(folder, "data", "mine", {"source": INDEX})
    run = call("plan=true data=mine --config-dir", folder)
    assert run.code == UNMEASURED
    assert "get it with python -m harness.corpora fetch mine" in run.err


ODD = Path(__file__).with_name("odd_values.txt").read_text().splitlines()


def mutated(chance: random.Random, card: object) -> str:
    """A card with something odd in the place of a key or a value, and perhaps nothing after it."""
    text = json.dumps(card)
    place = chance.choice(list(re.finditer(r'"[^"]*"|[\w.]+', text)))
    rest = text[place.end() :] if chance.random() < 0.9 else ""
    return text[: place.start()] + chance.choice(ODD) + rest


@pytest.mark.parametrize("seed", first_fast(range(8)))
def test_mutated_card_is_answered_in_one_sentence(folder: Path, call: Call, seed: int) -> None:
    chance = random.Random(seed)
    cards = [
        (group, card if group == "experiment" else {**card, "name": "mine"})
        for group in registry.KINDS
        for card in registry.cards(group).values()
    ]
    answers = []
    for _ in range(15):
        group, card = chance.choice(cards)
        path = write(folder, group, "mine", mutated(chance, card))
        code, _, sentence = call(f"--cfg job {group}=mine --config-dir", folder)
        assert (code, sentence.count("\n")) in ((OK, 0), (USAGE, 1)), (path, sentence)
        assert code == OK or f"{path}" in sentence or "In 'experiment/mine'" in sentence, sentence
        path.unlink()
        answers.append(code)
    assert answers.count(USAGE) > 5
