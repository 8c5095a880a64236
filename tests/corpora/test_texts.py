"""A text as people have it is read right or refused in one sentence: the rows of texts.toml, and
what holds for any text.
"""

import gzip
import io
import json
import os
import sys
import sysconfig
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from exploring import examples
from fetched import END, PACK, cached, prepared, refusal
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet
from rows import Row, each_row, write_files
from workbench import written

from harness.common.errors import Refusal
from harness.corpora import CorpusFile, documents, local, standard_library, text
from harness.corpora import files as corpus_files
from harness.corpora.files import bounds
from variants.contract import Corpus, Meter
from variants.counting.pretokenize import serial

LONG = "".join(f"word{number} 二{number * 7919 % 1000}\n" for number in range(5_000)).encode()
PIECES = ["a", "'s", "二", "😀", " ", "\n", END, "<|endof", "text|>"]
texts = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def text_of(path: Any, **settings: Any) -> str:
    return prepared(path, **settings).path.read_bytes().decode()


@each_row(__file__, "texts.toml")
def test_a_text_is_read_right_or_refused_in_one_sentence(row: Row, here: Path) -> None:
    write_files(here, row.get("files", {}))
    for name, target in row.get("links", {}).items():
        Path(name).symlink_to(target)
    for name in row.get("pipes", []):
        os.mkfifo(name)
    source = row["source"] if "source" in row else next(iter(row["files"]))
    how = row.get("settings", []), row.get("tokens", ["<|>"]), row.get("errors", "strict")

    before = cached()
    if "refused" in row:
        with pytest.raises(Refusal) as refused:
            text(source, *how)
        sentence = str(refused.value)
        assert row["refused"] in sentence
        assert "\n" not in sentence
        assert cached() == before, "something half-written was left"
        return

    file = text(source, *how)
    assert file.path.read_bytes().decode(errors=how[2]) == row["text"]
    assert file.name == row.get("name", file.name)
    assert (cached() == before) == row.get("in_place", False)
    is_slice = any("data.column" not in setting for setting in how[0])
    if not is_slice and how[2] == "strict":
        with documents(source, how[0]) as found:
            streamed = b"".join(block for document in found for block in document)
        assert streamed.decode().replace("<|>", "") == row["text"].replace("<|>", "")


@given(st.lists(texts, min_size=1, max_size=5))
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_of_a_corpus_are_those_of_its_documents(tmp_path: Path, documents: list[str]) -> None:
    members = [tmp_path / f"{number}" for number in range(len(documents))]
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": document}) + "\n" for document in documents))
    expected = Counter[bytes]()
    meter = Meter()
    for member, document in zip(members, documents, strict=True):
        member.write_text(document)
        expected.update(dict(serial(Corpus(str(member)), meter)))

    for path in (rows, list(map(str, members))):
        own_meter = Meter()
        joined = prepared(path).path
        assert dict(serial(Corpus(str(joined)), own_meter)) == expected
        assert own_meter.tallies["documents"] == meter.tallies["documents"]


