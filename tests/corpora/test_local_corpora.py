"""What data.path names: files, folders, patterns, standard input, compressed files, columns; all as
one plain file.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from exploring import examples
from fetched import END, PACK, prepared, refusal
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet

from harness.corpora import local
from harness.corpora.texts import documents
from variants.contract import Corpus, InvalidText, Meter
from variants.counting.pretokenize import serial

LONG = "".join(f"word{number} 二{number * 7919 % 1000}\n" for number in range(5_000)).encode()


def text_of(path: Any, **further: Any) -> str:
    return prepared(path, **further).path.read_bytes().decode()


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts, and the folder above it as the current one."""
    folder = tmp_path / "texts"
    for name in ("b.txt", "a.txt", "deep/er/c.txt", "deep/d.md", ".hidden.txt", ".hidden/e.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(Path(name).stem)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("path", ["texts/a.*", "[texts/a.txt]", "texts/a.txt", ["texts/a.txt"]])
def test_single_plain_file_is_used_in_place(path: Any) -> None:
    corpus = prepared(path, ())
    assert (corpus.path, corpus.name, corpus.parts) == (Path("texts/a.txt"), "a.txt", ())


def test_special_files_are_skipped_in_folders_and_refused_in_lists(texts: Path) -> None:
    os.mkfifo(texts / "pipe")
    (texts / "lost").symlink_to("nowhere")
    (texts / "circle").symlink_to(".")
    (texts / "z.txt").symlink_to("a.txt")
    assert text_of("texts") == f"a{END}b{END}d{END}c{END}a{END}"
    assert "pipe it into data.path=-" in refusal("[texts/a.txt,texts/pipe]")
    assert "texts/lost not found" in refusal("[texts/a.txt,texts/lost]")


def test_corpus_is_made_once_and_again_when_a_file_changes(
    texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepared("texts")
    with monkeypatch.context() as patch:
        patch.setattr("harness.corpora.local.documents_in", None)
        assert prepared("texts") == first
    status = (texts / "a.txt").stat()
    (texts / "a.txt").write_text("A")
    os.utime(texts / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert text_of("texts").startswith(f"A{END}")


pieces = st.lists(
    st.sampled_from(["a", "'s", "二", " ", "\n", END, "<|endof", "text|>"]), max_size=8
).map("".join)


@given(st.lists(pieces, min_size=1, max_size=5))
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_of_a_corpus_are_those_of_its_documents(tmp_path: Path, documents: list[str]) -> None:
    members = [tmp_path / f"{number}" for number in range(len(documents))]
    for member, document in zip(members, documents, strict=True):
        member.write_text(document)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": document}) + "\n" for document in documents))
    words: Counter[bytes] = Counter()
    meter, of_files, of_rows = Meter(), Meter(), Meter()
    for member in members:
        words.update(dict(serial(Corpus(str(member)), meter)))
    files = prepared(list(map(str, members))).path
    assert dict(serial(Corpus(str(files)), of_files)) == words
    assert dict(serial(Corpus(str(prepared(rows).path)), of_rows)) == words
    assert (
        of_files.tallies["documents"] == of_rows.tallies["documents"] == meter.tallies["documents"]
    )
    assert END * 2 not in files.read_text() or any(
        END * 2 in each or each.startswith(END) for each in documents
    )


def test_bad_byte_is_located_in_its_own_file(texts: Path) -> None:
    (texts / "b.txt").write_bytes("ab二".encode() + b"\xff")
    (texts / "c.gz").write_bytes(gzip.compress(b"abc\xff"))
    for path, special_tokens, message in (
        ("texts", (END,), "texts/b.txt: invalid UTF-8 at byte 5; fix"),
        ("[texts/a.txt,texts/c.gz]", (END,), "texts/c.gz, unpacked: invalid UTF-8 at byte 3; fix"),
        ("texts/b.txt", (), "texts/b.txt: invalid UTF-8 at byte 5; fix"),
    ):
        for further in ({}, {"bytes": "1MB"}, {"skip": "2"}):
            corpus = prepared(path, special_tokens, **further)
            with pytest.raises(InvalidText) as raised:
                serial(Corpus(str(corpus.path), special_tokens))
            assert message in corpus.located(str(raised.value), raised.value.offset)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_file_is_the_text_in_it(tmp_path: Path, suffix: str) -> None:
    pack = PACK[suffix]
    contents = {
        "one": (pack(LONG), LONG),
        "two": (pack(LONG[:9999]) + pack(LONG[9999:]), LONG),
        "NO": (pack(b""), b""),
    }
    for name, (packed, text) in contents.items():
        path = tmp_path / (name + (suffix.upper() if name == "NO" else suffix))
        path.write_bytes(packed)
        corpus = prepared(path, ())
        assert (corpus.path.read_bytes(), corpus.name) == (text, path.name)


@pytest.mark.parametrize("suffix", PACK)
def test_damaged_compressed_file_is_refused(tmp_path: Path, suffix: str) -> None:
    packed = PACK[suffix](LONG)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x55
    path = tmp_path / f"text{suffix}"
    # Zstandard's checksum is optional, and this file has none.
    for content in (
        packed[: len(packed) // 2],
        packed[:-1],
        LONG,
        *[bytes(flipped)] * (suffix != ".zst"),
    ):
        path.write_bytes(content)
        sentence = refusal(path)
        assert sentence.startswith(f"{path} is damaged or not a {suffix[1:]} file (")
        assert sentence.endswith("; get or make it again")


ROWS = ["one 二", "", "two\n", f"in{END}side", "😀"]
JOINED = f"one 二{END}two\n{END}in{END}side{END}😀{END}"


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_text_is_unpacked_under_any_name(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "book.txt").write_bytes(PACK[suffix](LONG))
    assert text_of(tmp_path / "book.txt") == LONG.decode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_are_known_by_a_first_one_of_any_length(tmp_path: Path, pack: Any) -> None:
    rows = "x" * 9_000, "two"
    content = "\n".join(json.dumps({"text": row}) for row in rows)
    (tmp_path / "c4.json").write_bytes(pack(content.encode()))
    assert text_of("c4.json") == "".join(row + END for row in rows)


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array(ROWS),
        pyarrow.array(ROWS).cast(pyarrow.large_string()),
        pyarrow.array(ROWS).cast(pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
        pyarrow.array([row.encode() for row in ROWS]),
        pyarrow.array([{"text": row, "id": 1} for row in ROWS]),
    ],
    ids=lambda column: str(column.type),
)
def test_rows_of_parquet_are_a_document_each(tmp_path: Path, column: Any) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"body": column}), path, row_group_size=2)
    nested = ".text" if pyarrow.types.is_struct(column.type) else ""
    assert text_of(path, column=f"body{nested}") == JOINED
    path.rename(tmp_path / "rows.txt")
    assert text_of(tmp_path / "rows.txt", column=f"body{nested}") == JOINED


