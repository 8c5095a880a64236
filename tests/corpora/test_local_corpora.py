"""What data.path names: files, folders, patterns, standard input, compressed files, columns; all as one plain file."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import io
import json
import lzma
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.__main__ import main
from harness.common.errors import OK, Refusal, extra
from harness.common.files import cache_folder
from harness.corpora import CorpusFile, local, prepare
from harness.corpora.local import assemble
from variants.contract import Corpus, InvalidText, Meter
from variants.counting.pretokenize import serial

END = "<|endoftext|>"
pyarrow: Any = importlib.import_module("pyarrow")  # without types of its own
parquet: Any = importlib.import_module("pyarrow.parquet")
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
LONG = "".join(f"word{number} 二{number * 7919 % 1000}\n" for number in range(5_000)).encode()


def prepared(path: Any, special_tokens: Sequence[str] = (END,), **further: Any) -> CorpusFile:
    fields = {"name": "file", "bytes": None, "skip": None, "documents": None, "facts": {}, "source": {"kind": "path"}}
    return prepare({**fields, "path": path if isinstance(path, list) else str(path), **further}, special_tokens)


def text_of(path: Any, **further: Any) -> str:
    return prepared(path, **further).path.read_bytes().decode()


def refusal_of(path: Any, special_tokens: tuple[str, ...] = (END,), **further: Any) -> str:
    before = kept_files()
    with pytest.raises(Refusal) as refused:
        prepared(path, special_tokens, **further)
    assert "\n" not in str(refused.value)
    assert kept_files() == before, "something half-written was left"
    return str(refused.value)


def kept_files() -> list[Path]:
    return sorted(path for path in cache_folder().rglob("*") if path.is_file())


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts, and the folder above it as the current one."""
    folder = tmp_path / "texts"
    for name in ("b.txt", "a.txt", "deep/er/c.txt", "deep/d.md", ".hidden.txt", ".hidden/e.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(Path(name).stem)
    monkeypatch.chdir(tmp_path)
    return folder


# ---- several files


@pytest.mark.parametrize(
    ("path", "documents", "name"),
    [
        ("texts", ["a", "b", "d", "c"], "texts"),
        ("texts/", ["a", "b", "d", "c"], "texts"),
        ("texts/*.txt", ["a", "b"], "*.txt"),
        ("texts/**/*.txt", ["a", "b", "c"], "*.txt"),
        ("texts/[ab].txt", ["a", "b"], "[ab].txt"),
        ("[texts/b.txt,texts/a.txt]", ["b", "a"], "b.txt+1"),
        ("['texts/b.txt', texts/deep, texts/a*]", ["b", "d", "c", "a"], "b.txt+3"),
        (["texts/b.txt", "texts/deep"], ["b", "d", "c"], "b.txt+2"),
        ("[texts/a.txt,texts/a.txt]", ["a", "a"], "a.txt+1"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_several_files_are_one_corpus(path: Any, documents: list[str], name: str) -> None:
    assert text_of(path) == "".join(document + END for document in documents)
    assert prepared(path).name == name


@pytest.mark.parametrize("path", ["texts/a.*", "[texts/a.txt]", "texts/a.txt", ["texts/a.txt"]])
@pytest.mark.usefixtures("texts")
def test_a_single_plain_file_is_used_in_place(path: Any) -> None:
    corpus = prepared(path, ())
    assert (corpus.path, corpus.name, corpus.parts) == (Path("texts/a.txt"), "a.txt", ())


@pytest.mark.parametrize("name", ["[a].txt", "[a,b]", "*.txt", "a?", "**"])
@pytest.mark.usefixtures("texts")
def test_an_existing_file_wins_over_a_list_and_over_a_pattern(name: str) -> None:
    Path(name).write_text("literal")
    assert text_of(name) == "literal"


@pytest.mark.usefixtures("texts")
def test_separator_of_several_files() -> None:
    assert text_of("texts/*.txt", separator="\n") == "a\nb\n"
    assert text_of("texts/*.txt", separator="", special_tokens=()) == "ab"
    assert text_of("texts/*.txt", special_tokens=("<|e|>", END)) == "a<|e|>b<|e|>"
    sentence = refusal_of("texts/*.txt", ())
    assert sentence.startswith("these 2 files are joined by the first special token, and special_tokens is empty;")
    assert "data.separator=TEXT" in sentence
    assert "data.column=text, but texts is plain text" in refusal_of("texts", column="text")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("[]", "data.path=[] is empty"),
        ("", "data.path is empty"),
        ("[texts/a.txt,nonesuch]", "nonesuch not found"),
        ("[texts/a.txt,-]", "set data.path=- alone"),
        ("texts/*.pdf", "texts/*.pdf not found, and no file matches it"),
        ("texts/a*/*", "no file matches"),
        ("['a]", "cannot split data.path=['a]"),
        ("empty", "empty has no files"),
        ("nonesuch/", "nonesuch not found"),
        ("/", "/ is the whole file system; set data.path to a folder of texts"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_invalid_path_is_refused(path: str, message: str) -> None:
    Path("empty/.hidden").mkdir(parents=True)
    Path("empty/.hidden/x").touch()
    assert message in refusal_of(path)


def test_special_files_are_skipped_in_folders_and_refused_in_lists(texts: Path) -> None:
    os.mkfifo(texts / "pipe")
    (texts / "lost").symlink_to("nowhere")
    (texts / "circle").symlink_to(".")
    (texts / "z.txt").symlink_to("a.txt")
    assert text_of("texts") == f"a{END}b{END}d{END}c{END}a{END}"
    assert "pipe it into data.path=-" in refusal_of("[texts/a.txt,texts/pipe]")
    assert "texts/lost not found" in refusal_of("[texts/a.txt,texts/lost]")


def test_a_corpus_is_made_once_and_again_when_a_file_changes(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared("texts")
    with monkeypatch.context() as patch:
        patch.setattr("harness.corpora.local.join", None)
        assert prepared("texts") == first
    status = (texts / "a.txt").stat()
    (texts / "a.txt").write_text("A")
    os.utime(texts / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert text_of("texts").startswith(f"A{END}")
    assert first.path.read_text().startswith(f"a{END}")


def test_a_file_that_changes_while_it_is_read_is_refused(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.corpora.local.append", lambda *_: (texts / "b.txt").write_text("longer"))
    assert "texts/b.txt was changed while it was read" in refusal_of("[texts/b.txt,texts/a.txt]")


pieces = st.lists(st.sampled_from(["a", "'s", "二", " ", "\n", END, "<|endof", "text|>"]), max_size=8).map("".join)


@given(st.lists(pieces, min_size=1, max_size=5))
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_words_of_a_corpus_are_those_of_its_documents(tmp_path: Path, documents: list[str]) -> None:
    members = [tmp_path / f"{number}" for number in range(len(documents))]
    for member, document in zip(members, documents, strict=True):
        member.write_text(document)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": document}) + "\n" for document in documents))
    words: Counter[bytes] = Counter()
    meter, of_files, of_rows = Meter(), Meter(), Meter()
    for member in members:
        words.update(dict(serial(Corpus(str(member)), meter)))
    files, _ = assemble(members, END, None, "files")
    assert dict(serial(Corpus(str(files)), of_files)) == words
    assert dict(serial(Corpus(str(prepared(rows).path)), of_rows)) == words
    assert of_files.tallies["documents"] == of_rows.tallies["documents"] == meter.tallies["documents"]
    assert END * 2 not in files.read_text() or any(END * 2 in each or each.startswith(END) for each in documents)


# ---- which file, which byte


def test_bad_byte_is_located_in_its_own_file(texts: Path) -> None:
    (texts / "b.txt").write_bytes("ab二".encode() + b"\xff")
    (texts / "c.gz").write_bytes(gzip.compress(b"abc\xff"))
    for path, special_tokens, message in (
        ("texts", (END,), "texts/b.txt: invalid UTF-8 at byte 5; fix"),
        ("[texts/a.txt,texts/c.gz]", (END,), "texts/c.gz: invalid UTF-8 at byte 3 of what is unpacked; fix"),
        ("texts/b.txt", (), "texts/b.txt: invalid UTF-8 at byte 5; fix"),
    ):
        for further in ({}, {"bytes": "1MB"}, {"skip": "2"}):
            corpus = prepared(path, special_tokens, **further)
            with pytest.raises(InvalidText) as raised:
                serial(Corpus(str(corpus.path), special_tokens))
            assert message in corpus.located(str(raised.value), raised.value.offset)


# ---- compressed


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_file_is_the_text_in_it(tmp_path: Path, suffix: str) -> None:
    pack = PACK[suffix]
    for name, content in (("one", pack(LONG)), ("two", pack(LONG[:9999]) + pack(LONG[9999:])), ("TWO", pack(b""))):
        path = tmp_path / (name + (suffix.upper() if name == "TWO" else suffix))
        path.write_bytes(content)
        corpus = prepared(path, ())
        assert corpus.path.read_bytes() == (b"" if name == "TWO" else LONG)
        assert corpus.name == path.name


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_file_that_is_damaged_is_refused(tmp_path: Path, suffix: str) -> None:
    packed = PACK[suffix](LONG)
    if suffix == ".zst":  # unlike the others, its checksum is optional
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(LONG)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x55
    path = tmp_path / f"text{suffix}"
    for content in (packed[: len(packed) // 2], packed[:-1], b"", LONG, bytes(flipped)):
        path.write_bytes(content)
        sentence = refusal_of(path)
        assert sentence.startswith(f"{path} is damaged or not a {suffix[1:]} file (")
        assert ("it ends early, by byte " in sentence) == (len(content) < len(packed))
        assert sentence.endswith("; get or make it again")


def test_absent_library_is_named_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.zst").write_bytes(zstandard.compress(b"a"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    sentence = "a .zst file needs zstandard, which is not installed; run python -m pip install 'bpe-harness[data]'"
    assert sentence in refusal_of(tmp_path / "a.zst")
    assert extra("json", "this") is json


# ---- columns

ROWS = ["one 二", "", "two\n", f"in{END}side", "😀"]
JOINED = f"one 二{END}two\n{END}in{END}side{END}😀{END}"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson", "ROWS.JSONL", "rows.jsonl.gz", "rows.jsonl.zst"])
@pytest.mark.parametrize("column", [None, "body"])
def test_json_lines_are_a_document_each(tmp_path: Path, name: str, column: str | None) -> None:
    lines = [json.dumps({"id": 1, column or "text": row}, ensure_ascii=len(row) < 4) for row in ROWS]
    content = "\ufeff" + lines[0] + "\r\n\n" + "\n".join(lines[1:])
    (tmp_path / name).write_bytes(PACK.get(Path(name).suffix, bytes)(content.encode()))
    assert text_of(tmp_path / name, column=column) == JOINED


@pytest.mark.parametrize(
    "kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int8(), pyarrow.string())]
)
def test_rows_of_parquet_are_a_document_each(tmp_path: Path, kind: Any) -> None:
    table = pyarrow.table({"id": range(5), "body": pyarrow.array(ROWS).cast(kind)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    assert text_of(tmp_path / "rows.parquet", column="body") == JOINED
    sentence = refusal_of(tmp_path / "rows.parquet")
    assert "rows.parquet has no column 'text', there are: id, body; set data.column=NAME" in sentence
    assert "rows.parquet, row 1: column 'id' holds int 0, which is not text" in refusal_of(
        tmp_path / "rows.parquet", column="id"
    )
    assert "its rows are joined by" in refusal_of(tmp_path / "rows.parquet", ())
    parquet.write_table(pyarrow.table({"word": ["low"], "count": [1]}), tmp_path / "words.parquet")
    assert "set data.column=NAME, or data=words to train on its counts" in refusal_of(tmp_path / "words.parquet")


def test_a_row_without_text_is_named(tmp_path: Path) -> None:
    table = pyarrow.table({"text": [*["x"] * 1500, None, "y"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert "row 1501: column 'text' holds null, which is not text; fix" in refusal_of(tmp_path / "rows.parquet")
    bad = pyarrow.Array.from_buffers(
        pyarrow.string(), 2, [None, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"a\xff")]
    )
    parquet.write_table(pyarrow.table({"text": bad}), tmp_path / "rows.parquet")
    assert "row 2: column 'text' is not UTF-8" in refusal_of(tmp_path / "rows.parquet")


def test_parquet_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": [str(number) * 50 for number in range(999)]}), tmp_path / "a.parquet")
    for size in ((tmp_path / "a.parquet").stat().st_size - 9, 100, 3, 0):
        os.truncate(tmp_path / "a.parquet", size)
        assert "a.parquet is damaged or not a Parquet file" in refusal_of(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 2: not JSON ("),
        (b'{"text": "a\xff"}', "line 2: not JSON ('utf-8' codec can't decode byte 0xff"),
        (b'{"text": null}', "line 2: column 'text' holds null, which is not text; fix or remove that row"),
        (b'{"text": ["a"]}', "line 2: column 'text' holds list ['a'], which is not text;"),
        (b'{"text": "\\ud800"}', "line 2: column 'text' holds str '\\ud800', which is not text"),
        (b"[1]", "line 2: not an object with a column 'text';"),
        (b'{"body": "a"}', "line 2, has no column 'text', there are: body; set data.column=NAME"),
    ],
)
def test_invalid_row_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"text": "ok"}\n' + line + b"\n")
    assert message in refusal_of(tmp_path / "rows.jsonl")


def test_column_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([["id", "body"], *enumerate(ROWS)])
    assert text_of(path, column="body") == JOINED
    assert text_of(path).startswith("\ufeffid,body")
    assert "rows.csv has no column 'text', there are: id, body" in refusal_of(path, column="text")
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(b"id\tbody\n1\tlow, lower\n"))
    assert text_of(path.with_suffix(".tsv.gz"), column="body") == f"low, lower{END}"
    path.write_bytes(b"body\nok\n\xff\n")
    assert "rows.csv, line 3: 'utf-8' codec can't decode byte 0xff" in refusal_of(path, column="body")
    path.write_bytes(b"id,body\n1\n")
    assert "line 2: column 'body' holds null, which is not text" in refusal_of(path, column="body")


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("name", ["rows.CSV", "rows.tsv.gz", "texts"])
def test_table_without_a_column_is_reported(name: str) -> None:
    Path("rows.CSV").write_text("id,text")
    Path("rows.tsv.gz").write_bytes(gzip.compress(b"id\ttext"))
    Path("texts/rows.csv").write_text("id,text\n1,low\n")
    remark = f"{name} is read as plain text; set data.column=NAME to train on one column"
    assert prepared(name).remarks == (remark,)
    assert prepared("texts/rows.csv", column="text").remarks == prepared("texts/a.txt").remarks == ()


@pytest.mark.usefixtures("measured_once")
def test_probable_mistakes_are_reported_once_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text("low lower lowest newer " * 100)
    arguments = ["-m", "variants=[heap,naive]", "data.path=book.csv", "data.bytes=200,300", "vocab_size=260"]
    assert main([*arguments, "measure=proof"]) == OK
    assert capsys.readouterr().out.count("read as plain text") == 1


# ---- standard input


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives standard input a content."""
    local.spooled.cache_clear()

    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    yield give
    local.spooled.cache_clear()


def test_standard_input_is_read_once(pipe: Any) -> None:
    pipe(LONG)
    first, second = prepared("-"), prepared("-", bytes="1000")
    assert first.path.read_bytes() == LONG
    assert (first.name, first.bytes) == ("stdin", len(LONG))
    assert LONG.startswith(second.path.read_bytes())
    assert first.located(f"{first.path}: invalid UTF-8 at byte 7; x", 7) == "standard input: invalid UTF-8 at byte 7; x"


def test_unusable_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch, pipe: Any) -> None:
    pipe(b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert "nothing is piped into it" in refusal_of("-")
    monkeypatch.setattr(sys, "stdin", None)
    assert "nothing is piped into it" in refusal_of("-")
