"""An A/A study is kept pair by pair, goes on where it was, and says the same whenever it is read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import doctor
from harness.common.comparison import Sample
from harness.common.errors import OK, UNMEASURED, USAGE, Refusal
from harness.measure import lock
from harness.runs.aa import SelfComparison, Twins, usual_beside
from harness.runs.aa_study import BLOCKS, FILE_NAME, SUMMARY_NAME, as_json, carried_out, read_study, summary

HEAD: dict[str, Any] = {
    "schema": 1,
    "kind": "aa",
    "command": "python -m harness.doctor --study 60",
    "started": "2026-11-21T10:00:00+00:00",
    "compared": {
        "variant": "one",
        "threads": 1,
        "data": {"name": "words", "bytes": 600_000, "sha256": "00"},
        "vocab_size": 1000,
    },
    "concurrent": False,
    "host": "9e12c4d0",
    "environment": {"cpu": "a processor", "cores": 2, "kernel": "Linux 6.1", "python": "CPython 3.11.7"},
}
KEPT = sorted((Path(__file__).parent.parent / "results").glob("aa_study*"))


def pair(block: int) -> Twins:
    draw = random.Random(block)
    mood = 0.1 * (1 + draw.random())
    first, second = (
        Sample("aa", block, round(seconds, 6), round(seconds, 6), 1, pressure=0.01, steal=0.0)
        for seconds in (mood * (1 + 0.02 * draw.random()) for _ in range(2))
    )
    return first, second


def carry_out(folder: Path, number: int, head: dict[str, Any] = HEAD, measure: Callable[[int], Twins] = pair) -> int:
    return len(list(carried_out(folder, head, number, measure)))


def test_a_study_is_read_back_as_it_was_measured_and_its_page_is_its_summary(tmp_path: Path) -> None:
    assert carry_out(tmp_path, 60) == 60
    study = read_study(tmp_path / FILE_NAME)
    assert study.pairs == [pair(block) for block in range(60)]
    page = (tmp_path / SUMMARY_NAME).read_text()
    assert page == summary(study)
    assert "`one` against itself: 60 pairs" in page
    assert "| CPU time | 6 | 10 | " in page
    assert "Of 60 blocks 60 were not disturbed." in page
    assert [verdict["comparisons"] for verdict in as_json(study)["verdicts"]] == [60 // blocks for blocks in BLOCKS] * 3


def test_an_interrupted_study_goes_on_and_loses_nothing_even_with_half_a_line(tmp_path: Path) -> None:
    def interrupted(block: int) -> Twins:
        if block == 7:
            raise KeyboardInterrupt
        return pair(block)

    with pytest.raises(KeyboardInterrupt):
        carry_out(tmp_path, 12, measure=interrupted)
    partial = tmp_path / f"{FILE_NAME}.partial"
    with partial.open("a") as file:
        file.write('{"block": 7, "fi')
    assert carry_out(tmp_path, 12, {**HEAD, "started": "2026-11-21T11:00:00+00:00"}) == 5
    study = read_study(tmp_path / FILE_NAME)
    assert study.pairs == [pair(block) for block in range(12)]
    assert not partial.exists()


def test_a_study_of_something_else_is_begun_anew_and_a_finished_one_stays_until_the_next_is(tmp_path: Path) -> None:
    carry_out(tmp_path, 6)
    finished = (tmp_path / FILE_NAME).read_text()

    def interrupted(block: int) -> Twins:
        if block == 2:
            raise KeyboardInterrupt
        return pair(block)

    with pytest.raises(KeyboardInterrupt):
        carry_out(tmp_path, 6, measure=interrupted)
    assert (tmp_path / FILE_NAME).read_text() == finished
    assert carry_out(tmp_path, 6, {**HEAD, "host": "elsewhere"}) == 6


@pytest.mark.parametrize("content", ["", "{}\n", '{"schema": 2, "kind": "aa"}\n', "[1]\n", "no JSON\n"])
def test_what_is_no_study_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(Refusal, match="is no A/A study"):
        read_study(tmp_path / "file")


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_the_page_of_a_kept_study_is_what_its_pairs_say(folder: Path) -> None:
    study = read_study(folder / FILE_NAME)
    assert (folder / SUMMARY_NAME).read_text() == summary(study)
    assert len(study.pairs) >= 300
    assert f"--output results/{folder.name}" in study.head["command"] or folder.name == doctor.STUDY_FOLDER.name


# The command.


def test_a_look_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--no-run"]) == OK
    out = capsys.readouterr().out
    assert "disturb timing (!)" in out
    assert "A/A run" not in out
    assert doctor.main(["--no-run", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told["resolution"] is None
    assert {"load", "processors", "valgrind"} <= {finding["name"] for finding in told["findings"]}


@pytest.mark.slow
def test_an_aa_run_says_what_can_be_told_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfComparison, "pair", lambda _, block, __: pair(block))
    assert doctor.main(["--seconds", "0", "--repeat", "12"]) == OK
    out = capsys.readouterr().out
    assert "A/A run: heap against itself on stdlib, 20 pairs" in out
    assert "With repeat=12 this machine now resolves" in out
    assert doctor.main(["--seconds", "0", "--json", "--set", "data.bytes=100kB"]) == OK
    told = json.loads(capsys.readouterr().out)["resolution"]
    assert told["pairs"] == 20
    assert told["detectable"]["CPU time"]["10"] > 0


@pytest.mark.slow
def test_pairs_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    compared = SelfComparison(["data.bytes=50kB", "vocab_size=300"], tmp_path)
    first, second = compared.pair(3, random.Random(0))
    assert (first.block, first.threads) == (second.block, second.threads) == (3, 1)
    assert first.wall_seconds > 0
    assert first.wall_seconds != second.wall_seconds


def test_a_study_by_the_command_is_kept_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfComparison, "pair", lambda _, block, __: pair(block))
    assert doctor.main(["--study", "12", "--output", str(tmp_path), "--set", "data.bytes=50kB"]) == OK
    assert "12 pairs" in capsys.readouterr().out
    assert doctor.main(["--replay", str(tmp_path / FILE_NAME)]) == OK
    assert capsys.readouterr().out == (tmp_path / SUMMARY_NAME).read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--repeat", "3"], USAGE, "--repeat=3 is not possible; it is a number of 6 or more"),
        (["--seconds", "0", "--set", "variant=nobody"], USAGE, "nobody"),
        (["--seconds", "0", "--set", "variants=all"], USAGE, "an A/A run is of one cell"),
        (["--seconds", "0", "--set", "variant._target_=nowhere:train"], UNMEASURED, "be compared with itself (error"),
        (["--replay", "/nowhere/pairs.jsonl"], USAGE, "python -m harness.doctor --study 300 makes one"),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_sentence(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.main(arguments) == code
    assert said in capsys.readouterr().err


def test_the_usual_gives_way_to_what_was_said() -> None:
    assert usual_beside([]) == ["data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60"]
    assert usual_beside(["data.path=book.txt", "limits.memory=1GB"]) == ["vocab_size=1000"]


def test_an_aa_run_waits_for_no_other_and_is_refused_beside_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfComparison, "pair", lambda _, block, __: pair(block))
    with lock.timing():
        assert doctor.main(["--seconds", "0"]) == UNMEASURED
        assert "another run is being timed on this machine" in capsys.readouterr().err
        arguments = ["--study", "6", "--output", str(tmp_path), "--set", "data.bytes=50kB", "--concurrent"]
        assert doctor.main(arguments) == OK
    assert read_study(tmp_path / FILE_NAME).head["concurrent"] is True