NOT_UTF_8 = pyarrow.Array.from_buffers(
    pyarrow.string(),
    2,
    [None, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"a\xff")],
)


@pytest.mark.parametrize(
    ("table", "column", "sentence"),
    [
        ({"id": [0], "body": ["low"]}, None, "no column 'text', there are: id, body; set data.col"),
        ({"text": [0]}, None, "row 1: column 'text' holds int 0, which is not text"),
        ({"text": [*["x"] * 1500, None]}, None, "row 1501: column 'text' holds null, which is"),
        ({"text": NOT_UTF_8}, None, "near row 2: 'utf-8' codec can't decode byte 0xff"),
        ({"meta": [{"id": 1}]}, "meta.text", "has no column 'meta.text', there are: meta"),
        ({"chat": [[{"text": "low"}]]}, "chat.text", "has no column 'chat.text', there are: chat"),
        ({}, None, "has no column 'text', there are: none"),
        (None, None, "a.parquet is damaged or not a Parquet file"),
    ],
)
def test_parquet_without_a_text_is_refused(
    tmp_path: Path, table: Any, column: str | None, sentence: str
) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("PAR1 and no more")
    if table is not None:
        parquet.write_table(pyarrow.table(table), path)
    assert sentence in refusal(path, column=column)


def test_rows_that_are_left_out_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.json").write_text('["low", null, null]')
    for _ in range(2):  # made, then from the cache
        assert text_of(tmp_path / "rows.json", skip_nulls=True) == f"low{END}"
        assert "left out 2 rows without a text" in capsys.readouterr().err
    with documents("rows.json", ["data.skip_nulls=true"]) as found:
        assert [b"".join(document) for document in found] == [b"low"]
    assert "left out 2 rows without a text" in capsys.readouterr().err


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives standard input a content."""
    local.spooled.cache_clear()
    yield lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    local.spooled.cache_clear()


def test_standard_input_is_read_once(pipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(LONG)
    first, second = prepared("-"), prepared("-", bytes="1000")
    assert first.path.read_bytes() == LONG
    assert (first.name, first.bytes) == ("stdin", len(LONG))
    assert LONG.startswith(second.path.read_bytes())
    assert (
        first.located(f"{first.path}: invalid UTF-8 at byte 7; x", 7)
        == "standard input: invalid UTF-8 at byte 7; x"
    )
    local.spooled.cache_clear()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert "nothing is piped into it" in refusal("-")
