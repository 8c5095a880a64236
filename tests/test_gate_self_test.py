"""The gate's self-test: its streams and windows, what it plants, that it goes on, and the page that it writes."""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from stored_tables import filled
from workbench import CHECKOUT, wait_until

from harness.common.comparison import Sample
from harness.common.errors import Refusal
from harness.gate import __main__ as gate
from harness.gate import background, self_test
from harness.gate.card import StageSaid, TimeSaid, card_of
from harness.gate.failures import read_failures
from harness.gate.planted import corrupted, units
from harness.gate.rule import PASS, REGRESSION
from harness.gate.self_test_page import detectable, page
from harness.gate.stream import AGAIN, BASE, SAME, Kind, Stream, planted_name, read_stream
from harness.runs.aa import Block
from variants.contract import Meter, WordCounts

RULE = TimeSaid(triage=StageSaid(6, 0.015), confirm=StageSaid(9, 0.025), fewest=6)
HEAD = {"schema": 1, "kind": "gate_self_test", "condition": "quiet", "kernel": {}, "host": "h", "python": "p"}
WORDS = WordCounts.from_items([(b"the", 5), (b"then", 3), (b"hen", 2)])


def block(number: int, **shares: float) -> Block:
    """A block in which base takes a second and each program its share more."""
    return {
        name: Sample("gate_self_test", number, 1.0 + share, 1.0 + share, 1, 0.0)
        for name, share in {BASE: 0.0, **shares}.items()
    }


# Windows


def test_runs_of_a_kind_share_no_block_and_confirm_with_fresh_ones() -> None:
    blocks = [block(number, same=0.1 if number < 6 else 0.0) for number in range(40)]
    kind = Kind(SAME, 0.0, 10, RULE)
    kind.advance(blocks[:6])
    assert (kind.states, kind.used) == ([], 0)  # looks slower, and waits for nine more
    kind.advance(blocks[6:15])
    assert (kind.states, kind.used, kind.escalated) == ([PASS], 15, 1)
    kind.advance(blocks[15:])
    assert (kind.states, kind.used) == ([PASS] * 5, 39)


def test_a_kind_stops_at_the_runs_that_are_wanted() -> None:
    kind = Kind(SAME, 0.0, 2, RULE)
    kind.advance([block(number, same=0.0) for number in range(60)])
    assert kind.finished
    assert (kind.used, kind.blocks_left) == (12, 0.0)


def test_a_kind_of_which_more_is_wanted_goes_on_with_the_blocks_that_it_is_in() -> None:
    """As after --quick: a kind that is flagged takes more blocks, in which one that had its runs is missing."""
    blocks = [block(number, same=0.0) for number in range(8)]
    blocks += [block(number, **{"+5%": 0.05}) for number in range(8, 20)]
    blocks += [block(number, same=0.0) for number in range(20, 25)]
    kind = Kind(SAME, 0.0, 3, RULE)
    kind.advance(blocks)
    assert (kind.states, kind.used, kind.blocks_left) == ([PASS] * 2, 12, 5.0)
    kind.advance(block(number, same=0.0) for number in range(25, 30))
    assert kind.finished


def test_every_planted_run_is_told_where_nothing_is_in_doubt() -> None:
    kind = Kind("+5%", 0.05, 3, RULE)
    kind.advance([block(number, **{"+5%": 0.05}) for number in range(45)])
    assert kind.states == [REGRESSION] * 3


def test_the_smallest_slow_down_that_is_caught_is_the_threshold_where_there_is_no_noise() -> None:
    card = card_of("usual", ["time.triage.blocks=6", "time.confirm.blocks=9", "time.fewest=6"])
    blocks = [block(number, same=0.0) for number in range(15 * 25)]
    smallest, windows = detectable(card, blocks)
    assert windows == 25
    assert smallest == pytest.approx(0.0275)
    assert detectable(card, blocks[: 15 * 3]) == (None, 3)


# Streams


