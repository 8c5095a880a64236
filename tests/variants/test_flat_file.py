"""The shortest way from a file to a tokenizer gives what the long way gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from variants import flat_file, naive
from variants.contract import Corpus, InvalidText, Meter, vocab_of
from variants.counting.pretokenize import serial
from variants.flat_file import train_bpe

TEXT = "It's a test, isn't it?  A test of tests.<|e|>Ein Test, größer als 一二一二.\n\n" * 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "corpus"
    path.write_text(TEXT)
    return path


def test_a_file_becomes_the_definitions_vocabulary_and_merges(file: Path) -> None:
    for special_tokens, threads in (((), 1), (("<|e|>", "Test"), 3)):
        vocabulary, merges = train_bpe(
            str(file), 280, special_tokens=special_tokens, threads=threads
        )
        assert merges == naive.train(
            serial(Corpus(str(file), special_tokens)), 280 - 256 - len(special_tokens)
        )
        assert vocabulary == vocab_of(merges, special_tokens)
        assert len(vocabulary) == 280
    assert train_bpe(str(file), 280, special_tokens="<|e|>") == train_bpe(
        str(file), 280, special_tokens=("<|e|>",)
    )
    assert train_bpe(str(file), 280, special_tokens=None) == train_bpe(
        str(file), 280, special_tokens=[]
    )
    file.write_text("ab")
    vocabulary, merges = train_bpe(str(file), 1000)
    assert (merges, len(vocabulary)) == ([(b"a", b"b")], 258)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"vocab_size": 256}, "vocab_size=256 is below"),
        ({"special_tokens": ("a", "a")}, "special_tokens holds"),
        ({"special_tokens": [b"<|e|>"]}, "special_tokens are texts"),
        ({"errors": "ignore"}, "neither strict"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    file: Path, keywords: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        train_bpe(str(file), **{"vocab_size": 300, **keywords})


@pytest.mark.parametrize("threads", [1, 2])
def test_words_that_cannot_be_numbered_are_refused_while_they_are_counted(
    file: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (f"{number:x}" for number in range(800_000))
    file.write_text(" ".join(words))
    meter = Meter()
    monkeypatch.setattr(flat_file, "MOST_CELLS", 100_000)
    with pytest.raises(ValueError, match=r"2\*\*32 positions or more.* train on a sample"):
        train_bpe(str(file), 300, threads=threads, meter=meter)
    assert meter.done < file.stat().st_size / 2
    file.write_text("ab cd " * 400_000)
    assert len(train_bpe(str(file), 300, threads=threads)[1]) == 4


def test_a_bad_byte_is_named_and_a_missing_file_too(file: Path) -> None:
    file.write_bytes(b"good \xff bad")
    with pytest.raises(InvalidText, match="invalid UTF-8 at byte 5"):
        train_bpe(str(file), 300)
    vocabulary, _ = train_bpe(str(file), 300, errors="replace")
    assert " \ufffd".encode() in vocabulary.values()
    with pytest.raises(FileNotFoundError):
        train_bpe("nowhere", 300)
