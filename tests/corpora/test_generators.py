"""Generated sets: the same bytes everywhere, made once; tables of words, read exactly or refused;
words as Parquet.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from exploring import examples
from fetched import prepared, refusal
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from pyarrow import parquet
from workbench import cells

from harness import run
from harness.common import registry
from harness.common.errors import Refusal
from harness.corpora import CorpusFile, generators
from harness.corpora.__main__ import main
from harness.corpora.language import zipf_counts
from harness.worker import exchange
from variants.contract import Corpus, WordCounts
from variants.counting.pretokenize import serial

CARDS = {
    name: card
    for name, card in registry.cards("data").items()
    if card["source"]["kind"] == "generator"
}
SLOW = ["zipf_owt", "random_text"]
pytestmark = pytest.mark.usefixtures("measured_once")


def generated(name: str, **source: Any) -> CorpusFile:
    return prepared(None, (), name, source={**CARDS[name]["source"], **source})


@pytest.mark.parametrize(
    "name",
    sorted(CARDS.keys() - {*SLOW}) + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW],
)
def test_generator_makes_what_its_card_describes(name: str) -> None:
    made = prepared(None, of=name)
    facts = CARDS[name]["facts"]
    assert (made.sha256, made.bytes) == (facts["sha256"], facts["bytes"])
    assert made.parameters == {
        key: value for key, value in CARDS[name]["source"].items() if key != "kind"
    }
    if made.table:
        manifest = exchange.read_words(made.path)[1]
        assert (manifest["words"], manifest["pre_tokens"]) == (facts["words"], facts["pre_tokens"])
    else:
        counts = serial(Corpus(str(made.path)))
        assert (len(counts), sum(counts.values())) == (facts["words"], facts["pre_tokens"])


@given(st.integers(1, 400), st.sampled_from([1, 2, 4, 16]), st.integers(1, 48), st.integers(0, 20))
@examples(60)
def test_counts_are_the_law_rounded_down(
    words: int, denominator: int, above: int, shift: int
) -> None:
    numerator = min(denominator + above, 4 * denominator)
    counts = zipf_counts(words, numerator, denominator, shift).tolist()
    assert len(counts) == words
    for rank, count in enumerate(counts, 1):
        power = Fraction(words + shift, rank + shift) ** numerator
        assert count**denominator <= power < (count + 1) ** denominator


@pytest.mark.parametrize("size", [1, 50, 1_200_000])
def test_random_text_has_its_alphabet_and_lengths(size: int) -> None:
    how = {
        "alphabet": "aé日",
        "letter_weights": [3, 0, 1],
        "length_weights": [1, 0, 2],
        "document": 5,
    }
    made = generated("random_text", bytes=size, **how).path.read_bytes()
    assert size - 60 < len(made) <= size
    documents = [document.split(" ")[1:] for document in made.decode().split("<|endoftext|>")]
    assert {len(document) for document in documents[:-1]} <= {5}
    assert all(re.fullmatch("[a日]|[a日]{3}", word) for document in documents for word in document)


def test_tables_of_several_blocks_have_different_words() -> None:
    words = exchange.read_words(generated("zipf_tinystories", words=70_000).path)[0]
    assert len(set(words)) == 70_000
    assert len(serial(Corpus(str(generated("no_repeats", words=70_000).path)))) == 70_000


@pytest.mark.parametrize("name", ["ties", "zipf_tinystories"])
def test_set_is_made_once_and_again_if_damaged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generated(name)
    with monkeypatch.context() as patch:
        patch.setattr(generators, "made", lambda _: pytest.fail("made a second time"))
        assert generated(name) == first
    file = first.path / "data" if first.table else first.path
    content = file.read_bytes()
    file.write_bytes(bytes((content[0] ^ 1,)) + content[1:])
    if not first.table:  # tables of words are made again by themselves
        with pytest.raises(
            Refusal, match=f"{file} has sha256 .*; it is another file or damaged; remove it"
        ):
            generated(name)
        file.unlink()
    assert generated(name).sha256 == CARDS[name]["facts"]["sha256"]
    assert file.read_bytes() == content


Items = list[tuple[bytes, int]]
LARGEST = 2**63 - 1
BYTES, NUMBERS = pa.binary(), pa.int64()


def as_parquet(
    path: Path, items: Items, word: pa.DataType = BYTES, count: pa.DataType = NUMBERS
) -> Path:
    words = pa.array([word for word, _ in items], pa.binary()).cast(word)
    counts = pa.array([count for _, count in items], count)
    parquet.write_table(pa.table({"count": counts, "word": words}), path, row_group_size=3)
    return path


def table(path: Path, **further: Any) -> CorpusFile:
    return prepared(path, (), "words", **further)


tables = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=3) | st.sampled_from([b"\x00", b"\xff", b"low" * 40]),
        st.integers(0, 9),
    ),
    max_size=12,
)


@given(tables, st.sampled_from([pa.binary(), pa.large_binary()]))
@example([(b"\x00\x00", 0), (b"\x00", 1), (b"\x00\x00", 1)], pa.binary())
@example([(b"ab", LARGEST - 4), (b"cde", 2), (b"x", LARGEST)], pa.large_binary())
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_table_is_the_sum_of_its_rows(tmp_path: Path, items: Items, form: pa.DataType) -> None:
    expected = WordCounts.from_items(items)
    found, manifest = exchange.read_words(
        table(as_parquet(tmp_path / "table", items, form, pa.uint64())).path
    )
    assert list(found.items()) == list(expected.items())
    assert manifest["pre_tokens"] == sum(expected.values())


def test_files_of_a_folder_are_one_table(tmp_path: Path) -> None:
    """As Spark writes them."""
    (tmp_path / "words").mkdir()
    as_parquet(
        tmp_path / "words" / "part-0.parquet",
        [("naïve".encode(), 5), (b" x", 0)],
        pa.string(),
        pa.int8(),
    )
    as_parquet(
        tmp_path / "words" / "part-1.parquet",
        [("naïve".encode(), 2)],
        pa.large_string(),
        pa.uint64(),
    )
    for path in ("words", "words/*.parquet"):
        assert dict(exchange.read_words(table(tmp_path / path).path)[0]) == {"naïve".encode(): 7}


@pytest.mark.parametrize(
    ("words", "counts", "message"),
    [
        ([b"a", b"b"], [1, -3], ": word b'b' has the negative count -3; counts are 1 or more"),
        ([b"ab", b"cd"], [LARGEST, 1], f"hold {LARGEST + 1} adjacent positions by weight"),
        ([b"a", None], [1, 2], " has a word or count that is NULL"),
        ([b"a"], pa.array([2**63], pa.uint64()), " is not a table of words (Integer"),
        ([1], [1], " is not a table of words (Unsupported cast from int64"),
        (
            [b"a"],
            None,
            "; it needs Parquet with the columns word (binary or text) and count (whole numbers)",
        ),
        (None, None, " is not a table of words (Parquet"),
    ],
)
def test_invalid_table_is_refused(tmp_path: Path, words: Any, counts: Any, message: str) -> None:
    path = tmp_path / "t"
    columns = {"word": words, "count": counts}
    parquet.write_table(
        pa.table({name: column for name, column in columns.items() if column is not None}), path
    )
    if words is None:
        path.write_text("no table but a text\n")
    sentence = refusal(path, (), of="words")
    assert sentence.startswith(str(path))
    assert message in sentence


def test_cards_of_tables_are_checked(tmp_path: Path) -> None:
    path = as_parquet(tmp_path / "t", [(b"low", 1)])
    with pytest.raises(Refusal, match=r"not a text that data\.bytes can cut"):
        table(path, bytes=1)
    with pytest.raises(Refusal, match="its table has words 1, its card says 2"):
        table(path, facts={"words": 2})
    with pytest.raises(
        Refusal, match=r"data=words needs data\.path=FILE, a table of words with their counts"
    ):
        cells("data=words")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return as_parquet(
        tmp_path / "my words", [(b"low", 5), (b"lower", 2), (b"widest", 3), (b"newest", 6)]
    )


def test_a_table_is_trained_on_without_counting(path: Path, tmp_path: Path) -> None:
    records = run(
        "data=words",
        f"data.path={path}",
        "variants=[heap,naive]",
        "vocab_size=263",
        f"results={tmp_path}/r",
    )
    assert [record["cell"] for record in records] == ["train", "train"]
    for record in records:
        assert (record["status"], record["identity"]["kind"], record["merges"]) == (
            "ok",
            "identical",
            6,
        )
        assert (record["counting"], record["pattern"], record["errors"]) == ("given", None, None)
        assert (record["data"]["name"], record["data"]["words"], record["data"]["pre_tokens"]) == (
            "my words",
            4,
            16,
        )
        assert (record["seconds"]["read"], record["seconds"]["count"]) == (None, None)


def test_record_names_the_parameters_of_a_generator(tmp_path: Path) -> None:
    overrides = ["data=ties", "data.source.letters=3", "vocab_size=270", f"results={tmp_path}/r"]
    (record,) = run(*overrides)
    generated = {"generator": "ties", "seed": 1, "letters": 3}
    assert (record["data"]["name"], record["data"]["generated"]) == ("ties(letters=3)", generated)


def test_overrides_without_effect_are_refused(path: Path) -> None:
    for override in (
        "counting=serial",
        "counting.params.x=1",
        "errors=replace",
        "pattern=line",
        "pattern.regex=.+",
    ):
        with pytest.raises(
            Refusal, match=f"a table of words, .*; leave out {override.partition('=')[0]}"
        ):
            cells("data=words", f"data.path={path}", override)


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = tmp_path / "a book.txt"
    path.write_text("low low lower\n<|endoftext|>naïve low")
    return f"data.path={path}"


def words_in(path: Path) -> dict[bytes, int]:
    columns = pd.read_parquet(path)
    return dict(zip(columns["word"], columns["count"], strict=True))


def test_exported_file_has_words_and_counts(
    tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, frequent = tmp_path / "words.parquet", tmp_path / "frequent.parquet"
    assert main(["counts", "file", "--set", book, "--parquet", str(file)]) == 0
    assert words_in(file) == {b"low": 1, b" low": 2, b" lower": 1, b"\n": 1, "naïve".encode(): 1}
    schema = parquet.read_schema(file)
    assert [(field.name, str(field.type)) for field in schema] == [
        ("word", "large_binary"),
        ("count", "uint64"),
    ]
    assert capsys.readouterr().out.startswith(
        f"{file}: 5 words, 6 pre-tokens, sha256 of the counts "
    )
    command = ["counts", "words", "--set", f"data.path={file}", "--min-count", "2"]
    assert main([*command, "--parquet", str(frequent)]) == 0
    assert words_in(frequent) == {b" low": 2}
    (of_text,) = run(book, "vocab_size=260", f"results={tmp_path}/r")
    (of_table,) = run("data=words", f"data.path={file}", "vocab_size=260", f"results={tmp_path}/r")
    assert of_table["data"]["pre_tokens"] == of_text["data"]["pre_tokens"]
    assert of_table["merges_sha256"] == of_text["merges_sha256"]
