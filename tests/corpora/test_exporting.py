"""Counted words as Parquet: what stands in the file, what is counted for it, and what becomes of a bad place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyarrow import parquet
from test_word_tables import card_of

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.corpora import prepare
from harness.corpora.__main__ import main
from harness.corpora.word_tables import write_parquet
from harness.measure.process import Answer
from harness.runs.words import counted_words
from harness.worker import word_store
from variants.contract import WordCounts


def exported(*arguments: str) -> int:
    return main(["counts", *arguments])


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = tmp_path / "a book.txt"
    path.write_text("low low lower\n<|endoftext|>naïve low")
    return f"data.path={path}"


def words_in(path: Path) -> dict[bytes, int]:
    columns = pd.read_parquet(path)
    return dict(zip(columns["word"], columns["count"], strict=True))


def test_file_holds_each_word_with_its_count(tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "words.parquet"
    assert exported("file", "--set", book, "--parquet", str(file)) == 0
    expected = {b"low": 1, b" low": 2, b" lower": 1, b"\n": 1, "naïve".encode(): 1}
    assert words_in(file) == expected
    schema = parquet.read_schema(file)
    assert [(field.name, str(field.type)) for field in schema] == [("word", "large_binary"), ("count", "uint64")]
    assert capsys.readouterr().out.startswith(f"{file}: 5 words, 6 pre-tokens, sha256 of the counts ")
    frequent = tmp_path / "frequent.parquet"
    assert exported("words", "--set", f"data.path={file}", "--parquet", str(frequent), "--least", "2") == 0
    assert words_in(frequent) == {b" low": 2}
    digest = word_store.digest(WordCounts.from_items([(b" low", 2)]))
    assert capsys.readouterr().out == f"{frequent}: 1 words, 2 pre-tokens, sha256 of the counts {digest}\n"


def test_cached_words_are_not_counted_again(tmp_path: Path, book: str, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ["data=file", book, "counting=serial"]
    first = counted_words(overrides)
    monkeypatch.setattr("harness.runs.blocks.measure", lambda *_: pytest.fail("counted a second time"))
    assert counted_words(overrides) == first
    assert exported("file", "--set", book, "--parquet", str(tmp_path / "p")) == 0


def test_words_that_cannot_be_counted_are_refused(book: str, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ["data=file", book, "counting=serial"]
    counted_words(overrides)

    def failing(_: Any, output: Path, *__: Any) -> Answer:
        output.mkdir(parents=True)
        return {"status": "error", "reason": "counted a second time"}

    monkeypatch.setattr("harness.runs.blocks.measure", failing)
    with pytest.raises(Refusal, match="counted a second time") as refused:
        counted_words([*overrides, "pattern=line"])
    assert refused.value.exit_code == UNMEASURED


def test_written_table_is_read_as_the_same_table(tmp_path: Path) -> None:
    for items in ([(b"\x00\xff", 2**62), (b"low", 1), (b"a" * 70_000, 3)], []):
        counts = WordCounts.from_items(items)
        write_parquet(tmp_path / "p", counts, "digest")
        assert words_in(tmp_path / "p") == dict(items)
        table = prepare(card_of(tmp_path / "p"), [])
        assert list(word_store.read(table.path)[0].items()) == items
        assert table.sha256 == word_store.digest(counts)


def test_unwritable_place_is_refused_and_nothing_is_left(
    tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").mkdir()
    for place, why in ((Path(book.partition("=")[2]) / "p", "File exists"), (tmp_path / "taken", "Is a directory")):
        assert exported("file", "--set", book, "--parquet", str(place)) == UNMEASURED
        assert f"({why}); choose another place" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_several_data_sets_do_not_go_into_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exported("ties,runs", "--set", "hydra.mode=MULTIRUN", "--parquet", str(tmp_path / "p")) == USAGE
    assert "one data set at a time" in capsys.readouterr().err