def test_a_stream_goes_on_where_it_was_and_leaves_out_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "quiet.jsonl"
    first = Stream(path, HEAD)
    first.file.add(block(0, same=0.0, again=0.01))
    first.file.add(block(1, same=0.25))
    first.file.close()
    with path.open("a") as file:
        file.write('{"block":2,"base":[1.0')
    again = Stream(path, {**HEAD, "started": "later"})
    assert again.blocks == first.blocks
    again.file.add(block(2, same=0.0))
    again.file.close()
    _, blocks = read_stream(path)
    assert [each[BASE].block for each in blocks] == [0, 1, 2]
    assert AGAIN in blocks[0]
    assert blocks[1][SAME].cpu_seconds == 1.25


def test_a_stream_of_something_else_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "quiet.jsonl"
    Stream(path, HEAD).file.close()
    before = path.read_bytes()
    with pytest.raises(Refusal, match="another program, machine or condition"):
        Stream(path, {**HEAD, "host": "another"})
    assert path.read_bytes() == before
    path.write_text("something of the user's\n")
    with pytest.raises(Refusal, match="no stream of a self-test"):
        Stream(path, HEAD)


def test_failures_go_on_where_they_were_and_are_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "failures.jsonl"
    assert read_failures(path) == {}
    path.write_text('{"fault": "a crash", "exit_code": 22}\n{"fault": "a cra')
    assert read_failures(path) == {"a crash": [22]}
    path.write_text('{"fault": "a crash", "exit_code": 22}\n{"fault": "a cra{"fault": "a hang", "exit_code": 22}\n')
    with pytest.raises(Refusal, match="no list of a self-test's failures"):
        read_failures(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 1, "kind": "gate_self_test"}'])
def test_a_broken_self_test_is_answered_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "self_test.json").write_text(content)
    assert gate.main(["--replay", str(tmp_path)]) == 22
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


# What is planted


def test_the_share_that_is_planted_is_exactly_that_by_every_count() -> None:
    counted = {}
    for number in (100, 101, 102, 105):
        meter = Meter()
        units(WORDS, 3, meter, target="variants.heap:train", units=number)
        counted[number] = meter.tallies
    assert counted[100]
    for number, tallies in counted.items():
        assert {name: 100 * count for name, count in tallies.items()} == {
            name: number * count for name, count in counted[100].items()
        }


@pytest.mark.parametrize("place", range(5))
def test_a_corrupted_merge_is_a_wrong_one(place: int) -> None:
    right = units(WORDS, 4, target="variants.heap:train", units=1)
    wrong = corrupted(WORDS, 4, target="variants.heap:train", place=place)
    assert wrong != right
    assert sorted(wrong) == sorted(right)


def test_background_load_comes_and_goes_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **keywords: Any) -> Any:
        started.append(popen(*arguments, **keywords))
        return started[-1]

    monkeypatch.setattr(background, "SECONDS", 0.01)
    monkeypatch.setattr(subprocess, "Popen", noted)
    with background.background_load(seed=1):
        wait_until(lambda: len(started) >= 3, "three processes that compute")
    assert [process.poll() for process in started].count(None) == 0


