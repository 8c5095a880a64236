"""One fault has one exit code at every door: 22 for a file or a package, 2 for a wrong command."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import local
from harness.tokenizer import train

OF_TEXTS = {
    "run": "variant=heap vocab_size=262 measure=proof data.path={}",
    "train": "tokenizer train {} --vocab-size 262 --save new",
    "replay": "replay saved/merges.txt --data {}",
    "counts": "corpora counts {}",
    "encode": "tokenizer encode saved --data {} --output ids.npy",
    "check": "tokenizer check saved --data {}",
    "stats": "tokenizer stats saved --data {}",
    "unused": "tokenizer unused saved --data {}",
}
"""What reads a text, by a door."""
OF_ANY_BYTES = ("encode", "check", "stats", "unused")
OF_TOKENIZERS = {
    "extend=": "variant=flat vocab_size=300 data.path=t.txt plan=true extend={}",
    "pattern=": "variant=flat vocab_size=300 data.path=t.txt plan=true pattern={}",
    "train": "tokenizer train t.txt --vocab-size 262 --save new --extend {}",
    "replay": "replay {} --data t.txt",
    "encode": "tokenizer encode {} low",
    "decode": "tokenizer decode {} 1",
    "convert": "tokenizer convert {} --to ours --output new",
    "cut": "tokenizer cut {} --vocab-size 257 --output new",
    "check": "tokenizer check {}",
    "stats": "tokenizer stats {} --data t.txt",
    "unused": "tokenizer unused {}",
}
"""What reads a tokenizer."""
OF_TOKENS = {
    "seeds=": "variant=flat vocab_size=300 data.path=t.txt plan=true seeds={}",
    "protected=": "variant=flat vocab_size=300 data.path=t.txt plan=true protected={}",
    "--seeds": "tokenizer train t.txt --vocab-size 262 --save new --seeds {}",
    "--protected": "tokenizer train t.txt --vocab-size 262 --save new --protected {}",
}
"""What reads a list of tokens."""
WRITING = {
    "run": "variant=heap vocab_size=262 data.path=t.txt save={}/new",
    "results": "variant=heap vocab_size=262 data.path=t.txt results={}/new",
    "train": "tokenizer train t.txt --vocab-size 262 --save {}/new",
    "encode": "tokenizer encode saved --data t.txt --output {}/ids.npy",
    "convert": "tokenizer convert saved --to ours --output {}/new",
    "cut": "tokenizer cut saved --vocab-size 257 --output {}/new",
    "counts": "corpora counts t.txt --text {}/words",
    "table": "table results --output {}/table.csv",
    "plot": "plot results --output {}/plot.svg",
    "report": "report results --output {}/report.html",
    "export": "records export results --output {}/r.csv",
}
"""What writes a file or a folder."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("low low lower newest\n")
    train(Path("t.txt"), 262).save("saved")


def code_of(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> int:
    """The exit code of a command; what is wrong is one line without a traceback."""
    code = main([argument.format(name) for argument in command.split()])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    return code


def codes(doors: dict[str, str], name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    return {door: code_of(command, name, capsys) for door, command in doors.items()}


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "low")


TEXTS: dict[str, Callable[[Path], object]] = {
    "missing.txt": lambda _: None,
    "loop": lambda path: path.symlink_to("loop"),
    "folder": lambda path: path.mkdir(),
    "pipe.txt": lambda path: os.mkfifo(path),
    "damaged.gz": lambda path: path.write_bytes(gzip.compress(b"low " * 999)[:-9]),
    "archive.zip": archive,
    "column.jsonl": lambda path: path.write_text('{"body": "low"}\n'),
    "null.jsonl": lambda path: path.write_text('{"text": null}\n'),
    "broken.jsonl": lambda path: path.write_text('{"text": "low"}\n{"text\n'),
    "array.json": lambda path: path.write_text('[{"text": "low"}'),
    "damaged.parquet": lambda path: path.write_bytes(b"PAR1\x15low"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_cannot_be_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    TEXTS[name](Path(name))
    assert codes(OF_TEXTS, name, capsys) == dict.fromkeys(OF_TEXTS, UNMEASURED)


def test_standard_input_is_a_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in OF_TEXTS.values():
        local.spooled.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"low low lower newest\n")))
        assert code_of(command, "-", capsys) == OK


def test_advice_of_counts_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.jsonl").write_text('{"body": "low"}\n')
    assert main(["corpora", "counts", "c.jsonl"]) == UNMEASURED
    assert "; pass --set data.column=NAME" in capsys.readouterr().err
    assert main(["corpora", "counts", "c.jsonl", "--set", "data.column=body"]) == OK


def test_a_text_that_is_not_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    Path("latin1.txt").write_bytes("café".encode("latin-1"))
    doors = {door: command for door, command in OF_TEXTS.items() if door not in OF_ANY_BYTES}
    assert codes(doors, "latin1.txt", capsys) == dict.fromkeys(doors, UNMEASURED)


@pytest.mark.parametrize("name", ["stdlb", ""])
def test_a_text_that_cannot_be_meant(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    doors = {**OF_TEXTS, "run": "variant=heap data={}"}
    assert codes(doors, name, capsys) == dict.fromkeys(doors, USAGE)


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b"\xff", b'{"a":' + b"[" * 9999, b'{"model": {}}']
)
def test_a_tokenizer_that_cannot_be_read(
    content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path("tokenizer.json").write_bytes(content)
    found = codes(OF_TOKENIZERS, "./tokenizer.json", capsys)
    assert found == dict.fromkeys(OF_TOKENIZERS, UNMEASURED)


def test_a_failure_leaves_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.jsonl").write_text('{"text": "low"}\n{"text": 5}\n')
    before = sorted(Path().iterdir())
    for command in (
        "tokenizer train rows.jsonl --vocab-size 262 --save a/b/new",
        "tokenizer encode saved --data rows.jsonl --output a/b/ids.npy",
        "variant=heap data.path=rows.jsonl vocab_size=262 plan=true save=a/b/new",
    ):
        assert code_of(command, "", capsys) == UNMEASURED
        assert sorted(Path().iterdir()) == before


def test_what_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["variant=heap", "vocab_size=262", "data.path=t.txt", "results=results"]) == 0
    capsys.readouterr()
    assert codes(WRITING, "t.txt", capsys) == dict.fromkeys(WRITING, UNMEASURED)


def test_a_file_of_tokens_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(OF_TOKENS, "nowhere", capsys) == dict.fromkeys(OF_TOKENS, UNMEASURED)


def test_a_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = importlib.import_module

    def without(name: str, *arguments: str) -> object:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return load(name, *arguments)

    monkeypatch.setattr(importlib, "import_module", without)
    Path("t.parquet").write_bytes(b"PAR1\x15")
    assert codes(OF_TEXTS, "t.parquet", capsys) == dict.fromkeys(OF_TEXTS, UNMEASURED)
