"""The counting benchmark measures every counter and a program beside them, interleaved, and refuses what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import counting_benchmark, table
from harness.common import registry
from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE
from harness.runs import store
from harness.runs.record import read_records

TEXT = "It's the same tale<|endoftext|>told  twice, 中文 and 12 "


def corpus(folder: Path, name: str, times: int) -> str:
    (folder / name).write_text(TEXT * times)
    return str(folder / name)


def benchmark(folder: Path, *arguments: str) -> int:
    return counting_benchmark.main([*arguments, "--results", str(folder / "results")])


@pytest.mark.slow
def test_every_counter_and_the_program_run_on_every_corpus_in_every_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpora = [corpus(tmp_path, "one.txt", 50), corpus(tmp_path, "two.txt", 90)]
    assert benchmark(tmp_path, *corpora, "--blocks", "2", "--threads", "1,2") == OK
    records = read_records([tmp_path / "results"])
    cells = [(record["data"]["name"], record["counting"], record["threads"]) for record in records]
    widths = {name: 1 if name == "serial" else 2 for name in registry.counters()}
    wanted = [
        (name, counter, 1 + more)
        for name in ("one.txt", "two.txt")
        for counter in widths
        for more in range(widths[counter])
    ]
    wanted += [("one.txt", "wc -w", 1), ("two.txt", "wc -w", 1)]
    assert sorted(cells) == sorted(wanted * 2)
    assert [record["block"] for record in records] == [0] * len(wanted) + [1] * len(wanted)
    digests = {(record["data"]["name"], record["words_sha256"]) for record in records if record["words_sha256"]}
    assert len(digests) == 2
    printed = capsys.readouterr().out
    assert "times serial" in printed
    assert "times wc -w" in printed
    assert "MB/s" in printed
    assert str(tmp_path) not in (tmp_path / "results" / "records.jsonl").read_text()


def test_a_program_that_is_not_there_is_skipped_and_one_that_fails_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus(tmp_path, "one.txt", 5)
    once = (path, "--blocks", "1", "--counters", "serial")
    assert benchmark(tmp_path, *once, "--beside", "no-such-program -w") == OK
    assert "there is no no-such-program here" in capsys.readouterr().out
    assert benchmark(tmp_path, *once, "--beside", "false") == UNMEASURED
    assert "false ended with 1" in capsys.readouterr().out


def test_counters_that_differ_are_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def others(_: object, counted: Path) -> Path:
        raise store.OtherWords(counted)

    monkeypatch.setattr(store, "keep_words", others)
    assert benchmark(tmp_path, corpus(tmp_path, "one.txt", 5), "--blocks", "1", "--counters", "serial") == MISMATCH
    assert "came to other words than a counter before it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--counters", "serail"), "unknown counting 'serail'; did you mean serial?"),
        (("--blocks", "0"), "repeat=0 is not possible"),
        (("--threads", "0"), "threads=0 is not possible"),
        (("no-such-card",), "no-such-card"),
        (("--set", "patern=gpt2"), "patern"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    corpora = () if arguments == ("no-such-card",) else (corpus(tmp_path, "one.txt", 5),)
    assert benchmark(tmp_path, *corpora, *arguments) == USAGE
    assert said in capsys.readouterr().err


def test_a_table_of_counters_is_relative_to_those_that_are_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = ("--blocks", "1", "--counters", "serial", "--beside", "")
    assert benchmark(tmp_path, corpus(tmp_path, "one.txt", 5), *once) == OK
    results = str(tmp_path / "results")
    assert table.main([results, "--relative-to", "serial"]) == OK
    assert table.main([results, "--relative-to", "wc -w"]) == USAGE
    assert "no time of 'wc -w' to compare with; there are: serial" in capsys.readouterr().err