# The command, with a kernel that takes no time


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A self-test of a few tiny runs, under thresholds that no machine is too busy for."""
    path = tmp_path / "small.yaml"
    runs = {"same": 2, "planted": 1, "wrong": 1, "failing": 1}
    said = {
        "like": "usual",
        "self_test": {"units": 100, "planted": [0.05], "runs": runs, "quick": {**runs, "same": 1}},
        "time": {
            "triage": {"blocks": 2, "most": 0.99},
            "confirm": {"blocks": 2, "most": 0.99},
            "fewest": 1,
            "must_see": 0.99,
        },
    }
    path.write_text(yaml.safe_dump(said))
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_self_test_is_made_in_portions_and_shown_from_its_files(
    small: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--self-test", "--card", str(small), "--output", str(output)]
    gate.main([*command, "--only", "quiet", "--limit", "0s"])
    assert len(lines(output / "quiet.jsonl")) == 1
    gate.main([*command, "--only", "quiet"])
    measured = lines(output / "quiet.jsonl")
    assert measured[0]["kernel"]["units"]["+5%"] == 105
    assert len(measured) > 1
    with (output / "failures.jsonl").open("w") as file:
        file.write('{"fault": "a cra')  # what a full disk leaves
    gate.main([*command, "--only", "quiet,failures"])
    assert lines(output / "quiet.jsonl") == measured  # nothing was missing
    codes = {each["fault"]: each["exit_code"] for each in lines(output / "failures.jsonl")}
    assert sorted(codes.values()) == [21, 21, 22, 22, 22]
    capsys.readouterr()
    assert gate.main(["--replay", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "| a corrupted merge (exit code 21) | 1 | 1 | 100 %" in shown
    assert "Not all runs that are wanted have been made" in shown  # none under load
    assert gate.main(["--replay", str(output), "--set", "time.triage.most=0.5"]) == 0
    assert "of them: 2 blocks, slower by over 50 %, then 2 others" in capsys.readouterr().out
    (output / "quiet.jsonl").write_text(json.dumps({**measured[0], "host": "another"}) + "\n")
    assert gate.main([*command, "--only", "quiet"]) == 22


def test_a_page_says_honestly_what_was_missed(tmp_path: Path) -> None:
    card = card_of("usual", ["time.triage.blocks=6", "time.confirm.blocks=9", "time.fewest=6"])
    head = {
        "card": asdict(card),
        "kernel": {"variant": "mine", "units": {BASE: 100, "+5%": 105}},
        "environment": {"cpu": "c", "cores": 2, "kernel": "k", "python": "p"},
        "runs": {"same": 20, "planted": 20},
        "started": "2026-01-01T00:00:00",
        "concurrent": True,
    }
    stream = Stream(tmp_path / "quiet.jsonl", HEAD)
    chance = random.Random(1)
    for number in range(20 * 15):
        shares = {SAME: 0.1, **{planted_name(share): chance.gauss(share, 0.001) for share in (0.01, 0.02, 0.05)}}
        stream.file.add(block(number, **shares))
    stream.file.close()
    said = page(tmp_path, head)
    assert "| nothing beside it | A/A | 20 | 20 | 100 % (83 % to 100 %) | 0 | 20 |" in said
    assert "| nothing beside it | +5 % planted | 20 | 20 |" in said
    assert "| nothing beside it | +1 % planted | 20 | 0 | 0 % (0 % to 17 %) | 0 | 0 |" in said
    assert "Not as aimed at: quiet same." in said
    assert "Other runs were measured beside it." in said


@pytest.mark.slow
def test_the_page_about_the_gate_shows_what_the_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tests/test_readme.py says of the page beside the records."""
    monkeypatch.chdir(CHECKOUT)
    page_text = Path("docs/how-to/gate.md").read_text()
    assert "<!-- BEGIN self_test: python -m harness.gate --replay results/gate_self_test -->" in page_text
    assert filled(page_text) == page_text


@pytest.mark.parametrize(("said", "seconds"), [("90s", 90), ("20 min", 1200), ("2h", 7200), ("0.5h", 1800)])
def test_a_duration_is_written_as_people_do(said: str, seconds: float) -> None:
    assert self_test.seconds_of(said) == seconds


@pytest.mark.slow
def test_the_plan_says_how_much_is_left(small: Path, output: Path, tmp_path: Path) -> None:
    test = self_test.SelfTest(card_of(str(small)), output, tmp_path / "folder", quick=True, concurrent=True)
    said = test.plan(["quiet", "failures"])
    assert re.search(r"quiet: 0 of 1 same, 0 of 1 \+5% made; [\d,]+ samples to go", said[1])
    assert said[2] == "failures: 5 runs to make"


def test_arguments_that_a_self_test_needs_are_there() -> None:
    asked = gate._parser().parse_args(["--self-test", "--quick", "--limit", "1h", "--only", "busy"])
    assert isinstance(asked, argparse.Namespace)
    assert (asked.self_test, asked.quick, asked.limit, asked.only) == (True, True, "1h", "busy")
