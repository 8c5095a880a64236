"""extend=, inherited= and veto= on the command line: trained, proved, recorded, saved, replayed,
and refused.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import cases_beside

from harness import replay as replay_command
from harness.__main__ import main
from harness.common import errors
from harness.records.file import read_records
from harness.runs import run
from harness.tokenizer import load
from harness.tokenizers.forms import read_merges_file
from harness.tokenizers.learned import trained
from variants.contract import GPT2_PATTERN

pytestmark = [pytest.mark.usefixtures("measured_once"), pytest.mark.xdist_group("made once")]
TEXT = (
    "of the one: of the two; by the way of the world, and the end: of the day.\nThe way of the one, one two.\n"
    * 9
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[Path]:
    """A folder with a text, a tokenizer of its words in `first`, and one that goes on from it in
    `second`.
    """
    folder = tmp_path_factory.mktemp("extended")
    (folder / "book.txt").write_text(TEXT, encoding="utf-8")
    (folder / "cache").mkdir()
    (folder / "cache" / tables.name).hardlink_to(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        text = ["data.path=book.txt", "measure=proof"]
        assert main([*text, "pattern=superbpe_words", "vocab_size=280", "save=first"]) == errors.OK
        second = [
            "extend=first",
            "pattern=superbpe",
            "veto=superbpe",
            "vocab_size=295",
            "save=second",
        ]
        assert main([*text, "variants=seg_status,naive_extending", *second]) == errors.OK
        yield folder


def test_what_was_extended_is_proved_recorded_and_found_again(made: Path) -> None:
    extended, by_definition = read_records([made / "results/local"])[-2:]
    assert (extended["variant"], extended["identity"]["kind"]) == ("seg_status", "identical")
    assert extended["merges_sha256"] == by_definition["merges_sha256"]
    found = [extended[key] for key in ("extend_name", "extend_merges", "inherited", "veto")]
    assert found == ["first", 23, "kept", "superbpe"]
    assert {"extend=first", "veto=superbpe"} < set(extended["overrides"])


def test_the_old_tokens_keep_their_ids_and_hugging_face_encodes_alike(made: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    old, new = (load(made / folder).learned for folder in ("first", "second/seg_status"))
    assert {number: new.vocab[number] for number in old.vocab} == old.vocab
    assert b" of the" in [token for number, token in new.vocab.items() if number not in old.vocab]
    theirs = tokenizers.Tokenizer.from_file(str(made / "second/seg_status/tokenizer.json"))
    for text in (TEXT, "by the way: of the 12345 worlds  and\r\n\r\nmore!!\n", "x"):
        assert theirs.encode(text, add_special_tokens=False).ids == load(
            made / "second/seg_status"
        ).encode(text)


def test_ids_of_a_tokenizer_that_is_numbered_otherwise_stay(made: Path, tmp_path: Path) -> None:
    """Special tokens behind the merges, as GPT-2 has them."""
    ours = json.loads((made / "first/tokenizer.json").read_text(encoding="utf-8"))
    vocab = ours["model"]["vocab"]
    special = vocab.pop("<|endoftext|>", None) or ours["added_tokens"][0]["id"]
    vocab = {spelling: number - (number > special) for spelling, number in vocab.items()}
    ours["added_tokens"][0]["id"] = len(vocab)
    ours["model"]["vocab"] = {**vocab, "<|endoftext|>": len(vocab)}
    (tmp_path / "tokenizer.json").write_text(json.dumps(ours), encoding="utf-8")
    places = [f"extend={tmp_path}", f"save={tmp_path / 'new'}"]
    assert (
        main(["variant=flat", "data.path=book.txt", "pattern=superbpe", "vocab_size=300", *places])
        == errors.OK
    )
    saved = load(tmp_path / "new").learned
    assert saved.special_tokens == {"<|endoftext|>": len(vocab)}
    assert [number for number, token in saved.vocab.items() if token == b" t"] == [vocab["Ġt"]]
    assert sorted(saved.vocab) == list(range(300))


@pytest.mark.parametrize(("overrides", "sentence"), cases_beside(__file__, "not_extended.txt"))
def test_what_cannot_be_extended_is_refused_with_a_sentence(
    made: Path, overrides: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (made / "wrong.txt").write_text("ab c\na b\n", encoding="utf-8")
    is_file = overrides.startswith("seeds=") and "[" not in overrides
    code = main(["data.path=book.txt", "measure=proof", *shlex.split(overrides)])
    assert code == (errors.UNMEASURED if is_file else errors.USAGE)
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1


def test_seeds_and_protected_tokens_are_recorded_and_found_again(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made / "seeds").write_text('" the"\n"\\n"\n" of"\n', encoding="utf-8")
    extension = [
        "seeds=seeds",
        "protected=[' the',o]",
        "veto=[whole_characters,bytes:6]",
        "vocab_size=285",
    ]
    overrides = [
        "variants=naive_extending,flat_file",
        "data.path=book.txt",
        "measure=proof",
        *extension,
        "save=seeded",
    ]
    assert main(overrides) == errors.OK
    by_definition, flat = read_records([made / "results/local"])[-2:]
    assert by_definition["merges_sha256"] == flat["merges_sha256"]
    assert flat["identity"]["kind"] == "identical"
    veto = "[whole_characters,bytes:6,protected:20746865.6f]"
    assert (flat["seeds"], flat["extend_merges"], flat["veto"]) == ("seeds", 5, veto)
    assert set(extension) < set(flat["overrides"])
    merges = read_merges_file(made / "seeded/flat_file").merges
    assert {b" the", b" of"} < {left + right for left, right in merges[:5]}
    assert not [
        merge for merge in merges[5:] if {b" the", b"o"} & set(merge) or len(b"".join(merge)) > 6
    ]
    monkeypatch.chdir(made)
    replayed = [str(made / "seeded/flat_file"), "data.path=book.txt", *extension]
    assert replay_command.main(replayed) == errors.OK
    assert replay_command.main([*replayed, "veto=bytes:2"]) == errors.MISMATCH


def test_a_list_is_replayed_with_what_it_inherited(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [
        str(made / "second/seg_status"),
        "data.path=book.txt",
        "pattern=superbpe",
        "extend=first",
        "vocab_size=295",
    ]
    assert replay_command.main([*args, "veto=superbpe"]) == errors.OK
    assert "       23  inherited" in capsys.readouterr().out
    assert replay_command.main([*args, "veto=bytes:4"]) == errors.MISMATCH
    assert "vetoed, or spelling an inherited token again" in capsys.readouterr().out


def test_merges_that_are_not_all_there_are_not_saved_under_old_ids(made: Path) -> None:
    old = load(made / "first").learned
    merges = read_merges_file(made / "first").merges[:-1]
    with pytest.raises(
        errors.Refusal, match="does not start with the merges of the extended tokenizer"
    ):
        trained(merges, ["<|endoftext|>"], GPT2_PATTERN, old)


# ---- two stages in one command


TWO_STAGES = ["experiment=superbpe", "data.path=book.txt", "measure=proof"]


@pytest.mark.usefixtures("made")
def test_one_command_trains_both_stages_also_after_an_interruption_and_shows_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    overrides = [
        "vocab_size=300",
        "first_stage.vocab_size=275",
        f"results={tmp_path}",
        f"save={tmp_path / 'saved'}",
    ]
    stages, run_plan = itertools.count(), run.run_plan

    def interrupted(*arguments: Any) -> int:
        if next(stages):
            raise KeyboardInterrupt
        return run_plan(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(run, "run_plan", interrupted)
        assert main([*TWO_STAGES, *overrides]) == errors.INTERRUPTED
    assert main([*TWO_STAGES, *overrides]) == errors.OK
    *_, first, second = (each for each in read_records([tmp_path]) if each["cell"] == "train")
    keys = ("pattern", "vocab_size", "extend", "inherited", "veto")
    assert [first[key] for key in keys] == ["superbpe_words", 275, None, None, None]
    assert [second[key] for key in keys] == [
        "superbpe",
        300,
        first["merges_sha256"],
        "met",
        "superbpe",
    ]
    assert {first["identity"]["kind"], second["identity"]["kind"]} == {"identical"}
    assert first["tokens"] > second["tokens"]
    shown = capsys.readouterr().out
    assert ("bytes/token" in shown, shown.count("flat") >= 2) == (True, True)
    before = read_merges_file(tmp_path / "saved/first_stage").merges
    assert len(read_merges_file(tmp_path / "saved").merges) > len(before) == 18


def test_a_first_stage_that_fails_is_shown_and_there_is_no_second(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (made / "failing.py").write_text(
        "def train(word_counts, num_merges):\n    raise ValueError('cannot')\n"
    )
    monkeypatch.syspath_prepend(str(made))
    monkeypatch.setenv("PYTHONPATH", str(made))
    overrides = ["variant._target_=failing:train", "vocab_size=1000", f"results={tmp_path}"]
    assert main([*TWO_STAGES, *overrides]) == errors.UNMEASURED
    assert "the first stage failed; the second was skipped" in capsys.readouterr().out
    (first,) = (record for record in read_records([tmp_path]) if record["cell"] == "train")
    assert first["vocab_size"] == 500  # half of the whole, as nothing else was wanted
