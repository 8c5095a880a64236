"""What data.path names: files, folders, patterns, standard input, compressed files, columns; all as
one plain file.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from exploring import examples
from fetched import END, prepared, refusal
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet

from harness.corpora import cards, local, prepare
from harness.corpora.local import assemble
from harness.corpora.rows import RowReading
from harness.corpora.texts import documents
from variants.contract import Corpus, InvalidText, Meter
from variants.counting.pretokenize import serial

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: bytes(pyarrow.compress(content, "zstd", asbytes=True)),
}
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


@pytest.mark.parametrize(
    ("path", "documents", "name"),
    [
        ("texts", "abdc", "texts"),
        ("texts/*.txt", "ab", "texts/*.txt"),
        ("texts/**/*.txt", "abc", "texts/**/*.txt"),
        ("[texts/b.txt,texts/a.txt]", "ba", "b.txt+1"),
        ("['texts/b.txt', texts/deep, texts/a*]", "bdca", "b.txt+3"),
        (["texts/b.txt", "texts/deep"], "bdc", "b.txt+2"),
    ],
)
def test_several_files_are_one_corpus(path: Any, documents: str, name: str) -> None:
    assert text_of(path) == "".join(document + END for document in documents)
    assert prepared(path).name == name


@pytest.mark.parametrize("path", ["texts/a.*", "[texts/a.txt]", "texts/a.txt", ["texts/a.txt"]])
def test_single_plain_file_is_used_in_place(path: Any) -> None:
    corpus = prepared(path, ())
    assert (corpus.path, corpus.name, corpus.parts) == (Path("texts/a.txt"), "a.txt", ())


@pytest.mark.parametrize("name", ["[a].txt", "[a,b]", "*.txt", "a?"])
def test_existing_file_wins_over_a_list_and_over_a_pattern(name: str) -> None:
    Path(name).write_text("literal")
    assert text_of(name) == "literal"


def test_separator_of_several_files() -> None:
    assert text_of("texts/*.txt", special_tokens=("<|e|>", END)) == "a<|e|>b<|e|>"
    sentence = refusal("texts/*.txt", ())
    assert sentence.startswith(
        "these 2 files are joined by the first special token, and special_tokens is empty;"
    )
    assert "data.column=text, but texts is plain text" in refusal("texts", column="text")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("[]", "data.path is empty"),
        ("", "data.path is empty"),
        ("[texts/a.txt,nonesuch]", "nonesuch not found"),
        ("[texts/a.txt,-]", "set data.path=- alone"),
        ("texts/*.pdf", "texts/*.pdf not found, and no file matches it"),
        ("['a]", "cannot split data.path=['a]"),
        ("empty", "empty has no files"),
        ("nonesuch/", "nonesuch not found"),
        (
            "s3://bucket/a.txt",
            "s3://bucket/a.txt is not on this machine; counting=dask counts it where it is",
        ),
    ],
)
def test_invalid_path_is_refused(path: str, message: str) -> None:
    Path("empty/.hidden").mkdir(parents=True)
    Path("empty/.hidden/x").touch()
    assert message in refusal(path)


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
    files, _ = assemble(members, END, RowReading(), "files")
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


@pytest.mark.parametrize(
    "name", ["rows.jsonl", "rows.ndjson", "ROWS.JSONL", "rows.jsonl.gz", "rows.jsonl.zst"]
)
@pytest.mark.parametrize("column", [None, "body"])
def test_json_lines_are_a_document_each(tmp_path: Path, name: str, column: str | None) -> None:
    lines = [
        json.dumps({"id": 1, column or "text": row}, ensure_ascii=len(row) < 4) for row in ROWS
    ]
    content = "\ufeff" + lines[0] + "\r\n\n" + "\n".join(lines[1:])
    (tmp_path / name).write_bytes(PACK.get(Path(name).suffix, bytes)(content.encode()))
    assert text_of(tmp_path / name, column=column) == JOINED


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
    ],
)
def test_rows_of_parquet_are_a_document_each(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"id": range(5), "body": pyarrow.array(ROWS).cast(kind)})
    parquet.write_table(table, path, row_group_size=2)
    assert text_of(path, column="body") == JOINED
    assert "has no column 'text', there are: id, body; set data.column=NAME" in refusal(path)
    assert "row 1: column 'id' holds int 0, which is not text" in refusal(path, column="id")
    assert "its rows are joined by" in refusal(path, ())


def test_csv_and_tsv_rows_are_a_document_each(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([["text", "body"], *((f"t{row}", row) for row in ROWS)])
    assert text_of(path, column="body") == JOINED
    assert text_of(path).startswith(f"tone 二{END}t{END}ttwo\n{END}")
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(b"id\tbody\n1\tlow, lower\n"))
    assert text_of(path.with_suffix(".tsv.gz"), column="body") == f"low, lower{END}"


LINES = "\n".join(json.dumps({"text": row}) for row in ROWS)
ARRAY = json.dumps([{"text": row} for row in ROWS], indent=1)
WITH_TITLES = "id;title\n" + "".join(f'{number};"{row}"\n' for number, row in enumerate(ROWS))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c4.json", LINES),
        ("c4", LINES),
        ("c4.json", ARRAY),
        ("c4", ARRAY),
        ("c4.json", json.dumps(ROWS)),
        ("c4.json", f"\ufeff{LINES}"),
        ("c4.json", json.dumps({"text": ROWS[0] + "x" * 9_000}) + "\n" + LINES),
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst", "gz under another name"])
def test_json_is_read_as_rows_under_any_name(
    tmp_path: Path, name: str, content: str, packed: str
) -> None:
    bytes_of_file = PACK.get(packed, gzip.compress if packed else bytes)(content.encode())
    path = tmp_path / (name + (packed if packed in PACK else ""))
    path.write_bytes(bytes_of_file)
    first = ROWS[0] + "x" * 9_000 + END if "xxx" in content else ""
    assert text_of(path) == first + JOINED

    with documents(path) as found:
        streamed = [b"".join(document).decode() for document in found]
    assert streamed == [first.removesuffix(END)] * bool(first) + ROWS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("package.json", '{\n "name": "low"\n}\n'),
        ("notes", "{low} [lower]\n"),
        ("numbers.json", "[1, 2]"),
        ("c4.txt", LINES),
    ],
)
def test_other_text_stays_one_document(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert text_of(tmp_path / name) == content


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_text_is_unpacked_under_any_name(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "book.txt").write_bytes(PACK[suffix](LONG))
    assert text_of(tmp_path / "book.txt") == LONG.decode()


def archives() -> dict[str, bytes]:
    packed, tape = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "low")
    with tarfile.open(fileobj=tape, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a.txt"))
    lz4 = bytes(pyarrow.compress(b"low", "lz4", asbytes=True))
    return {"zip": packed.getvalue(), "tar": tape.getvalue(), "lz4": lz4}


@pytest.mark.parametrize("kind", archives())
@pytest.mark.parametrize("name", ["book.txt", "book", "book.gz"])
def test_an_archive_is_refused_by_name(tmp_path: Path, kind: str, name: str) -> None:
    content = archives()[kind]
    (tmp_path / name).write_bytes(gzip.compress(content) if name == "book.gz" else content)
    assert f"{name} is a {kind} archive; unpack it first" in refusal(tmp_path / name)


def test_nested_binary_and_semicolon_columns_are_read(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"meta": {"text": row}}) for row in ROWS)
    (tmp_path / "a.jsonl").write_text(lines)
    assert text_of(tmp_path / "a.jsonl", column="meta.text") == JOINED
    assert "has no column 'meta.body'" in refusal(tmp_path / "a.jsonl", column="meta.body")

    binary = pyarrow.array([row.encode() for row in ROWS])
    nested = pyarrow.table({"meta": [{"text": row, "id": 1} for row in ROWS], "body": binary})
    parquet.write_table(nested, tmp_path / "a.parquet")
    assert text_of(tmp_path / "a.parquet", column="meta.text") == JOINED
    assert text_of(tmp_path / "a.parquet", column="body") == JOINED

    (tmp_path / "a.csv").write_text(WITH_TITLES)
    assert text_of(tmp_path / "a.csv", column="title") == JOINED


def test_null_rows_are_left_out_and_counted_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "low"}\n{"text": null}\n{"meta": 1, "text": null}\n{"text": "er"}\n')
    assert "line 2: column 'text' holds null" in refusal(path)
    assert "or leave such rows out: set data.skip_nulls=true" in refusal(path)

    for _ in range(2):  # made, then from the cache
        assert text_of(path, skip_nulls=True) == f"low{END}er{END}"
        assert "left out 2 rows without a text" in capsys.readouterr().err
    with documents(path, ["data.skip_nulls=true"]) as found:
        assert len([b"".join(document) for document in found]) == 2
    assert "left out 2 rows without a text" in capsys.readouterr().err


def test_lone_surrogates_are_replaced_on_request(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text":"ok"}\n{"text":"a\\ud83db"}\n')
    card = {**cards.card_of("file"), "path": str(path)}
    assert prepare(card, [END], "replace").path.read_text() == f"ok{END}a\ufffdb{END}"


def bad_parquet() -> Any:
    """A column of text whose second row is not UTF-8."""
    offsets, data = pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"a\xff")
    return pyarrow.table(
        {"text": pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, offsets, data])}
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"{", "line 2: not JSON ("),
        ("a.jsonl", b'{"text": "a\xff"}', "line 2: not JSON ('utf-8' codec can't decode byte 0xff"),
        (
            "a.jsonl",
            b'{"text": null}',
            "line 2: column 'text' holds null, which is not text; fix or remove that row",
        ),
        ("a.jsonl", b"[1]", "line 2: not an object with a column 'text';"),
        ("a.csv", b"text\nok\n\xff\n", "line 3: 'utf-8' codec can't decode byte 0xff"),
        (
            "a.csv",
            b"id,body\n1,low\n",
            "a.csv has no column 'text', there are: id, body; set data.column=NAME",
        ),
        (
            "a.parquet",
            pyarrow.table({"text": [*["x"] * 1500, None]}),
            "row 1501: column 'text' holds null, which is",
        ),
        (
            "a.parquet",
            bad_parquet(),
            "damaged or not a Parquet file, near row 2: 'utf-8' codec can't decode",
        ),
        ("a.parquet", b"PAR1 and no more", "a.parquet is damaged or not a Parquet file"),
    ],
)
def test_invalid_row_is_named(tmp_path: Path, name: str, content: Any, message: str) -> None:
    path = tmp_path / name
    if isinstance(content, pyarrow.Table):
        parquet.write_table(content, path)
    else:
        path.write_bytes((b'{"text": "ok"}\n' if name == "a.jsonl" else b"") + content)
    assert message in refusal(path)


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
