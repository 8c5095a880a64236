"""Cards of strangers: those that are data run nothing, write nowhere and carry nothing away; a bad
one is answered in one sentence; --config-dir adds a folder of cards.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from workbench import cases_beside, first_fast

from harness import __main__ as run_command
from harness import replay, tokenizer
from harness.common import registry
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import __main__ as corpora_command
from harness.corpora import packages
from harness.corpora.cards import fetched_place
from harness.gate.__main__ import main as gate
from harness.gate.base import build_base

Captured = pytest.CaptureFixture[str]
GENERATED = {"kind": "generator", "generator": "ties", "letters": 3, "seed": 1}
INDEX = {"kind": "package_index", "package": "p", "version": "1", "files": ["*"], "file": "f.txt"}
URL = {"kind": "url", "url": "https://moon.invalid/x", "file": "f.txt"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for --config-dir."""
    (tmp_path / "cards" / "data").mkdir(parents=True)
    return tmp_path / "cards"


@pytest.fixture(autouse=True)
def no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of this file may get as far as a package client."""

    def command(source: dict[str, Any], _: Path) -> None:
        pytest.fail(f"would have fetched {source}")

    monkeypatch.setattr(packages, "client_command", command)


def write(folder: Path, group: str, name: str, content: object) -> Path:
    """A card; text is written as it is."""
    path = folder / group / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def ran(folder: Path, *overrides: str) -> int:
    return run_command.main(["--config-dir", str(folder), "plan=true", *overrides])


def refused(capsys: Captured, code: int) -> str:
    """The one sentence of a command that ended with a usage error."""
    shown = capsys.readouterr()
    assert (code, shown.out) == (USAGE, "")
    assert shown.err.count("\n") == 1
    return shown.err.strip()


# Data


@pytest.mark.parametrize(("card", "field"), cases_beside(__file__, "refused_data.txt"))
def test_data_card_reaches_no_program_and_no_other_folder(
    folder: Path, capsys: Captured, card: str, field: str
) -> None:
    path = write(folder, "data", "mine", card)
    fetch = ["fetch", "mine", "--config-dir", str(folder)]
    sentences = {
        refused(capsys, corpora_command.main(fetch)),
        refused(capsys, ran(folder, "data=mine")),
    }
    (sentence,) = sentences
    assert sentence.startswith(f"{path}: ")
    assert field in sentence


def test_data_card_sets_nothing_but_data(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    params = {"command": f"touch {tmp_path / 'mark'}"}
    variant = {"name": "executable", "_target_": "variants.executable:train", "params": params}
    text = "# @package _global_\n" + json.dumps({"variant": variant, "source": GENERATED})
    write(folder, "data", "mine", text)
    assert "unknown field `variant`" in refused(capsys, ran(folder, "data=mine"))
    assert not (tmp_path / "mark").exists()


def test_special_tokens_of_a_card_are_used_unless_others_are_set(
    folder: Path, capsys: Captured
) -> None:
    write(folder, "data", "mine", {"source": GENERATED, "special_tokens": ["<s>", "</s>"]})
    assert ran(folder, "data=mine", "vocab_size=300") == OK
    assert "42 merges" in capsys.readouterr().out
    assert ran(folder, "data=mine", "vocab_size=300", "special_tokens=[]") == OK
    assert "44 merges" in capsys.readouterr().out
    write(folder, "data", "mine", {"source": GENERATED, "special_tokens": ["a", "a"]})
    assert "an empty or repeated one" in refused(capsys, ran(folder, "data=mine"))


def test_environment_reaches_no_card_and_no_value(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hush")
    cards = {
        "data": {"about": "${oc.env:SECRET}", "source": GENERATED},
        "pattern": '{"regex": "\\u0024{oc.env:SECRET}"}',
        "measure": {"about": "${oc.env:SECRET}"},
        "experiment": {"special_tokens": ["${oc.env:SECRET}"]},
    }
    for group, content in cards.items():
        path = write(folder, group, "mine", content)
        sentence = refused(capsys, ran(folder, f"{group}=mine"))
        assert sentence == f"{path}: ${{ is not replaced in a card; write its value instead"
        path.unlink()

    for key in ("seed", "tie_break", "variant.about", "measure.about"):
        sentence = refused(capsys, ran(folder, f"{key}=${{oc.env:SECRET}}"))
        assert "let the shell do it" in sentence
        assert "hush" not in sentence
    assert ran(folder, "data.path=${oc.env:SECRET}") != OK
    assert "${oc.env:SECRET} not found; ${ is not replaced here" in capsys.readouterr().err
    assert ran(folder, 'data.path="a.txt"') != OK
    assert "its quotes are part of the name here" in capsys.readouterr().err


def test_few_aliases_cannot_become_billions_of_values(folder: Path, capsys: Captured) -> None:
    lines = ["x0: &x0 [a, a, a]"]
    lines += [f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]" for level in range(1, 9)]
    path = write(folder, "data", "mine", "\n".join(lines))
    assert refused(capsys, ran(folder, "data=mine")).startswith(f"{path}: *x0 is an alias; write")
    assert "is an alias" in refused(capsys, gate(["--card", str(path)]))


def test_file_of_your_card_replaces_no_other(folder: Path, cache_folder: Path) -> None:
    source = {**URL, "file": "big.txt"}
    write(folder, "data", "mine", {"source": source})
    registry.use_folder(folder)
    places = [fetched_place(name, "big.txt") for name in ("big_txt", "mine")]
    corpora = cache_folder / "corpora"
    assert places == [corpora / "big.txt", corpora / "yours" / "big.txt"]


# Experiments


@pytest.mark.parametrize(
    "content", Path(__file__).with_name("refused_experiments.txt").read_text().splitlines()
)
def test_experiment_names_no_program_and_no_file(
    folder: Path, capsys: Captured, content: str
) -> None:
    path = write(folder, "experiment", "mine", content)
    assert refused(capsys, ran(folder, "experiment=mine")).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "content",
    [
        {"variant": {"params": {"command": "reboot"}}},
        {
            "hydra": {
                "mode": "MULTIRUN",
                "sweeper": {"params": {"variant.params.command": "reboot"}},
            }
        },
    ],
)
def test_experiment_gives_no_program_to_a_variant_that_runs_one(
    folder: Path, capsys: Captured, book: str, content: dict[str, Any]
) -> None:
    write(folder, "experiment", "mine", content)
    overrides = [book, "experiment=mine", "variant=executable", "vocab_size=260"]
    assert "gives executable a program to run" in refused(capsys, ran(folder, *overrides))
    assert ran(folder, *overrides[:1], *overrides[2:], "variant.params.command=ls") == OK


# A folder of your own


def test_config_dir_adds_cards_of_every_group(folder: Path, capsys: Captured) -> None:
    write(folder, "data", "tiny", {"source": GENERATED, "vocab_size": 260})
    write(folder, "pattern", "letters", {"regex": "[a-z]"})
    write(folder, "measure", "twice", {"repeat": 2})
    write(folder, "variant", "mine", {"name": "mine", "_target_": "variants.naive:train"})
    write(folder, "counting", "slow", {"_target_": "variants.counting.pretokenize:serial"})
    setting = {"defaults": [{"override /data": "tiny"}], "variants": ["naive", "mine"]}
    write(folder, "experiment", "both", {**setting, "vocab_size": 258})

    groups = ["pattern=letters", "measure=twice", "counting=slow"]
    assert ran(folder, "data=tiny", "variant=mine", *groups) == OK
    shown = capsys.readouterr().out
    assert "mine on tiny (" in shown
    assert "2 blocks" in shown
    assert ran(folder, "experiment=both") == OK
    assert "1 merges," in capsys.readouterr().out
    assert run_command.main(["--config-dir", str(folder), "--help", "all"]) == OK
    names = {"tiny", "letters", "twice", "mine", "slow", "both"}
    assert names <= set(re.findall(r"\w+", capsys.readouterr().out))
    assert run_command.main(["plan=true", "data=tiny"]) == USAGE


def test_config_dir_works_for_commands_that_take_data(
    folder: Path, capsys: Captured, tmp_path: Path
) -> None:
    write(folder, "data", "tiny", {"source": GENERATED, "vocab_size": 260})
    add = ["--config-dir", str(folder)]
    for command in (["list"], ["info", "tiny"], ["path", "tiny"], ["verify", "tiny"]):
        assert corpora_command.main([*command, *add]) == OK
        assert "tiny" in capsys.readouterr().out or command[0] == "path"

    saved = str(tmp_path / "saved")
    assert tokenizer.main(["train", "tiny", "--vocab-size", "259", "--save", saved, *add]) == OK
    assert tokenizer.main(["stats", saved, "--data", "tiny", *add]) == OK
    assert replay.main([saved, "--data", "tiny", "vocab_size=259", *add]) == OK


def test_card_of_yours_takes_the_place_of_none(folder: Path, capsys: Captured) -> None:
    heap = write(folder, "variant", "heap", {"name": "heap", "_target_": "evil:train"})
    sentence = refused(capsys, ran(folder, "data=ties"))
    assert sentence == f"{heap}: the harness has a card variant=heap; rename the file"
    heap.unlink()

    tags = ["definition", "compiled", "extends", "frontier", "native"]
    card = {"_target_": "evil:train", "tags": tags}
    for group in ("variant", "counting"):
        write(folder, group, "aaa", {**card, "name": "aaa"})
    registry.use_folder(folder)
    assert registry.definition().__module__ == "variants.naive"
    assert registry.default_counter().name == "native"
    assert list(registry.variants())[-1] == "aaa"


@pytest.mark.parametrize("group", ["variant", "counting"])
def test_code_of_your_cards_runs_only_if_chosen(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, book: str, group: str
) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "their_code.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    write(folder, group, "mine", {"name": "mine", "_target_": "their_code:nonesuch"})
    command = ["--config-dir", str(folder), book, "vocab_size=258", f"results={tmp_path}"]
    assert run_command.main(command) == OK
    assert not mark.exists()
    assert run_command.main([*command, f"{group}=mine"]) != OK
    assert mark.exists()


def test_gate_card_is_a_program(tmp_path: Path) -> None:
    build_base(tmp_path, f"touch {tmp_path / 'mark'}")
    assert (tmp_path / "mark").exists()


def test_data_set_that_is_missing_is_not_fetched_by_a_run(folder: Path, capsys: Captured) -> None:
    write(folder, "data", "mine", {"source": {**INDEX}})
    for name in ("mine", "big_txt"):
        assert ran(folder, f"data={name}") == UNMEASURED
        assert f"get it with python -m harness.corpora fetch {name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("hydra.searchpath=[/x]", "hydra.searchpath: Hydra only composes here"),
        ("hydra.run.dir=/x", "hydra.run.dir: Hydra only composes here"),
        ("hydra/launcher=joblib", "hydra/launcher: Hydra only composes here"),
        ("--config-name=x", "unknown option --config-name=x"),
        ("--info", "unknown option --info"),
        ("-p", "unknown option -p"),
    ],
)
def test_setting_of_hydra_that_does_nothing_is_refused(
    folder: Path, capsys: Captured, argument: str, sentence: str
) -> None:
    assert refused(capsys, ran(folder, argument)).startswith(sentence)


def test_config_dir_without_cards_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert "no folder of cards in it; make one" in refused(capsys, ran(tmp_path / "none"))


# Mutations

ODD: list[Any] = [
    *(None, True, -1, 0, 3.5, float("nan"), 10**30, "", " ", "a b", "../x", "/x", "--log=/x"),
    *("${oc.env:HOME}", "evil:train", "é\u202e", "\x00", "???", "null", "2023-11-01", "~", "*x"),
    *([], {}, [[]], {"": 1}, {"name": "x"}, ["a", 1], [None], "x" * 10_000),
]


def mutated(chance: random.Random, content: dict[str, Any]) -> str:
    """A card with one to three faults in its values or in its text."""
    for _ in range(chance.randint(1, 2)):
        mapping: Any = content
        nested = [value for value in content.values() if isinstance(value, dict) and value]
        if nested and chance.random() < 0.6:
            mapping = chance.choice(nested)
        key = chance.choice(list(mapping) or ["name"])
        fault = chance.randrange(4)
        if fault == 0:
            mapping.pop(key, None)
        elif fault == 1:
            mapping[chance.choice(["defaults", "variant", "hydra", key + "s", "_target_"])] = 1
        else:
            mapping[key] = chance.choice(ODD)

    text = json.dumps(content, indent=chance.choice([None, 1]))
    place = chance.randrange(len(text))
    if chance.random() < 0.3:
        text = text[:place] + chance.choice(["", "{", "\t", "&a ", "*a", ": ", "\n", "[" * 500])
    return text


@pytest.mark.parametrize("seed", first_fast(range(4)))
def test_mutated_card_is_answered_in_one_sentence(
    folder: Path, capsys: Captured, seed: int
) -> None:
    chance = random.Random(seed)
    originals = [
        (group, {**card, "name": "mine"} if group != "experiment" else dict(card))
        for group in registry.KINDS
        for card in registry.cards(group).values()
    ]
    answers = []
    for _ in range(50):
        group, content = chance.choice(originals)
        path = write(folder, group, "mine", mutated(chance, json.loads(json.dumps(content))))
        arguments = ["--config-dir", str(folder), "--cfg", "job", f"{group}=mine"]
        code = run_command.main(arguments)
        sentence = capsys.readouterr().err
        path.unlink()

        assert (code, sentence.count("\n")) in ((OK, 0), (USAGE, 1)), (content, sentence)
        named = (f"{path}", "In 'experiment/mine'")
        assert code == OK or any(text in sentence for text in named), sentence
        answers.append(code)
    assert answers.count(USAGE) > 25
