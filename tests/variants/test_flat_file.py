"""The shortest way from a file to a tokenizer gives what the long way gives."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from rows import rows_beside, write_files
from tokenizers_made import PATTERNS
from workbench import corpus_of

from variants import flat_file, naive, naive_extending
from variants.contract import Corpus, Meter, vocab_of
from variants.counting import native
from variants.counting.pretokenize import serial
from variants.flat_file import train_bpe

TEXT = "It's a test, isn't it?  A test of tests.<|e|>Ein Test, größer als 一二一二.\n\n" * 3


@pytest.mark.parametrize("row", rows_beside(__file__, "flat_file.toml"))
def test_file_becomes_the_vocabulary_of_the_definition_or_is_refused(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"text": row.get("text", TEXT)})
    how = {"input_path": "text", "vocab_size": 280, **row.get("how", {})}
    if "refused" in row:
        with pytest.raises((ValueError, OSError), match=re.escape(row["refused"])):
            train_bpe(**how)
        return

    vocabulary, merges = train_bpe(**how)
    tokens = row["tokens"]
    words = serial(Corpus("text", tuple(tokens), errors=how.get("errors", "strict")))
    assert merges == naive.train(words, how["vocab_size"] - 256 - len(tokens))
    assert vocabulary == vocab_of(merges, tokens)
    assert len(vocabulary) == row.get("size", 280)
    assert tokens or train_bpe("text", 280, None) == (vocabulary, merges)


@pytest.mark.parametrize("threads", [1, 2])
def test_words_that_cannot_be_numbered_are_refused_while_they_are_counted(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_file, "MOST_CELLS", 100_000)
    corpus, meter = corpus_of(tmp_path, " ".join(f"{each:x}" for each in range(400_000))), Meter()
    with pytest.raises(ValueError, match=r"2\*\*32 positions or more.* train on a sample"):
        flat_file.train(corpus, 43, meter, threads=threads)
    assert meter.done < Path(corpus.path).stat().st_size / 2

    few = corpus_of(tmp_path, "ab cd " * 200_000)
    assert len(flat_file.train(few, 43, threads=threads)) == 4


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BUFFER_BYTES", 64), ("SMALLEST_RANGE", 1), ("PART_BYTES", 1)):
        monkeypatch.setattr(native, name, value)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("pattern", "errors"),
    [(PATTERNS["superbpe"], "strict"), (PATTERNS["line"], "replace"), (r"\S+|\s+", "replace")],
)
def test_file_is_extended_by_parts(pattern: str, errors: str, tmp_path: Path) -> None:
    dice, counted = random.Random(0), Meter()
    lines = ["".join(dice.choices("ab: 1é法", k=dice.randint(0, 30))) + "\n" for _ in range(120)]
    text = "".join(lines + lines[:40]).encode() + (b"\xff a\n" if errors == "replace" else b"")
    corpus = corpus_of(tmp_path, text, ("::",), pattern, errors, partial=True)
    words = serial(corpus, counted)
    extending: dict[str, Any] = {"inherited": naive_extending.train(words, 40), "inheriting": "met"}
    expected = naive_extending.train(words, 120, **extending)

    for threads in (1, 3):
        meter = Meter()
        assert flat_file.train(corpus, 120, meter, threads=threads, **extending) == expected
        assert meter.tallies["documents"] == counted.tallies["documents"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("threads", [1, 4])
def test_receiver_of_parts_may_raise_and_meter_stop(tmp_path: Path, threads: int) -> None:
    corpus = corpus_of(tmp_path, "low lower " * 400)
    raising = Mock(take=Mock(side_effect=LookupError("no more")))
    with pytest.raises(LookupError, match="no more"):
        native.in_parts(corpus, raising, threads=threads)

    waiting, impatient = Mock(take=lambda *_: time.sleep(0.15)), Mock(wraps=Meter())
    impatient.progress = Mock(return_value=False)
    with pytest.raises(RuntimeError, match="stopped"):
        native.in_parts(corpus, waiting, impatient, threads=threads)