@given(texts, st.integers(0, 120), st.none() | st.integers(1, 120), st.none() | st.integers(1, 4))
@examples(400)
def test_slice_of_a_text_is_text_within_its_bounds(
    text: str, skip: int, length: int | None, documents: int | None
) -> None:
    content, end = text.encode(), END.encode()
    start, stop = bounds(content, [END], skip, length, documents)
    part = content[start:stop]
    part.decode()
    if END in text:
        assert start >= min(skip, len(content))
        assert start in (0, len(content)) or content[:start].endswith(end)

    if length is not None:
        assert len(part) <= length
        if documents is None and stop < len(content):
            assert len(part) >= length - max(length // 10, len(END) - 1)
    if documents is not None:
        here, there = number_of(part), number_of(content[start:])
        assert here <= min(documents, there)
        assert here == min(documents, there) or length is not None


def number_of(content: bytes) -> int:
    """How many documents a counter finds."""
    return sum(bool(document.strip()) for document in content.split(END.encode()))


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_text_is_unpacked_under_any_name_or_refused_if_damaged(
    tmp_path: Path, suffix: str
) -> None:
    pack = PACK[suffix]
    packed = pack(LONG)
    contents = {
        f"a{suffix}": packed,
        f"A{suffix.upper()}": pack(LONG[:9999]) + pack(LONG[9999:]),
        "book.txt": packed,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        corpus = prepared(tmp_path / name, ())
        assert (corpus.path.read_bytes(), corpus.name) == (LONG, name)

    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x55
    path = tmp_path / f"damaged{suffix}"
    damaged = [packed[: len(packed) // 2], packed[:-1], LONG]
    if suffix != ".zst":  # its checksum is optional, and this file has none
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        sentence = refusal(path)
        assert sentence.startswith(f"{path} is damaged or not a {suffix[1:]} file (")
        assert sentence.endswith("; get or make it again")


def test_rows_are_known_by_a_first_one_of_any_length(tmp_path: Path) -> None:
    long = "x" * 9_000
    write_files(tmp_path, {"c4.json.gz": f'{{"text": "{long}"}}\n{{"text": "two"}}'})
    assert text_of(tmp_path / "c4.json.gz") == f"{long}{END}two{END}"


def test_rows_that_are_not_utf8_are_replaced_by_whoever_asks(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"text": "caf\xff"}', "a.jsonl")
    for settings, errors in ([], None), (["errors=strict"], None), ([], "strict"):
        with pytest.raises(Refusal, match=r"that row, or pass errors=replace$"):
            text(path, settings, [END], errors)
    with documents(path) as found, pytest.raises(Refusal, match=r"pass errors=replace$"):
        list(map(list, found))

    for settings, errors in (["errors=replace"], None), ([], "replace"):
        assert text(path, settings, [END], errors).path.read_text() == f"caf\ufffd{END}"
    with documents(path, ["errors=replace"]) as found:
        assert [b"".join(document) for document in found] == ["caf\ufffd".encode()]

    with pytest.raises(Refusal, match="errors=replace' is not a setting of a text"):
        text(path, ["errors=replace"], [END], "strict")  # it has an option of its own
    with pytest.raises(Refusal, match="unknown errors 'ignore'"):
        text(path, ["errors=ignore"])


def test_a_column_of_parquet_may_have_any_type_of_text(tmp_path: Path) -> None:
    rows = pyarrow.array(["one 二", "", "two\n", f"in{END}side", "😀"])
    path = tmp_path / "rows.txt"  # known by its content

    def write(column: Any) -> None:
        parquet.write_table(pyarrow.table({"text": column}), path, row_group_size=2)

    dictionary = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    for kind in (pyarrow.large_string(), dictionary, pyarrow.binary()):
        write(rows.cast(kind))
        assert text_of(path) == f"one 二{END}two\n{END}in{END}side{END}😀{END}"

    bad = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    write(bad)
    assert "row 2: 'utf-8' codec can't decode byte 0xff" in refusal(path)
    objects = pyarrow.StructArray.from_arrays([bad], ["inner"])
    for column, name in (bad, "text"), (bad.dictionary_encode(), "text"), (objects, "text.inner"):
        write(column)
        replaced = text(str(path), [f"data.column={name}"], [END], "replace")
        assert replaced.path.read_bytes().decode() == f"a{END}\ufffd{END}"

    write([*["x"] * 1500, None])
    assert "row 1501: column 'text' holds null, which is" in refusal(path)


def change_nothing_but_content(path: Path, content: str) -> None:
    status = path.stat()
    with path.open("r+") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_joined_text_is_made_once_and_again_when_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.txt": "a", "b.txt": "b"})
    first = prepared(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("harness.corpora.local.documents_in", None)
        assert prepared(tmp_path) == first
    change_nothing_but_content(tmp_path / "a.txt", "A")
    assert text_of(tmp_path) == f"A{END}b{END}"


def test_a_changed_text_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "SECONDS_TO_SETTLE", -1)
    path = tmp_path / "a book, (中文).txt"
    path.write_text("one two")
    corpus = prepared(path)
    assert corpus.is_unchanged()
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    change_nothing_but_content(path, "two")
    assert not corpus.is_unchanged()
    path.unlink()
    assert not corpus.is_unchanged()

    path.write_text("one two")
    monkeypatch.setattr(CorpusFile, "is_unchanged", lambda _: False)
    assert "was changed while it was read; run the same again" in refusal(path, bytes="4")


def test_folder_that_changes_while_its_documents_are_read_is_refused(tmp_path: Path) -> None:
    def encode() -> None:
        with documents(tmp_path) as found:
            for document in found:
                assert b"".join(document).startswith(b"low")
                change_nothing_but_content(tmp_path / "a.txt", "LOW")

    write_files(tmp_path, {"a.txt": "low", "b.txt": "lower"})
    with pytest.raises(Refusal, match="was changed while it was read; run the same again"):
        encode()


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Pipe bytes into standard input."""
    local.spooled.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, LONG)
    whole, part = prepared("-"), prepared("-", bytes="1000")
    assert (whole.name, whole.path.read_bytes()) == ("stdin", LONG)
    assert LONG.startswith(part.path.read_bytes())
    bad_byte = f"{whole.path}: invalid UTF-8 at byte 7; x"
    assert whole.located(bad_byte, 7) == "standard input: invalid UTF-8 at byte 7; x"

    local.spooled.cache_clear()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert "nothing is piped into it" in refusal("-")


def test_first_bytes_decide_what_standard_input_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, gzip.compress(LONG))
    with documents("-") as found:
        assert b"".join(block for document in found for block in document) == LONG

    pipe(monkeypatch, b"SQLite format 3\0")
    with pytest.raises(Refusal, match="standard input is an SQLite database"):
        prepared("-")


def test_the_standard_library_is_a_document_for_each_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"Z.py": "Z", "a-b/c.py": "c", "a.py": "", "a/z.py": "# ä\r\n", "b.py": "b = 1\n"}
    others = ["test/x.py", "a/tests/x.py", "site-packages/x.py", "idlelib/idle_test/x.py", "x.txt"]
    write_files(tmp_path, {**dict.fromkeys(others, "left out"), "latin.py": r"# \xe4", **modules})
    (tmp_path / "lost.py").symlink_to("nowhere")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})

    first = standard_library()
    assert first.read_bytes().decode() == "".join(module + END for module in modules.values())
    standard_library.cache_clear()
    assert standard_library() == first
    (tmp_path / "b.py").write_text("b = 22\n")
    standard_library.cache_clear()
    assert standard_library() != first
