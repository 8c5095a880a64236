"""Generated sets are the same bytes everywhere, made once; tables of words are read exactly."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fetched import prepared
from pyarrow import parquet
from workbench import first_fast

from harness.common import registry
from harness.corpora import CorpusFile, random_text
from harness.worker import exchange
from variants.contract import Corpus
from variants.counting.pretokenize import serial

CARDS = {name: card for name, card in registry.cards("data").items() if "seed" in card["source"]}
SLOW = ["zipf_owt", "random_text"]
LARGEST = 2**63 - 1


def generated(name: str, **source: Any) -> CorpusFile:
    return prepared(None, (), name, source={**CARDS[name]["source"], **source})


@pytest.mark.parametrize("name", first_fast(sorted(CARDS, key=SLOW.__contains__), len(CARDS) - 2))
def test_generator_makes_what_its_card_describes(name: str) -> None:
    facts = CARDS[name]["facts"]
    made = prepared(None, of=name)  # which is refused if its bytes are not the card's
    assert (made.sha256, made.bytes) == (facts["sha256"], facts["bytes"])
    words = exchange.read_words(made.path)[0] if made.table else serial(Corpus(str(made.path)))
    assert (len(words), sum(words.values())) == (facts["words"], facts["pre_tokens"])


@pytest.mark.parametrize("size", [1, 50, 1_200_000])
def test_random_text_has_its_alphabet_and_lengths(size: int) -> None:
    weights = {"letter_weights": [3, 0, 1], "length_weights": [1, 0, 2]}
    corpus = generated("random_text", bytes=size, alphabet="aé日", document=5, **weights)
    assert size - 60 < corpus.bytes <= size
    word = "(?: [a日]| [a日]{3})"
    documents = rf"({word}{{5}}<\|endoftext\|>)*{word}{{,5}}"
    assert re.fullmatch(documents, corpus.path.read_text())


def test_tables_of_several_blocks_have_different_words() -> None:
    table = exchange.read_words(generated("zipf_tinystories", words=70_000).path)[0]
    assert len(set(table)) == 70_000


@pytest.mark.parametrize("name", ["ties", "zipf_tinystories"])
def test_set_is_made_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generated(name)
    monkeypatch.setattr(random_text, "GENERATORS", {})
    assert generated(name) == first


@pytest.mark.parametrize("number", [0, 6])
def test_table_is_the_sum_of_its_rows(tmp_path: Path, number: int) -> None:
    words = [b"\0\0", b"\0", b"\xff", b"low" * 40, b"\0\0", b"\xff"][:number]
    counts = [0, 1, LARGEST - 4, 2, 1, 4][:number]
    table = {"count": pa.array(counts, pa.uint64()), "word": pa.array(words, pa.binary())}
    parquet.write_table(pa.table(table), tmp_path / "table", row_group_size=3)
    expected = Counter[bytes]()
    for word, count in zip(words, counts, strict=True):
        expected[word] += count

    found, manifest = exchange.read_words(prepared(tmp_path / "table", (), "words").path)
    assert dict(found) == expected
    assert manifest["pre_tokens"] == expected.total()
